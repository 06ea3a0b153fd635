"""Composing: an option for every fault makes a proposal; whole-repair rules are proposals too.

For a fault inside a nested value, the object that it is in becomes a case of its own, with the part
of the schema that is about it, and the edits that mend it are lifted to their place in the call.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from aftercall.change_classes import qualifiers_of
from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import EvidenceSource
from retrieval import WORDS
from retrieval.edit_effects import apply_edits, changed_names, effect_key
from retrieval.edits import (
    Cast,
    Edit,
    EditDoesNotApplyError,
    Remove,
    Rename,
    Replace,
    touches,
)
from retrieval.likeness import name_similarity, words_of
from retrieval.parameters import Path, element_view, object_view, value_at
from retrieval.proposals.case import Case, Option, Trials, prior, value_sources_of
from retrieval.proposals.context import context_options
from retrieval.proposals.experience import (
    WORKED,
    Reports,
    reports,
    rule_options,
    seed_options,
)
from retrieval.proposals.session import session_options
from retrieval.proposals.shape import Reshaped, best_matches, holds_parameters, reshaped
from retrieval.proposals.values import (
    out_of_range_options,
    refused_value_options,
    stated_value_options,
    unwrapped_options,
    usual_values,
    wrong_type_options,
)
from retrieval.reading.faults import Fault
from retrieval.texts import format_of
from retrieval.values import CastError, cast, fits

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
_ONLY_LEFT = prior("rename.only.left", 1, 4)
"""The same, where neither name nor value show that it is meant: often it is one too many."""
_LIKEST = prior("rename.likest", 10, 1.5)
"""More like the missing name than any other, and that more like it than any other."""
_LISTED = prior("rename.listed", 9, 2)
"""Of the parameters that the call does not have, only this one lists its value."""
_OTHER_MEANING = Trials(0.5, 12)
"""What limits or negates is likely something else, and a flag is no text: a judgement."""
_UNLIKE = Trials(1, 4)
"""A text of a form that no success had there is the value of something else: a judgement."""
_BETWEEN = Trials(2, 4)
"""The name is as like another parameter that is not there: `ids` of `order_id` and `item_ids`."""
_REMOVE = {
    "surplus": prior("remove.surplus", 16, 1),  # the call has all that the tool has
    "alone": prior("remove.alone", 14, 2),  # the tool has nothing that the value could be meant for
    "possible": prior("remove.possible", 6, 2),  # a parameter that is not there could take it
    "like": prior("remove.like", 1, 6),  # ... and has a like name
}
_SAID_TWICE = prior("remove.said", 30, 1)
"""What stands under a like name as well: nothing is lost with it."""
_AS_FLAG = prior("rename.flag", 12, 1.5)
"""`{"open": true}` where only `state` lists `open`."""
_REMOVE_BLIND = Trials(1, 2)
"""Nothing is known of the tool: the name may be one that it has under another name. Nor is an
object or a list one thing too many."""
_REMOVE_GUARD = Trials(1, 5)
"""Left out of a write, it may be what narrowed it: a judgement, whatever a benchmark says."""
_GUARDS = frozenset(WORDS["guards"])
_NEGATING = frozenset(WORDS["negating"])
_NEUTRAL = frozenset(WORDS["neutral"])
_ANY_TEXT = frozenset(("word", "words", "identifier", "empty"))
"""Forms of texts that do not show what they are."""
_UNSEEN_IS_UNKNOWN = 5
"""From so many successes on, a parameter in none of them is taken as one the tool lacks."""
_NEARLY = 0.1
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
        if holds_parameters(case, case.parameters[free_name]):
            continue
        if case.parameters[free_name] is True and _listing(case, free_name) == name:
            yield _as_flag(case, free_name, name, source)
            continue
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
                f"the tool has no `{free_name}`; its required `{name}` is missing and the like one",
                trials,
                (source, "parameters"),
                covers=covers | also,
            )


def unexpected_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Ways to deal with a parameter the tool does not have: its right name, or leave it out."""
    name = fault.parameter
    if name is None or len(fault.path) > 1 or name not in case.parameters:
        return
    if holds_parameters(case, case.parameters[name]):
        return  # a call in a call is no single value
    source = _source(case, fault)
    covers = frozenset({index})
    if fault.suggested and fault.suggested not in case.parameters and _may_have(case, fault):
        edits = _rename(case, name, fault.suggested) or (Rename(name=name, to=fault.suggested),)
        reason = f"the error says that `{name}` should be `{fault.suggested}`"
        yield Option(edits, reason, _SAID, ("error",), covers=covers)
    for target in islice(case.view.parameters if case.view else (), _MAX_NAMES):
        if target in case.parameters or target == fault.suggested:
            continue
        likeness = _like_trials(name_similarity(name, target))
        renamed = _rename(case, name, target) if likeness else None
        if likeness and renamed:
            reason = f"the tool has no `{name}`; `{target}` is the like one"
            trials = _BETWEEN if _is_between(case, name, target) else likeness
            yield Option(renamed, reason, trials, (source, "parameters"), covers=covers)
    if case.parameters[name] is True and (listed := _listing(case, name)):
        yield _as_flag(case, name, listed, source)
    if listed := _listing(case, case.parameters[name]):
        reason = f"the tool has no `{name}`; of the others only `{listed}` lists such a value"
        yield Option((Rename(name=name, to=listed),), reason, _LISTED, (source,), covers=covers)
    edit = Remove(name=name)
    yield Option(
        (edit,), f"the tool has no `{name}`", _remove_trials(case, name), (source,), covers=covers
    )


