"""Faults inside nested values: the top-level proposals, made for the object that the fault is in.

The object becomes a case of its own, with the part of the schema that is about it, and the edits
that mend it are lifted to their place in the call.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from retrieval.paths import Path, value_at
from retrieval.proposals.case import Case
from retrieval.proposals.option import Option
from retrieval.proposals.subschema import element_view, object_view
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
