"""Names: what a missing or an unknown parameter of a call may be, by name and value. Pure."""

import re
from collections.abc import Iterator
from itertools import islice

from aftercall.change_classes import qualifiers_of
from aftercall.json_patch import same_json
from aftercall.json_values import MAX_INTEGER, JsonValue, canonical_json
from aftercall.models import EvidenceSource
from retrieval import WORDS
from retrieval.answers.proposers.case import Case, Option, one_edit, prior_trials
from retrieval.answers.proposers.faults import misses_form, objects_in
from retrieval.answers.proposers.layouts import is_stated, names_of_tool
from retrieval.answers.proposers.shape import holds_parameters
from retrieval.knowledge.beta import Trials
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.rewrites.edits import Cast, Edit, Remove, Rename, Replace
from retrieval.knowledge.values.likeness import (
    best_matches,
    name_similarity,
    negates_name,
    relates_otherwise,
    words_of,
)
from retrieval.knowledge.values.measures import counted_in, measure_text
from retrieval.knowledge.values.scalars import cast_to_one, fits_types
from retrieval.knowledge.values.texts import Style, format_of, respell_text

# Pseudo-trials by how alike the names are. A stated rename is as good as stated; likeness of names
# with a fitting type is rarely wrong; the only free value for the only missing name often is.
_SAID = prior_trials("rename.said")
_LIKE = [
    (0.9, prior_trials("rename.like")),
    (0.7, prior_trials("rename.near")),
    (0.5, prior_trials("rename.far")),
]
_UNSURE_SOURCE = Trials(2, 2)
"""A judgement: in the damaged calls of a benchmark the like name is never a good one."""
_ONLY_CANDIDATE = prior_trials("rename.only")
_ONLY_LEFT = prior_trials("rename.only.left")
"""The same, where neither name nor value show that it is meant: often it is one too many."""
_PAIRED = prior_trials("rename.paired")
"""The error itself states that one is missing and one is unknown, in the same place."""
_RESPELT = {
    True: prior_trials("rename.respelt"),  # as the call's other names are written
    False: prior_trials("rename.respelt.blind"),
}
_LIKEST = prior_trials("rename.likest")
"""More like the missing name than any other, and that more like it than any other."""
_LISTED = prior_trials("rename.listed")
"""Of the parameters that the call does not have, only this one lists its value."""
_DESCRIBED = prior_trials("rename.described")
_OTHER_MEANING = Trials(0.5, 12)
"""What limits or negates is likely something else, and a flag is no text: a judgement."""
_UNLIKE = Trials(1, 4)
"""A text of a form that no success had there is the value of something else: a judgement."""
_BETWEEN = Trials(2, 4)
"""The name is as like another parameter that is not there: `ids` of `order_id` and `item_ids`."""
_REMOVE = {
    "surplus": prior_trials("remove.surplus"),  # the call has all that the tool has
    "alone": prior_trials("remove.alone"),  # the tool has nothing that the value could be meant for
    "possible": prior_trials("remove.possible"),  # a parameter that is not there could take it
    "like": prior_trials("remove.like"),  # ... and has a like name
}
_SAID_TWICE = prior_trials("remove.said")
"""What stands under a like name as well: nothing is lost with it."""
_NEGATED = prior_trials("rename.negated")
"""`{"exclude_views": true}` where the tool has `include_views`."""
_AS_FLAG = prior_trials("rename.flag")
"""`{"open": true}` where only `state` lists `open`."""
_REMOVE_BLIND = Trials(1, 2)
"""Nothing is known of the tool: the name may be one that it has under another name. Nor is an
object or a list one thing too many."""
_REMOVE_GUARD = Trials(1, 5)
"""Left out of a write, it may be what narrowed it: a judgement, whatever a benchmark states."""
_ANY_TEXT = frozenset(("word", "words", "identifier", "empty"))
"""Forms of texts that do not show what they are."""
_UNSEEN_IS_UNKNOWN = 5
"""From so many successes on, a parameter in none of them is taken as one the tool lacks."""
_SAME = 0.95
"""Likeness of two spellings of one name."""
_NEARLY = 0.1
_OF_KIND = re.compile(r"([a-z]{2,6})_\w{4,}")
_MAX_FREE = 10
"""Unknown names of a call beyond which none of them is the only candidate for anything."""
_MAX_NAMES = 100
"""Parameters compared by name, on either side; real tools have a few dozen."""


