"""A tool whose contract changes: noticed when it is registered anew, and said where it matters."""

from uuid import uuid4

import httpx2

from aftercall import Client
from aftercall.models import ToolSpec
from retrieval.knowledge.tool.drift import contract_changes
from tests.ingest.histories import BEGIN
from tests.service.running_service import RunningService
from tests.service.test_mended_alike import ask, record, session

BEFORE = {
    "type": "object",
    "properties": {
        "q": {"type": "string"}, "kind": {"enum": ["a", "b"]}, "n": {"type": "integer"},
        "old": {"type": "string"},
    },
    "required": ["n"],
}  # fmt: skip
AFTER = {
    "type": "object",
    "properties": {
        "q": {"type": "string"}, "kind": {"enum": ["a"]}, "more": {"type": "boolean"},
        "n": {"type": "string"},
    },
    "required": ["q"],
}  # fmt: skip


def test_what_a_schema_asks_otherwise_is_said_parameter_by_parameter() -> None:
    """Nothing where only words have changed."""
    found = contract_changes(BEFORE, AFTER, None, BEGIN)
    assert [(each.parameter, each.said) for each in found] == [
        ("q", "is now required"), ("old", "was taken out"), ("kind", 'no longer takes "b"'),
        ("more", "is new, and optional"), ("n", "is now optional"),
        ("n", "must now be of type string (was integer)"),
    ]  # fmt: skip
    assert contract_changes(BEFORE, BEFORE | {"description": "new words"}, None, BEGIN) == []


def test_a_changed_tool_is_said_in_suggestions_known_tools_and_on_its_page(
    client: Client, service: RunningService
) -> None:
    """With how many of the calls that worked until now would still do."""
    name = f"find_{uuid4().hex[:8]}"
    spec = {"name": name, "server_name": "srv"}
    client.put_tool(f"srv.{name}", ToolSpec.model_validate(spec | {"input_schema": BEFORE}))
    calls = ({"n": 0}, {"n": 1, "q": "x"}, {"n": 2})
    worked = [(call, None) for call in calls]
    record(client, session(name, 1, *worked, server_name="srv", input_schema=BEFORE))
    tool = client.put_tool(f"srv.{name}", ToolSpec.model_validate(spec | {"input_schema": AFTER}))
    said = "`q` is now required (1 of 3 calls that worked had it)"
    assert f"`{tool.contract_changes[0].parameter}` {tool.contract_changes[0].said}" == said
    again = client.put_tool(f"srv.{name}", ToolSpec.model_validate(spec | {"input_schema": AFTER}))
    assert again == tool

    error = "'q' is a required property"
    found = ask(client, name, {"n": "1"}, error, server_name="srv", input_schema=AFTER)
    words = " ".join([found.reason or "", *(each.lesson or "" for each in found.suggestions)])
    assert "This tool changed on" in words
    assert said in words
    assert "`kind`" not in words
    known = client.known_tools([f"srv.{name}"])
    assert "this tool changed on" in known
    page = httpx2.get(f"{service.url}/dashboard/tools/srv.{name}").text
    assert "q is now required" in page
