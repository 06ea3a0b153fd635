"""Arguments that came as a text: the object that they say, where that is no guess.

Model APIs hand a call's arguments over as a text. Mostly it is JSON; small models write it with
single quotes, a trailing comma, Python's literals, in a fence, or as JSON text of JSON text. What
is cut off is kept as it came: no one knows how it would go on.
"""

import ast
import json
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aftercall.json_values import (
    InvalidJsonValueError,
    JsonObject,
    JsonValue,
    check_json_object,
    json_or_none,
    read_json,
)
from aftercall.models.calls import ExecutionError
from aftercall.outcomes import ToolFailedError

MAX_ARGUMENTS = 64 * 1024
"""Characters of the text of a call's arguments that are read where it is no JSON."""
INVALID_ARGUMENTS = "InvalidArguments"
"""Type of the error of a call whose arguments are a text that states no object."""
READ_NOTE = "the arguments came as a text that is no JSON object, and were read as one"
_QUOTES = r"(?<!\\)\"(?:\\.|[^\"\\])*+\"|(?<!\\)'(?:\\.|[^'\\\n])*+'"
_QUOTED = re.compile(_QUOTES, re.DOTALL)
"""Possessive, and not from an escaped quote on: the time is linear in any text."""
_WHOLE = re.compile(r"[\]}\"'`]\s*\Z|\b(?:true|false|null|True|False|None)\s*\Z")
_WORD = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|\w+")
_NUMBER = re.compile(r"(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)")
_JSON_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\[bfnrt]")
_OWN_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\[^\"'\\/bfnrtu]")
"""An escape that JSON does not know."""
_FENCE = re.compile(r"```\w*\s*(.*?)\s*```", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"(?P<text>{_QUOTES})|,(?=\s*+[}}\]])", re.DOTALL)
_OPENING = re.compile(r"[\[{]")
_TWO_TEXTS = re.compile(r"\"\"\s*+\"\"")
_LITERALS = frozenset(("true", "false", "null", "none"))


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call, as an object if they are one or say one."""

    parameters: JsonObject | None
    """None where a text states no object; such a call is not made."""
    text: str | None = None
    """The text, where it is no JSON object; as it came."""

    @property
    def note(self) -> str:
        """Return what was repaired, in words; empty where nothing was."""
        if self.text is None or self.parameters is None:
            return ""
        return READ_NOTE

    def recorded_fields(self) -> dict[str, Any]:
        """Return the fields of an execution; where no object is stated, none is known."""
        is_read = self.parameters is not None
        return {
            "parameters": self.parameters or {},
            "parameters_known": is_read,
            "arguments_text": self.text,
        }


class UnreadableArgumentsError(ToolFailedError):
    """The arguments of a call are a text that states no object, so the call was not made."""

    def __init__(self) -> None:
        message = (
            "Invalid JSON in the arguments: they are cut off or say no object, and nothing is "
            "completed by a guess; send them again as one JSON object"
        )
        error = ExecutionError(type=INVALID_ARGUMENTS, message=message, code="-32602")
        super().__init__(error, ran=False)


def arguments_of(given: JsonObject | str) -> Arguments:
    """Return the arguments that an object or a text states; blank text is a call without any."""
    if not isinstance(given, str):
        return Arguments(given)
    if not given.strip():
        return Arguments({})
    value = json_or_none(given)
    if isinstance(value, dict) and _is_json(value):
        return Arguments(value)
    return Arguments(read_arguments(given), given)


def read_arguments(text: str, *, unclosed: bool = False) -> JsonObject | None:
    """Return the object that the text of a call's arguments states, however loosely it is written.

    None where it states none, where it is cut off, and where the object would not hold the words of
    the text, those and no others: nothing is completed by a guess, and nothing is lost. With
    `unclosed`, brackets may be missing behind a whole last value: for a suggestion, not for a call.
    """
    for _ in range(3):  # JSON text, perhaps of JSON text
        value = json_or_none(text)
        if not isinstance(value, str):
            break
        text = value
    if isinstance(value, dict):
        if _is_json(value):
            return value
        return None
    if len(text) > MAX_ARGUMENTS or is_cut_off(text, unclosed=unclosed):
        return None
    exact = _read_exactly(text)
    found = exact if exact is not None else _read_loosely(text)
    if found is not None and _is_json(found):
        return found
    return None


def _read_exactly(text: str) -> JsonObject | None:
    """Read JSON but for a fence, commas before a bracket and line breaks in texts; or Python."""
    fenced = _FENCE.fullmatch(text.strip())
    bare = fenced[1] if fenced else text.strip()
    without_commas = _TRAILING_COMMA.sub(lambda found: found["text"] or "", bare)
    with suppress(ValueError, RecursionError):
        value = read_json(without_commas, strict=False)
        if isinstance(value, dict):
            return value
        return None
    with suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        with warnings.catch_warnings(action="error"):  # of escapes that Python does not know
            value = json.loads(json.dumps(ast.literal_eval(bare)))
        is_joined = _TWO_TEXTS.search(_QUOTED.sub('""', bare))  # `"a" "b"` is one text in Python
        if isinstance(value, dict) and not is_joined:
            return value
        return None
    return None


def _read_loosely(text: str) -> JsonObject | None:
    if _OWN_ESCAPE.search(text) and _JSON_ESCAPE.search(text):
        return None  # `C:\Users\new`: a line break, or none?
    # Not at the top: most calls never need it.
    import json_repair  # noqa: PLC0415

    try:
        found: Any = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError):  # such as brackets nested a thousand deep
        return None
    if not isinstance(found, dict) or not found or not _is_json(found):
        return None
    is_whole = is_in_text(found, text) and _is_all_of(text, found) and _has_blanks(found, text)
    if is_whole and _has_brackets(found, text):
        return found
    return None


def is_cut_off(text: str, *, unclosed: bool = False) -> bool:
    """Return whether a text breaks off: brackets or a quote are open at its end.

    With `unclosed`, only where no whole value stands before the open brackets.
    """
    bare = _QUOTED.sub('""', text)
    opened = sum(map(bare.count, "[{")) - sum(map(bare.count, "]}"))
    in_quotes = bare.count('"') % 2 > 0
    if not unclosed:
        return opened > 0 or in_quotes or bare.count("'") % 2 > 0
    return opened > 0 and (_WHOLE.search(bare) is None or in_quotes)


def is_in_text(found: JsonObject, text: str) -> bool:
    """Return whether every text in an object stands in the text that it was read from."""
    written = text + text.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")
    is_empty_there = '""' in text or "''" in text
    return all(
        (each in written or json.dumps(each)[1:-1].lower() in text.lower())
        and (bool(each) or is_empty_there)
        for each in _walk_texts(found)
    )


def _is_all_of(text: str, found: JsonObject) -> bool:
    """Return whether every word between the outer brackets of a text is in the object."""
    start = text.find("{")
    end = text.rfind("}")
    inner = text[max(start, 0) : end if end > start else len(text)]
    texts = " ".join(_walk_texts(found))
    kept = set(_WORD.findall(json.dumps(found, ensure_ascii=False))) | set(_WORD.findall(texts))
    kept.update(str(float(each)) for each in _NUMBER.findall(json.dumps(found)))
    plain = _ESCAPE.sub(" ", inner)
    # An escape may stand inside of a word, which is in two parts then.
    parts = " ".join(kept) if plain != inner else ""
    return all(_is_kept(word, kept) or word in parts for word in _WORD.findall(plain))


def _is_kept(word: str, kept: set[str]) -> bool:
    if word in kept or word.lower() in _LITERALS:
        return True
    return _NUMBER.fullmatch(word) is not None and str(float(word)) in kept


def _has_blanks(found: JsonObject, text: str) -> bool:
    """Return whether the texts of an object kept the blanks at their ends."""
    quoted = (each[0][1:-1] for each in _QUOTED.finditer(text))
    with_blanks = [each for each in quoted if each != each.strip() and each.strip()]
    texts = list(_walk_texts(found)) if with_blanks else []
    written = "\0".join([*texts, *(json.dumps(each)[1:-1] for each in texts)])
    return all(each in written for each in with_blanks)


def _has_brackets(found: JsonObject, text: str) -> bool:
    """Return whether an object has a container for each bracket of a text."""
    opened = _OPENING.findall(_QUOTED.sub('""', text))
    held = _OPENING.findall(_QUOTED.sub('""', json.dumps(found)))
    return opened == held


def _walk_texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _walk_texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _walk_texts(item)


def _is_json(value: dict[str, Any]) -> bool:
    try:
        check_json_object(value)
    except InvalidJsonValueError:
        return False
    return True
