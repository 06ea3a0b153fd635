"""Values from like calls that succeeded: seed 004's algorithm, for what nothing better is known."""

from collections.abc import Iterator

from aftercall.json_patch import same_json
from retrieval.edits.kinds import Add
from retrieval.proposals.case import Case
from retrieval.proposals.option import Option
from retrieval.proposals.priors import prior
from retrieval.reading.faults import Fault
from retrieval.values import fits

_MIN_SIMILARITY = 0.5
_SIMILAR = prior("similar", 3, 4)
"""Copying from the most similar success is seldom right (5-quality.md): it counts little."""


def similar_value_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """For a missing parameter of a tool that only reads: what the nearest success had there."""
    name = fault.parameter
    seen = case.seen(name)
    if name is None or len(fault.path) > 1 or case.writes or seen is None:
        return
    if name in case.parameters:
        return
    common = seen.common_values()
    view = case.parameter(name)
    for call in case.similar:
        value = call.parameters.get(name)
        if call.similarity < _MIN_SIMILARITY or value is None:
            continue
        if any(same_json(value, known.value) for known in common) and (
            view is None or fits(value, view.types)
        ):
            yield Option(
                (Add(name=name, value=value),),
                "the most similar success had this value",
                _SIMILAR if case.profile_is_current else _SIMILAR.under_old_schema(),
                ("similar",),
                execution_ids=(call.execution_id,),
                covers=frozenset({index}),
            )
            return
