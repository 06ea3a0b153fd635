"""Fit the shipped calibration on the benchmark's own history.

    python -m bench.quality.fit --rows FOLDER --ask SET      (for each of `SETS` but Retail)
    python -m bench.quality.fit --rows FOLDER

Only the older sessions of each dataset are looked at, those that the tables of `bench.quality` use
as history. They are dealt out to folds; each fold is asked about with a memory of the others, with
and without schemas. The words of others (validators, the world, the given half of dialects and
field) and the values of sessions are asked about with an empty memory, what was rewritten and
siblings of a tool after one lesson or two. Without `--ask` the judge's model is fitted on what was
asked before, and how sure it is of each source that it never saw goes into `docs/figures/judge.md`.
Of the mistakes that were put aside (`held`) each third is there, so that all of these are asked.
`--priors` counts the priors by kind of edit, on the tables' mistakes.
Nothing of the test sessions, of tau-bench or of the APIs kept for the final check is used.
"""

import argparse
import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from aftercall.models import SuggestRequest
from bench.quality import dialects, held, rewrites, session_values, siblings, worlds, written
from bench.quality.brain import WORKSPACE, Brain, open_brain
from bench.quality.datasets import left_out, open_dataset
from bench.quality.fit_judge import Row, Seen, fit_judge, rows_of_text, text_of_rows
from bench.quality.fitting import fit_priors, json_of_model, text_of_priors
from bench.quality.laws.asking import Asker
from bench.quality.methods import failed_call, record_earlier
from bench.quality.sessions import GoldCall, history, trials
from bench.quality.split import folds, split
from bench.quality.tables import UNREPAIRABLE
from bench.quality.trial import Damage, Json, Trial, Verdict
from embeddings.embedders import open_embedder
from embeddings.protocol import Embedder
from retrieval.answers.answer import Question
from retrieval.answers.judge.model import FILE
from retrieval.answers.judge.ranking import RankedProposal, judge
from retrieval.answers.proposers.case import Option, value_sources_of
from retrieval.answers.proposers.compose import merge_options, options_of
from retrieval.knowledge.confidence import Scaling
from retrieval.knowledge.rewrites.edit_effects import apply_edits
from retrieval.knowledge.rewrites.edits import EditDoesNotApplyError, names_of
from retrieval.knowledge.values.scalars import same_value

PRIORS = Path(__file__).parents[2] / "retrieval" / "answers" / "proposers" / "priors.toml"
POINTS = PRIORS.parents[2] / FILE
PAGE = Path(__file__).parents[2] / "docs" / "figures" / "judge.md"
FOLDS = 4
_FIRST = 3
"""Proposals of a case that are kept."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A trial, what it was answered from, and what its first proposals would have done."""

    trial: Trial
    question: Question
    judged: list[tuple[RankedProposal, bool]]


TABLES = ("bfcl", "github", "servers")
_WRITTEN = "written"
WORDS = {"validators": dialects.validators, "dialects": dialects.dialects, "field": dialects.field,
         "world": dialects.world}  # fmt: skip
"""Errors in the words of real libraries and of public bug reports."""
_SESSION = "session"
TAUGHT = ("rewrites", "siblings")
"""What two agents taught, asked by a third one about the same tool, and about a sibling of it."""
SETS = (*TABLES, *worlds.NAMES, _WRITTEN, *WORDS, _SESSION, *TAUGHT)
"""Those of the tables, what was put aside of the worlds (Retail is kept out of the fit), the calls
that were written one by one, the words of others, and values of the session."""


async def ask_set(embedder: Embedder, name: str, stride: int = 1) -> AsyncIterator[list[Asked]]:
    """Yield every damaged call of a set's older sessions, with what the others taught."""
    if name == _WRITTEN:
        found = _ask_written(embedder)
    elif name in TAUGHT:
        found = _ask_taught(embedder, name)
    elif name in WORDS or name == _SESSION:
        found = _ask_untaught(embedder, session_trials() if name == _SESSION else word_trials(name))
    elif name in TABLES:
        found = _ask_table(embedder, name, stride)
    else:
        found = _ask_held(embedder, worlds.world_of(name), stride)
    async for each in found:
        yield each


async def _ask_untaught(embedder: Embedder, found: Sequence[Trial]) -> AsyncIterator[list[Asked]]:
    for with_schema in (True, False):
        async with open_brain(embedder) as brain:
            yield await _ask(brain, found, with_schema=with_schema)


async def _ask_table(embedder: Embedder, name: str, stride: int) -> AsyncIterator[list[Asked]]:
    async with open_dataset(name) as dataset:
        if dataset is None:
            raise SystemExit(f"the model is fitted on all datasets. {left_out(name)}")
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


async def _ask_held(
    embedder: Embedder, world: worlds.World, stride: int
) -> AsyncIterator[list[Asked]]:
    """Yield what was put aside of a world for the fit, likewise in folds."""
    for part in held.FITTED:
        asked = held.held_trials(world, part)[::stride]
        for with_schema in (True, False):
            async with open_brain(embedder) as brain:
                taught = held.held_history(world, part, with_schema=with_schema)
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


async def _ask_taught(embedder: Embedder, name: str) -> AsyncIterator[list[Asked]]:
    """Yield calls that a third agent makes after one or two taught how to repair such a call."""
    async with open_brain(embedder) as brain:
        asker = Asker(brain)
        cases = siblings.cases() if name == "siblings" else rewrites.cases()
        for case in cases:
            workspace = await asker.workspace_of(case)
            request = SuggestRequest(execution=case.question(), annotations=case.hints)
            question = await brain.suggester.gather(workspace, request, principal=case.principal)
            right = case.right or ()
            trial = Trial(
                session=case.session, tool=case.tool, server=case.server, damaged=case.call,
                gold=right[0] if right else {}, error=case.error, context="", schema=case.schema,
                damage=_damage(name, case.name, right), judge=partial(_judge_taught, right),
            )  # fmt: skip
            yield [Asked(trial, question, await _judged(trial, question))]


async def _judge_taught(right: Sequence[Json], parameters: Json) -> Verdict:
    is_meant = any(rewrites.is_right(parameters, each) for each in right)
    return "right" if is_meant else "wrong success"


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
    return Damage(kind, source if gold else UNREPAIRABLE)


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
    first = judge(question.case, Scaling())[:_FIRST]
    return [(each, await trial.judge(each.proposal.parameters) == "right") for each in first]


def row_of(source: str, asked: Asked) -> Row:
    """Return what is kept of a trial; of a call that holds no right repair nothing is right."""
    family = asked.trial.damage.parameter
    never = family == UNREPAIRABLE
    seen = (Seen(ranked.signals, right and not never) for ranked, right in asked.judged)
    source = family if family.startswith(_WRITTEN) else source
    return Row(source, asked.trial.damage.kind, tuple(seen))


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
    if trial.damage.parameter == UNREPAIRABLE:
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
            rows += (row_of(name, each) for each in asked)
            if file is not None:
                file.write_text(text_of_rows(rows))  # noqa: ASYNC240 - nobody waits
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
        asyncio.run(_asked(options.ask, options.stride, options.rows / f"{options.ask}.jsonl"))
    else:
        files = sorted(options.rows.glob("*.jsonl"))
        rows = [row for file in files for row in rows_of_text(file.read_text(encoding="utf-8"))]
        model, text = fit_judge(rows)
        print(text)
        PAGE.write_text(text, encoding="utf-8")
        POINTS.write_text(json_of_model(model), encoding="utf-8")


if __name__ == "__main__":
    main()
