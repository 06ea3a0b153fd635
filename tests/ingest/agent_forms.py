"""Small files in forms that were met in public repositories; made up, in the shapes that were met.

The same two calls as in `tests.ingest.forms`.
"""

import json
from typing import Any

from tests.ingest.forms import BAD, BAD_TEXT, GOOD, GOOD_TEXT, SAID, T, rollout

ERROR_TEXT = json.dumps({"error": SAID})


def kiro(number: int, kind: str, part: str, **data: Any) -> dict[str, Any]:
    content = [{"kind": part, "data": data}]
    return {"version": "v1", "kind": kind, "data": {"message_id": f"m{number}", "content": content}}


def kimi(**event: Any) -> dict[str, Any]:
    return {"type": "context.append_loop_event", "event": event, "time": 1785612803281}


def copilot(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "timestamp": T.format(1)}


def requested(key: str, sent: dict[str, Any]) -> list[dict[str, Any]]:
    asked = {"toolCallId": key, "name": "geo-lookup", "arguments": sent}
    begun = {"toolCallId": key, "mcpServerName": "geo", "mcpToolName": "lookup", "arguments": sent}
    return [
        copilot("assistant.message", toolRequests=[asked]),
        copilot("tool.execution_start", **begun),
    ]


def pi(number: int, **message: Any) -> dict[str, Any]:
    return {"type": "message", "id": f"m{number}", "timestamp": T.format(1), "message": message}


def shell(key: str, command: str, code: int, said: str) -> list[dict[str, Any]]:
    outcome = {"outcome": {"type": "exit", "exit_code": code}, "stdout": said, "stderr": ""}
    return [
        {"type": "shell_call", "call_id": key, "action": {"command": command}},
        {"type": "shell_call_output", "call_id": key, "output": [outcome]},
    ]


LINES: dict[str, list[Any]] = {
    "codex, commands that ended before their output": rollout(
        {"type": "function_call", "name": "shell", "call_id": "c1",
         "arguments": '{"command": "lss"}'},
        {"type": "exec_command_end", "call_id": "c1", "exit_code": 127, "status": "failed",
         "aggregated_output": SAID},
        {"type": "function_call_output", "call_id": "c1", "output": SAID},
        {"type": "function_call", "name": "shell", "call_id": "c2",
         "arguments": '{"command": "ls"}'},
        {"type": "exec_command_end", "call_id": "c2", "exit_code": 0, "status": "completed",
         "aggregated_output": "sun"},
        {"type": "function_call_output", "call_id": "c2", "output": "sun"},
    ),
    "kiro cli": [
        kiro(1, "AssistantMessage", "toolUse", toolUseId="c1", name="lookup", input=BAD),
        kiro(2, "ToolResults", "toolResult", toolUseId="c1", status="error",
             content=[{"kind": "text", "data": SAID}]),
        kiro(3, "AssistantMessage", "toolUse", toolUseId="c2", name="lookup", input=GOOD),
        kiro(4, "ToolResults", "toolResult", toolUseId="c2",
             content=[{"kind": "text", "data": "sun"}]),
    ],
    "droid": [
        {"type": "tool_call", "sessionId": "s1", "id": "c1", "toolId": "lookup",
         "toolName": "lookup", "parameters": BAD},
        {"type": "tool_result", "sessionId": "s1", "id": "c1", "toolId": "lookup",
         "isError": True, "value": SAID},
        {"type": "tool_call", "sessionId": "s1", "id": "c2", "toolId": "lookup",
         "toolName": "lookup", "parameters": GOOD},
        {"type": "tool_result", "sessionId": "s1", "id": "c2", "toolId": "lookup",
         "isError": False, "value": "sun"},
    ],
    "kimi": [
        {"type": "metadata", "protocol_version": "1.4", "created_at": 1785612803281},
        {"type": "turn.prompt", "input": [{"type": "text", "text": "Oslo?"}], "time": 1785612803},
        kimi(type="tool.call", toolCallId="c1", name="lookup", args=BAD),
        kimi(type="tool.result", toolCallId="c1", result={"output": SAID, "isError": True}),
        kimi(type="tool.call", toolCallId="c2", name="lookup", args=GOOD),
        kimi(type="tool.result", toolCallId="c2", result={"output": "sun"}),
    ],
    "pi": [
        {"type": "session", "version": 3, "id": "s1", "timestamp": T.format(0), "cwd": "/w"},
        pi(1, role="assistant", content=[
            {"type": "toolCall", "id": "c1", "name": "lookup", "arguments": BAD}]),
        pi(2, role="toolResult", toolCallId="c1", toolName="lookup", isError=True,
           content=[{"type": "text", "text": SAID}]),
        pi(3, role="assistant", content=[
            {"type": "toolCall", "id": "c2", "name": "lookup", "arguments": GOOD}]),
        pi(4, role="toolResult", toolCallId="c2", toolName="lookup", isError=False,
           content=[{"type": "text", "text": "sun"}]),
    ],
    "grok": [
        {"type": "user", "content": [{"type": "text", "text": "Oslo?"}], "prompt_index": 0},
        {"type": "assistant", "tool_calls": [
            {"id": "c1", "name": "lookup", "arguments": BAD_TEXT}]},
        {"type": "tool_result", "tool_call_id": "c1", "content": ERROR_TEXT},
        {"type": "assistant", "tool_calls": [
            {"id": "c2", "name": "lookup", "arguments": GOOD_TEXT}]},
        {"type": "tool_result", "tool_call_id": "c2", "content": "sun"},
    ],
    "codebuddy, without ids": [
        {"type": "session_start", "sessionId": "s1", "timestamp": T.format(0)},
        {"type": "function_call", "sessionId": "s1", "name": "lookup", "arguments": BAD},
        {"type": "function_call_result", "sessionId": "s1", "name": "lookup",
         "output": ERROR_TEXT},
        {"type": "function_call", "sessionId": "s1", "name": "lookup", "arguments": GOOD},
        {"type": "function_call_result", "sessionId": "s1", "name": "lookup", "output": "sun"},
    ],
    "responses, without ids": [
        {"type": "function_call", "name": "lookup", "arguments": BAD_TEXT},
        {"type": "function_call_output", "output": ERROR_TEXT},
        {"type": "function_call", "name": "lookup", "arguments": GOOD_TEXT},
        {"type": "function_call_output", "output": "sun"},
    ],
    "codebuddy, events": [
        {"event_type": "tool_use", "session_id": "s1", "tool": {"name": "lookup"}, "input": BAD},
        {"event_type": "tool_result", "session_id": "s1", "toolName": "lookup", "error": SAID},
        {"event_type": "tool_use", "session_id": "s1", "tool": {"name": "lookup"}, "input": GOOD},
        {"event_type": "tool_result", "session_id": "s1", "toolName": "lookup", "result": ["sun"]},
    ],
    "agents sdk for javascript": [
        {"type": "function_call", "callId": "c1", "name": "lookup", "arguments": BAD_TEXT},
        {"type": "function_call_result", "callId": "c1", "name": "lookup",
         "output": {"type": "text", "text": ERROR_TEXT}},
        {"type": "function_call", "callId": "c2", "name": "lookup", "arguments": GOOD_TEXT},
        {"type": "function_call_result", "callId": "c2", "name": "lookup",
         "output": {"type": "text", "text": "sun"}},
    ],
    "antigravity": [
        {"step_index": 1, "source": "MODEL", "type": "PLANNER_RESPONSE", "status": "DONE",
         "tool_calls": [{"name": "lookup", "args": BAD}]},
        {"step_index": 2, "source": "MODEL", "type": "LOOK_UP", "status": "ERROR",
         "content": SAID},
        {"step_index": 3, "source": "MODEL", "type": "PLANNER_RESPONSE", "status": "DONE",
         "tool_calls": [{"name": "lookup", "args": GOOD}]},
        {"step_index": 4, "source": "MODEL", "type": "LOOK_UP", "status": "DONE",
         "content": "sun"},
    ],
    "copilot cli, asked for and begun": [
        copilot("session.start", sessionId="s1"),
        *requested("c1", BAD),
        copilot("tool.execution_complete", toolCallId="c1", success=False,
                error={"message": SAID}),
        *requested("c2", GOOD),
        copilot("tool.execution_complete", toolCallId="c2", success=True,
                result={"content": "sun"}),
    ],
    "records of calls": [
        {"tool": "lookup", "args": BAD, "ok": False, "error": SAID},
        {"tool": "lookup", "args": GOOD, "ok": True, "result": {"sky": "sun"}},
    ],
}  # fmt: skip
"""Lines of a file."""

