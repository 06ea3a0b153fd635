"""The latest calls of a tool in the embedded log: found as if the whole log were looked through."""

import asyncio
import random
from pathlib import Path

import pytest

from mongo.sqlite import calls, events
from mongo.sqlite.store import open_sqlite_store
from tests.mongo.store_samples import LOCAL, SEARCH, WORKSPACE, closing, large, make_event, read_all

_LATEST = 40


@pytest.mark.parametrize("seed", range(6))
async def test_they_are_those_of_the_whole_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """While others record, after what was erased, and before what is kept in memory begins."""
    monkeypatch.setattr(calls, "LATEST", _LATEST)
    monkeypatch.setattr(events, "LATEST", _LATEST)
    rng, number = random.Random(seed), 0  # noqa: S311
    async with closing(await open_sqlite_store(tmp_path)) as store:
        log = store.events
        for _ in range(25):
            added = [
                make_event(
                    number := number + 1,
                    rng.choice(("execution", "execution", "mark")),
                    tool=rng.choice((SEARCH, LOCAL, None)),
                )
                for _ in range(rng.choice((1, 3, _LATEST, 2 * _LATEST)))
            ]
            await log.append(rng.choice((WORKSPACE, "other")), added)
            whole = await read_all(log)
            if whole and rng.random() < 0.2:
                gone = [rng.choice(whole).position for _ in range(3)]
                await log.forget_events(WORKSPACE, gone)
                whole = await read_all(log)
            newest = await log.find_newest(WORKSPACE)
            for tool in (SEARCH, LOCAL):
                after = max(0, newest - rng.randrange(2 * _LATEST))
                before = rng.choice((None, newest - rng.randrange(_LATEST)))
                limit = rng.randrange(1, 9)
                wanted = [
                    each
                    for each in reversed(whole)
                    if each.kind == "execution" and each.tool == tool and each.position > after
                    if before is None or each.position < before
                ]
                found = await log.latest_events(
                    WORKSPACE, "execution", limit, tool=tool, after=after, before=before
                )
                # What was forgotten is left out, and may leave fewer than there could be.
                assert [*found] == [each for each in wanted if each in found]
                assert len(found) == min(limit, len(wanted)) or len(whole) < newest


async def test_many_ask_at_once(tmp_path: Path) -> None:
    """Each event is counted once."""
    async with closing(await open_sqlite_store(tmp_path)) as store:
        await store.events.append(WORKSPACE, [make_event(n) for n in range(900)])
        several = await asyncio.gather(
            *(
                store.events.latest_events(WORKSPACE, "execution", 5, tool=SEARCH, after=n)
                for n in range(20)
            )
        )
        wanted = [f"id-{n}" for n in (899, 898, 897, 896, 895)]
        assert all([each.id for each in found] == wanted for found in several)


async def test_large_calls_are_found_too(tmp_path: Path) -> None:
    """They are read in a thread, so that a few of them hold up nothing."""
    async with closing(await open_sqlite_store(tmp_path)) as store:
        log = store.events
        await log.append(WORKSPACE, [make_event(1), large(2), large(3)])
        found = await log.latest_events(WORKSPACE, "execution", 9, tool=SEARCH, after=0)
        assert {each.id for each in found} <= {"id-1", "id-2", "id-3"}
        assert found[0].id == "id-3"
        named = await log.find_events(WORKSPACE, "execution", ["id-2", "id-1"])
        assert [each.id for each in named] == ["id-2", "id-1"]
        assert named[0].data == large(2).data
