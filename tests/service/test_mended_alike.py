"""The sentence that the product exists for: what did those do differently who succeeded?"""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from aftercall import Client, Execution
from aftercall.models import FailedCall
from tests.service.running_service import eventually

NOW = datetime.now(UTC) - timedelta(hours=2)


def session(
    tool: str, number: int, *calls: tuple[dict[str, Any], str | None], **fields: Any
) -> list[Execution]:
    """One agent's calls, each with its error."""
    return [
        Execution(
            **{
                "execution_id": str(uuid4()),
                "timestamp": NOW + timedelta(minutes=5 * number, seconds=at),
                "agent": f"agent {number % 5}",
                "session_id": f"{tool} {number}",
                "tool_name": tool,
                "parameters": parameters,
                "outcome": "failure" if error else "success",
                "error": {"message": error} if error else None,
            }
            | fields
        )
        for at, (parameters, error) in enumerate(calls)
    ]


def record(client: Client, executions: list[Execution]) -> None:
    """Record and wait until it is usable."""
    assert client.record(executions).accepted == len(executions)
    eventually(lambda: client.status().pending_indexing == 0)


def ask(client: Client, tool: str, parameters: dict[str, Any], error: str, **fields: Any) -> Any:
    """What a sixth agent is answered."""
    call = FailedCall.model_validate(
        {"agent": "sixth", "tool_name": tool, "parameters": parameters, "error": {"message": error}}
        | fields
    )
    return client.suggest(call)


def test_what_five_agents_mended_alike_is_offered_to_the_sixth(client: Client) -> None:
    """Behind an error that says nothing, with the sessions, in words and in the patterns."""
    tool = f"search_{uuid4().hex[:8]}"
    record(client, [
        each
        for number in range(10)
        for each in session(
            tool, number,
            ({"query": f"words {number}", "mode": "fast"}, "Bad request"),
            ({"query": f"words {number}", "mode": "quick"}, None),
        )
    ])  # fmt: skip
    first = ask(client, tool, {"query": "mine", "mode": "fast"}, "Bad request").suggestions[0]
    assert first.corrected_parameters == {"query": "mine", "mode": "quick"}
    assert first.evidence.repairs == 10
    assert first.lesson == '`mode`: "fast" is refused, "quick" works (10 of 10 sessions).'
    assert "10 of 10 sessions" in first.changes[0].reason


@pytest.mark.parametrize("listed", [{"description": "such as 'UTC' or 'GMT'"}, {"enum": ["UTC"]}])
def test_examples_in_words_rule_out_nothing_that_several_mended(
    client: Client, listed: dict[str, Any]
) -> None:
    """Unlike a list that the schema asserts."""
    tool = f"now_{uuid4().hex[:8]}"
    schema = {"type": "object", "properties": {"zone": {"type": "string", **listed}}}
    pair: Any = (({"zone": "Pacific"}, "Invalid zone"), ({"zone": "America/Los_Angeles"}, None))
    record(client, [each for at in range(3) for each in session(tool, at, *pair)])
    answer = ask(client, tool, {"zone": "Pacific"}, "Invalid zone", inputSchema=schema)
    sent = [each.corrected_parameters for each in answer.suggestions]
    assert ({"zone": "America/Los_Angeles"} in sent[:1]) == ("enum" not in listed)


def test_a_change_is_known_again_behind_other_words(client: Client) -> None:
    """Where each session's error says something else, and exactly this value was mended."""
    tool = f"index_{uuid4().hex[:8]}"
    things = ("lamp", "boat", "stone", "river", "candle", "bridge")
    record(client, [
        each
        for number, thing in enumerate(things)
        for each in session(
            tool, number,
            ({"n": number, "mode": "fast"}, f"the {thing} would not {things[-number]}"),
            ({"n": number, "mode": "quick"}, None),
        )
    ])  # fmt: skip
    first = ask(client, tool, {"n": 9, "mode": "fast"}, "something else broke inside").suggestions[
        0
    ]
    assert first.corrected_parameters == {"n": 9, "mode": "quick"}


def test_agents_without_a_session_are_followed_by_their_name(client: Client) -> None:
    """As where a protocol knows no sessions."""
    tool = f"lookup_{uuid4().hex[:8]}"
    record(client, [
        each
        for number in range(4)
        for each in session(
            tool, number,
            ({"region": "EU", "n": number}, "invalid region"),
            ({"region": "eu-west-1", "n": number}, None),
            session_id=None,
        )
    ])  # fmt: skip
    first = ask(client, tool, {"region": "EU", "n": 9}, "invalid region").suggestions[0]
    assert first.corrected_parameters == {"region": "eu-west-1", "n": 9}


def test_a_call_that_had_to_come_first_is_named(client: Client) -> None:
    """With its parameters, where the failed call has them."""
    edit, read = f"edit_{uuid4().hex[:8]}", f"open_{uuid4().hex[:8]}"
    error = "the document is in no state for this"
    for number in range(3):
        path = f"/docs/{number}"
        failed, worked = session(
            edit, number, ({"path": path, "text": "t"}, error), ({"path": path, "text": "t"}, None)
        )
        [opened] = session(edit, number, ({"file": path}, None), tool_name=read)
        between = opened.model_copy(update={"timestamp": failed.timestamp + timedelta(seconds=0.5)})
        record(client, [failed, between, worked])
    first = ask(client, edit, {"path": "/docs/9", "text": "x"}, error).suggestions[0]
    assert (first.action, first.tool, first.parameters) == ("call_first", read, {"file": "/docs/9"})


def test_a_value_comes_from_the_sessions_own_results(client: Client) -> None:
    """By what other sessions showed, and of this session's value only."""
    create, close = f"create_{uuid4().hex[:8]}", f"close_{uuid4().hex[:8]}"
    for number in range(4):
        [created] = session(
            create, number, ({"title": "t"}, None), result={"ticketId": f"T-{number}"}
        )
        [closed] = session(create, number, ({"ticket": f"T-{number}"}, None), tool_name=close)
        later = closed.model_copy(update={"timestamp": created.timestamp + timedelta(seconds=1)})
        record(client, [created, later])
    [mine] = session(create, 9, ({"title": "t"}, None), result={"ticketId": "T-99"}, agent="sixth")
    record(client, [mine])
    error = "missing required parameter: ticket"
    found = ask(client, close, {}, error, session_id=f"{create} 9").suggestions
    assert found[0].corrected_parameters == {"ticket": "T-99"}
    assert found[0].evidence.sources == ["session"]
    others = ask(client, close, {}, error, session_id="another").suggestions
    assert all(each.corrected_parameters != {"ticket": "T-99"} for each in others)


def test_an_error_that_comes_back_in_a_session_is_a_loop(client: Client) -> None:
    """Three tries with other words each are told as one; a call that worked ends it."""
    tool = f"search_{uuid4().hex[:8]}"
    tries = [({"query": f"words {each}"}, "the index says no") for each in range(3)]
    record(client, session(tool, 1, *tries))
    fourth = {"query": "others"}, "the index says no"
    assert "3 times" in ask(client, tool, *fourth, session_id=f"{tool} 1").reason
    assert "times" not in ask(client, tool, *fourth, session_id="another").reason
    record(client, session(tool, 1, ({"query": "x"}, None), timestamp=NOW + timedelta(hours=1)))
    assert "times" not in ask(client, tool, *fourth, session_id=f"{tool} 1").reason
