"""Calls whose parameters nobody saw: they count, and teach nothing of parameters."""

from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from aftercall.models import Execution, Tool
from mongo.records import ToolKey
from tests.ingest.conftest import WORKSPACE, Brain
from tests.retrieval.cases import an_execution

MISSING = {"type": "ToolError", "message": "Missing required parameter: repo_path"}
TOOL = ToolKey(WORKSPACE, "srv", "git_show")


def unseen(number: int, **fields: Any) -> Execution:
    """A call as a trace without content tells of it."""
    return an_execution(
        execution_id=str(UUID(int=number)),
        timestamp=f"2026-02-20T14:{number:02d}:00Z",
        tool_name="git_show",
        session_id="s",
        parameters={},
        parameters_known=False,
        outcome="failure" if "error" in fields else "success",
        **fields,
    )


async def test_they_count_and_leave_no_profile(brain: Brain) -> None:
    """The error's signature is counted; no parameter was seen, nor a call without any."""
    await brain.learn(unseen(1, error=MISSING), unseen(2), unseen(3))
    knowledge = await brain.knowledge(TOOL)
    assert [known.count for known in knowledge.signatures.values()] == [1]
    assert knowledge.find_profile(None) is None
    assert all(known.mends == 0 for known in knowledge.signatures.values())


async def test_nobody_is_told_to_leave_the_parameters_out(brain: Brain) -> None:
    """A failure that was seen, between successes that were not, is no repair by dropping all."""
    failed = an_execution(
        execution_id=str(UUID(int=9)), timestamp="2026-02-20T14:00:30Z", tool_name="git_show",
        session_id="s", parameters={"revision": "master"}, outcome="failure", error=MISSING,
    )  # fmt: skip
    await brain.learn(unseen(1), failed, unseen(2), unseen(3))
    answer = await brain.ask(failed)
    assert all(change.op != "remove" for each in answer.suggestions for change in each.changes)


@pytest.mark.parametrize(
    ("message", "sent"),
    [
        ("Missing required parameter: mode", {"query": "q", "topK": 5}),
        ("Invalid parameter: topK must be <= 10", {"query": "q", "mode": "fast", "topK": 50}),
        ("mode must be one of: fast, deep", {"query": "q", "mode": "fsat", "topK": 5}),
    ],
)
async def test_no_change_is_told_of_parameters_that_nobody_saw(
    brain: Brain, message: str, sent: dict[str, Any]
) -> None:
    """What a tool needs is known, and still no call can be written for it: half of it is unseen."""
    await brain.learn(
        *(
            an_execution(
                execution_id=str(UUID(int=number)), session_id=f"s{number}", agent=f"a{number}",
                parameters={"query": f"q{number}", "mode": "fast", "topK": 5}, tool_name="git_show",
            )
            for number in range(1, 31)
        )
    )  # fmt: skip
    failed = unseen(40, error={"type": "ValueError", "message": message})
    answer = await brain.ask(failed)
    assert answer.abstained
    assert answer.reason
    seen = failed.model_copy(update={"parameters_known": True, "parameters": sent})
    assert not (await brain.ask(seen)).abstained


async def test_what_needs_no_parameters_is_still_advised(brain: Brain) -> None:
    """A wait is told for a call that nobody saw, without parameters to send."""
    limited = {"type": "RateLimitError", "message": "rate limited, retry after 3 s"}
    answer = await brain.ask(unseen(1, error=limited))
    assert [each.action for each in answer.suggestions] == ["retry_unchanged"]
    assert answer.suggestions[0].corrected_parameters is None


async def test_another_tool_is_named_without_parameters(brain: Brain) -> None:
    """A misspelt tool is known by its name; that its right one takes no parameters is not."""
    tool = Tool.model_validate(
        {"toolId": "t", "name": "git_shaw", "serverName": "srv",
         "updatedAt": "2026-02-20T14:30:00Z"}
    )  # fmt: skip
    await brain.put_tool(tool)
    unknown = {"type": "Error", "message": "Unknown tool: git_show"}
    [found] = (await brain.ask(unseen(1, error=unknown))).suggestions
    assert (found.tool, found.corrected_parameters) == ("git_shaw", None)
    seen = unseen(1, error=unknown).model_copy(update={"parameters_known": True})
    assert (await brain.ask(seen)).suggestions[0].corrected_parameters == {}


def test_parameters_are_known_or_none() -> None:
    """What is not known cannot be told."""
    with pytest.raises(ValidationError, match="sent as"):
        an_execution(parameters={"a": 1}, parameters_known=False)
