"""The recorder: quick for the caller, and nothing handed over is lost without being counted."""

import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from aftercall.client import Client
from aftercall.client.transport import MAX_BODY_BYTES
from aftercall.errors import ConfigurationError
from aftercall.models import Execution
from aftercall.recording.recorder import Recorder, RecorderStats, state_folder
from aftercall.redaction import Redactor
from tests.sdk import loopback
from tests.sdk.loopback import Fault, Loopback

New = Callable[..., Execution]
Make = Callable[..., Recorder]
AWAY = {
    "503": loopback.error(503),
    "503 with a wait": loopback.error(503, retry_after="60"),
    "500": loopback.error(500),
    "429": loopback.error(429),
    "401": loopback.error(401),
    "404": loopback.error(404),
    "408": loopback.error(408),
    "a proxy": loopback.page(502),
    "another program": loopback.page(404),
    "a page": loopback.page(200),
    "another protocol": loopback.garbage,
    "reset": loopback.reset,
    "disconnect": loopback.disconnect,
    "cut off": loopback.cut_off,
    "a wrong receipt": loopback.answer(b'{"accepted": 0}', status=202),
}


@pytest.fixture
def spool_dir(tmp_path: Path) -> Path:
    return tmp_path / "spool"


@pytest.fixture
def recorder_of(service: Loopback, spool_dir: Path) -> Iterator[Make]:
    """Makes recorders, by default to the service and with a spool; closes them at the end."""
    made: list[Recorder] = []

    def make(client: Client | None = None, **options: Any) -> Recorder:
        defaults = {"base_url": service.url, "spool_dir": spool_dir, "flush_interval_s": 0.01}
        made.append(Recorder(client, **defaults | options))
        return made[-1]

    yield make
    service.heal()
    for recorder in made:
        recorder.close()


@pytest.fixture
def recorder(recorder_of: Make) -> Recorder:
    return recorder_of()


