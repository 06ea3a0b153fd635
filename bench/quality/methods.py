"""Methods: Aftercall, and what one would do without it.

Each gives the attempts for a trial, best first. Aftercall's are applied as the SDK applies them:
the changes of each suggestion, done to the caller's own parameters.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from aftercall.models import Execution, FailedCall
from aftercall.reflection.retry_rules import apply_changes
from bench.quality.brain import Brain, Recording
from bench.quality.trial import Attempt, Json, Result, Trial
from embeddings.protocol import Embedder
from embeddings.text import call_text
from retrieval.knowledge.values.scalars import type_of

LIMIT = 3

Method = Callable[[Trial], Awaitable[list[Attempt]]]


async def results_of(trials: Sequence[Trial], method: Method) -> list[Result]:
    """What a method does for each trial, judged by executing it."""
    found = []
    for trial in trials:
        attempts = tuple((await method(trial))[:LIMIT])
        verdicts = tuple([await trial.judge(attempt.parameters) for attempt in attempts])
        found.append(Result(trial, attempts, verdicts))
    return found


def session_of(trial: Trial) -> str:
    """The session that a trial is asked about in: its calls up to there."""
    return f"test/{trial.session}/{trial.sequence}"


async def record_earlier(brain: Brain, trial: Trial, known: set[str]) -> None:
    """Record what the trial's session did before, once; nothing is learned from it."""
    session = session_of(trial)
    if session in known or not trial.earlier:
        return
    known.add(session)
    recording = Recording([])
    for call in trial.earlier:
        recording.add(
            agent="tester", session=session, tool=call.tool, server=call.server,
            parameters=call.parameters, context=call.context, schema=None, result=call.result,
        )  # fmt: skip
    await brain.record(recording.executions)


def failed_call(trial: Trial, *, with_schema: bool, agent: str = "tester") -> FailedCall:
    """The trial as it is asked about."""
    fields = {
        "agent": agent, "session_id": session_of(trial), "tool_name": trial.tool,
        "server_name": trial.server, "parameters": trial.damaged,
        "context": trial.context[:2000] or None, "error": trial.error,
        "input_schema": trial.schema if with_schema else None,
    }  # fmt: skip
    return FailedCall.model_validate(fields)


def aftercall(brain: Brain, *, with_schema: bool) -> Method:
    """What `/suggest` says; with an empty memory, what schema and error text alone say."""
    known: set[str] = set()

    async def attempts(trial: Trial) -> list[Attempt]:
        await record_earlier(brain, trial, known)
        answer = await brain.ask(failed_call(trial, with_schema=with_schema))
        found = []
        for suggestion in answer.suggestions:
            parameters = apply_changes(trial.damaged, suggestion.changes)
            if suggestion.action == "change_parameters" and parameters is not None:
                found.append(Attempt(parameters, suggestion.confidence, bool(suggestion.safe)))
        return found

    return attempts


async def retry_unchanged(trial: Trial) -> list[Attempt]:
    """The same call again, as sure as can be."""
    return [Attempt(trial.damaged, 1.0)]


class MostSimilarSuccess:
    """Seed 004's algorithm: the parameters of the most similar success of the tool.

    Similarity is the cosine of the calls' embeddings (tool, intent, parameters), and is given as
    the confidence, since the seed names none.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._calls: dict[str, list[Json]] = defaultdict(list)
        self._vectors: dict[str, NDArray[np.float32]] = {}

    async def learn(self, executions: Sequence[Execution]) -> None:
        """Keep the successes."""
        texts: dict[str, list[str]] = defaultdict(list)
        for each in executions:
            if each.outcome == "success":
                self._calls[each.tool_name].append(each.parameters)
                text = call_text(each.tool_name, each.parameters, each.context)
                texts[each.tool_name].append(text)
        for tool, lines in texts.items():
            self._vectors[tool] = np.vstack(await self._embedder.embed(lines, "document"))

    async def whole(self, trial: Trial) -> list[Attempt]:
        """All of its parameters."""
        return await self._attempts(trial, lambda _, success: success)

    async def diff(self, trial: Trial) -> list[Attempt]:
        """Only those that the failed call misses, has too many, or has in another type."""
        return await self._attempts(trial, _with_its_keys)

    async def _attempts(
        self, trial: Trial, corrected: Callable[[Json, Json], Json]
    ) -> list[Attempt]:
        if trial.tool not in self._vectors:
            return []
        text = call_text(trial.tool, trial.damaged, trial.context)
        vector = (await self._embedder.embed([text], "query"))[0]
        similarities = self._vectors[trial.tool] @ vector
        found: list[Attempt] = []
        for at in np.argsort(-similarities, kind="stable"):
            parameters = corrected(trial.damaged, self._calls[trial.tool][int(at)])
            if all(parameters != other.parameters for other in found):
                found.append(Attempt(parameters, float(np.clip(similarities[at], 0, 1))))
            if len(found) == LIMIT:
                break
        return found


def _with_its_keys(failed: Json, success: Json) -> Json:
    kept = {name: value for name, value in failed.items() if name in success}
    for name, value in success.items():
        if name not in kept or type_of(kept[name]) != type_of(value):
            kept[name] = value
    return kept
