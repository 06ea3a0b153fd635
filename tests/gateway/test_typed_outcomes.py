"""Typed outcomes of MCP tools: read in the same process, and through the gateway from another."""

import json
import sys
from pathlib import Path
from typing import Any

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


SUCCESSES: dict[str, tuple[Any, str | None]] = {
    "weak": (typed_tools.WEAK, "success_no_parse"),
    "weak_outcome": ({"result": []}, "success_no_parse"),
    "job": (typed_tools.job(), "error"),
    "read_file": ({"result": json.dumps(typed_tools.BOUNDARY.to_dict())}, None),
}
"""What the caller gets of each, and the word for it that is recorded (seed 003)."""


@pytest.mark.real
async def test_typed_outcomes_cross_the_gateway_whole(
    open_gateway: OpenGateway, service: ContractService, recorder: Recorder
) -> None:
    """A referral is recorded with its metadata, its own error first; a success stays one."""
    service.suggest = lambda _: wire_answer(
        wire_suggestion(action="switch_tool", tool="http_get", split=["http_get", "read_titles"])
    )
    async with open_gateway({"films": SERVER}) as client:
        refused = [
            await client.call_tool(tool, {}, raise_on_error=False)
            for tool in ("returned", "returned_beside_a_schema", "as_json_text")
        ]
        done = {name: (await client.call_tool(name, {})).structured_content for name in SUCCESSES}
    recorder.flush(timeout_s=60)

    said = "a page has to be fetched first"
    for result, execution in zip(refused, service.recorded[:3], strict=True):
        assert result.is_error
        assert said in texts(result)[0]
        assert '"http_get", then "read_titles"' in texts(result)[-1]
        error = ExecutionError.model_validate(execution["error"])
        assert (error.type, error.message) == ("wrong_tool_boundary", said)
        assert referral_of(error) == REFERRAL
        assert error.details["page"] == 3
    assert done == {name: given for name, (given, _) in SUCCESSES.items()}
    recorded = [(each["outcome"], each["resultStatus"]) for each in service.recorded[3:]]
    assert recorded == [("success", status) for _, status in SUCCESSES.values()]
    assert len(service.questions) == 3
