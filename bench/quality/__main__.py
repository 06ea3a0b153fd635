"""How good repairs are, on real tools and schemas, into `docs/figures/repair.md`.

    python -m bench.quality [--only NAME ...]

`make bench-quality` installs what it needs beside the project (`bfcl-eval`, matplotlib), then runs
it.
A dataset that is not there is named and left out. `--only` measures some parts: those of
`repair.md` (`OF_REPAIR`) write it where all of them are named, the others write pages of their own
(`PAGES`). What `ONLY_NAMED` lists is measured only when it is named: sets that were put aside, sets
that print their figures, `laws` (with `--laws`, `--cases`, `--show`) and `rewrites` (`--show`).
"""

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

from bench.figures import FOLDER, stamped
from bench.quality import (
    attacks,
    boundaries_report,
    check,
    choosing,
    choosing_data,
    classifier,
    datasets,
    dialects,
    held,
    laws,
    memory,
    mistakes,
    patterns,
    proposers,
    regret_report,
    rewrites,
    secret_masks,
    session_values,
    siblings,
    similar,
    traps,
    written,
)
from bench.quality.plots import plot_reliability
from bench.quality.report import ALL, Figures, as_json, by_kind, final_page, markdown
from embeddings.embedders import open_embedder
from embeddings.protocol import Embedder

Step = Callable[[Embedder, Figures], Awaitable[None]]


async def measure(chosen: Sequence[str], of_laws: laws.Options) -> Figures:
    """The figures of the chosen steps."""
    figures = Figures(laws=of_laws)
    embedder = await open_embedder()
    try:
        for name, step in STEPS.items():
            if name not in chosen:
                continue
            started = time.perf_counter()
            with stamped(f"python -m bench.quality --only {name}"):
                await step(embedder, figures)
            print(f"{name}: {time.perf_counter() - started:.0f} s", flush=True)
    finally:
        await embedder.close()
    return figures


def _tables_of(name: str, title: str) -> Step:
    async def step(embedder: Embedder, figures: Figures) -> None:
        async with datasets.open_dataset(name) as dataset:
            if dataset is None:
                figures.skipped.append(datasets.left_out(name))
            else:
                figures.results[title] = await datasets.all_methods(embedder, dataset)

    return step


def _page_by(write: Callable[[Embedder, Path], Awaitable[None]]) -> Step:
    return lambda embedder, _: write(embedder, FOLDER)


def _rows_of(rows: Callable[[], Iterator[dialects.Row]]) -> Step:
    return lambda embedder, _: dialects.measure(embedder, list(rows()))


async def _final(embedder: Embedder, _: Figures) -> None:
    async with datasets.open_dataset("bfcl", final=True) as dataset:
        if dataset is not None:
            results = await datasets.all_methods(embedder, dataset)
            page = final_page(Figures({"TravelAPI and TradingBot": results}))
            (FOLDER / "repair-final.md").write_text(page, encoding="utf-8")


async def _classifier(embedder: Embedder, figures: Figures) -> None:
    figures.classifier = await classifier.figures(embedder)


async def _choosing(embedder: Embedder, figures: Figures) -> None:
    found = await choosing.measure(embedder)
    choosing.write(found, FOLDER)
    figures.skipped += found.skipped


async def _regret(embedder: Embedder, figures: Figures) -> None:
    found = await regret_report.measure(embedder)
    if found is None:
        figures.skipped.append(f"regret: {choosing_data.left_out('metatool')}")
    else:
        regret_report.write(found, FOLDER)


async def _boundaries(embedder: Embedder, _: Figures) -> None:
    boundaries_report.write(await boundaries_report.measure(embedder), FOLDER)


async def _mistakes(embedder: Embedder, _: Figures) -> None:
    print("\n".join(await mistakes.page(embedder)))


async def _rewrites(embedder: Embedder, figures: Figures) -> None:
    await rewrites.write(embedder, FOLDER, figures.laws.show)


async def _laws(embedder: Embedder, figures: Figures) -> None:
    await laws.write(embedder, FOLDER, figures.laws)


async def _secrets(_: Embedder, __: Figures) -> None:
    secret_masks.measure(FOLDER)


OF_REPAIR: dict[str, Step] = {
    "bfcl": _tables_of("bfcl", "BFCL"),
    "github": _tables_of("github", "GitHub's schemas"),
    "servers": _tables_of("servers", "Real MCP servers"),
    "classifier": _classifier,
}  # fmt: skip
"""Parts of `repair.md`."""
PAGES: dict[str, Step] = {
    "choosing": _choosing, "regret": _regret, "boundaries": _boundaries,
    "memory": _page_by(memory.measure), "held": _page_by(held.measure),
    "traps": _page_by(traps.write),
    "attacks": _page_by(attacks.write), "check": _page_by(check.measure), "secrets": _secrets,
    "written": _page_by(written.measure), "similar": _page_by(similar.measure),
    "patterns": _page_by(patterns.measure),
}  # fmt: skip
"""Steps that print and write pages of their own."""
ONLY_NAMED: dict[str, Step] = {
    "final": _final, "mistakes": _mistakes, "dialects": _rows_of(dialects.dialects),
    "field": _rows_of(dialects.field), "validators": _rows_of(dialects.validators),
    "world": _rows_of(dialects.world), "laws": _laws,
    "rewrites": _rewrites, "siblings": _page_by(siblings.measure),
    "session": _page_by(session_values.measure), "proposers": _page_by(proposers.measure),
}  # fmt: skip
"""The same, of steps that are measured only when they are named."""
STEPS = OF_REPAIR | PAGES | ONLY_NAMED


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only",
        nargs="*",
        choices=STEPS,
        help="these only; writes repair.md where all its parts are named",
    )
    parser.add_argument(
        "--laws", default="", help=f"these only; writes nothing: {', '.join(laws.NAMES)}"
    )
    parser.add_argument("--cases", type=int, default=laws.CASES, help="comparisons of each law")
    parser.add_argument(
        "--show",
        type=int,
        default=0,
        help="print so many of the smallest cases that break a law, or of the rewrites that fail",
    )
    options = parser.parse_args()
    chosen = [name for name in options.laws.split(",") if name]
    of_laws = laws.Options(chosen, options.cases, options.show)
    figures = asyncio.run(measure(options.only or [*OF_REPAIR, *PAGES], of_laws))
    page = markdown(figures)
    if not options.only or OF_REPAIR.keys() & set(options.only):
        print(page)
    if options.only and not OF_REPAIR.keys() <= set(options.only):
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "repair.md").write_text(page, encoding="utf-8")
    text = json.dumps(as_json(figures), indent=1)
    (FOLDER / "repair.json").write_text(f"{text}\n", encoding="utf-8")
    if methods := figures.results.get("BFCL"):
        shown = {
            "with the schema": methods["Aftercall, schema"], "without": methods["Aftercall"]
        }  # fmt: skip
        plot_reliability(FOLDER / "repair-reliability.svg", shown)
        right = by_kind(methods["Aftercall, schema"])[ALL].right_at_1
        print(f"right@1 {right:.3f}; written to {FOLDER.name}/repair.md")


if __name__ == "__main__":
    main()
