"""Wrong types and numbers out of range: the same thing said right, or moved to the bound."""

from collections.abc import Iterator

from aftercall.json_patch import same_json
from aftercall.json_values import JsonValue
from aftercall.models import EvidenceSource
from retrieval.edits.kinds import Cast, Clamp, Remove, Replace, Unwrap
from retrieval.identifiers import is_portion
from retrieval.knowledge.parameter import ParameterProfile
from retrieval.proposals.case import Case
from retrieval.proposals.option import Option, Trials
from retrieval.proposals.priors import prior
from retrieval.reading.faults import Fault, JsonType
from retrieval.values import CastError, cast, type_of

_EXACT = prior("cast.exact", 30, 1)  # "5" -> 5, 5 -> "5", a -> [a]
_UNWRAP = prior("cast.unwrap", 8, 2)
_WORDS = prior("cast.words", 22, 1)  # "five" -> 5, "1,000" -> 1000
_UNITS = prior("cast.unit", 12, 1.5)  # "10 commits" -> 10, "$12.50" -> 12.5
_SPLIT = prior("cast.split", 8, 2.5)  # "a, b" -> ["a", "b"]
_DROP_NULL = prior("remove.null", 14, 1.5)  # null for an optional parameter: leave it out
_STATED_BOUND = prior("clamp.stated", 24, 2)  # the error names the parameter and its bound
_MATCHED_BOUND = prior(
    "clamp.matched", 14, 2
)  # the error names a bound, and one value lies beyond it
_SEEN_BOUND = prior("clamp.seen", 4, 3)
_RAISED = prior(
    "clamp.raised", 5, 2.5
)  # 0 -> 1: what is too small was often meant as "none" or "all"
_INTENT_BOUND = Trials(1, 8)
"""Of an amount that a write is about: to transfer 100 instead of 500 is another transfer."""


def wrong_type_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """The value in the type that the tool expects, where that is no guess."""
    name = fault.parameter
    if name is None or len(fault.path) > 1 or name not in case.parameters:
        return
    value = case.parameters[name]
    view = case.parameter(name)
    types = fault.expected_types or (view.types if view else ())
    item_types = view.item_types if view else ()
    covers = frozenset({index})
    source: tuple[EvidenceSource, ...] = ("schema",) if fault.from_schema else ("error",)
    if value is None and not (view and view.required):
        reason = f"{name} may be left out, but not be null"
        yield Option((Remove(name=name),), reason, _DROP_NULL, source, covers=covers)
    if not types and isinstance(value, list):
        yield from unwrapped_options(case, index, name)
    for kind in types:
        try:
            corrected = cast(value, kind, item_types)
        except CastError:
            continue
        reason = f"{name} must be of type {kind}, not {type_of(value)}"
        # A general cast can be learned from; where items had to be cast too, only this value.
        edit: Cast | Replace = Cast(name=name, to=kind)
        if not _is_plain(value, kind, corrected):
            edit = Replace(name=name, before=value, value=corrected)
        yield Option((edit,), reason, _cast_trials(value, corrected, kind), source, covers=covers)


def unwrapped_options(case: Case, index: int, name: str) -> Iterator[Option]:
    """The only item of a list in the list's place."""
    value = case.parameters.get(name)
    if isinstance(value, list) and len(value) == 1 and not isinstance(value[0], list | dict):
        reason = f"{name} is a list of one, and was not taken as one value"
        yield Option((Unwrap(name=name),), reason, _UNWRAP, ("error",), covers=frozenset({index}))


def _is_plain(value: JsonValue, kind: JsonType, corrected: JsonValue) -> bool:
    try:
        return same_json(cast(value, kind), corrected)
    except CastError:
        return False


