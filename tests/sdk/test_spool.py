"""The spool: nothing lost, nothing torn, never too large, shared between processes."""

import fcntl
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.errors import ConfigurationError
from aftercall.places import try_lock, unlock_file
from aftercall.recording import spool as spool_module
from aftercall.recording.spool import Spool

MIB = 1024 * 1024


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state" / "spool"


def open_spool(folder: Path, *, max_bytes: int = MIB, segment_bytes: int = MIB) -> Spool:
    return Spool(folder, max_bytes=max_bytes, segment_bytes=segment_bytes)


def lines(*numbers: int, width: int = 1) -> list[bytes]:
    return [str(number).rjust(width, "0").encode() for number in numbers]


def drained(spool: Spool) -> list[bytes]:
    """All that is in the spool, oldest first, removed."""
    found: list[bytes] = []
    while lines_of_one := _one_segment(spool):
        found += lines_of_one
    return found


def killed_after(script: str, *args: str) -> None:
    """Run Python in a process of its own that is killed (SIGKILL) when it says so."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, *args], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "ready\n"
        process.kill()


@given(
    batches=st.lists(st.lists(st.integers(0, 10**6), min_size=1, max_size=5), max_size=10),
    segment_bytes=st.integers(1, 40),
)
def test_order_does_not_depend_on_how_it_falls_into_segments(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[int]], segment_bytes: int
) -> None:
    """Batches are never divided and never change places."""
    folder = tmp_path_factory.mktemp("spool")
    spool = open_spool(folder, segment_bytes=segment_bytes)
    for batch in batches:
        assert spool.append(lines(*batch)) == 0
    expected = lines(*(number for batch in batches for number in batch))
    assert spool.count_waiting() == len(expected)
    assert spool.holds_own() == bool(expected)
    assert drained(spool) == expected
    assert spool.count_waiting() == 0
    assert not spool.holds_own()
    assert list(folder.iterdir()) == []


def test_a_claimed_segment_is_not_given_twice(folder: Path) -> None:
    """Neither to the same spool nor to another one on the folder; only the owner can read it."""
    one, two = open_spool(folder, segment_bytes=1), open_spool(folder)
    one.append(lines(1))
    one.append(lines(2))
    modes = [path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())]
    assert modes == [0o700, 0o600, 0o600]
    with one.lock_oldest() as first, two.lock_oldest() as second, one.lock_oldest() as third:
        assert (first.lines, second.lines) == (lines(1), lines(2))
        assert third is None


def test_nothing_is_added_to_a_segment_that_is_being_sent(folder: Path) -> None:
    """Its writer begins another, and what was not removed is sent first again."""
    writer, reader = open_spool(folder), open_spool(folder)
    writer.append(lines(1))
    with reader.lock_oldest() as segment:
        writer.append(lines(2))
        assert segment.lines == lines(1)
    assert not reader.holds_own()
    assert writer.holds_own()
    assert reader.count_waiting() == 2
    assert _one_segment(reader) == lines(1)
    assert drained(reader) == lines(2)


@pytest.mark.real
def test_what_a_killed_process_left_is_adopted(folder: Path) -> None:
    """Also what it was sending: whole lines go to the next process, a half-written one to none."""
    script = (
        "import sys, time, os; from pathlib import Path\n"
        "from aftercall.recording.spool import Spool\n"
        "spool = Spool(Path(sys.argv[1]), max_bytes=10**6)\n"
        "spool.append([b'1', b'2'])\n"
        "descriptor = next(Path(sys.argv[1]).glob('*.jsonl'))\n"
        "os.write(os.open(descriptor, os.O_WRONLY | os.O_APPEND), b'{\"half')\n"
        "segment = spool.lock_oldest().__enter__()\n"
        "print('ready', flush=True); time.sleep(60)\n"
    )
    killed_after(script, str(folder))
    spool = open_spool(folder)
    spool.append(lines(3))
    assert drained(spool) == lines(1, 2, 3)
    assert list(folder.iterdir()) == []


def test_what_is_being_sent_is_not_dropped(folder: Path) -> None:
    """The next oldest goes instead."""
    spool = open_spool(folder, max_bytes=40, segment_bytes=10)
    for number in (1, 2, 3, 4):
        spool.append(lines(number, width=9))
    with spool.lock_oldest() as segment:
        assert spool.append(lines(5, width=9)) == 1
        assert segment.lines == lines(1, width=9)
    assert drained(spool) == lines(1, 3, 4, 5, width=9)


def test_an_emptied_folder_is_no_trouble(folder: Path) -> None:
    """Somebody tidied up: what comes later is kept again."""
    spool = open_spool(folder)
    spool.append(lines(1))
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    assert spool.append(lines(2)) == 0
    assert drained(spool) == lines(2)
    spool.append(lines(3))
    for path in folder.iterdir():
        path.unlink()
    assert drained(spool) == []


@pytest.mark.parametrize("obstacle", ["file", "below a file"])
def test_a_folder_that_cannot_be_is_a_configuration_error(tmp_path: Path, obstacle: str) -> None:
    """The message names the folder and the way out."""
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    folder = blocked if obstacle == "file" else blocked / "spool"
    with pytest.raises(ConfigurationError, match="pass another spool_dir"):
        open_spool(folder)


@pytest.mark.parametrize("act", ["append", "send", "erase"])
def test_who_changes_segments_is_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    """Others wait for the folder, and a segment that is erased from is not given to be sent."""
    spool, free = open_spool(folder), list[Path]()
    spool.append(lines(1))
    reader = "sync_folder" if act == "append" else "_whole_lines"
    at = getattr(spool_module, reader)

    def look(path: Path) -> object:
        for each in (folder, *([path] if act == "erase" else [])):
            if each.exists():
                descriptor = os.open(each, os.O_RDONLY)
                with suppress(BlockingIOError):
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    free.append(each)
                os.close(descriptor)
        return at(path)

    monkeypatch.setattr(spool_module, reader, look)
    if act == "append":
        spool.append(lines(2))
    elif act == "send":
        assert _one_segment(spool) == lines(1)
    else:
        assert spool.erase_executions(lambda line: line == b"1") == 1
    assert free == []


def test_what_is_unlocked_is_free_though_a_fork_has_a_copy(tmp_path: Path) -> None:
    """The copy is of the same lock."""
    held = try_lock(tmp_path / "lock", alone=True)
    assert held is not None
    assert try_lock(tmp_path / "lock", alone=False) is None
    copy = os.dup(held)
    unlock_file(held)
    again = try_lock(tmp_path / "lock", alone=True)
    os.close(copy)
    assert again is not None
    unlock_file(again)


def _one_segment(spool: Spool) -> list[bytes]:
    with spool.lock_oldest() as segment:
        if segment is None:
            return []
        segment.remove()
        return segment.lines
