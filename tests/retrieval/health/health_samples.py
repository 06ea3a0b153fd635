"""Health for the tests of what is made of it, and strategies for it."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from aftercall.models import Execution
from retrieval.knowledge.rows.health import Tally
from tests.retrieval.cases import an_execution

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

moments = st.integers(0, 30 * 24 * 60).map(lambda minutes: NOW - timedelta(minutes=minutes))


tallies = st.lists(moments, max_size=8).map(Tally.from_moments)


def a_success(result: object = None, **fields: Any) -> Execution:
    """A success with that result."""
    return an_execution(outcome="success", result=result, error=None, **fields)
