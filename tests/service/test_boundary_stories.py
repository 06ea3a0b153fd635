"""The acceptance scenarios of seeds 000 and 003, told through the SDK against a true service."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from aftercall import Client, Execution, Outcome, Recorder, call_with_reflection_sync
from aftercall.contracts import Deliverable, checked
from aftercall.models import ExecutionError
from tests.service.fitness_client import fresh
from tests.service.running_service import eventually

NOW = datetime.now(UTC)


def learned(client: Client) -> None:
    """Wait until all that is durable is usable."""
    eventually(lambda: client.status().pending_indexing == 0)


def call(tool: str, *, days_ago: float = 0.0, **fields: Any) -> Execution:
    """A call of a tool without a server, a success unless an error is given."""
    error = fields.get("error")
    return Execution(
        **{
            "execution_id": str(uuid4()),
            "timestamp": NOW - timedelta(days=days_ago),
            "agent": "ada",
            "tool_name": tool,
            "parameters": {"url": "https://example.org"},
            "outcome": "failure" if error else "success",
            **fields,
        }
    )


def refuses(axes: list[str], evidence: str = "the page is a menu") -> ExecutionError:
    """A tool's own word that a request is two jobs."""
    outcome: Outcome[None] = Outcome.wrong_tool_boundary(
        "I fetch pages; I do not know what is on them",
        boundary_axes=axes,
        observed_task_shape="fetch a page and list the films on it",
        suggested_split=["page_fetcher", "film_lister"],
        evidence=evidence,
    )
    assert outcome.error is not None
    return outcome.error


def listing(client: Client, tool: str, *, films: list[str], contract: bool) -> Any:
    """Call a tool that says `success_no_parse` when it found nothing (seed 003), for real."""

    def list_films(parameters: Any) -> Any:
        status = "success" if films else "success_no_parse"
        return {"status": status, "titles": films}

    wanted = Deliverable.from_dict({"type": "object", "fields": {"titles": {"min_items": 1}}})
    with Recorder(base_url=str(client.base_url), spool_dir=None) as recorder:
        reflected = call_with_reflection_sync(
            checked(list_films, wanted) if contract else list_films, tool_name=tool,
            parameters={"url": "https://example.org/cinema"}, agent="ada",
            context="which films are on tonight?", client=client, recorder=recorder,
        )  # fmt: skip
    learned(client)
    return reflected


def test_an_empty_film_list_stays_the_success_that_the_tool_called_it(client: Client) -> None:
    """Seed 003, phase 1: nothing is rewritten; it is seen as a weak success beside."""
    tool = fresh("film_lister")
    reflected = listing(client, tool, films=[], contract=False)
    assert reflected.succeeded
    assert reflected.result == {"status": "success_no_parse", "titles": []}
    stored = client.get_execution(reflected.attempts[0].execution_id)
    assert (stored.outcome, stored.error) == ("success", None)
    assert stored.result == {"status": "success_no_parse", "titles": []}
    health = client.tool_health(tool)
    assert (health.successes.count, health.failures.count) == (1, 0)
    assert health.utility.weak_successes.count == 1
    assert "success_no_parse" in health.utility.recent_weak[0].why


def test_a_contract_makes_the_empty_list_fail_at_once(client: Client) -> None:
    """Seed 003, phase 2: `min_items` is machine-checked, with path, expected and actual."""
    tool = fresh("film_lister")
    reflected = listing(client, tool, films=[], contract=True)
    assert not reflected.succeeded
    assert reflected.error.type == "contract_violation"
    details = reflected.error.details
    assert (details["path"], details["mismatch"]) == ("/titles", "min_items")
    assert (details["expected"], details["actual"]) == (1, 0)
    health = client.tool_health(tool)
    assert {each.category: each.count for each in health.categories} == {"contract_violation": 1}
    assert listing(client, tool, films=["Alien"], contract=True).succeeded


