"""Keys, the audit of what was done, and what its admin does with a workspace."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator
from pydantic.config import JsonDict

from aftercall.models.base import Name, Timestamp, WireModel

Scope = Literal["record", "suggest", "read", "admin"]
ALL_WORKSPACES = "*"
"""What an operator's key is bound to, instead of one workspace."""
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
    """Requests a second, with five seconds' worth at once; null for any number."""


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


class KnownWorkspace(WireModel):
    """A workspace: it is there with its first key or its first call."""

    name: str
    events: int
    """All that was reported and answered, within the retention."""
    keys: int
    """Those that hold."""


class WorkspaceList(WireModel):
    """Workspaces, by name."""

    workspaces: list[KnownWorkspace]


_WHOSE = ("agent", "sessionId", "keyId", "before")
_SAYS_WHOSE: JsonDict = {
    "oneOf": [
        {
            "properties": {"everything": {"const": False}},
            "anyOf": [
                {"required": [name], "properties": {name: {"type": "string"}}} for name in _WHOSE
            ],
        },
        {
            "required": ["everything"],
            "properties": {
                "everything": {"const": True},
                **{name: {"type": "null"} for name in _WHOSE},
            },
        },
    ]
}


class ForgetRequest(WireModel):
    """Whose words go; where several are given, what all of them say."""

    model_config = ConfigDict(json_schema_extra=_SAYS_WHOSE)
    agent: Name | None = None
    session_id: Name | None = None
    key_id: Name | None = None
    before: Timestamp | None = None
    """What the service received before this moment."""
    everything: bool = Field(default=False, strict=True)
    """All of the workspace; its keys and the audit stay."""

    @model_validator(mode="after")
    def _says_whose(self) -> Self:
        named = any((self.agent, self.session_id, self.key_id, self.before))
        if named == self.everything:
            raise ValueError("say whose words go: agent, sessionId, keyId or before; or everything")
        return self


class ForgetReceipt(WireModel):
    """What went from the log."""

    erased: dict[str, int]
    """Numbers by kind of record."""
    generation: int | None
    """What is learned again without it: `GET /status` states this number, or a later one, when that
    answers. Null where nothing of it was there."""


class LearnedRule(WireModel):
    """A learned repair."""

    rule_id: str
    server_name: str | None
    tool_name: str | None
    """Null for a rule of any tool."""
    signature: str
    """Of the error, with its variable parts masked."""
    lesson: str
    repairs: int
    keys: list[str]
    """Marks of the keys whose repairs it rests on; an empty one stands for the owner."""
    suspicious: bool
    """Whether one key alone taught it: it is advice to all others."""
    off: bool
    """Whether it is switched off: neither proposed nor done by itself."""
    execution_ids: list[str]


class RuleSwitch(WireModel):
    """Whether a learned repair is to be off."""

    off: bool = Field(strict=True)


class MarkBurst(WireModel):
    """A tool that one key marked again and again within an hour."""

    server_name: str | None
    tool_name: str
    marks: int


class RuleList(WireModel):
    """What was learned, and what is suspicious of it."""

    rules: list[LearnedRule]
    bursts: list[MarkBurst]
