"""Spans of tool calls become executions, by three conventions and in both encodings."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from aftercall.models import Execution
from ingest.formats.calls import Noted, Read, Unreadable
from ingest.formats.otlp.keys import arguments_of
from tests.ingest.otlp_samples import (
    TRACE,
    Json,
    exception,
    in_protobuf,
    of_json,
    of_protobuf,
    request,
    span,
    tool_span,
)

ReadRequest = Callable[[Json], Sequence[Read]]


@pytest.fixture(params=["json", "protobuf"])
def read(request: pytest.FixtureRequest) -> ReadRequest:
    """Read a request through one of the two encodings."""
    if request.param == "json":
        return of_json
    return lambda value: of_protobuf(in_protobuf(value))


def only(reads: Sequence[Read]) -> Execution:
    """The one execution that was read."""
    [execution] = reads
    assert isinstance(execution, Execution), execution
    return execution


def refusal(reads: Sequence[Read]) -> str:
    """The one reason why nothing was read, with its place."""
    [reason] = reads
    assert isinstance(reason, Unreadable), reason
    return f"{reason.where}: {reason.message}"


def test_a_genai_span_becomes_an_execution(read: ReadRequest) -> None:
    """All that the conventions say of a call is in the execution."""
    execution = only(read(request(tool_span(1))))
    assert execution.tool_name == "rag_query"
    assert execution.parameters == {"query": "reflection", "topK": 5}
    assert execution.result == {"matches": 5}
    assert (execution.agent, execution.session_id) == ("librarian", "s-1")
    assert execution.timestamp == datetime(2026, 2, 20, 14, 30, tzinfo=UTC)
    assert execution.duration_ms == 250.0
    assert (execution.outcome, execution.error) == ("success", None)
    assert execution.sequence is None


def test_structured_arguments_and_results_are_read_like_json_text(read: ReadRequest) -> None:
    """Lists, objects, numbers, booleans and nothing keep their types."""
    arguments = {"query": "x", "filters": [{"year": 2026, "strict": True}, 1.5, None], "none": None}
    more = {"gen_ai.tool.call.arguments": arguments, "gen_ai.tool.call.result": [1, "two"]}
    execution = only(read(request(tool_span(1, more=more))))
    assert execution.parameters == arguments
    assert execution.result == [1, "two"]


def test_the_same_span_is_the_same_execution(read: ReadRequest) -> None:
    """Ids are made of trace and span id, so that a second export is a duplicate."""
    first, second = read(request(tool_span(1), tool_span(2)))
    again = only(read(request(tool_span(1))))
    assert again == first
    assert isinstance(first, Execution)
    assert isinstance(second, Execution)
    assert first.execution_id != second.execution_id


@pytest.mark.parametrize(
    ("more", "span_name"),
    [
        ({"gen_ai.operation.name": ...}, "a span"),
        ({"gen_ai.tool.name": ...}, "execute_tool rag_query"),
        ({"gen_ai.tool.name": "", "gen_ai.tool.call.id": ...}, "running tool: rag_query"),
    ],
)
def test_the_tool_name_alone_or_the_spans_name_will_do(
    read: ReadRequest, more: Json, span_name: str
) -> None:
    """Not every instrumentation writes both attributes."""
    assert only(read(request(tool_span(1, more=more, name=span_name)))).tool_name == "rag_query"


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        ("tool_arguments", "tool_response"),
        ("gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response"),
    ],
)
def test_older_spellings_are_read(read: ReadRequest, arguments: str, result: str) -> None:
    """Pydantic AI and Google ADK named arguments and results before the convention did."""
    values = {"gen_ai.tool.name": "search", arguments: '{"q": "x"}', result: "found"}
    execution = only(read(request(span(1, values))))
    assert (execution.parameters, execution.result) == ({"q": "x"}, "found")


def test_parallel_calls_told_once_more_together_are_left_out(read: ReadRequest) -> None:
    """Google ADK writes a span `(merged tools)` beside those of the calls."""
    values = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "(merged tools)"}
    assert read(request(span(1, values))) == []


def test_an_mcp_clients_span_becomes_an_execution(read: ReadRequest) -> None:
    """Server, codes and the name in the span's name are MCP's; a session's id is not kept."""
    values = {
        "mcp.method.name": "tools/call",
        "mcp.session.id": "a-live-session",
        "server.address": "rag.example.com",
        "error.type": "-32602",
        "rpc.response.status_code": "-32602",
        "gen_ai.tool.call.arguments": {"topK": 50},
    }
    status = {"code": 2, "message": "Invalid params: topK"}
    failed = span(1, values, name="tools/call rag_query", kind=3, status=status)
    execution = only(read(request(failed, resource={"service.name": "helpdesk"})))
    assert (execution.tool_name, execution.server_name) == ("rag_query", "rag.example.com")
    assert execution.agent == "helpdesk"
    assert (execution.error.code, execution.error.message) == ("-32602", "Invalid params: topK")
    assert execution.session_id is not None
    assert "a-live-session" not in execution.session_id
    assert len(execution.session_id) == 32


