"""Learned rewrites: two agents fail and mend a call, a third one fails like them.

    python -m bench.quality --only rewrites [--show K]

Forms of change, calls that a lesson must not touch and mends that are told again stand in
`bench/quality/rewrites/*.toml`. They were written without a look at what learns from them. Each
form is taught by two agents with a key each; a third one, with a key of its own, fails with other
values (two calls) and with the first agent's very call. Right is what was mended, byte for byte.
Of 40 agents no one mends the same values in the part on evidence.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from aftercall.json_patch import same_json
from bench.quality.brain import open_brain
from bench.quality.laws import report
from bench.quality.laws.asking import SURE, Asker, Reply
from bench.quality.laws.case import Case, Past, leaves
from bench.quality.laws.past import ROUNDING, fix_in, is_surer
from bench.quality.laws.runner import Broken
from bench.quality.rewrites_cases import TAUGHT, Form, Mend, Trap, forms, mends, schema_of, traps
from bench.quality.trial import Json
from embeddings.protocol import Embedder

_EVEN = 0.5
_TIMES = (0, 1, 2, 4, 8, 16, 40)
_FAILED_AFTER, _FAILURES = 8, (0, 1, 2, 4)
_Ask = Callable[[Case], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Answered:
    """What a form's third agent is answered."""

    form: Form
    with_schema: bool
    asked: list[Reply]
    """About calls with other values."""
    again: Reply
    """About the very call that was mended first."""
    other: list[Reply]
    """About the call that the lesson must not touch, with a useless error; else before it."""

    @property
    def is_touched(self) -> bool:
        """Whether the other call is changed, before it is made or after it failed."""
        return any(reply.before is not None for reply in self.other) or (
            self.form.opaque and any(_is_offered(reply) for reply in self.other)
        )


@dataclass(frozen=True, slots=True)
class Trapped:
    """What is answered in a trap, untaught and taught."""

    trap: Trap
    before: Reply
    after: Reply

    @property
    def learned(self) -> float:
        """The confidence of the likeliest change that is proposed only since the lesson."""
        known = [each for each in self.before.repairs if each is not None]
        return max(
            (confidence for repaired, confidence in _offers(self.after)
             if not any(same_json(repaired, each) for each in known)),
            default=0.0,
        )  # fmt: skip

    @property
    def of_others(self) -> float:
        """The confidence of the likeliest change that puts in a value of others."""
        return max(
            (confidence for repaired, confidence in _offers(self.after)
             if any(same_json(leaf, value) for _, leaf in leaves(repaired)
                    for value in self.trap.theirs)),
            default=0.0,
        )  # fmt: skip

    @property
    def is_followed(self) -> bool:
        """Whether the SDK sends something that it would not send untaught."""
        sent = self.after.sent
        return sent is not None and not (
            self.before.sent is not None and same_json(sent, self.before.sent)
        )


@dataclass(frozen=True, slots=True)
class Compared:
    """A mend that was told more often, or a change that failed: whether the answer is worse."""

    mend: Mend
    step: str
    with_schema: bool
    broken: Broken | None


@dataclass(frozen=True, slots=True)
class Figures:
    """All that is measured."""

    answered: list[Answered]
    trapped: list[Trapped]
    compared: list[Compared]


async def measure(embedder: Embedder) -> Figures:
    """Ask about all forms, traps and mends."""
    async with open_brain(embedder) as brain:
        ask = Asker(brain).reply
        answered = [
            await _answer(ask, form, with_schema=with_schema)
            for form in forms() for with_schema in (False, True)
        ]  # fmt: skip
        trapped = [await _trap(ask, trap) for trap in traps()]
        compared = [
            each
            for mend in mends(max(_TIMES)) for with_schema in (False, True)
            for each in await _compare(ask, mend, with_schema=with_schema)
        ]  # fmt: skip
    return Figures(answered, trapped, compared)


