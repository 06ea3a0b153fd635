"""Logs of MCP, read into executions."""

import json
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ingest.transcripts import HELLO, call, of_log, result, rpc, texts

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def test_a_tap_on_stdio_is_read() -> None:
    """Raw messages: names from `initialize`, schemas from `tools/list`, calls matched by id.

    A request of the server with the id of an open call takes nothing of the call.
    """
    executions, rest = of_log(
        *HELLO,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        rpc(1, "tools/list"),
        result(1, {"tools": [{"name": "forecast", "inputSchema": SCHEMA}]}),
        call(2, "forecast", {"city": "Rome"}, progressToken=7),
        rpc(2, "sampling/createMessage"),
        result(2, {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}),
        call("2", "forecast", {"city": "Oslo"}),
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 7}},
        result("2", texts("snow")),
        result(2, texts("sun", structuredContent={"sky": "sun", "status": "success_no_parse"})),
    )
    assert not rest
    assert [(e.parameters["city"], e.result) for e in executions] == [
        ("Oslo", "snow"),
        ("Rome", {"sky": "sun", "status": "success_no_parse"}),
    ]
    first, second = executions
    assert (first.agent, first.server_name, first.tool_name) == ("inspector", "weather", "forecast")
    assert first.input_schema == SCHEMA
    assert (first.sequence, second.sequence) == (0, 1)
    assert first.session_id == second.session_id
    assert second.result_status == "success_no_parse"


def test_is_error_and_json_rpc_errors_are_failures() -> None:
    """With the tool's own words, the code, and the typed error where it is one."""
    typed = {"outcome": "error", "error": {"type": "low_utility", "message": "meagre"}}
    executions, rest = of_log(
        call(1, "t", {}),
        result(1, texts("no such city", isError=True)),
        call(2, "t", {}),
        {"jsonrpc": "2.0", "id": 2, "error": {"code": -32602, "message": "bad", "data": {"a": 1}}},
        call(3, "t", {}),
        result(3, texts("", structuredContent=typed, isError=True)),
        call(4, "t", {}),
        result(4, texts("Error: only a text", isError=False)),
        call(5, "t", {}),
        {"jsonrpc": "2.0", "id": 5, "error": "gone"},
    )
    assert not rest
    told = [e.error and (e.error.type, e.error.message, e.error.code) for e in executions]
    assert told == [
        ("ToolError", "no such city", None), ("McpError", "bad", "-32602"),
        ("low_utility", "meagre", None), None, ("ToolError", "gone", None),
    ]  # fmt: skip
    assert executions[1].error.details == {"a": 1}


def test_the_history_of_inspector_1_is_read() -> None:
    """Pairs whose values are JSON text, with the bare result, or `{"error": text}`."""

    def pair(request: object, response: object | None) -> dict[str, Any]:
        told = {"request": json.dumps(request)}
        return told if response is None else told | {"response": json.dumps(response)}

    ask = {"method": "tools/call", "params": {"name": "t", "arguments": {"a": 1}}}
    executions, rest = of_log(
        [
            pair({"method": "initialize", "params": {}}, {"serverInfo": {"name": "weather"}}),
            pair({"method": "tools/list", "params": {}}, {"tools": []}),
            pair(ask, texts("fine")),
            pair(ask, texts("fine")),
            pair(ask, {"error": "MCP error -32602: bad"}),
            pair(ask, None),
        ]
    )
    assert [e.outcome for e in executions] == ["success", "success", "failure"]
    assert len({e.execution_id for e in executions}) == 3
    assert {e.server_name for e in executions} == {"weather"}
    assert rest == [("line 1[5]", rest[0][1])]
    assert "no answer" in rest[0][1]


def test_the_export_of_inspector_2_is_read() -> None:
    """Entries with the response beside the message, its time and duration."""
    entry = {"id": "x", "timestamp": "2026-02-20T14:30:00.000Z", "origin": "client"}
    asked, told = entry | {"direction": "request"}, entry | {"direction": "notification"}
    sampled = result(0, {"role": "assistant", "content": {"type": "text"}})
    sampling = {"message": rpc(0, "sampling/createMessage"), "response": sampled}
    done = {"message": call(1, "t", {"a": 1}), "response": result(1, texts("fine")), "duration": 12}
    executions, rest = of_log(
        [
            asked | {"message": HELLO[0], "response": HELLO[1]},
            asked | done,
            asked | sampling | {"origin": "server"},
            told | {"message": {"jsonrpc": "2.0", "method": "n"}},
        ]
    )
    assert not rest
    assert [(e.duration_ms, e.agent, e.server_name) for e in executions] == [
        (12.0, "inspector", "weather")
    ]
    assert executions[0].timestamp.isoformat() == "2026-02-20T14:30:00+00:00"


def test_the_log_of_a_desktop_client_is_read() -> None:
    """Lines of text with the message in them, in either order of labels, between other lines."""
    ask = json.dumps(call(2, "hello", {"name": "Tiago"}))
    reply = json.dumps(result(2, texts("Hello, Tiago")))
    executions, rest = of_log(
        "      'C:\\\\Program Files\\\\nodejs',",
        "[38956] Using transport strategy: http-first",
        "2026-02-20T14:30:00.000Z [go] [info] Server started { metadata: undefined }",
        f"2026-02-20T14:30:00.100Z [go] [info] Message from client: {ask} {{ metadata: {{}} }}",
        f"2026-02-20T14:30:00.350Z [info] [go] Message from server: {reply}",
        '2026-02-20T14:30:01.000Z [go] [info] Message from client: {"method":"tools/c',
        "2026-02-20T14:30:02.000Z [go] [info] Message from server: ",
    )
    (read,) = executions
    assert (read.server_name, read.result, round(read.duration_ms)) == ("go", "Hello, Tiago", 250)
    assert read.timestamp.isoformat() == "2026-02-20T14:30:00.100000+00:00"
    assert [where for where, _ in rest] == ["line 6", "line 7"]


