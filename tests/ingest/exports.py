"""Samples in the forms of Claude Code, Anthropic's messages, LangSmith and Langfuse."""

from datetime import timedelta
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from tests.ingest.transcripts import AT


def use(key: str, tool: str, arguments: object) -> dict[str, Any]:
    """A block of an assistant's message: a call."""
    return {"type": "tool_use", "id": key, "name": tool, "input": arguments}


def outcome(key: str, content: object, *, failed: bool = False) -> dict[str, Any]:
    """A block of a user's message: a result; Claude Code writes the flag only where it is set."""
    block = {"type": "tool_result", "tool_use_id": key, "content": content}
    return {**block, "is_error": True} if failed else block


def session_line(
    message: dict[str, Any], *, session: str = "s", at: str = "", uuid: str = "u", **more: Any
) -> dict[str, Any]:
    """A line of a session of Claude Code."""
    return {
        "parentUuid": None, "isSidechain": False, "userType": "external", "cwd": "/home/me/work",
        "sessionId": session, "version": "2.1.230", "gitBranch": "main",
        "type": message["role"], "message": message, "uuid": uuid,
        "timestamp": at or AT.isoformat(), **more,
    }  # fmt: skip


def _id(*parts: object) -> str:
    return str(uuid5(NAMESPACE_URL, repr(parts)))


def run(
    name: str,
    inputs: object,
    *,
    output: object = None,
    error: str | None = None,
    kind: str = "tool",
    at: float = 0,
    **more: Any,
) -> dict[str, Any]:
    """A run of LangSmith: LangChain writes arguments as the text of a dict."""
    begun = AT + timedelta(seconds=at)
    return {
        "id": _id(name, inputs, at), "name": name, "run_type": kind,
        "inputs": {"input": str(inputs)}, "error": error,
        "outputs": None if output is None else {"output": output},
        "start_time": begun.replace(tzinfo=None).isoformat(),
        "end_time": (begun + timedelta(milliseconds=250)).replace(tzinfo=None).isoformat(),
        "trace_id": _id("trace", at // 60), "session_id": _id("project"),
        "status": "error" if error else "success", "extra": {"metadata": {}}, "tags": [], **more,
    }  # fmt: skip


def observation(name: str, given: object, *, at: float = 0, **more: Any) -> dict[str, Any]:
    """An observation of Langfuse."""
    begun = AT + timedelta(seconds=at)
    return {
        "id": _id(name, given, at).replace("-", "")[:16], "traceId": _id("trace", at // 60),
        "type": "TOOL", "name": name, "startTime": begun.isoformat(),
        "endTime": (begun + timedelta(milliseconds=250)).isoformat(), "input": given,
        "output": None, "level": "DEFAULT", "statusMessage": None, "metadata": {}, **more,
    }  # fmt: skip
