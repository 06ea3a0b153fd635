"""The embedded index's folder: crashes, second processes, other versions, full disks."""

import asyncio
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from retrieval.index import edge_shard
from retrieval.index.edge_shard import WRITE_AHEAD_LOG, IndexFolder, Shard, page_out, remove_folder
from retrieval.index.protocol import IndexInUseError, VectorIndexError
from tests.retrieval.index.documents import (
    DIMENSION,
    document_id,
    open_edge,
    point,
    question,
    shards,
)

OPEN_ONCE = """
import asyncio, sys
from pathlib import Path
from retrieval.index.edge import EdgeIndex

async def main():
    index = await EdgeIndex.open(Path(sys.argv[1]), dimension=96, fingerprint="hashing-1@96")
    await index.close()

asyncio.run(main())
"""


async def _python(code: str, folder: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code, str(folder)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )


async def test_what_upsert_acknowledged_survives_a_power_cut(tmp_path):
    """The log alone suffices: with the segments as they were flushed before, nothing is missing.

    Upsert puts only the log on the disk; of the segments' memory maps a power cut may leave any
    page behind. So the segments are taken from before the upserts, the log from after.
    """
    live, left = tmp_path / "live", tmp_path / "left"
    shard = Shard.create(live, dimension=DIMENSION)
    shard.upsert_points([point("before"), point("gone")])
    shard.flush_segments()
    shutil.copytree(live, left)
    shard.upsert_points([point(f"after {number}") for number in range(100)])
    shard.delete([document_id("gone")])
    shutil.rmtree(left / WRITE_AHEAD_LOG)
    shutil.copytree(live / WRITE_AHEAD_LOG, left / WRITE_AHEAD_LOG)
    shard.close()
    found = Shard.load(left)
    assert found.count_points() == 101
    (hits,) = found.search_points([question("after 77", limit=1)])
    assert hits[0].document_id == document_id("after 77")
    found.close()


async def test_what_was_written_of_the_log_leaves_memory_and_none_of_it_is_lost(
    tmp_path, monkeypatch
):
    """It is mapped all the same, can be added to, and survives a power cut as before."""
    monkeypatch.setattr(edge_shard, "POINTS_PER_PAGE_OUT", 10)
    paged_out = []
    monkeypatch.setattr(edge_shard, "page_out", lambda folder: paged_out.append(page_out(folder)))
    live, left = tmp_path / "live", tmp_path / "left"
    shard = Shard.create(live, dimension=DIMENSION)
    for start in range(0, 60, 6):
        shard.upsert_points([point(f"{number}") for number in range(start, start + 6)])
    assert len(paged_out) == 5
    assert all(paged_out) or sys.platform != "linux"
    shutil.copytree(live, left)
    assert shard.count_points() == 60
    shard.close()
    found = Shard.load(left)
    assert found.count_points() == 60
    found.close()
    assert page_out(live) == 0


async def test_a_second_process_is_refused(tmp_path, monkeypatch):
    """One process owns the folder; the second is told so, and the first is not disturbed."""
    index = await open_edge(tmp_path)
    await index.upsert_points([point("a")])
    second = await _python(OPEN_ONCE, tmp_path)
    _, errors = await second.communicate()
    assert b"IndexInUseError: another process has the vectors" in errors
    monkeypatch.setattr(edge_shard, "LOCK_PATIENCE_SECONDS", 0.0)
    with pytest.raises(IndexInUseError, match="--data-dir"):
        await open_edge(tmp_path)
    with pytest.raises(IndexInUseError):
        remove_folder(tmp_path)
    assert await index.count_points() == 1
    await index.close()
    await (await open_edge(tmp_path)).close()


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"format": 1}', '{"format": 99, "fingerprint": "a", "shard": "b"}']
)
async def test_a_damaged_record_is_an_error_with_its_cure(tmp_path, content):
    """No guess about whose vectors these are."""
    await (await open_edge(tmp_path)).close()
    (tmp_path / "index.json").write_text(content)
    with pytest.raises(VectorIndexError, match="aftercall rebuild"):
        await open_edge(tmp_path)


async def test_a_damaged_shard_is_an_error_with_its_cure(tmp_path):
    """What the engine cannot read is reported as ours, never as the engine's own exception."""
    await (await open_edge(tmp_path)).close()
    (shard,) = shards(tmp_path)
    (tmp_path / shard / "edge_config.json").write_text("not json")
    with pytest.raises(VectorIndexError, match="aftercall rebuild"):
        await open_edge(tmp_path)
    remove_folder(tmp_path)
    await (await open_edge(tmp_path)).close()


async def test_leftovers_of_a_kill_are_removed(tmp_path):
    """Of a creation and of a compaction: only the shard that the record names is the index."""
    Shard.create(tmp_path / "shard-halfmade", dimension=DIMENSION).close()
    index = await open_edge(tmp_path)
    assert await index.count_points() == 0
    await index.upsert_points([point("a")])
    await index.close()
    (current,) = shards(tmp_path)
    shutil.copytree(tmp_path / current, tmp_path / "shard-leftover")
    index = await open_edge(tmp_path)
    assert shards(tmp_path) == [current]
    assert await index.count_points() == 1
    await index.close()


async def test_who_waited_for_a_folder_that_was_removed_holds_the_new_one(tmp_path, monkeypatch):
    """The file that it waited for is gone with the folder: two must not hold one index."""
    folder = tmp_path / "vectors"
    held = IndexFolder(folder)
    waiting = asyncio.create_task(asyncio.to_thread(IndexFolder, folder))
    shutil.rmtree(folder)
    held.close()
    second = await waiting
    monkeypatch.setattr(edge_shard, "LOCK_PATIENCE_SECONDS", 0.0)
    with pytest.raises(IndexInUseError):
        await asyncio.to_thread(IndexFolder, folder)
    second.close()


async def test_a_full_disk_refuses_updates_and_goes_on_searching(tmp_path, monkeypatch):
    """Writing to a full disk would kill the process, so it is refused before, with the cure."""
    index = await open_edge(tmp_path)
    await index.upsert_points([point("a")])
    monkeypatch.setattr(edge_shard, "MIN_FREE_BYTES", 1 << 60)
    for update in (index.upsert_points([point("b")]), index.delete([document_id("a")])):
        with pytest.raises(VectorIndexError, match="make space"):
            await update
    (hits,) = await index.search_points([question("a")])
    assert [hit.document_id for hit in hits] == [document_id("a")]
    await index.close()


async def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    """A file where the folder should be is a `VectorIndexError`, not an `OSError`."""
    (tmp_path / "file").touch()
    with pytest.raises(VectorIndexError, match="cannot use"):
        await open_edge(tmp_path / "file")


def test_a_log_is_replayed_once_however_often_it_is_killed(tmp_path):
    """What was replayed stays folded in: the folder does not grow by the log with each start."""
    shard = Shard.create(tmp_path / "0", dimension=DIMENSION)
    shard.upsert_points([point(f"text {number}") for number in range(200)])
    written = []
    for number in range(4):
        # As a kill leaves it; holes of its files are filled, so what is no zero is counted.
        shutil.copytree(tmp_path / str(number), tmp_path / str(number + 1))
        shard.close()
        shard = Shard.load(tmp_path / str(number + 1))
        pages = (tmp_path / str(number + 1)).rglob("payload_storage/page_*.dat")
        written.append(sum(np.count_nonzero(np.fromfile(each, np.uint8)) for each in pages))
    assert shard.count_points() == 200
    assert written[1:] == written[:1] * 3
    shard.close()
