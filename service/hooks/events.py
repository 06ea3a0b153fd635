"""Reading a payload: its event, its tool, the call's arguments, and how it ended. Pure.

The four names of a tool of MCP (`mcp__desk__find`, `mcp_desk_find`, `desk__find`, `desk_find`) are
one tool of one server. A shell command that failed is a failure, whatever the client calls it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from aftercall.json_values import JsonObject, json_or_none
from ingest.formats.answers import message_text_of
from ingest.formats.rules import Condition, first_value_at
from service.hooks.clients import (
    READING,
    Alternatives,
    EventRule,
    HookClient,
    Kind,
    Role,
    TranscriptRule,
)

Payload: TypeAlias = Mapping[str, Any]
TRANSCRIPT = "aftercallTranscript"
"""Where `aftercall hook` puts the end of the client's transcript."""
_MAX_LINES = 400
_ENVELOPES = (
    re.compile(r"<untrusted_context>\n?(.*?)\n?</untrusted_context>", re.DOTALL),
    re.compile(r"<tool_use_error>(.*?)</tool_use_error>", re.DOTALL),
)
_MCP_SAID = re.compile(r'"text":"((?:[^"\\]|\\.)*)"\}?\]?.{0,20}"isError":true')
_SHELL_LINES = re.compile(
    r"^(?:Command: .*|Directory: .*|Error: \(none\)|Signal: .*|Process Group PGID: .*|"
    r"Background PIDs: .*|\[Command exited with code \d+\])$\n?",
    re.MULTILINE,
)
_OWN_WORDS = re.compile(
    r"\n*(?:<hook_context>)?Aftercall (?:\(recorded data|(?:repaired|changed) this call).*",
    re.DOTALL,
)
"""The words that an earlier answer added: a transcript has them after the tool's own words."""
_OUTPUT = re.compile(r"\A(?:Output: )")


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCall:
    """A call as an event, or the transcript, shows it."""

    tool: str
    """Its own name, without that of the server."""
    wire_name: str
    server: str | None
    """Its MCP server; None for the client's own tools."""
    arguments: JsonObject | str
    call_id: str | None = None
    result: Any = None
    error: str | None = None
    """The tool's error; None if it did not fail."""
    exit_code: str | None = None
    duration_ms: float = 0.0
    interrupted: bool = False
    role: Role | None = None
    """The tool's purpose, if it is the client's own."""

    @property
    def reads(self) -> bool:
        """Return whether it is one of the client's own tools that change nothing."""
        return self.role is not None and self.role.role in READING

    @property
    def is_shell(self) -> bool:
        """Return whether it is the client's shell."""
        return self.role is not None and self.role.role == "shell"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEvent:
    """The event of a payload."""

    rule: EventRule
    session: str | None
    call: HookCall | None
    """None for the end of a session, and where only the transcript shows calls."""
    earlier: list[HookCall] = field(default_factory=list)
    """Failed calls that the transcript shows."""
    view: Payload = field(default_factory=dict)
    """The payload with the members that conditions may ask for."""

    @property
    def kind(self) -> Kind:
        """Return what kind of event it is."""
        return self.rule.kind


def read_event(client: HookClient, payload: Payload) -> HookEvent | None:
    """Return the event of a payload; None for an event that is not handled."""
    prompt = payload.get("prompt")
    view = {**payload, "@prompt": prompt or None}
    rule = next((each for each in client.events if hold_all(each.conditions, view)), None)
    if rule is None:
        return None
    session = first_value_at(view, rule.paths.get("session", ())) or first_value_at(
        view, client.session
    )
    earlier, items = _read_transcript(client, payload.get(TRANSCRIPT))
    call = None
    if "tool" in rule.paths:
        call_id = first_value_at(view, rule.paths.get("id", ()))
        if isinstance(call_id, str) and call_id in items:
            view["@item"] = items[call_id]
        call = _read_call(client, rule, view)
        if call is None:
            return None
        earlier = [each for each in earlier if each.call_id != call.call_id]
        view |= {"@reads": call.reads, "@shell": call.is_shell}
    return HookEvent(
        rule=rule,
        session=session if isinstance(session, str) and session else None,
        call=call,
        earlier=earlier,
        view=view,
    )


def hold_all(conditions: tuple[Condition, ...], view: Payload) -> bool:
    """Return whether all conditions hold."""
    return all(each.is_met(view) for each in conditions)


def hold_any(alternatives: Alternatives, view: Payload) -> bool:
    """Return whether all conditions of one group hold."""
    return any(hold_all(each, view) for each in alternatives)


def _read_call(client: HookClient, rule: EventRule, view: dict[str, Any]) -> HookCall | None:
    wire_name, arguments = (
        first_value_at(view, rule.paths[name]) for name in ("tool", "arguments")
    )
    if not isinstance(wire_name, str) or not wire_name:
        return None
    server, tool = _server_and_tool(client, wire_name, view, rule)
    role = client.roles.get(tool) if server is None else None
    result = first_value_at(view, rule.paths.get("result", ()))
    view |= {"@shell": role is not None and role.role == "shell", "@failed": _failed_part(result)}
    failed = rule.kind == "failure" or hold_any(rule.failed, view)
    exit_code = first_value_at(view, rule.paths.get("exit", ()))
    duration = first_value_at(view, rule.paths.get("duration", ()))
    call_id = first_value_at(view, rule.paths.get("id", ()))
    return HookCall(
        tool=role.named if role is not None and role.named else tool,
        wire_name=wire_name,
        server=server,
        arguments=_read_arguments(arguments),
        call_id=call_id if isinstance(call_id, str) else None,
        result=None if failed else plain_result(result),
        error=_read_error(first_value_at(view, rule.paths.get("error", ())), result)
        if failed
        else None,
        exit_code=None if exit_code is None else str(exit_code),
        duration_ms=float(duration) if isinstance(duration, int | float) else 0.0,
        interrupted=hold_any(rule.interrupted, view),
        role=role,
    )


