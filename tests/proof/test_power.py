"""The power goes at any point of one small write, and at once after it was acknowledged."""

import asyncio
import ctypes
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from aftercall.files import key_file, replace_file
from aftercall.recording.spool import Spool
from mongo.records import AuditEntry, Commit, Row
from mongo.sqlite.control import open_sqlite_control
from mongo.sqlite.store import open_sqlite_store
from service.archive import open_unpacked, open_written
from tests.conftest import NO_COMPILER
from tests.ingest.histories import WORKSPACE, history
from tests.proof.crash_life import Say
from tests.proof.crash_points import LOADED, WAYS, forked, load_shim

ROOT = Path(__file__).parents[2]
ENTRY = AuditEntry("key.make", "key", "owner", WORKSPACE, datetime(2026, 2, 1, tzinfo=UTC))

pytestmark = [pytest.mark.real, pytest.mark.skipif(shutil.which("cc") is None, reason=NO_COMPILER)]


def spool_of(folder: Path) -> Spool:
    return Spool(folder / "spool", max_bytes=1 << 20)


def export(folder: Path) -> None:
    with open_written(str(folder / "archive")) as stream:
        stream.write(b"new\n")


def exported(folder: Path) -> list[bytes]:
    if not (folder / "archive").exists():
        return []
    with open_unpacked(str(folder / "archive")) as stream:
        return stream.readlines() or [b"nothing under its name"]


def spooled(folder: Path) -> list[bytes]:
    with spool_of(folder).lock_oldest() as segment:
        return segment.lines if segment else []


def made_key(folder: Path) -> list[bytes]:
    return [b"new"] if (folder / "key").exists() and len(key_file(folder / "key")) == 32 else []


def keep(what: str, folder: Path) -> None:
    async def done() -> None:
        if what == "audit":
            await (await open_sqlite_control(folder)).append(ENTRY)
            return
        store = await open_sqlite_store(folder)
        if what == "log":
            await store.events.append(WORKSPACE, [next(history(1, 1, 1.0))])
        else:
            of = store.knowledge if what == "knowledge" else await store.open_generation(0)
            await of.commit(Commit(WORKSPACE, [Row("document", "new")], moved=(0, 1)))
            if what == "knowledge":  # as before an expiry
                await of.commit(Commit(WORKSPACE, lasts=True))

    asyncio.run(done())


def kept(what: str, folder: Path) -> list[bytes]:
    async def found() -> list[bytes]:
        if what == "audit":
            control = await open_sqlite_control(folder)
            number = (await control.read_head()).position
            await control.close()
        else:
            store = await open_sqlite_store(folder)
            number = len(await store.events.read_after(WORKSPACE, 0, 9))
            if what == "knowledge":
                number = len(await store.knowledge.read_cursors())
            elif what == "base":
                number = len(await (await store.open_generation(0)).read_cursors())
            await store.close()
        return [b"new"] * number

    return asyncio.run(found())


Case = tuple[Callable[[Path], object], Callable[[Path], list[bytes]], bool]
CASES: dict[str, Case] = {
    "a file is replaced": (
        lambda f: replace_file(f / "file", b"new"),
        lambda f: [] if (found := (f / "file").read_bytes()) == b"old" else [found],
        True,
    ),
    "a key is made": (lambda f: key_file(f / "key"), made_key, True),
    "calls are spooled": (lambda f: spool_of(f).append([b"new"]), spooled, True),
    "an export is written": (export, exported, True),
    **{
        f"the {what} is appended to": (partial(keep, what), partial(kept, what), False)
        for what in ("log", "base", "knowledge", "audit")
    },
}  # fmt: skip
"""What is done, what is found of it, and whether to die at each of its points too."""


@pytest.mark.parametrize("case", CASES)
def test_the_power_goes(case: str, tmp_path: Path) -> None:
    """Before the end all of it is there or nothing; after it all."""
    environ = {**load_shim(tmp_path), "PYTHONPATH": f"{ROOT}:{ROOT / 'sdk'}"}
    words = [sys.executable, "-m", "tests.proof.test_power", case, str(tmp_path / "life")]
    done = subprocess.run(words, env=environ, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr


@pytest.mark.parametrize("case", CASES)
def test_a_new_name_is_on_the_disk_too(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is synced when it holds the name, which the loss of power above does not show."""
    synced: set[Path] = set()
    sync, folder = os.fsync, tmp_path / "life"

    def noted(descriptor: int) -> None:
        at = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.update(at.iterdir() if at.is_dir() else ())
        sync(descriptor)

    _prepare(folder)
    monkeypatch.setattr(os, "fsync", noted)
    is_store = case.endswith("appended to")
    folder = folder / "made" if is_store else folder
    CASES[case][0](folder)
    files = [each for each in folder.rglob("*.sqlite3" if is_store else "[!.]*") if each.is_file()]
    made = {each for each in files if each.read_bytes() != b"old"} | (
        {folder} if is_store else set()
    )
    assert made
    assert made - synced == set()


def _prepare(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "file").write_bytes(b"old")


def main(case: str, folder: Path) -> None:
    """Die at each point of a case in processes of their own, and say what is wrong."""
    for way in ("power", "pages"):
        points = itertools.count(1 if CASES[case][2] else 1 << 30)
        while not is_done(case, folder / way, way, next(points)):
            pass


def is_done(case: str, folder: Path, way: str, point: int) -> bool:
    """Whether it came to its end before the point."""
    shim = ctypes.CDLL(os.environ[LOADED])
    do, found, _ = CASES[case]
    at = folder / str(point)
    _prepare(at)

    def life(say: Say) -> None:
        shim.crash_arm(str(at).encode(), ctypes.c_longlong(point), WAYS[way])
        do(at)
        say("done")
        shim.crash_now()

    is_done = "done" in forked(life)[0]
    lines = found(at)
    if [line.strip() for line in lines] not in ([[b"new"]] if is_done else [[b"new"], []]):
        sys.stdout.write(f"{way} at {point}: {lines} after {is_done=}\n")
    return is_done


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
