"""`aftercall health`, and how often an idle process looks at what others did."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from aftercall.cli import main
from service.heartbeat import FILE, MAX_AGE_S, open_heartbeat
from service.lifecycle import Attention


async def test_a_process_that_lives_is_alive_and_one_that_ended_is_not(tmp_path: Path) -> None:
    """The file is there while the block runs."""
    command = ["health", "--data-dir", str(tmp_path)]
    async with open_heartbeat(tmp_path):
        assert await asyncio.to_thread(main, command) == 0
    assert await asyncio.to_thread(main, command) == 1


def test_one_that_hangs_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the age of its last beat."""
    (tmp_path / FILE).touch()
    then = time.time() - MAX_AGE_S - 5
    os.utime(tmp_path / FILE, (then, then))
    assert main(["health", "--data-dir", str(tmp_path)]) == 1
    assert "silent" in capsys.readouterr().out


class Clock:
    """Seconds that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_an_idle_process_looks_seldom_and_at_once_when_it_is_asked() -> None:
    """Busy: at each step; idle: once in the idle time; a request waits for a look."""
    clock, looks = Clock(), list[float]()
    attention = Attention(15.0, clock)

    async def look() -> float:
        looks.append(clock.now)
        return 0.5

    step = attention.paced(look, 0.5, 2.0)
    for clock.now in (0.0, 0.5, 1.0):
        await step()
    assert looks == [0.0, 0.5, 1.0]
    looks.clear()
    for clock.now in (20.0, 20.5, 21.0, 22.0, 22.5):
        await step()
    assert looks == [20.0, 22.0]
    clock.now = 23.0
    await asyncio.gather(*(attention.asked() for _ in range(5)))
    assert looks == [20.0, 22.0, 23.0]
    await step()
    assert looks[-2:] == [23.0, 23.0]


async def test_a_look_that_hangs_or_fails_keeps_no_request_for_long() -> None:
    """What is known is answered; a server that hangs is waited for no longer than a second."""
    clock = Clock()
    attention = Attention(15.0, clock)
    hangs = asyncio.Event()

    async def fail() -> float:
        raise OSError

    async def hang() -> float:
        await hangs.wait()
        return 1.0

    attention.paced(fail, 1.0, 2.0)
    attention.paced(hang, 1.0, 2.0)
    clock.now = 60.0
    began = time.monotonic()
    await attention.asked()
    assert 0.9 < time.monotonic() - began < 30
    hangs.set()