def cases() -> Iterator[Case]:
    """Yield what a third agent asks about each form: after one lesson and after two."""
    for form in forms():
        for schema in (form.schema, None):
            for taught in range(1, TAUGHT + 1):
                history = form.lessons(form.pairs[:taught], schema)
                for failed, mended in (*form.pairs[TAUGHT:], form.pairs[0]):
                    yield form.asked(failed, (mended,), history, schema)
                if form.other is not None:
                    yield _about_other(form, form.other, history, schema)


async def _answer(ask: _Ask, form: Form, *, with_schema: bool) -> Answered:
    schema = form.schema if with_schema else None
    history = form.lessons(form.pairs[:TAUGHT], schema)
    asked = [
        await ask(form.asked(failed, (mended,), history, schema))
        for failed, mended in form.pairs[TAUGHT:]
    ]
    failed, mended = form.pairs[0]
    again = await ask(form.asked(failed, (mended,), history, schema))
    others = [] if form.other is None else [_about_other(form, form.other, history, schema)]
    return Answered(form, with_schema, asked, again, [await ask(each) for each in others])


def _about_other(form: Form, other: Json, history: tuple[Past, ...], schema: Json | None) -> Case:
    error = form.error if form.opaque else "Service is not available"
    return replace(form, error=error).asked(other, (), history, schema)


async def _trap(ask: _Ask, trap: Trap) -> Trapped:
    taught = replace(trap.question, history=trap.lessons(trap.pairs))
    return Trapped(trap, await ask(trap.question), await ask(taught))


async def _compare(ask: _Ask, mend: Mend, *, with_schema: bool) -> list[Compared]:
    failed, mended = mend.pairs[-1]
    schema = schema_of([right for _, right in mend.pairs]) if with_schema else None

    async def after(times: int, failures: int = 0) -> Reply:
        lessons = mend.lessons(mend.pairs[:times], schema)
        failing = mend.failures(mend.pairs[times : times + failures], schema)
        return await ask(mend.asked(failed, (mended,), (*lessons, *failing), schema))

    told = [await after(times) for times in _TIMES]
    steps = [f"{fewer} to {more}" for fewer, more in pairwise(_TIMES)]
    relations = [_is_as_well_said if mend.states else is_surer] * len(steps)
    failing = [await after(_FAILED_AFTER, failures) for failures in _FAILURES]
    steps += [f"{more} failed after {_FAILED_AFTER}" for more in _FAILURES[1:]]
    relations += [_is_not_surer] * (len(failing) - 1)
    pairs = [*pairwise(told), *pairwise(failing)]
    found = []
    for step, relation, (base, changed) in zip(steps, relations, pairs, strict=True):
        why = relation(base, changed)
        broken = None if why is None else Broken(why, base, changed)
        found.append(Compared(mend, step, with_schema, broken))
    return found


def _is_as_well_said(base: Reply, changed: Reply) -> str | None:
    if (why := is_surer(base, changed)) is not None:
        return why
    stated = [_states(reply) for reply in (base, changed)]
    return "the account no longer says that it is stated" if stated == [True, False] else None


def _states(reply: Reply) -> bool:
    found = fix_in(reply)
    account = found[1].account if found else None
    return account is not None and any(each.origin == "stated" for each in account.values)


def _is_not_surer(base: Reply, changed: Reply) -> str | None:
    before, after = ((found[1].confidence if (found := fix_in(reply)) else 0.0)
                     for reply in (base, changed))  # fmt: skip
    is_as_sure = after <= before + ROUNDING
    return None if is_as_sure else f"confidence {before:.3f} became {after:.3f}"


def _offers(reply: Reply) -> Iterator[tuple[Json, float]]:
    for suggestion, repaired in zip(reply.suggested.suggestions, reply.repairs, strict=True):
        if suggestion.action == "change_parameters" and repaired is not None:
            yield repaired, suggestion.confidence


def _is_offered(reply: Reply) -> bool:
    return reply.repaired is not None and reply.confidence >= _EVEN


def is_right(call: Any, right: Any) -> bool:
    """Return whether a call is the right one; blanks of JSON texts do not count."""
    if isinstance(call, dict) and isinstance(right, dict):
        return call.keys() == right.keys() and all(is_right(call[k], right[k]) for k in call)
    if isinstance(call, str) and isinstance(right, str) and right.startswith("{"):
        try:
            return same_json(json.loads(call), json.loads(right))
        except ValueError:
            return False
    return same_json(call, right)


