"""Indexes by name: the same over folders and servers."""

import sys
from dataclasses import replace

import pytest

from retrieval.index.opening import (
    FIRST_INDEX,
    destroy_index,
    index_name,
    list_indexes,
    next_index_name,
    open_index,
    refuse_another_store,
)
from retrieval.index.protocol import (
    EdgePlace,
    IndexOfAnotherStoreError,
    QdrantPlace,
    VectorIndexError,
)
from tests.retrieval.index.documents import DIMENSION, point


async def _open(place, name, fingerprint="hashing-1@96"):
    return await open_index(place, name, dimension=DIMENSION, fingerprint=fingerprint)


async def test_a_rebuild_opens_the_next_index_beside_the_present_one(place):
    """Each has its own documents and its own model; one can be destroyed without the other."""
    assert await list_indexes(place) == []
    present = await _open(place, FIRST_INDEX)
    coming = await _open(place, next_index_name(2), "other@1")
    await present.upsert_points([point("a")])
    await coming.upsert_points([point("a"), point("b")])
    assert (await present.count_points(), await coming.count_points()) == (1, 2)
    assert await list_indexes(place) == ["vectors", "vectors-g2"]
    await present.close()
    await destroy_index(place, FIRST_INDEX)
    assert await list_indexes(place) == ["vectors-g2"]
    assert await coming.count_points() == 2
    await coming.close()


async def test_indexes_are_listed_by_their_generations(place):
    """The tenth comes behind the ninth."""
    for name in ("vectors-g10", "vectors-g9", "vectors"):
        await (await _open(place, name)).close()
    assert await list_indexes(place) == ["vectors", "vectors-g9", "vectors-g10"]


async def test_destroying_what_is_not_there_does_nothing(place):
    """A rebuild that was killed may not have got that far."""
    await destroy_index(place, "vectors-g7")
    assert await list_indexes(place) == []


async def test_an_index_of_another_store_is_neither_used_nor_listed_nor_destroyed(place):
    """The message has the setting that parts the two; what is in it stays."""
    ours, theirs = replace(place, owner="ours"), replace(place, owner="theirs")
    index = await _open(ours, FIRST_INDEX)
    await index.upsert_points([point("a")])
    await index.close()
    setting = "DATA_DIR" if isinstance(place, EdgePlace) else "QDRANT_PREFIX"
    for use in (
        lambda: _open(theirs, FIRST_INDEX),
        lambda: destroy_index(theirs, FIRST_INDEX),
        lambda: refuse_another_store(theirs),
    ):
        with pytest.raises(IndexOfAnotherStoreError, match=f"ours, .*theirs: .*{setting}"):
            await use()
    assert await list_indexes(theirs) == []
    assert await list_indexes(ours) == [FIRST_INDEX]
    await refuse_another_store(ours)
    index = await _open(ours, FIRST_INDEX)
    assert await index.count_points() == 1
    await index.close()
    await destroy_index(ours, FIRST_INDEX)


async def test_what_is_not_an_index_of_ours_is_not_listed(tmp_path):
    """Another folder, and a collection of another prefix that begins as ours does."""
    (tmp_path / "models").mkdir()
    (tmp_path / "vectors-old").mkdir()
    (tmp_path / "vectors-old" / "index.json").touch()
    assert await list_indexes(EdgePlace(tmp_path)) == []
    ours = QdrantPlace(f"local:{tmp_path / 'local'}", prefix="ours")
    theirs = QdrantPlace(f"local:{tmp_path / 'local'}", prefix="ours-too")
    await (await _open(theirs, FIRST_INDEX)).close()
    assert await list_indexes(ours) == []
    assert await list_indexes(theirs) == [FIRST_INDEX]


def test_the_fact_names_the_index_and_the_first_needs_none():
    """What `next_index_name` makes, `index_name` takes."""
    assert index_name(None) == FIRST_INDEX
    assert next_index_name(2) == "vectors-g2"
    for generation in (1, 2, 17):
        name = next_index_name(generation)
        assert index_name(name) == name


@pytest.mark.parametrize("fact", ["", "models", "../vectors", "vectors-g0", "vectors-g2\n", "x/y"])
async def test_a_fact_that_names_no_index_is_an_error_with_its_cure(tmp_path, fact):
    """It becomes part of a path, or of a collection's name, so nothing else is let through."""
    with pytest.raises(VectorIndexError, match="aftercall rebuild"):
        index_name(fact)
    with pytest.raises(VectorIndexError):
        await _open(EdgePlace(tmp_path), fact)
    with pytest.raises(VectorIndexError):
        await destroy_index(EdgePlace(tmp_path), fact)


async def test_without_the_client_the_error_names_the_extra(monkeypatch):
    """The embedded index needs none of it."""
    for module in list(sys.modules):
        if module.startswith("retrieval.index.qdrant"):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    place = QdrantPlace("http://qdrant:6333")
    for use in (
        lambda: _open(place, FIRST_INDEX),
        lambda: list_indexes(place),
        lambda: destroy_index(place, FIRST_INDEX),
    ):
        with pytest.raises(VectorIndexError, match=r"\[servers\]"):
            await use()


def test_a_place_does_not_show_its_secrets():
    """Neither the key nor the address, in which someone may have put a password."""
    place = QdrantPlace("https://me:hidden@qdrant:6333", api_key="hidden")
    assert "hidden" not in repr(place)