def test_calls_without_an_answer_are_told_of() -> None:
    """At the end, at a new session, when their id is used again, and when they are cancelled."""
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}}
    executions, rest = of_log(
        call(1, "t", {}),
        call(1, "t", {}),
        *HELLO,
        call(3, "t", {}),
        cancelled,
        call(4, "t", {}),
        result(9, texts("whose?")),
        result(10, {"prompts": []}),
        call(5, "t", {}),
        result(5, {"task": {"taskId": "x"}}),
        call(6, "", {}),
        result(6, texts("x")),
        call(7, "t", [1]),
        result(7, texts("x")),
    )
    assert not executions
    assert [(where, why.split(",")[0]) for where, why in rest] == [
        *((f"line {line}", "the call has no answer in the log") for line in (1, 2, 5)),
        (
            "line 8",
            "answers a call that is not in the log; does its beginning lie in an older file?",
        ),
        ("line 10", "is answered by a question or a task"),
        ("line 12", "the call names no tool"),
        ("line 14", rest[6][1].split(",")[0]),
        ("line 7", "the call has no answer in the log"),
    ]


def test_a_session_begins_with_initialize() -> None:
    """Ids are used again, and the order begins anew; schemas of the former server are forgotten."""
    tools = rpc(1, "tools/list"), result(1, {"tools": [{"name": "t", "inputSchema": SCHEMA}]})
    one = (call(2, "t", {"a": 1}), result(2, texts("x")))
    two = (call(2, "t", {"a": 2}), result(2, texts("y")))
    executions, rest = of_log(*HELLO, *tools, *one, *HELLO, *two)
    assert not rest
    assert [e.sequence for e in executions] == [0, 0]
    assert executions[0].session_id != executions[1].session_id
    assert [e.input_schema is None for e in executions] == [False, True]


def test_several_servers_in_one_log_are_kept_apart() -> None:
    """By the name that the log gives with each message."""

    def line(server: str, side: str, message: object) -> str:
        return f"[{server}] [info] Message from {side}: {json.dumps(message)}"

    executions, rest = of_log(
        line("a", "client", call(1, "t", {})),
        line("b", "client", call(1, "t", {})),
        line("b", "server", result(1, texts("b"))),
        line("a", "server", result(1, texts("a"))),
    )
    assert not rest
    assert [(e.server_name, e.result) for e in executions] == [("b", "b"), ("a", "a")]


def test_a_request_may_name_its_caller() -> None:
    """By our own keys, and by the protocol's."""
    ours = {"aftercall/agent": "ada", "aftercall/session": "s", "aftercall/context": "the task"}
    theirs = {"io.modelcontextprotocol/clientInfo": {"name": "ben", "version": "1"}}
    executions, _ = of_log(
        call(1, "t", {}, **ours),
        result(1, texts("x")),
        call(2, "t", {}, **theirs),
        result(2, texts("x")),
    )
    assert (executions[0].agent, executions[0].session_id, executions[0].context) == (
        "ada",
        "s",
        "the task",
    )
    assert executions[1].agent == "ben"


def test_a_log_that_has_grown_gives_the_same_executions_first() -> None:
    """So importing it again records only what is new."""
    begun = (*HELLO, call(1, "t", {"a": 1}), result(1, texts("x")))
    grown = (*begun, call(2, "t", {"a": 2}), result(2, texts("y")))
    assert of_log(*grown)[0][:1] == of_log(*begun)[0]
    assert len({e.execution_id for e in of_log(*grown)[0]}) == 2


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                re.findall(
                    r"\w+",
                    "jsonrpc id method params result error message request response content "
                    "isError name arguments tools inputSchema timestamp direction serverInfo "
                    "clientInfo _meta",
                )
            ),
            inner
            | st.sampled_from(
                ["2.0", "tools/call", "initialize", "tools/list", '{"jsonrpc": "2.0"}']
            ),
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(entries=st.lists(_JSON, max_size=6))
@settings(max_examples=300)
def test_any_entries_are_read_or_told_of(entries: list[Any]) -> None:
    """Whatever a log holds, nothing is raised, and it reads the same again."""
    assert str(of_log(*entries)) == str(of_log(*entries))


@given(junk=st.lists(st.tuples(st.integers(0, 8), _JSON | st.text()), max_size=4))
def test_junk_between_messages_loses_nothing(junk: list[tuple[int, Any]]) -> None:
    """What is between the messages of a session, as far as it is no message itself."""
    entries: list[Any] = []
    for number in range(4):
        entries += [call(number, "t", {"n": number}), result(number, texts("x"))]
    for at, value in junk:
        if '"jsonrpc' not in json.dumps(value) and "request" not in json.dumps(value):
            entries.insert(at, value)
    assert {e.parameters["n"] for e in of_log(*entries)[0]} == {0, 1, 2, 3}


def test_arguments_may_be_a_text() -> None:
    """Loose JSON is its object; a text that is cut off is kept, and the server's refusal counts."""
    executions, _ = of_log(
        *HELLO,
        call(1, "t", "{'city': 'Rome',}"),
        result(1, texts("sun")),
        call(2, "t", '{"city": "Ro'),
        {"jsonrpc": "2.0", "id": 2, "error": {"code": -32602, "message": "bad"}},
    )
    read, cut_off = executions
    assert (read.parameters, read.arguments_text) == ({"city": "Rome"}, "{'city': 'Rome',}")
    assert (cut_off.parameters_known, cut_off.arguments_text) == (False, '{"city": "Ro')
    assert (read.outcome, cut_off.outcome) == ("success", "failure")
