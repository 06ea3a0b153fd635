"""Approvals and answers with the true service: what is asked before a call, and what is learned."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcp_types
import pytest

from aftercall import Recorder
from aftercall.adapters import before_call
from aftercall.reflection import ReflectionPolicy
from tests.gateway.conftest import OpenGateway
from tests.gateway.results import texts
from tests.gateway.test_asked_user import Person, chosen, said_in
from tests.service.running_service import RunningService, hashing_settings, running

pytestmark = pytest.mark.real

RENAMED = {"text": "hello", "channel_name": "general"}
PATIENT = ReflectionPolicy(base_backoff_s=0, suggest_timeout_s=30)


@pytest.fixture
def true_service(tmp_path: Path) -> Iterator[RunningService]:
    """A service on an empty folder."""
    with running(hashing_settings(tmp_path)) as started:
        yield started


@pytest.fixture
def service_url(true_service: RunningService) -> str:
    """Takes the contract server's place."""
    return true_service.url


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is."""
    monkeypatch.setattr(before_call, "TIMEOUT_S", 30)


@pytest.fixture
def posted(tmp_path: Path) -> Path:
    """What the tool posted."""
    file = tmp_path / "posted.txt"
    file.write_text("")
    return file


def posting(posted: Path, **own: Any) -> dict[str, Any]:
    """The posting server, with its handling."""
    script = str(Path(__file__).with_name("posting_server.py"))
    server = {"command": sys.executable, "args": [script, str(posted)], "aftercall": own}
    return {"posting": server}


async def test_a_changed_call_is_approved_before_it_is_made(
    open_gateway: OpenGateway, posted: Path
) -> None:
    """With `ask: always` the user sees the change; without a yes the call is made as it came."""
    person = Person(
        mcp_types.ElicitResult(action="decline"),
        mcp_types.ElicitResult(action="accept", content={}),
    )
    servers = posting(posted, ask="always")
    async with open_gateway(servers, PATIENT, mode="legacy", elicitation_handler=person) as client:
        refused = await client.call_tool_mcp("post", RENAMED)
        before = said_in(posted)
        approved = await client.call_tool_mcp("post", {**RENAMED, "text": "again"})
    assert before == ""
    assert refused.is_error
    assert "channelName" in person.asked[0].message
    assert said_in(posted) == "general - again\n"
    assert "Aftercall asked the user" in texts(approved)[-1]


async def test_a_change_that_keeps_every_value_is_made_without_asking(
    open_gateway: OpenGateway, posted: Path
) -> None:
    """What was approved is in it, value by value."""
    person = Person()
    async with open_gateway(posting(posted), PATIENT, elicitation_handler=person) as client:
        await client.call_tool_mcp("post", RENAMED)
    assert said_in(posted) == "general - hello\n"
    assert person.asked == []


async def test_an_answer_is_learned(
    open_gateway: OpenGateway, true_service: RunningService, recorder: Recorder, posted: Path
) -> None:
    """The place that the user named is the first suggestion for the next call like it."""
    person = Person(chosen("user"), mcp_types.ElicitResult(action="decline"))
    async with open_gateway(posting(posted), PATIENT, elicitation_handler=person) as client:
        await client.call_tool_mcp("post", {"text": "hello", "name": "ada"})
        await asyncio.to_thread(recorder.flush)
        await asyncio.to_thread(true_service.learned)
        second = await client.call_tool_mcp("post", {"text": "bye", "name": "eve"})
    assert said_in(posted) == "- ada hello\n"
    first = second.meta["aftercall"]["suggestions"][0]
    assert first["correctedParameters"] == {"text": "bye", "user": "eve"}
    assert first["evidence"]["repairs"] == 1
