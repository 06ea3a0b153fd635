"""The contract of sinks, each through `ToolCalls`: a new sink joins by one line in `OPENERS`."""

import json
import logging
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from aftercall import events as events_calls
from aftercall.errors import ConfigurationError
from aftercall.events import (
    CallbackSink,
    JsonLinesSink,
    LoggingSink,
    Sink,
    ToolCallEvent,
    ToolCallPlanned,
    ToolCallResult,
    ToolCalls,
)
from aftercall.json_values import JsonObject
from aftercall.metrics import ToolCallMetrics
from aftercall.models import Execution
from tests.sdk.event_records import Events, check_order
from tests.sdk.scripted_advice import Records

Ended = tuple[str, str]
"""Tool and status of a call that has ended."""


@dataclass
class Opened:
    """A sink, what it has made of the calls, and how its back end is made to fail."""

    sink: Sink
    ended: Callable[[], list[Ended]]
    break_it: Callable[[], None]


def _of(events: list[ToolCallEvent]) -> list[Ended]:
    check_order(events)
    return [(event.tool, event.status) for event in events if isinstance(event, ToolCallResult)]


KINDS: TypeAdapter[ToolCallEvent] = TypeAdapter(ToolCallPlanned | ToolCallResult)


def read(path: Path) -> list[ToolCallEvent]:
    *lines, last = path.read_bytes().split(b"\n")
    assert last == b""
    return [KINDS.validate_json(line) for line in lines]


