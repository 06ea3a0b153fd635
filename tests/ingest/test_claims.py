"""Workspaces are shared out, and what is at hand stays valid while nobody else learned there."""

from typing import Any, cast

import pytest

from ingest.claims import IDLE_S, REBUILD, SLICE_S, Claims, learning_lease
from ingest.leasing import LeaseKeeper
from mongo.errors import StoreUnavailableError
from mongo.records import Lease
from mongo.upkeep import Upkeep
from tests.ingest.lease_samples import Clock, Leases

TTL = 9.0


def claims(store: Leases, clock: Clock, **fields: Any) -> Claims:
    return Claims(cast("Upkeep", store), clock=clock, **{"ttl": TTL, **fields})


async def stop(*each: Claims) -> None:
    for one in each:
        await one.close()


async def test_a_workspace_is_one_process_at_a_time() -> None:
    """The other gets it when it is given back; another workspace it gets at once."""
    store, clock = Leases(), Clock()
    one, other = claims(store, clock), claims(store, clock)
    mine = await one.claim("a")
    assert mine == Lease("learning:a", mine.holder if mine else "", token=1)
    assert await other.claim("a") is None
    assert await other.claim("b") is not None
    assert [lease.name for lease in one.held] == ["learning:a"]
    await one.give_back_all()
    assert await other.claim("a") is not None
    await stop(one, other)
    assert not any(lease.held for lease in store.rows.values())


async def test_a_line_of_claims_without_a_gap_is_remembered() -> None:
    """Giving back and taking again keeps it; somebody in between breaks it."""
    store, clock = Leases(), Clock()
    one, other = claims(store, clock), claims(store, clock)
    assert one.held_since("a") is None
    for token in (1, 2, 3):
        lease = await one.claim("a")
        assert lease is not None
        assert (lease.token, one.held_since("a")) == (token, 1)
        await one.give_back_all()
    await other.claim("a")
    await other.give_back_all()
    lease = await one.claim("a")
    assert lease is not None
    assert (lease.token, one.held_since("a")) == (5, 5)
    await stop(one, other)


async def test_a_doubtful_one_is_taken_anew_before_it_is_used_again() -> None:
    """With a new token, so that what the store has still to apply is applied; not in the middle."""
    store, clock = Leases(), Clock()
    one = claims(store, clock)
    async with one.using("a") as lease:
        assert lease is not None
        one.doubt("a")
        assert await one.claim("a") is None
        assert one.is_held(lease)
    again = await one.claim("a")
    assert again is not None
    assert (again.token, one.held_since("a")) == (2, 2)
    assert not one.is_held(lease)
    await stop(one)


async def test_what_is_in_use_is_not_given_back() -> None:
    """Whatever time passes; after it, it is."""
    store, clock = Leases(), Clock()
    one = claims(store, clock, ttl=10 * TTL)
    async with one.using("a") as lease:
        clock.now += SLICE_S + IDLE_S
        await one.tend(["a", "b"])
        await one.tend(["b"])
        assert lease is not None
        assert one.is_held(lease)
    await one.tend(["b"])
    assert one.is_held(lease)
    clock.now += IDLE_S
    await one.tend(["b"])
    assert one.held == []
    assert not store.rows["learning:a"].held
    await stop(one)


async def test_long_work_is_offered_to_others_while_something_else_waits() -> None:
    """One workspace at a time; who is alone with it has it back in less than a second."""
    store, clock = Leases(), Clock()
    one, other = claims(store, clock), claims(store, clock)
    for workspace in ("a", "b"):
        assert await one.claim(workspace) is not None
        clock.now += 1
    clock.now += SLICE_S
    for workspace in ("a", "b"):
        await one.claim(workspace)
    await one.tend(["a", "b"])
    assert [lease.name for lease in one.held] == ["learning:b"]
    assert await one.claim("a") is None
    assert await other.claim("a") is not None
    await one.tend(["a", "b"])
    assert [lease.name for lease in one.held] == ["learning:b"]
    await other.give_back_all()
    clock.now += 0.5
    assert await one.claim("a") is not None
    await stop(one, other)


async def test_nothing_is_offered_where_nobody_else_learns() -> None:
    """Nor when nothing else waits."""
    store, clock = Leases(), Clock()
    alone, one = claims(store, clock, is_shared=False), claims(store, clock)
    for workspace in ("a", "b"):
        await alone.claim(workspace)
    await one.claim("c")
    clock.now += SLICE_S + 1
    await alone.tend(["a", "b"])
    await one.tend(["c"])
    assert len(alone.held) == 2
    assert len(one.held) == 1
    await stop(alone, one)


async def test_a_rebuild_gets_them_all_and_nobody_else_claims_meanwhile() -> None:
    """They are given back when it asks, and may be claimed again when it ends."""
    store, clock = Leases(), Clock()
    one = claims(store, clock)
    lease = LeaseKeeper(cast("Upkeep", store), REBUILD, ttl=TTL, clock=clock)
    rebuild = claims(store, clock, for_rebuild=True)
    await one.claim("a")
    await lease.try_take()
    assert await rebuild.claim("a") is None
    clock.now += 1
    assert await one.claim("a") is None
    assert await one.claim("b") is None
    for workspace in ("a", "b"):
        assert await rebuild.claim(workspace) is not None
    clock.now += TTL - 2
    await lease.beat()
    await rebuild.tend(["c"])
    assert await one.claim("c") is None
    assert one.is_in_living_hands("c")
    await rebuild.give_back_all()
    assert len(rebuild.held) == 2
    await rebuild.close()
    await lease.close()
    clock.now += 1
    assert await one.claim("a") is not None
    assert one.held_since("a") == 3
    await stop(one)


async def test_idle_workspaces_are_given_to_a_rebuild_too() -> None:
    """Also when nothing is queued in them."""
    store, clock = Leases(), Clock()
    one = claims(store, clock)
    await one.claim("a")
    lease = LeaseKeeper(cast("Upkeep", store), REBUILD, ttl=TTL, clock=clock)
    await lease.try_take()
    clock.now += 1
    await one.tend([])
    assert one.held == []
    assert not store.rows[learning_lease("a")].held
    await lease.close()
    await stop(one)


async def test_a_store_that_is_away_is_told_and_harms_nothing() -> None:
    """The claim goes on when it is back, within the ttl with the same token."""
    store, clock = Leases(), Clock()
    one = claims(store, clock)
    first = await one.claim("a")
    store.is_away = True
    clock.now += 1
    with pytest.raises(StoreUnavailableError):
        await one.claim("a")
    store.is_away = False
    assert await one.claim("a") == first
    clock.now += TTL
    again = await one.claim("a")
    assert first is not None
    assert again is not None
    assert (again.token, one.held_since("a")) == (2, 1)
    await stop(one)


async def test_claims_are_bounded() -> None:
    """Each costs writes: of very many the ones used longest ago are given back."""
    store, clock = Leases(), Clock()
    one = claims(store, clock)
    for number in range(100):
        clock.now += 0.01
        assert await one.claim(f"w{number}") is not None
    assert len(one.held) == 64
    assert one.held[-1].name == "learning:w99"
    await stop(one)


async def test_closed_claims_claim_nothing() -> None:
    """So that nothing is held by who is no more."""
    store, clock = Leases(), Clock()
    one = claims(store, clock)
    await one.close()
    await one.close()
    assert await one.claim("a") is None
    assert store.rows == {}
