"""One process at a time, whatever clocks, pauses and stores do."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.leases import LeaseKeeper, holder_id, is_gone, retire_holder
from mongo.errors import StoreUnavailableError
from mongo.records import Lease
from tests.ingest.lease_samples import Clock, Leases

TTL = 9.0
ELSEWHERE = "elsewhere~0/7/"


def keeper(store: Leases, clock: Clock, number: int = 1, **fields: Any) -> LeaseKeeper:
    """A process of another host."""
    holder = fields.pop("holder", f"{ELSEWHERE}{number}")
    return LeaseKeeper(store, "thing", ttl=TTL, holder=holder, clock=clock, **fields)


async def stop(*keepers: LeaseKeeper) -> None:
    """End their tasks; what they held stays as it is in the store."""
    for each in keepers:
        await each._stop_beating()


@dataclass
class Pair:
    """Two processes of other hosts that want the same."""

    store: Leases = field(default_factory=Leases)
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.one, self.other = (keeper(self.store, self.clock, number) for number in (1, 2))


@pytest.fixture(scope="module")
def dead() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        return child.pid


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    made = Pair()
    yield made
    await stop(made.one, made.other)


async def test_only_one_of_two_has_it_and_the_other_gets_it_when_it_is_given_back(
    pair: Pair,
) -> None:
    """At once, without waiting for anything to run out; the token grows."""
    store, one, other = pair.store, pair.one, pair.other
    assert await one.try_take()
    assert not await other.try_take()
    assert (other.lease, other.is_held) == (None, False)
    await one.give_back()
    assert not one.is_held
    assert await other.try_take()
    assert other.lease.token == 2
    await one.give_back()  # it was given back already: the other one's is left alone
    assert other.is_held
    assert store.rows["thing"].held


async def test_a_holder_that_is_silent_for_the_ttl_is_followed(pair: Pair) -> None:
    """Not before: a beat makes the contender wait anew."""
    clock, one, other = pair.clock, pair.one, pair.other
    assert await one.try_take()
    assert not await other.try_take()
    clock.now += TTL - 1
    assert await one.renew_lease()
    assert not await other.try_take()
    assert other.is_held_elsewhere
    clock.now += TTL - 1
    assert not await other.try_take()
    clock.now += 1
    assert await other.try_take()
    assert not other.is_held_elsewhere
    assert not one.is_held
    assert not await one.renew_lease()


async def test_a_holder_says_by_itself_that_it_lost_the_lease(pair: Pair) -> None:
    """A store that cannot be reached for the ttl ends its belief, without anybody telling it."""
    store, clock, one = pair.store, pair.clock, pair.one
    assert await one.try_take()
    store.is_away = True
    clock.now += TTL - 0.1
    with pytest.raises(StoreUnavailableError):
        await one.renew_lease()
    assert one.is_held
    clock.now += 0.1
    assert not one.is_held
    assert one.lease is None
    store.is_away = False
    assert await one.try_take()
    assert one.lease.token == 2


@pytest.mark.parametrize("wall", [-3600.0, 3600.0])
async def test_a_wall_clock_that_steps_changes_nothing(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, wall: float
) -> None:
    """Nobody asks it."""
    now = time.time()
    one, other = pair.one, pair.other
    assert await one.try_take()
    assert not await other.try_take()
    monkeypatch.setattr(time, "time", lambda: now + wall)
    assert one.is_held
    assert not await other.try_take()
    assert await one.renew_lease()


async def test_what_was_taken_by_an_answer_that_got_lost_is_taken_again_at_once(pair: Pair) -> None:
    """The holder knows its own name; others have to wait for it."""
    store, one, other = pair.store, pair.one, pair.other
    store.answers_get_lost = True
    with pytest.raises(StoreUnavailableError):
        await one.try_take()
    assert not one.is_held
    store.answers_get_lost = False
    assert not await other.try_take()
    assert await one.try_take()


async def test_the_background_beats_though_a_beat_has_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A connection that hangs costs one beat, not the lease; once it is killed, another has it."""
    store = Leases()
    answers, asked = store.renew_lease, count(1)

    async def beat(lease: Lease) -> Lease | None:
        if next(asked) % 2:
            await asyncio.Event().wait()
        return await answers(lease)

    monkeypatch.setattr(store, "renew_lease", beat)
    one, other = (
        LeaseKeeper(store, "thing", ttl=0.9, holder=f"{ELSEWHERE}{number}") for number in (1, 2)
    )
    assert await one.try_take()
    assert not await other.wait(patience=1.5)
    assert other.is_held_elsewhere
    assert one.is_held
    await stop(one)
    assert await other.wait(patience=60)
    await other.close()
    assert not store.rows["thing"].held