class Lines(logging.Handler):
    """Keeps records."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []
        self.is_broken = False

    def emit(self, record: logging.LogRecord) -> None:
        if self.is_broken:
            raise OSError("the log is gone")
        self.records.append(record)

    def events(self) -> list[ToolCallEvent]:
        return [KINDS.validate_python(each.__dict__["tool_call"]) for each in self.records]


def _own_logger() -> logging.Logger:
    return logging.Logger("test")  # noqa: LOG001  # seen by nobody else


def open_logging(_: Path) -> Opened:
    logger, lines = _own_logger(), Lines()
    logger.addHandler(lines)
    return Opened(
        LoggingSink(logger), lambda: _of(lines.events()), lambda: setattr(lines, "is_broken", True)
    )


def open_json_lines(folder: Path) -> Opened:
    path = folder / "sub" / "events.jsonl"
    return Opened(JsonLinesSink(path), lambda: _of(read(path)), lambda: shutil.rmtree(path.parent))


def open_callback(_: Path) -> Opened:
    kept: list[ToolCallEvent] = []
    broken: list[bool] = []

    def function(event: ToolCallEvent) -> None:
        if broken:
            raise RuntimeError("no room")
        kept.append(event)

    return Opened(CallbackSink(function), lambda: _of(kept), lambda: broken.append(True))


def open_recorder(_: Path) -> Opened:
    records = Records()
    broken: list[bool] = []

    class Recording:
        def record(self, execution: Execution) -> None:
            if broken:
                raise RuntimeError("no room")
            records.record(execution)

    def ended() -> list[Ended]:
        status = {"success": "ok", "failure": "error"}
        return [(call.tool_name, status[call.outcome]) for call in records.executions]

    return Opened(Recording(), ended, lambda: broken.append(True))


def open_metrics(_: Path) -> Opened:
    metrics = ToolCallMetrics()

    def ended() -> list[Ended]:
        found: list[Ended] = []
        for family in metrics.registry.collect():
            for sample in family.samples:
                if sample.name == "tool_calls_total":
                    labels = (sample.labels["tool"], sample.labels["status"])
                    found += [labels] * int(sample.value)
        return found

    return Opened(metrics, ended, lambda: None)


OPENERS = [open_logging, open_json_lines, open_callback, open_recorder, open_metrics]


@pytest.fixture(params=OPENERS, ids=lambda opener: opener.__name__.removeprefix("open_"))
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    events_calls._next_complaint.clear()
    made: Opened = request.param(tmp_path)
    return made


def test_every_ended_call_is_taken_once(opened: Opened) -> None:
    """With its tool and status; what has not ended is not there."""
    calls = ToolCalls("r", [opened.sink])
    first, second = calls.planned("a", {"n": 1}), calls.planned("b", {"n": 2})
    calls.planned("c", {})
    second.error("E", "m", latency_ms=1)
    first.ok("result", latency_ms=1)
    first.ok("again")
    assert Counter(opened.ended()) == {("a", "ok"): 1, ("b", "error"): 1}


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads change places as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty")
def test_threads_lose_and_double_nothing(opened: Opened) -> None:
    """One request from four threads that change places in the middle of calls: all in order."""
    shared = ToolCalls("shared", [opened.sink])
    start = threading.Barrier(4)

    def run(number: int) -> None:
        start.wait()
        for _ in range(50):
            shared.planned(f"t{number}", {}).ok()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(4)))
    assert Counter(opened.ended()) == {(f"t{number}", "ok"): 50 for number in range(4)}


def test_text_of_tools_is_data(opened: Opened) -> None:
    """Line ends, quotes, escapes, NULs and lone surrogates in it change nothing around it."""
    nasty = 'a"\n{"event":"x"}\r\x1b[31m\x85\u2028\u202e\\'
    calls = ToolCalls(f"r\n{nasty}", [opened.sink])
    calls.planned(nasty, {"a": nasty}).ok(f"{nasty}\x00\ud800")
    calls.planned("next", {}).error(nasty, f"{nasty}\x00\ud800")
    (_, first), last = opened.ended()
    assert (first, last) == ("ok", ("next", "error"))


def test_a_broken_back_end_harms_nobody(opened: Opened, caplog: pytest.LogCaptureFixture) -> None:
    """Calls and other sinks go on; at most one line of log tells of it, without a value."""
    opened.break_it()
    for _ in range(3):
        kept = Events()
        calls = ToolCalls("r", [opened.sink, kept])
        calls.planned("a", {"q": "secret words"}).ok("secret words")
        calls.planned("a", {}).error("E", "secret words")
        calls.unreadable("a", "{secret", error_type="E", message="m")
        assert _of(kept.events) == [("a", "ok"), ("a", "error"), ("a", "error")]
    assert len(caplog.records) <= 1
    assert "secret" not in caplog.text
    if isinstance(opened.sink, CallbackSink):
        assert "CallbackSink failed with RuntimeError" in caplog.text


def test_a_log_line_names_and_counts() -> None:
    """No message of a tool is in the line, all fields are beside it, and a line stays a line."""
    lines, logger = Lines(), _own_logger()
    logger.addHandler(lines)
    calls = ToolCalls("r-1", [LoggingSink(logger, logging.WARNING)])
    calls.planned("a\nb", {}).error("Value\nError", "said\nthis", latency_ms=12.34)
    told = [each.getMessage() for each in lines.records]
    planned, result = map(json.loads, told)
    assert (planned["tool"], result["error_type"]) == ("a\nb", "Value\nError")
    assert "said" not in str(result)
    assert not any("\n" in line for line in told)
    assert lines.records[1].__dict__["tool_call"]["message"] == "said\nthis"
    assert {record.levelno for record in lines.records} == {logging.WARNING}


def test_a_callback_nobody_awaits_is_refused() -> None:
    """With the cure."""

    async def function(event: ToolCallEvent) -> None:
        raise AssertionError(event)

    with pytest.raises(ConfigurationError, match="put_nowait"):
        CallbackSink(function)


def test_a_recorded_call_is_a_whole_execution() -> None:
    """With agent, server, session, order, time, a bounded result, and parameters as sent."""
    records = Records()
    calls = ToolCalls("s-1", [records], agent="ada", server_name="rag")
    arguments: JsonObject = {"topK": 5}
    call = calls.planned("rag_query", arguments)
    arguments.clear()  # as a tool may do
    call.ok(["x" * 100_000], latency_ms=7)
    calls.planned("rag_query", {"topK": 50}).error("ValueError", "too\x00 many", latency_ms=1)
    first, second = records.executions
    assert (first.agent, first.server_name, first.tool_name) == ("ada", "rag", "rag_query")
    assert (first.session_id, first.sequence, second.sequence) == ("s-1", 0, 1)
    assert (first.parameters, first.outcome, first.duration_ms) == ({"topK": 5}, "success", 7)
    assert first.error is None
    assert len(str(first.result)) < 5000
    assert (second.error.type, second.error.message) == ("ValueError", "too� many")
    assert first.execution_id != second.execution_id
    assert first.timestamp <= second.timestamp


HALF_A_LINE = """
import os, sys
from aftercall.events import JsonLinesSink, ToolCalls

