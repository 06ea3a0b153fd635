"""The case: all that proposals may look at, gathered before they are made. No I/O from here on."""

from dataclasses import dataclass, field
from itertools import islice

from aftercall.json_values import JsonObject
from aftercall.redaction import is_redacted
from retrieval.documents import SeedEntry
from retrieval.knowledge import SignatureKnowledge
from retrieval.parameters import ParameterView, ToolView
from retrieval.profile import ParameterProfile, ToolProfile
from retrieval.reading import ErrorReading, Fault
from retrieval.values import fits


@dataclass(frozen=True, slots=True)
class SimilarCall:
    """Parameters of a success that is near to the failed call; similarity is a cosine."""

    execution_id: str
    parameters: JsonObject
    similarity: float


@dataclass(frozen=True, slots=True)
class Case:
    """A failed call with what is known of its tool.

    `writes` is true unless the tool is known to only read: then no value is added that the schema
    or a repair rule does not give. `profile_is_current` is false when the profile was gathered
    under another schema than `schema`.
    """

    parameters: JsonObject
    reading: ErrorReading
    view: ToolView | None = None
    profile: ToolProfile | None = None
    profile_is_current: bool = True
    schema_hash: str | None = None
    signature: SignatureKnowledge | None = None
    similar: tuple[SimilarCall, ...] = ()
    seeds: tuple[SeedEntry, ...] = ()
    writes: bool = True
    schema: JsonObject | None = None
    faults: tuple[Fault, ...] = field(init=False)

    def __post_init__(self) -> None:
        """The error's faults, and those that the live schema shows beside them."""
        object.__setattr__(self, "faults", _all_faults(self))

    def parameter(self, name: str | None) -> ParameterView | None:
        """What is known of a parameter."""
        return self.view.parameters.get(name) if self.view and name is not None else None

    def seen(self, name: str | None) -> ParameterProfile | None:
        """What successes and failures showed of a parameter."""
        return self.profile.parameters.get(name) if self.profile and name is not None else None


def _all_faults(case: Case) -> tuple[Fault, ...]:
    said = case.reading.faults
    if case.view is None or case.reading.category in _NOT_ABOUT_PARAMETERS:
        return said
    known = {(fault.kind, fault.parameter) for fault in said}
    named = {fault.parameter for fault in said if fault.kind != "invalid"}
    shown = [
        fault
        for fault in _schema_faults(case.view, case.parameters)
        if (fault.kind, fault.parameter) not in known
        and (fault.kind in ("missing", "unexpected") or fault.parameter not in named)
    ]
    # What the message says without a name, the schema shows with one.
    named_kinds = {fault.kind for fault in shown}
    kept = [fault for fault in said if fault.path or fault.kind not in named_kinds]
    return (*kept, *shown)


_NOT_ABOUT_PARAMETERS = frozenset(
    {"timeout", "rate_limited", "unavailable", "permission_denied", "user_rejected",
     "wrong_tool_boundary", "low_utility", "contract_violation"}
)  # fmt: skip


_MAX_SHOWN = 20
"""Faults of a kind: more than the proposals deal with (see `compose`)."""
_MAX_NAMES = 1_000


def _schema_faults(view: ToolView, parameters: JsonObject) -> list[Fault]:
    """Where the call itself does not fit what is known of the tool's parameters."""
    missing = view.missing(parameters)[:_MAX_SHOWN]
    faults = [Fault("missing", (name,), from_schema=True) for name in missing]
    if view.closed:
        unknown = view.unknown(parameters)[:_MAX_SHOWN]
        faults += [Fault("unexpected", (name,), from_schema=True) for name in unknown]
    if view.source == "profile":
        return faults
    for name, value in islice(parameters.items(), _MAX_NAMES):
        known = view.parameters.get(name)
        if known is None or is_redacted(value):
            continue  # the caller's own value may fit; its mask says nothing
        if not fits(value, known.types):
            fault = Fault("wrong_type", (name,), expected_types=known.types, from_schema=True)
            faults.append(fault)
        elif known.allowed and value not in known.allowed:
            faults.append(Fault("not_allowed", (name,), allowed=known.allowed, from_schema=True))
        elif (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and (
                (known.minimum is not None and value < known.minimum)
                or (known.maximum is not None and value > known.maximum)
            )
        ):
            faults.append(
                Fault("out_of_range", (name,), minimum=known.minimum, maximum=known.maximum,
                      from_schema=True)
            )  # fmt: skip
    return faults
