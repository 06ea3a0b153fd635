"""Other values: for wrong types, bounds, refused values and totals; usual and similar ones."""

from collections.abc import Callable, Iterator, Sequence

from aftercall.json_patch import same_json
from aftercall.json_values import JsonValue, canonical_json
from aftercall.models import EvidenceSource
from aftercall.redaction import is_redacted
from retrieval.edits import (
    Add,
    Balance,
    Cast,
    Clamp,
    EditDoesNotApplyError,
    FromError,
    Remove,
    Replace,
    Unwrap,
    apply_edits,
    number_of,
)
from retrieval.knowledge.parameter import ParameterProfile
from retrieval.parameters import JsonType, Path, general, leaves_like
from retrieval.proposals.case import Case, Option, Trials, prior, value_sources_of
from retrieval.reading.faults import Fault
from retrieval.texts import LetterCase, rewrite
from retrieval.values import (
    CastError,
    cast,
    catalogue,
    fits,
    is_about,
    is_portion,
    nearest,
    type_of,
)

# By the share of the successes that had the value, one success more counted for it and one against
# it, so that few successes make no high share.
_SHARES = [
    (0.9, prior("usual.nearly-always", 8, 2)),
    (0.75, prior("usual.mostly", 4, 2)),
    (0.5, prior("usual.often", 2, 2)),
]
_SHARES_INSTEAD = [
    (0.9, prior("usual.instead.nearly-always", 5, 2)),
    (0.75, prior("usual.instead.mostly", 3, 2)),
    (0.5, prior("usual.instead.often", 2, 3)),
]
_SAID_ELSEWHERE = prior("usual.said-elsewhere", 1, 4)
"""The call has the value in another place: from Rome to Rome is no journey."""
_MOST = 2


def usual_choices(case: Case, name: str, covers: frozenset[int]) -> Iterator[Option]:
    """The usual value in the place of a refused one, where the schema states it as one of a list.

    Of an open list the refused value may be another thing, and is no sign of the usual one.
    """
    view = case.parameter(name)
    stated = (*view.allowed, *view.stated_values) if view else ()
    for option in usual_values(case, name, covers):
        if any(isinstance(edit, Replace) and edit.value in stated for edit in option.edits):
            yield option


def usual_values(case: Case, name: str, covers: frozenset[int]) -> Iterator[Option]:
    """The values that at least half of the successes had, when they are common knowledge.

    For a parameter that is missing, or in the place of a refused value.
    """
    seen, view = case.seen(name), case.parameter(name)
    if seen is None or not seen.successes:
        return
    sent = case.parameters.get(name)
    for common in seen.common_values()[:_MOST]:
        share = (common.weight + 1) / (seen.weight() + 2)
        shares = _SHARES if sent is None else _SHARES_INSTEAD
        trials = next((trials for least, trials in shares if share >= least), None)
        unfit = view is not None and not fits(common.value, view.types)
        if trials and _is_said_elsewhere(case, name, common.value):
            trials = _SAID_ELSEWHERE
        if trials is None or unfit or (name in case.parameters and same_json(common.value, sent)):
            continue
        edit = (
            Replace(name=name, before=sent, value=common.value)
            if name in case.parameters
            else Add(name=name, value=common.value)
        )
        yield Option(
            (edit,),
            f"{common.count} of {seen.successes} successes have this value",
            trials if case.profile_is_current else trials.under_old_schema(),
            ("profile",),
            successes=common.count,
            covers=covers,
        )


def _is_said_elsewhere(case: Case, name: str, value: JsonValue) -> bool:
    others = (other for key, other in case.parameters.items() if key != name)
    return value not in (True, False, None) and any(same_json(value, other) for other in others)


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


_EXACT = prior("cast.exact", 30, 1)  # "5" -> 5, 5 -> "5", a -> [a]
_UNWRAP = prior("cast.unwrap", 8, 2)
_WORDS = prior("cast.words", 22, 1)  # "five" -> 5, "1,000" -> 1000
_UNITS = prior("cast.unit", 12, 1.5)  # "10 commits" -> 10, "$12.50" -> 12.5
_SPLIT = prior("cast.split", 8, 2.5)  # "a, b" -> ["a", "b"]
_DROP_NULL = prior("remove.null", 14, 1.5)  # null for an optional parameter: leave it out
_STATED_BOUND = prior("clamp.stated", 24, 2)  # the error names the parameter and its bound
_MATCHED_BOUND = prior(
    "clamp.matched", 14, 2
)  # the error names a bound, and one value lies beyond it
_SEEN_BOUND = prior("clamp.seen", 4, 3)
_RAISED = prior(
    "clamp.raised", 5, 2.5
)  # 0 -> 1: what is too small was often meant as "none" or "all"
_INTENT_BOUND = Trials(1, 8)
"""Of an amount that a write is about: to transfer 100 instead of 500 is another transfer."""


