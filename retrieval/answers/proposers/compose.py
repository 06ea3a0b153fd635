"""Composing: an option for every fault makes a proposal; whole-repair rules are proposals too.

For a fault inside a nested value, the object that it is in becomes a case of its own, with the part
of the schema that is about it, and the edits that repair it are lifted to their place in the call.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject
from retrieval.answers.proposers.case import (
    Case,
    Option,
    prior_trials,
    read_option,
    value_sources_of,
)
from retrieval.answers.proposers.experience import Reports, read_reports, sibling_options
from retrieval.answers.proposers.faults import inner_faults, out_of_form, shown_by
from retrieval.answers.proposers.registry import options_for, whole_options
from retrieval.answers.proposers.shape import Reshaped, reshape_call
from retrieval.knowledge.beta import Trials
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.rewrites.edit_effects import changed_names, effect_key, try_edits
from retrieval.knowledge.rewrites.edits import Replace, touch_same_place
from retrieval.knowledge.tool.rules import WORKED
from retrieval.knowledge.values.parameters import element_view, object_view, value_at
from retrieval.knowledge.values.scalars import fits_types


def nested_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Yield what the proposers have for a fault inside a nested value."""
    prefix = fault.path[:-1]
    inner = _inner_case(case, fault)
    local = [(each.kind, each.path) for each in inner.faults] if inner else []
    if fault.kind == "wrong_type":
        yield from _boxed_inside(case, index, fault)
    if inner is None or (here := (fault.kind, (str(fault.path[-1]),))) not in local:
        return
    at = local.index(here)
    for option in options_for(inner, at, inner.faults[at]):
        covered = {(inner.faults[i].kind, (*prefix, *inner.faults[i].path)) for i in option.covers}
        lifted = {i for i, each in enumerate(case.faults) if (each.kind, each.path) in covered}
        yield replace(
            option,
            edits=tuple(
                edit.under_prefix(prefix)
                if isinstance(fault.path[-1], str)
                else edit.at_path(fault.path)
                for edit in option.edits
            ),
            covers=frozenset({index, *lifted}),
        )


_BOXED = prior_trials("shape.boxed")


