"""What the memory remembers: `docs/figures/memory.md`, of mended, again, mistakes and natural."""

from pathlib import Path

from bench import data
from bench.quality import again, bfcl, mended, mistakes, natural
from bench.quality.trial import Json
from embeddings.protocol import Embedder

MISTAKES = 300
_OF_SERVERS = ("time 1: right first", "time 3: right first", mistakes.CORRECTED)


async def measure(embedder: Embedder, folder: Path) -> None:
    """Measure all four, print and write."""
    lines = ["# What the memory remembers", ""]
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
    lines += [
        "## Agents' mistakes on seven real MCP servers",
        "",
        *await mistakes.page(embedder),
        "",
    ]
    lines += ["## Natural failures in time order", "", natural.__doc__.split("\n\n", 1)[1], ""]
    rows = {}
    for name in natural.SETS:
        if not natural.available(name):
            lines += [f"{data.left_out(name, *natural.files_of(name))}.", ""]
            continue
        found = await natural.replay(embedder, name)
        half = len(found) // 2
        rows |= {name: natural.row_of(found), f"{name}, newer half": natural.row_of(found[half:])}
    lines += _table(rows)
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
