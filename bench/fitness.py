"""How fast the best tool of a namespace is told, through HTTP, beside one embedding.

    python -m bench.fitness [--tools 5000] [--failures 100000] [--questions 400] [--json FILE]

A real `aftercall serve` with the default model, on a store that was made with the service's own
rooms: tools are put, failed executions in distinct scenarios are appended and learned from by the
indexer. Only the vectors of the scenarios are made up, for a hundred thousand embeddings would take
minutes and say nothing: each is that of one of some thousand phrases, which are embedded, plus a
little noise, at unit length. The documents of tools are embedded as ever.

Tools come in namespaces of ten; in every fourth one a version is promoted. Each question asks about
another scenario in other words, so that no cache of texts answers. The floor is the model's own
blocking call on the very texts that are asked, in a process of its own, by turns with the service.
"""

import argparse
import asyncio
import http.client
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

import numpy as np

from aftercall.json_values import content_hash
from aftercall.models import Execution, Promotion, Tool
from bench.service import Service, percentiles, say, serving
from embeddings.embedders import DEFAULT_THREADS, OnnxModel, open_embedder
from embeddings.models import bundled_model
from embeddings.protocol import Embedder
from embeddings.text import terms_text
from ingest.indexer import Indexer
from mongo.contents import (
    PromotionEvent,
    StoredPromotion,
    execution_event,
    promotion_command,
    tool_command,
)
from mongo.protocol import Store
from mongo.records import Commit, Event, Removal
from mongo.sqlite.store import open_sqlite_store
from retrieval.index.edge import EdgeIndex
from retrieval.index.opening import FIRST_INDEX
from retrieval.index.protocol import IndexPoint, VectorIndex
from retrieval.knowledge.memory import (
    DOCUMENT,
    VECTOR,
    Memory,  # as above
)
from retrieval.knowledge.rows.documents import Document
from retrieval.knowledge.rows.log import count_rows
from service.stores import STORE_FACT

ROOT = Path(__file__).parents[1]

WORKSPACE = "default"

Request = tuple[str, str, bytes | None]
"""Method, path, body."""

TOOLS_A_NAMESPACE = 10
PHRASES = 3_000
PHRASES_A_NAMESPACE = 25
NOISE = 0.02
"""Standard deviation of what is added to each component; a vector has 384 of length 1 in all, so
that two scenarios of one phrase have a cosine of about 0.87."""
WARM_UP = 30
BATCH = 500
_START = datetime(2026, 2, 1, tzinfo=UTC)

_VERBS = (
    "translate", "summarise", "export", "merge", "schedule", "cancel", "refund", "classify",
    "transcribe", "rename", "archive", "compare", "validate", "encrypt", "resize", "deploy",
    "review", "forecast", "invoice", "reconcile",
)  # fmt: skip
_OBJECTS = (
    "customer letters", "flight bookings", "pull requests", "lab results", "news articles",
    "product photos", "bank statements", "support tickets", "court filings", "weather reports",
    "song lyrics", "sensor readings", "meeting notes", "tax forms", "street maps", "exam papers",
    "menu cards", "press releases", "crash logs", "insurance claims", "music scores",
    "shipping labels", "travel plans", "job adverts", "patent texts",
)  # fmt: skip
_MANNERS = (
    "into Spanish", "for the board", "before Friday", "with all footnotes", "as one table",
    "without personal data", "for the archive", "in plain words", "by region", "from last winter",
    "in alphabetical order", "for a mobile screen",
)  # fmt: skip
_PURPOSES = (
    "audit", "launch", "migration", "review", "campaign", "training", "inspection", "handover",
    "festival", "harvest", "election", "merger", "renovation", "expedition", "exhibition", "trial",
    "rehearsal", "census", "tournament", "relocation",
)  # fmt: skip
_PLACES = (
    "Lisbon", "northern", "hospital", "harbour", "university", "museum", "city", "railway",
    "publishing", "farming", "theatre", "airport", "embassy", "mining", "fashion", "library",
    "football", "winter", "evening", "seaside",
)  # fmt: skip

_ERRORS = ("IndexError: list index out of range", "the answer was cut off", "no such format")


