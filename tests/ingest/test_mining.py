"""Repair mining: which success mended which failure."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from aftercall.wire import Execution
from ingest.mining import MAX_GAP, mine
from retrieval.edits import Rename
from tests.retrieval.cases import an_execution

MISSING = {"type": "ValidationError", "message": "'timezone' is a required property"}


def call(number: int, parameters: dict[str, Any], **fields: Any) -> Execution:
    """The call at a position in the session; a failure when it has an error."""
    outcome = "failure" if "error" in fields else "success"
    return an_execution(
        execution_id=str(UUID(int=number)),
        timestamp=f"2026-02-20T14:{number:02d}:00Z",
        parameters=parameters,
        outcome=outcome,
        **fields,
    )


def test_a_failure_and_the_next_fitting_success_are_a_repair() -> None:
    """The general edit comes out, with both calls."""
    failed = call(1, {"tz": "UTC"}, error=MISSING)
    mended = call(2, {"timezone": "UTC"})
    [repair] = mine([failed, mended])
    assert (repair.failed, repair.mended) == (failed, mended)
    assert repair.edits == [Rename(name="tz", to="timezone")]


def test_order_of_arrival_does_not_matter() -> None:
    """Sessions are put in order by time, or by sequence where all calls have one."""
    failed = call(1, {"tz": "UTC"}, error=MISSING, sequence=1)
    mended = call(2, {"timezone": "UTC"}, sequence=2)
    assert len(mine([mended, failed])) == 1


def test_a_success_before_the_failure_mends_nothing() -> None:
    """Only what came later can be a repair."""
    assert mine([call(1, {"timezone": "UTC"}), call(2, {"tz": "UTC"}, error=MISSING)]) == []


def test_a_success_long_after_answers_another_need() -> None:
    """Beyond the gap nothing is paired."""
    failed = call(1, {"tz": "UTC"}, error=MISSING)
    late = call(2, {"timezone": "UTC"}).model_copy(
        update={"timestamp": failed.timestamp + MAX_GAP + timedelta(seconds=1)}
    )
    assert mine([failed, late]) == []


def test_two_failures_may_share_one_repair() -> None:
    """An agent that tries twice before it gets it right teaches about both mistakes."""
    calls = [
        call(1, {"tz": "UTC"}, error=MISSING),
        call(2, {"zone": "UTC"}, error=MISSING),
        call(3, {"timezone": "UTC"}),
    ]
    assert [repair.edits[0].name for repair in mine(calls)] == ["tz", "zone"]


def test_waiting_is_the_repair_of_a_transient_failure() -> None:
    """The same call that works later has no edits; for other failures it is no repair at all."""
    busy = {"type": "Error", "message": "Rate limit exceeded"}
    [repair] = mine([call(1, {"q": 1}, error=busy), call(2, {"q": 1})])
    assert repair.edits == []
    assert mine([call(1, {"q": 1}, error=MISSING), call(2, {"q": 1})]) == []


def test_our_own_suggestions_are_no_repairs_of_the_agents() -> None:
    """A success that followed a suggestion teaches as its outcome, not as independent evidence."""
    failed = call(1, {"tz": "UTC"}, error=MISSING)
    ours = call(2, {"timezone": "UTC"}, suggestion_id=str(UUID(int=99)))
    assert mine([failed, ours]) == []


@pytest.mark.parametrize("parameters", [{"city": "Rome", "lang": "it"}, {}])
def test_an_unrelated_success_is_no_repair(parameters: dict[str, Any]) -> None:
    """A success that does not touch the named fault mends nothing."""
    failed = call(1, {"tz": "UTC", "style": "x"}, error=MISSING)
    assert mine([failed, call(2, parameters)]) == []


NOT_FOUND = {"type": "Error", "message": "No user found with id 42"}


def test_the_next_of_a_list_is_no_repair() -> None:
    """An agent that goes on to another id has not mended the one that does not exist."""
    assert mine([call(1, {"id": "42"}, error=NOT_FOUND), call(2, {"id": "77"})]) == []
    assert mine([call(1, {"id": 42}, error=NOT_FOUND), call(2, {"id": 77})]) == []


def test_a_value_that_came_with_another_intent_is_no_repair() -> None:
    """The branch was right for the other repository."""
    error = {"type": "Error", "message": "Ref 'master' did not resolve"}
    failed = call(1, {"repo": "/a", "revision": "master"}, error=error)
    assert mine([failed, call(2, {"repo": "/b", "revision": "main"})]) == []
    assert len(mine([failed, call(2, {"repo": "/a", "revision": "main"})])) == 1


def test_a_name_is_mended_whatever_else_the_caller_changed() -> None:
    """The right name is right for any value."""
    failed = call(1, {"tz": "UTC", "style": "long"}, error=MISSING)
    [repair] = mine([failed, call(2, {"timezone": "UTC", "style": "short"})])
    assert repair.edits == [Rename(name="tz", to="timezone")]
