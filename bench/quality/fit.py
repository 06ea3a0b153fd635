"""Fit the shipped calibration on the benchmark's own history.

    python -m bench.quality.fit --rows FOLDER --ask SET      (for each of `SETS`)
    python -m bench.quality.fit --rows FOLDER

Only the older sessions of each dataset are looked at, those that the tables of `bench.quality` use
as history. They are dealt out to folds; each fold is asked about with a memory of the others, with
and without schemas. The words of others (validators, the given half of dialects and field) and the
values of sessions are asked about with an empty memory. Without `--ask` the judge's model is fitted
on what was asked before, and how sure it is of a source that it never saw is printed for each. The
weights of what was mended alike are those of an earlier fit, until learning is made anew.
`--priors` counts the priors by kind of edit, on the tables' mistakes.
Nothing of the test sessions, of tau-bench or of the APIs kept for the final check is used.
"""

import argparse
import asyncio
import pickle
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from pathlib import Path
from zlib import crc32

import numpy as np
from scipy.stats import beta
from sklearn.ensemble import HistGradientBoostingClassifier

from aftercall.models import SuggestRequest
from bench.quality import dialects, kinds, session_values, written
from bench.quality.brain import WORKSPACE, Brain, open_brain
from bench.quality.datasets import left_out, open_dataset
from bench.quality.fitting import (
    Combined,
    Labelled,
    fit_combination,
    fit_priors,
    fit_trees,
    json_of_model,
    text_of_priors,
)
from bench.quality.methods import failed_call, record_earlier
from bench.quality.scores import SURE
from bench.quality.sessions import GoldCall, history, trials
from bench.quality.split import folds, split
from bench.quality.trial import Damage, Json, Trial, Verdict
from embeddings.embedders import open_embedder
from embeddings.protocol import Embedder
from retrieval.answers.answer import Question
from retrieval.answers.judge.model import Model, stratum_of
from retrieval.answers.judge.ranking import RankedProposal, is_learned, judge
from retrieval.answers.judge.signals import SIGNALS
from retrieval.answers.proposers.case import Option, value_sources_of
from retrieval.answers.proposers.compose import merge_options, options_of
from retrieval.knowledge.confidence import MIN_CONFIDENCE, Calibration, apply_logistic
from retrieval.knowledge.rewrites.edit_effects import apply_edits
from retrieval.knowledge.rewrites.edits import EditDoesNotApplyError, names_of
from retrieval.knowledge.values.scalars import same_value

PRIORS = Path(__file__).parents[2] / "retrieval" / "answers" / "proposers" / "priors.toml"
TREES = PRIORS.parents[1] / "judge" / "trees.json"
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
        is_own = place.startswith(_WRITTEN) or place in (*WORDS, _SESSION)
        return place if place in kinds.FAMILIES or is_own else ""


@dataclass(frozen=True, slots=True)
class Seen:
    """A proposal with its signals, and whether it was right."""

    signals: tuple[float, ...]
    learned: bool
    right: bool


@dataclass(frozen=True, slots=True)
class Row:
    """What became of a trial: its family (empty for those of the tables) and first proposals."""

    family: str
    kind: str
    never: bool
    seen: tuple[Seen, ...]
    source: str = ""
    """The set that it is of; each written set is one of its own."""


TABLES = ("bfcl", "github", "servers")
_WRITTEN = "written"
WORDS = {"validators": dialects.validators, "dialects": dialects.dialects, "field": dialects.field}
"""Errors in the words of real libraries and of public bug reports."""
_SESSION = "session"
SETS = (*TABLES, "BFCL", "GitHub", "Seal-Tools", "Retail", _WRITTEN, *WORDS, _SESSION)
"""Those of the tables, the worlds of the kinds, the calls that were written one by one, the words
of others, and values of the session."""


async def ask_set(embedder: Embedder, name: str, stride: int = 1) -> AsyncIterator[list[Asked]]:
    """Every damaged call of a set's older sessions, with what the memory of the others knows."""
    if name == _WRITTEN:
        async for found in _ask_written(embedder):
            yield found
        return
    if name in WORDS or name == _SESSION:
        trials_of = session_trials() if name == _SESSION else word_trials(name)
        for with_schema in (True, False):
            async with open_brain(embedder) as brain:
                yield await _ask(brain, trials_of, with_schema=with_schema)
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