def outcome(reply: Reply) -> str:
    """Return `right`, `wrong` or `silent`: what the first suggestion changes, if anything."""
    if reply.repaired is None:
        return "silent"
    return "right" if _is_meant(reply.case, reply.repaired) else "wrong"


def _is_meant(case: Case, call: Json) -> bool:
    return any(is_right(call, each) for each in case.right or ())


def _is_followed_wrong(reply: Reply) -> bool:
    return reply.sent is not None and not _is_meant(reply.case, reply.sent)


def _is_sure(reply: Reply) -> bool:
    return reply.repaired is not None and reply.confidence > SURE


def _is_sure_and_wrong(reply: Reply) -> bool:
    return _is_sure(reply) and outcome(reply) == "wrong"


def page(found: Figures) -> Iterator[str]:
    """Yield the lines of `docs/figures/rewrites.md`."""
    yield from ("# Learned rewrites", "")
    yield __doc__.split("\n\n", 2)[2].replace("\n", " ").strip()
    yield from ("", *_summary(found.answered), "", *_families(found.answered))
    yield from ("", *_separation(found.trapped), "", *_evidence(found.compared))
    yield from ("", *_each_form(found.answered))


def _summary(answered: Sequence[Answered]) -> Iterator[str]:
    ways = [[each for each in answered if each.with_schema is way] for way in (False, True)]
    opaque = sum(each.form.opaque for each in ways[0])
    yield f"## {len(ways[0])} forms of change, {opaque} of them behind an error that says nothing"
    yield from ("", "| | without a schema | with a schema |", "|---|---:|---:|")

    def asked(of: Sequence[Answered]) -> list[Reply]:
        return [reply for each in of for reply in each.asked]

    def again(of: Sequence[Answered]) -> list[Reply]:
        return [each.again for each in of]

    def all_of(of: Sequence[Answered]) -> list[Reply]:
        return [*asked(of), *again(of)]

    rows: list[tuple[str, Callable[[Sequence[Answered]], list[Reply]], Callable[[Reply], bool]]] = [
        ("right first, other values", asked, lambda reply: outcome(reply) == "right"),
        ("right first, exact repeat", again, lambda reply: outcome(reply) == "right"),
        ("silent", all_of, lambda reply: outcome(reply) == "silent"),
        ("sure (above .80)", all_of, _is_sure),
        ("sure and wrong", all_of, _is_sure_and_wrong),
        ("followed", all_of, lambda reply: reply.sent is not None),
        ("followed and wrong", all_of, _is_followed_wrong),
    ]  # fmt: skip
    for name, chosen, holds in rows:
        yield f"| {name} | {' | '.join(_share(map(holds, chosen(way))) for way in ways)} |"
    of_other = [[each for each in way if each.other] for way in ways]
    touched = (_share(each.is_touched for each in way) for way in of_other)
    yield f"| another call of the tool touched | {' | '.join(touched)} |"


def _share(holds: Iterable[bool]) -> str:
    counted = list(holds)
    return f"{sum(counted)} of {len(counted)}"


def _families(answered: Sequence[Answered]) -> Iterator[str]:
    yield "| right first, other values | without a schema | with a schema |"
    yield "|---|---:|---:|"
    groups = {
        **{each.form.family: lambda form, name=each.form.family: form.family == name
           for each in answered},
        "behind an error that says nothing": lambda form: form.opaque,
    }  # fmt: skip
    for name, holds in groups.items():
        of_name = [each for each in answered if holds(each.form)]
        shares = (
            _share(outcome(reply) == "right" for each in of_name if each.with_schema is way
                   for reply in each.asked)
            for way in (False, True)
        )  # fmt: skip
        yield f"| {name} | {' | '.join(shares)} |"


