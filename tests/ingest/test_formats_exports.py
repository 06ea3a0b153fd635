"""Claude Code, Anthropic's messages, LangSmith, Langfuse: what is read of their forms."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import Execution
from ingest.formats.calls import Given, Placed, Unreadable
from ingest.formats.detection import describe_contents, look_at
from ingest.formats.observations import ObservationReader
from ingest.formats.transcripts import Transcripts, read_transcript
from tests.ingest.exports import observation, outcome, run, session_line, use
from tests.ingest.transcripts import AT

GIVEN = Given(at=AT)
LOST = "the call has no result here, so nobody knows what became of it"


def said(role: str, *blocks: Any) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def session(*lines: dict[str, Any]) -> list[Placed]:
    reader = Transcripts(GIVEN)
    read = [
        each for n, line in enumerate(lines, 1) for each in reader.feed_value(line, f"line {n}, ")
    ]
    return [*read, *reader.finish_file()]


def calls(read: list[Placed]) -> list[Execution]:
    return [each.read for each in read if isinstance(each.read, Execution)]


def observed(value: object) -> list[Placed]:
    return list(ObservationReader(GIVEN).read(value))


def test_a_session_has_calls_of_servers_subagents_and_refusals() -> None:
    """Names of MCP tools are parted, sidechains are sessions of their own, words stay as said."""
    ask = session_line({"role": "user", "content": "mend the tests"})
    both = said(
        "assistant",
        {"type": "thinking", "thinking": "..."},
        use("toolu_1", "mcp__git__git_log", {"max_count": "five"}),
        use("toolu_2", "Read", {"file_path": "/a"}),
    )
    invalid = "<tool_use_error>InputValidationError: max_count must be a number</tool_use_error>"
    results = said("user", outcome("toolu_2", "text"), outcome("toolu_1", invalid, failed=True))
    side = {"isSidechain": True, "agentId": "a1"}
    read = session(
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        ask,
        session_line(both, at="2026-02-20T14:31:00Z"),
        session_line(results),
        session_line(said("assistant", use("toolu_3", "Grep", {"pattern": "x"})), **side),
        session_line(said("user", outcome("toolu_3", [{"type": "text", "text": "none"}])), **side),
        session_line(said("assistant", use("toolu_4", "Bash", {"command": "ls"}))),
        session_line(said("user", outcome("toolu_9", "lost"))),
    )
    one, git, grep = calls(read)
    assert (one.tool_name, one.server_name, one.result) == ("Read", None, "text")
    assert (git.tool_name, git.server_name, git.sequence) == ("git_log", "git", 0)
    assert git.error.message == "InputValidationError: max_count must be a number"
    assert (git.context, git.agent, git.session_id) == ("mend the tests", "claude-code", "s")
    assert git.timestamp.isoformat() == "2026-02-20T14:31:00+00:00"
    assert (grep.session_id, grep.result) == ("s/a1", "none")
    left = [each for each in read if isinstance(each.read, Unreadable)]
    assert [(each.where, each.read.message) for each in left] == [
        ("line 8, message.content[0]", "the result has no call before it here"),
        ("line 7, message.content[0]", LOST),
    ]


def test_a_resumed_session_gives_the_same_ids() -> None:
    """The same calls in another file, under another session, are the same executions."""
    turns = [said("assistant", use("toolu_1", "t", {})), said("user", outcome("toolu_1", "x"))]
    one, other = (
        calls(session(*(session_line(turn, session=name) for turn in turns)))[0]
        for name in ("s", "resumed")
    )
    assert one.execution_id == other.execution_id
    [third] = calls(list(read_transcript({"messages": turns}, GIVEN)))
    assert third.execution_id == one.execution_id


@pytest.mark.parametrize("form", ["one", "list", "bare"])
def test_requests_are_read_in_their_forms(form: str) -> None:
    """With the tools' schemas where they are given."""
    turns = [
        {"role": "user", "content": "weather?"},
        said("assistant", use("toolu_1", "weather", {"unit": "celsius"})),
        said("user", outcome("toolu_1", "no such unit", failed=True)),
    ]
    schema = {"type": "object", "properties": {"unit": {"type": "string"}}}
    tools = [{"name": "weather", "input_schema": schema}]
    request = {"model": "claude-x", "messages": turns, "tools": tools}
    value: Any = {"one": request, "list": [request], "bare": turns}[form]
    assert look_at(json.dumps(value).encode()).format == "transcripts"
    [one] = calls(list(read_transcript(value, GIVEN)))
    assert (one.tool_name, one.parameters, one.context) == (
        "weather",
        {"unit": "celsius"},
        "weather?",
    )
    assert one.error.message == "no such unit"
    assert one.input_schema == (None if form == "bare" else schema)
    assert one.agent == ("unknown" if form == "bare" else "claude-x")


