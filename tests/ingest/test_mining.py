"""Repair mining: which success mended which failure."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from aftercall.models import Execution
from ingest.mining import MAX_GAP, Repair, mine
from retrieval.edits import Clamp, Edit, FromContext, Rename
from retrieval.reading.reader import ErrorReading, read_error
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


def mined(calls: list[Execution]) -> list[Repair]:
    """All repairs that are found while the calls arrive one by one."""
    return [
        repair
        for count, new in enumerate(calls, start=1)
        for repair in mine(calls[:count], new, read)
    ]


def read(failed: Execution) -> ErrorReading:
    """What its error says."""
    assert failed.error is not None
    return read_error(failed.error, failed.parameters)


def test_a_failure_and_the_next_fitting_success_are_a_repair() -> None:
    """The general edit comes out, with both calls."""
    failed = call(1, {"tz": "UTC"}, error=MISSING)
    mended = call(2, {"timezone": "UTC"})
    [repair] = mined([failed, mended])
    assert (repair.failed, repair.mended) == (failed, mended)
    assert repair.edits == [Rename(name="tz", to="timezone")]


def test_order_of_arrival_does_not_matter() -> None:
    """Sessions are put in order by time, or by sequence where all calls have one."""
    failed = call(1, {"tz": "UTC"}, error=MISSING, sequence=1)
    mended = call(2, {"timezone": "UTC"}, sequence=2)
    assert len(mined([mended, failed])) == 1


def test_a_success_before_the_failure_mends_nothing() -> None:
    """Only what came later can be a repair."""
    assert mined([call(1, {"timezone": "UTC"}), call(2, {"tz": "UTC"}, error=MISSING)]) == []


def test_a_success_long_after_answers_another_need() -> None:
    """Beyond the gap nothing is paired."""
    failed = call(1, {"tz": "UTC"}, error=MISSING)
    late = call(2, {"timezone": "UTC"}).model_copy(
        update={"timestamp": failed.timestamp + MAX_GAP + timedelta(seconds=1)}
    )
    assert mined([failed, late]) == []


def test_two_failures_may_share_one_repair() -> None:
    """An agent that tries twice before it gets it right teaches about both mistakes."""
    calls = [
        call(1, {"tz": "UTC"}, error=MISSING),
        call(2, {"zone": "UTC"}, error=MISSING),
        call(3, {"timezone": "UTC"}),
    ]
    assert [repair.edits[0].name for repair in mined(calls)] == ["tz", "zone"]


def test_waiting_is_the_repair_of_a_transient_failure() -> None:
    """The same call that works later has no edits; for other failures it is no repair at all."""
    busy = {"type": "Error", "message": "Rate limit exceeded"}
    [repair] = mined([call(1, {"q": 1}, error=busy), call(2, {"q": 1})])
    assert repair.edits == []
    assert mined([call(1, {"q": 1}, error=MISSING), call(2, {"q": 1})]) == []


def test_our_own_suggestions_are_no_repairs_of_the_agents() -> None:
    """A success that followed a suggestion teaches as its outcome, not as independent evidence."""
    failed = call(1, {"tz": "UTC"}, error=MISSING)
    ours = call(2, {"timezone": "UTC"}, suggestion_id=str(UUID(int=99)))
    [repair] = mined([failed, ours])
    assert (repair.certainty, repair.edits) == ("followed", None)


def edits_mined(calls: list[Execution]) -> list[list[Edit]]:
    """What the calls teach: where a failure was mended by no rule, there is nothing to teach."""
    return [repair.edits for repair in mined(calls) if repair.edits is not None]


@pytest.mark.parametrize("parameters", [{"city": "Rome", "lang": "it"}, {}])
def test_an_unrelated_success_is_no_repair(parameters: dict[str, Any]) -> None:
    """A success that does not touch the named fault teaches no edit."""
    failed = call(1, {"tz": "UTC", "style": "x"}, error=MISSING)
    assert edits_mined([failed, call(2, parameters)]) == []


NOT_FOUND = {"type": "Error", "message": "No user found with id 42"}


def test_the_next_of_a_list_is_no_repair() -> None:
    """An agent that goes on to another id has not mended the one that does not exist."""
    for missing, other in (("42", "77"), (42, 77)):
        failed = call(1, {"id": missing}, error=NOT_FOUND)
        assert edits_mined([failed, call(2, {"id": other})]) == []


def test_a_value_that_came_with_another_intent_is_no_repair() -> None:
    """The branch was right for the other repository."""
    error = {"type": "Error", "message": "Ref 'master' did not resolve"}
    failed = call(1, {"repo": "/a", "revision": "master"}, error=error)
    assert edits_mined([failed, call(2, {"repo": "/b", "revision": "main"})]) == []
    assert len(edits_mined([failed, call(2, {"repo": "/a", "revision": "main"})])) == 1


def test_a_name_is_mended_whatever_else_the_caller_changed() -> None:
    """The right name is right for any value."""
    failed = call(1, {"tz": "UTC", "style": "long"}, error=MISSING)
    [repair] = mined([failed, call(2, {"timezone": "UTC", "style": "short"})])
    assert repair.edits == [Rename(name="tz", to="timezone")]


BOTH = {"type": "ValidationError", "message": "'timezone' is a required property; n must be <= 10"}
BOUND = {"type": "ValidationError", "message": "n must be <= 10"}


def test_each_failure_of_a_chain_pairs_with_the_success() -> None:
    """An agent that mends one fault at a time teaches what each attempt still lacked."""
    first = call(1, {"tz": "UTC", "n": 50}, error=BOTH)
    second = call(2, {"timezone": "UTC", "n": 50}, error=BOUND)
    repairs = mined([first, second, call(3, {"timezone": "UTC", "n": 10})])
    assert [repair.edits for repair in repairs] == [
        [Rename(name="tz", to="timezone"), Clamp(name="n")],
        [Clamp(name="n")],
    ]
    assert [repair.certainty for repair in repairs] == ["next", "next"]


def test_a_repair_is_surer_when_it_is_stated_or_next() -> None:
    """The caller's word, then the order; with other successes between it is only likely."""
    failed = call(1, {"tz": "UTC"}, error=MISSING)
    other = call(2, {"city": "Rome"})
    *_, later = mined([failed, other, call(3, {"timezone": "UTC"})])
    assert later.certainty == "later"
    stated = call(3, {"timezone": "UTC"}, repair_of=failed.execution_id)
    *_, said = mined([failed, other, stated])
    assert said.certainty == "stated"


def test_what_the_context_states_is_mined_as_such() -> None:
    """The repair teaches where the value came from, not the value."""
    error = {"type": "E", "message": "'email' is a required property"}
    failed = call(1, {"name": "ada"}, error=error, context="Invite ada@acme.org")
    [repair] = mined([failed, call(2, {"name": "ada", "email": "ada@acme.org"})])
    assert repair.edits == [FromContext(name="email", form="email")]


def test_nested_changes_are_mined() -> None:
    """The edit names the place inside."""
    issue = {"loc": ["flights", 0, "date"], "type": "missing", "msg": "Field required"}
    error = {"type": "E", "message": "Invalid arguments", "details": {"errors": [issue]}}
    failed = call(1, {"flights": [{"day": "1"}], "n": 1}, error=error)
    [repair] = mined([failed, call(2, {"flights": [{"date": "1"}], "n": 1})])
    assert repair.edits == [Rename(name="flights", inside=("*", "day"), to="date")]
