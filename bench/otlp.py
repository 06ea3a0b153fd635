"""How many spans of tool calls a second `POST /v1/traces` makes durable.

    python -m bench.otlp [--spans 20000] [--repeats 3] [--quick] [--json]

A real `aftercall serve` with the default model on a temporary folder. The history of
`bench/history.py` is written as `execute_tool` spans, as an instrumented agent sends them: the
attributes of the GenAI conventions with arguments and results, exceptions with their stack trace,
an `invoke_agent` span above each call. Two connections send it in batches of 512, the exporter's
own, in protobuf packed with gzip (and plain, and as JSON); a batch counts when its answer is there,
durable and whole. Packing is done before the clock starts. The service learns meanwhile, as it
always does. Each repeat sends spans of its own, of both kinds of encodings in turn; the figure is
the median of the repeats. `read` is the pure reading of the same bodies, on one core.
"""

import argparse
import base64
import gzip
import json
import os
import platform
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from bench import history
from bench.service import Service, serving
from ingest.formats.otlp.reading import read_otlp_json, read_protobuf

BATCH = 512
CONNECTIONS = 2
LEAST = 3_000
_STACK = "\n".join(
    ["Traceback (most recent call last):"]
    + [f'  File "/srv/agent/tools/step_{n}.py", line {n * 7}, in run' for n in range(8)]
)

Json = dict[str, Any]
Headers = dict[str, str]


def batches(executions: Iterator[Json], salt: int) -> Iterator[ExportTraceServiceRequest]:
    """Requests of `BATCH` tool calls each, with the agents' spans above them."""
    number = 0
    while batch := list(islice(executions, BATCH)):
        request = ExportTraceServiceRequest()
        group = request.resource_spans.add()
        for key, value in {
            "service.name": "helpdesk", "telemetry.sdk.language": "python",
            "telemetry.sdk.name": "opentelemetry", "telemetry.sdk.version": "1.45.0",
        }.items():  # fmt: skip
            group.resource.attributes.add(key=key).value.string_value = value
        scope = group.scope_spans.add()
        scope.scope.name = "opentelemetry.instrumentation.agents"
        for execution in batch:
            number += 1
            _add_call(scope.spans.add(), scope.spans.add(), execution, salt << 32 | number)
        yield request


def _add_call(call: Span, above: Span, execution: Json, number: int) -> None:
    moment = int(datetime.fromisoformat(execution["timestamp"]).timestamp() * 1e9)
    for span, offset in ((call, 1), (above, 2)):
        span.trace_id = number.to_bytes(16)
        span.span_id = (number << 2 | offset).to_bytes(8)
        span.kind = Span.SPAN_KIND_INTERNAL
        span.start_time_unix_nano = moment
        span.end_time_unix_nano = moment + int(execution.get("durationMs", 100) * 1e6)
    call.parent_span_id = above.span_id
    above.name = f"invoke_agent {execution['agent']}"
    _put(above, {
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": execution["agent"],
        "gen_ai.conversation.id": execution["sessionId"], "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5", "gen_ai.input.messages": json.dumps(_MESSAGES),
    })  # fmt: skip
    name = f"{execution['serverName']}_{execution['toolName']}"
    call.name = f"execute_tool {name}"
    _put(call, {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": f"call_{number:024x}", "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "Reads the archive and says what it found there.",
        "gen_ai.conversation.id": execution["sessionId"],
        "gen_ai.tool.call.arguments": json.dumps(execution["parameters"]),
    })  # fmt: skip
    if "result" in execution:
        _put(call, {"gen_ai.tool.call.result": json.dumps(execution["result"])})
    if error := execution.get("error"):
        _put(call, {"error.type": error["type"]})
        call.status.code, call.status.message = 2, error["message"]
        event = call.events.add(name="exception", time_unix_nano=call.end_time_unix_nano)
        for key, value in {
            "exception.type": error["type"], "exception.message": error["message"],
            "exception.stacktrace": f"{_STACK}\n{error['type']}: {error['message']}",
        }.items():  # fmt: skip
            event.attributes.add(key=key).value.string_value = value


_MESSAGES = [{"role": "user", "parts": [{"type": "text", "content": "Find it, please. " * 20}]}]


def _put(span: Span, values: dict[str, str]) -> None:
    for key, value in values.items():
        span.attributes.add(key=key).value.string_value = value


def as_json(request: ExportTraceServiceRequest) -> bytes:
    """The request as exporters write it in JSON."""
    value = MessageToDict(request, use_integers_for_enums=True)
    for group in value["resourceSpans"]:
        for span in group["scopeSpans"][0]["spans"]:
            for key in ("traceId", "spanId", "parentSpanId"):
                if key in span:
                    span[key] = _hex(span[key])
    return json.dumps(value).encode()


def _hex(text: str) -> str:
    return base64.b64decode(text).hex()


Encoding = tuple[Headers, Callable[[ExportTraceServiceRequest], bytes]]

