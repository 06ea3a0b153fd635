"""Violations: in which ways a tool's results broke its contract, as far as their errors say. Pure.

Read from `error.details`, one violation at its top or several under `violations`: `path`,
`mismatch` and `expected`. What was delivered instead (`actual`) is the caller's data and is left.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from aftercall.bounded import bounded_json
from aftercall.json_values import JsonObject, JsonValue, canonical_json
from retrieval.health.tally import Tally
from retrieval.health.tool_health import MAX_VIOLATIONS, Violation

_MAX_PART = 120
"""Characters of a path, a mismatch or an expectation."""

_MAX_SEGMENTS = 20
_INDEX = re.compile(r"(?<=/)\d+(?=/|$)|(?<=\[)\d+(?=\])")
"""A place in an array: the third item breaks a contract as the fourth does."""


class Breach(NamedTuple):
    """One way in which a result broke a contract."""

    path: str
    mismatch: str
    expected: str


def breaches_of(details: JsonObject) -> list[Breach]:
    """What the details of a `contract_violation` say, each once; empty where they say nothing."""
    several = details.get("violations")
    listed = several if isinstance(several, list) else []
    found = dict.fromkeys(_breaches([details, *listed[:MAX_VIOLATIONS]]))
    return list(found)


def count_breach(known: list[Violation], breach: Breach, at: datetime) -> None:
    """Add one to the tallies, in place; of too many kinds the least heavy makes room."""
    for each in known:
        if (each.path, each.mismatch, each.expected) == breach:
            each.tally.add(at)
            return
    new = Violation(**breach._asdict(), tally=Tally())
    new.tally.add(at)
    if len(known) >= MAX_VIOLATIONS:
        now = max((each.tally.at for each in known if each.tally.at), default=at)
        known.remove(
            min(known, key=lambda each: (each.tally.weight_at(now), each.path, each.mismatch))
        )
    known.append(new)


def _breaches(said: list[JsonValue]) -> Iterator[Breach]:
    for each in said:
        if isinstance(each, Mapping):
            mismatch = _words(each.get("mismatch"))
            path = _INDEX.sub("*", _path(each.get("path")))
            if mismatch or path:
                yield Breach(path[:_MAX_PART], mismatch, _words(each.get("expected")))


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
