"""Small files in the forms of agents, frameworks and tracers; made up, in their published shapes.

Each holds the same two calls: `lookup` failed with `{"city": "Os"}` and succeeded with
`{"city": "Oslo"}`, unless its form has only certain tools.
"""

import json
from typing import Any

BAD, GOOD = {"city": "Os"}, {"city": "Oslo"}
BAD_TEXT, GOOD_TEXT = json.dumps(BAD), json.dumps(GOOD)
SAID = "unknown city"
T = "2026-02-20T14:30:0{}Z"


def rollout(*payloads: dict[str, Any]) -> list[Any]:
    meta = {"type": "session_meta", "payload": {"id": "s1", "cwd": "/w"}, "timestamp": T.format(0)}
    return [
        meta,
        *(
            {"timestamp": T.format(number + 1), "type": "response_item", "payload": payload}
            for number, payload in enumerate(payloads)
        ),
    ]


def tool_span(number: int, **more: Any) -> dict[str, Any]:
    return {
        "context": {"trace_id": "s1", "span_id": f"span{number}"}, "start_time": T.format(number),
        "end_time": T.format(number + 1), **more,
    }  # fmt: skip


def harmony(call: str, said: str) -> str:
    return (
        "<|start|>assistant<|channel|>commentary to=functions.lookup <|constrain|>json<|message|>"
        f"{call}<|call|><|start|>functions.lookup to=assistant<|channel|>commentary<|message|>"
        f"{said}<|end|>"
    )


def messages(kind: str) -> list[Any]:
    if kind == "openai":
        return [
            message for key, arguments, said in (
                ("c1", BAD_TEXT, json.dumps({"error": SAID})), ("c2", GOOD_TEXT, "sun"))
            for message in (
                {"role": "assistant", "content": None, "tool_calls": [{"id": key, "type":
                 "function", "function": {"name": "lookup", "arguments": arguments}}]},
                {"role": "tool", "tool_call_id": key, "content": said})
        ]  # fmt: skip
    return [
        message for key, arguments, said, status in (
            ("c1", BAD, SAID, "error"), ("c2", GOOD, "sun", "success"))
        for message in (
            {"type": "ai", "content": "", "tool_calls": [
                {"name": "lookup", "args": arguments, "id": key, "type": "tool_call"}],
             "additional_kwargs": {"tool_calls": [{"id": key, "type": "function", "function":
                 {"name": "lookup", "arguments": json.dumps(arguments)}}]}},
            {"type": "tool", "name": "lookup", "tool_call_id": key, "content": said,
             "status": status})
    ]  # fmt: skip


