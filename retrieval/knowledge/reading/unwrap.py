"""Unwrapping the text of an error: its complaints, each with the place that the text gives.

What servers put before complaints, what stands between two of them and how a place is written are
data (`dialects.toml`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from aftercall.redaction import REDACTED
from retrieval import compiled, read_word_table
from retrieval.knowledge.values.parameters import EVERY, Path

_TABLE = read_word_table("knowledge/reading/dialects.toml")
_STARTS = re.compile("|".join(_TABLE["unwrap"]["starts"]), re.IGNORECASE)
_BETWEEN = re.compile(_TABLE["unwrap"]["between"])
_PLACES: list[dict[str, Any]] = _TABLE["places"]
_POSITIONS: list[dict[str, str]] = _TABLE["positions"]
_OF_ARGUMENTS = re.compile(r"validat|arguments|parameters", re.IGNORECASE)
_MAX_STARTS = 8
_MAX_PARTS = 40
_STEP = re.compile(r"\[['\"]([^'\"\]]*)['\"]\]|\[(\d{1,6})\]|([^./\[\]]+)")
_IN_CHAIN = re.compile(r"\[\"([^\"]{1,200})\"\]|\[(\d{1,6})\]")
_ROOTS = frozenset({"$", "<root>", "data", "body", "arguments", "params"})


@dataclass(frozen=True, slots=True)
class Position:
    """Where a parser stopped in the text of a call: line and column, both from 1.

    A `line` of 0 states that `column` is an offset, and a `column` of 0 that only the line is
    known.
    """

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Complaint:
    """One complaint of an error. `at` is the place as the text spells it.

    `whole` has the words that say the place, too. A place `is_weak` if it may be another word.
    """

    text: str
    whole: str
    at: Path = ()
    is_located: bool = False
    is_weak: bool = False
    position: Position | None = None


def complaints_of(text: str) -> list[Complaint]:
    """Split a text into its complaints; one that states no place stays whole."""
    bare = _without_starts(text)
    is_list = _OF_ARGUMENTS.search(text[: len(text.strip()) - len(bare)]) is not None
    parts = [part for part in _BETWEEN.split(bare)[:_MAX_PARTS] if part.strip()]
    found = [_locate_complaint(_without_starts(part)) for part in parts]
    if any(each.is_located and not each.is_weak for each in found):
        return found
    are_located = [each.is_located for each in found]
    if is_list and any(are_located):
        return [replace(each, is_weak=False) for each in found]
    if len(found) > 1 and all(are_located):
        return found
    return [_locate_complaint(bare)]


def _without_starts(text: str) -> str:
    text = text.strip()
    for _ in range(_MAX_STARTS):
        start = _STARTS.match(text)
        if start is None:
            break
        text = text[start.end() :]
    return text


def _locate_complaint(whole: str) -> Complaint:
    position, text = _position_in(whole)
    for form in _PLACES:
        found = compiled(f"(?m){form['pattern']}").search(text)
        if found is None:
            continue
        groups = found.groupdict()
        rest = (text[: found.start()] + text[found.end() :]).strip()
        if rest.count("]") > rest.count("["):
            rest = rest.removesuffix("]")  # of the list of complaints
        at = _path_in(groups)
        is_weak = bool(form.get("weak"))
        return Complaint(rest, whole, at, is_located=True, is_weak=is_weak, position=position)
    return Complaint(text, whole, position=position)


def _position_in(text: str) -> tuple[Position | None, str]:
    for form in _POSITIONS:
        if found := compiled(f"(?im){form['pattern']}").search(text):
            groups = found.groupdict()
            at = Position(int(groups.get("line") or 0), int(groups.get("column") or 0))
            return at, f"{text[: found.start()].rstrip()}{text[found.end() :]}"
    return None, text


def _path_in(groups: dict[str, str | None]) -> Path:
    if chain := groups.get("chain"):
        return tuple(int(index) if index else key for key, index in _IN_CHAIN.findall(chain))
    at = read_steps(groups.get("at") or "")
    root = groups.get("root")
    if root and at[:1] != (root,):
        return (root, *at)
    return at


def read_steps(text: str) -> Path:
    """Return the steps of a place in any spelling: pointer, dotted, bracketed, of a schema."""
    if REDACTED.search(text):
        return ()
    if text.startswith("/") and "." in text:  # a pointer's names may have dots
        found = [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]
    else:
        found = ["".join(groups) for groups in _STEP.findall(text)]
    if found and found[0] in _ROOTS and len(found) + text.startswith("$") > 1:
        found = found[1:]
    if text in _ROOTS:
        return ()
    return tuple(_of_schema(found) if found[:1] == ["properties"] else map(_read_step, found))


def _read_step(text: str) -> str | int:
    if text.isdecimal() and len(text) < 7:
        return int(text)
    return text


def _of_schema(found: list[str]) -> Iterator[str | int]:
    """Yield the steps of a call for those of its schema: every item of a list for its `items`."""
    is_name = False
    for step in found:
        if is_name:
            yield step
        elif step == "items":
            yield EVERY
        is_name = not is_name and step == "properties"
