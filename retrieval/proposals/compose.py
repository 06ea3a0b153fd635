"""Composing: an option for every fault makes a proposal; whole-repair rules are proposals too.

For a fault inside a nested value, the object that it is in becomes a case of its own, with the part
of the schema that is about it, and the edits that mend it are lifted to their place in the call.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue, canonical_json
from retrieval.edits import Edit, EditDoesNotApplyError, apply_edits, names_of, touches
from retrieval.parameters import Path, element_view, object_view, value_at
from retrieval.proposals.case import Case, Option, value_sources_of
from retrieval.proposals.context import context_options
from retrieval.proposals.experience import rule_options, seed_options
from retrieval.proposals.names import (
    renamed_options,
    unexpected_options,
)
from retrieval.proposals.values import (
    out_of_range_options,
    refused_value_options,
    stated_value_options,
    unwrapped_options,
    usual_values,
    wrong_type_options,
)
from retrieval.reading.faults import Fault

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
        similar=(),
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


def propose(case: Case) -> list[Proposal]:
    """Every proposal that changes the call, unranked and not yet verified. Pure.

    Several may lead to the same parameters by different edits; the surest of them counts.
    """
    found: list[Proposal] = []
    value_sources = value_sources_of(case)
    for options in islice(_combinations(case), _MAX_COMBINATIONS):
        edits = [edit for option in options for edit in option.edits]
        try:
            parameters = apply_edits(case.parameters, edits, value_sources)
        except EditDoesNotApplyError:
            continue
        names = _changed_names(case.parameters, parameters, edits)
        # The key is of what differs: parameters may be large, and most of them stay.
        key = canonical_json(
            [[name, name in parameters, _whole(parameters.get(name))] for name in names]
        )
        if names:
            found.append(Proposal(parameters, options, frozenset(names), key))
    return found


def _whole(value: JsonValue) -> JsonValue:
    """1.0 as 1: two proposals that differ in no more are one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _changed_names(before: JsonObject, after: JsonObject, edits: Iterable[Edit]) -> list[str]:
    return [
        name
        for name in sorted({name for edit in edits for name in names_of(edit)})
        if (name in before) != (name in after) or not same_json(before.get(name), after.get(name))
    ]


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
            yield from usual_values(case, fault.parameter, frozenset({index}))
    else:
        yield from refused_value_options(case, index, fault)
        if fault.parameter is not None:
            yield from unwrapped_options(case, index, fault.parameter)
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
        yield from usual_values(case, name, frozenset({index}))


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
