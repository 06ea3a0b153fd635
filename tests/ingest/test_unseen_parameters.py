"""Calls whose parameters nobody saw: they count, and teach nothing of parameters."""

from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from aftercall.json_values import content_hash
from aftercall.wire import Execution
from ingest.intake import _hash_of
from mongo.records import ToolKey
from retrieval.knowledge import ToolKnowledge
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
    row = await brain.store.get_knowledge(TOOL)
    assert row is not None
    knowledge = ToolKnowledge.model_validate_json(row.data)
    assert [known.count for known in knowledge.signatures.values()] == [1]
    assert knowledge.profile(None) is None
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


def test_parameters_are_known_or_none() -> None:
    """What is not known cannot be told."""
    with pytest.raises(ValidationError, match="sent as"):
        an_execution(parameters={"a": 1}, parameters_known=False)


def test_stores_of_before_know_the_same_call_again() -> None:
    """The field is no part of the content's hash where it says nothing new."""
    execution = an_execution(parameters={"a": 1})
    content = execution.model_dump(mode="json", by_alias=True)
    del content["resultStatus"]
    assert "parametersKnown" not in content
    assert _hash_of(execution) == content_hash(content)
    assert _hash_of(an_execution(parameters={})) != _hash_of(
        an_execution(parameters={}, parameters_known=False)
    )
