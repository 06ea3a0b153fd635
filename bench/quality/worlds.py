"""Worlds that judge what a call does: tools, right calls in sessions, and a verdict on others.

BFCL's development APIs and tau2's shop are executed. GitHub's tools and Seal-Tools have schemas
alone: there a call is right when it equals the right one, in what GitHub's API reads.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from bench.quality import bfcl, github, retail, seal
from bench.quality.datasets import left_out
from bench.quality.sessions import GoldCall, Session
from bench.quality.trial import Json, Verdict
from retrieval.knowledge.values.scalars import same_value

NAMES = ("BFCL", "GitHub", "Seal-Tools", "Retail")


class Tools(Protocol):
    """Right calls of tools, and their schemas."""

    def sessions(self) -> list[Session]:
        """Return all sessions, the same each time."""
        ...

    def schema_of(self, call: GoldCall) -> Json | None:
        """Return the tool's input schema."""
        ...


@dataclass(frozen=True, slots=True)
class World:
    """Tools, and what parameters do in the place of a right call's."""

    name: str
    tools: Tools
    verdict: Callable[[GoldCall, Json], Verdict]


def worlds() -> list[World]:
    """Return those that are installed."""
    found = []
    if bfcl.available():
        found.append(World("BFCL", bfcl.Bfcl(), bfcl.verdict))
    if github.available():
        found.append(World("GitHub", github.GitHub(), _github_verdict))
    if seal.available():
        found.append(World("Seal-Tools", seal.Seal(), seal.verdict))
    if retail.available():
        found.append(World("Retail", retail.Retail(), retail.verdict))
    return found


def worlds_left_out() -> list[str]:
    """Return a line for each world that is not installed."""
    there = {world.name for world in worlds()}
    return [left_out(name.lower()) for name in NAMES if name not in there]


def world_of(name: str) -> World:
    """Return a world by its name.

    Raises:
        SystemExit: the world is unknown, or it is not installed; the message says what to do.
    """
    for world in worlds():
        if world.name == name:
            return world
    raise SystemExit(left_out(name.lower()) if name in NAMES else f"a world of {NAMES}, not {name}")


_FORMS: tuple[tuple[frozenset[str], re.Pattern[str]], ...] = (
    (frozenset(("since", "until", "before", "lastReadAt")),
     re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?")),
    (frozenset(("start_date", "target_date", "date_value")), re.compile(r"\d{4}-\d\d-\d\d")),
    (frozenset(("owner", "repo")), re.compile("|".join(github.PLACES))),
)  # fmt: skip


def _is_read(value: Any) -> bool:
    """Return whether GitHub's API takes values that the schemas let through."""
    if isinstance(value, list):
        return all(map(_is_read, value))
    return not isinstance(value, dict) or all(
        _is_read(each)
        and not any(
            name in names and isinstance(each, str) and not form.fullmatch(each)
            for names, form in _FORMS
        )
        for name, each in value.items()
    )


def _github_verdict(call: GoldCall, parameters: Json) -> Verdict:
    if github.error_of(call.tool, parameters) or not _is_read(parameters):
        return "fails"
    same = same_value(read_texts(parameters), read_texts(call.parameters))
    return "right" if same else "wrong success"


def read_texts(value: Any) -> Any:
    """Return the value with JSON texts read: spaces in one are not what is meant."""
    if isinstance(value, dict):
        return {name: read_texts(each) for name, each in value.items()}
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value
