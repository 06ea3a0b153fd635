"""Missing and unexpected parameters: renames first, since the caller said the value already."""

from collections.abc import Iterator
from itertools import islice

from aftercall.json_values import JsonValue
from aftercall.wire import EvidenceSource
from retrieval.edits import Add, Cast, Edit, Remove, Rename
from retrieval.identifiers import name_similarity
from retrieval.parameters import ParameterView
from retrieval.proposals.case import Case
from retrieval.proposals.option import Option, Trials
from retrieval.reading import Fault
from retrieval.values import CastError, cast, fits

# Pseudo-trials by how alike the names are. A stated rename is as good as said; likeness of names
# with a fitting type is rarely wrong; the only free value for the only missing name often is.
_SAID = Trials(40, 1)
_LIKE = [(0.9, Trials(30, 1)), (0.7, Trials(20, 1)), (0.5, Trials(7, 1.5))]
_UNSURE_SOURCE = Trials(10, 2.5)
_ONLY_CANDIDATE = Trials(4, 2.5)
_DEFAULT = Trials(6, 2)
_ONLY_VALUE = Trials(12, 1)
_REMOVE = Trials(14, 2)
_REMOVE_FROM_WRITE = Trials(5, 3)
"""What is left out of a write may be what narrowed it, such as the filter of a deletion."""
_UNSEEN_IS_UNKNOWN = 5
"""From so many successes on, a parameter in none of them is taken as one the tool lacks."""
_MAX_NAMES = 100
"""Parameters compared by name, on either side; real tools have a few dozen."""
_MOST_SUCCESSES = 14
"""So many successes count at most: a usual value alone never makes an automatic retry."""
_MIN_SHARE = 0.5
"""A value is offered for a missing parameter only when at least half of the successes had it."""


def missing_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Ways to supply a missing parameter: rename, the only or default value, the usual value."""
    name = fault.parameter
    if name is None or len(fault.path) > 1 or name in case.parameters:
        return
    covers = frozenset({index})
    source = _source(case, fault)
    free = _free_parameters(case)
    for free_name in free:
        edits = _rename(case, free_name, name)
        if edits is None:
            continue
        trials = _rename_trials(case, free_name, name, len(free))
        if trials:
            also = {
                position
                for position, other in enumerate(case.faults)
                if other.kind == "unexpected" and other.parameter == free_name
            }
            yield Option(
                edits,
                f"the tool has no {free_name}; its required {name} is missing and is the like one",
                trials,
                (source, "parameters"),
                covers=covers | also,
            )
    yield from _supplied_values(case, name, covers)


def unexpected_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Ways to deal with a parameter the tool does not have: its right name, or leave it out."""
    name = fault.parameter
    if name is None or len(fault.path) > 1 or name not in case.parameters:
        return
    source = _source(case, fault)
    covers = frozenset({index})
    if fault.suggested and fault.suggested not in case.parameters:
        edits = _rename(case, name, fault.suggested) or (Rename(name=name, to=fault.suggested),)
        reason = f"the error says that {name} should be {fault.suggested}"
        yield Option(edits, reason, _SAID, ("error",), covers=covers)
    for target in islice(case.view.parameters if case.view else (), _MAX_NAMES):
        if target in case.parameters or target == fault.suggested:
            continue
        likeness = _like_trials(name_similarity(name, target))
        renamed = _rename(case, name, target) if likeness else None
        if likeness and renamed:
            reason = f"the tool has no {name}; {target} is the like one"
            yield Option(renamed, reason, likeness, (source, "parameters"), covers=covers)
    harmless = not case.writes or case.parameters[name] in (None, "", [], {})
    trials = _REMOVE if harmless else _REMOVE_FROM_WRITE
    yield Option((Remove(name=name),), f"the tool has no {name}", trials, (source,), covers=covers)


def _free_parameters(case: Case) -> list[str]:
    """Parameters of the call that the tool does not have, as far as is said or known."""
    said = [
        fault.parameter
        for fault in case.faults
        if fault.kind == "unexpected" and fault.parameter in case.parameters and fault.parameter
    ]
    unknown = case.view.unknown(case.parameters) if case.view else []
    if not said and not unknown and case.view is None:
        missing = {fault.parameter for fault in case.faults if fault.kind == "missing"}
        unknown = [name for name in case.parameters if name not in missing]
    return list(dict.fromkeys([*said, *unknown]))[:_MAX_NAMES]


def _rename(case: Case, source: str, target: str) -> tuple[Edit, ...] | None:
    value = case.parameters[source]
    view = case.parameter(target)
    if view is None or fits(value, view.types):
        return (Rename(name=source, to=target),)
    for kind in view.types:
        try:
            cast(value, kind, view.item_types)
        except CastError:
            continue
        return (Rename(name=source, to=target), Cast(name=target, to=kind))
    return None


def _rename_trials(case: Case, source: str, target: str, free: int) -> Trials | None:
    like = _like_trials(name_similarity(source, target))
    if not _is_known_to_be_unknown(case, source):
        # The source may be a good parameter that happens to look like the missing one.
        return _UNSURE_SOURCE if like else None
    if like:
        return like
    missing = sum(fault.kind == "missing" for fault in case.faults)
    return _ONLY_CANDIDATE if free == 1 and missing == 1 and case.view else None


def _is_known_to_be_unknown(case: Case, name: str) -> bool:
    """Whether the error, the schema or enough successes say that the tool has no such parameter."""
    said = any(fault.kind == "unexpected" and fault.parameter == name for fault in case.faults)
    if said or case.view is None:
        return said
    enough = case.profile is not None and case.profile.successes >= _UNSEEN_IS_UNKNOWN
    return case.view.source == "schema" or enough


def _like_trials(similarity: float) -> Trials | None:
    return next((trials for least, trials in _LIKE if similarity >= least), None)


def _supplied_values(case: Case, name: str, covers: frozenset[int]) -> Iterator[Option]:
    view = case.parameter(name)
    if view:
        yield from _schema_values(view, name, covers)
    seen = case.seen(name)
    if seen is None or case.writes:
        return  # into a call that writes, no usual value is put (4-rules.md, Suggesting)
    total = max(1, seen.successes)
    weight = min(total, _MOST_SUCCESSES)
    for common in seen.common_values()[:2]:
        share = common.count / total
        if share < _MIN_SHARE or not _fits(view, common.value):
            continue
        trials = Trials(1 + weight * share, 2 + weight * (1 - share))
        yield Option(
            (Add(name=name, value=common.value),),
            f"{common.count} of {total} successes have this value",
            trials if case.profile_is_current else trials.under_old_schema(),
            ("profile",),
            successes=common.count,
            covers=covers,
        )


def _schema_values(view: ParameterView, name: str, covers: frozenset[int]) -> Iterator[Option]:
    if len(view.allowed) == 1:
        edit = Add(name=name, value=view.allowed[0])
        yield Option(
            (edit,), f"{name} has one allowed value", _ONLY_VALUE, ("schema",), covers=covers
        )
    elif view.has_default:
        edit = Add(name=name, value=view.default)
        yield Option(
            (edit,), f"the schema's default of {name}", _DEFAULT, ("schema",), covers=covers
        )


def _fits(view: ParameterView | None, value: JsonValue) -> bool:
    return view is None or fits(value, view.types)


def _source(case: Case, fault: Fault) -> EvidenceSource:
    if not fault.from_schema:
        return "error"
    return "schema" if case.view and case.view.source == "schema" else "profile"