def test_an_mcp_tool_error_is_told_in_the_tools_words(read: ReadRequest) -> None:
    """With `tool_error` the words are in the result, where MCP puts them."""
    values = {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "rag_query",
        "gen_ai.tool.call.arguments": "{}",
        "gen_ai.tool.call.result": {
            "content": [{"type": "text", "text": "topK must be <= 10"}],
            "isError": True,
        },
        "error.type": "tool_error",
    }
    execution = only(read(request(span(1, values, status={"code": 2}))))
    assert (execution.error.type, execution.error.message) == ("tool_error", "topK must be <= 10")


def test_an_mcp_servers_span_names_the_server_and_no_agent(read: ReadRequest) -> None:
    """Its service is the tool's, so it is not taken for the agent that calls."""
    values = {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "x",
        "gen_ai.tool.call.arguments": {},
    }
    execution = only(read(request(span(1, values, kind=2), resource={"service.name": "rag"})))
    assert (execution.server_name, execution.agent) == ("rag", "unknown")


def test_a_client_that_cannot_see_a_tools_failure_is_no_witness(read: ReadRequest) -> None:
    """The MCP SDK's client span looks alike for both; only an error of the protocol shows in it."""
    values = {"mcp.method.name": "tools/call", "jsonrpc.request.id": "2"}
    sent = span(1, values, name="MCP send tools/call rag_query", kind=3)
    assert read(request(sent)) == []
    refused = {**values, "error.type": "-32602", "rpc.response.status_code": "-32602"}
    failed = span(1, refused, name=sent["name"], status={"code": 2, "message": "Invalid params"})
    execution, _ = read(request(failed))
    assert isinstance(execution, Execution)
    assert execution.tool_name == "rag_query"
    assert execution.error.code == "-32602"


def test_an_openinference_span_becomes_an_execution(read: ReadRequest) -> None:
    """Its `tool.parameters` is the schema; the arguments are its input."""
    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
    values = {
        "openinference.span.kind": "TOOL", "tool.name": "search",
        "tool.parameters": json.dumps(schema), "input.value": '{"query": "x"}',
        "input.mime_type": "application/json", "output.value": "three hits", "session.id": "s-9",
        "agent.name": "ada",
    }  # fmt: skip
    execution = only(read(request(span(1, values))))
    assert execution.tool_name == "search"
    assert execution.input_schema == schema
    assert (execution.parameters, execution.result) == ({"query": "x"}, "three hits")
    assert (execution.agent, execution.session_id) == ("ada", "s-9")


@pytest.mark.parametrize("said", ['{"query": "x"}', '{"type": "object"}', "{", "x"])
def test_tool_parameters_that_are_no_schema_are_left_alone(read: ReadRequest, said: str) -> None:
    """Arguments are never taken from them, and no schema is made up."""
    values = {"openinference.span.kind": "TOOL", "tool.name": "t", "tool.parameters": said}
    execution, note = read(request(span(1, values)))
    assert isinstance(execution, Execution)
    assert (execution.parameters, execution.input_schema) == ({}, None)
    assert isinstance(note, Noted)


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("just words", {"input": "just words"}),
        ("[1, 2]", {"input": "[1, 2]"}),
        ("", {}),
        ("null", {}),
        (
            "{'city': 'S\\u00f8r', 'days': None, \"it's\": [True, -1.5e3, {}], 'n': '\\'\\n\\x41'}",
            {"city": "Sør", "days": None, "it's": [True, -1500.0, {}], "n": "'\nA"},
        ),
    ],
)
def test_input_that_is_no_json_is_read(read: ReadRequest, text: str, parameters: Json) -> None:
    """Plain text is the one input of a tool without named ones; LangChain writes Python's repr."""
    values = {"openinference.span.kind": "TOOL", "tool.name": "t", "input.value": text}
    assert only(read(request(span(1, values)))).parameters == parameters


