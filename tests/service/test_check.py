"""A call before it is made: passed, mended where that is proven, warned of, or not made again."""

from typing import Any
from uuid import uuid4

import pytest

from aftercall import Client
from aftercall.models import Call, CheckResponse
from tests.service.test_mended_alike import record, session

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "maxDepth": {"type": "integer"}},
    "required": ["path"],
    "additionalProperties": False,
}


def check(client: Client, parameters: dict[str, Any], **fields: Any) -> CheckResponse:
    """What is said of a call of a tool that nothing is known of, unless it is named."""
    named = {"agent": "asker", "tool_name": f"list_{uuid4().hex[:8]}", "parameters": parameters}
    return client.check(Call.model_validate(named | fields))


@pytest.mark.parametrize("schema", [SCHEMA, None])
def test_a_call_that_nothing_speaks_against_passes(client: Client, schema: Any) -> None:
    """With its schema, and without."""
    said = check(client, {"path": "/srv", "maxDepth": 2}, input_schema=schema)
    assert (said.verdict, said.changes, said.reasons) == ("pass", [], [])


@pytest.mark.parametrize(
    ("sent", "mended"),
    [
        ({"path": "/srv", "max_depth": 2}, {"path": "/srv", "maxDepth": 2}),
        ({"path": "/srv", "maxDepth": "2"}, {"path": "/srv", "maxDepth": 2}),
        ({"path": ["/srv"]}, {"path": "/srv"}),
        ({"arguments": {"path": "/srv", "maxDepth": 2}}, {"path": "/srv", "maxDepth": 2}),
    ],
)
def test_what_the_schema_refuses_is_mended_without_loss(
    client: Client, sent: dict[str, Any], mended: dict[str, Any]
) -> None:
    """On a tool that may write as well, since nothing of the call is lost or changed."""
    said = check(client, sent, input_schema=SCHEMA, tool_name="write_things")
    assert (said.verdict, said.corrected_parameters) == ("repair", mended)
    assert said.change_class == "lossless"
    assert said.confidence is not None
    assert said.confidence >= 0.9
    assert said.reasons


@pytest.mark.parametrize(
    ("sent", "word"),
    [
        ({"maxDepth": 2}, "`path` is missing"),
        ({"path": "/srv", "dry_run": True}, "`dry_run` is no parameter"),
        ({"path": "/srv", "maxDepth": "deep"}, "`maxDepth` must be of type integer"),
        ({"path": "/srv", "max_depth": 2, "keep": True}, "`keep` is no parameter"),
    ],
)
def test_what_would_be_guessed_or_lost_is_a_warning(
    client: Client, sent: dict[str, Any], word: str
) -> None:
    """The call is left as it is."""
    said = check(client, sent, input_schema=SCHEMA)
    assert (said.verdict, said.changes) == ("warn", [])
    assert word in "; ".join(said.reasons)