def word_trials(name: str) -> list[Trial]:
    """The rows of a set of words, as trials; those whose arguments are an object."""
    return [
        Trial(
            session=row.id, tool=row.tool, server=row.form, damaged=row.call,
            gold=dict(row.gold[0]) if row.gold else {}, error=row.error, context="",
            schema=row.schema, damage=_damage(name, row.kind, row.gold),
            judge=partial(_judge, row.gold),
        )
        for row in WORDS[name]()
        if isinstance(row.call, dict)
    ]  # fmt: skip


def session_trials() -> list[Trial]:
    """The cases of `session_values`, with what their sessions did before."""
    return [
        Trial(
            session=case["name"], tool=case["tool"].partition("/")[2],
            server=case["tool"].partition("/")[0], damaged=case["call"],
            gold=case["gold"][0] if case["gold"] else {}, error={"message": case["error"]},
            context="", schema=case["schema"],
            damage=_damage(_SESSION, case["kind"], case["gold"]),
            judge=partial(_judge, case["gold"]),
            earlier=tuple(
                GoldCall(case["name"], place, *reversed(call["tool"].split("/", 1)),
                         call["parameters"], "", call["result"])
                for place, call in enumerate(case["before"])
            ),
        )
        for case in (*session_values.cases(), *session_values.cases("later"))
    ]  # fmt: skip


def _damage(source: str, kind: str, gold: Sequence[Json]) -> Damage:
    return Damage(kind, source if gold else kinds.UNREPAIRABLE)


async def _judge(gold: Sequence[Json], parameters: Json) -> Verdict:
    return "right" if any(same_value(parameters, each) for each in gold) else "wrong success"


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
        Seen(ranked.signals, is_learned(ranked.proposal), right and not never)
        for ranked, right in asked.judged
    )
    return Row(asked.family, asked.trial.damage.kind, never, tuple(seen))


