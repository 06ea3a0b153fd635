"""Agents in rows say what the statistics say."""

from aftercall.models import AgentUsage, FailurePattern
from service.dashboard.shown.agents import CHARTED, agent_rows, busiest, of_agent


def agent(name: str, successes: int, failures: int) -> AgentUsage:
    return AgentUsage(agent=name, successes=successes, failures=failures)


def test_a_row_has_the_counts_and_the_rate() -> None:
    """An agent without calls has no rate: it is not nought."""
    rows = agent_rows([agent("ada", 3, 1), agent("idle", 0, 0)])
    assert rows[0] == {
        "agent": "ada", "name": "ada", "calls": 4, "successes": 3, "failures": 1, "rate": 0.75,
    }  # fmt: skip
    assert rows[1]["rate"] is None


def test_the_chart_has_the_busiest_only() -> None:
    """Most calls first, by name where equal."""
    agents = [agent(f"a{place:02}", place, 0) for place in range(CHARTED + 5)]
    names, rates = busiest([*agents, agent("a13b", 14, 0)])
    assert len(names) == len(rates) == CHARTED
    assert names[:3] == ["a13b", "a14", "a13"]


def test_patterns_of_an_agent_are_those_that_name_it() -> None:
    """Most failures first."""
    patterns = [
        FailurePattern(
            pattern_id=str(place),
            tool={"tool_name": "t"},  # type: ignore[arg-type]  # pydantic reads it
            category="timeout",
            signature="s",
            count=place,
            agents=agents,
        )
        for place, agents in enumerate([["ada"], ["bob"], ["ada", "bob"]])
    ]
    assert [each.pattern_id for each in of_agent("ada", patterns)] == ["2", "0"]
