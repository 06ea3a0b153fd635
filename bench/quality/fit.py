"""Fit the shipped calibration on the benchmark's own history.

    python -m bench.quality.fit --rows FOLDER --ask SET      (for each of `SETS`)
    python -m bench.quality.fit --rows FOLDER [--families | --trees | --blend]

Only the older sessions of each dataset are looked at, those that the tables of `bench.quality` use
as history. They are dealt out to folds; each fold is asked about with a memory of the others, with
and without schemas. `--priors` counts the priors by kind of edit, on the tables' mistakes. The
weights are fitted on what was asked before, in which the families of `bench.quality.kinds` that are
not kept for the end count as much as all others. `--families` writes nothing and prints how well
the confidence holds for each of them, as shipped and with weights fitted on all the others.
`--trees` fits the trees that judge whole calls, on all families but those of the latest batch that
are kept, and prints how surely wrong each family is with trees that never saw it. `--blend` fits
how likely what is not sure is, by the shipped trees.
Nothing of the test sessions, of tau-bench or of the APIs kept for the final check is used.
"""

import argparse
import asyncio
import json
import pickle
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from zlib import crc32

from sklearn.ensemble import HistGradientBoostingClassifier

from aftercall.models import SuggestRequest
from bench.quality import kinds, written
from bench.quality.brain import WORKSPACE, Brain, open_brain
from bench.quality.datasets import left_out, open_dataset
from bench.quality.fitting import (
    Judged,
    Labelled,
    Told,
    fit_blend,
    fit_priors,
    fit_trees,
    fit_weights,
    json_of_trees,
)
from bench.quality.methods import failed_call, record_earlier
from bench.quality.scores import SURE
from bench.quality.sessions import history, trials
from bench.quality.split import folds, split
from bench.quality.trial import Trial
from embeddings.embedders import open_embedder
from embeddings.protocol import Embedder
from retrieval.answer import Question
from retrieval.confidence import (
    MIN_CONFIDENCE,
    Blend,
    Calibration,
    RankedProposal,
    bar_of,
    bound,
    judge,
    judged,
    shipped,
    shipped_blend,
    unanimous,
    weakest,
)
from retrieval.edit_effects import apply_edits
from retrieval.edits import EditDoesNotApplyError, names_of
from retrieval.proposals.audit import shipped_trees
from retrieval.proposals.case import Option, value_sources_of
from retrieval.proposals.compose import merged, options_of

FILE = Path(__file__).parents[2] / "retrieval" / "calibration.json"
TREES = FILE.with_name("trees.json")
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
        return place if place in kinds.FAMILIES or place.startswith(_WRITTEN) else ""


@dataclass(frozen=True, slots=True)
class Seen:
    """A proposal with what its confidence is made of, and whether it was right."""

    features: tuple[float, ...]
    weakest: tuple[float, ...] | None
    most: float
    share: float
    right: bool
    judged: tuple[float, ...] | None = None

    def confidence(self, calibration: Calibration) -> float:
        """What a calibration makes of it, before the trees."""
        given = [self.features, *([self.weakest] if self.weakest else [])]
        return self.share * min(self.most, *map(calibration.probability, given))


@dataclass(frozen=True, slots=True)
class Row:
    """What became of a trial: its family (empty for those of the tables) and first proposals."""

    family: str
    kind: str
    never: bool
    seen: tuple[Seen, ...]


TABLES = ("bfcl", "github", "servers")
_WRITTEN = "written"
SETS = (*TABLES, "BFCL", "GitHub", "Seal-Tools", "Retail", _WRITTEN)
"""Those of the tables, the worlds of the kinds, and the calls that were written one by one."""