LINES: dict[str, list[Any]] = {
    "codex rollout": rollout(
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "?"}]},
        {"type": "function_call", "name": "lookup", "arguments": BAD_TEXT, "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1",
         "output": json.dumps({"output": SAID, "metadata": {"exit_code": 1}})},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "name": "lookup", "arguments": GOOD_TEXT, "call_id": "c2"},
        {"type": "function_call_output", "call_id": "c2", "output": "sun"},
    ),
    "codex rollout, codes of exit in the text": rollout(
        {"type": "function_call", "name": "lookup", "arguments": BAD_TEXT, "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output":
         f"Chunk ID: a\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\n{SAID}"},
        {"type": "function_call", "name": "lookup", "arguments": GOOD_TEXT, "call_id": "c2"},
        {"type": "function_call_output", "call_id": "c2", "output":
         "Exit code: 0\nWall time: 0.1 seconds\nOutput:\nsun"},
    ),
    "codex rollout, mcp": rollout(
        {"type": "function_call", "name": "geo__lookup", "arguments": BAD_TEXT, "call_id": "c1"},
        {"type": "mcp_tool_call_end", "call_id": "c1", "result": {"Ok": {"isError": True}},
         "invocation": {"server": "geo", "tool": "lookup", "arguments": BAD}},
        {"type": "function_call_output", "call_id": "c1",
         "output": {"content": SAID, "success": False}},
        {"type": "mcp_tool_call_end", "call_id": "c2",
         "result": {"Ok": {"content": [{"type": "text", "text": "sun"}], "isError": False}},
         "invocation": {"server": "geo", "tool": "lookup", "arguments": GOOD}},
    ),
    "codex exec": [
        {"type": "thread.started", "thread_id": "s1"},
        {"type": "item.started", "item": {"id": "i1", "type": "mcp_tool_call", "server": "geo",
         "tool": "lookup", "status": "in_progress"}},
        {"type": "item.completed", "item": {"id": "i1", "type": "mcp_tool_call", "server": "geo",
         "tool": "lookup", "arguments": BAD, "result": None, "error": {"message": SAID},
         "status": "failed"}},
        {"type": "item.completed", "item": {"id": "i2", "type": "mcp_tool_call", "server": "geo",
         "tool": "lookup", "arguments": GOOD, "error": None, "status": "completed",
         "result": {"content": [{"type": "text", "text": "sun"}]}}},
        {"type": "turn.completed", "usage": {"input_tokens": 1}},
    ],
    "codex exec, commands": [
        {"type": "thread.started", "thread_id": "s1"},
        {"type": "item.completed", "item": {"id": "i1", "type": "command_execution",
         "command": "lss", "aggregated_output": SAID, "exit_code": 127, "status": "failed"}},
        {"type": "item.completed", "item": {"id": "i2", "type": "command_execution",
         "command": "ls", "aggregated_output": "a", "exit_code": 0, "status": "completed"}},
    ],
    "claude stream-json": [
        {"type": "system", "subtype": "init", "session_id": "s1", "tools": ["lookup"]},
        *({"type": role, "session_id": "s1", "parent_tool_use_id": None,
           "message": {"role": role, "content": [block]}} for role, block in (
            ("assistant", {"type": "tool_use", "id": "t1", "name": "lookup", "input": BAD}),
            ("user", {"type": "tool_result", "tool_use_id": "t1", "content": SAID,
                      "is_error": True}),
            ("assistant", {"type": "tool_use", "id": "t2", "name": "lookup", "input": GOOD}),
            ("user", {"type": "tool_result", "tool_use_id": "t2", "content": "sun"}),
        )),
        {"type": "result", "subtype": "success", "session_id": "s1", "result": "done"},
    ],
    "cursor stream-json": [
        {"type": "system", "subtype": "init", "session_id": "s1", "model": "m"},
        *({"type": "tool_call", "subtype": subtype, "call_id": key, "session_id": "s1",
           "tool_call": {"lookupToolCall": {"args": arguments, **result}}}
          for subtype, key, arguments, result in (
            ("started", "c1", BAD, {}), ("completed", "c1", BAD, {"result": {"error": {
                "errorMessage": SAID}}}),
            ("started", "c2", GOOD, {}), ("completed", "c2", GOOD, {"result": {"success": {
                "content": "sun"}}}),
        )),
    ],
    "gemini stream-json": [
        {"type": "init", "session_id": "s1", "model": "gemini"},
        {"type": "tool_use", "tool_name": "lookup", "tool_id": "t1", "parameters": BAD},
        {"type": "tool_result", "tool_id": "t1", "status": "error", "error": {"type": "x",
         "message": SAID}},
        {"type": "tool_use", "tool_name": "lookup", "tool_id": "t2", "parameters": GOOD},
        {"type": "tool_result", "tool_id": "t2", "status": "success", "output": "sun"},
    ],
    "opencode run": [
        {"type": "tool_use", "sessionID": "s1", "part": {"type": "tool", "callID": f"c{number}",
         "tool": "lookup", "state": state}} for number, state in enumerate((
            {"status": "error", "input": BAD, "error": SAID},
            {"status": "completed", "input": GOOD, "output": "sun"},
        ))
    ],
    "copilot cli": [
        {"type": "session.start", "data": {"sessionId": "s1"}},
        *({"type": f"tool.execution_{kind}", "data": {"toolCallId": key, **data}}
          for kind, key, data in (
            ("start", "c1", {"toolName": "lookup", "arguments": BAD}),
            ("complete", "c1", {"success": False, "error": {"message": SAID}}),
            ("start", "c2", {"toolName": "lookup", "arguments": GOOD}),
            ("complete", "c2", {"success": True, "result": {"content": "sun"}}),
        )),
    ],
    "realtime": [
        {"type": "session.created", "event_id": "e1", "session": {"id": "s1"}},
        *(event for key, arguments, said in (
            ("c1", BAD_TEXT, json.dumps({"error": SAID})), ("c2", GOOD_TEXT, "sun")
          ) for event in (
            {"type": "response.output_item.done", "event_id": "e", "item": {
                "type": "function_call", "call_id": key, "name": "lookup",
                "arguments": arguments}},
            {"type": "response.done", "event_id": "e", "response": {"output": [{
                "type": "function_call", "call_id": key, "name": "lookup",
                "arguments": arguments}]}},
            {"type": "conversation.item.create", "event_id": "e", "item": {
                "type": "function_call_output", "call_id": key, "output": said}},
            {"type": "conversation.item.created", "event_id": "e", "item": {
                "type": "function_call_output", "call_id": key, "output": said}},
        )),
    ],
    "autogen": [
        {"type": "ToolCallRequestEvent", "source": "assistant",
         "content": [{"id": "c1", "name": "lookup", "arguments": BAD_TEXT}]},
        {"type": "ToolCallExecutionEvent", "source": "assistant",
         "content": [{"call_id": "c1", "name": "lookup", "content": SAID, "is_error": True}]},
        {"type": "ToolCallRequestEvent", "source": "assistant",
         "content": [{"id": "c2", "name": "lookup", "arguments": GOOD_TEXT}]},
        {"type": "ToolCallExecutionEvent", "source": "assistant",
         "content": [{"call_id": "c2", "name": "lookup", "content": "sun", "is_error": False}]},
    ],
    "langgraph updates": [
        {node: {"messages": [message]}}
        for message in messages("langchain")
        for node in ["tools" if message["type"] == "tool" else "model"]
    ],
    "agents sdk": [
        {"role": "user", "content": "?"},
        *(item for key, arguments, said in (
            ("c1", BAD_TEXT, "An error occurred while running the tool. Please try again. "
                             f"Error: {SAID}"), ("c2", GOOD_TEXT, "sun")) for item in (
            {"type": "function_call", "call_id": key, "name": "lookup", "arguments": arguments},
            {"type": "function_call_output", "call_id": key, "output": said})),
    ],
    "spans of the console": [
        tool_span(1, name="execute_tool x", status={"status_code": "ERROR", "description": SAID},
                  attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup",
                              "gen_ai.tool.call.arguments": BAD_TEXT}),
        tool_span(2, name="execute_tool lookup", status={"status_code": "UNSET"},
                  attributes={"gen_ai.operation.name": "execute_tool",
                              "gen_ai.tool.call.arguments": GOOD_TEXT,
                              "gen_ai.tool.call.result": "sun"}),
    ],
    "braintrust": [
        {"span_id": f"p{number}", "root_span_id": "s1", "input": arguments, "output": output,
         "span_attributes": {"name": "lookup", "type": "tool"}, "error": error,
         "created": T.format(number)}
        for number, (arguments, output, error) in enumerate(
            ((BAD, None, f"ValueError: {SAID}"), (GOOD, "sun", None)))
    ],
    "harmony": [harmony(BAD_TEXT, json.dumps({"error": SAID})) + harmony(GOOD_TEXT, '"sun"')],
}  # fmt: skip
"""A value a line."""