def _server_and_tool(
    client: HookClient, wire_name: str, view: Payload, rule: EventRule
) -> tuple[str | None, str]:
    server = first_value_at(view, rule.paths.get("server", ()))
    if isinstance(server, str) and server:
        return server, wire_name
    if wire_name in client.roles or wire_name in client.schemas:
        return None, wire_name
    servers = first_value_at(view, client.servers)
    if isinstance(servers, list):  # where a name alone does not say it
        for each in sorted(map(str, servers), key=len, reverse=True):
            if wire_name.startswith(f"{each}_"):
                return each, wire_name.removeprefix(f"{each}_")
        return None, wire_name
    match = client.mcp.fullmatch(wire_name)
    return (match["server"], match["tool"]) if match else (None, wire_name)


def _read_arguments(value: object) -> JsonObject | str:
    if isinstance(value, str):
        read = json_or_none(value)
        return read if isinstance(read, dict) else value
    return value if isinstance(value, dict) else {}


def _failed_part(result: object) -> object:
    parts = result if isinstance(result, list) else [result]
    found = (e for e in parts if isinstance(e, dict) and e.get("success") is False)
    return next(found, None)


def plain_result(result: object) -> Any:
    """Return a result without what the client wraps around it; its text where it is one."""
    if isinstance(result, dict) and (file := result.get("file")) and isinstance(file, dict):
        return file.get("content", result)  # as Claude Code shows a file that it read
    if isinstance(result, dict) and isinstance(result.get("content"), list):
        result = result["content"]
    text = message_text_of(result) if not isinstance(result, dict) else None
    return result if text is None else plain_text(text)


def plain_text(text: str) -> str:
    """Return a text without the envelope and the facts that a client adds to it."""
    text = _OWN_WORDS.sub("", text)
    for envelope in _ENVELOPES:
        text = envelope.sub(r"\1", text)
    return _OUTPUT.sub("", _SHELL_LINES.sub("", text))


def _read_error(error: object, result: object) -> str:
    """Return the tool's error; the output of the failing command if there is no more."""
    if isinstance(error, dict):
        error = error.get("message", str(error))
    if not isinstance(error, str) or not error:
        read = plain_result(_failed_result(result))
        return read if isinstance(read, str) and read else "it failed, and nothing was said"
    if (said := _MCP_SAID.search(error.replace('\\"', '"'))) is not None:
        return said[1]
    return plain_text(error)


def _failed_result(result: object) -> object:
    part = _failed_part(result)
    return part.get("result") if isinstance(part, dict) and part.get("result") else result


def _read_transcript(
    client: HookClient, text: object
) -> tuple[list[HookCall], dict[str, dict[str, Any]]]:
    """Return the failed calls at the end of a transcript, in order, and its items by call id."""
    if not isinstance(text, str) or not client.transcript:
        return [], {}
    calls: dict[str, HookCall] = {}
    failed: dict[str, str] = {}
    items: dict[str, dict[str, Any]] = {}
    for line in text.splitlines()[-_MAX_LINES:]:
        record = json_or_none(line)
        for rule in client.transcript if isinstance(record, dict) else ():
            for part in _list_parts(rule, record):
                if not hold_all(rule.conditions, part):
                    continue
                call_id = str(first_value_at(part, rule.paths["id"]))
                if rule.kind == "call":
                    calls[call_id] = _transcript_call(client, rule, part, call_id)
                if isinstance(item := first_value_at(part, rule.paths.get("item", ())), dict):
                    items[call_id] = item
                if hold_any(rule.failed, part):
                    failed.setdefault(
                        call_id, _read_error(first_value_at(part, rule.paths["error"]), None)
                    )
    return [
        replace(calls[call_id], error=error)
        for call_id, error in failed.items()
        if call_id in calls
    ], items


def _list_parts(rule: TranscriptRule, record: object) -> Iterator[dict[str, Any]]:
    if not rule.each:
        parts: object = [record]
    else:
        parts = first_value_at(record, rule.each)
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict):
            yield part


def _transcript_call(
    client: HookClient, rule: TranscriptRule, part: Payload, call_id: str
) -> HookCall:
    name = str(first_value_at(part, rule.paths["tool"]))
    server = first_value_at(part, rule.paths.get("server", ()))
    if not isinstance(server, str) and (match := client.mcp.fullmatch(name)) is not None:
        server, name = match["server"], match["tool"]
    given: Any = {key: first_value_at(part, path) for key, path in rule.text.items()}
    role = client.roles.get(name)
    return HookCall(
        tool=role.named if role is not None and role.named else name,
        wire_name=name,
        server=server if isinstance(server, str) else None,
        arguments=given or _read_arguments(first_value_at(part, rule.paths.get("arguments", ()))),
        call_id=call_id,
        role=role,
    )
