"""What the spans of one request say of each other: whose agent, which session, the same call twice.

Only one request is looked at. Exporters send spans as they end, children first, so a parent may
come in a later request, and then nothing is known of it here.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

from ingest.formats.otlp import keys
from ingest.formats.otlp.call import ToolCall
from ingest.formats.otlp.span import SERVER_KIND, Attributes, Span
from ingest.formats.otlp.values import (
    MAX_NAME,
    BadSpanError,
    arguments_of,
    bounded_name,
    loose_text,
)

_MAX_CLIMB = 64
"""Ancestors that are looked at: traces are a few levels deep, and hostile ones run in circles."""

_AGENTS = frozenset({"invoke_agent", "create_agent", "invoke_workflow"})
_DIGEST_CHARS = 32
_UNREADABLE = "unreadable"
_UNNAMED_SERVICE = "unknown_service"
"""What SDKs call a service that nobody named (opentelemetry.io/docs/specs/semconv/resource)."""


@dataclass(slots=True)
class _Told:
    """What a span says that others need."""

    agent: str | None
    session: str | None
    begins_agent: bool
    call: ToolCall | None
    arguments: str | None = None
    """`_arguments_of` its call, once they were compared: thousands of spans may lie below one."""


class Family:
    """The spans of one request by their ids."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}
        self._told: dict[str, _Told] = {}

    def add(self, span: Span, call: ToolCall | None) -> None:
        """Remember a span; `call` when it is one of a tool."""
        if not (span.trace_id and span.span_id):
            return
        key = span.trace_id + span.span_id
        if span.parent_span_id:
            self._parents[key] = span.trace_id + span.parent_span_id
        attributes = span.attributes
        if not attributes:
            return
        told = _Told(
            agent=_agent_in(attributes),
            session=_session_in(attributes),
            begins_agent=loose_text(attributes.get(keys.OPERATION)) in _AGENTS
            or attributes.get(keys.SPAN_KIND) == "AGENT",
            call=call,
        )
        if told.agent or told.session or told.begins_agent or told.call:
            self._told[key] = told

    def agent_of(self, span: Span) -> str:
        """Its own agent, else the nearest ancestor's, else its service, else `unknown`."""
        name = _agent_in(span.attributes) or next(
            (told.agent for told in self._above(span) if told.agent), None
        )
        if (
            name is None and span.kind != SERVER_KIND
        ):  # the service of a server's span is the tool's
            name = loose_text(span.resource.get(keys.SERVICE_NAME))
            if name is not None and name.startswith(_UNNAMED_SERVICE):
                name = None
        return bounded_name(name) if name else "unknown"

    def session_of(self, span: Span) -> str:
        """Its own session, else the nearest ancestor's, else its MCP session, else its trace.

        An MCP session's id is hashed, since whoever knows it can speak in the session.
        """
        session = _session_in(span.attributes) or next(
            (told.session for told in self._above(span) if told.session), None
        )
        if session is not None:
            return session if len(session) <= MAX_NAME else _digest(session)
        mcp_session = loose_text(span.attributes.get(keys.MCP_SESSION))
        return _digest(mcp_session) if mcp_session else span.trace_id

    def has_outer(self, span: Span, call: ToolCall) -> bool:
        """Whether an ancestor tells the same call, such as an agent framework above an MCP client.

        The same is a call of the same tool, unless the two have different ids or arguments, or an
        agent of its own stands between them.
        """
        inner = _Told(None, None, begins_agent=False, call=call)
        for told in self._above(span):
            if told.call is not None and _same(told, told.call, inner, call):
                return True
            if told.begins_agent:
                return False
        return False

    def _above(self, span: Span) -> Iterator[_Told]:
        key = span.trace_id + span.span_id
        for _ in range(_MAX_CLIMB):
            parent = self._parents.get(key)
            if parent is None:
                return
            key = parent
            if (told := self._told.get(key)) is not None:
                yield told


def _same(above: _Told, outer: ToolCall, below: _Told, inner: ToolCall) -> bool:
    if outer.name != inner.name:
        return False
    if outer.call_id and inner.call_id:
        return outer.call_id == inner.call_id
    if outer.arguments is None or inner.arguments is None:
        return True
    above.arguments = above.arguments or _arguments_of(outer)
    below.arguments = below.arguments or _arguments_of(inner)
    return above.arguments == below.arguments or _UNREADABLE in {above.arguments, below.arguments}


def _arguments_of(call: ToolCall) -> str:
    """Short text that is the same for the same arguments, however these are written."""
    try:
        value = arguments_of(call.arguments, named=call.named_arguments)
        return _digest(json.dumps(value, sort_keys=True, default=repr))
    except (BadSpanError, RecursionError, ValueError):  # JSON has integers Python does not write
        return _UNREADABLE


def _agent_in(attributes: Attributes) -> str | None:
    return loose_text(attributes.get(keys.AGENT_NAME)) or loose_text(attributes.get(keys.OI_AGENT))


def _session_in(attributes: Attributes) -> str | None:
    return loose_text(attributes.get(keys.CONVERSATION)) or loose_text(
        attributes.get(keys.OI_SESSION)
    )


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()[:_DIGEST_CHARS]