DOCUMENTS: dict[str, Any] = {
    "kiro export": {"conversation_id": "s1", "history": [
        *({"user": {"content": user}, "assistant": {"ToolUse": {"tool_uses": [
            {"id": key, "name": "lookup", "orig_name": "lookup", "args": sent,
             "orig_args": sent}]}}} for user, key, sent in (
            ({"Prompt": "Oslo?"}, "c1", BAD),
            ({"ToolUseResults": [{"tool_use_id": "c1", "status": "Error",
                                  "content": [{"Text": SAID}]}]}, "c2", GOOD))),
        {"user": {"content": {"ToolUseResults": [
            {"tool_use_id": "c2", "status": "Success", "content": [{"Text": "sun"}]}]}},
         "assistant": {"Response": {"content": "Sun."}}},
    ]},
    "atif, results without ids": {"schema_version": "ATIF-v1.5", "session_id": "s1", "steps": [
        {"step_id": number, "source": "agent", "tool_calls": [
            {"tool_call_id": f"c{number}", "function_name": "lookup", "arguments": sent}],
         "observation": {"results": [{"content": said}]}}
        for number, sent, said in ((1, BAD, ERROR_TEXT), (2, GOOD, "sun"))]},
    "shell commands of responses": {"id": "s1", "object": "response", "output": [
        *shell("c1", "lss", 127, SAID), *shell("c2", "ls", 0, "sun")]},
    "spans in a tree": {"root_span": {"name": "invoke_agent a", "attributes": {
        "gen_ai.operation.name": "invoke_agent"}, "status": "UNSET", "children": [
        {"name": "execute_tool lookup", "children": [], "status": status, "attributes": {
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup",
            "gen_ai.tool.call.id": key, "gcp.vertex.agent.tool_call_args": sent,
            "gcp.vertex.agent.tool_response": said, **more}}
        for key, sent, said, status, more in (
            ("c1", BAD_TEXT, "{}", "ERROR", {"error.type": SAID}),
            ("c2", GOOD_TEXT, '"sun"', "UNSET", {}))]}},
    "langfuse, tools in other spans": {"trace": {"id": "t", "sessionId": "s1"}, "observations": [
        {"id": key, "traceId": "t", "type": "SPAN", "name": "execute_tool lookup",
         "startTime": T.format(1), "endTime": T.format(2), "input": sent, "output": said,
         "level": level, "metadata": {"attributes": {"gen_ai.tool.name": "lookup"}}}
        for key, sent, said, level in (
            ("o1", BAD_TEXT, ERROR_TEXT, "ERROR"), ("o2", GOOD_TEXT, "sun", "DEFAULT"))]},
}  # fmt: skip
"""One value a file."""
