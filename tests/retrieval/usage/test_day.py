"""A tool's day counts every call once, with what it stands for, and stays bounded."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from retrieval.knowledge.documents import document_id
from retrieval.patterns import mark_of
from retrieval.reading.reader import read_error
from retrieval.usage.day import (
    MAX_AGENTS,
    MAX_MARKS,
    OTHER,
    DayUsage,
    Failure,
    decoded,
    encoded,
    failure_of,
)
from tests.retrieval.usage.usage_samples import NOON, TIMEOUT, TOOL, failed, stored


def test_calls_are_counted_by_hour_agent_and_category() -> None:
    """Successes weigh what they stand for; failures count one each."""
    day = DayUsage()
    day.count(stored(1, stands_for=10), None)
    day.count(failed(2, agent="bob", attempt=2), TIMEOUT)
    day.count(stored(3, timestamp=NOON + timedelta(hours=3)), None)
    hour = day.hours[12]
    assert (hour.successes, hour.failures) == (10, 1)
    assert hour.agents == {"ada": (10, 0), "bob": (0, 1)}
    assert hour.categories == {"timeout": 1}
    assert hour.retries == (0, 1)
    assert sum(hour.durations.values()) == 11
    assert day.marks == {TIMEOUT.mark: {12: 1}}
    assert day.hours[15].successes == 1


@given(st.lists(st.integers(1, 12), min_size=1, max_size=12).map(sorted), st.integers(0, 12))
def test_what_is_counted_again_changes_nothing(positions: list[int], stop: int) -> None:
    """A batch that was counted in part, or whole, before a kill ends as if counted once."""
    once = DayUsage()
    for each in positions:
        once.count(stored(each), None)
    again = DayUsage()
    for each in [*positions[:stop], *positions]:
        again.count(stored(each), None)
    assert again == once
    assert once.hours[12].successes == len(set(positions))


def test_very_many_agents_are_counted_together() -> None:
    """The row stays small, the sums stay right."""
    day = DayUsage()
    for number in range(1, 3 * MAX_AGENTS):
        day.count(stored(number, agent=f"agent-{number}"), None)
    agents = day.hours[12].agents
    assert len(agents) == MAX_AGENTS + 1
    assert agents[OTHER] == (3 * MAX_AGENTS - 1 - MAX_AGENTS, 0)


def test_very_many_marks_are_counted_together() -> None:
    """A tool whose every error has a wording of its own does not make the row grow."""
    day = DayUsage()
    for number in range(1, 3 * MAX_MARKS):
        day.count(failed(number), Failure("unknown", f"{number:016x}"))
    assert len(day.marks) == MAX_MARKS + 1
    assert day.marks[OTHER] == {12: 3 * MAX_MARKS - 1 - MAX_MARKS}


def test_a_failure_is_counted_under_the_document_that_it_belongs_to() -> None:
    """Whatever values it has: the mark is what a consolidated pattern knows its members by."""
    error = {"type": "TimeoutError", "message": "Timed out after 30 seconds"}
    found = failure_of(failed(1, error=error))
    assert found == failure_of(failed(2, error=error | {"message": "Timed out after 31 seconds"}))
    execution = failed(1, error=error).execution
    assert execution.error is not None
    signature = read_error(execution.error, {}).signature
    document = document_id(
        TOOL.workspace, "reflection", TOOL.server_name, TOOL.tool_name, signature
    )
    assert found == Failure("timeout", mark_of(document).hex())
    assert failure_of(stored(3)) is None


def test_a_day_of_an_earlier_version_has_no_marks() -> None:
    """And goes on from where it was."""
    day = decoded(b'{"through":4,"hours":{"12":{"failures":2,"agents":{"ada":[0,2]}}}}')
    assert day.count(failed(5), TIMEOUT)
    assert day.hours[12].failures == 3
    assert day.marks == {TIMEOUT.mark: {12: 1}}


def test_a_day_reads_back_as_it_was_stored() -> None:
    """What is zero is left out of the text."""
    day = DayUsage()
    day.count(failed(7, suggestion_id="0b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d"), TIMEOUT)
    assert decoded(encoded(day)) == day
    assert b"retries" not in encoded(day)