def phrases(count: int) -> list[str]:
    """What scenarios are about: at most 6,000."""
    every = [f"{verb} {thing} {how}" for verb in _VERBS for thing in _OBJECTS for how in _MANNERS]
    return random.Random(3).sample(every, count)


def phrases_of(group: int, about: Sequence[str]) -> Sequence[str]:
    """What the scenarios of one namespace are about."""
    return [about[(group * 7 + number) % len(about)] for number in range(PHRASES_A_NAMESPACE)]


def purpose(dice: random.Random) -> str:
    """What makes one scenario of a phrase another."""
    return f"{dice.choice(_PLACES)} {dice.choice(_PLACES)} {dice.choice(_PURPOSES)}"


def tools(count: int) -> Iterator[Tool]:
    """Tools in namespaces of ten; the first of each is the original."""
    dice = random.Random(5)
    for number in range(count):
        group, member = divmod(number, TOOLS_A_NAMESPACE)
        verb, thing = dice.choice(_VERBS), dice.choice(_OBJECTS)
        namespace = f"capability-{group}"
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {
                "source": {"type": "string", "description": f"Where the {thing} are."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100},
            },
            "required": ["source"],
        }
        yield Tool(
            tool_id=namespace if member == 0 else f"{namespace}.{member}",
            name=f"{verb}_{number}",
            namespace=namespace,
            server_name=f"server-{number % 20}",
            version="1.0.0",
            description=f"Can {verb} {thing} {dice.choice(_MANNERS)}.",
            input_schema=schema,
            schema_hash=content_hash(schema),
            tags=[verb],
            updated_at=_START,
        )


def failed_calls(registered: Sequence[Tool], count: int) -> Iterator[Event]:
    """Failures in distinct scenarios, evenly over the tools, over the last weeks."""
    dice = random.Random(9)
    about = phrases(PHRASES)
    step = timedelta(days=21) / count
    for number in range(count):
        place = number % len(registered)
        tool, group = registered[place], place // TOOLS_A_NAMESPACE
        execution = Execution.model_validate(
            {
                "executionId": str(UUID(int=dice.getrandbits(128), version=4)),
                "timestamp": _START + number * step,
                "agent": "bench",
                "serverName": tool.server_name,
                "toolName": tool.name,
                "toolVersion": tool.version,
                "parameters": {"source": "inbox"},
                "context": f"{dice.choice(phrases_of(group, about))} for the {purpose(dice)}",
                "outcome": "failure",
                "error": {"type": "RuntimeError", "message": dice.choice(_ERRORS)},
            }
        )
        yield execution_event(
            WORKSPACE, execution, content_hash=content_hash(execution.execution_id),
            schema_hash=None, input_schema=None,
        )  # fmt: skip


def questions(count: int, groups: int) -> list[tuple[int, str]]:
    """Namespaces, and scenarios of theirs in words that no stored scenario has."""
    dice = random.Random(13)
    about = phrases(PHRASES)
    asked = []
    for _ in range(count):
        group = dice.randrange(groups)
        phrase = dice.choice(phrases_of(group, about))
        asked.append((group, f"{phrase} because of the {purpose(dice)}"))
    return asked


async def fill(data: Path, tool_count: int, failure_count: int) -> dict[str, Any]:
    """Make the store and the vectors; what is in them."""
    store = await open_sqlite_store(data)
    embedder = await open_embedder("all-MiniLM-L6-v2", cache_size=0, threads=DEFAULT_THREADS)
    index = await EdgeIndex.open(
        data / FIRST_INDEX,
        dimension=embedder.dimension,
        fingerprint=embedder.fingerprint,
        owner=await store.metadata.keep_fact(STORE_FACT, uuid4().hex),
    )
    indexer = Indexer(store=store, memory=Memory(store), index=index, embedder=embedder)
    try:
        registered = list(tools(tool_count))
        commands = [tool_command(WORKSPACE, each.tool_id, None, each) for each in registered]
        commands += [promotion_command(each, None) for each in _promotions(registered)]
        await store.events.append(
            WORKSPACE, [event for event, _ in commands], [state for _, state in commands]
        )
        calls = failed_calls(registered, failure_count)
        for batch in iter(lambda: list(islice(calls, BATCH)), []):
            await store.events.append(WORKSPACE, batch)
        say("learning from them")
        while await indexer.learn_step():
            pass
        say("making their vectors")
        await _embed(store, index, embedder)
        await index.wait_compacted()
        known = await count_rows(store, WORKSPACE)
        registered_tools = len(await store.events.read_state(WORKSPACE, "tool"))
    finally:
        await indexer.close()
        await index.close()
        await embedder.close()
        await store.close()
    return {"tools": registered_tools, "executions": known.executions, "documents": known.documents}


