"""Transcripts of OpenAI's APIs, read into executions."""

import copy
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftercall.json_values import JsonObject
from aftercall.models import Execution
from ingest.formats.calls import Given, Noted
from ingest.formats.transcripts import read_transcript
from tests.ingest.transcripts import AT, GIVEN, answered, called, of_transcript, user

SCHEMA: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}}


def only(executions: list[Execution]) -> Execution:
    [execution] = executions
    return execution


def answer_of(content: object, given_: Given = GIVEN, **more: object) -> Execution:
    messages = [user("?"), called("c1", "t", {}), answered("c1", content, **more)]
    return only(of_transcript({"messages": messages}, given_)[0])


def test_calls_and_results_are_matched_by_id() -> None:
    """Also where several calls are made at once and answered in another order."""
    both = called("c1", "forecast", {"city": "Rome"})
    both["tool_calls"] += called("c2", "forecast", {"city": "Oslo"})["tool_calls"]
    executions, rest = of_transcript(
        {
            "id": "conv-7",
            "model": "gpt-4o",
            "tools": [{"type": "function", "function": {"name": "forecast", "parameters": SCHEMA}}],
            "messages": [user("Weather?"), both, answered("c2", "snow"), answered("c1", "sun")],
        }
    )
    assert not rest
    told = {(e.parameters["city"], e.result, e.sequence) for e in executions}
    assert told == {("Rome", "sun", 0), ("Oslo", "snow", 1)}
    first = executions[0]
    assert (first.agent, first.session_id, first.context) == ("gpt-4o", "conv-7", "Weather?")
    assert first.input_schema == SCHEMA
    assert first.outcome == "success"


def test_items_of_the_responses_api_are_matched_by_call_id() -> None:
    """In a response with its input."""
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go"}]},
        {"type": "function_call", "call_id": "c", "name": "t", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "c", "output": "done"},
    ]
    whole = {"object": "response", "id": "resp_1", "created_at": 1771597800, "model": "gpt-5"}
    in_one = only(of_transcript(whole | {"input": items[:2], "output": items[2:]})[0])
    assert (in_one.tool_name, in_one.parameters, in_one.context) == ("t", {"a": 1}, "Go")
    assert (in_one.timestamp, in_one.agent, in_one.session_id) == (AT, "gpt-5", "resp_1")


@pytest.mark.parametrize(
    ("said", "message", "prefixes", "outcome"),
    [
        *((text, {}, (), "success") for text in (
            "Errors: nothing found", "Traceback (most recent call last)",
            '{"errors": 3, "error": null}', '{"error": ""}',
            '{"job": 5, "error": "timeout", "result": "the job failed"}',
            '{"status": "error", "rows": []}', '{"success": false, "message": "no"}', '["error"]',
            '{"error": "cut off',
            '{"content": [{"type": "text", "text": "failed"}], "isError": false}', "",
        )),
        *(("it broke", flag, (), "failure")
          for flag in ({"status": "error"}, {"is_error": True}, {"isError": True})),
        ("Error: no seats", {}, ("Error:", "FAILED"), "failure"),
        ("\n FAILED: no seats", {}, ("Error:", "FAILED"), "failure"),
        ("No Error: fine", {}, ("Error:", "FAILED"), "success"),
    ],
)  # fmt: skip
def test_no_success_becomes_a_failure_by_its_text(
    said: str, message: dict[str, Any], prefixes: tuple[str, ...], outcome: str
) -> None:
    """What merely reads like an error is a success, unless the message or a person says so."""
    begins = "|".join(map(re.escape, prefixes))
    pattern = re.compile(rf"\A\s*(?:{begins})") if prefixes else None
    read = answer_of(said, Given(at=AT, error_pattern=pattern), **message)
    assert read.outcome == outcome
    assert (read.error and read.error.message) == (said if outcome == "failure" else None)


def test_what_begins_as_errors_do_is_guessed_to_be_one_and_marked() -> None:
    """Also what the tool called an error before; not what a reading tool may have read."""
    guessed = answer_of("Error: nothing found").error
    assert (guessed.message, guessed.details["guessed"]) == ("Error: nothing found", True)
    assert guessed.details["readAsError"] == "it begins as errors do"
    assert (
        answer_of("Error: nothing found", Given(at=AT, error_pattern=re.compile("^FAILED"))).error
        is None
    )
    told = [
        called("c1", "book", {}), answered("c1", "no seats in row 7", is_error=True),
        called("c2", "book", {}), answered("c2", "no seats in row 9"),
        called("c3", "read_file", {"path": "log"}), answered("c3", "Error: disk full"),
    ]  # fmt: skip
    executions, _ = of_transcript(told)
    assert [each.outcome for each in executions] == ["failure", "failure", "success"]


def test_a_failed_result_that_python_printed_is_a_failure_with_its_text() -> None:
    """As frameworks write it that call `str` on a result of MCP."""
    text = "meta=None content=[TextContent(type='text', text='it\\'s gone')] isError=True"
    assert answer_of(text).error.message == "it's gone"
    assert answer_of(text.replace("True", "False")).error is None