def renamed_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Yield what supplies a missing parameter from the call.

    A parameter that the tool does not have.
    """
    name = fault.parameter
    if name is None:
        return
    if name in case.parameters:
        return
    covers = frozenset({index})
    source = _evidence_source(case, fault)
    free = _free_parameters(case)
    for free_name in free:
        if holds_parameters(case, case.parameters[free_name]):
            continue
        if case.parameters[free_name] is True and _find_listing(case, free_name) == name:
            yield _as_flag(case, free_name, name, source)
            continue
        edits = _make_rename(case, free_name, name)
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
                f"the tool has no `{free_name}`; its required `{name}` is missing and the like one",
                trials,
                (source, "parameters"),
                covers=covers | also,
            )


def unexpected_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Ways to deal with a parameter the tool does not have: its right name, or leave it out."""
    name = fault.parameter
    if name is None:
        return
    if name not in case.parameters:
        return
    if holds_parameters(case, case.parameters[name]):
        return  # a call in a call is no single value
    source = _evidence_source(case, fault)
    covers = frozenset({index})
    # What the error suggests the tool may have, as far as its schema states.
    may_have = not is_stated(case) or fault.suggested in names_of_tool(case)
    if fault.suggested and fault.suggested not in case.parameters and may_have:
        edits = _make_rename(case, name, fault.suggested) or (
            Rename(name=name, to=fault.suggested),
        )
        reason = f"the error says that `{name}` should be `{fault.suggested}`"
        yield Option(edits, reason, _SAID, ("error",), covers=covers)
        return
    for target in islice(case.view.parameters if case.view else (), _MAX_NAMES):
        if target in case.parameters:
            continue
        if target == fault.suggested:
            continue
        is_flag = isinstance(case.parameters[name], bool)
        likeness = (
            _NEGATED
            if is_flag and negates_name(name, target)
            else _like_trials(name_similarity(name, target))
        )
        renamed = _make_rename(case, name, target) if likeness else None
        if likeness and renamed:
            reason = f"the tool has no `{name}`; `{target}` is the like one"
            trials = _BETWEEN if _is_between(case, name, target) else likeness
            yield Option(renamed, reason, trials, (source, "parameters"), covers=covers)
    yield from _by_known_names(case, index, fault)
    if len(described := _find_described(case, name)) == 1:
        reason = f"the tool has no `{name}`; `{described[0]}` is described so"
        yield one_edit(index, Rename(name=name, to=described[0]), reason, _DESCRIBED, source)
    if case.parameters[name] is True and (listed := _find_listing(case, name)):
        yield _as_flag(case, name, listed, source)
    listed = _find_listing(case, case.parameters[name])
    if listed:
        reason = f"the tool has no `{name}`; of the others only `{listed}` lists such a value"
        yield one_edit(index, Rename(name=name, to=listed), reason, _LISTED, source)
    reason = f"the tool has no `{name}`"
    yield one_edit(index, Remove(name=name), reason, _remove_trials(case, name), source)


