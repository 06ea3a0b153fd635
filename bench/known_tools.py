"""How long the block of known tools takes, how many tokens it has, and how good the estimate is.

    python -m bench.known_tools [--tools 50] [--executions 10000] [--questions 200] [--json FILE]
                                [--write]

The real service in this process, asked through its HTTP app without a network: tools are
registered, the history of `bench/history.py` (time-outs, wrong types, renamed and missing
parameters, with repairs), referrals and users' corrections are recorded and learned from. The model
has no part in these answers, so vectors are made by hashing. `GET /known-tools` is asked warm, and
cold after all that was kept of the tools in memory was dropped.

The estimate is held against the WordPiece tokenizer of the bundled model, on the very answers.
`--write` writes `docs/figures/known_tools.md` and `.json`.
"""

import argparse
import asyncio
import json
import logging
import platform
import random
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import httpx2
from tokenizers import Tokenizer

from bench import history
from bench.service import percentiles, say
from embeddings.models import BUNDLED_TOKENIZER
from retrieval.answers.known_tools.common import COMMON_WORDS, estimate_tokens
from service.context import (
    Lifecycle,  # as above
    open_context,
)
from service.lifecycle import settle_memory
from service.server import create_app
from service.settings import DataSettings, EmbeddingSettings, Settings

ROOT = Path(__file__).parents[1]

FIGURES = ROOT / "docs" / "figures"
WORKSPACE = "default"
BUDGET = 2_000
MOST_MS = 50.0
BATCH = 500
WARM_UP = 10
REFERRALS = 14
CORRECTIONS = 40
_EVIDENCE = (
    "the page holds a login form and no list, so there is nothing to extract",
    "the request asks for a download and a summary in one call",
    "the text is in a language that this tool does not read",
)
_AXES = (["transport", "extraction"], ["transport"], ["summarising", "extraction"])
_SPLIT = ["fetch the page", "extract the list"]

Json = dict[str, Any]


def calls(count: int, tool_count: int) -> Iterator[Json]:
    """The history, moved so that it ends now; then referrals of some of its tools."""
    every = list(history.executions(count, tool_count=tool_count))
    last = datetime.fromisoformat(every[-1]["timestamp"])
    moved = datetime.now(UTC) - timedelta(minutes=5) - last
    for each in every:
        yield each | {"timestamp": (datetime.fromisoformat(each["timestamp"]) + moved).isoformat()}
    dice = random.Random(23)
    for number, tool in enumerate(history.tools(tool_count)[::5]):
        kind = "wrong_tool_boundary" if number % 3 else "low_utility"
        for time_ in range(REFERRALS):
            details: Json = {"evidence": dice.choice(_EVIDENCE)}
            if kind == "wrong_tool_boundary":
                details |= {"boundary_axes": dice.choice(_AXES), "suggested_split": _SPLIT}
            at = datetime.now(UTC) - timedelta(hours=7 * time_ + 1)
            yield {
                "executionId": _uuid(dice), "timestamp": at.isoformat(),
                "agent": dice.choice(history.AGENTS), "serverName": tool.server,
                "toolName": tool.name, "parameters": {}, "outcome": "failure",
                "sessionId": f"referred-{number}-{time_}",
                "error": {"type": kind, "message": "this is not my job", "details": details},
            }  # fmt: skip


def _uuid(dice: random.Random) -> str:
    digits = f"{dice.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"