def test_tools_that_the_api_calls_have_server_and_error() -> None:
    """A remote MCP server's, and a search that failed, in one message of the assistant."""
    turn = said(
        "assistant",
        {**use("m1", "find", {"q": "x"}), "type": "mcp_tool_use", "server_name": "wiki"},
        {**outcome("m1", [{"type": "text", "text": "found"}]), "type": "mcp_tool_result"},
        {**use("w1", "web_search", {"query": "x"}), "type": "server_tool_use"},
        {
            **outcome("w1", {"type": "web_search_tool_result_error", "error_code": "max_uses"}),
            "type": "web_search_tool_result",
        },
    )
    found, search = calls(list(read_transcript([turn], GIVEN)))
    assert (found.server_name, found.result) == ("wiki", "found")
    assert search.error.type == "web_search_tool_result_error"


TRACEBACK = "Traceback (most recent call last):\n\n\n  File ..., line 1, in run\nValueError: no"


@pytest.mark.parametrize(
    ("told", "kind", "message"),
    [
        (run("t", {}, error=f"ValueError('topK must be <= 10'){TRACEBACK}"), "ValueError",
         "topK must be <= 10"),
        (run("t", {}, error='KeyError("it\'s")'), "KeyError", "it's"),
        (run("t", {}, error="it broke"), "ToolError", "it broke"),
        (run("t", {}, output={"type": "tool", "tool_call_id": "c", "status": "error",
                              "content": "no"}), "ToolError", "no"),
        (observation("t", {}, level="ERROR", statusMessage="no"), "ToolError", "no"),
        (observation("t", {}, level="ERROR", output="no"), "ToolError", "no"),
    ],
)  # fmt: skip
def test_failures_of_runs_and_observations(told: dict[str, Any], kind: str, message: str) -> None:
    """By their flag; an exception's own words, without its traceback."""
    [one] = calls(observed(told))
    assert (one.error.type, one.error.message) == (kind, message)
    assert one.duration_ms == 250


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (run("t", {"q": "it's"}, output="x"), {"q": "it's"}),
        (run("t", "plain words", output="x"), {"input": "plain words"}),
        ({**run("t", None, output="x"), "inputs": {"q": 1, "k": 2}}, {"q": 1, "k": 2}),
        (observation("t", '{"q": 1}', output="x"), {"q": 1}),
        (observation("t", {"q": 1}, output="x"), {"q": 1}),
        (observation("t", None, output="x"), {}),
    ],
)
def test_arguments_are_read_in_their_forms(told: dict[str, Any], expected: object) -> None:
    """An object, its JSON, the text of a Python dict; words alone are an `input`."""
    [one] = calls(observed(told))
    assert one.parameters == expected
    assert one.result == "x"


def test_arguments_that_are_cut_off_are_kept_as_they_came() -> None:
    """A text that begins as no object is the tool's one argument, as before."""
    for text in ('{"a": "x', "{'a': "):
        [read] = calls(observed(run("t", text, output="x")))
        assert (read.parameters, read.arguments_text) == ({}, text)
        assert not read.parameters_known
    [read] = calls(observed(run("t", "{a: 'x',}", output="x")))
    assert (read.parameters, read.arguments_text) == ({"a": "x"}, "{a: 'x',}")