def _as_flag(case: Case, name: str, target: str, source: EvidenceSource) -> Option:
    """A listed value that was sent as a flag, in its place."""
    edits = (Rename(name=name, to=target), Replace(name=target, before=True, value=name))
    covers = frozenset(
        at for at, fault in enumerate(case.faults) if fault.parameter in (name, target)
    )
    return Option(edits, f"only `{target}` lists `{name}`", _AS_FLAG, (source,), covers=covers)


def _listing(case: Case, value: JsonValue) -> str | None:
    """The only absent parameter whose closed list has such a text."""
    found = [
        name
        for name in _absent(case)
        if isinstance(value, str) and (view := case.parameter(name)) and value in view.allowed
    ]
    return found[0] if len(found) == 1 else None


def _may_have(case: Case, fault: Fault) -> bool:
    """Whether the tool has the name that the error suggests, as far as its schema says."""
    view = case.view
    return view is None or view.source != "schema" or fault.suggested in view.parameters


def _remove_trials(case: Case, name: str) -> Trials:
    value = case.parameters[name]
    if value in (None, "", [], {}, False):
        says_yes = value is False and not _NEGATING.isdisjoint(words_of(name))
        return _REMOVE_GUARD if says_yes else _REMOVE["alone"]
    if is_said_twice(case, name) and not any(
        name_similarity(name, target) >= _LIKE[0][0] for target in _absent(case)
    ):
        return _SAID_TWICE
    if case.view is None or isinstance(value, dict | list):
        return _REMOVE_BLIND
    absent = _absent(case)
    if any(_like_trials(name_similarity(name, target)) for target in absent):
        return _REMOVE["like"]
    if _listing(case, value) or (value is True and _listing(case, name)):
        return _REMOVE["like"]
    if case.writes and not _GUARDS.isdisjoint(words_of(name)):
        return _REMOVE_GUARD
    if not absent:
        return _REMOVE["surplus"]
    own = set(words_of(name))
    possible = any(
        _could_take(case, value, target) or not own.isdisjoint(words_of(target))
        for target in absent
    )
    return _REMOVE["possible" if possible else "alone"]


