"""Can one caller hold up the others? `/healthz` while large and hostile input is asked about.

    python -m bench.holdup [--seconds 5] [--json FILE] [--write]

A real `aftercall serve` on a temporary folder. For each kind of input two connections send it again
and again, and a process of its own asks `/healthz` every few milliseconds. Shown are the 50th and
99th percentile and the longest of these, and what the input was answered. `--write` puts the table
into `docs/figures/security.md`.
"""

import argparse
import http.client
import json
import multiprocessing
import os
import platform
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import numpy as np

from bench.figures import write_marked
from bench.service import ROOT, serving

PAGE = ROOT / "docs" / "figures" / "security.md"
CONNECTIONS = 2
EVERY_S = 0.004
ERROR = {"type": "ValidationError", "message": "Invalid parameter: topK must be <= 10"}


def call(**fields: Any) -> dict[str, Any]:
    """A failed call in the wire's form."""
    return {
        "executionId": str(uuid4()),
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "agent": "librarian", "toolName": "rag_query", "parameters": {"query": "x", "topK": 50},
        "outcome": "failure", "error": ERROR, "sessionId": "s", **fields,
    }  # fmt: skip


def checked(parameters: dict[str, Any]) -> dict[str, Any]:
    """A call that is about to be made."""
    return {"agent": "librarian", "toolName": "rag_query", "parameters": parameters}


def doubled(depth: int) -> dict[str, Any]:
    """A schema of a few hundred bytes that takes 2 ** depth steps to check."""
    schema: dict[str, Any] = {"type": "object", "$defs": {"d0": {"type": "integer"}}}
    for level in range(1, depth):
        below = {"$ref": f"#/$defs/d{level - 1}"}
        schema["$defs"][f"d{level}"] = {"anyOf": [below, below]}
    schema["properties"] = {"topK": {"$ref": f"#/$defs/d{depth - 1}"}}
    return schema


def inputs() -> dict[str, tuple[str, Callable[[], Any]]]:
    """By name: the path that is asked, and its body, made anew each time."""
    many = {f"parameter{n}": n for n in range(100_000)}
    deep: Any = 1
    for level in range(90):
        deep = {"a": deep, "b": deep if level < 10 else 1}
    text = {
        "type": "Error",
        "message": "Invalid parameter 'topK': must be one of [" + "a1, " * 275_000,
    }
    words = {"type": "Error", "message": "'" * 550_000 + '"' * 550_000}
    listed = {
        "type": "object",
        "properties": {"city": {"enum": [f"city number {n}" for n in range(200_000)]}},
        "required": ["city"],
    }
    long_list = [f"value {n}" for n in range(200_000)]
    wide = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(50_000)}}
    either = {"properties": {"topK": {"items": {"anyOf": [{"enum": [n]} for n in range(900)]}}}}
    secret = {"note": "key-" * 250_000}
    return {
        "100,000 parameters": ("/suggest", lambda: {"execution": call(parameters=many)}),
        "an error of 1.1 MB": ("/suggest", lambda: {"execution": call(error=text)}),
        "an error of 1.1 MB of quotes": ("/suggest", lambda: {"execution": call(error=words)}),
        "200,000 enum values": (
            "/suggest",
            lambda: {"execution": call(inputSchema=listed, parameters={"city": "city numbr 7"})},
        ),
        "a list of 200,000 texts": (
            "/suggest", lambda: {"execution": call(parameters={"topK": long_list})}
        ),
        "a schema of 50,000 properties": (
            "/suggest",
            lambda: {"execution": call(inputSchema=wide, parameters={"p1x": "a", "p2": 5})},
        ),
        "a schema of 2^40 steps": (
            "/suggest",
            lambda: {"execution": call(inputSchema=doubled(40), parameters={"topK": "x"})},
        ),
        "a schema of 900 alternatives": (
            "/suggest",
            lambda: {"execution": call(inputSchema=either, parameters={"topK": [5000] * 9_000})},
        ),
        "a text of 1 MB": ("/suggest", lambda: {"execution": call(parameters=secret)}),
        "a value 90 deep": ("/suggest", lambda: {"execution": call(parameters={"x": deep})}),
        "a check of 100,000 parameters": ("/check", lambda: {"call": checked(many)}),
        "like calls of 100,000 parameters": (
            "/similar", lambda: {"toolName": "rag_query", "parameters": many}
        ),
        "recording 1,000 calls": (
            "/executions", lambda: [call(context="words " * 400) for _ in range(1000)]
        ),
        "recording 100,000 parameters": ("/executions", lambda: call(parameters=many)),
        "recording an error of 1.1 MB": ("/executions", lambda: call(error=text)),
        "recording 200,000 enum values": ("/executions", lambda: call(inputSchema=listed)),
        "a tool of 200,000 enum values": (
            "/tools/hold.up", lambda: {"namespace": "n", "name": "rag_query", "inputSchema": listed}
        ),
    }  # fmt: skip


