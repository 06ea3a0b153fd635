"""Spans of tool calls become executions, by three conventions and in both encodings."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

import pytest

from aftercall.models import Execution
from ingest.formats.calls import Noted, Read
from ingest.formats.otlp.keys import span_arguments
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
    return execution


def below(number: int) -> Json:
    """The field of a span that says what it is part of."""
    return {"parentSpanId": f"{number:016x}"}


BARE: Json = {"gen_ai.agent.name": ..., "gen_ai.conversation.id": ...}
MCP: Json = {"mcp.method.name": "tools/call"}
OPENINFERENCE: Json = {"openinference.span.kind": "TOOL", "tool.name": "t"}
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}}
NESTED = {"query": "x", "filters": [{"year": 2026, "strict": True}, 1.5, None], "none": None}
IS_ERROR = {"content": [{"type": "text", "text": "topK must be <= 10"}], "isError": True}
PYTHONS = "{'city': 'S\\u00f8r', 'days': None, \"it's\": [True, -1.5e3, {}], 'n': '\\'\\n\\x41'}"

READ: dict[str, tuple[list[Json], str, Json]] = {
    "all that the GenAI conventions say": ([tool_span(1)], "", {
        "tool_name": "rag_query", "parameters": {"query": "reflection", "topK": 5},
        "result": {"matches": 5}, "agent": "librarian", "session_id": "s-1",
        "timestamp": datetime(2026, 2, 20, 14, 30, tzinfo=UTC), "duration_ms": 250.0,
        "outcome": "success", "error": None, "sequence": None,
    }),
    "structured arguments and results keep their types": ([tool_span(1, more={
        "gen_ai.tool.call.arguments": NESTED, "gen_ai.tool.call.result": [1, "two"],
    })], "", {"parameters": NESTED, "result": [1, "two"]}),
    "the tool's name will do": (
        [tool_span(1, more={"gen_ai.operation.name": ...})], "", {"tool_name": "rag_query"},
    ),
    "so will the span's name": (
        [tool_span(1, more={"gen_ai.tool.name": ...}, name="execute_tool rag_query")], "",
        {"tool_name": "rag_query"},
    ),
    "as some call it": ([tool_span(
        1, more={"gen_ai.tool.name": "", "gen_ai.tool.call.id": ...},
        name="running tool: rag_query",
    )], "", {"tool_name": "rag_query"}),
    "Pydantic AI's older spelling": ([span(1, {
        "gen_ai.tool.name": "search", "tool_arguments": '{"q": "x"}', "tool_response": "found",
    })], "", {"parameters": {"q": "x"}, "result": "found"}),
    "Google ADK's older spelling": ([span(1, {
        "gen_ai.tool.name": "search", "gcp.vertex.agent.tool_call_args": '{"q": "x"}',
        "gcp.vertex.agent.tool_response": "found",
    })], "", {"parameters": {"q": "x"}, "result": "found"}),
    "server, codes and the name in the span's name are MCP's": ([span(1, {
        **MCP, "server.address": "rag.example.com", "error.type": "-32602",
        "rpc.response.status_code": "-32602", "gen_ai.tool.call.arguments": {"topK": 50},
    }, name="tools/call rag_query", kind=3, status={"code": 2, "message": "Invalid params: topK"})],
        "helpdesk", {
            "tool_name": "rag_query", "server_name": "rag.example.com", "agent": "helpdesk",
            "error.code": "-32602", "error.message": "Invalid params: topK",
        },
    ),
    "an MCP tool's words are in the result": ([span(1, {
        **MCP, "gen_ai.tool.name": "rag_query", "gen_ai.tool.call.arguments": "{}",
        "gen_ai.tool.call.result": IS_ERROR, "error.type": "tool_error",
    }, status={"code": 2})], "", {
        "error.type": "tool_error", "error.message": "topK must be <= 10",
    }),
    "an MCP server's service is the tool's, and no agent": ([span(1, {
        **MCP, "gen_ai.tool.name": "x", "gen_ai.tool.call.arguments": {},
    }, kind=2)], "rag", {"server_name": "rag", "agent": "unknown"}),
    "of OpenInference `tool.parameters` is the schema": ([span(1, {
        **OPENINFERENCE, "tool.parameters": json.dumps(SCHEMA), "input.value": '{"query": "x"}',
        "input.mime_type": "application/json", "output.value": "three hits", "session.id": "s-9",
        "agent.name": "ada",
    })], "", {
        "tool_name": "t", "input_schema": SCHEMA, "parameters": {"query": "x"},
        "result": "three hits", "agent": "ada", "session_id": "s-9",
    }),
    **{f"input {text[:9]!r}": (
        [span(1, {**OPENINFERENCE, "input.value": text})], "", {"parameters": parameters},
    ) for text, parameters in (
        ("just words", {"input": "just words"}), ("[1, 2]", {"input": "[1, 2]"}), ("", {}),
        ("null", {}),
        (PYTHONS, {"city": "Sør", "days": None, "it's": [True, -1500.0, {}], "n": "'\nA"}),
    )},
    "MCP first, then GenAI, then OpenInference": ([span(1, {
        **MCP, **OPENINFERENCE, "fastmcp.server.name": "rag", "input.value": '{"q": 1}',
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search",
        "gen_ai.tool.call.result": "found",
    })], "", {
        "server_name": "rag", "tool_name": "search", "parameters": {"q": 1}, "result": "found",
    }),
    "of a call that is told twice the outer counts": ([
        span(2, {
            **MCP, "gen_ai.tool.name": "rag_query",
            "gen_ai.tool.call.arguments": {"topK": 5, "query": "reflection"},
        }, **below(3)),
        span(3, {}, **below(1)), tool_span(1),
    ], "", {"result": {"matches": 5}}),
    "agent and session are the nearest ancestor's that has any": ([
        tool_span(1, more=BARE, **below(2)),
        span(2, {"gen_ai.operation.name": "chat"}, **below(3)),
        span(3, {"gen_ai.agent.name": "ada"}, **below(4)),
        span(4, {"gen_ai.agent.name": "boss", "gen_ai.conversation.id": "s-7"}),
    ], "", {"agent": "ada", "session_id": "s-7"}),
    **{f"without any agent, of {service!r}": (
        [tool_span(1, more=BARE)], service, {"agent": agent, "session_id": TRACE},
    ) for service, agent in (
        ("helpdesk", "helpdesk"), ("unknown_service:python", "unknown"), ("", "unknown"),
    )},
    **{f"failure: {message} of {kind}": (
        [tool_span(1, more={"gen_ai.tool.call.result": ..., **more}, **fields)], "", {
            "outcome": "failure", "error.type": kind, "error.message": message,
            **({"error.stack": "Traceback ..."} if "events" in fields else {}),
        },
    ) for fields, more, kind, message in (
        ({"status": {"code": 2, "message": "ValueError: topK"},
          "events": [exception("ValueError", "topK must be <= 10")]},
         {}, "ValueError", "topK must be <= 10"),
        ({"status": {"code": 2, "message": "timed out"}}, {}, "Error", "timed out"),
        ({}, {"error.type": "timeout"}, "timeout", "timeout"),
        ({"events": [exception("requests.Timeout", "30 s")]}, {"error.type": "_OTHER"},
         "requests.Timeout", "30 s"),
        ({"status": {"code": 2}}, {"error.type": 500}, "500", "500"),
    )},
    "an exception that was dealt with is none": (
        [tool_span(1, events=[exception("KeyError", "caught")])], "", {"outcome": "success"},
    ),
    "nor is a status set to OK": (
        [tool_span(1, more={"error.type": "handled"}, status={"code": 1})], "",
        {"outcome": "success"},
    ),
    **{f"understood: {name} {value!r:.40}": (
        [tool_span(1, more={name: value})], "", {field: expected},
    ) for name, value, field, expected in (
        ("gen_ai.tool.call.result", '{"error": "no such page"}', "outcome", "success"),
        ("gen_ai.tool.call.result", b"caf\xc3\xa9", "result", "café"),
        ("gen_ai.tool.call.result", b"\xff\xfe", "result", "<bytes>"),
        ("gen_ai.tool.call.result", 3, "result", 3),
        ("gen_ai.tool.call.arguments", b'{"a": 1}', "parameters", {"a": 1}),
        ("gen_ai.conversation.id", 12, "session_id", "12"),
        ("gen_ai.agent.name", ["x"], "agent", "unknown"),
        ("gen_ai.agent.name", "a" * 300, "agent", "a" * 255 + "…"),
        ("gen_ai.tool.call.arguments", '{"a": NaN}', "parameters", {"a": "NaN"}),
        ("gen_ai.tool.call.arguments", {"a": float("nan")}, "parameters", {"a": "NaN"}),
        ("gen_ai.tool.name", "a\x00b", "tool_name", "a�b"),
    )},
}  # fmt: skip
"""Of spans, and of the service that sent them: what the one execution has."""


@pytest.mark.parametrize(("spans", "service", "expected"), READ.values(), ids=READ)
def test_a_span_becomes_an_execution(
    read: ReadRequest, spans: list[Json], service: str, expected: Json
) -> None:
    """As each convention says it, and where the meaning is plain, whatever its type."""
    execution = only(read(request(*spans, resource={"service.name": service})))
    assert {name: attrgetter(name)(execution) for name in expected} == expected


def test_a_live_session_is_kept_as_its_hash(read: ReadRequest) -> None:
    """Its id lets whoever has it in."""
    values = {**MCP, "mcp.session.id": "a-live-session", "gen_ai.tool.name": "x"}
    session_id = read(request(span(1, values)))[0].session_id
    assert "a-live-session" not in session_id
    assert len(session_id) == 32


ALIKE: Json = {"gen_ai.tool.call.id": ...}
NO_CALL: Json = {"gen_ai.operation.name": "chat", "gen_ai.tool.name": 5}
COUNTED: dict[str, tuple[list[Json], int]] = {
    "calls told once more together, as Google ADK does": ([span(1, {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "(merged tools)",
    })], 0),
    "a client that cannot see a tool's failure": (
        [span(1, {**MCP, "jsonrpc.request.id": "2"}, name="MCP send tools/call q", kind=3)], 0,
    ),
    "what our own SDK has recorded, and the same call within it": ([
        tool_span(1, more={"aftercall.execution_id": "0b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d"}),
        tool_span(2, more={"gen_ai.tool.call.id": "call-1"}, **below(1)),
    ], 0),
    "no call of a tool, whatever is wrong with it": ([
        span(1, NO_CALL, spanId=""), span(2, {"http.request.method": "GET"}, startTimeUnixNano="0"),
        span(3, {"openinference.span.kind": "AGENT", "input.value": "hello"}),
    ], 0),
    **{f"within another: {', '.join(difference)}": ([
        tool_span(1),
        tool_span(2, more={"gen_ai.tool.call.id": "call-1", **difference}, **below(1)),
    ], 2) for difference in (
        {"gen_ai.tool.name": "other"}, {"gen_ai.tool.call.id": "call-9"},
        {**ALIKE, "gen_ai.tool.call.arguments": '{"query": "deeper"}'},
    )},
    "an agent between, which may use the tool of its own name": ([
        tool_span(1, more=ALIKE), span(2, {"gen_ai.operation.name": "invoke_agent"}, **below(1)),
        tool_span(3, more=ALIKE, **below(2)),
    ], 2),
    "ancestors in a circle": ([
        tool_span(1, more=BARE, **below(2)), span(2, {}, **below(1)),
        tool_span(3, more={**BARE, "gen_ai.tool.name": "x"}, **below(3)),
    ], 0),
}  # fmt: skip


@pytest.mark.parametrize(("spans", "count"), COUNTED.values(), ids=COUNTED)
def test_each_call_counts_once(read: ReadRequest, spans: list[Json], count: int) -> None:
    """And nothing else counts."""
    assert len(read(request(*spans))) == count


def test_the_same_span_is_the_same_execution(read: ReadRequest) -> None:
    """Ids are made of trace and span id, so that a second export is a duplicate."""
    first, second = read(request(tool_span(1), tool_span(2)))
    again = only(read(request(tool_span(1))))
    assert again == first
    assert first.execution_id != second.execution_id


def test_a_client_that_cannot_see_a_tools_failure_is_no_witness(read: ReadRequest) -> None:
    """The MCP SDK's client span looks alike for both; only an error of the protocol shows in it."""
    refused = {**MCP, "error.type": "-32602", "rpc.response.status_code": "-32602"}
    status = {"code": 2, "message": "Invalid params"}
    execution, _ = read(
        request(span(1, refused, name="MCP send tools/call rag_query", status=status))
    )
    assert execution.tool_name == "rag_query"
    assert execution.error.code == "-32602"