async def ask_set(embedder: Embedder, name: str, stride: int = 1) -> AsyncIterator[list[Asked]]:
    """Every damaged call of a set's older sessions, with what the memory of the others knows."""
    if name == _WRITTEN:
        async for found in _ask_written(embedder):
            yield found
        return
    if name not in TABLES:
        async for found in _ask_kinds(embedder, kinds.world_of(name), stride):
            yield found
        return
    async with open_dataset(name) as dataset:
        if dataset is None:
            raise SystemExit(f"the calibration is fitted on all datasets. {left_out(name)}")
        older, _ = split(dataset.sessions())
        for fold, (outside, inside) in enumerate(folds(older, FOLDS)):
            asked = (await trials(dataset, inside))[::stride]
            for with_schema in (True, False):
                recording = await history(dataset, outside, with_schema=with_schema)
                # In the first fold also as if nobody had called these tools yet.
                for learned in ([], recording.executions) if fold == 0 else (recording.executions,):
                    async with open_brain(embedder) as brain:
                        await brain.learn(learned)
                        yield await _ask(brain, asked, with_schema=with_schema)


async def _ask_kinds(
    embedder: Embedder, world: kinds.World, stride: int
) -> AsyncIterator[list[Asked]]:
    """The mistakes of all families that are not kept for the end, likewise in folds."""
    older, _ = split(world.dataset.sessions())
    for outside, inside in folds(older, 2):
        asked = kinds.trials(world, inside, kinds.of_world(world, kinds.FITTED_BY_TREES))[::stride]
        for with_schema in (True, False):
            async with open_brain(embedder) as brain:
                taught = await history(world.dataset, outside, with_schema=with_schema)
                await brain.learn(taught.executions)
                yield await _ask(brain, asked, with_schema=with_schema)


async def _ask_written(embedder: Embedder) -> AsyncIterator[list[Asked]]:
    """All calls of all sets, each set a family, with an empty memory."""
    for file in sorted(written.CASES.glob("*.jsonl")):
        trials = [
            replace(each, damage=replace(each.damage, parameter=f"{_WRITTEN} {file.stem}"))
            for each in written.trials(file)
        ]
        for with_schema in (True, False):
            async with open_brain(embedder) as brain:
                yield await _ask(brain, trials, with_schema=with_schema)


async def _ask(brain: Brain, trials: Sequence[Trial], *, with_schema: bool) -> list[Asked]:
    found, known = [], set[str]()
    for trial in trials:
        await record_earlier(brain, trial, known)
        request = SuggestRequest(execution=failed_call(trial, with_schema=with_schema))
        question = await brain.suggester.gather(WORKSPACE, request)
        found.append(Asked(trial, question, await _judged(trial, question)))
    return found


async def _judged(trial: Trial, question: Question) -> list[tuple[RankedProposal, bool]]:
    first = judge(question.case, Calibration())[:_FIRST]
    return [(each, await trial.judge(each.proposal.parameters) == "right") for each in first]


def row_of(asked: Asked) -> Row:
    """What is kept of a trial; of a call that holds no right repair nothing is right."""
    never = asked.family in kinds.NEVER
    seen = (
        Seen(
            ranked.features, weakest(ranked.features, ranked.proposal),
            bound(ranked.proposal), ranked.left, right and not never, ranked.judged,
        )
        for ranked, right in asked.judged
    )  # fmt: skip
    return Row(asked.family, asked.trial.damage.kind, never, tuple(seen))


