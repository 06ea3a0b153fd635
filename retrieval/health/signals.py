"""What one call says of a tool's health: its method, broken contracts, a weak success. Pure.

Broken contracts are read from `error.details`, one violation at its top or several under
`violations`: `path`, `mismatch` and `expected`. What was delivered instead (`actual`) is the
caller's data and is left.

A weak success is an answer that is empty, or that the tool itself calls weak; it stays a success.
An answer is empty when there is nothing in it: an empty array, object or text, or an object whose
payload is empty, whatever envelope is around it (`{"items": [], "total": 0}`). Null is not: a call
whose result was not recorded has it, and so has one of a tool that returns nothing.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from aftercall.json_values import JsonObject, JsonValue, bounded_json, canonical_json
from aftercall.models import Execution, Tool
from retrieval.health.record import (
    MAX_METHOD_SESSIONS,
    MAX_VIOLATIONS,
    Broken,
    KnownHealth,
    MethodTallies,
    Tally,
)

METHOD_PARAMETERS = ("method", "action", "operation", "op", "command")
"""Names of a parameter that says which method is called; the first that fits counts."""
_IDENTIFIER = re.compile(r"[A-Za-z][\w.-]{0,63}", re.ASCII)
"""What a method's name looks like; a whole command line is none, nor is a sentence."""
_MAX_ENUM = 200
_MAX_PART = 120
"""Characters of a path, a mismatch or an expectation."""
_MAX_SEGMENTS = 20
_INDEX = re.compile(r"(?<=/)\d+(?=/|$)|(?<=\[)\d+(?=\])")
"""A place in an array: the third item breaks a contract as the fourth does."""
_DECLARED = frozenset({
    "degraded", "empty", "fallback", "incomplete", "low_confidence", "low_quality", "low_utility",
    "no_data", "no_match", "no_matches", "no_parse", "no_result", "no_results", "partial",
    "partial_result", "partial_results", "partial_success", "partially_succeeded", "weak",
})  # fmt: skip
"""A tool's own words for a weak success, without a `success_` before (seed 000 and the issue)."""
_SUCCESS = ("success_", "succeeded_", "ok_", "completed_", "done_")
_MAX_WORD = 64
_MAX_NAME = 60
_ENVELOPE = frozenset({
    "_meta", "code", "count", "cursor", "duration", "duration_ms", "elapsed_ms", "error", "errors",
    "has_more", "hasmore", "is_error", "iserror", "limit", "message", "meta", "metadata", "next",
    "next_cursor", "next_page", "nextcursor", "offset", "ok", "page", "page_size", "pagesize",
    "pagination", "query", "status", "success", "took", "took_ms", "total", "total_count",
    "total_results", "totalcount", "truncated", "type", "warnings",
})  # fmt: skip
"""Members that say how an answer came about, whatever it holds; matched in lower case."""
_EMPTY_JSON = frozenset({"[]", "{}", '""'})
"""What a tool that answers in text says for an empty answer."""
_MAX_DEPTH = 4


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
    told = [
        (name, tallies)
        for name, tallies in known.methods.items()
        if name in stated or len(tallies.sessions) >= MAX_METHOD_SESSIONS
    ]
    return dict(sorted(told, key=lambda item: (-item[1].calls, item[0])))


class Breach(NamedTuple):
    """One way in which a result broke a contract."""

    path: str
    mismatch: str
    expected: str


def breaches_of(details: JsonObject) -> list[Breach]:
    """What the details of a `contract_violation` say, each once; empty where they say nothing."""
    several = details.get("violations")
    listed = several if isinstance(several, list) else []
    found: dict[Breach, None] = {}
    for each in [details, *listed[:MAX_VIOLATIONS]]:
        if isinstance(each, Mapping):
            mismatch = _words(each.get("mismatch"))
            path = _INDEX.sub("*", _path(each.get("path")))
            if mismatch or path:
                breach = Breach(path[:_MAX_PART], mismatch, _words(each.get("expected")))
                found[breach] = None
    return list(found)


def count_breach(known: list[Broken], breach: Breach, at: datetime) -> None:
    """Add one to the tallies, in place; of too many kinds the least heavy makes room."""
    for each in known:
        if (each.path, each.mismatch, each.expected) == breach:
            each.tally.add(at)
            return
    new = Broken(**breach._asdict(), tally=Tally())
    new.tally.add(at)
    if len(known) >= MAX_VIOLATIONS:
        now = max((each.tally.at for each in known if each.tally.at), default=at)
        known.remove(
            min(known, key=lambda each: (each.tally.weight_at(now), each.path, each.mismatch))
        )
    known.append(new)


def _path(value: JsonValue) -> str:
    """A JSON Pointer as it is; the parts of a path that came as an array, joined like one."""
    if isinstance(value, list):
        parts = (part for part in value[:_MAX_SEGMENTS] if isinstance(part, str | int))
        return "".join(f"/{str(part)[:_MAX_PART]}" for part in parts)
    return value[: 2 * _MAX_PART] if isinstance(value, str) else ""


def _words(value: JsonValue) -> str:
    if value is None:
        return ""
    bounded = bounded_json(value, max_chars=2 * _MAX_PART)
    text = bounded if isinstance(bounded, str) else canonical_json(bounded)
    return " ".join(text[: 2 * _MAX_PART].split())[:_MAX_PART]


def weakness_of(execution: Execution) -> str | None:
    """Why a success is weak, in words; None if it is not, or if it cannot be told.

    Failures are never weak successes.
    """
    if execution.outcome != "success":
        return None
    reasons = (_declared(execution), _emptiness(execution.result))
    return ", and ".join(reason for reason in reasons if reason) or None


def _declared(execution: Execution) -> str | None:
    """The tool's own word for it, of the outcome or of the result."""
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


def _emptiness(result: JsonValue) -> str | None:
    if result is None or not _is_empty(result, _MAX_DEPTH):
        return None
    if isinstance(result, str):
        return "the result is an empty text"
    if isinstance(result, list):
        return "the result is an empty list"
    payload = islice(_payload(result), 2) if isinstance(result, dict) else ()
    names = " and ".join(f"'{name[:_MAX_NAME]}'" for name, _ in payload)
    return f"there is nothing in {names}" if names else "the result is an empty object"


def _is_empty(value: JsonValue, depth: int) -> bool:
    """Whether there is nothing in a value; numbers, booleans and null are something."""
    if isinstance(value, str):
        return not value or value.isspace() or value in _EMPTY_JSON
    if not isinstance(value, dict | list) or not value:
        return isinstance(value, dict | list)
    if isinstance(value, list) or depth <= 0:
        return False
    has_payload = any(True for _ in _payload(value))
    return has_payload and all(_is_empty(each, depth - 1) for _, each in _payload(value))


def _payload(value: dict[str, JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    """The members that are no envelope."""
    return ((name, each) for name, each in value.items() if name.casefold() not in _ENVELOPE)
