"""Runs of LangSmith and observations of Langfuse, as they are exported, as executions. Pure.

| value | read as |
|---|---|
| a run (`run_type`), with `child_runs` or without; a list of them; `{"runs": [...]}` | LangSmith |
| an observation (`traceId` or `trace_id`, `type`); a list; `{"data": [...]}` | Langfuse |
| `{"trace": ..., "observations": [...]}`, or a trace with `observations` | Langfuse |

Calls are the runs with `run_type` "tool" and the observations of type TOOL. Others are counted, and
named where no call was found. LangChain writes arguments as the text of a Python dict under
`input`, and an exception with its traceback in `error`: both are read as what they were.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from aftercall.arguments import Arguments, arguments_of
from aftercall.error_texts import split_name
from aftercall.json_values import (
    InvalidJsonValueError,
    check_json_object,
    make_json_value,
    read_json,
)
from ingest.formats.answers import transcript_answer
from ingest.formats.calls import (
    Given,
    Placed,
    ToolAnswer,
    failure_in_object,
    failure_in_text,
    first_moment,
    first_name,
    name_of,
    notes_of,
    placed_execution,
    python_literal,
    stable_id,
    unreadable_at,
)

Kind = Literal["langsmith", "langfuse"]
_LISTS = ("runs", "observations", "data", "child_runs")
_SESSIONS = ("thread_id", "session_id", "sessionId", "conversation_id", "langfuse_session_id")
_AGENTS = ("agent", "agent_name", "lc_agent_name", "langgraph_node")
_INPUTS = (frozenset({"input"}), frozenset({"input_str"}))
_EXCEPTION = re.compile(r"([A-Za-z_][\w.]*)\((.*)\)", re.DOTALL)
_INTERRUPT = re.compile(r"(Graph|Node)Interrupt\(")
_EXECUTES = "execute_tool "
"""How OpenTelemetry's conventions begin the name of a tool's span."""
_MAX_TEXT = 100_000


def observed_kind(value: object, depth: int = 2) -> Kind | None:
    """Return whose runs or observations a value holds; None for neither."""
    if isinstance(value, list):
        return next((found for each in value[:5] if (found := observed_kind(each, depth))), None)
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("run_type"), str):
        return "langsmith"
    traced = "traceId" in value or "trace_id" in value
    timed = "startTime" in value or "start_time" in value
    if traced and timed and isinstance(value.get("type"), str):
        return "langfuse"
    inner = (value.get(key) for key in _LISTS if isinstance(value.get(key), list))
    return next(
        (found for each in inner if depth and (found := observed_kind(each, depth - 1))), None
    )


@dataclass(slots=True)
class ObservationReader:
    """Reads values; `others` counts runs and observations that are no calls, by their type."""

    given: Given
    others: Counter[str] = field(default_factory=Counter)

    def read(self, value: object, where: str = "", session: str | None = None) -> Iterator[Placed]:
        """Yield the calls in a value, in its order."""
        if isinstance(value, list):
            for number, each in enumerate(value):
                yield from self.read(each, f"{where}[{number}]", session)
            return
        if not isinstance(value, dict):
            yield unreadable_at(where or "the value", "is no run and no observation")
            return
        trace = value.get("trace")
        extra = value.get("extra")
        held = extra.get("metadata") if isinstance(extra, dict) else value.get("metadata")
        read = _unpack_text(held)
        metadata = read if isinstance(read, dict) else {}
        outer = trace if isinstance(trace, dict) else value
        session = first_name(metadata, *_SESSIONS) or first_name(outer, "sessionId") or session
        kind = value.get("run_type") or value.get("type")
        if isinstance(kind, str):
            if kind.lower() == "tool" or _is_executed(value, metadata):
                yield from self._read_call(value, metadata, where or "the value", session)
            else:
                self.others[kind] += 1
        for key in _LISTS:
            if isinstance(value.get(key), list):
                yield from self.read(value[key], f"{where}.{key}" if where else key, session)

    def _read_call(
        self, value: dict[str, Any], metadata: dict[str, Any], where: str, session: str | None
    ) -> Iterator[Placed]:
        run_id, name = name_of(value.get("id")), _name_of(value, metadata)
        if run_id is None or name is None:
            yield unreadable_at(where, "the call has no id or no name")
            return
        begun = first_moment(value, "start_time", "startTime")
        ended = first_moment(value, "end_time", "endTime")
        try:
            answer = _read_answer(value, self.given)
            arguments = _read_arguments(value.get("inputs", value.get("input")))
        except _NotACallError as error:
            yield unreadable_at(where, str(error))
            return
        took_ms = (ended - begun).total_seconds() * 1000 if begun and ended else 0.0
        server, tool = split_name(name)
        # A session of LangSmith is what others call a project.
        own = None if "run_type" in value else first_name(value, "sessionId", "session_id")
        yield from notes_of(where, arguments)
        yield placed_execution(
            where,
            execution_id=stable_id("observation", run_id),
            timestamp=begun or self.given.at,
            agent=self.given.agent or first_name(metadata, *_AGENTS) or "unknown",
            server_name=first_name(metadata, "mcp_server", "server_name") or server,
            tool_name=tool,
            **arguments.recorded_fields(),
            duration_ms=max(took_ms, 0.0),
            session_id=own or session or first_name(value, "trace_id", "traceId"),
            **answer.execution_fields(),
        )


def _is_executed(value: dict[str, Any], metadata: dict[str, Any]) -> bool:
    """Return whether a span of another type is a tool's, by OpenTelemetry's conventions."""
    attributes = metadata.get("attributes")
    held = attributes if isinstance(attributes, dict) else {}
    operation, name = held.get("gen_ai.operation.name"), value.get("name")
    if isinstance(operation, str):
        return operation == _EXECUTES.strip()
    return "gen_ai.tool.name" in held or (isinstance(name, str) and name.startswith(_EXECUTES))


def _name_of(value: dict[str, Any], metadata: dict[str, Any]) -> str | None:
    """Return the tool's name: what the span states before what the span is called."""
    attributes = metadata.get("attributes")
    named = attributes.get("gen_ai.tool.name") if isinstance(attributes, dict) else None
    name = name_of(named) or name_of(value.get("name"))
    return name and (name.removeprefix(_EXECUTES) or name)


