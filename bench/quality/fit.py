"""Fit the shipped calibration on the benchmark's own history: `python -m bench.quality.fit`.

Only the older sessions of each dataset are looked at, those that the tables of `bench.quality` use
as history. They are dealt out to folds; each fold is asked about with a memory of the others, with
and without schemas. First the priors by kind of edit are counted, then, with these, the weights.
With `--kinds` the families of `bench.quality.kinds` that are not kept for the end are mistakes too,
and count as much as all others. `--families` writes nothing and prints how well the confidence
holds for each of them, as shipped and with weights fitted on all the others.
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
from bench.quality import kinds
from bench.quality.brain import WORKSPACE, Brain, open_brain
from bench.quality.datasets import MISSING, open_dataset
from bench.quality.fitting import Labelled, fit_priors, fit_weights
from bench.quality.methods import failed_call
from bench.quality.scores import SURE, calibration_error
from bench.quality.sessions import history, trials
from bench.quality.split import folds, split
from bench.quality.trial import Attempt, Result, Trial
from embeddings.cache import open_embedder
from embeddings.protocol import Embedder
from retrieval.answer import Question
from retrieval.confidence import (
    MIN_CONFIDENCE,
    Calibration,
    RankedProposal,
    judge,
    shipped,
)
from retrieval.edit_effects import apply_edits
from retrieval.edits import (
    EditDoesNotApplyError,
    names_of,
)
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

    @property
    def family(self) -> str:
        """The family of the mistake; empty for those that the tables make."""
        place = self.trial.damage.parameter
        return place if place in kinds.FAMILIES else ""


async def ask_all(embedder: Embedder, *, with_kinds: bool) -> list[Asked]:
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
    return found + (await _ask_kinds(embedder) if with_kinds else [])


async def _ask_kinds(embedder: Embedder) -> list[Asked]:
    """The mistakes of the families that are not kept for the end, likewise in folds."""
    families = [family for family in kinds.FAMILIES if family not in (*kinds.KEPT, *kinds.MIXED)]
    found: list[Asked] = []
    for world in kinds.worlds():
        older, _ = split(world.dataset.sessions())
        for outside, inside in folds(older, FOLDS):
            asked = kinds.trials(world, inside, families)
            for with_schema in (True, False):
                async with open_brain(embedder) as brain:
                    taught = await history(world.dataset, outside, with_schema=with_schema)
                    await brain.learn(taught.executions)
                    found += await _ask(brain, asked, with_schema=with_schema)
    print(f"kinds: {len(found)} asked", flush=True)
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
    if asked.family in kinds.NEVER:
        return False
    edits = {edit.kind for edit in option.edits}
    if "remove" in edits and trial.damage.kind != "unexpected parameter":
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
    of_kinds = sum(bool(each.family) for each in asked)
    share = (len(asked) - of_kinds) / of_kinds if 0 < of_kinds < len(asked) else 1.0
    rows = [
        Labelled(judged.features, right, (_LATER if place else 1.0) * (share if each.family else 1))
        for each in asked
        for place, (judged, right) in enumerate(each.judged)
    ]
    return fit_weights(rows)


def _print_families(asked: Sequence[Asked]) -> None:
    """How the confidence holds, as shipped and with weights that never saw the family."""
    for family in dict.fromkeys(each.family for each in asked):
        of = [each for each in asked if each.family == family]
        others = weights_of([each for each in asked if each.family != family])
        for name, calibration in (("shipped", shipped()), ("left out", others)):
            results = [_result(each, calibration) for each in of]
            sure = [each for each in results if each.confidence > SURE]
            harm = sum(not each.is_right for each in sure) / max(1, len(sure))
            right = sum(each.is_right for each in results) / len(of)
            print(f"  {family or 'of the tables':24} {name:9} n {len(of):6} right {right:.3f} "
                  f"coverage {len(sure) / len(of):.3f} harm {harm:.3f} "
                  f"ECE {calibration_error(results):.3f}", flush=True)  # fmt: skip


def _result(asked: Asked, calibration: Calibration) -> Result:
    """The first proposal by another calibration, of those whose effect was looked at."""
    known = {each.proposal.key: right for each, right in asked.judged}
    for each in judge(asked.question.case, calibration):
        if each.proposal.key in known and each.estimate.probability >= MIN_CONFIDENCE:
            attempt = Attempt(each.proposal.parameters, each.estimate.probability)
            right = known[each.proposal.key]
            return Result(asked.trial, (attempt,), ("right" if right else "fails",))
    return Result(asked.trial, (), ())


def _print_counts(seen: list[tuple[str, bool]]) -> None:
    counts: dict[str, Counter[bool]] = defaultdict(Counter)
    for kind, right in seen:
        counts[kind][right] += 1
    for kind, count in sorted(counts.items()):
        print(f"  {kind:28} {count[True]:5} right {count[False]:5} wrong")


async def _asked(*, with_kinds: bool) -> list[Asked]:
    embedder = await open_embedder()
    try:
        return await ask_all(embedder, with_kinds=with_kinds)
    finally:
        await embedder.close()


def main() -> None:
    """Count the priors and write them; then, in a process that has them, fit the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", action="store_true", help="fit the weights only")
    parser.add_argument("--kinds", action="store_true", help="fit on the new kinds as well")
    parser.add_argument("--families", action="store_true", help="leave out one by one, and print")
    options = parser.parse_args()
    asked = asyncio.run(_asked(with_kinds=options.kinds or options.families))
    if options.families:
        _print_families(asked)
        return
    if not options.weights:
        fitted = {"intercept": 0.0, "weights": {"likelihood": 1.0}, "priors": priors_of(asked)}
        FILE.write_text(f"{json.dumps(fitted, indent=1)}\n", encoding="utf-8")
        more = ["--kinds"] if options.kinds else []
        command = [sys.executable, "-m", "bench.quality.fit", "--weights", *more]
        subprocess.run(command, check=True)
        return
    calibration = weights_of(asked)
    fitted = json.loads(FILE.read_text(encoding="utf-8"))
    fitted |= {"intercept": calibration.intercept, "weights": calibration.weights}
    FILE.write_text(f"{json.dumps(fitted, indent=1)}\n", encoding="utf-8")
    print(f"written to {FILE.name}: {calibration.intercept} {calibration.weights}")


if __name__ == "__main__":
    main()