def _separation(trapped: Sequence[Trapped]) -> Iterator[str]:
    yield "## What a lesson must not touch"
    yield from ("", "| traps | n | learned, at .5 and more | value of others above .5 | followed |")
    yield "|---|---:|---:|---:|---:|"
    for kind in ("separation", "subject"):
        of = [each for each in trapped if each.trap.kind == kind]
        counts = (
            sum(each.learned >= _EVEN for each in of), sum(each.of_others > _EVEN for each in of),
            sum(each.is_followed for each in of),
        )  # fmt: skip
        yield f"| {kind} | {len(of)} | {' | '.join(map(str, counts))} |"
    yield from ("", "| fallen into | | confidence |", "|---|---|---:|")
    for each in trapped:
        if each.learned >= _EVEN or each.is_followed:
            followed = ", followed" if each.is_followed else ""
            yield f"| {each.trap.name} | {each.trap.kind}{followed} | {each.learned:.2f} |"


def _evidence(compared: Sequence[Compared]) -> Iterator[str]:
    broken = [each for each in compared if each.broken]
    yield f"## Evidence: {len(broken)} broken of {len(compared)}"
    yield ""
    yield (
        "A mend that was told more often is at least as sure, safe, well placed and well said; one "
        "that failed is not surer. Each is told so often: "
        f"{', '.join(map(str, _TIMES))}; then it fails {_FAILURES[1]} to {_FAILURES[-1]} times."
    )
    yield from ("", "| mend | compared | broken | why |", "|---|---:|---:|---|")
    for name in dict.fromkeys(each.mend.name for each in compared):
        of = [each for each in compared if each.mend.name == name]
        why = [f"{each.step}{', schema' if each.with_schema else ''}: {each.broken.why}"
               for each in of if each.broken]  # fmt: skip
        yield f"| {name} | {len(of)} | {len(why)} | {'; '.join(why[:3])} |"


def _each_form(answered: Sequence[Answered]) -> Iterator[str]:
    yield from ("## Each form", "")
    yield "Two calls with other values, and the exact repeat; confidence of the first suggestion."
    yield "`!` marks what the SDK sends by itself, `e` an error that says nothing."
    yield from ("", "| form | other values | repeat | ... with a schema | repeat |")
    yield "|---|---|---|---|---|"
    by_form: dict[str, list[Answered]] = {}
    for each in answered:
        by_form.setdefault(each.form.name, []).append(each)
    for name, ways in by_form.items():
        cells = [
            cell for each in ways for cell in (", ".join(map(_cell, each.asked)), _cell(each.again))
        ]
        marks = " `e`" if ways[0].form.opaque else ""
        touched = " (another call touched)" if any(each.is_touched for each in ways) else ""
        yield f"| {name}{marks}{touched} | {' | '.join(cells)} |"


def _cell(reply: Reply) -> str:
    name = outcome(reply)
    if name == "silent":
        return name
    return f"{name} {reply.confidence:.2f}{'!' * (reply.sent is not None)}"


def _shown(found: Figures, most: int) -> Iterator[str]:
    failing = [
        (each, reply) for each in found.answered for reply in [*each.asked[:1], each.again]
        if outcome(reply) != "right"
    ]  # fmt: skip
    for each, reply in failing[:most]:
        yield f"{each.form.name}{', schema' if each.with_schema else ''}: {outcome(reply)}"
        yield from report.readable(Broken("wanted: " + json.dumps(reply.case.right), reply, reply))
    for fallen in [each for each in found.trapped if each.learned >= _EVEN][:most]:
        why = f"learned at {fallen.learned:.2f}"
        yield from report.readable(Broken(why, fallen.before, fallen.after))
    for compared in [each for each in found.compared if each.broken][:most]:
        if compared.broken is not None:
            yield from report.readable(compared.broken)


async def write(embedder: Embedder, folder: Path, show: int = 0) -> None:
    """Measure, print the page and write it to `rewrites.md`; print so many failing cases."""
    found = await measure(embedder)
    text = "\n".join(page(found)) + "\n"
    print(text, *_shown(found, show), sep="\n")
    (folder / "rewrites.md").write_text(text, encoding="utf-8")
