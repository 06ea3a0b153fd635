"""Who calls over streamable HTTP, where the protocol has no session (2026-07-28).

A client is shown apart by its address, its name and version, and what it authorises itself with;
its session is ours, and ends when it has been silent for half an hour. Clients that can only be
configured say who they are in headers of their entry.
"""

import hashlib
import time
from collections.abc import Callable, Mapping
from uuid import uuid4

from aftercall.json_values import bounded_name, bounded_text
from aftercall.mcp_calls import AGENT_KEY, CONTEXT_KEY, SESSION_KEY
from aftercall.tables import keep_latest

SILENT_S = 1_800.0
"""Seconds after which a client that comes back begins another session."""
_MAX_CLIENTS = 1_000
_MAX_CONTEXT = 2_000
_HEADERS = {
    "aftercall-agent": AGENT_KEY,
    "aftercall-session": SESSION_KEY,
    "aftercall-context": CONTEXT_KEY,
}


class HttpSessions:
    """The sessions of clients that negotiate none; at most 1,000, the latest."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, tuple[str, float]] = {}

    def session_of(self, *client: str) -> str:
        """Return the session of a client, by what shows it apart.

        Its secrets are kept as a hash.
        """
        digest = hashlib.sha256("\0".join(client).encode("utf-8", "replace")).hexdigest()
        now = self._clock()
        session, seen = self._known.pop(digest, ("", 0.0))
        if not session or now - seen > SILENT_S:
            session = str(uuid4())
        keep_latest(self._known, digest, (session, now), _MAX_CLIENTS)
        return session


def meta_of_headers(headers: Mapping[str, str]) -> dict[str, object]:
    """Return what headers say of the caller, under the keys of a request's `_meta`."""
    said: dict[str, object] = {}
    for name, key in _HEADERS.items():
        if value := headers.get(name, "").strip():
            is_context = key == CONTEXT_KEY
            said[key] = bounded_text(value, _MAX_CONTEXT) if is_context else bounded_name(value)
    return said
