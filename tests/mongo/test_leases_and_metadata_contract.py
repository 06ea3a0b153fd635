"""What every store promises of leases and of facts."""

import asyncio
from dataclasses import replace
from pathlib import Path

from mongo.protocol import Store
from mongo.records import Lease
from tests.mongo.conftest import OpenStore
from tests.mongo.store_samples import closing, lease_of

NAME = "learning:default"


async def test_a_lease_is_taken_kept_and_given_back(store: Store) -> None:
    """Its token grows with each holder, its beat while that lives."""
    leases = store.leases
    assert await leases.read(NAME) is None
    first = await lease_of(store, NAME)
    assert first == Lease(NAME, "host/1/a", token=1, beat=0, held=True)
    assert await leases.read(NAME) == first
    beaten = await leases.renew_lease(first)
    assert beaten == replace(first, beat=1)
    again = await leases.renew_lease(first)  # the token says who it is, not the beat
    assert again == replace(first, beat=2)
    await leases.give_back(beaten)
    free = await leases.read(NAME)
    assert (free.token, free.held) == (1, False)
    assert await leases.renew_lease(beaten) is None
    other = await lease_of(store, NAME, "host/2/b")
    assert (other.holder, other.token, other.held) == ("host/2/b", 2, True)
    await leases.give_back(replace(other, token=1))  # of the same holder, but long ago
    assert await leases.read(NAME) == other
    assert await leases.read("nightly") is None


async def test_a_lease_is_taken_over_only_as_it_was_seen(store: Store) -> None:
    """A holder that has beaten since lives; a former one changes nothing any more."""
    held = await lease_of(store, NAME)
    beaten = await store.leases.renew_lease(held)
    for stale in (held, None, replace(held, token=7)):
        assert await store.leases.take_lease(NAME, "host/2/b", stale) is None
    new = await store.leases.take_lease(NAME, "host/2/b", beaten)
    assert new.token == 2
    assert await store.leases.renew_lease(held) is None
    await store.leases.give_back(held)
    assert await store.leases.read(NAME) == new


async def test_of_many_who_take_a_lease_at_once_one_has_it(store: Store) -> None:
    """Whether somebody ever held it or not."""
    for _ in range(2):
        seen = await store.leases.read(NAME)
        answers = await asyncio.gather(
            *(store.leases.take_lease(NAME, f"host/{number}/x", seen) for number in range(16))
        )
        [winner] = [lease for lease in answers if lease is not None]
        assert await store.leases.read(NAME) == winner


async def test_of_many_who_keep_a_fact_at_once_all_hear_the_same(store: Store) -> None:
    """The first one's; it is set already for who comes later, and `put` sets it all the same."""
    said = await asyncio.gather(*(store.metadata.keep_fact("a.b", str(n)) for n in range(16)))
    assert len({*said}) == 1
    assert await store.metadata.get("a.b") == said[0]
    await store.metadata.put("a.b", "another")
    assert await store.metadata.keep_fact("a.b", "late") == "another"


async def test_facts_are_kept(open_store: OpenStore, tmp_path: Path) -> None:
    """Under any name, also when the store is opened again."""
    names = ("model", "a.b", "$x", "ä ö")
    async with closing(await open_store(tmp_path)) as store:
        assert await store.metadata.get("model") is None
        for name in names:
            await store.metadata.put(name, "first")
            await store.metadata.put(name, f"{name} is set")
    async with closing(await open_store(tmp_path)) as store:
        assert [await store.metadata.get(name) for name in names] == [
            f"{name} is set" for name in names
        ]
        assert await store.metadata.get("a") is None