def test_a_span_of_several_conventions_is_one_execution(read: ReadRequest) -> None:
    """MCP first, then GenAI, then OpenInference; what one does not say the next one does."""
    values = {
        "mcp.method.name": "tools/call", "fastmcp.server.name": "rag",
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search",
        "gen_ai.tool.call.result": "found", "openinference.span.kind": "TOOL",
        "tool.name": "another name", "input.value": '{"q": 1}',
    }  # fmt: skip
    execution = only(read(request(span(1, values))))
    assert (execution.server_name, execution.tool_name) == ("rag", "search")
    assert (execution.parameters, execution.result) == ({"q": 1}, "found")


def test_a_call_that_is_told_twice_counts_once(read: ReadRequest) -> None:
    """An agent framework's span around an MCP client's: the outer one counts."""
    inner = span(
        2,
        {
            "mcp.method.name": "tools/call",
            "gen_ai.tool.name": "rag_query",
            "gen_ai.tool.call.arguments": {"topK": 5, "query": "reflection"},
        },
        parentSpanId=f"{3:016x}",
    )
    between = span(3, {}, parentSpanId=f"{1:016x}")
    assert only(read(request(inner, between, tool_span(1)))).result == {"matches": 5}


@pytest.mark.parametrize(
    "difference",
    [
        {"gen_ai.tool.name": "other"},
        {"gen_ai.tool.call.id": "call-9"},
        {"gen_ai.tool.call.id": ..., "gen_ai.tool.call.arguments": '{"query": "deeper"}'},
    ],
)
def test_a_call_within_another_counts_too(read: ReadRequest, difference: Json) -> None:
    """Another tool, another call id or other arguments: that is another call."""
    more = {"gen_ai.tool.call.id": "call-1", **difference}
    inner = tool_span(2, more=more, parentSpanId=f"{1:016x}")
    assert len(read(request(tool_span(1), inner))) == 2


