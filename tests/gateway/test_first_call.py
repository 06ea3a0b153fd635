"""The README's first try: a fresh home, no service, one command, and a call with a mistake."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aftercall.gateway import local_service
from aftercall.gateway.local_service import LocalService
from tests.gateway.speaking import HELLO, answers, request
from tests.gateway.test_local_service import Home

pytestmark = pytest.mark.real

ERROR = {"timezone": "europe/berlin"}
REFUSED = {"tz": "Europe/Berlin"}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    for process in made.services():
        process.kill()


async def called(home: Home, *calls: dict[str, Any]) -> list[Any]:
    """What each call returns, from a gateway of its own that ends after them."""
    words = [
        request(number, "tools/call", name="get_current_time", arguments=arguments)
        for number, arguments in enumerate(calls, 2)
    ]
    async with home.gateway(20) as gateway:
        _, *found = await answers(gateway, HELLO, *words)
    return [each["result"] for each in found]


def repaired(result: Any) -> bool:
    facts = result.get("_meta", {}).get("aftercall", {})
    return bool(facts.get("repaired")) and result["structuredContent"]["timezone"] == (
        "Europe/Berlin"
    )


@pytest.mark.parametrize("time", range(5))
async def test_the_first_call_is_repaired_as_the_second_one_is(home: Home, time: int) -> None:
    """A call that its tool refuses, by a gateway that has just started its service.

    Another gateway does the same, when the service runs and has learned of the first one.
    """
    [first] = await called(home, ERROR)
    [second] = await called(home, ERROR)
    assert (repaired(first), repaired(second)) == (True, True), (time, first, second)


async def test_a_call_that_looks_wrong_is_repaired_before_it_is_made(home: Home) -> None:
    """It waits for the service, too."""
    [first] = await called(home, REFUSED)
    assert first["_meta"]["aftercall"]["note"] == "repaired before the call"
    assert repaired(first)


async def test_the_wait_has_a_bound_and_is_for_a_start_alone(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start that never ends is waited for no longer; a service elsewhere not at all."""
    monkeypatch.setattr(local_service, "WAITED_FOR_S", 0.2)

    async def never(_: LocalService) -> None:
        await asyncio.sleep(60)

    with monkeypatch.context() as patched:
        patched.setattr(LocalService, "_keep_running", never)
        async with LocalService(home.url, say=print, environ=home.environ).use_service() as start:
            assert 0 < start.patience_s <= 0.2
            await start.wait_settled()
            assert start.patience_s == 0
    far = home.url.replace("127.0.0.1", "127.0.0.2")
    async with LocalService(far, say=print, environ=home.environ).use_service() as start:
        await start.wait_looked()
        await asyncio.sleep(0)
        assert start.patience_s == 0
