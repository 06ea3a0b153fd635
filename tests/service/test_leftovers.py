"""What a killed rebuild leaves is removed by the next start, and never under a rebuild's feet."""

from pathlib import Path

from ingest.claims import REBUILD
from ingest.holders import holder_id, retire
from mongo.sqlite import open_sqlite_store
from retrieval.index.opening import EdgePlace, list_indexes, open_index
from service.leftovers import remove_leftovers
from tests.service.running_service import hashing_settings, running

CURRENT, NEXT = "vectors", "vectors-g2"


async def made(folder: Path, holder: str) -> None:
    """A shadow and the next vectors of a rebuild by a process, which does not go on."""
    store = await open_sqlite_store(folder)
    lease = await store.take_lease(REBUILD, holder, await store.read_lease(REBUILD))
    assert lease is not None
    await (await store.open_shadow()).close()
    for name in (CURRENT, NEXT):
        index = await open_index(
            EdgePlace(folder), name, dimension=384, fingerprint="hashing-1@384"
        )
        await index.close()
    await store.close()


def left(folder: Path) -> list[str]:
    """Files and folders of a rebuild."""
    return sorted(
        each.name for each in folder.iterdir() if each.name.startswith((NEXT, "aftercall-rebuild"))
    )


async def test_what_a_rebuild_that_is_gone_has_left_is_removed(tmp_path: Path) -> None:
    """Its lease was given back, or its process is not there; the vectors that hold stay."""
    await made(tmp_path, "host/1/a")
    store = await open_sqlite_store(tmp_path)
    lease = await store.read_lease(REBUILD)
    assert lease is not None
    await store.give_back_lease(lease)
    (tmp_path / NEXT / "index.json").unlink()  # killed while it was made, or removed
    assert await remove_leftovers(store, EdgePlace(tmp_path), CURRENT, 15) == [NEXT]
    assert left(tmp_path) == []
    assert await list_indexes(EdgePlace(tmp_path)) == [CURRENT]
    await store.close()


async def test_nothing_is_taken_from_a_rebuild_that_may_live(tmp_path: Path) -> None:
    """One of another machine, whose lease was not watched for its whole life."""
    await made(tmp_path, "another-host/1/a")
    before = left(tmp_path)
    store = await open_sqlite_store(tmp_path)
    assert await remove_leftovers(store, EdgePlace(tmp_path), CURRENT, 15) == []
    await store.close()
    assert NEXT in before
    assert left(tmp_path) == before


async def test_a_service_that_starts_removes_them(tmp_path: Path) -> None:
    """The process that held the lease on this machine is gone."""
    ours = holder_id()
    retire(ours)
    await made(tmp_path / "data", ours)
    with running(hashing_settings(tmp_path)) as service:
        assert service.client.get("/readyz").status_code == 200
        assert left(tmp_path / "data") == []