def _promotions(registered: Sequence[Tool]) -> Iterator[PromotionEvent]:
    for tool in registered[:: 4 * TOOLS_A_NAMESPACE]:
        promotion = Promotion(
            evolved_version="1.1.0",
            evolved_file=f"tools/{tool.name}_v1_1.py",
            original_version="1.0.0",
            reason="failed too often",
            mutation="handle empty input",
            promoted_at=_START,
        )
        stored = StoredPromotion(WORKSPACE, tool.tool_id, promotion)
        yield PromotionEvent(WORKSPACE, tool.tool_id, _START, "promoted", stored)


async def _embed(store: Store, index: VectorIndex, embedder: Embedder) -> None:
    about = phrases(PHRASES)
    vectors = dict(zip(about, await embedder.embed(about, "document"), strict=True))
    noise = np.random.default_rng(17)
    while rows := await store.knowledge.scan_rows(WORKSPACE, VECTOR.name, 1_000, by="rank"):
        found = await store.knowledge.get(WORKSPACE, DOCUMENT.name, [row.key for row in rows])
        documents = [DOCUMENT.decode_row(row) for row in found]
        others = [each for each in documents if each.kind != "scenario"]
        embedded = (
            await embedder.embed([each.text for each in others], "document") if others else ()
        )
        real = {each.document_id: made for each, made in zip(others, embedded, strict=True)}
        points = []
        for document in documents:
            vector = real.get(document.document_id)
            if vector is None:
                near = vectors[_phrase(document)]
                vector = near + noise.normal(0, NOISE, near.shape)
                vector = (vector / np.linalg.norm(vector)).astype(np.float32)
            points.append(
                IndexPoint(
                    document.document_id, WORKSPACE, document.kind, document.server_name,
                    document.tool_name, vector,
                    terms_text(document.text) if document.terms is None else document.terms,
                    document.version,
                )
            )  # fmt: skip
        await index.upsert_points(points)
        done = [Removal(VECTOR.name, row.key, row.rank) for row in rows]
        await store.knowledge.commit(Commit(WORKSPACE, removed=done))


def _phrase(document: Document) -> str:
    return document.text.rpartition(" for the ")[0]


class Floor:
    """A process that embeds a text when it is told to, and nothing else."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.fitness", "--floor"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        self.embed("is it awake?")

    def __enter__(self) -> "Floor":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()  # type: ignore[union-attr]  # a pipe, see above
        self._process.wait(timeout=30)

    def embed(self, text: str) -> float:
        """Milliseconds of the model's own blocking call."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(text) + "\n")
        return float(self._process.stdout.readline())


def measure_floor() -> None:
    """The process of `Floor`."""
    model = OnnxModel(bundled_model(), threads=DEFAULT_THREADS)
    for line in sys.stdin:
        text = json.loads(line)
        started = time.perf_counter()
        model.encode_texts([text])
        print((time.perf_counter() - started) * 1000, flush=True)


@dataclass(frozen=True, slots=True)
class Asked:
    """Milliseconds of each question, and of an embedding of its text a moment before."""

    ms: list[float]
    embedding_ms: list[float]
    mean_bytes: int

    @property
    def ratio(self) -> float:
        """Of the medians."""
        return statistics.median(self.ms) / statistics.median(self.embedding_ms)