def _cast_trials(value: JsonValue, corrected: JsonValue, kind: JsonType) -> Trials:
    if kind == "array" and isinstance(corrected, list) and len(corrected) > 1:
        return _SPLIT if isinstance(value, str) and not value.strip().startswith("[") else _EXACT
    if kind in ("integer", "number") and isinstance(value, str):
        text = value.strip()
        if text in (str(corrected), f"{corrected}.0"):
            return _EXACT
        bare = text[-1].isdigit() and text.lstrip("-")[0].isdigit()
        return _WORDS if bare or text[0].isalpha() else _UNITS
    return _EXACT


def out_of_range_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """The nearest value inside the bounds; the seen ones when the error states none."""
    name = fault.parameter
    if fault.of_length or len(fault.path) > 1:
        return
    candidates = [name] if name in case.parameters else _beyond(case, fault) if not name else []
    if len(candidates) != 1 or candidates[0] is None:
        return
    target = candidates[0]
    view, seen = case.parameter(target), case.seen(target)
    low = fault.minimum if fault.minimum is not None else view.minimum if view else None
    high = fault.maximum if fault.maximum is not None else view.maximum if view else None
    covers = frozenset({index})
    if low is not None or high is not None:
        if fault.exclusive and not _is_whole(case, target):
            return  # the nearest number inside an open bound is nobody's wish
        stated = " to ".join(f"{limit:g}" for limit in (low, high) if limit is not None)
        successes = seen.successes if seen and _stays_within(seen, low, high) else 0
        within = f"; {successes} successes stay within it" if successes else ""
        yield Option(
            (Clamp(name=target, minimum=low, maximum=high),),
            f"the {'schema' if fault.from_schema else 'error'} states the limit {stated}{within}",
            _bound_trials(case, target, low, is_named=name in case.parameters),
            ("schema",) if fault.from_schema else ("error",),
            successes=successes,
            covers=covers,
        )
    elif seen and seen.successes >= 5 and (known := seen.boundary()):
        too_large = _number(case, target) > known.largest
        nearest = known.largest if too_large else known.smallest
        if all(common.value != nearest for common in seen.common_values()):
            return  # where somebody else stopped is theirs to know
        edit = Clamp(name=target, **{"maximum" if too_large else "minimum": nearest})
        reason = f"{seen.successes} successes stay on this side of {nearest:g}"
        yield Option(
            (edit,), reason, _SEEN_BOUND, ("profile",), successes=seen.successes, covers=covers
        )


def _number(case: Case, name: str) -> float:
    value = case.parameters[name]
    return float(value) if isinstance(value, int | float) else 0.0


def _bound_trials(case: Case, name: str, low: float | None, *, is_named: bool) -> Trials:
    value = case.parameters[name]
    if case.writes and not is_portion(name):
        return _INTENT_BOUND
    raised = isinstance(value, int | float) and low is not None and value < low
    if raised:
        return _RAISED
    return _STATED_BOUND if is_named else _MATCHED_BOUND


def _is_whole(case: Case, name: str) -> bool:
    view = case.parameter(name)
    return isinstance(case.parameters[name], int) and not (view and "number" in view.types)


def _stays_within(seen: ParameterProfile, low: float | None, high: float | None) -> bool:
    if seen.minimum is None or seen.maximum is None:
        return False
    return (low is None or seen.minimum >= low) and (high is None or seen.maximum <= high)


def _beyond(case: Case, fault: Fault) -> list[str]:
    """The parameters whose number lies beyond a bound that the error states without a name.

    Where several do, those that have this very bound by the schema.
    """
    names = [
        name
        for name, value in case.parameters.items()
        if isinstance(value, int | float)
        and not isinstance(value, bool)
        and (
            (fault.maximum is not None and value > fault.maximum)
            or (fault.minimum is not None and value < fault.minimum)
        )
    ]
    views = {name: case.parameter(name) for name in names}
    bound = [
        name
        for name, view in views.items()
        if view
        and (view.minimum, view.maximum) != (None, None)
        and fault.maximum in (None, view.maximum)
        and fault.minimum in (None, view.minimum)
    ]
    return names if len(names) == 1 else bound
