"""Calls that are lost on the way, again and again: the breaker, alone and in the gateway."""

import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from aftercall.gateway.connection import (
    LOST_IN_A_ROW,
    LOST_OF_SERVER,
    Breaker,
    UpstreamUnavailableError,
)
from tests.gateway.conftest import OpenGateway
from tests.gateway.contract_service import ContractService
from tests.gateway.results import texts

_DYING = """
import os, sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("dying")
@server.tool()
def die() -> str:
    open(sys.argv[1], "a").write("x")
    os._exit(1)
@server.tool()
def live(text: str) -> str:
    return text
server.run()
"""


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def call(breaker: Breaker, tool: str, *, lost: bool | None) -> None:
    """A call that works (None), is lost, or fails in the tool's own words."""
    try:
        with breaker.guard_call(tool, lambda error: isinstance(error, ConnectionError)):
            if lost is not None:
                raise ConnectionError if lost else ValueError
    except (ConnectionError, ValueError):
        pass


def is_open(breaker: Breaker, tool: str) -> bool:
    with suppress(UpstreamUnavailableError):
        with suppress(KeyboardInterrupt), breaker.guard_call(tool, lambda _: False):
            raise KeyboardInterrupt  # says nothing about the way
        return False
    return True


def test_a_tool_whose_calls_are_lost_is_left_alone_and_tried_again_by_itself() -> None:
    """Closed, open, half-open, open for longer, half-open, closed."""
    breaker = Breaker("s", clock=(clock := Clock()))
    for _ in range(LOST_IN_A_ROW):
        assert not is_open(breaker, "a")
        call(breaker, "a", lost=True)
    assert is_open(breaker, "a")
    assert not is_open(breaker, "b")
    clock.now += 5.1
    with breaker.guard_call("a", lambda _: False):  # one is sent to see, and none beside it
        assert is_open(breaker, "a")
    assert not is_open(breaker, "a")
    for _ in range(LOST_IN_A_ROW):
        call(breaker, "a", lost=True)
    clock.now += 5.1
    call(breaker, "a", lost=True)
    clock.now += 5.1
    assert is_open(breaker, "a")
    clock.now += 5
    call(breaker, "a", lost=None)
    assert not is_open(breaker, "a")


def test_what_a_tool_says_is_no_loss_and_a_server_that_loses_all_is_left_alone() -> None:
    """Errors of the tool close it; losses of several tools add up for their server."""
    breaker = Breaker("s", clock=Clock())
    for _ in range(2 * LOST_OF_SERVER):
        call(breaker, "a", lost=True)
        call(breaker, "a", lost=False)
    assert not is_open(breaker, "a")
    for number in range(LOST_OF_SERVER):
        call(breaker, f"tool {number}", lost=True)
    assert is_open(breaker, "another")


@pytest.mark.real
async def test_a_call_that_kills_its_server_is_not_sent_for_ever(
    open_gateway: OpenGateway, service: ContractService, tmp_path: Path
) -> None:
    """Nobody knows whether it ran, so it is sent once; after three the caller hears why it is not.

    The server's other tool works.
    """
    began = tmp_path / "began"
    dying = {"command": sys.executable, "args": ["-c", _DYING, str(began)]}
    async with open_gateway({"dying": dying}) as client:
        results = [await client.call_tool_mcp("die", {}) for _ in range(5)]
        lives = await client.call_tool_mcp("live", {"text": "yes"})
    assert all(result.is_error for result in results)
    assert "may or may not have run" in texts(results[2])[0]
    assert "so this one was not sent" in texts(results[4])[0]
    assert len(began.read_text()) == LOST_IN_A_ROW
    assert service.questions[0]["execution"]["error"]["type"] == "UpstreamLostError"
    assert texts(lives)[0] == "yes"