def wrong_type_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """The value in the type that the tool expects, where that is no guess."""
    name = fault.parameter
    if name is None or len(fault.path) > 1 or name not in case.parameters:
        return
    value = case.parameters[name]
    view = case.parameter(name)
    types = fault.expected_types or (view.types if view else ())
    item_types = view.item_types if view else ()
    covers = frozenset({index})
    source: tuple[EvidenceSource, ...] = ("schema",) if fault.from_schema else ("error",)
    if value is None and not (view and view.required):
        reason = f"{name} may be left out, but not be null"
        yield Option((Remove(name=name),), reason, _DROP_NULL, source, covers=covers)
    if not types and isinstance(value, list):
        yield from unwrapped_options(case, index, name)
    for kind in types:
        try:
            corrected = cast(value, kind, item_types)
        except CastError:
            continue
        reason = f"{name} must be of type {kind}, not {type_of(value)}"
        # A general cast can be learned from; where items had to be cast too, only this value.
        edit: Cast | Replace = Cast(name=name, to=kind)
        if not _is_plain(value, kind, corrected):
            edit = Replace(name=name, before=value, value=corrected)
        yield Option((edit,), reason, _cast_trials(value, corrected, kind), source, covers=covers)


def unwrapped_options(case: Case, index: int, name: str) -> Iterator[Option]:
    """The only item of a list in the list's place."""
    value = case.parameters.get(name)
    if isinstance(value, list) and len(value) == 1 and not isinstance(value[0], list | dict):
        reason = f"{name} is a list of one, and was not taken as one value"
        yield Option((Unwrap(name=name),), reason, _UNWRAP, ("error",), covers=frozenset({index}))


def _is_plain(value: JsonValue, kind: JsonType, corrected: JsonValue) -> bool:
    try:
        return same_json(cast(value, kind), corrected)
    except CastError:
        return False


def _cast_trials(value: JsonValue, corrected: JsonValue, kind: JsonType) -> Trials:
    if kind == "array" and isinstance(corrected, list) and len(corrected) > 1:
        return _SPLIT if isinstance(value, str) and not value.strip().startswith("[") else _EXACT
    if kind in ("integer", "number") and isinstance(value, str):
        text = value.strip()
        if text in (str(corrected), f"{corrected}.0"):
            return _EXACT
        bare = text[-1].isdigit() and text.lstrip("-")[0].isdigit()
        return _WORDS if bare or text[0].isalpha() else _UNITS
    return _EXACT


def out_of_range_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """The nearest value inside the bounds; the seen ones when the error states none."""
    name = fault.parameter
    if fault.of_length or len(fault.path) > 1:
        return
    candidates = [name] if name in case.parameters else _beyond(case, fault) if not name else []
    if len(candidates) != 1 or candidates[0] is None:
        return
    target = candidates[0]
    view, seen = case.parameter(target), case.seen(target)
    low = fault.minimum if fault.minimum is not None else view.minimum if view else None
    high = fault.maximum if fault.maximum is not None else view.maximum if view else None
    covers = frozenset({index})
    if low is not None or high is not None:
        if fault.exclusive and not _is_whole(case, target):
            return  # the nearest number inside an open bound is nobody's wish
        stated = " to ".join(f"{limit:g}" for limit in (low, high) if limit is not None)
        successes = seen.successes if seen and _stays_within(seen, low, high) else 0
        within = f"; {successes} successes stay within it" if successes else ""
        yield Option(
            (Clamp(name=target, minimum=low, maximum=high),),
            f"the {'schema' if fault.from_schema else 'error'} states the limit {stated}{within}",
            _bound_trials(case, target, low, is_named=name in case.parameters),
            ("schema",) if fault.from_schema else ("error",),
            successes=successes,
            covers=covers,
        )
    elif seen and seen.successes >= 5 and (known := seen.boundary()):
        too_large = _number(case, target) > known.largest
        nearest = known.largest if too_large else known.smallest
        if all(common.value != nearest for common in seen.common_values()):
            return  # where somebody else stopped is theirs to know
        edit = Clamp(name=target, **{"maximum" if too_large else "minimum": nearest})
        reason = f"{seen.successes} successes stay on this side of {nearest:g}"
        yield Option(
            (edit,), reason, _SEEN_BOUND, ("profile",), successes=seen.successes, covers=covers
        )