def is_said_twice(case: Case, name: str) -> bool:
    """Whether a like name that the tool has stands in the call with the same value."""
    value = case.parameters.get(name)
    return value not in (None, True, False) and any(
        other != name
        and case.parameter(other) is not None
        and same_json(value, held)
        and _like_trials(name_similarity(name, other)) is not None
        for other, held in islice(case.parameters.items(), _MAX_NAMES)
    )


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
        return _BETWEEN if like and _is_between(case, source, target) else like
    missing = [f.parameter for f in case.faults if f.kind == "missing" and f.parameter]
    # What has its like on the other side is spoken for; of the rest there must be one each.
    alone = [name for name in free if not _has_like(name, missing)]
    left = [name for name in missing if not _has_like(name, free)]
    if alone != [source] or left != [target] or not case.view:
        return _LIKEST if best_matches(free, missing).get(source) == target else None
    value, seen, view = case.parameters[source], case.seen(target), case.parameter(target)
    if any(_like_trials(name_similarity(source, name)) for name in _absent(case)):
        return None  # another parameter that the call does not have is the like one
    if qualifiers_of(source) or (isinstance(value, bool) and view and not fits(value, view.types)):
        return _OTHER_MEANING
    meant = _could_be_meant(case, value, target)
    if isinstance(value, str) and seen and seen.formats and not meant:
        return _UNLIKE
    words = set(words_of(source))
    shown = words & _NEUTRAL or (view and words & view.described_by)
    telling = meant and format_of(str(value)) not in _ANY_TEXT
    return _ONLY_CANDIDATE if shown or telling else _ONLY_LEFT


def _is_between(case: Case, source: str, target: str) -> bool:
    """Whether another parameter, that fits the value as well, has nearly as like a name."""
    value, view = case.parameters[source], case.parameter(target)
    likeness = name_similarity(source, target)
    fit = view is None or fits(value, view.types)
    return likeness < _LIKE[0][0] and any(
        name_similarity(source, other) >= likeness - _NEARLY
        for other in _absent(case)
        if other != target
        and ((known := case.parameter(other)) is None or not fit or fits(value, known.types))
    )


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


Options = Callable[[Case, int, Fault], Iterator[Option]]
"""A source of options of top-level faults, such as `renamed_options`."""


def nested_options(case: Case, index: int, fault: Fault, options: Options) -> Iterator[Option]:
    """What `options` makes of a fault inside a nested value; nothing for a top-level one."""
    if len(fault.path) < 2:
        return
    prefix, inner = fault.path[:-1], _inner_case(case, fault)
    if inner is None:
        return
    at = next(
        (i for i, each in enumerate(inner.faults) if (each.kind, each.path) == _local(fault)), None
    )
    if at is None:
        return
    for option in options(inner, at, inner.faults[at]):
        yield replace(
            option,
            edits=tuple(
                edit.under(prefix) if isinstance(fault.path[-1], str) else edit.at(fault.path)
                for edit in option.edits
            ),
            covers=frozenset({index}) | _lifted_covers(case, inner, prefix, option.covers),
        )


def _local(fault: Fault) -> tuple[str, Path]:
    return fault.kind, (str(fault.path[-1]),)


def _inner_case(case: Case, fault: Fault) -> Case | None:
    """The object around the fault as a case; an element of an array stands alone in one."""
    prefix, last = fault.path[:-1], fault.path[-1]
    around = value_at(case.parameters, prefix)
    schema, view = case.schema or {}, None
    if isinstance(around, dict):
        parameters = around
        view = object_view(schema, prefix, around)
        if view is None and case.profile is not None:
            view = case.profile.inner_view(prefix)
    elif isinstance(around, list) and isinstance(last, int) and last < len(around):
        parameters = {str(last): around[last]}
        view = element_view(schema, fault.path)
        listed = case.parameter(str(prefix[0])) if len(prefix) == 1 else None
        if listed is not None and listed.stated_values and view is not None:
            # The list says in words which items there are.
            items = {
                name: replace(each, stated_values=each.stated_values or listed.stated_values)
                for name, each in view.parameters.items()
            }
            view = replace(view, parameters=items)
    else:
        return None
    said = [
        replace(each, path=(str(each.path[-1]),))
        for each in case.faults
        if each.path[:-1] == prefix and (each.path == fault.path or isinstance(around, dict))
    ]
    return replace(
        case,
        parameters=parameters,
        reading=replace(case.reading, faults=tuple(said)),
        view=view,
        profile=None,
        signature=None,
        schema=None,
    )


