"""How long the garbage collector holds everything up while a service learns.

    python -m bench.pauses [--executions 24000] [--write]

The history of `bench/history.py` is recorded and learned in this process, with vectors by hashing,
twice: with the collector set as the service had it before (10,000 new objects), and as it is now
(`GarbageKeeper`). Pauses are processor time of the thread that collects, so that what else the
machine does is not in them: it holds the interpreter lock meanwhile, and no answer is made.

`--write` puts `pauses.md` into `docs/figures/`.
"""

import argparse
import asyncio
import gc
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aftercall.models import Execution
from bench import history
from bench.figures import FOLDER, made_by
from bench.scale import batches
from ingest import pacing
from ingest.indexer import Indexer
from service.context import Context, open_context
from service.lifecycle import GarbageKeeper, settle_memory
from service.settings import (
    DataSettings,
    EmbeddingSettings,
    IndexingSettings,
    NightlySettings,
    Settings,
)

BEFORE = (10_000, 10, 10)
BATCH = 800
"""Events that are learned together, as beside a thousand a second."""


class Pauses:
    """Each look of the collector: how long it took, in milliseconds, and what it found."""

    def __init__(self) -> None:
        self.ms: list[float] = []
        self.found = 0
        self._began = 0.0

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        """Note one, as `gc.callbacks` wants it."""
        if phase == "start":
            self._began = time.thread_time()
            return
        self.ms.append((time.thread_time() - self._began) * 1000)
        self.found += info["collected"]


async def measured(executions: int, *, keeps: bool) -> Pauses:
    """Return the pauses while so many executions are learned, with a keeper or as it was."""
    with tempfile.TemporaryDirectory(prefix="aftercall-pauses-") as name:
        settings = Settings(
            data=DataSettings(dir=Path(name)),
            embedding=EmbeddingSettings(model="hashing"),
            nightly=NightlySettings(every_h=0),
            indexing=IndexingSettings(here=False),
        )
        async with open_context(settings) as context:
            await _record(context, executions)
            settle_memory()
            if not keeps:
                gc.set_threshold(*BEFORE)
            return await _learn(context, GarbageKeeper() if keeps else None)


async def _record(context: Context, executions: int) -> None:
    begins = datetime.now(UTC) - timedelta(days=28)
    for batch in batches(history.executions(executions, start=begins), 1_000):
        await context.intake.accept_executions(
            "default", [Execution.model_validate(each) for each in batch]
        )


async def _learn(context: Context, keeper: GarbageKeeper | None) -> Pauses:
    indexer = Indexer(
        store=context.store,
        memory=context.memory,
        index=context.index,
        embedder=context.embedder,
        batch=BATCH,
    )
    pauses = Pauses()
    gc.callbacks.append(pauses)
    rested_at = time.monotonic()
    try:
        while await indexer.learn_step():
            if keeper is not None and time.monotonic() - rested_at > pacing.GIVE_BACK_S:
                keeper.tend(is_idle=False)
                rested_at = time.monotonic()
    finally:
        gc.callbacks.remove(pauses)
        await indexer.close()
    return pauses


def page(before: Pauses, now: Pauses, executions: int) -> str:
    """Return the Markdown page."""
    lines = [
        "# Pauses of the garbage collector",
        "",
        made_by("python -m bench.pauses --write"),
        "",
        f"While {executions:,} executions are learned, in processor time; all threads wait.",
        "",
        "| | looks | median ms | longest ms | together ms | objects found |",
        "|---|---|---|---|---|---|",
    ]
    for name, each in (("10,000 new objects", before), ("as the service does now", now)):
        lines.append(
            f"| {name} | {len(each.ms)} | {statistics.median(each.ms):.1f} | {max(each.ms):.1f} "
            f"| {sum(each.ms):,.0f} | {each.found:,} |"
        )
    return "\n".join([*lines, ""])


async def _both(executions: int) -> tuple[Pauses, Pauses]:
    before = await measured(executions, keeps=False)
    return before, await measured(executions, keeps=True)


def main() -> None:
    """Measure, print, and write when told to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--executions", type=int, default=24_000)
    parser.add_argument("--write", action="store_true", help="write docs/figures/pauses.md")
    args = parser.parse_args()
    sys.setswitchinterval(pacing.SWITCH_S)
    text = page(*asyncio.run(_both(args.executions)), args.executions)
    print(text)
    if args.write:
        (FOLDER / "pauses.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
