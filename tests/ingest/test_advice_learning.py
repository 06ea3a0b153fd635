"""From recorded failures to advice that is not a change: real store, real index, no network."""

from typing import Any
from uuid import UUID

from aftercall.models import Execution, Suggestion
from retrieval.knowledge.tool.rules import workspace_wide
from tests.ingest.conftest import WORKSPACE, Brain
from tests.retrieval.cases import an_execution

BUSY = {"type": "Error", "message": "Service temporarily unavailable"}
GONE = {"type": "Error", "message": "No user found with id 42"}


def call(number: int, error: Any = None, *, second: int = 0, **fields: Any) -> Execution:
    """The call of that number, so many seconds after two o'clock today."""
    given = {"tool_name": "fetch", "parameters": {"id": "42"}, "session_id": "s"} | fields
    return an_execution(
        execution_id=str(UUID(int=number)),
        timestamp=f"2026-02-20T14:{second // 60:02d}:{second % 60:02d}Z",
        outcome="failure" if error else "success",
        error=error,
        **given,
    )


async def best(brain: Brain, execution: Execution) -> Suggestion:
    return (await brain.ask(execution)).suggestions[0]


async def outage(brain: Brain, number: int, session: str, seconds: int, **fields: Any) -> None:
    """A failure of the moment in one session, and when the same call worked."""
    fields |= {"session_id": session, "agent": session}
    await brain.learn(
        call(number, BUSY, **fields), call(number + 1, second=seconds, **fields)
    )  # fmt: skip


async def test_how_long_an_outage_lasts_is_learned(brain: Brain) -> None:
    """From two sessions on; for other tools of the workspace too; and again after a rebuild."""
    asked = call(99, BUSY, session_id="z")
    await outage(brain, 1, "a", 40)
    assert (await best(brain, asked)).retry_after_ms == 1_000
    await outage(brain, 11, "b", 90)
    found = await best(brain, asked)
    assert (found.action, found.retry_after_ms) == ("retry_unchanged", 90_000)
    assert (await best(brain, call(98, BUSY, tool_name="other"))).retry_after_ms == 90_000
    before = await brain.knowledge(workspace_wide(WORKSPACE))
    await brain.rebuild()
    assert await brain.knowledge(workspace_wide(WORKSPACE)) == before
    assert (await best(brain, asked)).retry_after_ms == 90_000


async def test_the_same_failing_call_is_a_loop_until_it_works(brain: Brain) -> None:
    """Three times the same: the answer says so; a success ends it."""
    asked = call(99, GONE, session_id="z")
    await brain.learn(*(call(n, GONE, second=n, session_id=f"s{n}") for n in (1, 2, 3)))
    response = await brain.ask(asked)
    said = response.reason or response.suggestions[0].lesson
    assert "failed 3 times" in said
    await brain.learn(call(4, second=9))
    response = await brain.ask(asked)
    assert "failed 3 times" not in (response.reason or response.suggestions[0].lesson)
