"""Sessions of right calls, and what is made of them: histories of agents that err, and trials."""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from bench.quality.brain import Recording
from bench.quality.trial import Json, Trial

AGENTS = tuple(f"agent-{number}" for number in range(1, 7))
MISTAKES = 0.35
"""Share of calls that an agent gets wrong at first: agents fail in about a quarter of all calls."""


@dataclass(frozen=True, slots=True)
class GoldCall:
    """A right call of a session; `context` is empty where the agent gave none."""

    session: str
    sequence: int
    tool: str
    server: str
    parameters: Json
    context: str
    result: Any = field(default=None, repr=False)
    state: Any = field(default=None, repr=False)
    """What the call is executed on, where that is not one server for all."""


@dataclass(frozen=True, slots=True)
class Session:
    """One user's calls, in order."""

    name: str
    calls: tuple[GoldCall, ...]


class Dataset(Protocol):
    """Tools whose calls can be damaged, and whose corrections can be judged."""

    def sessions(self) -> list[Session]:
        """All sessions, the same each time."""
        ...

    def schema_of(self, call: GoldCall) -> Json | None:
        """The tool's input schema."""
        ...

    async def trials_of(
        self, call: GoldCall, others: Sequence[Json], rng: random.Random
    ) -> list[Trial]:
        """The damages, drawn by `rng`, that make the call fail.

        `others` are the parameters of other calls of the tool.
        """
        ...


async def trials(dataset: Dataset, chosen: Sequence[Session]) -> list[Trial]:
    """Every damage of every call of the sessions that makes it fail."""
    others = _by_tool(chosen)
    found: list[Trial] = []
    for session in chosen:
        for call in session.calls:
            rng = random.Random(f"{session.name}/{call.sequence}")
            made = await dataset.trials_of(call, others[call.tool], rng)
            earlier = session.calls[: session.calls.index(call)]
            found += [replace(each, sequence=call.sequence, earlier=earlier) for each in made]
    return found


async def history(dataset: Dataset, chosen: Sequence[Session], *, with_schema: bool) -> Recording:
    """What the sessions' agents did: wrong calls with the tools' real errors, each mended at once.

    A call that an agent gets wrong is drawn among its damages that really fail.
    """
    recording = Recording([])
    others = _by_tool(chosen)
    for session in chosen:
        rng = random.Random(f"history/{session.name}")
        agent = rng.choice(AGENTS)
        for call in session.calls:
            schema = dataset.schema_of(call) if with_schema else None
            if rng.random() < MISTAKES:
                mistakes = await dataset.trials_of(call, others[call.tool], rng)
                if mistakes:
                    record_mistake(recording, rng.choice(mistakes), agent, schema)
            record(recording, call, agent, schema)
    return recording


def record_mistake(recording: Recording, trial: Trial, agent: str, schema: Json | None) -> None:
    """Record a damaged call as its agent made it."""
    recording.add(
        agent=agent, session=trial.session, tool=trial.tool, server=trial.server,
        parameters=trial.damaged, context=trial.context, schema=schema, error=trial.error,
    )  # fmt: skip


def record(recording: Recording, call: GoldCall, agent: str, schema: Json | None) -> None:
    """Record a right call as its agent made it."""
    recording.add(
        agent=agent, session=call.session, tool=call.tool, server=call.server,
        parameters=call.parameters, context=call.context, schema=schema, result=call.result,
    )  # fmt: skip


def _by_tool(chosen: Sequence[Session]) -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = defaultdict(list)
    for session in chosen:
        for call in session.calls:
            found[call.tool].append(call.parameters)
    return found