class _NotACallError(Exception):
    """What cannot be recorded as a call; the message states why."""


def _read_arguments(told: object) -> Arguments:
    """Return the arguments of a call.

    A text that begins as no object is the tool's one argument.
    """
    read = _unpack_text(told)
    if isinstance(read, dict) and frozenset(read) in _INPUTS:
        inner = _unpack_text(next(iter(read.values())))
        is_text = isinstance(inner, str) and inner.lstrip().startswith("{")
        read = inner if isinstance(inner, dict) or is_text else read
    if isinstance(read, str) and read.strip():
        if read.lstrip().startswith("{"):
            return arguments_of(read)
        read = {"input": read}
    try:
        return Arguments(check_json_object(read or {}))
    except InvalidJsonValueError as error:
        raise _NotACallError(f"the call's input cannot be stored: {error}") from None


def _read_answer(value: dict[str, Any], given: Given) -> ToolAnswer:
    error = value.get("error")
    if isinstance(error, str) and error.strip():
        if _INTERRUPT.match(error):
            raise _NotACallError("the call was interrupted, which is no outcome")
        return _read_raised(error)
    output = _unpack_text(value.get("outputs", value.get("output")))
    if isinstance(output, dict) and output.keys() == {"output"}:
        output = _unpack_text(output["output"])
    failed = str(value.get("level")).upper() == "ERROR" or value.get("status") == "error"
    message = value.get("statusMessage") or value.get("status_message")
    if failed and isinstance(message, str) and message:
        return _read_raised(message)
    if output is None and not failed and first_moment(value, "end_time", "endTime") is None:
        raise _NotACallError("the call has no result here, so how it ended is not known")
    if isinstance(output, dict):  # a message of LangChain, written out
        inner = output.get("kwargs") if output.get("type") == "constructor" else output
        if isinstance(inner, dict) and "content" in inner and "tool_call_id" in inner:
            failed, output = failed or inner.get("status") == "error", inner["content"]
    return transcript_answer(make_json_value(output), failed=failed, pattern=given.error_pattern)


def _read_raised(text: str) -> ToolAnswer:
    """Return an exception as LangChain writes it: its `repr`, and its traceback."""
    said = text.split("Traceback (most recent call last)", maxsplit=1)[0].strip()
    if (found := _EXCEPTION.fullmatch(said)) is None:
        return failure_in_text(said or text)
    message = python_literal(f"({found[2]})") if found[2] else ""
    if isinstance(message, list):
        message = message[0] if message else ""
    if message is None:  # no literal: the words as they stand
        message = found[2]
    kind = found[1].rpartition(".")[2]
    return failure_in_object({"type": kind, "message": str(message) or kind})


def _unpack_text(value: object) -> object:
    """Return the object that a text is the JSON or the Python literal of; else the value itself."""
    text = value.strip() if isinstance(value, str) and len(value) <= _MAX_TEXT else ""
    if not (text.startswith("{") and text.endswith("}")):
        return value
    try:
        read = read_json(text)
    except (ValueError, RecursionError):
        read = python_literal(text)
    return read if isinstance(read, dict) else value
