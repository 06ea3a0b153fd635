"""The latest calls of a tool in the embedded log: found as if the whole log were looked through."""

import asyncio
import random
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing as closing_file
from pathlib import Path
from typing import Any, NoReturn

import pytest

from mongo.sqlite import calls, events
from mongo.sqlite.store import FILE_NAME, open_sqlite_store
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


async def test_a_first_question_holds_up_no_other_workspace(tmp_path: Path) -> None:
    """One that reads long waits alone; one that fails is asked again and counts nothing twice."""
    async with closing(await open_sqlite_store(tmp_path)) as store:
        for name in ("slow", "quick"):
            await store.events.append(name, [make_event(n) for n in range(3)])
    connection = sqlite3.connect(tmp_path / FILE_NAME, check_same_thread=False)
    known, begun, may_end = calls.LatestCalls(), threading.Event(), threading.Event()

    class Waiting:
        def execute(self, *_: object) -> NoReturn:
            begun.set()
            assert may_end.wait(20)
            raise sqlite3.OperationalError("disk I/O error")

    def ask(workspace: str, through: Any = connection) -> list[int]:
        tool = SEARCH._replace(workspace=workspace)
        return known.find_positions(through, tool, 3, after=0, before=None, limit=9)

    with closing_file(connection), ThreadPoolExecutor(1) as threads:
        slow = threads.submit(ask, "slow", Waiting())
        assert begun.wait(20)
        assert ask("quick") == [3, 2, 1]
        may_end.set()
        with pytest.raises(sqlite3.OperationalError):
            slow.result()
        assert ask("slow") == ask("slow") == [3, 2, 1]