def test_a_tool_is_named_by_its_span_s_attributes_first() -> None:
    """Langfuse keeps those of OpenTelemetry, and names the observation as the span is named."""
    attributes = {"attributes": {"gen_ai.tool.name": "mcp__geo__lookup"}}
    told = [
        observation("execute_tool lookup", {}, output="x", metadata=attributes),
        observation("execute_tool lookup", {"q": 1}, output="x"),
    ]
    named, plain = calls(observed(told))
    assert (named.server_name, named.tool_name, plain.tool_name) == ("geo", "lookup", "lookup")


def test_sessions_agents_and_what_is_no_call() -> None:
    """The thread before the trace; runs of other types are counted; an interrupt is no outcome."""
    reader = ObservationReader(GIVEN)
    metadata = {"thread_id": "th", "langgraph_node": "tools"}
    tree = {
        **run("agent", {}, kind="chain"),
        "child_runs": [
            run("llm", {}, kind="llm"),
            run("t", {"a": 1}, output="x", extra={"metadata": metadata}),
            run("t", {"a": 2}, error="GraphInterrupt((Interrupt(value='?'),))"),
            run("t", {"a": 3}, end_time=None),
            run("mcp__git__log", {}, output="x"),
        ],
    }
    read = list(reader.read({"runs": [tree]}))
    one, named = calls(read)
    assert (one.session_id, one.agent) == ("th", "tools")
    assert (named.server_name, named.tool_name) == ("git", "log")
    assert named.session_id == tree["trace_id"]
    assert dict(reader.others) == {"chain": 1, "llm": 1}
    assert [type(each.read) for each in read].count(Unreadable) == 2
    exported = {
        key: each for key, each in observation("t", {}, output="x").items() if key != "traceId"
    }
    row = {
        **exported,
        "trace_id": "t1",
        "start_time": "2026-02-20 14:30:00.000000",
        "session_id": "s",
    }
    [stored] = calls(observed([row]))
    assert (stored.session_id, stored.timestamp.hour) == ("s", 14)


KEYS = (
    "type role content messages id name input inputs outputs output error run_type traceId "
    "message sessionId uuid tool_use_id is_error metadata observations request"
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS.split()) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
TYPES = st.sampled_from(["tool_use", "tool_result", "tool", "TOOL", "x", None, 7])


@given(value=VALUES, kind=TYPES, other=TYPES)
def test_nothing_breaks_a_reader(value: Any, kind: Any, other: Any) -> None:
    """Whatever stands where something else is meant."""
    block = {"type": kind, "id": "a", "name": value, "input": value, "tool_use_id": "a"}
    turns = [
        said("assistant", block, value),
        said("user", {**block, "type": other, "content": value}),
    ]
    for each in (value, turns, {"messages": [value, *turns]}):
        list(read_transcript(each, GIVEN))
        session(each if isinstance(each, dict) else {"message": turns[0], "type": "user"})
    for each in (value, {**run("t", {}), "run_type": kind, "inputs": value, "outputs": value}):
        observed(each)
    observed({**observation("t", value), "output": value, "level": value, "type": other})
    describe_contents(json.dumps(value).encode())


@pytest.mark.parametrize(
    ("beginning", "expected"),
    [
        (b"  \n", "nothing"),
        (b"hello", "text that is no JSON"),
        (b"[1, 2]", "JSON without objects"),
        (b'{"a": 1, "b": 2}\n{"a": 3}\n', 'JSON objects with "a", "b"'),
        (b'{\n  "a": 1,\n  "b": [', 'JSON in one piece with "a", "b"'),
    ],
)
def test_what_a_file_holds_is_said(beginning: bytes, expected: str) -> None:
    assert describe_contents(beginning) == expected
