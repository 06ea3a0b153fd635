"""What an attribute's value means: a name, the arguments of a call, its result."""

import json
import re
from contextlib import suppress
from typing import Any, Final

from pydantic_core import from_json

from aftercall.json_values import (
    MAX_INTEGER,
    MAX_RESULT_CHARS,
    JsonValue,
    bounded_json,
    bounded_text,
    clean_text,
)
from ingest.formats.otlp.span import Unusable

_TOKEN = re.compile(
    r"""(?P<text>'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")"""
    r"""|(?P<word>True|False|None)\b"""
    r"""|(?P<number>-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)"""
    r"""|(?P<mark>[{}\[\]:,])"""
    r"""|\s+""",
    re.ASCII | re.DOTALL,
)

_ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|.)", re.ASCII | re.DOTALL)
_WORDS = {"True": "true", "False": "false", "None": "null"}
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_LAST_CODE_POINT = 0x10FFFF

MAX_NAME: Final = 256
"""As on the wire (`aftercall.models.base.Name`)."""

UNNAMED: Final = "input"
"""The parameter that a tool's one unnamed argument is recorded under, as LangChain calls it."""

_MAX_PARSED_RESULT = 16 * MAX_RESULT_CHARS
"""Longer results in JSON are kept as text: they are cut to a fraction anyway."""

_MAX_TEXT = 4 * 1024 * 1024

_MAX_BRACKETS = 100_000
"""Of arguments and schemas in JSON text: three bytes of it may be 72 in memory."""

_MAX_PYTHON_TEXT = 256 * 1024
_KINDS: Final = {str: "text", bytes: "bytes", bool: "a boolean", list: "a list", dict: "an object"}


class BadSpanError(Exception):
    """The span is a call of a tool and cannot be read; the message says why and what to do."""


def json_of_python(text: str) -> Any:
    """The value of which `text` is the `repr`: dicts, lists, texts, numbers, booleans and None.

    LangChain hands a tool's input to its tracers as `str(dict)`. Python's own reader of literals is
    a compiler: it warns on stderr about what it finds, and its memory follows no bound. This is one
    pass over tokens.

    Raises:
        ValueError: it is none.
        RecursionError: it is nested too deep.
    """
    parts: list[str] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError("no repr of plain values")
        if token["text"]:
            parts.append(json.dumps(_ESCAPE.sub(_unescaped, token["text"][1:-1])))
        elif token["word"]:
            parts.append(_WORDS[token["word"]])
        else:
            parts.append(token[0])
        at = token.end()
    return json.loads("".join(parts))


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    if len(code) == 1:
        return _ESCAPED.get(code, code)
    point = int(code[1:], 16)
    return chr(point) if point <= _LAST_CODE_POINT else "�"


def kind_of(value: object) -> str:
    """What a value is, in words for people."""
    return _KINDS.get(type(value), "a number")


def text_of(value: object, key: str) -> str | None:
    """A value that has to be text; None for nothing, and for the empty text.

    Raises:
        BadSpanError: it is something else.
    """
    if value is None or isinstance(value, str):
        return clean_text(value) if value else None
    if isinstance(value, Unusable):
        raise BadSpanError(f"{key} {value.problem}")
    raise BadSpanError(f"{key} is {kind_of(value)}; it must be text")


def loose_text(value: object) -> str | None:
    """A value that may be of any type and had better be text: a whole number will do, too."""
    if isinstance(value, str):
        return clean_text(value) or None
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > MAX_INTEGER:
        return None  # Python does not even write integers of thousands of digits
    return str(value)


def bounded_name(value: str) -> str:
    """A name that the wire takes."""
    return bounded_text(value, MAX_NAME)


def arguments_of(value: object, *, named: bool) -> dict[str, Any]:
    """The arguments of a call: an object, its text in JSON, or (from Python) its `repr`.

    Args:
        value: as the span has it.
        named: whether arguments always have names. Where not, any other text is the one argument of
            a tool that takes its input as it is; it is called `input`.

    Raises:
        BadSpanError: anything else.
    """
    if isinstance(value, bytes):
        value = _decoded(value)
    if isinstance(value, dict):
        return value
    if isinstance(value, str):
        text = value.strip()
        if text in {"", "null"}:
            return {}
        if text.startswith("{"):
            return _object_in(text)
        if not named:
            return {UNNAMED: value}
    if isinstance(value, Unusable):
        raise BadSpanError(f"the arguments: the attribute {value.problem}")
    raise BadSpanError(f"the arguments are {kind_of(value)}; they must be a JSON object")


def _is_bounded(text: str) -> bool:
    return len(text) <= _MAX_TEXT and text.count("{") + text.count("[") <= _MAX_BRACKETS


def _object_in(text: str) -> dict[str, Any]:
    if not _is_bounded(text):
        raise BadSpanError(
            f"the arguments are larger than {_MAX_TEXT:,} characters, or hold more than "
            f"{_MAX_BRACKETS:,} objects and lists"
        )
    for read in (from_json, json.loads, json_of_python):
        if read is json_of_python and len(text) > _MAX_PYTHON_TEXT:
            break
        try:
            value = read(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    raise BadSpanError(
        "the arguments begin as a JSON object and are none: cut off, perhaps; "
        "raise OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT where they are sent"
    )


def result_of(value: object) -> JsonValue:
    """A result, bounded: objects and lists in JSON as such, all other text as it is."""
    if isinstance(value, bytes):
        value = _decoded(value)
    if isinstance(value, Unusable | bytes):
        return f"<{kind_of(value) if isinstance(value, bytes) else value.problem}>"
    if isinstance(value, str) and value[:1] in {"{", "["} and len(value) <= _MAX_PARSED_RESULT:
        with suppress(ValueError):
            value = from_json(value)
    return bounded_json(value)


def schema_of(value: object) -> dict[str, Any] | None:
    """A JSON schema of an object; None for everything else, such as arguments in its place."""
    if isinstance(value, str) and value[:1] == "{" and _is_bounded(value):
        try:
            value = from_json(value)
        except ValueError:
            return None
    if isinstance(value, dict) and value.get("type") == "object":
        return value if isinstance(value.get("properties"), dict) else None
    return None


def words_of(result: JsonValue) -> str | None:
    """The words in a failed call's result: MCP's text contents, or the text that it is."""
    content = result.get("content") if isinstance(result, dict) else result
    if isinstance(content, str):
        return content or None
    listed = content if isinstance(content, list) else []
    texts = [item.get("text") for item in listed if isinstance(item, dict)]
    return "\n".join(text for text in texts if isinstance(text, str)) or None


def _decoded(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