def test_a_referral_is_answered_and_not_retried(client: Client) -> None:
    """Seed 000, phase 3: the caller's flow goes on with a typed referral, after one attempt."""
    tool = fresh("page_fetcher")
    attempts = []

    def fetch(parameters: Any) -> Outcome[None]:
        attempts.append(parameters)
        return Outcome.wrong_tool_boundary(
            "I fetch pages only",
            boundary_axes=["transport", "extraction"],
            suggested_split=["fetch the page", "list the films on it"],
        )

    with Recorder(base_url=str(client.base_url), spool_dir=None) as recorder:
        reflected = call_with_reflection_sync(
            fetch, tool_name=tool, parameters={"url": "https://example.org"}, agent="ada",
            client=client, recorder=recorder, may_repeat=True,
        )  # fmt: skip
    assert len(attempts) == 1
    assert not reflected.succeeded
    assert reflected.error is not None
    assert reflected.error.type == "wrong_tool_boundary"
    [first, *_] = reflected.suggestions
    assert first.action in ("switch_tool", "escalate")
    assert first.split == ["fetch the page", "list the films on it"]
    learned(client)
    [referral] = client.tool_health(tool).recent_referrals
    assert referral.boundary_axes == ["transport", "extraction"]
    assert referral.lacks_evidence


def test_a_boundary_that_is_met_for_days_becomes_a_recommendation(client: Client) -> None:
    """Seed 000, phase 4: nothing after one day, a split after a week; done, it can come back."""
    tool = fresh("page_fetcher")
    wordings = [["transport", "extraction"], ["Transports", "extraction"]]
    client.record([call(tool, days_ago=7.5) for _ in range(20)])
    client.record([call(tool, days_ago=7, error=refuses(wordings[0]))])
    learned(client)
    assert not client.tool_health(tool).cohesion.warning
    assert of_tool(client, tool) == []

    days = [call(tool, days_ago=6 - day, error=refuses(wordings[day % 2])) for day in range(6)]
    client.record(days)
    learned(client)
    cohesion = client.tool_health(tool).cohesion
    assert cohesion.warning
    assert {each.name for each in cohesion.axes} == {"transport", "extraction"}
    [split] = [each for each in of_tool(client, tool) if each.kind in ("split", "recompose")]
    assert split.state == "open"
    assert ["page_fetcher", "film_lister"] in split.evidence.suggested_splits
    assert split.recommendation_id in client.tool_health(tool).recommendation_ids
    text = client.known_tools([tool])
    assert "transport" in text
    assert "extraction" in text

    # A tool builder works it off; the service has changed nothing.
    change = client.change_recommendation
    assert change(split.recommendation_id, "taken", changed_by="eve").state == "taken"
    assert change(split.recommendation_id, "done", reason="two tools now").state == "done"
    assert split.recommendation_id not in {each.recommendation_id for each in of_tool(client, tool)}

    # The evidence returns: more of the same, after it was called done.
    later = datetime.now(UTC) + timedelta(minutes=5)
    again = [call(tool, timestamp=later, error=refuses(wordings[0])) for _ in range(5)]
    client.record(again)
    learned(client)
    [back] = [each for each in of_tool(client, tool) if each.kind in ("split", "recompose")]
    assert (back.state, back.reopened) == ("open", True)


def test_user_corrections_raise_it(client: Client) -> None:
    """Seed 000, 8: what users say weighs more than what the tool says of itself."""
    corrected, humble = fresh("film_lister"), fresh("film_lister")
    says_weak = Outcome.low_utility("a menu, I think", evidence="no years").error
    calls = [call(corrected, session_id=f"s-{n}", result={"titles": ["Start"]}) for n in range(10)]
    client.record(calls)
    client.record([call(humble) for _ in range(6)])
    client.record([call(humble, error=says_weak) for _ in range(4)])
    for done in calls[:3]:
        told = client.correct(
            "this is a menu, not titles", execution_id=done.execution_id, agent="ada"
        )
        assert told.tied
    by_session = client.correct("that doesn't look like a movie list", session_id="s-3")
    assert by_session.execution_id == calls[3].execution_id
    learned(client)
    health = client.tool_health(corrected)
    assert health.utility.corrections.count == 4
    assert health.utility.score < client.tool_health(humble).utility.score
    assert health.successes.count == 10  # the outcomes stay what the tool said
    [advice] = [each for each in of_tool(client, corrected) if each.kind == "tighten_contract"]
    own = [each for each in of_tool(client, humble) if each.kind == "tighten_contract"]
    assert all(advice.priority > each.priority for each in own)
    assert any("this is a menu, not titles" in quote for quote in advice.evidence.quotes)


def of_tool(client: Client, tool: str) -> list[Any]:
    """Open and taken recommendations about a tool."""
    return [
        each
        for each in client.recommendations()
        if each.tool is not None and each.tool.tool_name == tool
    ]