def eventually(condition: Callable[[], bool], *, within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


def hand_over(recorder: Recorder, new_execution: New, number: int, **changes: Any) -> list[str]:
    ids = []
    for sequence in range(number):
        execution = new_execution(sequence=sequence, **changes)
        ids.append(execution.execution_id)
        recorder.record(execution)
    return ids


def healed(recorder: Recorder, service: Loopback) -> list[str]:
    """The ids that have arrived, in order, once the service answers again."""
    service.heal()
    assert recorder.flush()
    return list(service.executions)


def spooled_bytes(spool_dir: Path) -> bytes:
    found = b""
    for path in spool_dir.rglob("*"):
        with suppress(FileNotFoundError, IsADirectoryError):  # it may be sent meanwhile
            found += path.read_bytes()
    return found


def test_large_executions_are_divided_over_requests(
    recorder: Recorder, service: Loopback, new_execution: New
) -> None:
    """Every body stays within 8 MiB; one that is larger by itself is counted as rejected."""
    hand_over(recorder, new_execution, 4, result="x" * (MAX_BODY_BYTES // 3))
    hand_over(recorder, new_execution, 1, result="x" * MAX_BODY_BYTES)
    ids = hand_over(recorder, new_execution, 1)
    assert recorder.flush(30)
    assert len(service.executions) == 5
    assert ids[0] in service.executions
    assert max(len(request.body) for request in service.requests) <= MAX_BODY_BYTES
    assert recorder.stats().rejected == 1


def test_duplicates_and_refusals_are_counted(
    recorder: Recorder, service: Loopback, new_execution: New
) -> None:
    """As the receipt has them; both count as dealt with."""
    executions = [new_execution(sequence=number) for number in range(10)]
    service.rejects = lambda record: record["sequence"] in (3, 4)
    for execution in [*executions, *executions[:2]]:
        recorder.record(execution)
    assert recorder.flush()
    assert recorder.stats() == RecorderStats(
        recorded=12, sent=8, duplicates=2, rejected=2, spooled=0, dropped=0
    )


@pytest.mark.parametrize("status", [400, 409, 413, 422])
def test_a_bad_record_does_not_take_its_batch_with_it(
    recorder: Recorder, service: Loopback, new_execution: New, status: int
) -> None:
    """A refused batch is halved until the bad records stand alone."""
    service.refusal_status = status
    service.refuses = lambda record: record["sequence"] in (5, 77)
    hand_over(recorder, new_execution, 100)
    assert recorder.flush()
    assert len(service.executions) == 98
    assert (recorder.stats().sent, recorder.stats().rejected) == (98, 2)


def test_what_cannot_be_encoded_is_counted_and_the_rest_is_sent(
    recorder: Recorder, service: Loopback, new_execution: New
) -> None:
    """Whatever a caller hands over, `record` does not raise and the thread goes on."""
    spoiled = new_execution()
    spoiled.parameters["later"] = object()  # type: ignore[assignment]  # what must not be done
    for nonsense in (None, "text", object(), spoiled):
        recorder.record(nonsense)  # type: ignore[arg-type]  # what must not be done
    ids = hand_over(recorder, new_execution, 1)
    assert recorder.flush()
    assert list(service.executions) == ids
    assert recorder.stats().rejected == 4


@pytest.mark.parametrize("fault", AWAY.values(), ids=AWAY)
def test_while_the_service_is_away_executions_wait_on_disk(
    recorder: Recorder, service: Loopback, spool_dir: Path, new_execution: New, fault: Fault
) -> None:
    """Whatever it answers instead: kept, and sent when it is back, oldest first."""
    service.fail(fault)
    ids = hand_over(recorder, new_execution, 20)
    assert not recorder.flush()
    assert recorder.stats().spooled == 20
    assert spooled_bytes(spool_dir).count(b"\n") == 20
    assert healed(recorder, service) == ids
    assert recorder.stats() == RecorderStats(
        recorded=20, sent=20, duplicates=0, rejected=0, spooled=0, dropped=0
    )
    assert spooled_bytes(spool_dir) == b""


def test_a_service_that_is_gone_and_comes_back_gets_everything(
    recorder: Recorder, service: Loopback, new_execution: New
) -> None:
    """By itself, without a flush; what was recorded while it was gone comes oldest first."""
    port = service.port
    service.stop()
    ids = hand_over(recorder, new_execution, 5)
    eventually(lambda: recorder.stats().spooled == 5)
    ids += hand_over(recorder, new_execution, 5)
    eventually(lambda: recorder.stats().spooled == 10)
    service.start(port)
    eventually(lambda: len(service.executions) == 10)
    assert list(service.executions) == ids


def test_an_answer_that_was_lost_doubles_nothing(
    recorder: Recorder, service: Loopback, new_execution: New
) -> None:
    """Stored but not acknowledged: sent again, and counted as duplicates."""

    def store_and_break_off(handler: loopback.Handler) -> None:
        for record in json.loads(handler.body):
            service.executions[record["executionId"]] = record
        loopback.reset(handler)

    service.fail(store_and_break_off, times=1)
    ids = hand_over(recorder, new_execution, 5)
    assert not recorder.flush() or recorder.stats().duplicates
    assert recorder.flush()
    assert list(service.executions) == ids
    stats = recorder.stats()
    assert stats.sent + stats.duplicates == 5


def test_order_is_kept_while_a_backlog_is_worked_off(
    recorder_of: Make, service: Loopback, spool_dir: Path, new_execution: New
) -> None:
    """What is recorded meanwhile goes behind it, for repairs are mined by order."""
    recorder = recorder_of(max_spool_bytes=40_000)  # segments of 10 kB
    service.fail(loopback.error(503))
    ids = []
    for _ in range(6):
        ids += hand_over(recorder, new_execution, 10)
        assert not recorder.flush()
    assert len(list(spool_dir.rglob("*-*.jsonl"))) > 1

    def record_one_more(handler: loopback.Handler) -> None:
        ids.extend(hand_over(recorder, new_execution, 1))
        handler._answer()

    service.heal()
    service.fail(record_one_more, times=2)
    assert recorder.flush()
    assert len(ids) == 62
    assert list(service.executions) == ids


def test_a_hanging_service_holds_up_neither_the_caller_nor_the_flush(
    recorder: Recorder, service: Loopback, new_execution: New
) -> None:
    """After the timeout everything is in the spool, also what was on its way."""
    service.fail(loopback.hang)
    hand_over(recorder, new_execution, 10)
    eventually(lambda: len(service.requests) == 1)
    hand_over(recorder, new_execution, 10)
    assert not recorder.flush(0.05)
    assert recorder.stats().spooled == 20
    assert len(healed(recorder, service)) == 20


def test_the_wait_a_service_asks_for_is_kept(
    recorder: Recorder, service: Loopback, new_execution: New
) -> None:
    """`Retry-After` is the least that is waited, unless somebody flushes."""
    service.fail(loopback.error(503, retry_after="30"), times=1)
    for number in (1, 2, 3):
        hand_over(recorder, new_execution, 1)
        eventually(lambda number=number: recorder.stats().spooled == number)
    assert len(service.requests) == 1
    assert recorder.flush()
    assert recorder.stats().sent == 3


def test_memory_is_bounded_and_the_newest_are_dropped(
    recorder_of: Make, service: Loopback, new_execution: New, caplog: pytest.LogCaptureFixture
) -> None:
    """What was taken over is kept, what comes to a full queue is counted; the caller goes on."""
    service.fail(loopback.hang)
    recorder = recorder_of(max_queue=10)
    ids = hand_over(recorder, new_execution, 1)
    eventually(lambda: len(service.requests) == 1)
    ids += hand_over(recorder, new_execution, 15)[:10]
    assert recorder.stats().dropped == 5
    service.heal()
    eventually(recorder.flush)
    assert list(service.executions) == ids
    assert recorder.stats() == RecorderStats(
        recorded=16, sent=11, duplicates=0, rejected=0, spooled=0, dropped=5
    )
    recorder.close()
    assert "5 executions were not recorded: more than max_queue=10" in caplog.text


def test_disk_is_bounded_and_the_oldest_are_dropped(
    recorder_of: Make,
    service: Loopback,
    spool_dir: Path,
    new_execution: New,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Dropped and waiting add up to what was recorded; the log says what to do."""
    service.fail(loopback.error(503))
    recorder = recorder_of(max_spool_bytes=20_000)
    ids = []
    for _ in range(10):
        ids += hand_over(recorder, new_execution, 20)
        recorder.flush()
        assert len(spooled_bytes(spool_dir)) <= 20_000
    stats = recorder.stats()
    assert 0 < stats.spooled < 200
    assert stats.spooled + stats.dropped == stats.recorded == 200
    assert healed(recorder, service) == ids[-stats.spooled :]
    recorder.close()
    assert "raise max_spool_bytes" in caplog.text


def test_after_closing_executions_are_counted_as_dropped(
    recorder: Recorder, service: Loopback, new_execution: New
) -> None:
    """`record` still does not raise; closing and flushing again do nothing."""
    recorder.close()
    hand_over(recorder, new_execution, 3)
    recorder.close()
    assert recorder.flush()
    assert service.executions == {}
    assert (recorder.stats().recorded, recorder.stats().dropped) == (3, 3)


def test_without_a_spool_executions_wait_in_memory(
    recorder_of: Make, service: Loopback, spool_dir: Path, new_execution: New
) -> None:
    """Sent when the service is back; nothing is written; what is left at the end is counted."""
    recorder = recorder_of(spool_dir=None, max_batch=3)
    service.fail(loopback.error(503))
    ids = hand_over(recorder, new_execution, 10)
    assert not recorder.flush()
    assert recorder.stats().spooled == 0
    assert healed(recorder, service) == ids
    service.fail(loopback.error(503))
    hand_over(recorder, new_execution, 10)
    recorder.close()
    stats = recorder.stats()
    assert (stats.recorded, stats.sent, stats.dropped) == (20, 10, 10)
    assert not spool_dir.exists()


def test_a_full_disk_leaves_executions_in_memory(
    recorder: Recorder,
    service: Loopback,
    new_execution: New,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Said once; they are sent or spooled when either is possible again."""

    def no_space(_: int) -> None:
        raise OSError(28, "No space left on device")

    service.fail(loopback.error(503))
    with monkeypatch.context() as full:
        full.setattr("aftercall.recording.spool.os.fsync", no_space)
        ids = hand_over(recorder, new_execution, 10)
        eventually(lambda: "No space left on device" in caplog.text)
        assert not recorder.flush(0.2)
        assert recorder.stats().spooled == 0
    assert healed(recorder, service) == ids
    assert (recorder.stats().sent, recorder.stats().duplicates) == (10, 0)
    assert caplog.text.count("No space left on device") == 1


def test_secrets_reach_neither_disk_nor_wire_nor_log(
    recorder: Recorder,
    service: Loopback,
    spool_dir: Path,
    new_execution: New,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Masked in the background thread, before anything is written."""
    caplog.set_level(logging.DEBUG)
    secret = "sk-live-abcdefghijklmnop1234"  # noqa: S105  # planted
    service.fail(loopback.error(503))
    hand_over(recorder, new_execution, 3, parameters={"apiKey": secret, "query": "swordfish"})
    assert not recorder.flush()
    on_disk = spooled_bytes(spool_dir)
    assert b"[redacted:string:17-32]" in on_disk
    service.heal()
    service.rejects = lambda record: record["sequence"] == 0
    service.refuses = lambda record: record["sequence"] == 1
    assert recorder.flush()
    recorder.close()
    assert secret.encode() not in on_disk
    assert all(secret.encode() not in request.body for request in service.requests)
    assert len(service.executions) == 1
    for word in (secret, "swordfish", "apiKey"):
        assert word not in caplog.text


def test_the_clients_redactor_is_used_unless_another_is_given(
    recorder_of: Make, service: Loopback, new_execution: New
) -> None:
    """A strict client is not made lax by being recorded through."""
    strict = Redactor.create(extra_names=["query"])
    with Client(service.url, redactor=strict) as client:
        for options in ({}, {"redactor": Redactor()}):
            recorder = recorder_of(client, **options)
            hand_over(recorder, new_execution, 1, parameters={"query": "x"})
            assert recorder.flush()
    masked, plain = (batch[0]["parameters"]["query"] for batch in service.batches)
    assert (masked, plain) == ("[redacted:string:1-8]", "x")


def test_services_do_not_share_a_spool(
    recorder_of: Make, service: Loopback, new_execution: New
) -> None:
    """What was meant for one is never sent to another, though the folder is the same."""
    with loopback.Loopback() as other:
        recorders = {url: recorder_of(base_url=url) for url in (service.url, other.url)}
        ids = {}
        for one in (service, other):
            one.fail(loopback.error(503))
            ids[one.url] = hand_over(recorders[one.url], new_execution, 3)
            assert not recorders[one.url].flush()
        for one in (service, other):
            assert healed(recorders[one.url], one) == ids[one.url]
            recorders[one.url].close()


def test_the_default_folder_follows_the_xdg_specification(
    service: Loopback, new_execution: New, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`$XDG_STATE_HOME`, else `~/.local/state`; a relative path counts for nothing."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for value in ("", "relative"):
        monkeypatch.setenv("XDG_STATE_HOME", value)
        assert state_folder() == tmp_path / "home/.local/state/aftercall/spool"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    service.fail(loopback.error(503))
    with Recorder(base_url=service.url) as recorder:
        hand_over(recorder, new_execution, 2)
        assert not recorder.flush()
        assert spooled_bytes(tmp_path / "state" / "aftercall" / "spool").count(b"\n") == 2


def test_an_unusable_default_folder_is_no_reason_to_fail(
    service: Loopback,
    new_execution: New,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A read-only home gives a warning; a folder that was asked for gives an error."""
    (tmp_path / "state").write_text("a file")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Recorder(base_url=service.url) as recorder:
        hand_over(recorder, new_execution, 2)
        assert recorder.flush()
    assert "wait in memory only" in caplog.text
    with pytest.raises(ConfigurationError, match="pass another spool_dir"):
        Recorder(base_url=service.url, spool_dir=tmp_path / "state" / "spool")


def test_many_threads_hand_over_at_once(
    recorder_of: Make, service: Loopback, new_execution: New
) -> None:
    """Each hand-over is counted, each execution arrives once, and no request is too large."""
    recorder = recorder_of(max_queue=100_000, max_batch=70)
    ready = threading.Barrier(8)

    def work() -> None:
        ready.wait()
        hand_over(recorder, new_execution, 250)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recorder.flush(30)
    assert len(service.executions) == 2000
    assert max(map(len, service.batches)) <= 70
    assert recorder.stats().recorded == recorder.stats().sent == 2000


PRELUDE = """
import json, os, sys, time, uuid
from aftercall.recording.recorder import Recorder
from aftercall.models import Execution
url, spool_dir = sys.argv[1:3]
def new(agent="a"):
    return Execution.model_validate({
        "executionId": str(uuid.uuid4()), "timestamp": "2026-02-20T14:30:00Z", "agent": agent,
        "toolName": "t", "parameters": {}, "outcome": "success",
    })
recorder = Recorder(base_url=url, spool_dir=spool_dir)
"""


def start(script: str, service: Loopback, spool_dir: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PRELUDE + script, service.url, str(spool_dir)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> None:
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, output + errors
    assert "Traceback" not in errors


@pytest.mark.real
def test_at_exit_while_the_service_is_away_everything_is_on_disk(
    service: Loopback, spool_dir: Path, recorder_of: Make
) -> None:
    """And the next process sends it, without having recorded anything itself."""
    service.fail(loopback.error(503))
    finish(start("for _ in range(100): recorder.record(new())", service, spool_dir))
    assert service.executions == {}
    service.heal()
    recorder_of()
    eventually(lambda: len(service.executions) == 100)


@pytest.mark.real
def test_what_a_killed_process_had_spooled_is_sent_by_the_next(
    service: Loopback, spool_dir: Path, recorder_of: Make
) -> None:
    """SIGKILL takes what was in memory, never what was on disk."""
    service.fail(loopback.error(503))
    script = (
        "for _ in range(100): recorder.record(new())\n"
        "recorder.flush()\n"
        "print(recorder.stats().spooled, flush=True)\n"
        "while True: recorder.record(new('in flight')); time.sleep(0.001)\n"
    )
    with start(script, service, spool_dir) as process:
        assert process.stdout.readline() == "100\n"
        eventually(lambda: spooled_bytes(spool_dir).count(b"in flight") > 10)
        process.kill()
    service.heal()
    recorder_of()
    eventually(lambda: spooled_bytes(spool_dir) == b"")
    agents = [record["agent"] for record in service.executions.values()]
    assert agents.count("a") == 100
    assert agents.count("in flight") > 10


@pytest.mark.real
def test_a_forked_child_records_for_itself(service: Loopback, spool_dir: Path) -> None:
    """What the parent had handed over is sent once, by the parent; the child's by the child."""
    script = (
        "for _ in range(50): recorder.record(new('parent'))\n"
        "import warnings; warnings.simplefilter('ignore', DeprecationWarning)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    assert recorder.stats().recorded == 0\n"
        "    for _ in range(20): recorder.record(new('child'))\n"
        "    assert recorder.flush(), recorder.stats()\n"
        "    assert recorder.stats().sent == 20\n"
        "    recorder.record(new('child'))\n"
        "    sys.exit()\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "for _ in range(50): recorder.record(new('parent'))\n"
        "assert recorder.flush()\n"
        "assert recorder.stats().sent == 100, recorder.stats()\n"
    )
    finish(start(script, service, spool_dir))
    agents = [record["agent"] for record in service.executions.values()]
    assert (agents.count("parent"), agents.count("child")) == (100, 21)


def test_a_wrong_address_is_named_at_once() -> None:
    """And not when something is sent."""
    with pytest.raises(ConfigurationError, match="base_url"):
        Recorder(base_url="nowhere", spool_dir=None)
