"""Recovery times and repeats: bounded, mergeable, and moved by no single agent."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from retrieval.knowledge.tool.profile import call_hash
from retrieval.knowledge.tool.runs import (
    MAX_PER_AGENT,
    MAX_RECOVERIES,
    MAX_RUNS,
    Recovery,
    RecoveryTimes,
    Repeats,
    Run,
    forget_repeat,
    learn_recovery,
    learn_repeat,
    repeats_of,
)

START = datetime(2026, 2, 20, 14, 0, 0, tzinfo=UTC)

recoveries = st.builds(
    Recovery,
    session=st.integers(0, 60).map(str),
    agent=st.sampled_from("abcdef"),
    at=st.integers(0, 50).map(lambda minute: START + timedelta(minutes=minute)),
    seconds=st.integers(0, 1800).map(float),
)


def of(seen: list[Recovery]) -> RecoveryTimes:
    found = RecoveryTimes()
    for each in seen:
        found.add_recovery(each)
    return found


@given(st.lists(recoveries, max_size=80), st.data())
def test_the_order_of_arrival_does_not_matter(seen: list[Recovery], data: st.DataObject) -> None:
    """Nor whether one arrives twice."""
    assert of(data.draw(st.permutations([*seen, *seen]))) == of(seen)


@given(st.lists(recoveries, max_size=80))
def test_the_summary_is_bounded_and_no_agent_fills_it(seen: list[Recovery]) -> None:
    """However many there are, and whoever they are of."""
    kept = of(seen).recoveries
    assert len(kept) <= MAX_RECOVERIES
    assert all(sum(r.agent == agent for r in kept) <= MAX_PER_AGENT for agent in "abcdef")


def test_a_flood_of_one_agent_moves_the_wait_of_the_others_little() -> None:
    """A thousand sessions of one agent against eight of two others."""
    honest = [
        Recovery(session=f"s{n}", agent=agent, at=START, seconds=10)
        for n in range(8)
        for agent in "bc"
    ]
    flood = [Recovery(session=f"f{n}", agent="a", at=START, seconds=1800) for n in range(1_000)]
    assert of([*honest, *flood]).quantile_s(0.5) == 10


def test_only_failures_of_the_moment_recover() -> None:
    """A missing file that is there later was put there."""
    known: dict = {}  # type: ignore[type-arg]  # as the knowledge has it
    for category in ("not_found", "timeout"):
        learn_recovery(
            known, category, failed_at=START, worked_at=START + timedelta(seconds=9),
            session="s", agent="a",
        )  # type: ignore[arg-type]  # one of each  # fmt: skip
    assert list(known) == ["timeout"]
    assert known["timeout"].recoveries[0].seconds == 9


def fail(runs: dict[str, Run], minute: int = 0, session: str = "s", **fields: object) -> None:
    given = {"parameters": {"a": 1}, "signature_id": "sig", "category": "not_found"} | fields
    at = START + timedelta(minutes=minute)
    learn_repeat(runs, **given, session=session, at=at)  # type: ignore[arg-type]  # passes on


def count(runs: dict[str, Run], session: str = "s", **fields: object) -> Repeats:
    given = {"parameters": {"a": 1}, "signature_id": "sig", "category": "not_found"} | fields
    now = START + timedelta(minutes=1)
    return repeats_of(runs, **given, session=session, now=now)  # type: ignore[arg-type]  # passes on


def test_a_run_is_of_the_same_call_and_error_until_it_works() -> None:
    """Other parameters, another error, or a success between make another run.

    Within a session the error alone is counted too, whatever is sent.
    """
    runs: dict[str, Run] = {}
    for _ in range(3):
        fail(runs)
    fail(runs, session="other")
    assert count(runs) == Repeats(4, 4, 3)
    assert count(runs, session="new") == Repeats(4, 2)
    assert count(runs, parameters={"a": 2}) == Repeats(alike=3)
    fail(runs, parameters={"a": 2})
    assert count(runs, parameters={"a": 3}) == Repeats(alike=4)
    assert count(runs, signature_id="else") == Repeats()
    forget_repeat(runs, call_hash({"a": 1}), "s")
    assert count(runs) == Repeats()
    assert count(runs, session="other") == Repeats(alike=1), "the other session still fails"


def test_an_outage_of_yesterday_is_over() -> None:
    """Of transient failures only those of the last hour are a run; a wrong id stays wrong."""
    runs: dict[str, Run] = {}
    fail(runs, minute=-90, category="timeout")
    assert count(runs, category="timeout") == Repeats()
    fail(runs, category="timeout")
    assert count(runs, category="timeout") == Repeats(1, 1, 1)
    fail(runs, minute=-90, parameters={"b": 1})
    assert count(runs, parameters={"b": 1}) == Repeats(1, 1, 2)


def test_masked_calls_are_not_counted_and_runs_are_bounded() -> None:
    """One mask stands for many values; a stream of new failures forgets the oldest."""
    runs: dict[str, Run] = {}
    fail(runs, parameters={"token": "[redacted:string:9-16]"})
    assert count(runs, parameters={"token": "[redacted:string:9-16]"}) == Repeats(alike=1)
    for number in range(3 * MAX_RUNS):
        fail(runs, parameters={"a": number}, session=str(number))
    assert len(runs) == MAX_RUNS
    for number in range(100):
        fail(runs, session=str(number))
    assert max(len(run.sessions) for run in runs.values()) <= 5