def _number(case: Case, name: str) -> float:
    value = case.parameters[name]
    return float(value) if isinstance(value, int | float) else 0.0


def _bound_trials(case: Case, name: str, low: float | None, *, is_named: bool) -> Trials:
    value = case.parameters[name]
    if case.writes and not is_portion(name):
        return _INTENT_BOUND
    raised = isinstance(value, int | float) and low is not None and value < low
    if raised:
        return _RAISED
    return _STATED_BOUND if is_named else _MATCHED_BOUND


def _is_whole(case: Case, name: str) -> bool:
    view = case.parameter(name)
    return isinstance(case.parameters[name], int) and not (view and "number" in view.types)


def _stays_within(seen: ParameterProfile, low: float | None, high: float | None) -> bool:
    if seen.minimum is None or seen.maximum is None:
        return False
    return (low is None or seen.minimum >= low) and (high is None or seen.maximum <= high)


def _beyond(case: Case, fault: Fault) -> list[str]:
    """The parameters whose number lies beyond a bound that the error states without a name.

    Where several do, those that have this very bound by the schema.
    """
    names = [
        name
        for name, value in case.parameters.items()
        if isinstance(value, int | float)
        and not isinstance(value, bool)
        and (
            (fault.maximum is not None and value > fault.maximum)
            or (fault.minimum is not None and value < fault.minimum)
        )
    ]
    views = {name: case.parameter(name) for name in names}
    bound = [
        name
        for name, view in views.items()
        if view
        and (view.minimum, view.maximum) != (None, None)
        and fault.maximum in (None, view.maximum)
        and fault.minimum in (None, view.minimum)
    ]
    return names if len(names) == 1 else bound


_MOST_LEAVES = 3
"""Numbers of a sum that are offered to take the difference, the last first."""


def stated_value_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """The stated value in the place of the wrong one, or one number of a sum moved to the total."""
    if fault.stated is None or is_redacted(fault.stated):
        return
    covers, value_sources = frozenset({index}), value_sources_of(case)
    leaves = leaves_like(case.parameters, ())
    plain = any(at == fault.path for at, _ in leaves)
    wrong = fault.path if plain else _only_place(fault, [(at, str(value)) for at, value in leaves])
    if wrong:
        edit = FromError(name="").at(wrong)
        try:
            apply_edits(case.parameters, [edit], value_sources)
        except EditDoesNotApplyError:
            return
        trials = prior("stated.value", 12, 3) if not case.writes else prior("stated.write", 8, 4)
        yield Option((edit,), "the error states the right value", trials, ("error",), covers=covers)
        return
    for rank, place in enumerate(_summands(case, fault)):
        yield Option(
            (Balance(name="").at(place),),
            "the error states what the sum must be",
            _sum_trials(rank),
            ("error",),
            covers=covers,
        )


def _sum_trials(rank: int) -> Trials:
    """Which of several amounts takes the difference is the caller's to say: never a sure guess."""
    return prior("stated.sum.last", 3, 3) if rank == 0 else prior("stated.sum.other", 1, 4)


def _only_place(fault: Fault, leaves: list[tuple[Path, str]]) -> Path:
    found = [at for at, text in leaves if text == fault.value_text]
    return found[0] if len(found) == 1 else ()


def _summands(case: Case, fault: Fault) -> list[Path]:
    """The numbers of an array that add up to the wrong total, the last first."""
    total = number_of(fault.value_text)
    groups: dict[Path, list[tuple[Path, float]]] = {}
    for at, value in leaves_like(case.parameters, ()):
        number = None if isinstance(value, str) else number_of(value)
        if number is not None and any(isinstance(step, int) for step in at):
            groups.setdefault(general(at), []).append((at, number))
    summed = [
        group
        for group in groups.values()
        if total is not None and len(group) > 1 and sum(number for _, number in group) == total
    ]
    if len(summed) != 1:
        return []
    places = [at for at, _ in summed[0]]
    last = tuple(-1 if step == places[-1][i] and isinstance(step, int) else step
                 for i, step in enumerate(places[-1]))  # fmt: skip
    return [last, *reversed(places[:-1])][:_MOST_LEAVES]
