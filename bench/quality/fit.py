"""Fit the shipped calibration on the benchmark's own history: `python -m bench.quality.fit`.

Only the older sessions of each dataset are looked at, those that the tables of `bench.quality` use
as history. They are dealt out to folds; each fold is asked about with a memory of the others, with
and without schemas. First the priors by kind of edit are counted, then, with these, the weights.
Nothing of the test sessions, of tau-bench or of the APIs kept for the final check is used.
"""

import argparse
import asyncio
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aftercall.models import SuggestRequest
from bench.quality.brain import WORKSPACE, Brain, open_brain
from bench.quality.datasets import MISSING, open_dataset
from bench.quality.methods import failed_call
from bench.quality.sessions import history, trials
from bench.quality.split import folds, split
from bench.quality.trial import Trial
from embeddings.cache import open_embedder
from embeddings.protocol import Embedder
from retrieval.answer import Question
from retrieval.confidence import Calibration, RankedProposal, judge
from retrieval.edit_effects import apply_edits
from retrieval.edits import (
    EditDoesNotApplyError,
    names_of,
)
from retrieval.fitting import Labelled, fit_priors, fit_weights
from retrieval.proposals.case import Option, value_sources_of
from retrieval.proposals.compose import options_of

FILE = Path(__file__).parents[2] / "retrieval" / "calibration.json"
FOLDS = 4
_FIRST = 3
_LATER = 0.3
"""Weight of a proposal that is not the first: it is shown, and seldom followed."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A trial, what it was answered from, and what its first proposals would have done."""

    trial: Trial
    question: Question
    judged: list[tuple[RankedProposal, bool]]


async def ask_all(embedder: Embedder) -> list[Asked]:
    """Every damaged call of the older sessions, with what the memory of the others knows."""
    found: list[Asked] = []
    for name in ("bfcl", "github", "servers"):
        async with open_dataset(name) as dataset:
            if dataset is None:
                raise SystemExit(f"the calibration is fitted on all datasets. {MISSING[name]}")
            older, _ = split(dataset.sessions())
            for fold, (outside, inside) in enumerate(folds(older, FOLDS)):
                asked = await trials(dataset, inside)
                for with_schema in (True, False):
                    async with open_brain(embedder) as brain:
                        if fold == 0:  # tools that nobody has called yet
                            found += await _ask(brain, asked, with_schema=with_schema)
                        recording = await history(dataset, outside, with_schema=with_schema)
                        await brain.learn(recording.executions)
                        found += await _ask(brain, asked, with_schema=with_schema)
        print(f"{name}: {len(found)} asked so far", flush=True)
    return found


async def _ask(brain: Brain, trials: Sequence[Trial], *, with_schema: bool) -> list[Asked]:
    found = []
    for trial in trials:
        request = SuggestRequest(execution=failed_call(trial, with_schema=with_schema))
        question = await brain.suggester.gather(WORKSPACE, request)
        found.append(Asked(trial, question, await _judged(trial, question)))
    return found


async def _judged(trial: Trial, question: Question) -> list[tuple[RankedProposal, bool]]:
    first = judge(question.case, Calibration())[:_FIRST]
    return [(each, await trial.judge(each.proposal.parameters) == "right") for each in first]


def priors_of(asked: Sequence[Asked]) -> dict[str, tuple[float, float]]:
    """Beta counts by kind, over every option of every case."""
    seen = [
        (option.trials.kind, _option_is_right(option, each))
        for each in asked
        for option in options_of(each.question.case)
        if option.trials.kind
    ]
    _print_counts(seen)
    return fit_priors(seen)


def _option_is_right(option: Option, asked: Asked) -> bool:
    """Whether an option gives what it touches the values that were meant.

    To leave out what was only called wrong is not right, though the name does not belong there.
    """
    trial = asked.trial
    kinds = {edit.kind for edit in option.edits}
    if "remove" in kinds and trial.damage.kind != "unexpected parameter":
        return False
    try:
        changed = apply_edits(trial.damaged, option.edits, value_sources_of(asked.question.case))
    except EditDoesNotApplyError:
        return False
    names = {name for edit in option.edits for name in names_of(edit)}
    return all(
        (name in changed) == (name in trial.gold) and changed.get(name) == trial.gold.get(name)
        for name in names
    )


def weights_of(asked: Sequence[Asked]) -> Calibration:
    """The weights over the first proposals of every case, judged by what they do."""
    rows = [
        Labelled(judged.features, right, _LATER if place else 1.0)
        for each in asked
        for place, (judged, right) in enumerate(each.judged)
    ]
    return fit_weights(rows)


def _print_counts(seen: list[tuple[str, bool]]) -> None:
    counts: dict[str, Counter[bool]] = defaultdict(Counter)
    for kind, right in seen:
        counts[kind][right] += 1
    for kind, count in sorted(counts.items()):
        print(f"  {kind:28} {count[True]:5} right {count[False]:5} wrong")


async def _asked() -> list[Asked]:
    embedder = await open_embedder()
    try:
        return await ask_all(embedder)
    finally:
        await embedder.close()


def main() -> None:
    """Count the priors and write them; then, in a process that has them, fit the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", action="store_true", help="fit the weights only")
    options = parser.parse_args()
    asked = asyncio.run(_asked())
    if not options.weights:
        fitted = {"intercept": 0.0, "weights": {"likelihood": 1.0}, "priors": priors_of(asked)}
        FILE.write_text(f"{json.dumps(fitted, indent=1)}\n", encoding="utf-8")
        subprocess.run([sys.executable, "-m", "bench.quality.fit", "--weights"], check=True)
        return
    calibration = weights_of(asked)
    fitted = json.loads(FILE.read_text(encoding="utf-8"))
    fitted |= {"intercept": calibration.intercept, "weights": calibration.weights}
    FILE.write_text(f"{json.dumps(fitted, indent=1)}\n", encoding="utf-8")
    print(f"written to {FILE.name}: {calibration.intercept} {calibration.weights}")


if __name__ == "__main__":
    main()
