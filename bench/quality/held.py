"""Mistakes that were put aside as data: 1,800 to 3,400 calls of each of four worlds.

The files of `held/` hold what six rounds of generators made of right calls before these went. A
row of `*.cases.jsonl.gz` is a wrong call that its tool refused: session and place of the right call
in its data set, kind and family, `sent`, the error, and `meant` where that is not the right call
itself. Of what stands in the right call, `sent` and `meant` hold a reference (`{"=": "/path"}`, a
JSON Pointer), so that no call of a data set is copied. `*.taught.jsonl.gz` holds the mistakes that
the sessions of the history made and mended, which teach.

Three parts: `fit 0` and `fit 1` are asked from what the other half of the older sessions taught,
each third call, and what the judge is fitted on; `check` is of sessions that no fit has seen, each
third call too, and all of the families that were kept to the last (`sixth, kept`).

    python -m bench.quality --only held
"""

import gzip
import json
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

from bench.quality.brain import Recording, open_brain
from bench.quality.methods import aftercall, results_of
from bench.quality.sessions import AGENTS, GoldCall, Session, record, record_mistake
from bench.quality.split import folds, split
from bench.quality.tables import ABOUT, UNREPAIRABLE, table
from bench.quality.trial import Damage, Json, Trial, Verdict
from bench.quality.worlds import World, worlds, worlds_left_out
from embeddings.protocol import Embedder

FOLDER = Path(__file__).with_name("held")
Part = Literal["fit 0", "fit 1", "check"]
FITTED: tuple[Part, ...] = ("fit 0", "fit 1")
_REFERENCE = "="


def rows(name: str) -> Iterator[Json]:
    """Yield the rows of a file of `held/` by its name without endings."""
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def fill_references(form: Any, call: Json) -> Any:
    """Return a form with each reference replaced by what stands there in a right call."""
    if isinstance(form, list):
        return [fill_references(each, call) for each in form]
    if not isinstance(form, dict):
        return form
    if form.keys() == {_REFERENCE}:
        return _value_at(call, form[_REFERENCE])
    return {name: fill_references(each, call) for name, each in form.items()}


def _value_at(value: Any, pointer: str) -> Any:
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


def held_trials(world: World, part: Part) -> list[Trial]:
    """Return the wrong calls of a part, in the order in which they are asked."""
    sessions = {session.name: session for session in world.tools.sessions()}
    return [
        _trial(world, sessions[row["session"]], row)
        for row in rows(f"{world.name}.cases")
        if row["part"] == part
    ]


def held_history(world: World, part: Part, *, with_schema: bool) -> Recording:
    """Return what a part is asked from: sessions of agents who err as the rows say, and mend it."""
    older, _ = split(world.tools.sessions())
    if part != "check":
        older, _ = folds(older, len(FITTED))[FITTED.index(part)]
    mistakes = {
        (row["session"], row["at"]): row
        for row in rows(f"{world.name}.taught")
        if row["part"] == part
    }
    recording = Recording([])
    for session in older:
        agent = random.Random(f"history/{session.name}").choice(AGENTS)
        for call in session.calls:
            schema = world.tools.schema_of(call) if with_schema else None
            if row := mistakes.get((session.name, call.sequence)):
                record_mistake(recording, _trial(world, session, row), agent, schema)
            record(recording, call, agent, schema)
    return recording


def _trial(world: World, session: Session, row: Json) -> Trial:
    call, earlier = session.calls[row["at"]], session.calls[: row["at"]]
    gold = fill_references(row.get("meant", {_REFERENCE: ""}), call.parameters)
    meant = GoldCall(
        call.session, call.sequence, call.tool, call.server, gold, call.context, call.result,
        call.state,
    )  # fmt: skip
    family = row.get("family", "")
    judge = _judge_guess if family == UNREPAIRABLE else partial(_judge, world, meant)
    return Trial(
        session=call.session, tool=call.tool, server=call.server,
        damaged=fill_references(row["sent"], gold), gold=gold, error=row["error"],
        context=call.context, schema=world.tools.schema_of(call) or None,
        damage=Damage(row.get("kind", ""), family), judge=judge, sequence=call.sequence,
        earlier=tuple(earlier),
    )  # fmt: skip


async def _judge(world: World, call: GoldCall, parameters: Json) -> Verdict:
    return world.verdict(call, parameters)


async def _judge_guess(_: Json) -> Verdict:
    """Judge a repair of a call that holds none: nobody asked for what is sent instead."""
    return "wrong success"


async def measure(embedder: Embedder, folder: Path) -> None:
    """Ask about the part `check` of each world; print and write `held.md`."""
    parts = ["# Mistakes that were put aside", f"{_PAGE} {ABOUT}"]
    parts += [f"{line}." for line in worlds_left_out()]
    for world in worlds():
        asked, found = held_trials(world, "check"), []
        for with_schema in (True, False):
            async with open_brain(embedder) as brain:
                taught = held_history(world, "check", with_schema=with_schema)
                await brain.learn(taught.executions)
                found.append(await results_of(asked, aftercall(brain, with_schema=with_schema)))
        parts += [f"## {world.name}", table(*found, by_kind=False)]
        print("\n\n".join(parts[-2:]), flush=True)
    (folder / "held.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


_PAGE = """
Calls of the part `check` of `bench/quality/held`, of sessions that nothing was learned from or
fitted on, by the round that made them; the judge was fitted on the same families in other sessions
of BFCL, GitHub and Seal-Tools, but for `sixth, kept` (other kinds, tools and voices), and on
nothing of Retail. The memory has right calls of other sessions and other kinds of mistakes, mended.
""".strip()
