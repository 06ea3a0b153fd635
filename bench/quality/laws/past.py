"""Laws of what was learned before: evidence, separation and knowledge."""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, pairwise

from aftercall.change_classes import ORDER
from aftercall.models import Suggestion, ToolAnnotations
from bench.quality.laws.asking import Reply
from bench.quality.laws.case import Case, Past
from bench.quality.laws.dialects import refusal
from bench.quality.laws.law import Same, Variation, first_broken
from bench.quality.trial import Json
from bench.quality.worlds import read_texts
from retrieval.knowledge.values.scalars import same_value

_FEW, _MANY = (0, 1, 2, 4, 8, 16), (16, 100)
_SHARE_OF_MANY = 0.04
"""Share of the cases that are taught a hundred times."""
_FAILED_AFTER = (1, 4, 16)
ROUNDING = 1e-3
_NEAR = 0.01
_LESSONS = 5
_EVEN = 0.5
_OTHER_ERRORS = (
    "Record is locked by another user", "The quota of this account is used up",
    "Internal error while writing the log", "The branch was changed in the meantime",
)  # fmt: skip


def fixed_by_others(case: Case, number: int) -> tuple[Past, ...]:
    """Return a session in which another agent made the case's mistake and fixed it."""
    wrong, right = mends_of(case)[number % len(mends_of(case))]
    agent, session = f"agent-{number % 5}", f"past-{case.name}-{number}"
    of = (agent, session, case.tool, case.server)
    return Past(*of, wrong, _error_about(case, wrong)), Past(*of, right)


def mends_of(case: Case) -> tuple[tuple[Json, Json], ...]:
    """Return how others made and fixed the case's mistake; as in the case itself where unknown."""
    return case.mends or tuple((case.call, right) for right in (case.right or ())[:1])


def _error_about(case: Case, wrong: Json) -> Json:
    if case.dialect is None or case.schema is None:
        return case.error
    return refusal(case.dialect, case.tool, case.schema, wrong) or case.error


def _lessons(case: Case, count: int) -> tuple[Past, ...]:
    return tuple(chain(*(fixed_by_others(case, number) for number in range(count))))


def vary_evidence(case: Case, rng: random.Random) -> Iterator[Variation]:
    """Yield the case after its fix was taught so often, and more often, and after it failed."""
    if not case.right:
        return
    bare = replace(case, schema=None)
    steps = [*pairwise(_FEW), *([_MANY] if rng.random() < _SHARE_OF_MANY else [])]
    lessons = [fixed_by_others(case, number) for number in range(max(chain(*steps)))]
    for of, way in ((case, ""), (bare, ", no schema")):
        counts = sorted({*chain(*steps)})
        taught = {n: replace(of, history=tuple(chain(*lessons[:n]))) for n in counts}
        for fewer, more in steps:
            yield Variation(f"{fewer} to {more}{way}", taught[fewer], taught[more], is_surer)
        count = rng.choice(_FAILED_AFTER)
        failed = replace(of, history=(*taught[count].history, *_failure(case)))
        yield Variation(f"a failure after {count}{way}", taught[count], failed, _is_less_sure)


def _failure(case: Case) -> tuple[Past, ...]:
    wrong, right = mends_of(case)[0]
    of = ("agent-failing", f"failing-{case.name}", case.tool, case.server)
    error = _error_about(case, wrong)
    return Past(*of, wrong, error), Past(*of, right, error, is_repair=True)


def fix_in(reply: Reply) -> tuple[int, Suggestion] | None:
    """Return the place and the suggestion of the right call among what is suggested."""
    offered = zip(reply.suggested.suggestions, reply.repairs, strict=True)
    for at, (suggestion, repaired) in enumerate(offered):
        if repaired is not None and _is_one_of(repaired, reply.case.right or ()):
            return at, suggestion
    return None


def is_surer(base: Reply, changed: Reply) -> str | None:
    """Return what of the right call's suggestion became worse, in words; None if nothing did."""
    if (before := fix_in(base)) is None:
        return None
    if (after := fix_in(changed)) is None:
        return f"the fix, at {before[1].confidence:.2f} before, is no longer suggested"
    (place, old), (now, new) = before, after
    stated = {"error", "schema"} & {*old.evidence.sources}
    classes = [ORDER.index(each.change_class or "semantic") for each in (old, new)]
    return first_broken(
        (now <= place, f"from place {place + 1} to place {now + 1}"),
        (new.confidence >= old.confidence - ROUNDING,
         f"confidence {old.confidence:.3f} became {new.confidence:.3f}"),
        (bool(new.safe) or not old.safe, "no longer safe"),
        (classes[1] <= classes[0], f"class {old.change_class} became {new.change_class}"),
        (stated <= {*new.evidence.sources}, f"no longer stated by {', '.join(sorted(stated))}"),
    )  # fmt: skip


def _is_less_sure(base: Reply, changed: Reply) -> str | None:
    before, after = fix_in(base), fix_in(changed)
    if before is None or after is None or after[1].confidence < before[1].confidence:
        return None
    return f"confidence {before[1].confidence:.3f} became {after[1].confidence:.3f}"


