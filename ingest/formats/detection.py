"""Which format a file has, by how it begins. Pure.

What the first values are decides, never the file's name. A value that is cut off (a long line, a
document over many lines) is looked at as far as it goes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pydantic_core import from_json

from ingest.formats.mcp_messages import inside, is_message, is_pair
from ingest.formats.openai_chat import is_turn

Format: TypeAlias = Literal["executions", "otlp", "openai", "mcp"]
Shape: TypeAlias = Literal["lines", "document"]
LOOK_BYTES = 64 * 1024
"""Of the beginning. Desktop clients write some 4 KiB about themselves before the first message."""
_LINES = 50
_ELEMENTS = 5
_OF_OTLP = frozenset(
    {
        "resourceSpans", "resource_spans", "resourceLogs", "resource_logs", "resourceMetrics",
        "resource_metrics",
    }
)  # fmt: skip
_OF_AN_EXECUTION = frozenset({"executionId", "execution_id", "toolName", "tool_name"})
_OF_A_CONVERSATION = frozenset({"messages", "choices", "input", "output", "data"})
_SAID = re.compile(rb"Message from (?:client|server): ")
_JSONRPC = re.compile(rb'\{.{0,1000}"jsonrpc"', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Detection:
    """What a beginning shows; `format` is None where it shows none."""

    format: Format | None
    shape: Shape


def look_at(beginning: bytes) -> Detection:
    """Format and shape of a file that begins so."""
    text = beginning.removeprefix(b"\xef\xbb\xbf").lstrip()
    text = text.decode("utf-8", "ignore").encode()  # the cut may lie within a character
    lines = text.split(b"\n", _LINES)[:_LINES]
    if _is_document(lines):
        return Detection(_format_of(_begun(text)), "document")
    for line in lines:
        found = _format_of(_begun(line)) or _format_of_log(line)
        if found is not None:
            return Detection(found, "lines")
    return Detection(None, "lines")


def _is_document(lines: list[bytes]) -> bool:
    """Whether one value goes over many lines; else a first line that breaks off is damaged."""
    first = lines[0].strip()
    if len(lines) == 1 or first[:1] not in (b"{", b"[") or first[-1:] not in (b"{", b"[", b","):
        return False
    return not any(line[:1] == b"{" and bool(_whole(line)) for line in lines[1:])


def _format_of(value: object) -> Format | None:
    for each in _first_objects(value):
        if _OF_AN_EXECUTION & each.keys():
            return "executions"
        if _OF_OTLP & each.keys():
            return "otlp"
        if is_message(each) or is_pair(each) or inside(each) is not None:
            return "mcp"
        if is_turn(each) or any(isinstance(each.get(key), list) for key in _OF_A_CONVERSATION):
            return "openai"
    return None


def _first_objects(value: object, depth: int = 2) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    elif isinstance(value, list) and depth:
        for each in value[:_ELEMENTS]:
            yield from _first_objects(each, depth - 1)


def _format_of_log(line: bytes) -> Format | None:
    return "mcp" if _SAID.search(line) or _JSONRPC.search(line) else None


def _whole(line: bytes) -> object:
    try:
        return from_json(line)
    except ValueError:
        return None


def _begun(text: bytes) -> object:
    if text.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        return from_json(text, allow_partial="trailing-strings")
    except ValueError:
        return None
