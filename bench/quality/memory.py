"""What the memory remembers: `docs/figures/memory.md`, of the parts mended, again and natural."""

from pathlib import Path

from bench.quality import again, bfcl, mended, natural
from bench.quality.trial import Json
from embeddings.protocol import Embedder

MISTAKES = 300


async def measure(embedder: Embedder, folder: Path) -> None:
    """Measure all three, print and write."""
    lines = ["# What the memory remembers", "", "`python -m bench.quality --only memory`", ""]
    cases = mended.cases()
    asked = await mended.measure(embedder, cases)
    lines += ["## Mended alike by five agents, asked by a sixth, after so many sessions", ""]
    lines += [*mended.figures(asked), ""]
    missed = [each for each in asked if each.sessions == max(mended.SESSIONS) and not each.right]
    names = sorted({each.case.name for each in missed if each.case.meant is not None})
    lines += [f"Not right first after {max(mended.SESSIONS)}: {', '.join(names) or 'none'}.", ""]
    taught = [each for each in cases if each.meant is not None]
    failed = await mended.after_failures(embedder, taught)
    lines += ["## Confidence after reported failures of the suggestion", ""]
    lines += [*mended.failure_figures(failed), ""]
    lines += ["## The same mistake a second and a third time (BFCL's development APIs)", ""]
    if bfcl.available():
        rows = {
            name: again.row(await again.measure(embedder, with_schema=with_schema, most=MISTAKES))
            for name, with_schema in (("schema", True), ("no schema", False))
        }
        lines += [*_table(rows), ""]
    else:
        lines += ["Left out: `pip install --no-deps bfcl-eval mpmath`.", ""]
    lines += ["## Natural failures in time order", "", natural.__doc__.split("\n\n", 1)[1], ""]
    there = [name for name in natural.SETS if natural.available(name)]
    lines += _table({name: natural.row_of(await natural.replay(embedder, name)) for name in there})
    page = "\n".join(lines).rstrip() + "\n"
    print(page)
    (folder / "memory.md").write_text(page, encoding="utf-8")


def _table(rows: dict[str, Json]) -> list[str]:
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    return [
        f"| | {' | '.join(rows)} |",
        "|---" * (len(rows) + 1) + "|",
        *(
            f"| {name} | {' | '.join(str(row.get(name, '-')) for row in rows.values())} |"
            for name in names
        ),
    ]
