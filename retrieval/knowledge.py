"""What is known of one tool: profiles by schema, and by signature the repairs that worked.

A value object that is stored as JSON; updated by ingest, only read by the answers.
"""

import hashlib
from datetime import datetime

from pydantic import BaseModel, Field

from aftercall.models import ErrorCategory, Outcome
from retrieval.edits import OF_ANY_TEXT, Edit, edit_key
from retrieval.profile import Boundary, ToolProfile
from retrieval.profile.places import place_of
from retrieval.reading import ErrorReading
from retrieval.reading.faults import FaultKind
from retrieval.recovery import RecoveryTimes
from retrieval.repeats import Run
from retrieval.standing import (
    ANYBODY,
    MOST_REPAIRS,
    MOST_SUCCESSES,
    Standing,
    Testimony,
    Witness,
)

MAX_PROFILES = 4
"""Schema versions remembered; older ones are forgotten, oldest first."""
MAX_SIGNATURES = 200
MAX_RULES = 10
MAX_SHARED_RULES = 40
"""Of a kind of fault, over all tools: more than there are edits that depend on no tool."""
MAX_FAULTS = 16
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
    testimony: Testimony = Field(default_factory=Testimony)

    def repaired(self, agent: str, session: str, weight: float = 1.0) -> None:
        """Count a mined repair; `weight` (0 to 1) is how sure it is that it was one."""
        self._believe_old_counts()
        self.repairs += 1
        remember(self.sessions, session)
        self.testimony.repaired(agent, session, weight)

    def reported(self, agent: str, outcome: Outcome) -> None:
        """Count what became of a suggestion."""
        self._believe_old_counts()
        self.successes += outcome == "success"
        self.failures += outcome == "failure"
        self.testimony.reported(agent, outcome)

    def standing(self) -> Standing:
        """What speaks for and against it, each agent's word up to its cap."""
        if self.testimony.witnesses:
            return self.testimony.standing()
        sessions = min(self.repairs, len(self.sessions), MOST_REPAIRS)
        return Standing(sessions, min(self.successes, MOST_SUCCESSES), self.failures)

    def agents(self) -> int:
        """How many agents mended a failure so, as far as they are remembered."""
        return sum(each.repairs > 0 for each in self.testimony.witnesses.values())

    def _believe_old_counts(self) -> None:
        """Counts that were stored without their agents go on as those of an unnamed one."""
        if not self.testimony.witnesses and (self.repairs or self.successes or self.failures):
            old = self.standing()
            self.testimony.witnesses[ANYBODY] = Witness(
                repairs=old.repairs, successes=old.successes, failures=old.failures
            )


class SignatureKnowledge(BaseModel):
    """One kind of failure of one tool."""

    signature: str
    category: ErrorCategory
    count: int = 0
    agents: list[str] = Field(default_factory=list)
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    rules: dict[str, RepairRule] = Field(default_factory=dict)
    mends: int = 0
    """Failures that were mended, by a rule or otherwise."""
    faults: dict[str, FaultKind] = Field(default_factory=dict)
    """Its skeleton: what was wrong, by place; the last reading's."""

    def rule_to_update(self, edits: list[Edit], limit: int = MAX_RULES) -> RepairRule:
        """The rule of these edits, made when it is new in the place of the weakest."""
        key = edit_key(edits)
        if key not in self.rules and len(self.rules) >= limit:
            weakest = min(self.rules, key=lambda k: sum(self.rules[k].standing()[:2]))
            del self.rules[weakest]
        # What can be done to any text could have been done to all that were mended otherwise.
        rule = self.rules.setdefault(key, RepairRule(edits=edits))
        if not rule.repairs and any(isinstance(edit, OF_ANY_TEXT) for edit in edits):
            rule.testimony.otherwise[ANYBODY] = self.mends
        return rule


class ToolKnowledge(BaseModel):
    """All that is known of one tool."""

    profiles: dict[str, ToolProfile] = Field(default_factory=dict)
    """By schema hash; `NO_SCHEMA` for calls whose schema is not known."""
    signatures: dict[str, SignatureKnowledge] = Field(default_factory=dict)
    recoveries: dict[ErrorCategory, RecoveryTimes] = Field(default_factory=dict)
    """How long transient failures lasted (see `retrieval.recovery`)."""
    runs: dict[str, Run] = Field(default_factory=dict)
    """Calls that keep failing with the same error (see `retrieval.repeats`)."""

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

    def boundaries(self, place: str) -> dict[str, Boundary]:
        """Where the numbers at a place work and where not (see `Boundary`), by schema hash."""
        found = ((key, profile.boundary(place)) for key, profile in self.profiles.items())
        return {key: boundary for key, boundary in found if boundary}

    def signature(self, text: str) -> SignatureKnowledge | None:
        """What is known of a kind of failure."""
        return self.signatures.get(signature_id(text))

    def like(self, known: str, faults: dict[str, FaultKind]) -> list[SignatureKnowledge]:
        """Other kinds of failure than the known one: the same was wrong at the same places.

        Not those of errors that say of no place what is wrong: these are alike in nothing.
        """
        return [
            each
            for each in self.signatures.values()
            if faults and each.rules and each.faults == faults and each.signature != known
        ]

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


def skeleton_of(reading: ErrorReading) -> dict[str, FaultKind]:
    """What an error says is wrong, by place (`flights[].date`); without values and words."""
    return {place_of(fault.path): fault.kind for fault in reading.faults[:MAX_FAULTS] if fault.path}


def signature_id(text: str) -> str:
    """A short stable key of a signature: 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def remember(names: list[str], name: str, limit: int = MAX_NAMES) -> None:
    """Add a name to a bounded list of distinct ones, newest last, in place."""
    if name in names:
        return
    names.append(name)
    del names[:-limit]
