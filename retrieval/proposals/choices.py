"""Values that were refused: near ones from the error, the schema, a catalogue or other calls."""

from collections.abc import Iterator, Sequence

from aftercall.json_patch import same_json
from aftercall.json_values import JsonValue, canonical_json
from aftercall.redaction import is_redacted
from aftercall.wire import EvidenceSource
from retrieval.catalogues import catalogue, is_about
from retrieval.edits import Replace
from retrieval.formats import rewrite
from retrieval.proposals.case import Case
from retrieval.proposals.option import Option, Trials
from retrieval.reading import Fault
from retrieval.values import nearest

_SAME = 0.99
# Pseudo-trials by nearness (see `values.nearest`): equal up to case, misspelt, a part of it.
_NEAR = [(_SAME, Trials(30, 1)), (0.88, Trials(16, 1)), (0.8, Trials(8, 1.5)), (0.0, Trials(4, 3))]
_OPEN_LIST = Trials(0, 1.5)
_ONE_SLIP = 0.9
"""`values.nearest` of one letter too many, too few, wrong or swapped."""
_LONG = 10
"""Characters from which on one such letter is a slip of the pen: Austin is no misspelt Boston."""
_MAX_KNOWN = 2_000
_SAID = Trials(30, 1)
_REWRITTEN = Trials(20, 1)
_WEIGHT: dict[EvidenceSource, float] = {"error": 1.0, "schema": 1.0, "seed": 0.9, "profile": 0.8}


def refused_value_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Near values of the closed list, or of what is known to exist; the same in another form."""
    name = _parameter(case, fault)
    if name is None or len(fault.path) > 1:
        return
    value = case.parameters[name]
    if is_redacted(value):
        return
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
        yield from _near(case, name, known, source, covers)


def _parameter(case: Case, fault: Fault) -> str | None:
    if fault.parameter is not None:
        return fault.parameter if fault.parameter in case.parameters else None
    if fault.kind not in ("not_allowed", "bad_format", "not_found") or len(case.parameters) != 1:
        return None
    # The only value there is; but a query in which one name is wrong is not that name.
    [(name, value)] = case.parameters.items()
    plain = not isinstance(value, dict | list)
    return name if plain and fault.value_text in (None, str(value)) else None


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
        if seed.catalogue and is_about(seed.catalogue, name, case.reading.signature):
            yield "seed", catalogue(seed.catalogue)


def _near(
    case: Case,
    name: str,
    known: Sequence[JsonValue],
    source: EvidenceSource,
    covers: frozenset[int],
) -> Iterator[Option]:
    value = case.parameters[name]
    allowed = [item for item in known[:_MAX_KNOWN] if not same_json(item, value)]
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
    trials = next(trials for least, trials in _NEAR if nearness >= least).scaled(_WEIGHT[source])
    if source == "profile":
        # No closed list: what is meant may be another thing of a like name.
        slip = nearness == _ONE_SLIP and len(str(value)) >= _LONG and not case.writes
        trials = trials if slip or nearness >= _SAME else trials.plus(_OPEN_LIST)
        trials = trials if case.profile_is_current else trials.under_old_schema()
    yield Option(
        (Replace(name=name, before=value, value=texts[text]),),
        f"the nearest known value; {words[source]}",
        trials,
        (source,),
        successes=_successes_with(case, name, texts[text]),
        covers=covers,
    )


def _successes_with(case: Case, name: str, value: JsonValue) -> int:
    seen = case.seen(name)
    known = seen.values.get(canonical_json(value)) if seen else None
    return known.count if known else 0
