"""Learning: the same mistake, after it was mended 0, 1, 3 and 10 times in other sessions.

The memory holds these repairs and nothing else, and no schema is known: what is right here is what
the repairs taught, beside what the error text says by itself.
"""

from collections.abc import Sequence

from bench.quality import bfcl
from bench.quality.brain import Recording, open_brain
from bench.quality.methods import aftercall, results_of
from bench.quality.sessions import AGENTS, GoldCall, Session, record, record_mistake
from bench.quality.trial import Damage, Result, Trial
from embeddings.protocol import Embedder

REPAIRS = (0, 1, 3, 10)


async def learning_curve(
    embedder: Embedder, older: Sequence[Session], trials: Sequence[Trial]
) -> dict[int, list[Result]]:
    """Results by the number of earlier repairs; the same trials for every number."""
    chosen = _learnable(older, trials)
    curve = {}
    for repairs in REPAIRS:
        async with open_brain(embedder) as brain:
            recording = Recording([])
            for _, damage, calls in chosen:
                _mend(recording, damage, calls[:repairs])
            await brain.learn(recording.executions)
            method = aftercall(brain, with_schema=False)
            curve[repairs] = await results_of([trial for trial, _, _ in chosen], method)
    return curve


def _learnable(
    older: Sequence[Session], trials: Sequence[Trial]
) -> list[tuple[Trial, Damage, list[GoldCall]]]:
    """Each distinct mistake once, with calls of other sessions in which it can be made."""
    chosen, seen = [], set()
    for trial in trials:
        key = (trial.tool, trial.damage.name, repr(trial.damage.value))
        if key in seen:
            continue
        calls = _calls_with(older, trial.tool, trial.damage)
        if len(calls) >= max(REPAIRS):
            seen.add(key)
            chosen.append((trial, trial.damage, calls))
    return chosen


def _calls_with(older: Sequence[Session], tool: str, damage: Damage) -> list[GoldCall]:
    """One call per session that fails by this damage."""
    found = []
    for session in older:
        calls = [call for call in session.calls if call.tool == tool]
        fitting = [call for call in calls if bfcl.trial_of(call, damage, None)]
        found += fitting[:1]
    return found


def _mend(recording: Recording, damage: Damage, calls: Sequence[GoldCall]) -> None:
    for position, call in enumerate(calls):
        agent = AGENTS[position % len(AGENTS)]
        if mistake := bfcl.trial_of(call, damage, None):
            record_mistake(recording, mistake, agent, None)
            record(recording, call, agent, None)