def test_names_that_a_tool_would_pass_over_are_warned_of(client: Client) -> None:
    """Where the schema does not say that others are refused, nor that they are welcome."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    said = check(client, {"path": "/srv", "recursive": True}, input_schema=schema)
    assert said.verdict == "warn"
    assert "`recursive` is no parameter of this tool" in said.reasons[0]
    welcome = schema | {"additionalProperties": True}
    assert check(client, {"path": "/", "x": 1}, input_schema=welcome).verdict == "pass"


def test_what_was_mended_alike_is_mended_before_the_call_until_it_works_as_it_is(
    client: Client,
) -> None:
    """Of a tool without a schema; a success of the former call takes the rule back at once."""
    tool = f"search_{uuid4().hex[:8]}"
    record(client, [
        each
        for number in range(4)
        for each in session(
            tool, number,
            ({"text": f"words {number}", "max_results": 3}, "unexpected argument 'max_results'"),
            ({"text": f"words {number}", "maxResults": 3}, None),
        )
    ])  # fmt: skip
    sent = {"text": "mine", "max_results": 5}
    said = check(client, sent, tool_name=tool)
    assert (said.verdict, said.corrected_parameters) == (
        "repair", {"text": "mine", "maxResults": 5}
    )  # fmt: skip
    assert said.evidence.repairs >= 4
    record(client, session(tool, 9, (sent, None)))
    assert check(client, sent | {"text": "other"}, tool_name=tool).verdict == "pass"


def test_a_loop_is_stopped_before_the_call(client: Client) -> None:
    """Five failures of a session with one error; another session, and another call, go on."""
    tool = f"fetch_{uuid4().hex[:8]}"
    bad = {"name": "x"}
    record(client, session(tool, 1, *[(bad, "no such record")] * 5, session_id="looping"))
    said = check(client, bad, tool_name=tool, agent="agent 1", session_id="looping")
    assert said.verdict == "block"
    assert "failed 5 times in this session" in said.reasons[0]
    for other in ({"parameters": {"name": "y"}}, {"session_id": "another"}):
        fields = {"tool_name": tool, "agent": "agent 1", "session_id": "looping"} | other
        assert check(client, fields.pop("parameters", bad), **fields).verdict != "block"


def test_failures_of_the_moment_are_no_loop(client: Client) -> None:
    """A server that is away may be back."""
    tool = f"fetch_{uuid4().hex[:8]}"
    away = ({"name": "x"}, "503 service unavailable, try again later")
    record(client, session(tool, 1, *[away] * 6, session_id="waiting"))
    said = check(client, {"name": "x"}, tool_name=tool, agent="agent 1", session_id="waiting")
    assert said.verdict != "block"


UNAUTHORIZED = "401 Unauthorized: the token has expired"


def looped(client: Client, results: list[Any], *, error: str | None = None) -> CheckResponse:
    """What is said of the next query of a session whose queries all came to this."""
    tool = f"search_{uuid4().hex[:8]}"
    calls: list[Any] = [({"query": f"words {at}"}, error) for at in range(len(results))]
    executions = session(tool, 1, *calls, session_id="s")
    record(client, [
        each if error else each.model_copy(update={"result": result})
        for each, result in zip(executions, results, strict=True)
    ])  # fmt: skip
    return check(client, {"query": "the next"}, tool_name=tool, agent="agent 1", session_id="s")


def test_one_error_of_varying_calls_is_not_passed_in_silence(client: Client) -> None:
    """Counted by tool and words: no query helps against a token that has expired."""
    said = looped(client, [None] * 8, error=UNAUTHORIZED)
    assert said.verdict == "warn"
    assert "failed 8 times in this session with the same error, with other" in said.reasons[0]
    assert "permission_denied" in said.reasons[0]
    assert looped(client, [None] * 4, error=UNAUTHORIZED).verdict == "pass"
    assert looped(client, [None] * 8, error="503 service unavailable").verdict == "pass"


@pytest.mark.parametrize(
    "result",
    [
        {"status": 200, "body": {"error": UNAUTHORIZED}},
        {"success": False, "message": UNAUTHORIZED},
        '{"ok": false, "error": "401 Unauthorized: the token has expired"}',
    ],
)
def test_errors_inside_successes_are_a_loop_too(client: Client, result: Any) -> None:
    """They count as what they are, though each call stays the success that it was recorded as."""
    said = looped(client, [result] * 8)
    assert said.verdict == "warn"
    assert "the token has expired" in said.reasons[0]
    assert looped(client, [result] * 7 + [{"items": [1]}]).verdict == "pass"
    assert looped(client, [{"items": [1]}] * 8).verdict == "pass"


def test_answers_that_are_empty_again_and_again_are_told(client: Client) -> None:
    """A single full one ends it."""
    said = looped(client, [{"items": [], "total": 0}] * 6)
    assert (said.verdict, said.reasons) == (
        "warn", ["the last 6 calls of this tool in this session found nothing"]
    )  # fmt: skip
    assert looped(client, [[]] * 5 + [[1]]).verdict == "pass"
    assert looped(client, [None] * 8).verdict == "pass"


def test_the_same_call_that_holds_an_error_again_and_again_is_blocked(client: Client) -> None:
    """As one that failed; another session goes on."""
    tool = f"fetch_{uuid4().hex[:8]}"
    calls = session(tool, 1, *[({"id": 7}, None)] * 5, session_id="s")
    result = {"success": False, "message": "the record is locked for good"}
    record(client, [each.model_copy(update={"result": result}) for each in calls])
    fields: dict[str, Any] = {"tool_name": tool, "agent": "agent 1"}
    assert check(client, {"id": 7}, **fields, session_id="s").verdict == "block"
    assert check(client, {"id": 7}, **fields, session_id="other").verdict == "pass"
