"""The same mistake again: twice by one agent and once by another, in a memory that starts empty.

Each time the first suggestion is followed and reported as agents report it; where it was not right
the agent then sends the right call. A mistake that was mended once must not be mended worse the
next time: the figure is how many were right each time, and how many were right the first time and
then not, or less surely so. Where other calls of the tool can have the same mistake, the second and
third are such calls, with other values.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from aftercall.models import Suggestion
from aftercall.reflection.retry_rules import apply_changes
from bench.quality import bfcl
from bench.quality.brain import Brain, Recording, open_brain
from bench.quality.methods import failed_call
from bench.quality.sessions import GoldCall, trials
from bench.quality.split import split
from bench.quality.trial import Json, Trial, Verdict
from embeddings.protocol import Embedder

TIMES = ("agent-1", "agent-1", "agent-2")
SURE = 0.8
_ITS_OWN = ("missing required", "wrong value", "changed case")
"""Mistakes that other calls cannot make: what is right for them is in this call's own words."""
_LESS = 0.01
"""A confidence lower by less is as sure as before."""


@dataclass(frozen=True, slots=True)
class Time:
    """What was answered to a mistake once."""

    trial: Trial
    verdict: Verdict | None
    """Of the first suggestion's parameters; None where none changes them."""
    confidence: float
    safe: bool = False
    """Whether its class allows a client to follow it without asking."""
    sent: Json | None = None
    """The suggested parameters."""

    @property
    def right(self) -> bool:
        """Whether it did what the caller meant."""
        return self.verdict == "right"


def series(dataset: bfcl.Bfcl, found: Sequence[Trial]) -> list[tuple[Trial, ...]]:
    """Each mistake with as many more of its kind, of other calls where there are some."""
    by_tool: dict[str, list[GoldCall]] = {}
    for session in dataset.sessions():
        for call in session.calls:
            by_tool.setdefault(call.tool, []).append(call)
    chosen = []
    for trial in found:
        calls = list(by_tool[trial.tool])
        random.Random(f"{trial.session}/{trial.damage.name}").shuffle(calls)
        like = [
            each
            for call in calls[: 40 if trial.damage.kind not in _ITS_OWN else 0]
            if call.parameters != trial.gold
            and (each := bfcl.trial_of(call, trial.damage, trial.schema)) is not None
        ]
        chosen.append((trial, *like[:2], trial, trial)[: len(TIMES)])
    return chosen


async def replay(
    brain: Brain, mistakes: Sequence[Sequence[Trial]], *, with_schema: bool
) -> list[list[Time]]:
    """Each mistake's times, one round after the other."""
    found: list[list[Time]] = [[] for _ in mistakes]
    for number, agent in enumerate(TIMES):
        for at, of in enumerate(mistakes):
            session = f"{agent}/{number}/{at}"
            found[at].append(
                await _once(brain, of[number], agent, session, with_schema=with_schema)
            )
    return found


async def ask(
    brain: Brain, trial: Trial, agent: str, session: str, *, with_schema: bool = True
) -> tuple[Time, Suggestion | None]:
    """What is answered to a mistake; with it the first suggestion."""
    call = failed_call(trial, with_schema=with_schema, agent=agent)
    asked = call.model_copy(update={"session_id": session})
    answer = await brain.ask(asked, hints=trial.hints)
    first = next(iter(answer.suggestions), None)
    sent = None
    if first is not None and first.action == "change_parameters":
        sent = apply_changes(trial.damaged, first.changes)
    if first is None or sent is None:
        return Time(trial, None, 0.0), first
    verdict = await trial.judge(sent)
    return Time(trial, verdict, first.confidence, bool(first.safe), sent), first


async def _once(brain: Brain, trial: Trial, agent: str, session: str, *, with_schema: bool) -> Time:
    time, first = await ask(brain, trial, agent, session, with_schema=with_schema)
    verdict, sent = time.verdict, time.sent
    recording = Recording([])
    add = partial(
        recording.add, agent=agent, session=session, tool=trial.tool, server=trial.server,
        context=trial.context, schema=trial.schema if with_schema else None,
    )  # fmt: skip
    add(parameters=trial.damaged, error=trial.error)
    if sent is not None and first is not None:
        said = trial.error if trial.answer is None else await trial.answer(sent)
        add(parameters=sent, error=said if verdict == "fails" else None)
        followed = recording.executions[-1]
        recording.executions[-1] = followed.model_copy(update={
            "suggestion_id": first.suggestion_id,
            "repair_of": recording.executions[0].execution_id,
        })  # fmt: skip
    if verdict != "right":
        add(parameters=trial.gold)
    await brain.suggester.close()
    await brain.learn(recording.executions)
    return time


def row(found: Sequence[Sequence[Time]]) -> Json:
    """The figures."""
    figures: Json = {"mistakes": len(found)}
    for number in range(len(TIMES)):
        times = [each[number] for each in found]
        figures[f"right, time {number + 1}"] = sum(each.right for each in times)
        figures[f"sure and wrong, time {number + 1}"] = sum(
            not each.right and each.confidence > SURE for each in times
        )
    figures["right, then not"] = sum(
        any(before.right and not after.right for before, after in pairwise(each)) for each in found
    )
    figures["right, then less sure"] = sum(
        any(
            before.right and after.right and after.confidence < before.confidence - _LESS
            for before, after in pairwise(each)
        )
        for each in found
    )
    return figures


async def measure(embedder: Embedder, *, with_schema: bool, most: int) -> list[list[Time]]:
    """The times of mistakes of BFCL's development APIs, at most so many."""
    dataset = bfcl.Bfcl(final=False)
    _, test = split(dataset.sessions())
    asked = await trials(dataset, test)
    random.Random(0).shuffle(asked)
    async with open_brain(embedder) as brain:
        return await replay(brain, series(dataset, asked[:most]), with_schema=with_schema)