@pytest.mark.parametrize(
    ("said", "type_", "message"),
    [
        ('{"error": "no such city"}', "ToolError", "no such city"),
        ('{"error": {"type": "not_found", "message": "no", "code": 404}}', "not_found", "no"),
        ('{"error": true, "message": "no", "status_code": 500}', "ToolError", "no"),
        ('{"isError": true, "content": [{"type": "text", "text": "no"}]}', "ToolError", "no"),
        ('{"isError": true, "rows": 3, "message": "no"}', "ToolError", "no"),
        (
            '{"status": "error", "error_type": "wrong_tool_boundary", "message": "no"}',
            "wrong_tool_boundary",
            "no",
        ),
    ],
)
def test_structured_errors_are_failures(said: str, type_: str, message: str) -> None:
    """Objects that hold nothing but an error, `isError`, typed outcomes; as text or as parts."""
    for content in (said, [{"type": "text", "text": said}], json.loads(said)):
        error = answer_of(content).error
        assert (error.type, error.message) == (type_, message)


def test_what_is_no_call_is_told_of_with_its_place() -> None:
    """Arguments that no store holds, calls without result, results without call, and junk."""
    executions, rest = of_transcript(
        {
            "messages": [
                {"role": "user", "content": "Go"},
                {"role": "user", "content": "on"},
                {"role": "user", "content": "."},
                called("c3", "t", {"a": 2**70}),
                answered("c4", "whose?"),
                called("c5", "t", {}),
                7,
                {"role": "assistant", "tool_calls": ["c6", {"id": "c7", "function": {}}]},
                called("c8", "", {}),
                called("c9", "t" * 300, {}),
                answered("c9", "x"),
            ]
        }
    )
    assert not executions
    assert [where for where, _ in rest] == [
        "messages[3].tool_calls[0]", "messages[4]", "messages[6]",
        "messages[7].tool_calls[0]", "messages[7].tool_calls[1]",
        "messages[8].tool_calls[0]", "messages[9].tool_calls[0]", "messages[5].tool_calls[0]",
    ]  # fmt: skip
    assert "64 bits" in rest[0][1]
    assert "no result" in rest[-1][1]


@pytest.mark.parametrize(
    "text", ["{'a': True,}", '```json\n{"a": true}\n```', json.dumps('{"a": true}'), "{a: true}"]
)
def test_arguments_that_are_loose_json_are_their_object(text: str) -> None:
    """Chat messages and items of the Responses API; the text is kept, and a note says so."""
    item = {"type": "function_call", "call_id": "c", "name": "t", "arguments": text}
    output = {"type": "function_call_output", "call_id": "c", "output": "fine"}
    for told in ([called("c", "t", text), answered("c", "fine")], [item, output]):
        executions, _ = of_transcript({"messages": told})
        (read,) = executions
        assert (read.parameters, read.arguments_text) == ({"a": True}, text)
        assert (read.outcome, read.result) == ("success", "fine")
        notes = [each.read for each in read_transcript(told, GIVEN) if isinstance(each.read, Noted)]
        assert "read as such" in notes[0].message


@pytest.mark.parametrize("text", ['{"a": ', '{"a": "x", "b": "hal', "[1]", "7", "hello"])
def test_a_call_that_could_not_be_made_failed_with_its_text(text: str) -> None:
    """Whatever answered it was no tool; without an answer, and with one later, it is one call."""
    unanswered, _ = of_transcript({"messages": [called("c", "t", text)]})
    complaint = answered("c", "the framework's own complaint")
    answers, _ = of_transcript({"messages": [called("c", "t", text), complaint]})
    for (read,), message in ((unanswered, "Invalid JSON"), (answers, "the framework's own")):
        assert (read.outcome, read.parameters, read.parameters_known) == ("failure", {}, False)
        assert read.arguments_text == text
        assert read.error.message.startswith(message)
    assert unanswered[0].execution_id == answers[0].execution_id


FIRST, SECOND = (
    [called("c", tool, {}), answered("c", result)] for tool, result in (("a", "1"), ("b", "2"))
)


@pytest.mark.parametrize("told", [[*FIRST, *SECOND], [FIRST, {"messages": SECOND}]])
def test_an_id_that_is_used_again_is_the_latest_call(told: list[Any]) -> None:
    """In one conversation, as of servers that number anew in every message; or in two of them."""
    executions, rest = of_transcript(told)
    assert [(e.tool_name, e.result) for e in executions] == [("a", "1"), ("b", "2")]
    assert not rest


