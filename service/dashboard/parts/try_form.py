"""The fields of *Try it*."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from mongo.records import ToolKey
from service.dashboard.parts.text_form import Field
from service.dashboard.shown.asking import ASKER, MAX_CHARS, PASTED, Fault

_MAX_LISTED: Final = 500
"""Names that a field proposes; a browser shows those that fit what is typed."""

_MAX_NAME: Final = 300
"""Somewhat more than the wire takes, so that it is the wire that says what it takes."""

_CUT: Final = MAX_CHARS + 1
"""One more than is taken, so that what a browser has cut off is not taken for the whole."""


def fields_for(known: Iterable[ToolKey]) -> tuple[Field, ...]:
    """The fields of a failed call, which propose the tools that are known."""
    tools = list(known)
    names = sorted({each.tool_name for each in tools})[:_MAX_LISTED]
    servers = sorted({each.server_name for each in tools if each.server_name})[:_MAX_LISTED]
    return (
        Field(
            "tool",
            "Tool",
            _MAX_NAME,
            choices=tuple(names),
            fills=("server", _only_servers(tools)),
        ),
        Field("server", "Server (optional)", _MAX_NAME, choices=tuple(servers)),
        Field("agent", f"Agent ({ASKER} when left out)", _MAX_NAME),
        Field("message", "Error message", _CUT, rows=2),
        Field("error_type", "Error type (optional)", _MAX_NAME),
        Field("error_code", "Error code (optional)", _MAX_NAME),
        Field("parameters", "Parameters, a JSON object", _CUT, rows=5),
        Field("context", "What the agent was trying to do (optional)", _CUT, rows=2),
    )


PASTE_FIELDS: Final = (
    Field(
        PASTED,
        "A recorded execution, a failed call, or a body of POST /suggest, as JSON",
        _CUT,
        rows=8,
    ),
)


def by_field(faults: Sequence[Fault]) -> Mapping[str, str]:
    """What is wrong with each field, in one text."""
    told: dict[str, list[str]] = {}
    for each in faults:
        told.setdefault(each.field, []).append(each.message)
    return {name: "; ".join(messages) for name, messages in told.items()}


def _only_servers(tools: Iterable[ToolKey]) -> tuple[tuple[str, str], ...]:
    """Tools that one server alone has, with it."""
    servers: dict[str, set[str | None]] = {}
    for each in tools:
        servers.setdefault(each.tool_name, set()).add(each.server_name)
    return tuple(
        (name, server)
        for name, found in sorted(servers.items())
        if len(found) == 1 and (server := next(iter(found))) is not None
    )