calls = ToolCalls("killed", [JsonLinesSink(sys.argv[1])])
calls.planned("a", {}).ok()
write = os.write

def half(descriptor, line):
    write(descriptor, line[: len(line) // 2])
    print("ready", flush=True)
    sys.stdin.read()

os.write = half
calls.planned("b", {})
"""

MANY = """
import sys
from aftercall.events import JsonLinesSink, ToolCalls

path, name, count = sys.argv[1:]
calls = ToolCalls(name, [JsonLinesSink(path)])
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(count)):
    calls.planned("tool", {}).ok()
"""

FULL_DISK = """
import logging, resource, sys
from aftercall.events import JsonLinesSink, ToolCalls

logging.basicConfig(stream=sys.stdout, format="%(message)s")
calls = ToolCalls("full", [JsonLinesSink(sys.argv[1])])
calls.planned("before", {}).ok()
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
for _ in range(10):
    calls.planned("during", {}).ok()
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
calls.planned("after", {}).ok()
"""


def readable(path: Path) -> list[dict[str, Any]]:
    """The lines that are JSON; an empty one may be left where two processes met a torn one."""
    found = []
    for line in path.read_bytes().split(b"\n"):
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def run(script: str, *args: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", script, *args],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def race(path: Path, *, count: int) -> None:
    """Two processes write at the same time."""
    processes = [run(MANY, str(path), name, str(count)) for name in ("a", "b")]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.communicate("go\n", timeout=200)
        assert process.returncode == 0


def test_lines_are_the_events(tmp_path: Path) -> None:
    """In order, one each, read back by the models; the file is its owner's, and goes on."""
    path = tmp_path / "sub" / "events.jsonl"
    for name in ("first", "second"):
        calls = ToolCalls(name, [JsonLinesSink(str(path))])
        calls.planned("a", {"q": "ü"}, args_schema_version="1").error("E", "sai\nd ü")
    planned, result, *_ = path.read_bytes().splitlines()
    assert ToolCallPlanned.model_validate_json(planned).args_schema_version == "1"
    assert ToolCallResult.model_validate_json(result).message == "sai\nd ü"
    assert [line["request_id"] for line in readable(path)] == ["first"] * 2 + ["second"] * 2
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.real
def test_after_a_process_that_was_killed_in_a_line(tmp_path: Path) -> None:
    """What it had written half stays alone; a process that goes on begins a fresh line."""
    path = tmp_path / "events.jsonl"
    living = ToolCalls("living", [JsonLinesSink(path)])
    process = run(HALF_A_LINE, str(path))
    with process:
        assert process.stdout.readline() == "ready\n"
        process.kill()
    assert not path.read_bytes().endswith(b"\n")
    living.planned("c", {}).ok()
    assert [(line["request_id"], line["tool"]) for line in readable(path)] == [
        ("killed", "a"), ("killed", "a"), ("living", "c"), ("living", "c"),
    ]  # fmt: skip
    torn = [line for line in path.read_bytes().split(b"\n") if not line.endswith(b"}")]
    assert len(torn) == 2  # the half line, and what follows the last line end
    assert torn[1] == b""


@pytest.mark.real
def test_two_processes_share_a_file(tmp_path: Path) -> None:
    """Every line of both is whole, and each one's are in order."""
    path = tmp_path / "events.jsonl"
    race(path, count=300)
    found = readable(path)
    for name in ("a", "b"):
        mine = [(line["seq"], line["event"]) for line in found if line["request_id"] == name]
        assert mine == [
            (seq, event) for seq in range(300) for event in ("ToolCallPlanned", "ToolCallResult")
        ]


@pytest.mark.real
def test_a_full_disk_is_told_once(tmp_path: Path) -> None:
    """The calls go on, the log says once that events are lost, and later lines are whole."""
    path = tmp_path / "events.jsonl"
    process = run(FULL_DISK, str(path))
    said, _ = process.communicate(timeout=200)
    assert process.returncode == 0
    assert len(said.splitlines()) == 1
    assert "JsonLinesSink failed with" in said
    tools = [line["tool"] for line in readable(path)]
    assert tools[:2] + tools[-2:] == ["before"] * 2 + ["after"] * 2


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """At once, with the cure: a folder, a file in the place of a folder."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    for path in (tmp_path / "folder", tmp_path / "file" / "below"):
        with pytest.raises(ConfigurationError, match="pass another path"):
            JsonLinesSink(path)
