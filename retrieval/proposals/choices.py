"""Values that were refused: near ones from the error, the schema, a catalogue or other calls."""

from collections.abc import Callable, Iterator, Sequence

from aftercall.json_patch import same_json
from aftercall.json_values import JsonValue, canonical_json
from aftercall.models import EvidenceSource
from aftercall.redaction import is_redacted
from retrieval.catalogues import catalogue, is_about
from retrieval.edits.kinds import Replace
from retrieval.proposals.case import Case
from retrieval.proposals.option import Option, Trials
from retrieval.proposals.priors import prior
from retrieval.proposals.usual import usual_choices
from retrieval.reading.faults import Fault
from retrieval.texts import LetterCase, rewrite
from retrieval.values import nearest

_SAME = 0.99
_LEVELS = [("same", _SAME), ("slip", 0.88), ("near", 0.8), ("part", 0.0)]
"""Nearness (see `values.nearest`): equal up to case, misspelt, twice so, a part of it."""
_JUDGED = {"same": (30, 1), "slip": (16, 1), "near": (8, 1.5), "part": (4, 3)}
_CLOSED: frozenset[EvidenceSource] = frozenset({"error", "schema"})
"""Sources that list all there is; in the others what is meant may be missing."""
_ONE_SLIP = 0.9
"""`values.nearest` of one letter too many, too few, wrong or swapped."""
_LONG = 10
"""Characters from which on one such letter is a slip of the pen: Austin is no misspelt Boston."""
_MAX_KNOWN = 2_000
_SAID = prior("snap.said", 30, 1)
_REWRITTEN = prior("format.asked", 20, 1)


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
    yield from _in_usual_case(case, name, value, covers)
    if fault.kind != "not_found":
        yield from usual_choices(case, name, covers)


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
    trials = _near_trials(case, source, nearness, len(str(value)))
    yield Option(
        (Replace(name=name, before=value, value=texts[text]),),
        f"the nearest known value; {words[source]}",
        trials,
        (source,),
        successes=_successes_with(case, name, texts[text]),
        covers=covers,
    )


def _near_trials(case: Case, source: EvidenceSource, nearness: float, length: int) -> Trials:
    level = next(level for level, least in _LEVELS if nearness >= least)
    right, wrong = _JUDGED[level]
    if source in _CLOSED:
        return prior(f"snap.{level}", right, wrong)
    # No closed list: what is meant may be another thing of a like name.
    if level == "slip" and nearness == _ONE_SLIP and length >= _LONG:
        level = "long-slip"
    if level == "slip":
        # A judgement: no benchmark here has the names of a thousand people.
        trials = Trials(3, 3)
        return trials if case.profile_is_current else trials.under_old_schema()
    trials = prior(f"snap.open.{level}", 0.8 * right, wrong + (level != "same"))
    return trials if case.profile_is_current else trials.under_old_schema()


def _in_usual_case(
    case: Case, name: str, value: JsonValue, covers: frozenset[int]
) -> Iterator[Option]:
    """The value in the letter case that the tool's successes have there."""
    seen = case.seen(name)
    if not isinstance(value, str) or seen is None:
        return
    total = sum(count for written, count in seen.cases.items() if written != "none")
    for wanted, change in _CASES.items():
        share = (sum(seen.cases.get(each, 0) for each in wanted) + 1) / (total + 2)
        if total >= _ENOUGH and share >= _MOSTLY and change(value) != value:
            yield Option(
                (Replace(name=name, before=value, value=change(value)),),
                "nearly all successes write it so",
                prior("case.usual", 3, 2),
                ("profile",),
                successes=seen.successes,
                covers=covers,
            )


_CASES: dict[tuple[LetterCase, ...], Callable[[str], str]] = {
    ("lower", "snake", "kebab"): str.lower,
    ("upper",): str.upper,
    ("title",): str.title,
}
_ENOUGH = 5
_MOSTLY = 0.6


def _successes_with(case: Case, name: str, value: JsonValue) -> int:
    seen = case.seen(name)
    known = seen.values.get(canonical_json(value)) if seen else None
    return known.count if known else 0
