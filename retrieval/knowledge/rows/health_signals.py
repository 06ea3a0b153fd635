"""What one call states of a tool's health: its method, a weak success. Pure.

A weak success is an answer that is empty, that holds an error, or that the tool itself calls weak;
it stays a success.
An answer is empty when there is nothing in it: an empty array, object or text, or an object whose
payload is empty, whatever envelope is around it (`{"items": [], "total": 0}`). Null is not: a call
whose result was not recorded has it, and so has one of a tool that returns nothing.
"""

import re
from itertools import islice

from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import Execution, Tool
from retrieval.knowledge.rows.health import MAX_METHOD_SESSIONS, KnownHealth, MethodTallies
from retrieval.knowledge.rows.results import error_within, is_empty, walk_payload
from retrieval.knowledge.values.parameters import view_of_schema

METHOD_PARAMETERS = ("method", "action", "operation", "op", "command")
"""Names of a parameter that states which method is called; the first that fits counts."""
_IDENTIFIER = re.compile(r"[A-Za-z][\w.-]{0,63}", re.ASCII)
"""What a method's name looks like; a whole command line or a sentence is no name."""
_MAX_ENUM = 200
_DECLARED = frozenset({
    "degraded", "empty", "fallback", "incomplete", "low_confidence", "low_quality", "low_utility",
    "no_data", "no_match", "no_matches", "no_parse", "no_result", "no_results", "partial",
    "partial_result", "partial_results", "partial_success", "partially_succeeded", "weak",
})  # fmt: skip
"""A tool's own words for a weak success, without a `success_` before (seed 000 and the issue)."""
_SUCCESS = ("success_", "succeeded_", "ok_", "completed_", "done_")
_MAX_WORD = 64
_MAX_NAME = 60


def method_of(parameters: JsonObject) -> tuple[str, str] | None:
    """Return the parameter that states which method is called, and the method; None without one."""
    if parameters.keys().isdisjoint(METHOD_PARAMETERS):  # as most are
        return None
    for name in METHOD_PARAMETERS:
        value = parameters.get(name)
        if isinstance(value, str) and _IDENTIFIER.fullmatch(value):
            return name, value
    return None


def is_earlier(name: str, than: str | None) -> bool:
    """Return whether one method parameter counts before another, in any order of input."""
    return than is None or METHOD_PARAMETERS.index(name) < METHOD_PARAMETERS.index(than)


def stated_methods(tool: Tool | None) -> frozenset[str]:
    """Return the methods that a tool's schema names in the `enum` of a method parameter."""
    views = view_of_schema((tool.input_schema if tool else None) or {}).parameters
    listed = (views[name].allowed for name in METHOD_PARAMETERS if name in views)
    return frozenset(
        each for values in listed for each in values[:_MAX_ENUM] if isinstance(each, str)
    )


def common_methods(known: KnownHealth, stated: frozenset[str]) -> dict[str, MethodTallies]:
    """Methods that anyone may hear of, as the schema or several sessions name them, by calls."""
    told = [
        (name, tallies)
        for name, tallies in known.methods.items()
        if name in stated or len(tallies.sessions) >= MAX_METHOD_SESSIONS
    ]
    return dict(sorted(told, key=lambda item: (-item[1].calls, item[0])))


def weakness_of(execution: Execution) -> str | None:
    """Why a success is weak, in words; None for a failure, if it is not, or cannot be shown."""
    if execution.outcome != "success":
        return None
    result = execution.result
    error = "the result holds an error" if error_within(result) is not None else None
    reasons = (_declared_status(execution), error, _describe_emptiness(result))
    return ", and ".join(reason for reason in reasons if reason) or None


def _declared_status(execution: Execution) -> str | None:
    words: list[JsonValue] = [execution.result_status]
    if isinstance(execution.result, dict):
        words.append(execution.result.get("status"))
    for word in words:
        if isinstance(word, str) and len(word) <= _MAX_WORD:
            plain = word.strip().casefold().replace("-", "_").replace(" ", "_")
            for prefix in _SUCCESS:
                plain = plain.removeprefix(prefix)
            if plain in _DECLARED:
                return f"the tool calls it '{word}'"
    return None


def _describe_emptiness(result: JsonValue) -> str | None:
    if result is None or not is_empty(result):
        return None
    if isinstance(result, str):
        return "the result is an empty text"
    if isinstance(result, list):
        return "the result is an empty list"
    payload = islice(walk_payload(result), 2) if isinstance(result, dict) else ()
    names = " and ".join(f"'{name[:_MAX_NAME]}'" for name, _ in payload)
    if names:
        return f"there is nothing in {names}"
    return "the result is an empty object"
