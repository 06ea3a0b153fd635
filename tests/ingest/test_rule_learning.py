"""Whose word a rule is: agents and sessions, from the log to the stored knowledge."""

from typing import Any, cast
from uuid import UUID

from aftercall.models import Execution, OutcomeReport
from mongo.records import ToolKey
from retrieval.knowledge.tool.rules import RepairRule, ToolKnowledge, workspace_wide
from service.api.suggestions import report_outcome
from service.context import Context, Space
from tests.ingest.conftest import WORKSPACE, Brain
from tests.retrieval.cases import an_execution

TOOL = ToolKey(WORKSPACE, "srv", "git_show")
NO_REF = {"type": "ToolError", "message": "Ref 'master' did not resolve to an object"}
WRONG_TYPE = {"type": "ToolError", "message": "n must be an integer"}


def call(number: int, parameters: dict[str, Any], error: Any = None, **fields: Any) -> Execution:
    """A call of one session and agent a pair of numbers; a failure when it has an error."""
    pair = f"{(number - 1) // 2}"
    return an_execution(
        execution_id=str(UUID(int=number)),
        timestamp=f"2026-02-20T{number // 60:02d}:{number % 60:02d}:00Z",
        parameters=parameters,
        outcome="failure" if error else "success",
        error=error,
        **{"tool_name": "git_show", "session_id": pair, "agent": f"agent {pair}"} | fields,
    )


def show(number: int, revision: str, **fields: Any) -> Execution:
    """A call of git_show; a failure when the revision is master."""
    error = NO_REF if revision == "master" else None
    return call(number, {"repo_path": "/r", "revision": revision}, error, **fields)


async def the_rule(brain: Brain) -> RepairRule:
    """The only rule of git_show."""
    [signature] = (await brain.knowledge(TOOL)).signatures.values()
    [rule] = signature.rules.values()
    return rule


async def test_an_outcome_counts_for_the_agent_that_followed_the_suggestion(brain: Brain) -> None:
    """The execution says who it was; an outcome of an unknown execution is nobody's."""
    await brain.learn(show(1, "master"), show(2, "main"), show(3, "main"))
    suggestion = (await brain.ask(show(9, "master"))).suggestions[0]
    await brain.suggester.close()
    for number in range(20, 30):
        await brain.learn(show(number, "main", suggestion_id=suggestion.suggestion_id, agent="eve"))
    rule = await the_rule(brain)
    assert rule.successes == 10
    assert rule.evidence_weight().successes == 4
    assert len(rule.evidence.by_agent) == 2
    space = Space(cast("Context", brain), WORKSPACE)
    for number in (90, 91):
        report = OutcomeReport(outcome="failure", execution_id=str(UUID(int=number)))
        await report_outcome(space, suggestion.suggestion_id, report)
    await brain.indexer.catch_up()
    rule = await the_rule(brain)
    assert rule.failures == 2
    assert len(rule.evidence.by_agent) == 3


async def test_a_repair_that_is_one_tools_own_is_not_stored_for_all(brain: Brain) -> None:
    """A branch name says nothing about other tools."""
    await brain.learn(show(1, "master"), show(2, "main"))
    assert await brain.knowledge(workspace_wide(WORKSPACE)) == ToolKnowledge()