def _boxed_inside(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Yield a text as the only needed field of the object that is due there."""
    value = value_at(case.parameters, fault.path)
    view = case.view_object(fault.path)
    needed = [each for each in view.parameters.values() if each.required] if view else []
    given = {each.name: each.allowed[0] for each in needed if len(each.allowed) == 1}
    needed = [each for each in needed if each.name not in given]
    if isinstance(value, str) and len(needed) == 1 and fits_types(value, needed[0].types):
        made: JsonObject = {needed[0].name: value, **given}
        edit = Replace(name="", before=value, value=made).at_path(fault.path)
        yield Option((edit,), f"it is an object with `{needed[0].name}`", _BOXED, ("schema",),
                     covers=frozenset({index}))  # fmt: skip


def _inner_case(case: Case, fault: Fault) -> Case | None:
    """Return the object around the fault as a case; an element of an array stands alone in one."""
    prefix = fault.path[:-1]
    last = fault.path[-1]
    around = value_at(case.parameters, prefix)
    schema, view = case.schema or case.stated or {}, None
    if isinstance(around, dict):
        parameters = around
        view = object_view(schema, prefix, around)
        if view is None and case.profile is not None:
            view = case.profile.inner_view(prefix)
    elif isinstance(around, list) and isinstance(last, int) and last < len(around):
        parameters = {str(last): around[last]}
        view = element_view(schema, fault.path)
        listed = case.view_parameter(str(prefix[0])) if len(prefix) == 1 else None
        if listed is not None and listed.stated_values and view is not None:
            # The list states in words which items there are.
            items = {
                name: replace(each, stated_values=each.stated_values or listed.stated_values)
                for name, each in view.parameters.items()
            }
            view = replace(view, parameters=items)
    else:
        return None
    if case.schema is None and view is not None and case.stated is not None:
        view = replace(view, source="error")
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
        profile=case.profile and case.profile.profile_around(fault.path),
        signature=None,
        schema=None,
        stated=None,
        whole=case.whole or case.parameters,
    )


_MAX_COMBINATIONS = 24
_MAX_PER_FAULT = 3
_MAX_ALONE = 12
_MAX_FAULTS = 16
"""A call with more faults than this is not repaired but written again, which is for its caller."""


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
    """The weight of reported failures of this change, reduced by its reported successes.

    They also stand in the options' evidence: there they lower how likely the change is, here they
    lower a confidence that schema or error alone would make sure.
    """


def propose_changes(case: Case) -> list[Proposal]:
    """Return every proposal that changes the call, unranked and not yet verified. Pure.

    Several may lead to the same parameters by different edits; the surest of them counts.
    """
    shape = reshape_call(case)
    found = list(_make_proposals(case, case))
    if (read := read_option(case)) is not None and not found:
        names = sorted(case.parameters)
        key = effect_key(case.parameters, names)
        found.append(Proposal(case.parameters, (read,), frozenset(names), key))
    if shape is not None:
        # A name or a value of a call in a wrong shape is not one of the tool's.
        found = [each for each in found if any(option.share for option in each.options)]
        found += _make_proposals(case, shape.case, shape)
    return _after_reports(case, found)


def propose_as_siblings(case: Case) -> list[Proposal]:
    """Return what repaired such an error on siblings of the tool."""
    found = []
    for option in sibling_options(case):
        made = try_edits(case.parameters, option.edits, value_sources_of(case))
        names = [] if made is None else changed_names(case.parameters, made)
        if made is not None and names:
            found.append(Proposal(made, (option,), frozenset(names), effect_key(made, names)))
    return found


def _make_proposals(sent: Case, case: Case, shape: Reshaped | None = None) -> Iterator[Proposal]:
    value_sources = value_sources_of(case)
    first = () if shape is None else (shape.option,)
    whole = () if shape is None else ((),)  # nothing but the shape was wrong
    for options in islice((*whole, *_combine_options(case)), _MAX_COMBINATIONS):
        edits = [edit for option in options for edit in option.edits]
        parameters = try_edits(case.parameters, edits, value_sources)
        if parameters is None:
            continue
        for rest, mended in _with_the_rest(case, parameters):
            names = changed_names(sent.parameters, mended)
            if names:
                key = effect_key(mended, names)
                yield Proposal(
                    mended, (*first, *options, *rest), frozenset(names), key,
                    reshaped=None if shape is None else case,
                )  # fmt: skip


_MAX_OF_THE_REST = 3


def _with_the_rest(
    case: Case, parameters: JsonObject
) -> Iterator[tuple[tuple[Option, ...], JsonObject]]:
    """Yield what repairs what the live schema shows to be wrong with a repaired call.

    Errors name the first.

    `["Open"]` may be no listed value only once `'["Open"]'` is read as a list.
    """
    yield (), parameters
    view = case.view
    schema = case.schema
    if view is None or schema is None:
        return
    left = [*shown_by(view, parameters), *inner_faults(schema, parameters)]
    left += out_of_form(view, parameters)
    if not left or any(fault in case.faults for fault in left):
        return
    rest = replace(case, parameters=parameters, reading=replace(case.reading, faults=()))
    value_sources = value_sources_of(rest)
    for options in islice(_combine_options(rest), _MAX_OF_THE_REST):
        edits = [edit for option in options for edit in option.edits]
        if (mended := try_edits(parameters, edits, value_sources)) is not None:
            yield options, mended


_HEALING = 2.0
"""Reported successes that halve what a reported failure weighs."""


def _after_reports(case: Case, proposals: list[Proposal]) -> list[Proposal]:
    """Return the proposals with the evidence of others.

    Reports about the same change are added, and a learned repair of the same names speaks against
    a proposal that changes them otherwise.
    """
    reported = read_reports(case)
    learned = [
        each
        for each in proposals
        if any(option.share and not case.is_distrusted(option.menders) for option in each.options)
    ]
    if not reported and not learned:
        return proposals
    return [_add_reports(each, reported.get(each.key, Reports()), learned) for each in proposals]


def _add_reports(proposal: Proposal, report: Reports, learned: Sequence[Proposal]) -> Proposal:
    first, *rest = proposal.options
    report = report.heard_by(first.menders)
    trials = first.trials.add_trials(Trials(WORKED * report.worked, 0))
    for each in learned if proposal not in learned else ():
        one = each.parameters
        two = proposal.parameters
        does_all = all(
            (name in one) == (name in two) and same_json(one.get(name), two.get(name))
            for name in each.touched
        )
        if not does_all and not proposal.touched.isdisjoint(each.touched):
            of = max((option.trials for option in each.options), key=lambda known: known.right)
            trials = trials.add_trials(Trials(0, max(0.0, of.right - of.wrong)))
    told = replace(
        first,
        trials=trials,
        failed=report.weight if report.is_a_strangers else max(first.failed, report.weight),
        failures=0 if report.is_a_strangers else max(first.failures, report.failures),
        successes=max(first.successes, report.successes),
        reporters=first.reporters | report.reporters,
    )
    doubt = report.weight * _HEALING / (_HEALING + report.worked)
    return replace(proposal, options=(told, *rest), doubt=doubt)


def options_of(case: Case) -> tuple[list[Option], dict[int, list[Option]]]:
    """Return what repaired such errors before, and by fault what may repair it."""
    whole = merge_options(list(whole_options(case)))
    if len(case.faults) > _MAX_FAULTS:
        return whole, {}
    single = {}
    for index, fault in enumerate(case.faults):
        covering = [option for option in whole if index in option.covers]
        stated = options_for(case, index, fault, in_place=True)
        more = (
            nested_options(case, index, fault)
            if len(fault.path) > 1
            else options_for(case, index, fault)
        )
        single[index] = merge_options([*covering, *stated, *more])
    return whole, single


def _combine_options(case: Case) -> Iterator[tuple[Option, ...]]:
    whole, single = options_of(case)
    yield from ((option,) for option in whole)
    # What is missing first: the rename that supplies it also takes care of an unexpected name.
    indexes = sorted(
        (index for index, options in single.items() if options),
        key=lambda index: case.faults[index].kind != "missing",
    )
    yield from _cover_faults(indexes, single, frozenset(), ())


def _cover_faults(
    indexes: list[int],
    options: dict[int, list[Option]],
    covered: frozenset[int],
    chosen: tuple[Option, ...],
) -> Iterator[tuple[Option, ...]]:
    """Choices of one option a fault, best first; a fault that another option repairs needs none."""
    rest = [index for index in indexes if index not in covered]
    if not rest:
        if chosen:
            yield chosen
        return
    taken = [edit for option in chosen for edit in option.edits]
    most = _MAX_PER_FAULT if len(indexes) > 1 else _MAX_ALONE
    for option in options[rest[0]][:most]:
        if not any(touch_same_place(edit, other) for edit in option.edits for other in taken):
            yield from _cover_faults(indexes, options, covered | option.covers, (*chosen, option))


def merge_options(options: list[Option]) -> list[Option]:
    """Options that do the same become one, strongest first."""
    by_key: dict[str, Option] = {}
    for option in options:
        known = by_key.get(option.key)
        by_key[option.key] = option if known is None else known.merge_with(option)
    return sorted(
        by_key.values(), key=lambda each: (each.evidence.mean, each.evidence.right), reverse=True
    )
