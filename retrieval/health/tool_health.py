"""What is counted of a tool's health: bounded, exactly once, rebuilt from the log. Made by ingest.

Latest events are kept one by one, as far as questions about them look back; all are in the tallies.
"""

from datetime import datetime

from pydantic import BaseModel, Field

from aftercall.models import ErrorCategory, ReferralKind
from retrieval.health.tally import Tally

MAX_REFERRALS = 64
"""Latest boundary referrals remembered one by one: cohesion and recommendations read them."""

MAX_LOW_UTILITY = 32
"""The same of the other kind, by itself: a flood of these must not push out the boundaries."""

MAX_WEAK = 16
MAX_CORRECTIONS = 32
MAX_OWN_FAILURES = 64
"""Moments of the latest failures that are the implementation's own."""

MAX_VIOLATIONS = 16
MAX_METHODS = 32
MAX_METHOD_SESSIONS = 2
"""Sessions remembered of a method: from two on its name is common knowledge."""

OWN_FAILURES: frozenset[ErrorCategory] = frozenset({"execution", "contract_violation", "timeout"})
"""Failures that only the tool's maker can mend; they speak for a repair."""


class Referred(BaseModel):
    """One referral."""

    at: datetime
    execution_id: str
    kind: ReferralKind
    session: str
    axes: list[str] = Field(default_factory=list)
    """Normalised (`retrieval.boundaries.axis_text`), each once."""
    spelled: list[str] = Field(default_factory=list)
    """The same in the tool's own words, in the same order."""
    shape: str | None = None
    split: list[str] = Field(default_factory=list)
    evidence: str | None = None
    message: str = ""


class Weak(BaseModel):
    """One weak success."""

    at: datetime
    execution_id: str
    why: str


class Corrected(BaseModel):
    """One correction by a user."""

    at: datetime
    correction_id: str
    execution_id: str
    kind: ReferralKind
    text: str
    axes: list[str] = Field(default_factory=list)
    """Normalised, as in `Referred`."""


class OwnFailure(BaseModel):
    """One failure of the implementation."""

    at: datetime
    execution_id: str
    category: ErrorCategory
    message: str


class Violation(BaseModel):
    """One way in which results broke a contract."""

    path: str
    mismatch: str
    expected: str
    tally: Tally = Field(default_factory=Tally)


class MethodTallies(BaseModel):
    """How one method fared."""

    successes: Tally = Field(default_factory=Tally)
    failures: Tally = Field(default_factory=Tally)
    categories: dict[ErrorCategory, Tally] = Field(default_factory=dict)
    sessions: list[str] = Field(default_factory=list)
    """Short marks of distinct sessions, a few."""


class KnownHealth(BaseModel):
    """All that is counted of one tool."""

    successes: Tally = Field(default_factory=Tally)
    failures: Tally = Field(default_factory=Tally)
    categories: dict[ErrorCategory, Tally] = Field(default_factory=dict)
    methods: dict[str, MethodTallies] = Field(default_factory=dict)
    method_parameter: str | None = None
    """The parameter that says which method is called; None for a tool with one job."""
    repair_attempts: Tally = Field(default_factory=Tally)
    repair_successes: Tally = Field(default_factory=Tally)
    referrals: list[Referred] = Field(default_factory=list)
    """Of both kinds, oldest first."""
    weak: Tally = Field(default_factory=Tally)
    recent_weak: list[Weak] = Field(default_factory=list)
    corrections: Tally = Field(default_factory=Tally)
    recent_corrections: list[Corrected] = Field(default_factory=list)
    own_failures: list[OwnFailure] = Field(default_factory=list)
    violations: list[Violation] = Field(default_factory=list)
    first_seen: datetime | None = None
    used_at: datetime | None = None
    troubled_at: datetime | None = None


class AxisSeen(BaseModel):
    """One axis of a workspace."""

    spelled: str
    """As a tool wrote it last."""
    tally: Tally = Field(default_factory=Tally)
    first_seen: datetime | None = None


MAX_BOOK_AXES = 2_000
"""Distinct axes remembered of a workspace; of more, the least heavy make room."""

MAX_BOOK_PAIRS = 4_000


class AxisBook(BaseModel):
    """All axes of a workspace, and which were named together. The row of `workspace_wide`."""

    axes: dict[str, AxisSeen] = Field(default_factory=dict)
    """By their normalised form."""
    pairs: dict[str, Tally] = Field(default_factory=dict)
    """By `pair_key` of two normalised forms, named in the same referral."""


def pair_key(one: str, other: str) -> str:
    """The key of two axes, in either order."""
    return "\x1f".join(sorted((one, other)))


def axes_of_pair(key: str) -> tuple[str, str]:
    """The reverse of `pair_key`."""
    one, _, other = key.partition("\x1f")
    return one, other
