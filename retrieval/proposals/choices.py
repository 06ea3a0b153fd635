"""Values that were refused: near ones from the error, the schema, a catalogue or other calls."""

from collections.abc import Iterator, Sequence

from aftercall.json_patch import same_json
from aftercall.json_values import JsonValue
from aftercall.wire import EvidenceSource
from retrieval.catalogues import catalogue
from retrieval.edits import Replace
from retrieval.formats import rewrite
from retrieval.proposals.case import Case
from retrieval.proposals.option import Option, Trials
from retrieval.reading import Fault
from retrieval.values import nearest

# Pseudo-trials by nearness (see `values.nearest`): equal up to case, misspelt, a part of it.
_NEAR = [(0.99, Trials(30, 1)), (0.88, Trials(16, 1)), (0.8, Trials(8, 1.5)), (0.0, Trials(4, 3))]
_SAID = Trials(30, 1)
_REWRITTEN = Trials(20, 1)
_WEIGHT: dict[EvidenceSource, float] = {"error": 1.0, "schema": 1.0, "seed": 0.9, "profile": 0.8}


def refused_value_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Near values of the closed list, or of what is known to exist; the same in another form."""
    name = _parameter(case, fault)
    if name is None or len(fault.path) > 1:
        return
    value = case.parameters[name]
    covers = frozenset({index})
    if fault.suggested and isinstance(value, str) and fault.suggested != value:
        edit = Replace(name=name, before=value, value=fault.suggested)
        yield Option((edit,), "the error names it", _SAID, ("error",), covers=covers)
    wanted = fault.expected_format
    rewritten = rewrite(value, wanted) if wanted and isinstance(value, str) else None
    if rewritten is not None and rewritten != value:
        edit = Replace(name=name, before=value, value=rewritten)
        reason = f"the same in the form {wanted} that the error asks for"
        yield Option((edit,), reason, _REWRITTEN, ("error",), covers=covers)
    for source, known in _known_values(case, name, fault):
        yield from _near(name, value, known, source, covers)


def _parameter(case: Case, fault: Fault) -> str | None:
    if fault.parameter is not None:
        return fault.parameter if fault.parameter in case.parameters else None
    if fault.kind in ("not_allowed", "bad_format", "not_found") and len(case.parameters) == 1:
        return next(iter(case.parameters))
    return None


def _known_values(
    case: Case, name: str, fault: Fault
) -> Iterator[tuple[EvidenceSource, Sequence[JsonValue]]]:
    if fault.allowed:
        yield ("schema" if fault.from_schema else "error"), fault.allowed
    view = case.parameter(name)
    if view and (view.allowed or view.stated_values):
        yield "schema", view.allowed or view.stated_values
    if seen := case.seen(name):
        yield "profile", [common.value for common in seen.common_values()]
    for seed in case.seeds:
        if seed.catalogue:
            yield "seed", catalogue(seed.catalogue)


def _near(
    name: str,
    value: JsonValue,
    known: Sequence[JsonValue],
    source: EvidenceSource,
    covers: frozenset[int],
) -> Iterator[Option]:
    allowed = [item for item in known if not same_json(item, value)]
    texts = {str(item): item for item in allowed if isinstance(item, str | int | float)}
    if value is None or isinstance(value, dict | list) or not texts:
        return
    found = nearest(str(value), list(texts))
    if found is None:
        return
    text, nearness = found
    words = {
        "error": "the error lists it", "schema": "the schema states it",
        "profile": "other sessions used it with success", "seed": "it is a well-known value",
    }  # fmt: skip
    trials = next(trials for least, trials in _NEAR if nearness >= least)
    yield Option(
        (Replace(name=name, before=value, value=texts[text]),),
        f"the nearest known value; {words[source]}",
        trials.scaled(_WEIGHT[source]),
        (source,),
        covers=covers,
    )
