"""All speed measurements, one after the other, into `docs/figures/`.

    python -m bench [--quick]

Each benchmark is a program of its own that can be run by itself; this one runs them in a quiet row,
and writes `docs/figures/speed.md` (asked and measured) and `docs/figures/speed.json` (everything).
`--quick` takes a few minutes less and is for trying it out: it writes nothing.
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "docs" / "figures"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One figure that was asked for."""

    what: str
    asked: str
    measured: str
    command: str


def run_json(*command: str) -> Json:
    """A benchmark's figures from what it prints with `--json`."""
    print(f"  {' '.join(command)}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", *command, "--json"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    figures: Json = json.loads(done.stdout)
    return figures


def run_to_file(program: str, *options: str) -> Json:
    """The figures of a benchmark that writes them to a file beside its progress."""
    print(f"  {program} {' '.join(options)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        command = [sys.executable, "-m", program, *options, "--json", str(file)]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        figures: Json = json.loads(file.read_text(encoding="utf-8"))
        return figures


def asked_rows(figures: Json) -> list[Row]:
    """The figures that were asked for."""
    service, fitness, known = figures["service"], figures["fitness"], figures["known_tools"]
    gateway, recorder = figures["gateway"], figures["recorder"]
    ratios, record, memory = service["ratios"], service["record"], service["memoryMiB"]
    told, together = known["answers"]["prompt 2000"], record["atOnce"]
    from_service = "python -m bench.service"
    from_gateway = "python -m bench.gateway"
    install, from_install = figures["install"], "python -m bench.install"
    rows = [
        Row("`make demo` on a fresh clone, nothing cached but by pip: time; size", "75 s; 700 MB",
            f"{install['demo']['seconds']:.0f} s; {install['demo']['megabytes']:.0f} MB",
            from_install),
        Row("`pip install` of the service with its model; of `sdk[gateway]`", "450 MB; 140 MB",
            f"{install['serviceMB']:.0f} MB; {install['gatewayMB']:.0f} MB", from_install),
        Row("`/suggest`, new failure: p50 to one embedding", "at most 0.6",
            f"{ratios['newToEmbedding']:.2f} ({service['suggestNewMs']['p50']:.1f} ms)",
            from_service),
        Row("`/suggest`, repeated failure: p50 to one embedding", "at most 0.25",
            f"{ratios['repeatedToEmbedding']:.2f} ({service['suggestRepeatedMs']['p50']:.1f} ms)",
            from_service),
        Row("recording in batches of 100, durable, through HTTP", "at least 6,000/s",
            f"{record['perSecond']:,.0f}/s", from_service),
        Row("start to ready on the existing store", "at most 1.0 s", f"{service['startS']:.2f} s",
            from_service),
        Row("3,000/s sent: recorded, and learned meanwhile", "3,000/s each",
            f"{together['recorded']:,.0f}/s, {together['learned']:,.0f}/s", from_service),
        Row("last vector behind the last of 100,000 in a burst", "at most 30 s",
            f"{record['indexingLagS']:.0f} s", from_service),
        Row("`/suggest` while 1,000/s are recorded: p99 to p50", "at most 4",
            f"{ratios['besideP99ToP50']:.1f} ({service['suggestBesideMs']['p99']:.1f} ms to "
            f"{service['suggestBesideMs']['p50']:.1f} ms)", from_service),
        Row("`/check`: p50 of `tookMs` to one embedding", "at most 0.05",
            f"{ratios['checkToEmbedding']:.3f} ({service['checkMs']['p50']:.2f} ms)",
            from_service),
        Row("memory of a service that nobody asks: opened; after recording", "at most 350 MiB",
            f"{memory['opened']:.0f} MiB; {memory['afterRecording']:.0f} MiB (largest seen, while "
            f"recording, {memory['peakRecording']:.0f} MiB)", from_service),
        Row(f"best tool of a namespace, {fitness['tools']:,} tools and {fitness['executions']:,} "
            "failures: p50 to one embedding", "at most 1.0",
            f"{fitness['ratios']['best']:.2f} ({fitness['ms']['best']['p50']:.1f} ms to "
            f"{fitness['embeddingMs']['p50']:.1f} ms)", "python -m bench.fitness"),
        Row(f"`/known-tools`, {told['tools']} of {known['tools']} tools in "
            f"{told['estimate']:,} tokens: p95", "under 50 ms",
            f"{known['ms']['warm']['p95']:.1f} ms", "python -m bench.known_tools"),
        Row("recorder's hand-over, p99", "under 100 µs",
            f"{recorder['hand_over_us']['p99']:.1f} µs", "python -m bench.recorder"),
    ]  # fmt: skip
    asked = [row for row in gateway["rows"] if "as it comes" not in row["name"]]
    rows += [
        Row(f"gateway adds to a succeeding call, p50 ({row['name']})",
            "at most 3 ms" if row["name"].startswith(("asking", "question")) else "at most 5 ms",
            f"{row['added_p50_ms']:.2f} ms", from_gateway)
        for row in asked
    ]  # fmt: skip
    return rows + signal_rows(figures["harmony"], figures["otlp"], figures["metrics"])


def signal_rows(harmony: Json, otlp: Json, metrics: Json) -> list[Row]:
    """Events, traces and metrics."""
    text, spans = harmony["mb_per_s"], otlp["spans_per_s"]
    usual = metrics["bounds"][0]
    return [
        Row(f"Harmony, fed in chunks of {harmony['chunk_characters']} characters",
            "at least 2 MB/s", f"{text['mix']:.1f} MB/s; with events "
            f"{text['mix_with_events']:.1f}, calls alone {text['calls']:.1f}",
            "python -m bench.harmony"),
        Row("OTLP: spans of tool calls, durable, through HTTP, while they are learned from",
            f"at least {otlp['asked_spans_per_s']:,}/s",
            f"{spans['protobuf, gzip']:,.0f}/s; plain {spans['protobuf']:,.0f}/s, JSON "
            f"{spans['json, gzip']:,.0f}/s", "python -m bench.otlp"),
        Row(f"`/metrics`, {metrics['tools']:,} tools seen, {usual['given']:,} with a label: median",
            "under 20 ms",
            f"{usual['ms']['still']['median']:.1f} ms; with calls between two scrapes "
            f"{usual['ms']['moving']['median']:.1f} ms", "python -m bench.metrics"),
    ]  # fmt: skip


def fitness_lines(fitness: Json) -> list[str]:
    """What choosing a tool takes beside the figure that was asked for."""
    times, ratios = fitness["ms"], fitness["ratios"]
    told = {
        "find": "`POST /tools/find` over all of them",
        "bestBySeed": "best in namespace by the seed's formula",
        "bestWithoutSearch": "best in namespace without search",
    }
    return [
        f"- {what}: p50 {times[name]['p50']:.1f} ms, p95 {times[name]['p95']:.1f} ms, "
        f"{ratios[name]:.2f} of one embedding (`python -m bench.fitness`; the vectors of its "
        f"{fitness['documents']:,} documents are partly made up, see there)."
        for name, what in told.items()
    ]


def kept_notes() -> list[str]:
    """What somebody wrote on the page about the table, which is no figure and stays."""
    former = (FIGURES / "speed.md").read_text(encoding="utf-8")
    _, begin, rest = former.partition("What stands between")
    return [begin + rest.partition("Beside them:")[0].rstrip(), ""] if begin else []


def page(figures: Json) -> str:
    """The Markdown page."""
    service, gateway, fitness = figures["service"], figures["gateway"], figures["fitness"]
    store, metrics = figures["log_store"], figures["metrics"]
    record = service["record"]
    proxy = next(row for row in gateway["rows"] if "as it comes" in row["name"])
    batch = next(r for r in store["appends"] if (r["batch"], r["callers"]) == (100, 1))
    all_labels, read = metrics["bounds"][-1], figures["otlp"]["read_per_s"]
    lines = [
        "# Speed",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, "
        f"{service['machine']['cpus']} shared cores, Python {platform.python_version()}. "
        "Made by `make bench`; everything measured is in `speed.json`.",
        f"{service['executions']:,} executions over {service['tools']} tools "
        f"({service['documents']:,} distinct documents), made by `bench/history.py` with its fixed "
        "seed. Ratios are of medians within one run.",
        "",
        "| figure | asked | measured | command |",
        "|---|---|---|---|",
        *(
            f"| {row.what} | {row.asked} | {row.measured} | `{row.command}` |"
            for row in asked_rows(figures)
        ),
        "",
        *kept_notes(),
        "Beside them:",
        "",
        f"- indexing while that history pours in: {record['indexedPerSecond']:,.0f} executions a "
        f"second; the last batch was usable in all answers {record['indexingLagS']:.0f} s after "
        "its acknowledgement. Profiles and repair rules do not wait for the embedder; new "
        "documents do.",
        f"- the log store alone appends {batch['per_second']:,.0f} executions a second in batches "
        "of 100 (`python -m bench.log_store`).",
        *fitness_lines(fitness),
        f"- FastMCP's proxy for an `mcpServers` file, as it comes, adds "
        f"{proxy['added_p50_ms']:.0f} ms to each call.",
        f"- `/metrics` with {all_labels['given']:,} labels (`AFTERCALL_METRICS_TOOLS`): "
        f"{all_labels['ms']['still']['median']:.0f} ms, with calls between two scrapes "
        f"{all_labels['ms']['moving']['median']:.0f} ms (`python -m bench.metrics`).",
        f"- traces are read alone, on one core, at {read['protobuf']:,.0f} calls a second of "
        f"protobuf and {read['json']:,.0f} of JSON; each call came with a second span around it "
        "(`python -m bench.otlp`).",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Run them all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small, and nothing is written")
    quick = parser.parse_args().quick
    print("running (some twenty minutes; leave the machine alone meanwhile)", flush=True)
    small = ["--tools", "200", "--failures", "2000", "--questions", "100"]
    figures = {
        "install": run_to_file("bench.install"),
        "service": run_to_file("bench.service", *(["--quick"] if quick else [])),
        "fitness": run_to_file("bench.fitness", *(small if quick else [])),
        "gateway": run_json(
            "bench.gateway", *(["--calls", "30", "--repeats", "3"] if quick else [])
        ),
        "recorder": run_json(
            "bench.recorder", *(["--hand-overs", "5000", "--repeats", "1"] if quick else [])
        ),
        "known_tools": run_to_file(
            "bench.known_tools", *(["--executions", "1000"] if quick else ["--write"])
        ),
        "log_store": run_json("bench.log_store", *(["--executions", "2000"] if quick else [])),
        "harmony": run_json("bench.harmony", *(["--megabytes", "1"] if quick else [])),
        "otlp": run_json("bench.otlp", *(["--quick"] if quick else [])),
        "metrics": run_to_file("bench.metrics", *(["--scrapes", "10"] if quick else [])),
    }
    text = page(figures)
    print(f"\n{text}")
    if quick:
        return
    FIGURES.mkdir(parents=True, exist_ok=True)
    (FIGURES / "speed.md").write_text(text, encoding="utf-8")
    (FIGURES / "speed.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(f"written to {FIGURES.relative_to(ROOT)}/")


if __name__ == "__main__":
    main()