async def fill(client: httpx2.AsyncClient, tool_count: int, executions: int) -> None:
    """Register, record, correct, and wait until all is learned."""
    for tool in history.tools(tool_count):
        body = {
            "name": tool.name, "serverName": tool.server, "inputSchema": tool.input_schema,
            "description": f"Can {tool.name.replace('_', ' ')} of the archive. Reads them first.",
        }  # fmt: skip
        answer = await client.put(f"/tools/{tool.server}.{tool.name}", json=body)
        answer.raise_for_status()
    every = calls(executions, tool_count)
    sent: list[Json] = []
    while batch := list(islice(every, BATCH)):
        (await client.post("/executions", json=batch)).raise_for_status()
        sent.extend(batch)
    right = [each for each in sent if each["outcome"] == "success"]
    for each in right[:: max(1, len(right) // CORRECTIONS)]:
        body = {"executionId": each["executionId"], "text": "that is not the list I asked for"}
        (await client.post("/corrections", json=body)).raise_for_status()
    while (await client.get("/status")).json()["pendingIndexing"]:  # noqa: ASYNC110  # of another room
        await asyncio.sleep(0.1)


async def ask(client: httpx2.AsyncClient, **query: object) -> tuple[float, str]:
    """Milliseconds, and the text."""
    started = time.perf_counter()
    answer = await client.get("/known-tools", params=query)
    elapsed = (time.perf_counter() - started) * 1000
    answer.raise_for_status()
    return elapsed, answer.text


async def measure(folder: Path, tool_count: int, executions: int, questions: int) -> Json:
    """All figures but those of the estimate; and the answers."""
    settings = Settings(
        data=DataSettings(dir=folder / "data"), embedding=EmbeddingSettings(model="hashing")
    )
    lifecycle = Lifecycle()
    app = create_app(settings, lifecycle)
    async with open_context(settings) as context:
        lifecycle.context = context
        settle_memory()  # as `aftercall serve` does
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://127.0.0.1", timeout=300
        ) as client:
            say(f"recording {executions:,} executions of {tool_count} tools")
            await fill(client, tool_count, executions)
            say("asking")
            warm = [(await ask(client, maxTokens=BUDGET))[0] for _ in range(questions + WARM_UP)]
            page = [
                (await ask(client, maxTokens=BUDGET, format="markdown"))[0]
                for _ in range(questions + WARM_UP)
            ]
            cold = []
            for _ in range(max(20, questions // 5)):
                context.memory.forget_all()
                cold.append((await ask(client, maxTokens=BUDGET))[0])
            texts = {
                f"{form} {budget}": (await ask(client, maxTokens=budget, format=form))[1]
                for form in ("prompt", "markdown")
                for budget in (50, 500, BUDGET, 8_000, 100_000)
            }
    return {
        "ms": {
            "warm": percentiles(warm[WARM_UP:]),
            "markdown": percentiles(page[WARM_UP:]),
            "cold": percentiles(cold),
        },
        "texts": texts,
    }


class WordPiece:
    """The bundled model's own tokenizer."""

    def __init__(self) -> None:
        self._tokenizer = Tokenizer.from_file(str(BUNDLED_TOKENIZER))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def count(self, text: str) -> int:
        """Tokens of a text, without the two special ones."""
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)


def judge_estimate(texts: dict[str, str]) -> Json:
    """The estimate beside the tokenizer."""
    tokenizer = WordPiece()
    unknown = sorted(word for word in COMMON_WORDS if tokenizer.count(word) != 1)
    assert not unknown, f"not one token each: {unknown}"
    return {
        "answers": {
            name: {"estimate": estimate_tokens(text), "tokens": tokenizer.count(text),
                   "characters": len(text), "tools": text.count("<tool ") + text.count("\n## ")}
            for name, text in texts.items()
        },
    }  # fmt: skip


def run(tool_count: int, executions: int, questions: int) -> Json:
    """All figures; progress on stderr."""
    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory(prefix="aftercall-bench-") as name:
        figures = asyncio.run(measure(Path(name), tool_count, executions, questions))
    texts = figures.pop("texts")
    return {
        "tools": tool_count, "executions": executions, "questions": questions, **figures,
        **judge_estimate(texts), "example": texts[f"prompt {BUDGET}"],
    }  # fmt: skip


def page(figures: Json) -> str:
    """The Markdown page."""
    answer = figures["answers"][f"prompt {BUDGET}"]
    times = figures["ms"]

    def ms(name: str) -> str:
        return f"p50 {times[name]['p50']:.1f} ms, p95 {times[name]['p95']:.1f} ms"

    lines = [
        "# Known tools",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, Python {platform.python_version()}. "
        "Made by `python -m bench.known_tools --write`; everything measured is in "
        "`known_tools.json`.",
        f"{figures['tools']} registered tools, {figures['executions']:,} executions of "
        "`bench/history.py` with referrals and corrections; `GET /known-tools` of the real service "
        "in one process.",
        "",
        "| figure | asked | measured |",
        "|---|---|---|",
        f"| tools told in {BUDGET:,} tokens | {figures['tools']} | {answer['tools']} |",
        f"| tokens by the estimate | at most {BUDGET:,} | {answer['estimate']:,} |",
        f"| tokens by MiniLM's WordPiece | at most {BUDGET:,} | {answer['tokens']:,} |",
        f"| time, warm | under {MOST_MS:.0f} ms | {ms('warm')} |",
        f"| time, all caches of the tools dropped | | {ms('cold')} |",
        f"| time, Markdown form, warm | | {ms('markdown')} |",
        "",
        "The estimate (`retrieval/answers/known_tools/common.py`) beside WordPiece:",
        "",
        "| answer | budget | estimate | WordPiece | tools |",
        "|---|---|---|---|---|",
        *(
            f"| {name.split()[0]} | {int(name.split()[1]):,} | {each['estimate']:,} | "
            f"{each['tokens']:,} | {each['tools']} |"
            for name, each in figures["answers"].items()
        ),
        "",
        "The beginning of the answer:",
        "",
        "```xml",
        *figures["example"].splitlines()[:20],
        "```",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=int, default=50)
    parser.add_argument("--executions", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--write", action="store_true", help="write docs/figures/known_tools.*")
    args = parser.parse_args()
    figures = run(args.tools, args.executions, args.questions)
    text = page(figures)
    print(text)
    encoded = json.dumps(figures, indent=1) + "\n"
    if args.json:
        args.json.write_text(encoded, encoding="utf-8")
    if args.write:
        (FIGURES / "known_tools.md").write_text(text, encoding="utf-8")
        (FIGURES / "known_tools.json").write_text(encoded, encoding="utf-8")


if __name__ == "__main__":
    main()
