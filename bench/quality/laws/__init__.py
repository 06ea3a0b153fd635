"""Laws: relations between the answers about a case and about a changed case, over many cases.

    python -m bench.quality --only laws [--laws bystander,bytes] [--cases N] [--show K]

A law needs no expected value, and so finds what nobody foresaw (metamorphic testing, Chen 1998;
Segura 2016). With `--laws` nothing is written.
"""

from pathlib import Path

from bench import data
from bench.quality.brain import open_brain
from bench.quality.laws import report, runner
from bench.quality.laws.asking import Asker
from bench.quality.laws.options import CASES, Options
from bench.quality.laws.sources import stream
from embeddings.protocol import Embedder

NAMES = tuple(runner.BY_NAME)

__all__ = ["CASES", "NAMES", "Options", "measure", "write"]


async def measure(embedder: Embedder, options: Options) -> list[runner.LawResult]:
    """Compare answers for each of the chosen laws, each with a memory of its own."""
    results, cases = [], list(stream())
    for law in runner.chosen(options.laws):
        async with open_brain(embedder) as brain:
            result = await runner.run_law(
                Asker(brain), law, cases, count=options.cases, seconds=options.seconds,
                keep=max(1, options.show),
            )  # fmt: skip
        results.append(result)
        print(f"{law.name}: {result.broken:,} of {result.count:,} broken, {result.seconds:.0f} s",
              flush=True)  # fmt: skip
        for kind, tally in sorted(result.tallies.items()):
            for found in tally.smallest[: options.show]:
                print(f"  {kind}", *report.readable(found), sep="\n  ")
    return results


async def write(embedder: Embedder, folder: Path, options: Options) -> None:
    """Measure; where all laws were measured, write the page."""
    results = await measure(embedder, options)
    names = ("field/mcp.jsonl", "dialects", "github_mcp.tools.jsonl.gz",
             "sealtools.tools.jsonl.gz")  # fmt: skip
    skipped = [data.left_out(name, name) for name in names if not data.is_there(name)]
    if not options.laws:
        print(report.write(results, folder, options.command, skipped))