async def test_closing_frees_it_also_when_the_store_is_away() -> None:
    """Others of this host need not wait for who is no more."""
    store, clock = Leases(), Clock()
    one = LeaseKeeper(store, "thing", ttl=TTL, clock=clock)
    assert await one.try_take()
    store.is_away = True
    await one.close()
    store.is_away = False
    assert store.rows["thing"].held
    other = LeaseKeeper(store, "thing", ttl=TTL, clock=clock)
    assert await other.try_take()
    await other.close()


@pytest.mark.parametrize(
    ("holder", "is_free"),
    [("{host}/{dead}/abc", True), ("{host}/{parent}/abc", False), ("elsewhere/{dead}/abc", False),
     ("", False), ("host", False), ("host/1", False), ("{host}/x/1", False), ("{host}/-1/1", False),
     ("{host}/0/1", False)],
)  # fmt: skip
async def test_a_dead_process_of_this_host_is_followed_at_once(
    pair: Pair, dead: int, holder: str, is_free: bool
) -> None:
    """One that lives is not, nor one of another host, nor one that cannot be read."""
    host = holder_id().split("/")[0]
    named = holder.format(host=host, dead=dead, parent=os.getppid())
    pair.store.rows["thing"] = Lease("thing", named, token=4)
    assert await pair.one.try_take() is is_free


def test_a_holder_of_our_own_number_that_is_not_ours_is_gone() -> None:
    """As in a container that was started again: the process has the same number each time."""
    mine = holder_id()
    host, pid, _ = mine.split("/")
    assert pid == str(os.getpid())
    assert not is_gone(mine)
    assert is_gone(f"{host}/{pid}/other")
    retire_holder(mine)
    assert is_gone(mine)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), st.floats(0.1, 1.5 * TTL)),
        st.tuples(st.just("take"), st.integers(0, 2)),
        st.tuples(st.just("beat"), st.integers(0, 2)),
        st.tuples(st.just("give"), st.integers(0, 2)),
        st.tuples(st.just("away"), st.booleans()),
        st.tuples(st.just("lost"), st.booleans()),
    ),
    max_size=60,
)


@given(STEPS)
async def test_never_two_believe_that_they_hold_it(steps: list[tuple[str, Any]]) -> None:
    """Whatever happens in whatever order, and what a former holder writes is refused."""
    store, clock = Leases(), Clock()
    keepers = [keeper(store, clock, number) for number in range(3)]
    former: list[Lease] = []
    for what, how in steps:
        try:
            match what:
                case "pass":
                    clock.now += how
                case "take":
                    await keepers[how].try_take()
                case "beat":
                    await keepers[how].renew_lease()
                case "give":
                    await keepers[how].give_back()
                case "away":
                    store.is_away = how
                case _:
                    store.answers_get_lost = how
        except StoreUnavailableError:
            pass
        held = [each.lease for each in keepers if each.lease is not None]
        assert len(held) <= 1
        assert all(store.writes(lease) for lease in held)
        former.extend(held)
        newest = max((lease.token for lease in former), default=0)
        assert not any(store.writes(lease) for lease in former if lease.token < newest)
    await stop(*keepers)


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0.1, TTL)), max_size=40))
async def test_who_was_paused_is_stopped_by_the_token(moves: list[tuple[int, float]]) -> None:
    """A holder whose own clock stood still believes on: at most one of the believers can write."""
    store, clocks = Leases(), [Clock() for _ in range(3)]
    keepers = [keeper(store, clock, number) for number, clock in enumerate(clocks)]
    for awake, seconds in moves:
        clocks[awake].now += seconds  # the clocks of the others stand still
        await keepers[awake].try_take()
        believers = [each.lease for each in keepers if each.lease is not None]
        assert sum(store.writes(lease) for lease in believers) <= 1
    await stop(*keepers)
