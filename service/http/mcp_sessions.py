"""MCP sessions that the client keeps: the id itself says what the service would have to remember.

Clients of the handshake era say their name once and then send the id of their session with every
request. An id that holds the name works with any service process and takes no memory here. It gives
no right to anything, so it needs no secret: a client that makes one up is believed like one that
gives a false name.
"""

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Self
from uuid import uuid4

from aftercall.mcp_server.caller import name_or_none

SESSION_HEADER = "mcp-session-id"

_MAX_NAME_BYTES = 192
"""Of a client's name in UTF-8; with these an id has at most 289 characters."""

_ID = re.compile(r"([0-9a-f]{32})\.([A-Za-z0-9_-]{0,256})", re.ASCII)


@dataclass(frozen=True, slots=True)
class McpSession:
    """A session and the name that its client gave itself, if it did."""

    session_id: str
    client_name: str | None

    @classmethod
    def begin(cls, client_name: str | None) -> Self:
        """A new session."""
        return cls(uuid4().hex, client_name)

    @classmethod
    def read(cls, text: str | None) -> Self | None:
        """The session of an id; None for none, and for what is no id of ours."""
        found = _ID.fullmatch(text or "")
        if found is None:
            return None
        session_id, packed = found.groups()
        try:
            name = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)).decode()
        except (binascii.Error, UnicodeDecodeError):
            return None
        return cls(session_id, name_or_none(name))

    def __str__(self) -> str:
        """The id that the client sends with every request."""
        encoded = (self.client_name or "").encode()[:_MAX_NAME_BYTES]
        whole = encoded.decode(errors="ignore").encode()  # a character may have been cut in two
        return f"{self.session_id}.{base64.urlsafe_b64encode(whole).decode().rstrip('=')}"