def priors_of(asked: Sequence[Asked]) -> dict[str, tuple[float, float]]:
    """Beta counts by kind, over every option of every case."""
    seen = [
        (option.trials.kind, _option_is_right(option, each))
        for each in asked
        for whole, single in [options_of(each.question.case)]
        for option in merged([*whole, *(option for some in single.values() for option in some)])
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


def weights_of(rows: Sequence[Row]) -> Calibration:
    """The weights over the first proposals of every case, judged by what they do."""
    of_kinds = sum(bool(row.family) for row in rows)
    share = (len(rows) - of_kinds) / of_kinds if 0 < of_kinds < len(rows) else 1.0
    return fit_weights(
        [
            Labelled(seen.features, seen.right, (share if row.family else 1) * _weight(place, seen))
            for row in rows
            for place, seen in enumerate(row.seen)
        ]
    )


def _weight(place: int, seen: Seen) -> float:
    """A proposal that is bounded or doubted for other reasons says little of its features."""
    return (_LATER if place else 1.0) * seen.share * seen.most


_OF_TABLES = 3.0
"""How much more a kind of the tables counts, which memory and values are richer in."""


def trees_of(rows: Sequence[Row]) -> HistGradientBoostingClassifier:
    """Trees over the first proposals of every case; a kind counts by the root of its number."""
    many = Counter((row.family, row.kind) for row in rows)
    return fit_trees(
        [
            Judged(
                seen.judged,
                seen.right,
                (_LATER if place else 1.0) * (1.0 if row.family else _OF_TABLES)
                / sqrt(many[row.family, row.kind]),
            )
            for row in rows
            for place, seen in enumerate(row.seen)
            if seen.judged is not None
        ]
    )  # fmt: skip


def blend_of(rows: Sequence[Row]) -> Blend:
    """The blend over the first proposals, by those shipped trees that never saw a row's family."""
    many, fits = Counter((row.family, row.kind) for row in rows), shipped_trees()[1:]
    return fit_blend(
        [
            Told(
                fits[_eighth(row)].log_odds(vector), seen.share, seen.confidence(shipped()),
                seen.right, (1.0 if row.family else _OF_TABLES) / sqrt(many[row.family, row.kind]),
            )
            for row in rows
            for seen in row.seen[:1]
            if (vector := seen.judged) is not None
        ]
    )  # fmt: skip


def _eighth(row: Row) -> int:
    return crc32(row.family.encode()) % _PARTS


_PARTS = 8


def all_trees_of(rows: Sequence[Row]) -> list[HistGradientBoostingClassifier]:
    """Those on all rows, then those on all but one eighth of the families, for each eighth."""
    without = [[row for row in rows if _eighth(row) != part] for part in range(_PARTS)]
    return [trees_of(each) for each in (rows, *without)]


def print_batches(rows: Sequence[Row]) -> None:
    """For each batch of kinds, how sure it is and how wrong, with trees that never saw it."""
    batches = [
        row.family if row.family.startswith(_WRITTEN) else re.split("[ ,]", row.family)[0]
        for row in rows
    ]
    for batch in dict.fromkeys(batches):
        of = [row for row, name in zip(rows, batches, strict=True) if name == batch]
        fits = all_trees_of([row for row, at in zip(rows, batches, strict=True) if at != batch])
        for name, trees in (("no trees", []), ("one fit", fits[:1]), ("all fits", fits)):
            print(f"  {batch or 'of the tables':14} {name:8} {_shares(_surest(of, trees))}")


def _surest(
    rows: Sequence[Row], fits: Sequence[HistGradientBoostingClassifier]
) -> list[tuple[float, bool]]:
    """For each row the confidence in the first proposal, and whether it is right."""
    vectors = [seen.judged for row in rows for seen in row.seen if seen.judged is not None]
    odds = zip(*(each.decision_function(vectors) for each in fits), strict=True)
    first = []
    for row in rows:
        found = [(0.0, False)]
        for seen in row.seen:
            estimate = seen.confidence(shipped())
            if fits and seen.judged is not None:
                bar = bar_of(seen.judged)
                told = next(odds)
                blended = shipped_blend().probability(told[0], seen.share, estimate)
                likely = unanimous(iter(told), bar)
                estimate = judged(estimate, likely, bar, blended, is_doubted=seen.share < 1)
            found.append((estimate, seen.right))
        first.append(max(found, key=lambda each: each[0]))
    return first


def print_families(rows: Sequence[Row]) -> None:
    """How the confidence holds, as shipped and with weights that never saw the family."""
    for family in dict.fromkeys(row.family for row in rows):
        of = [row for row in rows if row.family == family]
        others = weights_of([row for row in rows if row.family != family])
        for name, calibration in (("shipped", shipped()), ("left out", others)):
            print(f"  {family or 'of the tables':24} {name:9} {_figures(of, calibration)}")


def _figures(rows: Sequence[Row], calibration: Calibration) -> str:
    first = [
        max(((seen.confidence(calibration), seen.right) for seen in row.seen), default=(0.0, False))
        for row in rows
    ]
    return _shares(first)


def _shares(first: Sequence[tuple[float, bool]]) -> str:
    told = [(sure, right) for sure, right in first if sure >= MIN_CONFIDENCE]
    sure = [right for confidence, right in told if confidence > SURE]
    gaps = 0.0
    for tenth in range(10):
        inside = [each for each in told if min(9, int(10 * each[0])) == tenth]
        gaps += abs(sum(confidence - right for confidence, right in inside))
    harm = sum(not right for right in sure) / max(1, len(sure))
    right, asked = sum(right for _, right in told) / len(first), len(first)
    return (f"n {asked:6} right {right:.3f} coverage {len(sure) / asked:.3f} "
            f"harm {harm:.3f} ECE {gaps / max(1, len(told)):.3f}")  # fmt: skip


def _print_counts(seen: list[tuple[str, bool]]) -> None:
    counts: dict[str, Counter[bool]] = defaultdict(Counter)
    for kind, right in seen:
        counts[kind][right] += 1
    for kind, count in sorted(counts.items()):
        print(f"  {kind:28} {count[True]:5} right {count[False]:5} wrong")


async def _asked(name: str, stride: int, file: Path | None = None) -> list[Asked]:
    """What was asked about a set; its rows are written as they come, for it may take long."""
    embedder = await open_embedder()
    found, rows = list[Asked](), list[Row]()
    try:
        async for asked in ask_set(embedder, name, stride):
            found += asked
            rows += map(row_of, asked)
            if file is not None:
                file.write_bytes(pickle.dumps(rows))  # noqa: ASYNC240 - nobody waits
                print(f"{name}: {len(rows)} asked so far", flush=True)
    finally:
        await embedder.close()
    return found


def main() -> None:
    """Ask about a set; count priors; fit the weights on what was asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ask", choices=SETS, help="ask about one set, and keep its rows")
    parser.add_argument("--stride", type=int, default=1, help="ask about every so manieth call")
    parser.add_argument("--rows", type=Path, required=True, help="the folder of the rows")
    parser.add_argument("--priors", action="store_true", help="count priors of the tables anew")
    parser.add_argument("--families", action="store_true", help="leave out one by one, and print")
    parser.add_argument("--trees", action="store_true", help="fit the trees of whole calls")
    parser.add_argument("--blend", action="store_true", help="fit the blend of what is not sure")
    options = parser.parse_args()
    if options.priors:
        asked = [each for name in TABLES for each in asyncio.run(_asked(name, options.stride))]
        fitted = json.loads(FILE.read_text(encoding="utf-8")) | {"priors": priors_of(asked)}
        FILE.write_text(f"{json.dumps(fitted, indent=1)}\n", encoding="utf-8")
    elif options.ask:
        asyncio.run(_asked(options.ask, options.stride, options.rows / f"{options.ask}.rows"))
    else:
        files = sorted(options.rows.glob("*.rows"))
        rows = [row for file in files for row in pickle.loads(file.read_bytes())]  # noqa: S301
        of_weights = [row for row in rows if not row.family or row.family in kinds.FITTED]
        if options.trees:
            print_batches(rows)
            TREES.write_text(json_of_trees(all_trees_of(rows)), encoding="utf-8")
            return
        if options.blend:
            fitted = json.loads(FILE.read_text(encoding="utf-8"))
            fitted |= {"blend": blend_of(rows).model_dump()}
            FILE.write_text(f"{json.dumps(fitted, indent=1)}\n", encoding="utf-8")
            return
        if options.families:
            print_families(of_weights)
            return
        calibration = weights_of(of_weights)
        fitted = json.loads(FILE.read_text(encoding="utf-8"))
        fitted |= {"intercept": calibration.intercept, "weights": calibration.weights}
        FILE.write_text(f"{json.dumps(fitted, indent=1)}\n", encoding="utf-8")
        print(f"written to {FILE.name}: {calibration.intercept} {calibration.weights}")


if __name__ == "__main__":
    main()
