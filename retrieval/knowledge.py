"""What is known of one tool: profiles by schema, and by signature the repairs that worked.

A value object that is stored as JSON; updated by ingest, only read by the answers.
"""

import hashlib
from datetime import datetime

from pydantic import BaseModel, Field

from aftercall.wire import ErrorCategory
from retrieval.edits import Edit, edit_key
from retrieval.profile import ToolProfile

MAX_PROFILES = 4
"""Schema versions remembered; older ones are forgotten, oldest first."""
MAX_SIGNATURES = 200
MAX_RULES = 10
MAX_NAMES = 12
MAX_EDITS_LENGTH = 1_000
"""Characters of a rule's key. A longer repair is text rewritten, which mends no other call."""
MAX_EXAMPLES = 5
NO_SCHEMA = ""


class RepairRule(BaseModel):
    """The same edits, made to mend the same signature, with what became of them."""

    edits: list[Edit]
    repairs: int = 0
    successes: int = 0
    """Suggestions of these edits that were reported to have worked."""
    failures: int = 0
    """Suggestions of these edits that were reported to have failed."""
    schema_hashes: list[str] = Field(default_factory=list)
    """Schemas under which it was seen to mend; `NO_SCHEMA` where none was known."""
    sessions: list[str] = Field(default_factory=list)
    execution_ids: list[str] = Field(default_factory=list)
    last_seen: datetime | None = None


class SignatureKnowledge(BaseModel):
    """One kind of failure of one tool."""

    signature: str
    category: ErrorCategory
    count: int = 0
    agents: list[str] = Field(default_factory=list)
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    rules: dict[str, RepairRule] = Field(default_factory=dict)

    def rule_to_update(self, edits: list[Edit]) -> RepairRule:
        """The rule of these edits, made when it is new in the place of the weakest."""
        key = edit_key(edits)
        if key not in self.rules and len(self.rules) >= MAX_RULES:
            weakest = min(self.rules, key=lambda k: self.rules[k].repairs + self.rules[k].successes)
            del self.rules[weakest]
        return self.rules.setdefault(key, RepairRule(edits=edits))


class ToolKnowledge(BaseModel):
    """All that is known of one tool."""

    profiles: dict[str, ToolProfile] = Field(default_factory=dict)
    """By schema hash; `NO_SCHEMA` for calls whose schema is not known."""
    signatures: dict[str, SignatureKnowledge] = Field(default_factory=dict)

    def profile(self, schema_hash: str | None) -> ToolProfile | None:
        """The profile of a schema version, if there is one."""
        return self.profiles.get(schema_hash or NO_SCHEMA)

    def profile_to_update(self, schema_hash: str | None) -> ToolProfile:
        """The profile of a schema version, made when it is new and moved to the newest."""
        key = schema_hash or NO_SCHEMA
        profile = self.profiles.pop(key, None) or ToolProfile()
        self.profiles[key] = profile
        while len(self.profiles) > MAX_PROFILES:
            del self.profiles[next(iter(self.profiles))]
        return profile

    def signature(self, text: str) -> SignatureKnowledge | None:
        """What is known of a kind of failure."""
        return self.signatures.get(signature_id(text))

    def signature_to_update(self, text: str, category: ErrorCategory) -> SignatureKnowledge:
        """The same, made when it is new; the least recent is forgotten when there is no room."""
        key = signature_id(text)
        known = self.signatures.pop(key, None) or SignatureKnowledge(
            signature=text, category=category
        )
        self.signatures[key] = known
        while len(self.signatures) > MAX_SIGNATURES:
            del self.signatures[next(iter(self.signatures))]
        return known


def signature_id(text: str) -> str:
    """A short stable key of a signature: 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def remember(names: list[str], name: str, limit: int = MAX_NAMES) -> None:
    """Add a name to a bounded list of distinct ones, newest last, in place."""
    if name in names:
        return
    names.append(name)
    del names[:-limit]
