"""What every way of speaking MCP to the service must do, told once."""

from typing import Any
from uuid import uuid4

import jsonschema
from mcp import Client
from mcp_types import CallToolResult, Implementation

from tests.service.running_service import RunningService

CLIENT = Implementation(name="story-teller", version="1")

TOOLS = ("suggest_fix", "best_tool", "known_tools", "tool_health", "record_execution")


def text_of(result: CallToolResult) -> str:
    """The text for the model."""
    [block] = result.content
    assert block.type == "text"
    return block.text


async def use_every_tool(client: Client, service: RunningService) -> None:
    """Record failures and what mended them, then ask with each tool; all answers fit their schemas.

    The tool has a name of its own, so that nothing of another story is known of it.
    """
    tool = f"convert_{uuid4().hex[:8]}"
    listed = {each.name: each for each in (await client.list_tools()).tools}
    assert tuple(listed) == TOOLS

    async def ask(name: str, **arguments: Any) -> tuple[dict[str, Any], str]:
        result = await client.call_tool(name, arguments)
        assert not result.is_error, text_of(result)
        schema = listed[name].output_schema
        assert schema is not None
        jsonschema.Draft202012Validator(schema).validate(result.structured_content)
        return result.structured_content, text_of(result)

    error = {"message": "Invalid value for parameter unit: celsius is not supported"}
    failed = {"toolName": tool, "parameters": {"value": 3, "unit": "celsius"}, "error": error}
    for number in range(4):
        session = f"{tool}-{number}"
        recorded, _ = await ask("record_execution", **failed, outcome="failure", sessionId=session)
        await ask(
            "record_execution", toolName=tool, parameters={"value": 3, "unit": "C"},
            outcome="success", sessionId=session, repairOf=recorded["executionId"], attempt=2,
        )  # fmt: skip
    service.learned()

    answer, text = await ask("suggest_fix", **failed, context="convert a temperature")
    [best, *_] = answer["suggestions"]
    assert best["correctedParameters"] == {"value": 3, "unit": "C"}
    assert "sessions mended such a call so" in text
    assert '"correctedParameters": {"value": 3, "unit": "C"}' in text

    answer, _ = await ask("tool_health", tool=tool)
    assert (answer["successes"]["count"], answer["failures"]["count"]) == (4, 4)

    answer, text = await ask("known_tools", tools=[tool])
    assert answer["text"] == text
    assert tool in text
    assert "unit" in text

    spec = {"namespace": tool, "name": tool, "description": "Converts temperatures."}
    assert service.client.put(f"/tools/{tool}", json=spec).status_code == 200
    answer, _ = await ask("best_tool", namespace=tool, scenario="convert 3 degrees")
    assert answer["tool"]["toolId"] == tool