def ui_messages(*parts: dict[str, Any]) -> list[Any]:
    return [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "?"}]},
            {"id": "m2", "role": "assistant", "parts": list(parts)}]  # fmt: skip


UNDER_KEYS: dict[str, Any] = {
    f"messages under {key}": {key: messages("openai")}
    for key in ("traj", "history", "conversations", "chat_history")
}
DOCUMENTS: dict[str, Any] = {
    "langchain model_dump": {"messages": messages("langchain")},
    "langgraph state history": [
        {"values": {"messages": messages("langchain")[:end]},
         "config": {"configurable": {"thread_id": "s1"}}} for end in (4, 2)
    ],
    **UNDER_KEYS,
    "a list of samples": {"eval": {"model": "m"}, "samples": [
        {"id": 1, "messages": messages("openai")}]},
    "lists of conversations": {"rows": [{"conversation": messages("openai")}]},
    "gemini cli session": {"sessionId": "s1", "projectHash": "x", "messages": [
        {"id": "m0", "type": "user", "content": "?", "timestamp": T.format(0)},
        {"id": "m1", "type": "gemini", "content": "", "timestamp": T.format(1), "toolCalls": [
            {"id": "c1", "name": "lookup", "args": BAD, "status": "error", "resultDisplay": SAID,
             "result": [{"functionResponse": {"id": "c1", "name": "lookup",
                                              "response": {"error": SAID}}}]},
            {"id": "c2", "name": "lookup", "args": GOOD, "status": "success",
             "result": [{"functionResponse": {"id": "c2", "name": "lookup",
                                              "response": {"output": "sun"}}}]}]}]},
    "adk": {"id": "s1", "appName": "app", "events": [
        {"author": "helper", "content": {"role": role, "parts": [part]}} for role, part in (
            ("model", {"functionCall": {"id": "c1", "name": "lookup", "args": BAD}}),
            ("user", {"functionResponse": {"id": "c1", "name": "lookup",
                                           "response": {"error": SAID}}}),
            ("model", {"functionCall": {"id": "c2", "name": "lookup", "args": GOOD}}),
            ("user", {"functionResponse": {"id": "c2", "name": "lookup",
                                           "response": {"result": "sun"}}}))]},
    "gemini contents, parallel": {"contents": [
        {"role": "user", "parts": [{"text": "?"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "lookup", "args": BAD}},
                                    {"functionCall": {"name": "lookup", "args": GOOD}}]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "lookup", "response": {"error": SAID}}},
            {"functionResponse": {"name": "lookup", "response": {"result": "sun"}}}]}]},
    "vercel 5": ui_messages(
        {"type": "tool-lookup", "toolCallId": "c1", "state": "output-error", "input": BAD,
         "errorText": SAID},
        {"type": "dynamic-tool", "toolName": "lookup", "toolCallId": "c2",
         "state": "output-available", "input": GOOD, "output": "sun"}),
    "vercel 4": ui_messages(
        {"type": "tool-invocation", "toolInvocation": {"state": "result", "toolCallId": "c1",
         "toolName": "lookup", "args": BAD, "result": {"error": SAID}}},
        {"type": "tool-invocation", "toolInvocation": {"state": "result", "toolCallId": "c2",
         "toolName": "lookup", "args": GOOD, "result": "sun"}}),
    "vercel model messages": [
        {"role": "assistant", "content": [
            {"type": "tool-call", "toolCallId": "c1", "toolName": "lookup", "input": BAD},
            {"type": "tool-call", "toolCallId": "c2", "toolName": "lookup", "input": GOOD}]},
        {"role": "tool", "content": [
            {"type": "tool-result", "toolCallId": "c1", "toolName": "lookup",
             "output": {"type": "error-text", "value": SAID}},
            {"type": "tool-result", "toolCallId": "c2", "toolName": "lookup",
             "output": {"type": "text", "value": "sun"}}]}],
    "openhands 1": [
        {"kind": "ActionEvent", "source": "agent", "id": "e1", "tool_name": "lookup",
         "tool_call_id": "c1", "action": {"kind": "Lookup", **BAD},
         "tool_call": {"id": "c1", "name": "lookup", "arguments": BAD_TEXT}},
        {"kind": "AgentErrorEvent", "source": "agent", "id": "e2", "tool_name": "lookup",
         "tool_call_id": "c1", "error": SAID},
        {"kind": "ActionEvent", "source": "agent", "id": "e3", "tool_name": "lookup",
         "tool_call_id": "c2", "action": {"kind": "Lookup", **GOOD},
         "tool_call": {"id": "c2", "name": "lookup", "arguments": GOOD_TEXT}},
        {"kind": "ObservationEvent", "source": "environment", "id": "e4", "tool_name": "lookup",
         "tool_call_id": "c2", "observation": {"content": [{"type": "text", "text": "sun"}],
                                               "is_error": False}}],
    "atif": {"schema_version": "ATIF-v1.4", "session_id": "s1", "agent": {"name": "helper"},
             "steps": [
        {"step_id": 1, "source": "user", "message": "?"},
        {"step_id": 2, "timestamp": T.format(2), "source": "agent", "message": "", "tool_calls": [
            {"tool_call_id": "c1", "function_name": "lookup", "arguments": BAD},
            {"tool_call_id": "c2", "function_name": "lookup", "arguments": GOOD}],
         "observation": {"results": [
            {"source_call_id": "c1", "content": json.dumps({"error": SAID})},
            {"source_call_id": "c2", "content": "sun"}]}}]},
    "smolagents": {"steps": [
        {"step_number": number, "tool_calls": [{"id": f"c{number}", "type": "function",
         "function": {"name": "lookup", "arguments": arguments}}], **said}
        for number, (arguments, said) in enumerate((
            (BAD, {"observations": None, "error": {"type": "AgentToolExecutionError",
                                                   "message": SAID}}),
            (GOOD, {"observations": "sun", "error": None})))]},
    "smolagents, a step that failed": {"steps": [
        {"step_number": 1, "tool_calls": [], "error": {"type": "AgentToolExecutionError",
         "message": SAID}, "observations": None, "model_input_messages": messages("openai"),
         "model_output_message": {"role": "assistant", "content": "", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": BAD}}]}},
        {"step_number": 2, "error": None, "observations": "sun", "tool_calls": [
            {"id": "c2", "type": "function", "function": {"name": "lookup", "arguments": GOOD}}],
         "model_output_message": {"role": "assistant", "content": "", "tool_calls": [
            {"id": "c2", "type": "function", "function": {"name": "lookup",
                                                          "arguments": GOOD}}]}}]},
    "pydantic ai 2": [
        {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "lookup",
                                        "args": BAD, "tool_call_id": "c1"}]},
        {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "lookup",
                                       "tool_call_id": "c1", "content": SAID,
                                       "outcome": "retried"}]},
        {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "lookup",
                                        "args": GOOD_TEXT, "tool_call_id": "c2"}]},
        {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "lookup",
                                       "tool_call_id": "c2", "content": "sun",
                                       "outcome": "success"}]}],
    "cursor chat": {"composerId": "s1", "conversation": [
        {"type": 1, "text": "?"},
        {"type": 2, "toolFormerData": {"name": "lookup", "toolCallId": "c1", "status": "error",
         "rawArgs": BAD_TEXT, "error": SAID}},
        {"type": 2, "toolFormerData": {"name": "lookup", "toolCallId": "c2",
         "status": "completed", "rawArgs": GOOD_TEXT, "result": '{"contents": "sun"}'}}]},
    "cline": [
        {"role": "user", "content": [{"type": "text", "text": "<task>\n?\n</task>"}]},
        {"role": "assistant", "content": [{"type": "text", "text":
            "<use_mcp_tool><server_name>geo</server_name><tool_name>lookup</tool_name>"
            f"<arguments>{BAD_TEXT}</arguments></use_mcp_tool>"}]},
        {"role": "user", "content": [
            {"type": "text", "text": "[use_mcp_tool for 'geo'] Result:"},
            {"type": "text", "text": f"The tool execution failed with\n{SAID}"}]},
        {"role": "assistant", "content": [{"type": "text", "text":
            "<use_mcp_tool><server_name>geo</server_name><tool_name>lookup</tool_name>"
            f"<arguments>{GOOD_TEXT}</arguments></use_mcp_tool>"}]},
        {"role": "user", "content": [
            {"type": "text", "text": "[use_mcp_tool for 'geo'] Result:"},
            {"type": "text", "text": "sun"}]}],
    "run steps": {"object": "list", "data": [{"id": "step1", "object": "thread.run.step",
        "thread_id": "s1", "step_details": {"type": "tool_calls", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": BAD_TEXT,
             "output": json.dumps({"error": SAID})}},
            {"id": "c2", "type": "function", "function": {"name": "lookup",
             "arguments": GOOD_TEXT, "output": "sun"}}]}}]},
    "calls of MCP in a response": {"id": "s1", "object": "response", "output": [
        {"type": "mcp_call", "id": "m1", "server_label": "geo", "name": "lookup",
         "arguments": BAD_TEXT, "output": None, "error": SAID},
        {"type": "mcp_call", "id": "m2", "server_label": "geo", "name": "lookup",
         "arguments": GOOD_TEXT, "output": "sun", "error": None}]},
    "functions of old": {"messages": [
        {"role": "assistant", "content": None,
         "function_call": {"name": "lookup", "arguments": BAD_TEXT}},
        {"role": "function", "name": "lookup", "content": json.dumps({"error": SAID})},
        {"role": "assistant", "content": None,
         "function_call": {"name": "lookup", "arguments": GOOD_TEXT}},
        {"role": "function", "name": "lookup", "content": "sun"}]},
    "phoenix": [
        tool_span(1, name="lookup", span_kind="TOOL", status_code="ERROR", status_message=SAID,
                  attributes={"input": {"value": BAD_TEXT}, "tool": {"name": "lookup"}}),
        tool_span(2, name="lookup", span_kind="TOOL", status_code="OK", status_message="",
                  attributes={"input.value": GOOD_TEXT, "output.value": "sun"})],
    "jaeger": {"data": [{"traceID": "s1", "spans": [
        {"traceID": "s1", "spanID": f"p{number}", "operationName": "execute_tool lookup",
         "startTime": 1771597800000000 + number, "duration": 5, "tags": [
            {"key": "gen_ai.operation.name", "type": "string", "value": "execute_tool"},
            {"key": "gen_ai.tool.call.arguments", "type": "string", "value": arguments},
            *({"key": key, "type": "string", "value": value} for key, value in more.items())]}
        for number, (arguments, more) in enumerate((
            (BAD_TEXT, {"otel.status_code": "ERROR", "otel.status_description": SAID}),
            (GOOD_TEXT, {"gen_ai.tool.call.result": "sun"})))]}]},
    "mlflow": {"info": {"trace_id": "s1"}, "data": {"spans": [
        {"trace_id": "s1", "span_id": f"p{number}", "name": "lookup", "status": status,
         "start_time_unix_nano": 1771597800000000000 + number,
         "attributes": {"mlflow.spanType": '"TOOL"', "mlflow.spanInputs": arguments,
                        "mlflow.spanOutputs": output}}
        for number, (arguments, output, status) in enumerate((
            (BAD_TEXT, None, {"code": "STATUS_CODE_ERROR", "message": SAID}),
            (GOOD_TEXT, '"sun"', {"code": "STATUS_CODE_OK", "message": ""})))]}},
    "har": {"log": {"version": "1.2", "entries": [
        {"startedDateTime": T.format(number), "request": {"method": "POST", "url": "http://x/mcp",
         "postData": {"mimeType": "application/json", "text": json.dumps({"jsonrpc": "2.0",
          "id": number, "method": "tools/call",
          "params": {"name": "lookup", "arguments": arguments}})}},
         "response": {"status": 200, "content": {"text": form.format(json.dumps(
             {"jsonrpc": "2.0", "id": number, "result": {
                 "content": [{"type": "text", "text": said}], "isError": failed}}))}}}
        for number, (arguments, said, failed, form) in enumerate((
            (BAD, SAID, True, "{}"), (GOOD, "sun", False, "event: message\ndata: {}\n\n")))]}},
    "n8n": {"id": "7", "data": {"resultData": {"runData": {
        "Agent": [{"startTime": 1771597800000, "data": {"main": [[{"json": {"output": "x"}}]]}}],
        "lookup": [
            {"startTime": 1771597800001, "executionStatus": "error", "error": {"message": SAID},
             "inputOverride": {"ai_tool": [[{"json": {"query": BAD}}]]},
             "data": {"ai_tool": [[{"json": {}}]]}},
            {"startTime": 1771597800002, "executionStatus": "success",
             "inputOverride": {"ai_tool": [[{"json": {"query": GOOD}}]]},
             "data": {"ai_tool": [[{"json": {"response": "sun"}}]]}}]}}}},
}  # fmt: skip
"""One value a file."""
