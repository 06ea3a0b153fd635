"""The file of events: whole lines, whoever else writes, dies, or fills the disk."""

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from aftercall.errors import ConfigurationError
from aftercall.events import JsonLinesSink, ToolCallPlanned, ToolCallResult, ToolCalls
from aftercall.events.sinks import MIN_FILE_BYTES

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

path, name, count, max_bytes = sys.argv[1:]
calls = ToolCalls(name, [JsonLinesSink(path, max_bytes=int(max_bytes))])
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


def lines(path: Path) -> list[dict[str, Any]]:
    """Every line of it; an empty one may be left where two processes met a torn one."""
    text = path.read_bytes()
    assert text.endswith(b"\n")
    return [json.loads(line) for line in text.splitlines() if line]


def readable(path: Path) -> list[dict[str, Any]]:
    """The lines that are JSON."""
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


def race(path: Path, *, count: int, max_bytes: int) -> None:
    """Two processes write at the same time."""
    processes = [run(MANY, str(path), name, str(count), str(max_bytes)) for name in ("a", "b")]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.communicate("go\n", timeout=60)
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
    assert [line["request_id"] for line in lines(path)] == ["first"] * 2 + ["second"] * 2
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.real
def test_after_a_process_that_was_killed_in_a_line(tmp_path: Path) -> None:
    """What it had written half stays alone; a process that goes on begins a fresh line."""
    path = tmp_path / "events.jsonl"
    living = ToolCalls("living", [JsonLinesSink(path)])
    process = run(HALF_A_LINE, str(path))
    with process:
        assert process.stdout is not None
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
    race(path, count=300, max_bytes=2**30)
    found = lines(path)
    for name in ("a", "b"):
        mine = [(line["seq"], line["event"]) for line in found if line["request_id"] == name]
        assert mine == [
            (seq, event) for seq in range(300) for event in ("ToolCallPlanned", "ToolCallResult")
        ]


@pytest.mark.real
def test_two_processes_that_fill_a_file_begin_one_new(tmp_path: Path) -> None:
    """Lines stay whole, and no predecessor is replaced before it was full."""
    path = tmp_path / "events.jsonl"
    race(path, count=300, max_bytes=MIN_FILE_BYTES)
    kept = [*lines(path.with_name("events.jsonl.1")), *lines(path)]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["events.jsonl", "events.jsonl.1"]
    assert path.with_name("events.jsonl.1").stat().st_size > MIN_FILE_BYTES - 500
    for name in ("a", "b"):
        mine = [(line["seq"], line["event"]) for line in kept if line["request_id"] == name]
        assert len(set(mine)) == len(mine)


@pytest.mark.real
def test_a_full_disk_is_told_once(tmp_path: Path) -> None:
    """The calls go on, the log says that events are lost and when it is over, lines are whole."""
    path = tmp_path / "events.jsonl"
    process = run(FULL_DISK, str(path))
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    first, last = said.splitlines()
    assert first.startswith("events cannot be written to events.jsonl and are lost (")
    assert last.startswith("events are written to events.jsonl again; ")
    tools = [line["tool"] for line in readable(path)]
    assert tools[:2] + tools[-2:] == ["before"] * 2 + ["after"] * 2
    lost = int(last.split()[-3])
    assert lost + len(tools) == 24


def test_a_full_file_becomes_the_predecessor(tmp_path: Path) -> None:
    """Two files at most, both within the bound, the newest lines in them without a gap."""
    path = tmp_path / "events.jsonl"
    calls = ToolCalls("r", [JsonLinesSink(path, max_bytes=MIN_FILE_BYTES)])
    for _ in range(300):
        calls.planned("tool", {}).ok()
    older = path.with_name("events.jsonl.1")
    assert sorted(tmp_path.iterdir()) == [path, older]
    assert max(path.stat().st_size, older.stat().st_size) <= MIN_FILE_BYTES
    numbers = [line["seq"] for line in [*lines(older), *lines(path)]]
    assert numbers == sorted(numbers)
    assert numbers[-1] == 299
    assert set(numbers) == set(range(numbers[0], 300))


def test_a_file_that_another_has_moved_away_is_not_moved_again(tmp_path: Path) -> None:
    """Who finds its file full late does not put the new one in the predecessor's place."""
    path = tmp_path / "events.jsonl"
    sink = JsonLinesSink(path)
    late = sink._open()
    try:
        os.write(late, b"full")
        path.rename(tmp_path / "events.jsonl.1")  # as another process does
        assert sink._move_away(late)
        assert not path.exists()
        path.write_text("new")
        assert sink._move_away(late)
    finally:
        os.close(late)
    assert path.read_text() == "new"
    assert (tmp_path / "events.jsonl.1").read_text() == "full"


def test_threads_that_fill_a_file(tmp_path: Path) -> None:
    """Lines stay whole while several threads find it full."""
    path = tmp_path / "events.jsonl"
    sink = JsonLinesSink(path, max_bytes=MIN_FILE_BYTES)
    start = threading.Barrier(4)

    def work(number: int) -> None:
        calls = ToolCalls(f"r{number}", [sink])
        start.wait()
        for _ in range(100):
            calls.planned("tool", {}).ok()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    older = path.with_name("events.jsonl.1")
    assert lines(path)
    assert lines(older)


@pytest.mark.real
def test_the_child_of_a_fork_writes_on(tmp_path: Path) -> None:
    """Nothing is shared with the parent but the file."""
    path = tmp_path / "events.jsonl"
    script = """
import os, sys
from aftercall.events import JsonLinesSink, ToolCalls
sink = JsonLinesSink(sys.argv[1])
child = os.fork()
ToolCalls("parent" if child else "child", [sink]).planned("a", {}).ok()
if child:
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", script, str(path)], check=False, timeout=60)
    assert done.returncode == 0
    assert sorted(line["request_id"] for line in lines(path)) == ["child"] * 2 + ["parent"] * 2


def test_a_folder_that_went_away_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And events are written again when it is back."""
    path = tmp_path / "sub" / "events.jsonl"
    calls = ToolCalls("r", [JsonLinesSink(path)])
    path.unlink()
    path.parent.rmdir()
    for _ in range(5):
        calls.planned("a", {}).ok()
    path.parent.mkdir()
    calls.planned("b", {}).ok()
    assert [line["tool"] for line in lines(path)] == ["b", "b"]
    first, second = (record.getMessage() for record in caplog.records)
    assert "No such file" in first
    assert "10 were lost" in second
    assert str(tmp_path) not in first + second


def test_a_link_is_followed(tmp_path: Path) -> None:
    """The file is moved away, not the link to it."""
    path, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    link.symlink_to(path)
    calls = ToolCalls("r", [JsonLinesSink(link, max_bytes=MIN_FILE_BYTES)])
    for _ in range(100):
        calls.planned("tool", {}).ok()
    assert link.is_symlink()
    assert lines(path)
    assert lines(tmp_path / "real.jsonl.1")


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """At once, with the cure: a folder, a pipe, a bound below one line."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    for path in (tmp_path / "folder", tmp_path / "pipe", tmp_path / "file" / "below"):
        with pytest.raises(ConfigurationError, match="pass another path"):
            JsonLinesSink(path)
    with pytest.raises(ConfigurationError, match="at least 16384"):
        JsonLinesSink(tmp_path / "events.jsonl", max_bytes=1000)
