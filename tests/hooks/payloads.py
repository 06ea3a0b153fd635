"""Payloads in the shapes of the clients, with values of our own."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

Json = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """How a client tells of a call, and what its own tools are called."""

    client: str
    read: str
    path: str
    shell: str
    command: str
    listing: str

    def reading(self, path: str) -> Json:
        """The arguments that read a file."""
        return {"files": [{"path": path}]} if self.client == "cline" else {self.path: path}

    def running(self, command: str) -> Json:
        """The arguments that run a command."""
        return {self.command: [command] if self.client == "cline" else command}

    def before(self, session: str, tool: str, arguments: object, **more: object) -> Json:
        """Before the call."""
        if self.client == "cline":
            call = {"id": str(uuid4()), "name": tool, "input": arguments}
            return {"hookName": "tool_call", "taskId": session, "tool_call": call}
        if self.client == "opencode":
            asked = {"tool": tool, "sessionID": session, "callID": str(uuid4())}
            event = {"event": "tool.execute.before", "input": asked, "output": {"args": arguments}}
            return event | {"servers": ["desk"]} | more
        name = "BeforeTool" if self.client == "gemini" else "PreToolUse"
        return self._told(name, session, tool, arguments) | more

    def worked(self, session: str, tool: str, arguments: object, text: str) -> Json:
        """After a call that worked."""
        if self.client == "cline":
            parts = [{"query": "q", "result": text, "success": True}]
            call = {"id": str(uuid4()), "name": tool, "input": arguments, "output": parts}
            return {"hookName": "tool_result", "taskId": session, "tool_result": call}
        if self.client == "opencode":
            asked = {"tool": tool, "sessionID": session, "callID": str(uuid4()), "args": arguments}
            ended = {"output": text, "metadata": {}}
            event = {"event": "tool.execute.after", "input": asked, "output": ended}
            return event | {"servers": ["desk"]}
        if self.client == "gemini":
            ended = {"tool_response": {"llmContent": text, "returnDisplay": text}}
            return self._told("AfterTool", session, tool, arguments) | ended
        told = self._told("PostToolUse", session, tool, arguments)
        if self.client == "qwen":
            return told | {"tool_response": {"llmContent": text, "returnDisplay": text}}
        if self.client == "copilot":
            result = {"result_type": "success", "text_result_for_llm": text}
            return told | {"tool_result": result}
        return told | {"tool_response": text}

    def failed(self, session: str, tool: str, arguments: object, error: str) -> Json:
        """After a call of a tool, other than a shell, that failed."""
        if self.client == "cline":
            parts = [{"query": "q", "result": "", "error": error, "success": False}]
            call = {"id": str(uuid4()), "name": tool, "input": arguments, "output": parts}
            return {"hookName": "tool_result", "taskId": session, "tool_result": call}
        if self.client == "opencode":
            state = {"status": "error", "input": arguments, "error": error}
            part = {"tool": tool, "callID": str(uuid4()), "state": state}
            return {"event": "part", "part": part, "input": {"sessionID": session}, "servers": []}
        if self.client == "gemini":
            said = {"message": error, "type": "failed"}
            ended = {"tool_response": {"llmContent": error, "returnDisplay": error, "error": said}}
            return self._told("AfterTool", session, tool, arguments) | ended
        return self._told("PostToolUseFailure", session, tool, arguments) | {"error": error}

    def exited(self, session: str, command: str, output: str, code: int) -> Json:
        """After a command of the shell that failed, as the client tells of it."""
        arguments = self.running(command)
        if self.client == "cline":
            said = f"[Command exited with code {code}]\n\n[stderr]\n{output}"
            parts = [{"query": command, "result": said, "error": output, "success": False}]
            call = {"id": str(uuid4()), "name": self.shell, "input": arguments, "output": parts}
            return {"hookName": "tool_result", "taskId": session, "tool_result": call}
        if self.client in ("claude-code", "copilot"):
            return self.failed(session, self.shell, arguments, f"Exit code {code}\n{output}")
        if self.client == "gemini":
            text = f"<untrusted_context>\nOutput: {output}\nExit Code: {code}\n</untrusted_context>"
            return self.worked(session, self.shell, arguments, text)
        if self.client == "qwen":
            text = f"Command: {command}\nOutput: {output}\nError: (none)\nExit Code: {code}"
            return self.worked(session, self.shell, arguments, text)
        told = self.worked(session, self.shell, arguments, output)
        if self.client == "opencode":
            told["output"]["metadata"] = {"exit": code}
        return told

    def _told(self, event: str, session: str, tool: str, arguments: object) -> Json:
        told = {"hook_event_name": event, "session_id": session, "cwd": "/repo"}
        named = {"tool_name": tool, "tool_input": arguments}
        if self.client not in ("gemini", "copilot"):
            named["tool_use_id"] = str(uuid4())
        return told | named


SHAPES = {
    shape.client: shape
    for shape in (
        Shape("claude-code", "Read", "file_path", "Bash", "command", "Glob"),
        Shape("codex", "", "", "Bash", "command", "Bash"),
        Shape("gemini", "read_file", "file_path", "run_shell_command", "command", "glob"),
        Shape("qwen", "read_file", "file_path", "run_shell_command", "command", "glob"),
        Shape("cline", "read_files", "path", "run_commands", "commands", "search_codebase"),
        Shape("opencode", "read", "filePath", "bash", "command", "glob"),
        Shape("copilot", "view", "path", "bash", "command", "glob"),
    )
}


def said_in(answer: Json) -> str:
    """What an answer tells the model, whatever its form."""
    inner = answer.get("hookSpecificOutput", {})
    texts = (
        inner.get("additionalContext"), inner.get("permissionDecisionReason"),
        answer.get("additionalContext"), answer.get("permissionDecisionReason"),
        answer.get("contextModification"), answer.get("context"), answer.get("reason"),
        answer.get("refuse"),
    )  # fmt: skip
    return "\n".join(text for text in texts if isinstance(text, str))


def input_in(answer: Json) -> Json | None:
    """The other input that an answer gives the call."""
    inner = answer.get("hookSpecificOutput", {})
    found = (
        inner.get("updatedInput"), inner.get("tool_input"), answer.get("modifiedArgs"),
        answer.get("overrideInput"), answer.get("args"),
    )  # fmt: skip
    return next((each for each in found if each is not None), None)