@pytest.mark.parametrize(
    ("said", "parameters"),
    [('{"query": "x"}', {"query": "x"}), ('{"type": "pdf"}', {"type": "pdf"})],
)
def test_arguments_where_a_schema_is_due_are_read(
    read: ReadRequest, said: str, parameters: Json
) -> None:
    """Without `input.value` they are the call's, and no schema is made up."""
    values = {"openinference.span.kind": "tool", "tool.name": "t", "tool.parameters": said}
    [execution] = read(request(span(1, values)))
    assert (execution.parameters, execution.input_schema) == (parameters, None)
    called = {**values, "tool_call.function.arguments": '{"city": "Rome"}'}
    [execution] = read(request(span(1, called)))
    assert execution.parameters == {"city": "Rome"}


@pytest.mark.parametrize(
    "said", ['{"type": "object"}', '{"city": {"type": "string"}}', '{"properties": {}}', "{", "x"]
)
def test_types_in_tool_parameters_are_no_arguments(read: ReadRequest, said: str) -> None:
    """Nor a schema, where they are none of an object."""
    values = {"openinference.span.kind": "TOOL", "tool.name": "t", "tool.parameters": said}
    execution, note = read(request(span(1, values)))
    assert (execution.parameters, execution.input_schema) == ({}, None)
    assert isinstance(note, Noted)