def priors_of(asked: Sequence[Asked]) -> dict[str, tuple[float, float]]:
    """Beta counts by kind, over every option of every case."""
    seen = [
        (option.trials.kind, _option_is_right(option, each))
        for each in asked
        for whole, single in [options_of(each.question.case)]
        for option in merge_options(
            [*whole, *(option for some in single.values() for option in some)]
        )
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


_OF_TABLES = 3.0
"""How much more a kind of the tables counts, which memory and values are richer in."""
_PARTS = 8


def _labelled(rows: Sequence[Row], *, learned: bool) -> list[Labelled]:
    """The first proposals of every case; a kind counts by the root of its number."""
    many = Counter((row.family, row.kind) for row in rows)
    return [
        Labelled(
            seen.signals,
            seen.right,
            (_LATER if place else 1.0) * (1.0 if row.family else _OF_TABLES)
            / sqrt(many[row.family, row.kind]),
        )
        for row in rows
        for place, seen in enumerate(row.seen)
        if seen.learned == learned
    ]  # fmt: skip


def _part(row: Row) -> str:
    """An eighth of the families; a kind of mistake is in one of them, whatever set it is of."""
    return str(crc32(row.family.encode()) % _PARTS)


def _source(row: Row) -> str:
    return row.source


def fits_of(rows: Sequence[Row]) -> list[HistGradientBoostingClassifier]:
    """Trees on all rows, then on all but one eighth of the families, for each eighth."""
    without = [[row for row in rows if _part(row) != str(part)] for part in range(_PARTS)]
    return [fit_trees(_labelled(each, learned=False)) for each in (rows, *without) if each]


def unseen(rows: Sequence[Row], part_of: Callable[[Row], str]) -> Iterator[tuple[Row, list[float]]]:
    """What fits that never saw a row's part say of its first proposal, for each row."""
    for part in sorted(set(map(part_of, rows))):
        of = [row for row in rows if part_of(row) == part and row.seen and not row.seen[0].learned]
        if not of:
            continue
        fits = fits_of([row for row in rows if part_of(row) != part])
        vectors = np.array([row.seen[0].signals for row in of])
        odds = np.array([fit.decision_function(vectors) for fit in fits]).T
        yield from zip(of, odds.tolist(), strict=True)


def combination_of(found: Sequence[tuple[Row, list[float]]]) -> Model:
    """The scaling of what fits say together, fitted where none of them had seen the family."""
    many = Counter((row.family, row.kind) for row, _ in found)
    return fit_combination(
        [
            Combined(odds, row.seen[0].right,
                     (1.0 if row.family else _OF_TABLES) / sqrt(many[row.family, row.kind]))
            for row, odds in found
        ]
    )  # fmt: skip


_HARM = 0.025
"""The share of sure repairs that may be wrong, as Jeffreys' prior estimates it: half a wrong one is
added to those that were seen. About the .02 of 4-rules.md where there are many, stricter with few.
"""
_ENOUGH = 15
"""Sure repairs of which none was wrong that are enough for a small stratum."""


def bars_of(found: Sequence[tuple[Row, list[float]]], model: Model) -> dict[str, float]:
    """For each stratum the least probability from which on at most `_HARM` was wrong, if any."""
    strata: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for row, odds in found:
        first = row.seen[0]
        stratum = stratum_of(first.signals)
        if not stratum.startswith("semantic") and not stratum.endswith("doubted"):
            strata[stratum].append((apply_logistic(model.combine(odds)), first.right))
    bars = {}
    for stratum, judged in sorted(strata.items()):
        for bar in np.arange(SURE, 0.99, 0.005):
            above = [right for probability, right in judged if probability > bar]
            wrong = sum(not right for right in above)
            is_small = wrong == 0 and len(above) >= _ENOUGH
            if is_small or (wrong + 0.5) / (len(above) + 1) <= _HARM:
                bars[stratum] = round(float(bar), 3)
                break
    print("  bars:", bars)
    return bars


def print_sources(found: Sequence[tuple[Row, list[float]]], model: Model) -> None:
    """For each source, how sure and how wrong the model is that never saw it."""
    batches: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for row, odds in found:
        first = row.seen[0]
        held = model.held(model.combine(odds), stratum_of(first.signals))
        schema = "no schema" if first.signals[SIGNALS.index("refused")] < 0 else "schema"
        batches[f"{row.source}, {schema}"].append((apply_logistic(held), first.right))
    everything = [each for batch in batches.values() for each in batch]
    for name, first in (*sorted(batches.items()), ("all", everything)):
        print(f"  {name:26} {_shares(first)}")


def _shares(first: Sequence[tuple[float, bool]]) -> str:
    told = [(sure, right) for sure, right in first if sure >= MIN_CONFIDENCE]
    sure = [right for confidence, right in told if confidence > SURE]
    gaps = 0.0
    for tenth in range(10):
        inside = [each for each in told if min(9, int(10 * each[0])) == tenth]
        gaps += abs(sum(confidence - right for confidence, right in inside))
    harm = sum(not right for right in sure) / max(1, len(sure))
    wrong = len(sure) - sum(sure)
    upper = float(beta.ppf(0.95, wrong + 1, len(sure) - wrong)) if wrong < len(sure) else 1.0
    right, asked = sum(right for _, right in told) / len(first), len(first)
    return (f"n {asked:6} right {right:.3f} coverage {len(sure) / asked:.3f} harm {harm:.4f} "
            f"(at most {upper:.3f}) ECE {gaps / max(1, len(told)):.3f}")  # fmt: skip


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
    parser.add_argument("--priors", action="store_true", help="count priors of the tables again")
    options = parser.parse_args()
    if options.priors:
        asked = [each for name in TABLES for each in asyncio.run(_asked(name, options.stride))]
        text = PRIORS.read_text(encoding="utf-8")
        PRIORS.write_text(text_of_priors(text, priors_of(asked)), encoding="utf-8")
    elif options.ask:
        asyncio.run(_asked(options.ask, options.stride, options.rows / f"{options.ask}.rows"))
    else:
        files = sorted(options.rows.glob("*.rows"))
        rows = [
            replace(row, source=row.family if row.family.startswith(_WRITTEN) else file.stem)
            for file in files
            for row in pickle.loads(file.read_bytes())  # noqa: S301 - written above
        ]
        by_source = list(unseen(rows, _source))
        found = [*unseen(rows, _part), *by_source]
        model = combination_of(found)
        model = model._replace(bars=bars_of(found, model))
        print_sources(by_source, model)
        TREES.write_text(json_of_model(fits_of(rows), model), encoding="utf-8")
        print(f"written to {TREES.name}")


if __name__ == "__main__":
    main()
