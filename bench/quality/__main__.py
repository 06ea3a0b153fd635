"""How good repairs are, on real tools and schemas, into `docs/figures/repair.md`.

    python -m bench.quality [--only NAME ...]

`make bench-quality` installs what it needs beside the project (`bfcl-eval`, matplotlib), then runs
it.
A dataset that is not there is named and left out. `--only` measures some parts and writes nothing,
but for `repair.md`, where all parts of it are named, and `choosing`, `regret`, `boundaries`,
`memory`, `kinds`, `traps`, `attacks`, `secrets`, `similar`, `patterns`, `laws` and `rewrites`,
which have pages of their own in `docs/figures/`. The parts `final` (APIs that nothing was developed
on), `kinds-final`, `kinds-fresh-kept`, `kinds-wild-kept`, `kinds-late-kept` and `kinds-sixth-kept`
(kinds of mistakes likewise), `kinds-fresh`, `kinds-wild`, `kinds-late`, `kinds-sixth`,
`mistakes` (a section of `memory`), `laws` and `rewrites` are measured only when they are named;
`laws` takes `--laws`, `--cases` and `--show`, `rewrites` takes `--show`.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence

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
    kinds,
    laws,
    memory,
    mistakes,
    patterns,
    regret_report,
    rewrites,
    secret_masks,
    session_values,
    siblings,
    similar,
    traps,
    written,
)
from bench.quality.brain import Recording
from bench.quality.learning import learning_curve
from bench.quality.plots import plot_learning, plot_reliability
from bench.quality.report import ALL, Figures, as_json, by_kind, final_page, markdown
from bench.quality.sessions import history, trials
from bench.quality.split import split
from embeddings.embedders import open_embedder
from embeddings.protocol import Embedder


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


async def _tables(embedder: Embedder, figures: Figures, name: str, title: str) -> None:
    async with datasets.open_dataset(name) as dataset:
        if dataset is None:
            figures.skipped.append(datasets.left_out(name))
        else:
            figures.results[title] = await datasets.all_methods(embedder, dataset)


async def _bfcl(embedder: Embedder, figures: Figures) -> None:
    await _tables(embedder, figures, "bfcl", "BFCL")


async def _github(embedder: Embedder, figures: Figures) -> None:
    await _tables(embedder, figures, "github", "GitHub's schemas")


async def _servers(embedder: Embedder, figures: Figures) -> None:
    await _tables(embedder, figures, "servers", "Real MCP servers")


async def _final(embedder: Embedder, _: Figures) -> None:
    async with datasets.open_dataset("bfcl", final=True) as dataset:
        if dataset is not None:
            results = await datasets.all_methods(embedder, dataset)
            page = final_page(Figures({"TravelAPI and TradingBot": results}))
            (FOLDER / "repair-final.md").write_text(page, encoding="utf-8")


async def _learning(embedder: Embedder, figures: Figures) -> None:
    async with datasets.open_dataset("bfcl") as dataset:
        if dataset is not None:
            older, test = split(dataset.sessions())
            figures.learning = await learning_curve(embedder, older, await trials(dataset, test))


async def _tau(embedder: Embedder, figures: Figures) -> None:
    figures.tau = await datasets.tau_figures(embedder)
    if figures.tau is None:
        figures.skipped.append(datasets.left_out("tau"))


async def _refusals(embedder: Embedder, figures: Figures) -> None:
    async with datasets.open_dataset("github") as dataset:
        older = [] if dataset is None else split(dataset.sessions())[0]
        taught = None if dataset is None else await history(dataset, older, with_schema=True)
    figures.refusals = await datasets.refusal_figures(embedder, taught or Recording([]))


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


async def _memory(embedder: Embedder, _: Figures) -> None:
    await memory.measure(embedder, FOLDER)


async def _mistakes(embedder: Embedder, _: Figures) -> None:
    print("\n".join(await mistakes.page(embedder)))


def _of_page(name: str) -> Callable[[Embedder, Figures], Awaitable[None]]:
    async def step(embedder: Embedder, _: Figures) -> None:
        await kinds.measure(embedder, FOLDER, name)

    return step


async def _traps(embedder: Embedder, _: Figures) -> None:
    await traps.write(embedder, FOLDER)


async def _attacks(embedder: Embedder, _: Figures) -> None:
    await attacks.write(embedder, FOLDER)


async def _check(embedder: Embedder, _: Figures) -> None:
    await check.measure(embedder, FOLDER)


async def _written(embedder: Embedder, _: Figures) -> None:
    await written.measure(embedder, FOLDER)


async def _dialects(embedder: Embedder, _: Figures) -> None:
    await dialects.measure(embedder, list(dialects.dialects()))


async def _field(embedder: Embedder, _: Figures) -> None:
    await dialects.measure(embedder, list(dialects.field()))


async def _rewrites(embedder: Embedder, figures: Figures) -> None:
    await rewrites.write(embedder, FOLDER, figures.laws.show)


async def _session(embedder: Embedder, _: Figures) -> None:
    await session_values.measure(embedder, FOLDER)


async def _siblings(embedder: Embedder, _: Figures) -> None:
    await siblings.measure(embedder, FOLDER)


async def _validators(embedder: Embedder, _: Figures) -> None:
    await dialects.measure(embedder, list(dialects.validators()))


async def _laws(embedder: Embedder, figures: Figures) -> None:
    await laws.write(embedder, FOLDER, figures.laws)


async def _similar(embedder: Embedder, _: Figures) -> None:
    await similar.measure(embedder, FOLDER)


async def _patterns(embedder: Embedder, _: Figures) -> None:
    await patterns.measure(embedder, FOLDER)


async def _secrets(_: Embedder, __: Figures) -> None:
    secret_masks.measure(FOLDER)


STEPS: dict[str, Callable[[Embedder, Figures], Awaitable[None]]] = {
    "bfcl": _bfcl, "learning": _learning, "github": _github, "servers": _servers, "tau": _tau,
    "refusals": _refusals, "classifier": _classifier, "final": _final,
    "choosing": _choosing, "regret": _regret, "boundaries": _boundaries, "memory": _memory,
    **{name: _of_page(name) for name in kinds.PAGES},
    "traps": _traps, "attacks": _attacks, "check": _check, "mistakes": _mistakes,
    "secrets": _secrets, "written": _written, "dialects": _dialects, "field": _field,
    "validators": _validators, "laws": _laws, "rewrites": _rewrites, "similar": _similar,
    "patterns": _patterns, "siblings": _siblings, "session": _session,
}  # fmt: skip

OF_THEIR_OWN = {
    "final",
    "choosing",
    "regret",
    "boundaries",
    "memory",
    *kinds.PAGES,
    "traps",
    "attacks",
    "check",
    "mistakes",
    "secrets",
    "written",
    "dialects",
    "field",
    "validators",
    "laws",
    "rewrites",
    "similar",
    "patterns",
    "siblings",
    "session",
}
ONLY_NAMED = {
    "final", *kinds.PAGES, "mistakes", "dialects", "field", "validators",
    "laws", "rewrites", "siblings", "session",
} - {"kinds"}  # fmt: skip
"""Steps that print and write pages of their own; the others are of `repair.md`."""
OF_REPAIR = set(STEPS) - OF_THEIR_OWN - ONLY_NAMED


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
    figures = asyncio.run(
        measure(options.only or [name for name in STEPS if name not in ONLY_NAMED], of_laws)
    )
    page = markdown(figures)
    if not options.only or set(options.only) - OF_THEIR_OWN:
        print(page)
    if options.only and not set(options.only) >= OF_REPAIR:
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
    if figures.learning:
        plot_learning(FOLDER / "repair-learning.svg", figures.learning)


if __name__ == "__main__":
    main()
