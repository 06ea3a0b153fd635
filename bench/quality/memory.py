"""What the memory remembers: `docs/figures/memory.md`, of mended, again, mistakes and natural."""

from collections.abc import Sequence
from pathlib import Path

from bench import data
from bench.quality import ablation, again, bfcl, mended, mistakes, natural
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
    lines += ["## With one part off", "", *await _ablation(embedder, cases), ""]
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


async def _ablation(embedder: Embedder, cases: Sequence[mended.Case]) -> list[str]:
    """Right first after two and ten sessions, BFCL's third time, and the natural repairs of tau."""
    rows: dict[str, Json] = {}
    for part in [ablation.Part(ablation.NOTHING, ()), *ablation.memory_parts()]:
        with ablation.switched_off(part):
            asked = await mended.measure(embedder, cases, (2, 10))
            row: Json = {}
            for number in (2, 10):
                of = [each.right for each in asked if each.sessions == number and each.case.meant]
                row[f"right first after {number}"] = round(sum(of) / len(of), 2)
            if bfcl.available():
                times = await again.measure(embedder, with_schema=True, most=MISTAKES // 3)
                row["right, time 1, 2, 3"] = ", ".join(
                    str(sum(each[at].right for each in times)) for at in range(len(again.TIMES))
                )
            if mistakes.available():
                found = mistakes.figures((await mistakes.measure(embedder))[0])["all"]
                row |= {f"real servers: {name}": found[name] for name in _OF_SERVERS}
            if natural.available("tau_airline"):
                found = natural.row_of(await natural.replay(embedder, "tau_airline"))
                row["tau: equal value"] = found["equal value of these"]
            rows[part.name] = row
    return _table(rows)


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
