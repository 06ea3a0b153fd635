"""What a user of the gateway gets: calls of real MCP servers through it, with the true service.

    python -m bench.quality.gateway_calls

The mistakes of `bench.quality.mistakes` on seven servers (npm and PyPI), each made three times,
with a memory that starts empty; an agent whose call is not repaired then sends the right one. Good
calls are those of the sessions of `bench.quality.servers`. In shadow nothing is done, and the agent
mends its call itself. Tools are found as the gateway does with `--tools search`, on real
catalogues.

Writes `docs/figures/gateway.md`.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from fastmcp import Client

from aftercall import AsyncClient, Recorder
from aftercall.gateway.config import GatewayConfig
from aftercall.gateway.server import build_gateway
from aftercall.gateway.tool_search import ToolSearch, tools_named_in
from bench import data
from bench import gateway as overhead
from bench.figures import made_by
from bench.quality import mistakes, servers
from bench.quality.again import TIMES
from bench.quality.choosing_data import SETS, load
from bench.quality.choosing_pool import ask_all
from bench.quality.choosing_scores import macro
from bench.quality.trial import Json, Trial
from bench.service import serving
from embeddings.embedders import open_embedder
from embeddings.models import BUNDLED_TOKENIZER
from embeddings.protocol import Embedder

PAGE = Path(__file__).parents[2] / "docs" / "figures" / "gateway.md"
_MAX_WAITS = 3_000
_KINDS = ("as sent", "repaired before", "repaired after", "advised", "left")
_CATALOGUES = {"GitHub": "github_mcp", "MetaTool": "metatool", "Seal-Tools": "sealtools"}


@asynccontextmanager
async def opened(running: servers.Servers, **own: Any) -> AsyncIterator["Through"]:
    """A client on a gateway in front of the same servers, with a service of its own.

    `own` is the handling of each server.
    """
    folder = running.world.parent
    configuration = servers.configuration_of(folder) | mistakes.configuration_of(folder)
    for each in configuration.values():
        each["aftercall"] = own
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        with (
            serving(home / "data", home / "log") as service,
            (home / "servers.log").open("w", encoding="utf-8") as log,
            Recorder(base_url=service.url, spool_dir=home / "spool") as recorder,
        ):
            async with AsyncClient(service.url, retries=0) as api:
                gateway = build_gateway(
                    GatewayConfig.from_dict({"mcpServers": configuration}),
                    client=api, recorder=recorder, errlog=log,
                )  # fmt: skip
                async with Client(gateway) as client:
                    yield Through(client, recorder, service.url)


@dataclass(frozen=True, slots=True)
class Through:
    """A client on a gateway, and the service behind it."""

    client: Client[Any]
    recorder: Recorder
    url: str

    async def learned(self) -> None:
        """Wait until all that was recorded is known."""
        await asyncio.to_thread(self.recorder.flush)
        async with httpx2.AsyncClient(base_url=self.url) as api:
            for _ in range(_MAX_WAITS):
                if not (await api.get("/status")).json()["pendingIndexing"]:
                    return
                await asyncio.sleep(0.1)
        raise TimeoutError("the service does not learn what was recorded")


async def made(
    running: servers.Servers, client: Client[Any], trial: Trial, agent: str, *, right: bool = False
) -> tuple[str, bool, bool]:
    """How a call ended, whether it had the meant effect, and whether the repair was announced."""
    exposed = f"{trial.server}_{trial.tool}"
    meta = {"aftercall/agent": agent, "aftercall/session": f"{agent}/{trial.damage.name}"}
    if trial.context:
        meta["aftercall/context"] = trial.context
    sent = trial.gold if right else trial.damaged
    try:
        result = await client.call_tool_mcp(exposed, sent, meta=meta)
        texts = [getattr(block, "text", "") for block in result.content]
        facts = (result.meta or {}).get("aftercall") or {}
        if result.is_error:
            is_advised = any(text.startswith("Suggestions from Aftercall") for text in texts)
            return ("advised" if is_advised else "left"), False, is_advised
        is_said = texts[-1].startswith("Aftercall ")
        content = result.content[:-1] if is_said else result.content
        effect = running.effect_of(exposed, content, result.structured_content or {})
    finally:
        running.restore(exposed)
    meant = await running.run(trial.server, trial.tool, trial.gold)
    kind = "as sent"
    if facts.get("repaired"):
        before = facts["note"] == "repaired before the call"
        kind = "repaired before" if before else "repaired after"
    return kind, effect == meant, is_said


async def repairs(running: servers.Servers) -> tuple[list[str], str]:
    """The rows of the three times, and what became of good calls."""
    found, _ = await mistakes.mistakes(running)
    rows = []
    async with opened(running) as through:
        client = through.client
        for number, agent in enumerate(TIMES):
            ended: Counter[str] = Counter()
            right: Counter[str] = Counter()
            said = 0
            for mistake in found:
                trial = mistake.times[number]
                kind, is_right, is_said = await made(running, client, trial, agent)
                ended[kind] += 1
                right[kind] += is_right
                said += is_said and kind.startswith("repaired")
                if not kind.startswith("repaired"):
                    await made(running, client, trial, agent, right=True)
            await through.learned()
            done = ended["repaired before"] + ended["repaired after"]
            fixed = right["repaired before"] + right["repaired after"]
            counts = " | ".join(str(ended[kind]) for kind in _KINDS)
            rows.append(
                f"| {('first', 'again', 'another agent')[number]} | {len(found)} | {counts} | "
                f"{fixed} of {done} | {said} of {done} |"
            )
        good, changed = 0, 0
        calls = [call for session in running.sessions() for call in session.calls]
        for call in calls:
            exposed = f"{call.server}_{call.tool}"
            result = await client.call_tool_mcp(exposed, call.parameters)
            running.restore(exposed)
            good += not result.is_error
            changed += bool(((result.meta or {}).get("aftercall") or {}).get("repaired"))
    return rows, f"{good} of {len(calls)} worked at the first try, {changed} were changed."


async def shadow(running: servers.Servers) -> list[str]:
    """What would have been done about the same mistakes, beside what the agent does."""
    found, _ = await mistakes.mistakes(running)
    async with opened(running, mode="shadow") as through:
        for number, agent in enumerate(TIMES):
            for mistake in found:
                for right in (False, True):
                    await made(running, through.client, mistake.times[number], agent, right=right)
            await through.learned()
        async with httpx2.AsyncClient(base_url=through.url) as api:
            counts = (await api.get("/stats/reflection")).json()["shadow"]

    def row(label: str, name: str) -> str:
        worked, failed = counts[name]["successes"], counts[name]["failures"]
        return f"| {label} | {worked + failed} | {worked} | {failed} |"

    after = sum(counts["same"].values()) + sum(counts["other"].values())
    return [
        row("watched", "watched"),
        row("would have been changed before the call", "repairedBefore"),
        row("would not have been made", "blocked"),
        f"| would have been repaired after they failed | {counts['repairedAfter']} | | |",
        row(f"... next calls of the agent ({after}): just that", "same"),
        row("... something else", "other"),
    ]


async def search(embedder: Embedder) -> list[str]:
    """The tool list in tokens, and how often the right tool is among the first."""
    from tokenizers import Tokenizer  # noqa: PLC0415

    tokenizer = Tokenizer.from_file(str(BUNDLED_TOKENIZER))
    tokenizer.no_truncation()

    def tokens(value: Any) -> int:
        return len(tokenizer.encode(json.dumps(value)).ids)

    async with AsyncClient("http://127.0.0.1:9") as nobody:
        own = await ToolSearch(nobody, lambda name: (None, name)).transform_tools([])
    three = tokens([_listed(t.name, t.description or "", t.parameters) for t in own])
    rows = []
    for title, name in _CATALOGUES.items():
        if not data.is_there(f"{name}.tools.jsonl.gz"):
            print(data.left_out(title, f"{name}.tools.jsonl.gz"), file=sys.stderr)
            continue
        tools = _catalogue(name)
        names = [each["name"] for each in tools]
        every = tokens(tools)
        ranked = {each: tools_named_in(each, names, str) for each in names}
        asked = {each: tools_named_in(f"call {each} for me", names, str) for each in names}
        exact = sum(found[:1] == [each] for each, found in ranked.items())
        within = sum(each in found[:5] for each, found in asked.items())
        hits = "-"
        if name in SETS and (chosen := load(name)) is not None:
            _, test = await ask_all(embedder, chosen)
            found = [
                list(
                    dict.fromkeys(
                        [
                            *tools_named_in(one.question.text, names, str),
                            *one.by_relevance(None, past=False),
                        ]
                    )
                )
                for one in test
            ]
            hits = f"{macro(found, [one.question for one in test]).hit_5:.3f} ({len(test)})"
        rows.append(
            f"| {title} | {len(tools):,} | {every:,} | {three:,} | {exact / len(names):.3f} | "
            f"{within / len(names):.3f} | {hits} |"
        )
    return rows


def _listed(name: str, description: str, schema: Any) -> Json:
    return {"name": name, "description": description, "inputSchema": schema}


def _catalogue(name: str) -> list[Json]:
    return [
        _listed(
            row.get("tool") or row["name"],
            row.get("description") or "",
            row.get("schema") or row.get("inputSchema") or {},
        )
        for row in data.rows(f"{name}.tools.jsonl.gz")
    ]


def page(rows: Sequence[str], good: str, watched: Sequence[str], found: Sequence[str]) -> str:
    """The page, in Markdown."""
    return "\n".join(
        (
            "# The gateway",
            "",
            f"{made_by('python -m bench.quality.gateway_calls')} "
            + " ".join((__doc__ or "").split("\n\n")[2].split()),
            "",
            "## Mistakes on seven real servers",
            "",
            "| time | calls | worked as sent | repaired before | repaired after | "
            "failed, with advice | failed | repaired, as meant | repaired, and announced |",
            "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
            *rows, "", f"Good calls: {good}", "",
            "## In shadow", "", "| calls | n | worked | failed |", "|---|---:|---:|---:|",
            *watched, "",
            "## `--tools search`",
            "",
            "Tokens are those of the embedder's own tokenizer; a model's differ, the ratio hardly. "
            "Exact names: first when asked for by name alone; among five in a sentence (names of "
            "one word are none there). hit@5 is macro over tools, of questions in the test half.",
            "",
            "| catalogue | tools | tokens, all | tokens, search | exact name | in a sentence | "
            "hit@5 (questions) |",
            "|---|---:|---:|---:|---:|---:|---:|",
            *found, "", "",
        )
    )  # fmt: skip


async def main() -> None:
    """Measure, print and write."""
    argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0]).parse_args()
    if not mistakes.available():
        raise SystemExit(mistakes.MISSING)
    embedder = await open_embedder()
    try:
        found = await search(embedder)
    finally:
        await embedder.close()
    async with servers.open_servers(mistakes.WORLD) as running:
        rows, good = await repairs(running)
        watched = await shadow(running)
    _, heading, added = PAGE.read_text(encoding="utf-8").partition(f"## {overhead.TITLE}")
    text = page(rows, good, watched, found) + heading + added
    print(text)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