def vary_separation(case: Case, rng: random.Random) -> Iterator[Variation]:
    """Yield what no lesson about the case speaks of: another tool, error, place; as if untaught."""
    if case.right:
        lessons = _lessons(case, _LESSONS)
        for kind, asked in _strangers(case):
            yield Variation(kind, asked, replace(asked, history=lessons), _UNTAUGHT)
        for kind, asked in _other_errors(case, rng):
            yield Variation(kind, asked, replace(asked, history=lessons), _UNTAUGHT_AFTER)
        yield from _other_places(case)
    for name in _missing(case):
        value = "fox" if rng.random() < 0.5 else "main"
        history = tuple(
            Past(f"agent-{at}", f"success-{case.name}-{at}", "run_query", "elsewhere",
                 {name: value, "page": at})
            for at in range(_LESSONS)
        )  # fmt: skip
        changed = replace(case, history=history)
        yield Variation("a value of another tool", case, changed, _UNTAUGHT)


def _strangers(case: Case) -> Iterator[tuple[str, Case]]:
    for of, way in ((case, ""), (replace(case, schema=None), ", no schema")):
        yield f"another tool{way}", replace(of, tool=f"{case.tool}_two")
        yield f"another server{way}", replace(of, server=f"{case.server}-two")


def _other_errors(case: Case, rng: random.Random) -> Iterator[tuple[str, Case]]:
    error = {"type": "ToolError", "message": rng.choice(_OTHER_ERRORS)}
    bare = replace(case, schema=None, error=error)
    yield "another error", replace(case, error=error)
    yield "another error, no schema", bare
    yield "another error, right call", replace(bare, call=(case.right or ({},))[0])


def _other_places(case: Case) -> Iterator[Variation]:
    """The wrong name inside an object of the right call, where the lesson is of the top level."""
    right = (case.right or ({},))[0]
    wrong_names, right_names = case.call.keys() - right.keys(), right.keys() - case.call.keys()
    if len(wrong_names) != 1 or len(right_names) != 1 or "crate" in right:
        return
    [name] = wrong_names
    held = {"remark": "harbour walnut"}
    asked = replace(
        case, schema=None, call={**right, "crate": {**held, name: case.call[name]}}, right=None
    )
    lessons = tuple(
        replace(each, call={**each.call, "crate": held}) for each in _lessons(case, _LESSONS)
    )
    changed = replace(asked, history=lessons)
    yield Variation("another place of the name", asked, changed, _UNTAUGHT)


def _missing(case: Case) -> list[str]:
    if case.schema is None or case.dialect is None:
        return []
    known = case.schema.get("properties", {})
    return [
        name
        for name in case.schema.get("required", ())
        if name not in case.call and known.get(name, {}).get("type") == "string"
    ][:1]


_UNTAUGHT_AFTER = Same(change_class=True, safe=True, within=_NEAR)
"""As if untaught after the failure; before the call there is no error that a lesson hangs on."""
_UNTAUGHT = replace(_UNTAUGHT_AFTER, check=True)


_READS = ToolAnnotations(read_only_hint=True)
_DESTROYS = ToolAnnotations(read_only_hint=False, destructive_hint=True)
_REPEATS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True)


def vary_knowledge(case: Case, rng: random.Random) -> Iterator[Variation]:
    """Yield the case with schema, hints or session added to what is known of it."""
    if case.right is None:
        return
    bare = replace(case, schema=None, hints=None)
    if case.schema is not None:
        yield Variation("schema", bare, replace(case, hints=None), _is_not_wrong)
    known = replace(case, hints=None)
    hints = rng.choice((_READS, _DESTROYS, _REPEATS))
    yield Variation("hints", bare, replace(bare, hints=hints), _is_not_wrong)
    yield Variation("hints beside a schema", known, replace(known, hints=hints), _is_not_wrong)
    earlier = _earlier(case, rng)
    for of, way in ((bare, ""), (known, " beside a schema")):
        changed = replace(of, history=earlier)
        yield Variation(f"session{way}", of, changed, _is_not_wrong)


def _earlier(case: Case, rng: random.Random) -> tuple[Past, ...]:
    """Earlier calls of the asker's own session: of the tool, where others are known, or another."""
    of = (case.agent, case.session)
    other = Past(*of, "list_rooms", case.server, {"floor": 3, "query": "harbour"})
    if not case.mends:
        return (other,)
    _, right = rng.choice(case.mends)
    return other, Past(*of, case.tool, case.server, right)


def _is_not_wrong(base: Reply, changed: Reply) -> str | None:
    if not _is_right(base) or not _is_wrong(changed):
        return None
    return f"right at {base.confidence:.2f} became wrong at {changed.confidence:.2f}"


def _is_right(reply: Reply) -> bool:
    right = reply.case.right or ()
    if not right:
        return reply.repaired is None or reply.confidence < _EVEN
    return reply.repaired is not None and _is_one_of(reply.repaired, right)


def _is_wrong(reply: Reply) -> bool:
    right = reply.case.right or ()
    if not right:
        return not _is_right(reply)
    return reply.repaired is not None and not _is_one_of(reply.repaired, right)


def _is_one_of(call: Json, right: tuple[Json, ...]) -> bool:
    return any(same_value(read_texts(call), read_texts(each)) for each in right)
