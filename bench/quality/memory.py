"""What the memory remembers: `docs/figures/memory.md`, of again, mistakes and natural."""

from pathlib import Path

from bench import data
from bench.quality import again, bfcl, mistakes, natural
from bench.quality.tables import columns_table
from embeddings.protocol import Embedder

MISTAKES = 300


async def measure(embedder: Embedder, folder: Path) -> None:
    """Measure all three, print and write."""
    lines = ["# What the memory remembers", ""]
    lines += ["## The same mistake a second and a third time (BFCL's development APIs)", ""]
    if bfcl.available():
        rows = {
            name: again.row(await again.measure(embedder, with_schema=with_schema, most=MISTAKES))
            for name, with_schema in (("schema", True), ("no schema", False))
        }
        lines += [*columns_table(rows), ""]
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
    lines += columns_table(rows)
    page = "\n".join(lines).rstrip() + "\n"
    print(page)
    (folder / "memory.md").write_text(page, encoding="utf-8")
