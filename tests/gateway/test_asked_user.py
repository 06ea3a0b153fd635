"""What was approved is what runs: one question to the user, by elicitation, else advice."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import mcp_types
import pytest

from aftercall import Recorder
from aftercall.adapters.asked_user import ask_place
from aftercall.models import Suggestion
from tests.gateway.conftest import OpenGateway
from tests.gateway.contract_service import ContractService, answer, suggestion
from tests.gateway.results import texts

pytestmark = pytest.mark.real

WRONG = {"text": "hello", "name": "general"}
MOVED: dict[str, Any] = {
    "account": {
        "kept": 1,
        "values": [
            {
                "path": "/channelName", "origin": "moved", "from": "/name", "why": "an open place",
                "rivals": ["/user"],
            }
        ],
    },
    "class": "semantic",
    "safe": False,
}  # fmt: skip
CHANGES = (
    {"op": "remove", "path": "/name", "from": "general"},
    {"op": "add", "path": "/channelName", "value": "general"},
)


class Person:
    """A user who answers a client's forms, and keeps them."""

    def __init__(self, *answers: mcp_types.ElicitResult) -> None:
        self.answers = list(answers)
        self.asked: list[mcp_types.ElicitRequestFormParams] = []

    async def __call__(self, _message: str, _kind: object, params: Any, _context: object) -> Any:
        """Answer the next form."""
        self.asked.append(params)
        return self.answers.pop(0)


def chosen(place: str) -> mcp_types.ElicitResult:
    """The answer that names a parameter."""
    return mcp_types.ElicitResult(action="accept", content={"parameter": place})


@pytest.fixture
def posted(tmp_path: Path) -> Path:
    """What the tool posted."""
    file = tmp_path / "posted.txt"
    file.write_text("")
    return file


@pytest.fixture
def servers(posted: Path) -> dict[str, Any]:
    """The posting server."""
    script = str(Path(__file__).with_name("posting_server.py"))
    return {"posting": {"command": sys.executable, "args": [script, str(posted)]}}


@pytest.fixture(params=["legacy", "auto"], ids=["handshake", "2026-07-28"])
def mode(request: pytest.FixtureRequest) -> Any:
    """The protocol of the client."""
    return request.param


def said_in(posted: Path) -> str:
    """What was posted."""
    return posted.read_text()


def open_question(_: object) -> dict[str, Any]:
    """What the service says of a value that two places would take."""
    return answer(suggestion(*CHANGES, confidence=0.5, **MOVED), safe=False)


async def test_the_user_says_which_of_two_places_takes_a_value(
    open_gateway: OpenGateway,
    service: ContractService,
    recorder: Recorder,
    servers: dict[str, Any],
    posted: Path,
    mode: Any,
) -> None:
    """One question with both places; the call runs as answered, and is recorded for learning."""
    service.suggest = open_question
    person = Person(chosen("user"))
    async with open_gateway(servers, mode=mode, elicitation_handler=person) as client:
        result = await client.call_tool_mcp("post", WRONG)
    await asyncio.to_thread(recorder.flush)

    (asked,) = person.asked
    assert asked.requested_schema["properties"]["parameter"]["enum"] == ["channelName", "user"]
    assert said_in(posted) == "- general hello\n"
    assert "posted to general" in texts(result)[0]
    assert "Aftercall asked the user" in texts(result)[-1]
    failed, worked = service.recorded
    assert (failed["outcome"], failed["parameters"]) == ("failure", WRONG)
    assert worked["outcome"] == "success"
    assert worked["parameters"] == {"text": "hello", "user": "general"}
    assert failed["sessionId"] == worked["sessionId"]


async def test_who_declines_is_not_asked_again_and_has_the_advice(
    open_gateway: OpenGateway,
    service: ContractService,
    servers: dict[str, Any],
    posted: Path,
    mode: Any,
) -> None:
    """The tool's own error stands first, with the suggestion after it; nothing is posted."""
    service.suggest = open_question
    person = Person(mcp_types.ElicitResult(action="decline"))
    async with open_gateway(servers, mode=mode, elicitation_handler=person) as client:
        results = [await client.call_tool_mcp("post", WRONG) for _ in range(2)]
    assert len(person.asked) == 1
    assert said_in(posted) == ""
    for result in results:
        assert result.is_error
        assert "Suggestions from Aftercall" in texts(result)[-1]


async def test_a_client_that_cannot_ask_has_the_advice(
    open_gateway: OpenGateway,
    service: ContractService,
    servers: dict[str, Any],
    posted: Path,
    mode: Any,
) -> None:
    """Nothing is chosen for the user."""
    service.suggest = open_question
    async with open_gateway(servers, mode=mode) as client:
        result = await client.call_tool_mcp("post", WRONG)
    assert result.is_error
    assert "Suggestions from Aftercall" in texts(result)[-1]
    assert said_in(posted) == ""


SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "channelName": {"type": "string"}},
    "additionalProperties": False,
}


def test_a_place_that_the_schema_refuses_is_no_question() -> None:
    """Of two places one is left: then nothing is open, and nothing is asked."""
    made = suggestion(*CHANGES, confidence=0.5, **MOVED)
    offered = [Suggestion.model_validate(made)]
    assert ask_place("post", offered, WRONG, SCHEMA) is None
    assert ask_place("post", [], WRONG, SCHEMA) is None
