"""Compaction beside the service: nothing is lost, nothing waits, a failure changes nothing."""

import asyncio

import pytest

from retrieval.index import edge
from retrieval.index.edge import EdgeIndex, is_worthwhile
from tests.retrieval.index.documents import document_id, open_edge, point, question, shards

POINTS = 12_000
"""Enough vectors for a graph: the engine builds none for less than 2,000 KiB."""


async def _found(index: EdgeIndex, name: str) -> bool:
    (hits,) = await index.search_points([question(name, limit=1)])
    return hits[0].document_id == document_id(name)


@pytest.fixture
def early(monkeypatch):
    """Compaction that begins with the tests' number of points."""
    monkeypatch.setattr(edge, "MIN_NEW_POINTS", POINTS)


def test_compaction_stays_in_proportion_to_what_was_written():
    """Not below 50,000 new points, and not for less than a quarter of those compacted before."""
    assert not is_worthwhile(new_points=49_999, compacted_points=0)
    assert is_worthwhile(new_points=50_000, compacted_points=0)
    assert not is_worthwhile(new_points=50_000, compacted_points=400_000)
    assert is_worthwhile(new_points=100_000, compacted_points=400_000)


@pytest.mark.real
async def test_what_is_deleted_sets_off_no_compaction(tmp_path, monkeypatch):
    """Deleting adds no point that a search would have to scan."""
    monkeypatch.setattr(edge, "MIN_NEW_POINTS", 100)
    index = await open_edge(tmp_path)
    (before,) = shards(tmp_path)
    await index.upsert_points([point(f"document{number}") for number in range(60)])
    await index.delete([document_id(f"document{number}") for number in range(60)])
    await index.wait_compacted()
    assert shards(tmp_path) == [before]
    await index.close()


@pytest.mark.real
async def test_what_changes_during_a_compaction_is_kept(tmp_path, early):
    """Added, replaced and deleted while the copy is optimized: all in the compacted shard."""
    index = await open_edge(tmp_path)
    (before,) = shards(tmp_path)
    await index.upsert_points([point(f"document{number}") for number in range(POINTS)])
    compaction = asyncio.create_task(index.wait_compacted())
    await index.upsert_points([point("added meanwhile")])
    await index.upsert_points([point("document5", "replaced meanwhile")])
    await index.delete([document_id("document6")])
    assert await _found(index, "added meanwhile")
    assert not compaction.done()  # otherwise this test shows nothing
    await compaction
    (after,) = shards(tmp_path)
    assert after != before
    for _ in range(2):
        assert await index.count_points() == POINTS
        assert await _found(index, "added meanwhile")
        assert await _found(index, "document11999")
        assert not await _found(index, "document6")
        (hits,) = await index.search_points([question("replaced meanwhile", limit=1)])
        assert hits[0].document_id == document_id("document5")
        await index.close()
        index = await open_edge(tmp_path)
    await index.close()
    assert shards(tmp_path) == [after]


@pytest.mark.prove
@pytest.mark.real
async def test_closing_does_not_wait_for_a_compaction(tmp_path, early):
    """The compaction is dropped, its copy removed, and the points are where they were."""
    index = await open_edge(tmp_path)
    (before,) = shards(tmp_path)
    await index.upsert_points([point(f"document{number}") for number in range(POINTS)])
    await index.close()
    assert shards(tmp_path) == [before]
    index = await open_edge(tmp_path)
    assert await index.count_points() == POINTS
    await index.close()


@pytest.mark.prove
@pytest.mark.real
async def test_a_compaction_that_fails_changes_nothing_and_is_tried_again(
    tmp_path, early, monkeypatch, caplog
):
    """Searches stay slower until then: it is logged, and works as many points later."""
    index = await open_edge(tmp_path)
    (before,) = shards(tmp_path)
    monkeypatch.setattr(edge.sys, "executable", "/bin/false")
    await index.upsert_points([point(f"document{number}") for number in range(POINTS)])
    await index.wait_compacted()
    assert "not compacted" in caplog.text
    assert shards(tmp_path) == [before]
    assert await _found(index, "document7")
    monkeypatch.undo()
    monkeypatch.setattr(edge, "MIN_NEW_POINTS", 100)
    await index.upsert_points([point(f"more {number}") for number in range(100)])
    await index.wait_compacted()
    assert shards(tmp_path) != [before]
    assert await index.count_points() == POINTS + 100
    # Points of the compacted part count once, and not at all when they are gone.
    await index.upsert_points([point(f"document{number}", "other") for number in range(50)])
    assert await index.count_points() == POINTS + 100
    await index.delete([document_id(f"document{number}") for number in range(25, 75)])
    assert await index.count_points() == POINTS + 50
    await index.upsert_points([point(f"document{number}") for number in range(50, 60)])
    assert await index.count_points() == POINTS + 60
    await index.close()