def test_arguments_are_compared_without_reading_them_for_every_span_below(
    read: ReadRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4 MiB of arguments above 40,000 small spans would be half an hour of reading."""
    read_texts: list[object] = []

    def counted(value: object, *, named: bool) -> dict[str, Any]:
        read_texts.append(value)
        return arguments_of(value, named=named)

    monkeypatch.setattr("ingest.formats.otlp.reading.arguments_of", counted)
    bare = {"gen_ai.tool.call.id": ...}
    outer = tool_span(1, more={**bare, "gen_ai.tool.call.arguments": '{"all": [1]}'})
    inner = [
        tool_span(n, more={**bare, "gen_ai.tool.call.arguments": f'{{"n": {n}}}'},
                  parentSpanId=f"{1:016x}")
        for n in range(2, 102)
    ]  # fmt: skip
    assert len(read(request(outer, *inner))) == 101
    assert len(read_texts) == 2 * 101  # for the execution, and to compare


def test_an_agent_between_makes_it_another_call(read: ReadRequest) -> None:
    """A tool that is an agent may use the tool of the same name."""
    alike = {"gen_ai.tool.call.id": ...}
    between = span(2, {"gen_ai.operation.name": "invoke_agent"}, parentSpanId=f"{1:016x}")
    inner = tool_span(3, more=alike, parentSpanId=f"{2:016x}")
    assert len(read(request(tool_span(1, more=alike), between, inner))) == 2


def test_what_our_own_sdk_has_recorded_is_left_out(read: ReadRequest) -> None:
    """With what lies within it, since that is the same call."""
    recorded = tool_span(1, more={"aftercall.execution_id": "0b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d"})
    inner = tool_span(2, more={"gen_ai.tool.call.id": "call-1"}, parentSpanId=f"{1:016x}")
    assert read(request(recorded, inner)) == []


def test_agent_and_session_are_looked_up_in_the_ancestors(read: ReadRequest) -> None:
    """The nearest one that has a name; wherever in the request it stands."""
    bare = {"gen_ai.agent.name": ..., "gen_ai.conversation.id": ...}
    call = tool_span(1, more=bare, parentSpanId=f"{2:016x}")
    chat = span(2, {"gen_ai.operation.name": "chat"}, parentSpanId=f"{3:016x}")
    agent = span(3, {"gen_ai.agent.name": "ada"}, parentSpanId=f"{4:016x}")
    root = span(4, {"gen_ai.agent.name": "boss", "gen_ai.conversation.id": "s-7"})
    execution = only(read(request(call, chat, agent, root)))
    assert (execution.agent, execution.session_id) == ("ada", "s-7")


@pytest.mark.parametrize(
    ("service", "agent"),
    [("helpdesk", "helpdesk"), ("unknown_service:python", "unknown"), ("", "unknown")],
)
def test_without_any_agent_the_service_is_named(
    read: ReadRequest, service: str, agent: str
) -> None:
    """Unless it is a name that an SDK made up; the session is the trace then."""
    bare = {"gen_ai.agent.name": ..., "gen_ai.conversation.id": ...}
    execution = only(read(request(tool_span(1, more=bare), resource={"service.name": service})))
    assert (execution.agent, execution.session_id) == (agent, TRACE)


def test_ancestors_in_a_circle_end(read: ReadRequest) -> None:
    """A hostile trace costs a few steps."""
    bare = {"gen_ai.agent.name": ..., "gen_ai.conversation.id": ...}
    first = tool_span(1, more=bare, parentSpanId=f"{2:016x}")
    second = span(2, {}, parentSpanId=f"{1:016x}")
    itself = tool_span(3, more={**bare, "gen_ai.tool.name": "x"}, parentSpanId=f"{3:016x}")
    assert len(read(request(first, second, itself))) <= 2


@pytest.mark.parametrize(
    ("fields", "more", "kind", "message"),
    [
        (
            {
                "status": {"code": 2, "message": "ValueError: topK"},
                "events": [exception("ValueError", "topK must be <= 10")],
            },
            {},
            "ValueError",
            "topK must be <= 10",
        ),
        ({"status": {"code": 2, "message": "timed out"}}, {}, "Error", "timed out"),
        ({}, {"error.type": "timeout"}, "timeout", "timeout"),
        (
            {"events": [exception("requests.Timeout", "30 s")]},
            {"error.type": "_OTHER"},
            "requests.Timeout",
            "30 s",
        ),
        ({"status": {"code": 2}}, {"error.type": 500}, "500", "500"),
    ],
)
def test_failures_are_told_in_the_words_of_the_span(
    read: ReadRequest, fields: Json, more: Json, kind: str, message: str
) -> None:
    """Exception, status message, `error.type`, in this order."""
    failed = tool_span(1, more={"gen_ai.tool.call.result": ..., **more}, **fields)
    execution = only(read(request(failed)))
    assert execution.outcome == "failure"
    assert (execution.error.type, execution.error.message) == (kind, message)
    if "events" in fields:
        assert execution.error.stack == "Traceback ..."


@pytest.mark.parametrize(
    ("fields", "more"),
    [
        ({"events": [exception("KeyError", "caught")]}, {}),
        ({"status": {"code": 1}}, {"error.type": "handled"}),
        ({}, {"gen_ai.tool.call.result": '{"error": "no such page"}'}),
    ],
)
def test_what_did_not_fail_is_a_success(read: ReadRequest, fields: Json, more: Json) -> None:
    """An exception that was dealt with, a status set to OK, the text of a result."""
    assert only(read(request(tool_span(1, more=more, **fields)))).outcome == "success"


def test_missing_arguments_are_noted_once(read: ReadRequest) -> None:
    """The calls are recorded, and the note says how to have their content sent."""
    bare = {"gen_ai.tool.call.arguments": ...}
    *executions, note = read(
        request(tool_span(1, more=bare), tool_span(2, more=bare), tool_span(3))
    )
    known = [each.parameters_known for each in executions if isinstance(each, Execution)]
    assert known == [False, False, True]
    assert isinstance(note, Noted)
    assert note.message.startswith("2 of 3 calls")
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in note.message


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"gen_ai.tool.name": 42}, "gen_ai.tool.name is a number; it must be text"),
        ({"gen_ai.tool.name": b"\xff"}, "gen_ai.tool.name is bytes"),
        ({"gen_ai.tool.name": ...}, "it names no tool; set gen_ai.tool.name"),
        ({"gen_ai.tool.name": "x" * 257}, "longer than 256 characters"),
        ({"gen_ai.tool.call.arguments": 7}, "the arguments are a number"),
        ({"gen_ai.tool.call.arguments": True}, "the arguments are a boolean"),
        ({"gen_ai.tool.call.arguments": [1]}, "the arguments are a list"),
        ({"gen_ai.tool.call.arguments": b"\xff\xfe"}, "the arguments are bytes"),
        ({"gen_ai.tool.call.arguments": '{"query": "cut o'}, "cut off, perhaps; raise OTEL_"),
        ({"gen_ai.tool.call.arguments": '{"a": [' + "{}," * 100_000 + "1]}"}, "more than 100,000"),
        ({"gen_ai.tool.call.arguments": '{"a": "' + "x" * 2**22 + '"}'}, "4,194,304 characters"),
    ],
)
def test_attributes_of_wrong_types_refuse_that_span_alone(
    read: ReadRequest, more: Json, words: str
) -> None:
    """With its place and the cure; its neighbours are read."""
    before, reason, after = read(request(tool_span(1), tool_span(2, more=more), tool_span(3)))
    assert isinstance(before, Execution)
    assert isinstance(after, Execution)
    message = refusal([reason])
    assert message.startswith("resourceSpans[0].scopeSpans[0].spans[1]: ")
    assert words in message


@pytest.mark.parametrize(
    ("more", "field", "value"),
    [
        ({"gen_ai.tool.call.result": b"caf\xc3\xa9"}, "result", "café"),
        ({"gen_ai.tool.call.result": b"\xff\xfe"}, "result", "<bytes>"),
        ({"gen_ai.tool.call.result": 3}, "result", 3),
        ({"gen_ai.tool.call.arguments": b'{"a": 1}'}, "parameters", {"a": 1}),
        ({"gen_ai.conversation.id": 12}, "session_id", "12"),
        ({"gen_ai.agent.name": ["x"]}, "agent", "unknown"),
        ({"gen_ai.agent.name": "a" * 300}, "agent", "a" * 255 + "…"),
        ({"gen_ai.tool.call.arguments": '{"a": NaN}'}, "parameters", {"a": None}),
        ({"gen_ai.tool.call.arguments": {"a": float("nan")}}, "parameters", {"a": None}),
        ({"gen_ai.tool.name": "a\x00b"}, "tool_name", "a�b"),
    ],
)
def test_what_can_be_understood_is_not_refused(
    read: ReadRequest, more: Json, field: str, value: object
) -> None:
    """Wrong types where the meaning is plain, and values that no store holds."""
    assert getattr(only(read(request(tool_span(1, more=more)))), field) == value


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"startTimeUnixNano": "0"}, "missing or 0"),
        ({"startTimeUnixNano": str(2**63)}, "after the year 2199; check the sender's clock"),
        ({"spanId": "0" * 16}, "span id is missing, all zeros"),
        ({"traceId": "0" * 32}, "trace id or span id is missing, all zeros"),
        ({"spanId": "ab"}, "of another length"),
    ],
)
def test_times_and_ids_that_are_none_refuse_that_span_alone(
    read: ReadRequest, fields: Json, words: str
) -> None:
    """What has no time or no identity cannot be recorded."""
    assert words in refusal(read(request(tool_span(1, **fields))))


def test_other_spans_give_nothing_whatever_is_wrong_with_them(read: ReadRequest) -> None:
    """What is no call of a tool is not looked at."""
    chat = span(1, {"gen_ai.operation.name": "chat", "gen_ai.tool.name": 5}, spanId="")
    http = span(2, {"http.request.method": "GET"}, startTimeUnixNano="0")
    agent = span(3, {"openinference.span.kind": "AGENT", "input.value": "hello"})
    assert read(request(chat, http, agent)) == []


def test_large_results_and_stacks_are_bounded(read: ReadRequest) -> None:
    """A result shows what a success looks like; it is never played back."""
    more: dict[str, Any] = {"gen_ai.tool.call.result": "y" * 1_000_000}
    failed = tool_span(
        1, more=more, status={"code": 2}, events=[exception("E", "m" * 10**6, "s" * 10**6)]
    )
    assert len(only(read(request(failed))).model_dump_json()) < 40_000


def test_integers_beyond_all_bounds_harm_nobody() -> None:
    """JSON has them; Python refuses to write them as text."""
    huge = 10**5_000
    keys = ("gen_ai.conversation.id", "error.type", "gen_ai.tool.call.id", "gen_ai.agent.name")
    bad = tool_span(1)
    bad["attributes"] += [{"key": key, "value": {"intValue": huge}} for key in keys]
    bad["attributes"] += [
        {"key": "gen_ai.tool.call.result", "value": {"doubleValue": huge}},
        {"key": "gen_ai.tool.call.arguments", "value": {"stringValue": f'{{"a": 1{"0" * 99}}}'}},
    ]
    bad |= {"kind": huge, "status": {"code": huge}, "endTimeUnixNano": huge}
    execution = only(of_json(request(bad)))
    assert (execution.agent, execution.session_id) == ("unknown", TRACE)
