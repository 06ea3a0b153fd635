"""Keys: who may ask what of a service, and the audit of what was done."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from aftercall.models.base import Name, Timestamp, WireModel

Scope = Literal["record", "suggest", "read", "admin"]
ALL_WORKSPACES = "*"
"""What an operator's key is bound to, in the place of one workspace."""
Workspace = Annotated[str, StringConstraints(pattern=r"^(\*|[A-Za-z0-9][A-Za-z0-9._-]{0,63})$")]
WORKSPACE_HEADER = "aftercall-workspace"
"""Names the workspace of a request with an operator's key; `default` without it."""


class KeySpec(WireModel):
    """A key as it is asked for."""

    name: Name
    """Whose it is, in words."""
    workspace: Workspace = "default"
    """The one workspace that it reads and writes; `*` for an operator's key, which may all."""
    scopes: list[Scope] = Field(min_length=1, max_length=4)
    """`record` calls, corrections and tools; `suggest` asks about calls and tools; `read` sees what
    is stored; `admin` does all of it, and changes keys, promotions and recommendations."""
    expires_at: Timestamp | None = None
    """Until when it holds; null for ever."""
    rate: float | None = Field(default=None, gt=0, le=1_000_000)
    """Requests a second, of which five seconds' worth may come at once; null for any number."""


class KnownKey(KeySpec):
    """A key, without its secret."""

    id: str
    """Also the principal of what it reported."""
    created_at: Timestamp
    revoked_at: Timestamp | None = None
    former_until: Timestamp | None = None
    """After a rotation: until when the secret before it holds."""
    used_at: Timestamp | None = None
    """When it was last used, to a minute."""


class IssuedKey(WireModel):
    """A new key, or a new secret of one."""

    key: KnownKey
    secret: str
    """`ac_<id>_<secret>`, for `Authorization: Bearer`; it is shown this once, and only its hash is
    kept."""


class KeyList(WireModel):
    """Keys of a workspace, or of all for an operator; the oldest first."""

    keys: list[KnownKey]


class KeyRotation(WireModel):
    """A new secret for a key."""

    overlap_s: int = Field(default=3600, ge=0, le=30 * 86_400)
    """Seconds that the former secret still holds; 0 ends it at once."""


class AuditRecord(WireModel):
    """Who did what."""

    position: int
    """1 and up, over all workspaces."""
    at: Timestamp
    principal: str
    """The id of a key; `owner` without one, `console` for the command line."""
    workspace: str
    action: str
    subject: str
    hash: str
    """SHA-256 over the entry and the hash of the one before it."""


class AuditList(WireModel):
    """Entries of the audit, the latest first."""

    entries: list[AuditRecord]
