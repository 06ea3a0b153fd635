"""Calls before they are made: good ones that must pass, and wrong ones that may be mended.

    python -m bench.quality --only check

Good calls are those of sessions that the store has not seen, in every world that is installed; the
store has learned the older sessions, in which agents erred and mended their calls. Wrong calls are
those of `held`, of the same sessions.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

from scipy.stats import beta

from aftercall.models import Call, CheckRequest, CheckResponse
from aftercall.redaction import Redactor
from aftercall.reflection.retry_rules import apply_changes
from bench.quality.brain import WORKSPACE, Brain, open_brain
from bench.quality.held import held_history, held_trials
from bench.quality.split import split
from bench.quality.trial import Json
from bench.quality.worlds import worlds, worlds_left_out
from embeddings.protocol import Embedder
from retrieval.answers.check import answer_check
from retrieval.knowledge.memory import Memory
from retrieval.knowledge.rewrites.edit_effects import changed_names

_AGENT = "agent-asking"


@dataclass
class Checked:
    """What was said of some calls."""

    verdicts: Counter[str] = field(default_factory=Counter)
    right: int = 0
    partly: int = 0
    """Repairs of one of two mistakes: what they changed is right, and the other one is left."""
    milliseconds: list[float] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)

    def line(self, name: str, *, good: bool) -> str:
        """A row of the table."""
        said, count = self.verdicts, self.verdicts.total()
        touched = said["repair"] + said["block"]
        cuts = quantiles(self.milliseconds, n=100)
        rest = (
            f"{touched} ({100 * upper(touched, count):.2f} %)"
            if good
            else f"{self.right} + {self.partly} of {said['repair']}"
        )
        return (
            f"| {name} | {count:,} | {said['pass']:,} | {said['warn']:,} | {rest} | "
            f"{cuts[49]:.2f} | {cuts[98]:.2f} |"
        )


def upper(hits: int, count: int) -> float:
    """The upper end of the exact 95 % interval of a share (Clopper and Pearson, 1934)."""
    return 1.0 if hits >= count else float(beta.ppf(0.975, hits + 1, count - hits))


async def measure(embedder: Embedder, folder: Path) -> None:
    """Measure; print and write `check.md`."""
    good, wrong, every = [], [], list[float]()
    for world in worlds():
        _, test = split(world.tools.sessions())
        calls = [call for session in test for call in session.calls]
        asked = held_trials(world, "check")
        for with_schema in (True, False):
            way = f"{world.name}, {'with' if with_schema else 'without'} schema"
            async with open_brain(embedder) as brain:
                taught = held_history(world, "check", with_schema=with_schema)
                await brain.learn(taught.executions)
                passed, mended = Checked(), Checked()
                for call in calls:
                    schema = world.tools.schema_of(call) if with_schema else None
                    made = _call(call.tool, call.server, call.parameters, call.session, schema)
                    said = await _ask(brain, made, passed)
                    if said.verdict in ("repair", "block"):
                        passed.changed.append(f"{call.tool}: {'; '.join(said.reasons)}")
                for trial in asked:
                    schema = trial.schema if with_schema else None
                    made = _call(trial.tool, trial.server, trial.damaged, trial.session, schema)
                    said = await _ask(brain, made, mended)
                    sent = apply_changes(trial.damaged, said.changes)
                    if sent is not None and await trial.judge(sent) == "right":
                        mended.right += 1
                    elif sent is not None:
                        names = changed_names(trial.damaged, sent)
                        mended.partly += all(sent.get(n) == trial.gold.get(n) for n in names)
            every += [*passed.milliseconds, *mended.milliseconds]
            good.append(passed.line(way, good=True))
            wrong.append(mended.line(way, good=False))
            for line in passed.changed[:10]:
                print(f"changed or blocked, {way}: {line}")
    page = _page(good, wrong, median(every))
    print(page)
    (folder / "check.md").write_text(page, encoding="utf-8")


def _call(tool: str, server: str, parameters: Json, session: str, schema: Json | None) -> Call:
    return Call(
        agent=_AGENT, tool_name=tool, server_name=server, parameters=parameters,
        session_id=session, input_schema=schema,
    )  # fmt: skip


async def _ask(brain: Brain, call: Call, into: Checked) -> CheckResponse:
    started = time.perf_counter()
    said = await answer_check(
        WORKSPACE, CheckRequest(call=call), memory=_memory(brain), redactor=Redactor(), quorum=2
    )
    into.milliseconds.append((time.perf_counter() - started) * 1000)
    into.verdicts[said.verdict] += 1
    return said


def _memory(brain: Brain) -> Memory:
    return brain.suggester.memory  # what the service gives to both


def _page(good: Sequence[str], wrong: Sequence[str], middle: float) -> str:
    times = "p50, ms | p99, ms |"
    return "\n".join(
        (
            "# Before the call",
            "",
            f"{__doc__.split(chr(10), 1)[0]} Beside what "
            "was changed or blocked stands the upper end of its 95 % interval. Over all calls, "
            f"good and wrong, the median is {middle:.2f} ms.",
            "",
            *(f"{line}.\n" for line in worlds_left_out()),
            "## Good calls that the store has not seen",
            "",
            f"| world | calls | passed | warned | changed or blocked | {times}",
            "|---|---:|---:|---:|---:|---:|---:|",
            *good,
            "",
            "## Wrong calls",
            "",
            "*Partly* is one of two mistakes, where the schema does not show the other: what was "
            "changed is as it was meant.",
            "",
            f"| world | calls | passed | warned | repaired right, of repaired | {times}",
            "|---|---:|---:|---:|---:|---:|---:|",
            *wrong,
            "",
        )
    )