def _lifted_covers(case: Case, inner: Case, prefix: Path, covers: frozenset[int]) -> frozenset[int]:
    covered = {(inner.faults[i].kind, (*prefix, *inner.faults[i].path)) for i in covers}
    return frozenset(
        index for index, fault in enumerate(case.faults) if (fault.kind, fault.path) in covered
    )


_MAX_COMBINATIONS = 24
_MAX_PER_FAULT = 3
_MAX_ALONE = 12
_MAX_FAULTS = 16
"""A call with more faults than this is not mended but written anew, which is for its caller."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Changed parameters, and the options that make them up.

    `touched` are the names whose values differ from the failed call's; `key` is equal for proposals
    with equal parameters.
    """

    parameters: JsonObject
    options: tuple[Option, ...]
    touched: frozenset[str]
    key: str
    reshaped: Case | None = None
    """The call in another shape, that all options after the first are about."""
    doubt: float = 0.0
    """Reported failures of the same change as they weigh now, the less the more it also worked."""


def propose(case: Case) -> list[Proposal]:
    """Every proposal that changes the call, unranked and not yet verified. Pure.

    Several may lead to the same parameters by different edits; the surest of them counts.
    """
    shape = reshaped(case)
    found = list(_proposals(case, case))
    if shape is not None:
        # A name or a value of a call in a wrong shape is none of the tool's.
        found = [each for each in found if any(option.share for option in each.options)]
        found += _proposals(case, shape.case, shape)
    return _after_reports(case, found)


def _proposals(sent: Case, case: Case, shape: Reshaped | None = None) -> Iterator[Proposal]:
    """What mends a case that is the call as it was sent, or in another shape."""
    value_sources = value_sources_of(case)
    first = () if shape is None else (shape.option,)
    whole = () if shape is None else ((),)  # nothing but the shape was wrong
    for options in islice((*whole, *_combinations(case)), _MAX_COMBINATIONS):
        edits = [edit for option in options for edit in option.edits]
        try:
            parameters = apply_edits(case.parameters, edits, value_sources)
        except EditDoesNotApplyError:
            continue
        names = changed_names(sent.parameters, parameters)
        if names:
            key = effect_key(parameters, names)
            yield Proposal(
                parameters, (*first, *options), frozenset(names), key,
                reshaped=None if shape is None else case,
            )  # fmt: skip


_HEALING = 2.0
"""Reported successes that halve what a reported failure weighs."""


def _after_reports(case: Case, proposals: list[Proposal]) -> list[Proposal]:
    """The proposals with what others did: what was reported of the same change, and was learned."""
    reported = reports(case)
    learned = [
        each
        for each in proposals
        if any(option.share and not case.distrusts(option.menders) for option in each.options)
    ]
    return [_told(each, reported.get(each.key, Reports()), learned) for each in proposals]


def _told(proposal: Proposal, report: Reports, learned: Sequence[Proposal]) -> Proposal:
    first, *rest = proposal.options
    trials = first.trials.plus(Trials(WORKED * report.worked, 0))
    if proposal not in learned:
        for each in learned:
            if not proposal.touched.isdisjoint(each.touched) and not _is_within(each, proposal):
                of = max((option.trials for option in each.options), key=lambda known: known.right)
                trials = trials.plus(Trials(0, max(0.0, of.right - of.wrong)))
    told = replace(
        first,
        trials=trials,
        failed=max(first.failed, report.weight),
        failures=max(first.failures, report.failures),
        successes=max(first.successes, report.successes),
        reporters=first.reporters | report.reporters,
    )
    doubt = report.weight * _HEALING / (_HEALING + report.worked)
    return replace(proposal, options=(told, *rest), doubt=doubt)