@pytest.mark.parametrize("call_id", ["c", None])
def test_results_are_never_given_to_another_call(call_id: Any) -> None:
    """Of calls that were made together under one id, or without any, none is recorded."""
    two = called(call_id, "a", {})
    two["tool_calls"] += called(call_id, "b", {})["tool_calls"]
    told = [two, answered(call_id, "of a"), answered(call_id, "of b")]
    executions, rest = of_transcript([*told, called(call_id, "c", {}), answered(call_id, "of c")])
    assert [(e.tool_name, e.result) for e in executions] == [("c", "of c")]
    assert [where for where, _ in rest] == ["[0].tool_calls[0]", "[0].tool_calls[1]"]
    assert "nobody can tell" in rest[0][1]
    items = [
        *({"type": "function_call", "call_id": "c", "name": name, "arguments": "{}"}
          for name in "ab"),
        *({"type": "function_call_output", "call_id": "c", "output": name} for name in "ab"),
    ]  # fmt: skip
    executions, rest = of_transcript(items)
    assert (executions, len(rest)) == ([], 2)


def test_conversations_that_have_names_are_kept_apart() -> None:
    """The same words in two are two calls; the id of a request is no name of a conversation."""
    told = [user("?"), called("c", "t", {}), answered("c", "1")]

    def id_of(**fields: str) -> str:
        return only(of_transcript({"messages": told, **fields})[0]).execution_id

    assert id_of(conversation_id="a") != id_of(conversation_id="b")
    assert id_of(thread_id="a", id="1") == id_of(thread_id="a", id="2")
    assert id_of(id="chatcmpl-1") == id_of(id="chatcmpl-2") == id_of()


def test_what_is_no_conversation_says_what_would_be_one() -> None:
    """A message without calls is a part of one."""
    for value in (7, "x", None, {"a": 1}, [7], [{"a": 1}], [[7]]):
        assert "is no conversation" in of_transcript(value)[1][0][1]
    assert of_transcript(user("hello")) == ([], [])
    assert of_transcript([]) == ([], [])


def test_times_are_those_of_the_transcript_where_it_has_any() -> None:
    """The message's, else the conversation's, else the one that is given; in order."""
    told = [called("c", "t", {}), answered("c", "1"), called("d", "t", {}), answered("d", "2")]
    stamped = copy.deepcopy(told)
    stamped[0]["created_at"] = "2026-02-20T14:29:00Z"
    first, second = of_transcript({"messages": stamped, "created": 1771597800})[0]
    assert first.timestamp.isoformat() == "2026-02-20T14:29:00+00:00"
    assert second.timestamp.isoformat() == "2026-02-20T14:30:00.001000+00:00"
    assert [e.timestamp >= AT for e in of_transcript(told)[0]] == [True, True]


def test_reading_again_gives_the_same_ids_and_a_longer_version_the_same_calls() -> None:
    """So nothing counts twice, also where each request logs all that was said before."""
    told = [user("?"), called("c", "t", {"a": 1}), answered("c", "1")]
    longer = [*told, user("!"), called("d", "t", {"a": 2}), answered("d", "2")]
    short, long = of_transcript(told)[0], of_transcript(longer)[0]
    assert of_transcript(told)[0] == short
    assert long[0] == short[0]
    assert long[1].execution_id != long[0].execution_id
    other = of_transcript([user("?"), called("c", "t", {"a": 1}), answered("c", "2")])[0]
    assert other[0].execution_id != short[0].execution_id


def test_long_texts_are_bounded() -> None:
    """Context and result; the tool's parameters stay as they are."""
    told = [user("x" * 10_000), called("c", "t", {"a": "y" * 10_000}), answered("c", "z" * 99_999)]
    read = only(of_transcript(told)[0])
    assert len(read.context or "") <= 4000
    assert len(str(read.result)) <= 4000
    assert len(str(read.parameters["a"])) == 10_000


_KEYS = st.sampled_from(
    re.findall(
        r"\w+",
        "role content tool_calls function name arguments id type call_id output messages input "
        "tools parameters error isError created_at tool_call_id status",
    )
)
_WORDS = st.sampled_from(
    ["assistant", "tool", "user", "function", "function_call", "function_call_output"]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | _WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=20,
)


@given(value=_JSON)
@settings(max_examples=300)
def test_any_value_is_read_or_told_of(value: Any) -> None:
    """Whatever stands where, nothing is raised, and it reads the same again."""
    first = list(read_transcript(value, GIVEN))
    assert [str(each) for each in read_transcript(value, GIVEN)] == [str(each) for each in first]


@given(mistake=st.sampled_from(["drop", "junk", "double"]), at=st.integers(0, 7), junk=_JSON)
def test_a_damaged_message_loses_only_the_calls_it_is_part_of(
    mistake: str, at: int, junk: Any
) -> None:
    """The others are read as before."""
    messages: list[Any] = []
    for number in range(4):
        messages += [called(f"c{number}", "t", {"n": number}), answered(f"c{number}", "ok")]
    if mistake == "drop":
        del messages[at]
    elif mistake == "junk":
        messages[at] = junk
    else:
        messages.insert(at, messages[at])
    executions, _ = of_transcript({"messages": messages})
    kept = {each.parameters.get("n") for each in executions}
    assert kept >= set(range(4)) - {at // 2}
