"""Missing and unexpected parameters: renames first, since the caller said the value already."""

from collections.abc import Iterator
from itertools import islice

from aftercall.json_values import JsonValue
from aftercall.models import EvidenceSource
from retrieval.edits import Cast, Edit, Remove, Rename
from retrieval.proposals.case import Case, Option, Trials, prior
from retrieval.reading.faults import Fault
from retrieval.texts import format_of
from retrieval.values import CastError, cast, fits, name_similarity, words_of

# Pseudo-trials by how alike the names are. A stated rename is as good as said; likeness of names
# with a fitting type is rarely wrong; the only free value for the only missing name often is.
_SAID = prior("rename.said", 40, 1)
_LIKE = [
    (0.9, prior("rename.like", 30, 1)),
    (0.7, prior("rename.near", 20, 1)),
    (0.5, prior("rename.far", 7, 1.5)),
]
_UNSURE_SOURCE = Trials(2, 2)
"""A judgement: in the damaged calls of a benchmark the like name is never a good one."""
_ONLY_CANDIDATE = prior("rename.only", 4, 2.5)
_UNLIKE = prior("rename.only.unlike", 2, 3)
_REMOVE = {
    "surplus": prior("remove.surplus", 16, 1),  # the call has all that the tool has
    "alone": prior("remove.alone", 14, 2),  # the tool has nothing that the value could be meant for
    "possible": prior("remove.possible", 6, 2),  # a parameter that is not there could take it
    "like": prior("remove.like", 1, 6),  # ... and has a like name
}
_REMOVE_BLIND = Trials(1, 2)
"""Nothing is known of the tool: the name may be one that it has under another name."""
_REMOVE_GUARD = Trials(1, 5)
"""Left out of a write, it may be what narrowed it: a judgement, whatever a benchmark says."""
_GUARDS = frozenset(
    (
        "dry", "run", "preview", "simulate", "test", "check", "validate", "safe", "confirm",
        "filter", "where", "only", "except", "exclude", "include", "if", "match", "condition",
        "until", "before", "after", "since", "from", "to", "limit", "max", "scope", "version",
        "etag", "expected", "draft",
    )
)  # fmt: skip
_UNSEEN_IS_UNKNOWN = 5
"""From so many successes on, a parameter in none of them is taken as one the tool lacks."""
_MAX_FREE = 10
"""Unknown names of a call beyond which none of them is the only candidate for anything."""
_MAX_NAMES = 100
"""Parameters compared by name, on either side; real tools have a few dozen."""


def renamed_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """What supplies a missing parameter from the call: a parameter that the tool does not have."""
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
        trials = _rename_trials(case, free_name, name, free)
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
    edit = Remove(name=name)
    yield Option(
        (edit,), f"the tool has no {name}", _remove_trials(case, name), (source,), covers=covers
    )


def _remove_trials(case: Case, name: str) -> Trials:
    value = case.parameters[name]
    if value in (None, "", [], {}, False):
        return _REMOVE["alone"]
    if case.view is None:
        return _REMOVE_BLIND
    absent = _absent(case)
    if any(_like_trials(name_similarity(name, target)) for target in absent):
        return _REMOVE["like"]
    if case.writes and not _GUARDS.isdisjoint(words_of(name)):
        return _REMOVE_GUARD
    if not absent:
        return _REMOVE["surplus"]
    possible = any(_could_take(case, value, target) for target in absent)
    return _REMOVE["possible" if possible else "alone"]


def _absent(case: Case) -> list[str]:
    """Parameters that the tool has and the call does not."""
    known = islice(case.view.parameters if case.view else (), _MAX_NAMES)
    return [target for target in known if target not in case.parameters]


def _could_be_meant(case: Case, value: JsonValue, target: str) -> bool:
    """Whether the tool's successes have texts of this form there; unknown of a parameter is no."""
    seen = case.seen(target)
    formats = seen.formats if seen else {}
    return isinstance(value, str) and formats.get(format_of(value), 0) > 0


def _could_take(case: Case, value: JsonValue, target: str) -> bool:
    """Whether a parameter takes such a value: one of its type, or a text of its form."""
    view = case.parameter(target)
    if isinstance(value, str):
        return _could_be_meant(case, value, target)
    return view is not None and bool(view.types) and fits(value, view.types)


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


def _rename_trials(case: Case, source: str, target: str, free: list[str]) -> Trials | None:
    like = _like_trials(name_similarity(source, target))
    if not _is_known_to_be_unknown(case, source):
        # The source may be a good parameter that happens to look like the missing one.
        return _UNSURE_SOURCE if like else None
    if like or len(free) > _MAX_FREE:
        return like
    missing = [f.parameter for f in case.faults if f.kind == "missing" and f.parameter]
    # What has its like on the other side is spoken for; of the rest there must be one each.
    alone = [name for name in free if not _has_like(name, missing)]
    missing = [name for name in missing if not _has_like(name, free)]
    if alone != [source] or missing != [target] or not case.view:
        return None
    value, seen = case.parameters[source], case.seen(target)
    unlike = isinstance(value, str) and seen and seen.formats
    return _UNLIKE if unlike and not _could_be_meant(case, value, target) else _ONLY_CANDIDATE


def _has_like(name: str, others: list[str]) -> bool:
    return any(_like_trials(name_similarity(name, other)) for other in others)


def _is_known_to_be_unknown(case: Case, name: str) -> bool:
    """Whether the error, the schema or enough successes say that the tool has no such parameter."""
    said = any(fault.kind == "unexpected" and fault.parameter == name for fault in case.faults)
    if said or case.view is None:
        return said
    enough = case.profile is not None and case.profile.successes >= _UNSEEN_IS_UNKNOWN
    return case.view.source == "schema" or enough


def _like_trials(similarity: float) -> Trials | None:
    return next((trials for least, trials in _LIKE if similarity >= least), None)


def _source(case: Case, fault: Fault) -> EvidenceSource:
    if not fault.from_schema:
        return "error"
    return "schema" if case.view and case.view.source == "schema" else "profile"