ENCODINGS: dict[str, Encoding] = {
    "protobuf, gzip": (
        {"content-type": "application/x-protobuf", "content-encoding": "gzip"},
        lambda request: gzip.compress(request.SerializeToString(), 6),
    ),
    "protobuf": (
        {"content-type": "application/x-protobuf"},
        lambda request: request.SerializeToString(),
    ),
    "json, gzip": (
        {"content-type": "application/json", "content-encoding": "gzip"},
        lambda request: gzip.compress(as_json(request), 6),
    ),
}


def rejected_in(answer: bytes, headers: Headers) -> int:
    """Return how many spans an answer rejects; it may say something without that."""
    if headers["content-type"] == "application/json":
        return int(json.loads(answer).get("partialSuccess", {}).get("rejectedSpans", 0))
    return int(ExportTraceServiceResponse.FromString(answer).partial_success.rejected_spans)


def send(service: Service, bodies: Sequence[bytes], headers: Headers) -> float:
    """Seconds until all bodies are acknowledged as whole."""
    waiting = iter(bodies)
    lock = threading.Lock()
    faults: list[str] = []

    def work() -> None:
        connection = service.connect()
        while True:
            with lock:
                body = next(waiting, None)
            if body is None:
                connection.close()
                return
            connection.request("POST", "/v1/traces", body, headers)
            response = connection.getresponse()
            answer = response.read()
            if response.status != 200 or rejected_in(answer, headers):
                faults.append(f"{response.status}: {answer[:300]!r}")

    threads = [threading.Thread(target=work) for _ in range(CONNECTIONS)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started
    if faults:
        raise RuntimeError(f"{len(faults)} batches were not taken whole: {faults[0]}")
    return seconds


def settle(service: Service) -> float:
    """Seconds until all is learned from."""
    started = time.perf_counter()
    while service.status()["pendingIndexing"]:
        time.sleep(0.1)
    return time.perf_counter() - started


def read_rate(requests: Sequence[ExportTraceServiceRequest]) -> dict[str, float]:
    """Tool calls a second that are read from bodies at hand, on one core."""
    binary = [each.SerializeToString() for each in requests]
    values = [json.loads(as_json(each)) for each in requests]
    rates = {}
    for name, read in (
        ("protobuf", lambda: [list(read_protobuf(body)) for body in binary]),
        ("json", lambda: [list(read_otlp_json(value)) for value in values]),
    ):
        started = time.perf_counter()
        count = sum(len(each) for each in read())
        rates[name] = count / (time.perf_counter() - started)
    return rates


def run(spans: int, repeats: int) -> Json:
    """All figures; progress on stderr."""
    rates: dict[str, list[float]] = {name: [] for name in ENCODINGS}
    lags: list[float] = []
    sizes: dict[str, float] = {}
    peak = 0.0
    source = history.executions(spans * repeats * len(ENCODINGS) + BATCH * 4)
    read = read_rate(list(batches(islice(source, BATCH * 4), salt=1)))
    with tempfile.TemporaryDirectory(prefix="aftercall-bench-") as name:
        folder = Path(name)
        with serving(folder / "data", folder / "log") as service:
            for repeat in range(repeats):
                for place, (encoding, (headers, encode)) in enumerate(ENCODINGS.items()):
                    salt = 2 + repeat * len(ENCODINGS) + place
                    bodies = [encode(each) for each in batches(islice(source, spans), salt)]
                    seconds = send(service, bodies, headers)
                    rates[encoding].append(spans / seconds)
                    sizes[encoding] = sum(map(len, bodies)) / spans
                    peak = max(peak, service.rss_mib())
                    lags.append(settle(service))
                    peak = max(peak, service.rss_mib())
                    print(
                        f"  {encoding}: {spans / seconds:,.0f} spans/s, learned {lags[-1]:.1f} s "
                        "later",
                        file=sys.stderr,
                        flush=True,
                    )
            stored = service.status()["executions"]
            service.stop()
    if stored != spans * repeats * len(ENCODINGS):
        raise RuntimeError(f"{stored:,} executions are stored, not as many as were sent")
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, "
        f"Python {platform.python_version()}",
        "spans": spans,
        "repeats": repeats,
        "batch": BATCH,
        "connections": CONNECTIONS,
        "asked_spans_per_s": LEAST,
        "spans_per_s": {name: statistics.median(each) for name, each in rates.items()},
        "least_spans_per_s": {name: min(each) for name, each in rates.items()},
        "bytes_per_call": sizes,
        "read_per_s": read,
        "learned_later_s": statistics.median(lags),
        "peak_mib": peak,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spans", type=int, default=20_000, help="tool calls in one repeat")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="few spans, to try it out")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    figures = run(4_096, 1) if args.quick else run(args.spans, args.repeats)
    if args.json:
        print(json.dumps(figures, indent=2))
        return
    print(f"{figures['machine']}; batches of {BATCH} over {CONNECTIONS} connections")
    for name, rate in figures["spans_per_s"].items():
        print(f"  {name:<16} {rate:>8,.0f} spans/s (asked: {LEAST:,})")
    for name, rate in figures["read_per_s"].items():
        print(f"  reading {name:<8} {rate:>8,.0f} spans/s on one core")


if __name__ == "__main__":
    main()
