"""Repair mining: which success mended which failure."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from aftercall.models import Execution
from ingest.mining import MAX_GAP, MinedRepair, mine_repairs
from retrieval.knowledge.reading.reader import ErrorReading, read_error
from retrieval.knowledge.rewrites.edits import Clamp, Edit, FromContext, Rename, Replace
from tests.retrieval.cases import an_execution

MISSING = {"type": "ValidationError", "message": "'timezone' is a required property"}
BUSY = {"type": "Error", "message": "Rate limit exceeded"}
NOT_FOUND = {"type": "Error", "message": "No user found with id 42"}
NO_REF = {"type": "Error", "message": "Ref 'master' did not resolve"}
BOTH = {"type": "ValidationError", "message": "'timezone' is a required property; n must be <= 10"}
BOUND = {"type": "ValidationError", "message": "n must be <= 10"}
NO_EMAIL = {"type": "E", "message": "'email' is a required property"}
NO_DATE = {
    "type": "E", "message": "Invalid arguments", "details": {"errors": [
        {"loc": ["flights", 0, "date"], "type": "missing", "msg": "Field required"},
    ]},
}  # fmt: skip


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


def mined(calls: list[Execution]) -> list[MinedRepair]:
    """All repairs that are found while the calls arrive one by one."""
    return [
        repair
        for count, new in enumerate(calls, start=1)
        for repair in mine_repairs(calls[:count], new, read)
    ]


def read(failed: Execution) -> ErrorReading:
    """What its error says."""
    return read_error(failed.error, failed.parameters)


FAILED = call(1, {"tz": "UTC"}, error=MISSING)
MENDED = call(2, {"timezone": "UTC"})
OTHER = call(2, {"city": "Rome"})
NAMED: list[Edit] = [Rename(name="tz", to="timezone")]

REPAIRS: dict[str, tuple[list[Execution], list[tuple[str, list[Edit] | None]]]] = {
    "the next fitting success": ([FAILED, MENDED], [("next", NAMED)]),
    "by sequence, in whatever order they arrive": (
        [call(2, {"timezone": "UTC"}, sequence=2),
         call(1, {"tz": "UTC"}, error=MISSING, sequence=1)],
        [("next", NAMED)],
    ),
    "two failures share one, as of an agent that tries twice": (
        [FAILED, call(2, {"zone": "UTC"}, error=MISSING), call(3, {"timezone": "UTC"})],
        [("next", NAMED), ("next", [Rename(name="zone", to="timezone")])],
    ),
    "the same call later mends a transient failure": (
        [call(1, {"q": 1}, error=BUSY), call(2, {"q": 1})], [("next", [])],
    ),
    "one that followed a suggestion is its outcome, not independent evidence": (
        [FAILED, call(2, {"timezone": "UTC"}, suggestion_id=str(UUID(int=99)))],
        [("followed", None)],
    ),
    "the value goes with what else stayed": (
        [call(1, {"repo": "/a", "revision": "master"}, error=NO_REF),
         call(2, {"repo": "/a", "revision": "main"})],
        [("next", [Replace(name="revision", before="master", value="main")])],
    ),
    "a right name is right for any value": (
        [call(1, {"tz": "UTC", "style": "long"}, error=MISSING),
         call(2, {"timezone": "UTC", "style": "short"})],
        [("next", NAMED)],
    ),
    "each failure of a chain teaches what it still lacked": (
        [call(1, {"tz": "UTC", "n": 50}, error=BOTH),
         call(2, {"timezone": "UTC", "n": 50}, error=BOUND), call(3, {"timezone": "UTC", "n": 10})],
        [("next", [*NAMED, Clamp(name="n")]), ("next", [Clamp(name="n")])],
    ),
    "with another success between it is only likely": (
        [FAILED, OTHER, call(3, {"timezone": "UTC"})], [("later", NAMED)],
    ),
    "the caller's word counts most": (
        [FAILED, OTHER, call(3, {"timezone": "UTC"}, repair_of=FAILED.execution_id)],
        [("stated", NAMED)],
    ),
    "where the value came from, not the value": (
        [call(1, {"name": "ada"}, error=NO_EMAIL, context="Invite ada@acme.org"),
         call(2, {"name": "ada", "email": "ada@acme.org"})],
        [("next", [FromContext(name="email", form="email")])],
    ),
    "the place inside": (
        [call(1, {"flights": [{"day": "1"}], "n": 1}, error=NO_DATE),
         call(2, {"flights": [{"date": "1"}], "n": 1})],
        [("next", [Rename(name="flights", inside=("*", "day"), to="date")])],
    ),
}  # fmt: skip
"""Of calls: how sure each repair is, and the edits that it teaches."""


@pytest.mark.parametrize(("calls", "expected"), REPAIRS.values(), ids=REPAIRS)
def test_a_failure_and_the_success_that_mended_it_are_a_repair(
    calls: list[Execution], expected: list[tuple[str, list[Edit] | None]]
) -> None:
    """The general edits come out."""
    assert [(each.certainty, each.edits) for each in mined(calls)[-len(expected) :]] == expected


def test_a_repair_names_both_calls() -> None:
    [repair] = mined([FAILED, MENDED])
    assert (repair.failed, repair.mended) == (FAILED, MENDED)


LATE = MENDED.model_copy(update={"timestamp": FAILED.timestamp + MAX_GAP + timedelta(seconds=1)})
WITH_STYLE = call(1, {"tz": "UTC", "style": "x"}, error=MISSING)
NOTHING: dict[str, list[Execution]] = {
    "the success came before": [
        call(1, {"timezone": "UTC"}), call(2, {"tz": "UTC"}, error=MISSING),
    ],
    "it came long after, for another need": [FAILED, LATE],
    "the same call worked, and the failure was not of the moment": [
        call(1, {"q": 1}, error=MISSING), call(2, {"q": 1}),
    ],
    "it does not touch the fault": [WITH_STYLE, call(2, {"city": "Rome", "lang": "it"})],
    "it has no parameters": [WITH_STYLE, call(2, {})],
    "the next of a list": [call(1, {"id": "42"}, error=NOT_FOUND), call(2, {"id": "77"})],
    "the next of a list of numbers": [call(1, {"id": 42}, error=NOT_FOUND), call(2, {"id": 77})],
    "the value came with another intent": [
        call(1, {"repo": "/a", "revision": "master"}, error=NO_REF),
        call(2, {"repo": "/b", "revision": "main"}),
    ],
}  # fmt: skip


@pytest.mark.parametrize("calls", NOTHING.values(), ids=NOTHING)
def test_another_success_teaches_nothing(calls: list[Execution]) -> None:
    """Where a failure was mended by no rule, there is nothing to teach."""
    assert [each.edits for each in mined(calls) if each.edits is not None] == []