def test_arguments_are_compared_without_reading_them_for_every_span_below(
    read: ReadRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4 MiB of arguments above 40,000 small spans would be half an hour of reading."""
    read_texts: list[object] = []

    def counted(value: object, *, named: bool) -> dict[str, Any]:
        read_texts.append(value)
        return span_arguments(value, named=named)

    monkeypatch.setattr("ingest.formats.otlp.reading.span_arguments", counted)
    bare = {"gen_ai.tool.call.id": ...}
    outer = tool_span(1, more={**bare, "gen_ai.tool.call.arguments": '{"all": [1]}'})
    inner = [
        tool_span(n, more={**bare, "gen_ai.tool.call.arguments": f'{{"n": {n}}}'},
                  parentSpanId=f"{1:016x}")
        for n in range(2, 102)
    ]  # fmt: skip
    assert len(read(request(outer, *inner))) == 101
    assert len(read_texts) == 2 * 101  # for the execution, and to compare


def test_missing_arguments_are_noted_once(read: ReadRequest) -> None:
    """The calls are recorded, and the note says how to have their content sent."""
    bare = {"gen_ai.tool.call.arguments": ...}
    *executions, note = read(
        request(tool_span(1, more=bare), tool_span(2, more=bare), tool_span(3))
    )
    assert [each.parameters_known for each in executions] == [False, False, True]
    assert note.message.startswith("2 of 3 calls")
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in note.message


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        *(({"more": {name: value}}, words) for name, value, words in (
            ("gen_ai.tool.name", 42, "gen_ai.tool.name is a number; it must be text"),
            ("gen_ai.tool.name", b"\xff", "gen_ai.tool.name is bytes"),
            ("gen_ai.tool.name", ..., "it names no tool; set gen_ai.tool.name"),
            ("gen_ai.tool.name", "x" * 257, "longer than 256 characters"),
            ("gen_ai.tool.call.arguments", 7, "the arguments are a number"),
            ("gen_ai.tool.call.arguments", True, "the arguments are a boolean"),
            ("gen_ai.tool.call.arguments", [1], "the arguments are a list"),
            ("gen_ai.tool.call.arguments", b"\xff\xfe", "the arguments are bytes"),
            ("gen_ai.tool.call.arguments", '{"a": [' + "{}," * 10**5 + "1]}", "more than 100,000"),
            ("gen_ai.tool.call.arguments", '{"a": "' + "x" * 2**22 + '"}', "4,194,304 characters"),
        )),
        ({"startTimeUnixNano": "0"}, "missing or 0"),
        ({"startTimeUnixNano": str(2**63)}, "after the year 2199; check the sender's clock"),
        ({"spanId": "0" * 16}, "span id is missing, all zeros"),
        ({"traceId": "0" * 32}, "trace id or span id is missing, all zeros"),
        ({"spanId": "ab"}, "of another length"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_span_refuses_that_span_alone(
    read: ReadRequest, fields: Json, words: str
) -> None:
    """Types, times, ids: with its place and the cure; its neighbours are read."""
    bad = tool_span(
        2, **{key: dict(each) if key == "more" else each for key, each in fields.items()}
    )
    before, reason, after = read(request(tool_span(1), bad, tool_span(3)))
    assert [type(before), type(after)] == [Execution, Execution]
    assert words in reason.message


def test_arguments_that_are_loose_json_are_their_object(read: ReadRequest) -> None:
    """As the agent's framework took them."""
    span = tool_span(1, more={"gen_ai.tool.call.arguments": "{query: 'x', top_k: 5,}"})
    assert only(read(request(span))).parameters == {"query": "x", "top_k": 5}


def test_a_call_whose_arguments_were_cut_off_counts(read: ReadRequest) -> None:
    """Exporters cut attributes of calls that were whole: the outcome is the span's own."""
    span = tool_span(1, more={"gen_ai.tool.call.arguments": '{"query": "cut o'})
    execution, note = read(request(span))
    assert (execution.parameters, execution.parameters_known) == ({}, False)
    assert (execution.outcome, execution.arguments_text) == ("success", '{"query": "cut o')
    assert "1 of 1 calls begin as JSON objects" in note.message
    assert "raise OTEL_" in note.message


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
