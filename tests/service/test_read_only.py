"""A log store that can be read and not written, as when its file system turned so."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from mongo.errors import StoreReadOnlyError
from mongo.sqlite import SqliteStore, open_sqlite_store
from tests.service.running_service import RunningService, execution, hashing_settings, running

pytestmark = pytest.mark.real


def make_writable(service: RunningService, *, writable: bool) -> None:
    """Have SQLite refuse every write, in its own words for such a file system, or take them."""
    store = cast("SqliteStore", service.context.store)
    # Past the writer: it begins each operation with what is refused.
    store._writer._connection.execute(f"PRAGMA query_only = {'OFF' if writable else 'ON'}").close()


def test_a_read_only_store_is_503_and_reading_goes_on(service: RunningService) -> None:
    """Nothing of the call is stored, the caller is told when to come back, and then it is taken."""
    stored, refused = execution(), execution()
    assert service.record(stored).status_code == 202
    make_writable(service, writable=False)
    try:
        refuses(service, refused)
        assert service.is_stored(stored)
        assert not service.is_stored(refused)
    finally:
        make_writable(service, writable=True)
    assert service.record(refused).status_code == 202
    assert service.is_stored(refused)


def refuses(service: RunningService, record: dict[str, object]) -> None:
    """503 with its own code, and when to come back."""
    answer = service.record(record)
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "store_read_only"
    assert int(answer.headers["retry-after"]) > 0


class Volume:
    """A small file system of its own, in a file."""

    def __init__(self, folder: Path) -> None:
        self._image = folder / "image"
        self.folder = folder / "volume"
        self.folder.mkdir()
        self._image.write_bytes(b"")
        with self._image.open("r+b") as image:
            image.truncate(400 << 20)  # sparse
        _run("mkfs.ext4", "-q", self._image)

    def mount(self, options: str = "loop") -> None:
        """Make it seen; `loop,ro` for reading only."""
        _run("mount", "-o", options, self._image, self.folder)

    def fail(self) -> None:
        """Turn it read-only under whoever writes, as the kernel does when a disk fails."""
        _run("mount", "-o", "remount,abort", self.folder)

    def unmount(self) -> None:
        """Take it away."""
        _run("umount", "-l", self.folder)

    def mend(self) -> None:
        """Check and repair it, as an operator does."""
        subprocess.run(["e2fsck", "-fy", self._image], capture_output=True, check=False)


def _run(*command: str | Path) -> None:
    subprocess.run(command, capture_output=True, check=True)


def _can_mount() -> bool:
    """Whether this user may mount a file: not in most containers."""
    if shutil.which("mkfs.ext4") is None or not Path("/dev/loop-control").exists():
        return False
    probe = subprocess.run(["losetup", "-f"], capture_output=True, check=False)
    return probe.returncode == 0


needs_mounting = pytest.mark.skipif(
    not _can_mount(), reason="mounting a file needs privileges, a loop device and mkfs.ext4"
)


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Volume]:
    """Mounted for writing; a test may unmount and mount it again."""
    made = Volume(tmp_path)
    made.mount()
    yield made
    made.unmount()


@needs_mounting
def test_a_disk_that_fails_under_a_running_service_stops_writes_and_not_reads(
    volume: Volume, tmp_path: Path
) -> None:
    """The kernel turns it read-only; what was acknowledged is there after it was mended."""
    settings = hashing_settings(tmp_path).with_values(data={"dir": volume.folder / "data"})
    stored, refused = [execution() for _ in range(5)], execution()
    with running(settings) as service:
        assert service.record(stored).status_code == 202
        volume.fail()
        refuses(service, refused)
        assert all(service.is_stored(each) for each in stored)
        assert service.client.get("/healthz").status_code == 200
    volume.unmount()
    volume.mend()
    volume.mount()
    with running(settings) as service:
        assert all(service.is_stored(each) for each in stored)
        assert service.record(refused).status_code == 202


@needs_mounting
@pytest.mark.parametrize("beside", [False, True])
async def test_a_store_on_a_read_only_volume_is_not_opened_and_it_says_why(
    volume: Volume, beside: bool
) -> None:
    """Neither by a service nor beside one; the message names the volume's cure."""
    data = volume.folder / "data"
    await (await open_sqlite_store(data)).close()
    volume.unmount()
    volume.mount("loop,ro")
    with pytest.raises(StoreReadOnlyError, match=r"cannot be opened.*Mount its volume"):
        await open_sqlite_store(data, beside=beside)
