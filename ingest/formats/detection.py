"""Which format a file has, by how it begins. Pure.

What the first values are decides, never the file's name. A value that is cut off (a long line, a
document over many lines) is looked at as far as it goes.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pydantic_core import from_json

from ingest.formats.mcp_messages import is_message, is_pair, message_inside
from ingest.formats.observations import observed_kind
from ingest.formats.rules import read_forms
from ingest.formats.transcripts import is_like_transcript, is_transcript

Format: TypeAlias = Literal["executions", "otlp", "langsmith", "langfuse", "mcp", "transcripts"]
Shape: TypeAlias = Literal["lines", "document", "text"]
LOOK_BYTES = 64 * 1024
"""Of the beginning. Desktop clients write some 4 KiB about themselves before the first message."""
_LINES = 50
_ELEMENTS = 20
_OF_OTLP = frozenset({"resourceSpans", "resourceLogs", "resourceMetrics"})
_OF_AN_EXECUTION = frozenset({"executionId", "execution_id", "toolName", "tool_name"})
_KEYS = 8
_OF_A_LOG = re.compile(rb'Message from (?:client|server): |\{.{0,1000}"jsonrpc"', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Detection:
    """How a file is read."""

    format: Format
    shape: Shape
    is_known: bool = field(default=True, compare=False)
    """Whether the beginning, or a person, states so; else it is taken for executions."""


def look_at(beginning: bytes, wanted: Format | None = None) -> Detection:
    """Format and shape of a file that begins so; executions where no format shows."""
    text = beginning.removeprefix(b"\xef\xbb\xbf").lstrip()
    text = text.decode("utf-8", "ignore").encode()  # the cut may lie within a character
    lines = text.split(b"\n", _LINES)[:_LINES]
    if _is_document(lines):
        shown = wanted or _format_of(_begun_object(text))
        return Detection(shown or "executions", "document", is_known=shown is not None)
    is_marked = text[:2] == b"<|"  # as Harmony's texts begin
    if not wanted and is_marked and is_transcript(text.decode("utf-8", "ignore")):
        return Detection("transcripts", "text")
    found = [
        each for line in lines if (each := _format_of(_begun_object(line)) or _format_of_log(line))
    ]
    shown = wanted or next(iter(found), None)
    return Detection(shown or "executions", "lines", is_known=shown is not None)


def describe_contents(beginning: bytes) -> str:
    """Return what a file that begins so holds, for someone whose file could not be read."""
    look = look_at(beginning)
    if not (text := beginning.removeprefix(b"\xef\xbb\xbf").strip()):
        return "nothing"
    begun = _begun_object(text if look.shape == "document" else text.split(b"\n", 1)[0])
    if (each := next(_first_objects(begun), None)) is None:
        return "JSON without objects" if begun is not None else "text that is no JSON"
    keys = [json.dumps(key[:40]) for key in list(each)[:_KEYS]]
    return f"JSON {'objects' if look.shape == 'lines' else 'in one piece'} with {', '.join(keys)}"


def _is_document(lines: list[bytes]) -> bool:
    """Return whether one value goes over many lines.

    Else a first line that breaks off is damaged.
    """
    first = lines[0].strip()
    if len(lines) == 1 or first[:1] not in (b"{", b"[") or first[-1:] not in (b"{", b"[", b","):
        return False
    return not any(line[:1] == b"{" and bool(_whole_object(line)) for line in lines[1:])


def _format_of(value: object) -> Format | None:
    return next((kind for each in _first_objects(value) if (kind := _format_of_object(each))), None)


def _format_of_object(each: dict[str, Any]) -> Format | None:
    if _OF_AN_EXECUTION & each.keys() and read_forms().rule_of(each) is None:
        return "executions"
    if _OF_OTLP & each.keys():
        return "otlp"
    if (kind := observed_kind(each)) is not None:
        return kind
    if is_message(each) or is_pair(each) or message_inside(each) is not None:
        return "mcp"
    return "transcripts" if is_like_transcript(each) or is_transcript(each) else None


def _first_objects(value: object, depth: int = 2) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    elif isinstance(value, list) and depth:
        for each in value[:_ELEMENTS]:
            yield from _first_objects(each, depth - 1)


def _format_of_log(line: bytes) -> Format | None:
    return "mcp" if _OF_A_LOG.search(line) else None


def _whole_object(line: bytes) -> object:
    try:
        return from_json(line)
    except ValueError:
        return None


def _begun_object(text: bytes) -> object:
    if text.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        return from_json(text, allow_partial="trailing-strings")
    except ValueError:
        return None
