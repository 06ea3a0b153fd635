"""Sampling leaves out successes that tell nothing new, and never anything that teaches."""

from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import Execution, ExecutionError
from aftercall.redaction import Redactor
from ingest.intake import Intake
from ingest.sampling import SuccessSampler
from mongo.contents import execution_of
from mongo.errors import StoreError
from mongo.sqlite.store import open_sqlite_store


def _call(number: int, **fields: object) -> Execution:
    return Execution.model_validate(
        {
            "executionId": str(UUID(int=number)), "timestamp": "2026-02-20T14:30:00Z",
            "agent": "librarian", "toolName": "search", "parameters": {}, "outcome": "success",
            "durationMs": 1.0, **fields,
        }
    )  # fmt: skip


def _failure(number: int, **fields: object) -> Execution:
    error = ExecutionError(type="ValueError", message="no")
    return _call(number, outcome="failure", error=error.model_dump(), **fields)


def test_every_success_is_kept_unless_sampling_is_asked_for() -> None:
    """The default keeps the whole log."""
    sampler = SuccessSampler()
    assert {sampler.stands_for("w", _call(number)) for number in range(1_000)} == {1}


def test_a_busy_tool_keeps_its_rate_and_a_share_of_the_rest() -> None:
    """60 in a minute and a tenth of the others; what is kept stands for all calls but the last."""
    sampler = SuccessSampler(60, 0.1, clock=lambda: 0.0)
    weights = [sampler.stands_for("w", _call(number)) for number in range(10_000)]
    kept = [weight for weight in weights if weight]
    assert weights[:60] == [1] * 60
    assert len(kept) == pytest.approx(60 + 994, rel=0.1)
    since_the_last = 10_000 - 1 - max(place for place, weight in enumerate(weights) if weight)
    assert sum(kept) + since_the_last == 10_000


def test_a_tool_that_is_called_seldom_is_kept_whole() -> None:
    """The bucket fills again with time, and each tool and workspace has its own."""
    now = [0.0]
    sampler = SuccessSampler(6, 0.01, clock=lambda: now[0])
    for number in range(200):
        now[0] += 10.0
        assert sampler.stands_for("w", _call(number)) == 1
    for number in range(6):
        assert sampler.stands_for("v", _call(number)) == 1


@given(
    st.integers(0, 2**64),
    st.sampled_from(["failure", "attempt", "repair", "suggestion", "session"]),
)
def test_what_teaches_is_never_left_out(number: int, why: str) -> None:
    """Failures, retries, followed suggestions, and what came after a failure in its session."""
    sampler = SuccessSampler(1, 1e-9, clock=lambda: 0.0)
    for each in range(50):
        sampler.stands_for("w", _call(each))
    teaching = {
        "failure": _failure(number),
        "attempt": _call(number, attempt=2),
        "repair": _call(number, repairOf=str(UUID(int=7))),
        "suggestion": _call(number, suggestionId=str(UUID(int=7))),
        "session": _call(number, sessionId="s"),
    }[why]
    sampler.stands_for("w", _failure(99, sessionId="s"))
    assert sampler.stands_for("w", teaching) == 1


async def test_the_receipt_says_what_was_left_out_and_the_store_for_how_many_one_stands(
    tmp_path: Path,
) -> None:
    """What was left out is accepted and not stored; a resend of a kept one is a duplicate."""
    store = await open_sqlite_store(tmp_path / "data")
    sampler = SuccessSampler(1, 0.2, clock=lambda: 0.0)
    intake = Intake(store.events, Redactor(), lambda: None, sampler)
    calls = [_call(number) for number in range(200)]
    receipt = await intake.accept_executions("w", calls)
    assert receipt.accepted == 200
    assert 110 < receipt.left_out < 190
    stored = [execution_of(each) for each in await store.events.read_after("w", 0, 1_000)]
    assert len(stored) == 200 - receipt.left_out
    missing = 200 - sum(each.stands_for for each in stored)
    assert 0 <= missing < 50
    again = await intake.accept_one("w", stored[-1].execution)
    assert (again.accepted, again.duplicates) == (0, 1)
    await store.close()


async def test_what_could_not_be_stored_is_counted_by_the_next(tmp_path: Path) -> None:
    """A store that fails loses no count."""
    store = await open_sqlite_store(tmp_path / "data")
    sampler = SuccessSampler(1, 0.5, clock=lambda: 0.0)
    intake = Intake(store.events, Redactor(), lambda: None, sampler)
    await store.close()
    calls = [_call(number) for number in range(100)]
    with pytest.raises(StoreError):
        await intake.accept_executions("w", calls)
    counted = [sampler.stands_for("w", _call(number)) for number in range(1_000, 1_100)]
    assert max(counted) > 50