def ask(service: Service, floor: Floor, texts: Sequence[str], requests: Sequence[Request]) -> Asked:
    """Ask over one connection, each question after an embedding of its text elsewhere.

    One after the other by turns, so that whatever else the machine does is in both.
    """
    connection = service.connect()
    times: list[float] = []
    embeddings: list[float] = []
    size = 0
    for text, (method, path, body) in zip(texts, requests, strict=True):
        embeddings.append(floor.embed(text))
        headers = {"content-type": "application/json"} if body else {}
        started = time.perf_counter()
        connection.request(method, path, body, headers)
        response: http.client.HTTPResponse = connection.getresponse()
        answer = response.read()
        times.append((time.perf_counter() - started) * 1000)
        size += len(answer)
        if response.status != 200:
            raise RuntimeError(answer.decode()[:500])
        assert json.loads(answer)["candidates"]
    connection.close()
    return Asked(times[WARM_UP:], embeddings[WARM_UP:], size // len(requests))


def run(tool_count: int, failure_count: int, question_count: int) -> dict[str, Any]:
    """All figures; progress on stderr."""
    groups = max(1, tool_count // TOOLS_A_NAMESPACE)
    each = question_count + WARM_UP
    asked = questions(3 * each, groups)
    texts = [text for _, text in asked]

    def best(some: Sequence[tuple[int, str]], **options: object) -> list[Request]:
        return [
            (
                "GET",
                f"/namespaces/capability-{group}/best?{urlencode({'scenario': text, **options})}",
                None,
            )
            for group, text in some
        ]

    with tempfile.TemporaryDirectory(prefix="aftercall-bench-") as name:
        folder = Path(name)
        say(f"putting {tool_count:,} tools and {failure_count:,} failures")
        stored = asyncio.run(fill(folder / "data", tool_count, failure_count))
        with serving(folder / "data", folder / "service.log") as service:
            while service.status()["pendingIndexing"]:
                time.sleep(0.1)
            say("asking")
            found = [{"scenario": text, "limit": 5} for text in texts[2 * each :]]
            with Floor() as floor:
                asked_of = {
                    "best": (texts[:each], best(asked[:each])),
                    "bestBySeed": (
                        texts[each : 2 * each],
                        best(asked[each : 2 * each], mode="seed"),
                    ),
                    "find": (
                        texts[2 * each :],
                        [("POST", "/tools/find", json.dumps(body).encode()) for body in found],
                    ),
                    "bestWithoutSearch": (texts[:each], best(asked[:each], useRag="false")),
                }
                answers = {
                    name: ask(service, floor, said, requests)
                    for name, (said, requests) in asked_of.items()
                }
            rss_mib = service.rss_mib()
            service.stop()
    return {
        **stored,
        "questions": question_count,
        "embeddingMs": percentiles([ms for each in answers.values() for ms in each.embedding_ms]),
        "ms": {name: percentiles(each.ms) for name, each in answers.items()},
        "ratios": {name: each.ratio for name, each in answers.items()},
        "answerBytes": {name: each.mean_bytes for name, each in answers.items()},
        "memoryMiB": rss_mib,
    }


_NAMES = {
    "best": "best in namespace",
    "bestBySeed": "  by the seed's formula",
    "bestWithoutSearch": "  without search",
    "find": "POST /tools/find, 5 tools",
}


def table(figures: dict[str, Any]) -> str:
    """The figures beside what was asked for."""

    def times(values: dict[str, float]) -> str:
        return " / ".join(f"{values[name]:.2f}" for name in ("p50", "p95", "p99"))

    rows = [("one embedding", times(figures["embeddingMs"]), "", "")]
    rows += [
        (_NAMES[name], times(known), f"{figures['ratios'][name]:.2f}", "<= 1.0" * (name == "best"))
        for name, known in figures["ms"].items()
    ]
    head = (
        f"{figures['tools']:,} tools, {figures['executions']:,} failures, "
        f"{figures['documents']:,} documents, {figures['memoryMiB']:.0f} MiB; "
        f"{figures['questions']} questions each; ms p50 / p95 / p99, p50 to one embedding"
    )
    lines = [f"{name:<28} {ms:>24} {ratio:>6}  {asked}".rstrip() for name, ms, ratio, asked in rows]
    return "\n".join((head, "", *lines))


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=int, default=5_000)
    parser.add_argument("--failures", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--floor", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.floor:
        measure_floor()
        return
    figures = run(args.tools, args.failures, args.questions)
    print(table(figures))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