def _by_known_names(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Yield the only name of those that the error lists which shares a word.

    Else another spelling.
    """
    name = str(fault.parameter)
    words = set(words_of(name))
    absent = [each for each in fault.known if each not in case.parameters]
    alike = [each for each in absent if not words.isdisjoint(words_of(each))]
    if len(alike) == 1 and not relates_otherwise(name, alike[0]):
        reason = f"of the names that the error lists only `{alike[0]}` is like `{name}`"
        yield one_edit(index, Rename(name=name, to=alike[0]), reason, _LIKEST, "error")
    if not case.knows_tool and not fault.known and not fault.suggested and len(words) > 1:
        style: Style = "camel" if "_" in name else "snake"
        target = respell_text(name, style)
        others = _names_of_several_words(case) - {name}
        is_styled = bool(others) and all(respell_text(each, style) == each for each in others)
        if target and target not in (name, *case.parameters) and (is_styled or not others):
            reason = f"`{target}` is another spelling of `{name}`"
            trials = _RESPELT[is_styled]
            yield one_edit(index, Rename(name=name, to=target), reason, trials, "parameters")


def _names_of_several_words(case: Case) -> set[str]:
    whole = case.whole or case.parameters
    inner = (key for _, each in objects_in(whole) for key in each)
    return {key for key in islice((*whole, *inner), _MAX_NAMES) if len(words_of(key)) > 1}


def _as_flag(case: Case, name: str, target: str, source: EvidenceSource) -> Option:
    edits = (Rename(name=name, to=target), Replace(name=target, before=True, value=name))
    covers = frozenset(
        at for at, fault in enumerate(case.faults) if fault.parameter in (name, target)
    )
    return Option(edits, f"only `{target}` lists `{name}`", _AS_FLAG, (source,), covers=covers)


def _find_listing(case: Case, value: JsonValue) -> str | None:
    """Return the only absent parameter whose closed list, or whose successes, have such a text."""
    found = [
        name
        for name in _absent_parameters(case)
        if isinstance(value, str)
        and (
            ((view := case.view_parameter(name)) and value in view.allowed)
            or ((seen := case.observed_values(name)) and canonical_json(value) in seen.values)
        )
    ]
    if len(found) == 1:
        return found[0]
    return None


def _find_described(case: Case, name: str) -> list[str]:
    """Absent parameters whose descriptions have all words of a name, and which take its value."""
    words = {word.rstrip("s") for word in words_of(name)}
    return [
        target
        for target in _absent_parameters(case)
        if (known := case.view_parameter(target))
        and words <= known.described_by
        and fits_types(case.parameters[name], known.types)
    ]


def _remove_trials(case: Case, name: str) -> Trials:
    value = case.parameters[name]
    absent = _absent_parameters(case)
    is_like = any(_like_trials(name_similarity(name, target)) for target in absent)
    is_like = is_like or len(_find_described(case, name)) == 1
    if value in (None, "", [], {}, False):
        says_yes = value is False and not WORDS["negating"].isdisjoint(words_of(name))
        how = "like" if value is False and is_like else "alone"
        return _REMOVE_GUARD if says_yes else _REMOVE[how]
    if is_said_twice(case, name) and not any(
        name_similarity(name, target) >= _LIKE[0][0] for target in _absent_parameters(case)
    ):
        return _SAID_TWICE
    if not case.knows_tool and absent and any(fault.known for fault in case.faults):
        return _REMOVE_GUARD  # one of the names that the error lists may be meant
    lists_all = case.knows_tool or any(fault.known for fault in case.faults)
    if case.view is None or not lists_all or isinstance(value, dict | list):
        return _REMOVE_BLIND
    if is_like or _find_listing(case, value) or (value is True and _find_listing(case, name)):
        return _REMOVE["like"]
    if case.writes and not WORDS["guards"].isdisjoint(words_of(name)):
        return _REMOVE_GUARD
    if not absent:
        return _REMOVE["surplus"]
    own = set(words_of(name))
    possible = any(
        not own.isdisjoint(words_of(target))
        or _could_be_meant(case, value, target)
        or _has_its_type(case, value, target)
        for target in absent
    )
    return _REMOVE["possible" if possible else "alone"]


def _has_its_type(case: Case, value: JsonValue, target: str) -> bool:
    """Return whether a value that is no text has a type that is stated for a parameter."""
    view = case.view_parameter(target)
    if view is None or isinstance(value, str):
        return False
    return bool(view.types) and fits_types(value, view.types)


def is_said_twice(case: Case, name: str) -> bool:
    """Return whether a like name that the tool has stands in the call with the same value."""
    value = case.parameters.get(name)
    if value in (None, True, False):
        return False
    for other, held in islice(case.parameters.items(), _MAX_NAMES):
        if other == name or case.view_parameter(other) is None:
            continue
        if same_json(value, held) and _like_trials(name_similarity(name, other)) is not None:
            return True
    return False


def _absent_parameters(case: Case) -> list[str]:
    known = islice(case.view.parameters if case.view else (), _MAX_NAMES)
    return [target for target in known if target not in case.parameters]


def _could_be_meant(case: Case, value: JsonValue, target: str) -> bool:
    """Return whether the tool's successes have texts of this form there.

    Unknown of a parameter is no.
    """
    seen = case.observed_values(target)
    formats = seen.formats if seen else {}
    return isinstance(value, str) and formats.get(format_of(value), 0) > 0


def _free_parameters(case: Case) -> list[str]:
    said = [
        fault.parameter
        for fault in case.faults
        if fault.kind == "unexpected" and fault.parameter in case.parameters and fault.parameter
    ]
    unknown = case.view.unknown_parameters(case.parameters) if case.view else []
    if not said and not unknown and not case.knows_tool:
        missing = [fault for fault in case.faults if fault.kind == "missing"]
        known = {name for fault in missing for name in (fault.parameter, fault.rival)}
        unknown = [name for name in case.parameters if name not in known]
    return list(dict.fromkeys([*said, *unknown]))[:_MAX_NAMES]


def _make_rename(case: Case, source: str, target: str) -> tuple[Edit, ...] | None:
    value = case.parameters[source]
    view = case.view_parameter(target)
    rename = Rename(name=source, to=target)
    if isinstance(value, bool) and negates_name(source, target):
        return (rename, Replace(name=target, before=value, value=not value))
    if view is None or fits_types(value, view.types):
        return (rename,)
    as_one = cast_to_one(value, view.types, view.item_types)
    if as_one is None and (amount := _convert_amount(case, source, target)) is not None:
        return (rename, Replace(name=target, before=value, value=amount))
    if as_one is None:
        return None
    return (rename, Cast(name=target, to=as_one[0]))


def _convert_amount(case: Case, source: str, target: str) -> float | None:
    """Return what a text such as `2h` is for a number such as `durationMinutes`."""
    value = case.parameters[source]
    view = case.view_parameter(target)
    if not isinstance(value, str):
        return None
    if not view:
        return None
    if {*view.types}.isdisjoint(("integer", "number")):
        return None
    amount = measure_text(value, target, view.described_by)
    if amount is None:
        return None
    if abs(amount) > MAX_INTEGER:
        return None
    if amount == int(amount):
        return int(amount)
    return amount


def _name_likeness(case: Case, source: str, target: str) -> float:
    """Return how alike two names are, but for a unit that the value states instead."""
    bare = "_".join(word for word in words_of(target) if not list(counted_in({word})))
    with_unit = bare and _convert_amount(case, source, target) is not None
    return max(name_similarity(source, target), name_similarity(source, bare) if with_unit else 0)


def _rename_trials(case: Case, source: str, target: str, free: list[str]) -> Trials | None:
    likeness = _name_likeness(case, source, target)
    like = _like_trials(likeness)
    if not _is_known_to_be_unknown(case, source) and likeness < _SAME:
        # The source may be a good parameter that happens to look like the missing one.
        return _UNSURE_SOURCE if like else None
    if like or len(free) > _MAX_FREE:
        return _BETWEEN if like and _is_between(case, source, target) else like
    missing = [
        f.parameter
        for f in case.faults
        if f.kind == "missing" and f.parameter and f.parameter not in case.parameters
    ]
    # What has its like on the other side is spoken for; of the rest there must be one each.
    alone = [name for name in free if not _has_like(name, [*missing, *_absent_parameters(case)])]
    left = [name for name in missing if not _has_like(name, free)]
    said = {(fault.kind, fault.parameter) for fault in case.faults if not fault.from_schema}
    is_paired = {("missing", target), ("unexpected", source)} <= said
    if alone != [source] or left != [target] or not (case.view or is_paired):
        return _LIKEST if best_matches(free, missing).get(source) == target else None
    value, seen, view = (
        case.parameters[source],
        case.observed_values(target),
        case.view_parameter(target),
    )
    if any(_like_trials(name_similarity(source, name)) for name in _absent_parameters(case)):
        return None  # another parameter that the call does not have is the like one
    is_flag = isinstance(value, bool) and view and not fits_types(value, view.types)
    is_remark = WORDS["remarks"].issuperset(words_of(source))
    is_other = _is_of_itself(source, value) or (view is not None and misses_form(view, str(value)))
    is_other = is_other or is_flag or is_remark or relates_otherwise(source, target)
    if is_other or qualifiers_of(source):
        return _OTHER_MEANING
    meant = _could_be_meant(case, value, target) or (view is not None and view.form is not None)
    if isinstance(value, str) and seen and seen.formats and not meant:
        return _UNLIKE
    words = set(words_of(source))
    shown = words & WORDS["neutral"] or (view and words & view.described_by)
    telling = meant and format_of(str(value)) not in _ANY_TEXT
    if is_paired and not case.knows_tool:
        return _PAIRED
    return _ONLY_CANDIDATE if shown or telling else _ONLY_LEFT


def _is_of_itself(name: str, value: JsonValue) -> bool:
    """Return whether an id begins as its name does.

    A `cus_...` is the customer that it is called.
    """
    kind = _OF_KIND.match(value) if isinstance(value, str) else None
    return kind is not None and any(each.startswith(kind[1]) for each in words_of(name))


def _is_between(case: Case, source: str, target: str) -> bool:
    """Return whether another parameter, that fits the value as well, has nearly as like a name."""
    value = case.parameters[source]
    view = case.view_parameter(target)
    likeness = name_similarity(source, target)
    if likeness >= _LIKE[0][0]:
        return False
    fit = view is None or fits_types(value, view.types)
    for other in _absent_parameters(case):
        known = case.view_parameter(other)
        may_take = not fit or known is None or fits_types(value, known.types)
        if other == target or not may_take:
            continue
        if name_similarity(source, other) >= likeness - _NEARLY:
            return True
    return False


def _has_like(name: str, others: list[str]) -> bool:
    return any(_like_trials(name_similarity(name, other)) for other in others)


def _is_known_to_be_unknown(case: Case, name: str) -> bool:
    said = any(fault.kind == "unexpected" and fault.parameter == name for fault in case.faults)
    if said:
        return said
    if case.view is None:
        return said
    if not case.knows_tool:
        return said
    enough = case.profile is not None and case.profile.successes >= _UNSEEN_IS_UNKNOWN
    return case.view.source == "schema" or enough


def _like_trials(similarity: float) -> Trials | None:
    return next((trials for least, trials in _LIKE if similarity >= least), None)


def _evidence_source(case: Case, fault: Fault) -> EvidenceSource:
    if not fault.from_schema:
        return "error"
    if case.view and case.view.source == "schema":
        return "schema"
    return "profile"
