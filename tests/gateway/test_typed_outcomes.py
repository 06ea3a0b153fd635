"""Typed outcomes of MCP tools: read in the same process, and through the gateway from another."""

import sys
from pathlib import Path

import pytest

from aftercall.models import ExecutionError, Referral
from aftercall.outcomes import referral_of
from aftercall.recording import Recorder
from tests.gateway import typed_tools
from tests.gateway.conftest import OpenGateway
from tests.gateway.contract_service import ContractService
from tests.gateway.contract_service import answer as wire_answer
from tests.gateway.contract_service import suggestion as wire_suggestion
from tests.gateway.results import texts

REFERRAL = Referral(
    boundary_axes=["transport", "extraction"],
    suggested_split=["http_get", "read_titles"],
    evidence="the url answers with HTML",
)
SERVER = {
    "command": sys.executable, "args": ["-m", "tests.gateway.typed_tools"],
    "env": {"PYTHONPATH": str(Path(__file__).parents[2])},
}  # fmt: skip
"""The tools as a server of its own, in another process."""


@pytest.mark.real
async def test_a_referral_crosses_the_gateway_whole(
    open_gateway: OpenGateway, service: ContractService, recorder: Recorder
) -> None:
    """Type, message and metadata are recorded, the caller sees the tool's own error first."""
    service.suggest = lambda _: wire_answer(
        wire_suggestion(action="switch_tool", tool="http_get", split=["http_get", "read_titles"])
    )
    tools = ("returned", "returned_beside_a_schema", "as_json_text")
    async with open_gateway({"films": SERVER}) as client:
        results = [await client.call_tool(tool, {}, raise_on_error=False) for tool in tools]
    recorder.flush(timeout_s=60)

    for result, execution in zip(results, service.recorded, strict=True):
        assert result.is_error
        said = "a page has to be fetched first"
        assert said in texts(result)[0]
        assert '"http_get", then "read_titles"' in texts(result)[-1]
        error = ExecutionError.model_validate(execution["error"])
        assert (error.type, error.message) == ("wrong_tool_boundary", said)
        assert referral_of(error) == REFERRAL
        assert error.details["page"] == 3


@pytest.mark.real
async def test_what_a_success_says_of_itself_is_recorded_and_changes_nothing(
    open_gateway: OpenGateway, service: ContractService, recorder: Recorder
) -> None:
    """An empty list with `success_no_parse` is a success on both sides (seed 003)."""
    async with open_gateway({"films": SERVER}) as client:
        plain = await client.call_tool("weak", {})
        typed = await client.call_tool("weak_outcome", {})
        reported = await client.call_tool("job", {})
        read = await client.call_tool("read_file", {})
    recorder.flush(timeout_s=60)

    assert plain.structured_content == typed_tools.WEAK
    assert typed.structured_content == {"result": []}
    assert reported.structured_content == typed_tools.job()
    assert [each.is_error for each in (plain, typed, reported, read)] == [False] * 4
    recorded = [(each["outcome"], each.get("resultStatus")) for each in service.recorded]
    assert recorded == [
        ("success", "success_no_parse"), ("success", "success_no_parse"), ("success", "error"),
        ("success", None),
    ]  # fmt: skip
    assert service.recorded[0]["result"] == typed_tools.WEAK
    assert service.questions == []