def _is_within(learned: Proposal, other: Proposal) -> bool:
    """Whether another proposal does all that was learned."""
    one, two = learned.parameters, other.parameters
    return all(
        (name in one) == (name in two) and same_json(one.get(name), two.get(name))
        for name in learned.touched
    )


def options_of(case: Case) -> list[Option]:
    """Every option of a case once, however it may be combined."""
    whole, single = _all_options(case)
    return _merged([*whole, *(option for options in single.values() for option in options)])


def _all_options(case: Case) -> tuple[list[Option], dict[int, list[Option]]]:
    """What mended such errors before, and by fault, strongest first, what may mend it."""
    whole = _merged([*rule_options(case, case.like_signatures, case.any_tool), *seed_options(case)])
    if len(case.faults) > _MAX_FAULTS:
        return whole, {}
    single = {}
    for index, fault in enumerate(case.faults):
        learned = [option for option in whole if index in option.covers]
        single[index] = _merged([*learned, *_options(case, index, fault)])
    return whole, single


def _combinations(case: Case) -> Iterator[tuple[Option, ...]]:
    whole, single = _all_options(case)
    yield from ((option,) for option in whole)
    # What is missing first: the rename that supplies it also takes care of an unexpected name.
    indexes = sorted(
        (index for index, options in single.items() if options),
        key=lambda index: case.faults[index].kind != "missing",
    )
    yield from _covering(indexes, single, frozenset(), ())


def _covering(
    indexes: list[int],
    options: dict[int, list[Option]],
    covered: frozenset[int],
    chosen: tuple[Option, ...],
) -> Iterator[tuple[Option, ...]]:
    """Choices of one option a fault, best first; a fault that another option mends needs none."""
    rest = [index for index in indexes if index not in covered]
    if not rest:
        if chosen:
            yield chosen
        return
    taken = [edit for option in chosen for edit in option.edits]
    most = _MAX_PER_FAULT if len(indexes) > 1 else _MAX_ALONE
    for option in options[rest[0]][:most]:
        if not any(touches(edit, other) for edit in option.edits for other in taken):
            yield from _covering(indexes, options, covered | option.covers, (*chosen, option))


def _options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    yield from stated_value_options(case, index, fault)
    if len(fault.path) > 1:
        yield from nested_options(case, index, fault, _of_parameter)
    else:
        yield from _of_parameter(case, index, fault)


def _of_parameter(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Options for a fault of a top-level parameter."""
    if fault.kind == "missing":
        yield from _missing_options(case, index, fault)
        return
    if fault.kind == "unexpected":
        yield from unexpected_options(case, index, fault)
        return
    if fault.kind == "wrong_type":
        yield from wrong_type_options(case, index, fault)
    elif fault.kind == "out_of_range":
        yield from out_of_range_options(case, index, fault)
        if fault.parameter in case.parameters:
            yield from usual_values(case, index, fault.parameter)
    else:
        known = [*refused_value_options(case, index, fault)]
        if fault.parameter is not None:
            known += unwrapped_options(case, index, fault.parameter)
        yield from known
        yield from session_options(case, index, fault, alone=not known)
    yield from context_options(case, index, fault)


def _missing_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """What the caller said under another name; only where it said nothing, what others know."""
    name = fault.parameter
    if name is None or len(fault.path) > 1 or name in case.parameters:
        return
    renamed = list(renamed_options(case, index, fault))
    yield from renamed
    if not renamed:
        yield from context_options(case, index, fault)
        yield from session_options(case, index, fault)
        yield from usual_values(case, index, name)


def _merged(options: list[Option]) -> list[Option]:
    """Options that do the same become one, strongest first."""
    by_key: dict[str, Option] = {}
    for option in options:
        known = by_key.get(option.key)
        by_key[option.key] = option if known is None else known.merged(option)
    return sorted(by_key.values(), key=_strength, reverse=True)


def _strength(option: Option) -> tuple[float, float]:
    trials = option.evidence
    return trials.right / (trials.right + trials.wrong), trials.right
