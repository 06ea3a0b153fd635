"""Methods: what a tool of several jobs is told to do by one of its parameters. Pure."""

import re

from aftercall.json_values import JsonObject
from aftercall.models import Tool
from retrieval.health.tool_health import MAX_METHOD_SESSIONS, KnownHealth, MethodTallies

METHOD_PARAMETERS = ("method", "action", "operation", "op", "command")
"""Names of a parameter that says which method is called; the first that fits counts."""

_IDENTIFIER = re.compile(r"[A-Za-z][\w.-]{0,63}", re.ASCII)
"""What a method's name looks like; a whole command line is none, nor is a sentence."""

_MAX_ENUM = 200


def method_of(parameters: JsonObject) -> tuple[str, str] | None:
    """The parameter that says which method is called, and the method; None without one."""
    for name in METHOD_PARAMETERS:
        value = parameters.get(name)
        if isinstance(value, str) and _IDENTIFIER.fullmatch(value):
            return name, value
    return None


def is_earlier(name: str, than: str | None) -> bool:
    """Whether a method parameter counts before another, so that order makes no difference."""
    return than is None or METHOD_PARAMETERS.index(name) < METHOD_PARAMETERS.index(than)


def stated_methods(tool: Tool | None) -> frozenset[str]:
    """The methods that a tool's registered schema names, in the `enum` of a method parameter."""
    properties = (tool.input_schema or {}).get("properties") if tool else None
    if not isinstance(properties, dict):
        return frozenset()
    found: set[str] = set()
    for name in METHOD_PARAMETERS:
        schema = properties.get(name)
        values = schema.get("enum") if isinstance(schema, dict) else None
        if isinstance(values, list):
            found.update(each for each in values[:_MAX_ENUM] if isinstance(each, str))
    return frozenset(found)


def common_methods(known: KnownHealth, stated: frozenset[str]) -> dict[str, MethodTallies]:
    """Methods whose names may be told to anyone, most called first.

    A name is common knowledge when the tool's schema states it or several sessions used it;
    what one session alone sent may be its own data.
    """
    told = {
        name: tallies
        for name, tallies in known.methods.items()
        if name in stated or len(tallies.sessions) >= MAX_METHOD_SESSIONS
    }
    return dict(sorted(told.items(), key=lambda item: (-_calls(item[1]), item[0])))


def _calls(tallies: MethodTallies) -> int:
    return tallies.successes.count + tallies.failures.count