def sampled(url: str, until: Any, out: Any) -> None:
    """Ask `/healthz` until told to stop; milliseconds of each."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
    took = []
    while not until.is_set():
        started = time.perf_counter()
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        took.append((time.perf_counter() - started) * 1000)
        time.sleep(EVERY_S)
    out.put(took)


def measured(url: str, path: str, make: Callable[[], Any], seconds: float) -> dict[str, Any]:
    """`/healthz` while `make()` is sent to `path`."""
    parts = urlsplit(url)
    spawn = multiprocessing.get_context("spawn")
    until, out = spawn.Event(), spawn.Queue()
    answers: Counter[str] = Counter()
    took: list[float] = []
    stop = time.perf_counter() + seconds

    def send() -> None:
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=300)
        while time.perf_counter() < stop:
            body = json.dumps(make())
            started = time.perf_counter()
            method = "PUT" if path.startswith("/tools/") else "POST"
            connection.request(method, path, body, {"content-type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            took.append(time.perf_counter() - started)
            code = json.loads(text).get("error", {}).get("code") if answer.status > 299 else ""
            answers[f"{answer.status} {code}".strip()] += 1

    sampler = spawn.Process(target=sampled, args=(url, until, out))
    sampler.start()
    time.sleep(1.0)  # the process starts
    threads = [threading.Thread(target=send) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until.set()
    health = np.array(out.get())
    sampler.join()
    return {
        "p50": float(np.percentile(health, 50)), "p99": float(np.percentile(health, 99)),
        "max": float(health.max()), "asked": len(health), "answers": dict(answers),
        "answered_s": float(np.median(took)),
    }  # fmt: skip


def table(figures: dict[str, Any]) -> str:
    """In Markdown."""
    lines = [
        "| input, sent over two connections | `/healthz` p50 | p99 | longest | answered | median |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in figures.items():
        answers = ", ".join(f"{each} ({n})" for each, n in row["answers"].items())
        lines.append(
            f"| {name} | {row['p50']:.1f} ms | {row['p99']:.1f} ms | {row['max']:.0f} ms "
            f"| {answers} | {row['answered_s']:.2f} s |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5, help="how long each input is sent")
    parser.add_argument("--only", default="", help="inputs whose name holds this")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.name}")
    options = parser.parse_args()
    figures, load = {}, os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        with serving(root / "data", root / "log") as service:
            for name, (path, make) in inputs().items():
                if options.only in name:
                    figures[name] = measured(service.url, path, make, options.seconds)
                    print(table({name: figures[name]}).splitlines()[-1], flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    if options.write:
        python, cores = platform.python_version(), os.cpu_count()
        where = f"Python {python}, {cores} cores, which had a load of {load:.0f} by others."
        write_marked(PAGE, "holdup", f"{table(figures)}\n\n{where}")


if __name__ == "__main__":
    main()
