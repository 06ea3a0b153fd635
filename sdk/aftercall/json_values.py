"""JSON values: what may cross the wire, in canonical form, their hashes, and cut to a size."""

import hashlib
import json
import math
import re
import reprlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, cast

from pydantic import JsonValue as JsonValue  # noqa: PLC0414  # others take it from here

JsonObject: TypeAlias = dict[str, JsonValue]
MAX_DEPTH = 100
"""Deepest nesting accepted. Real tool arguments stay under 20; parsers break near 200."""
MAX_READ_DEPTH = 900
"""Deepest nesting that is read. Python itself stopped near 1,000 until 3.11; since 3.12 it reads
more than other code can walk through."""
MAX_INTEGER = 2**63 - 1
"""Largest integer accepted, either side of zero: what SQLite and BSON hold as an integer."""
MAX_NAME_CHARS = 256
"""Of a name, as the models have it."""
MAX_RESULT_CHARS = 4000
"""Of a recorded result. A result shows what a success looks like; it is never played back."""
_REPLACEMENT = "�"
_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
"""As JavaScript and Python's `json` write them."""
_SCALAR_COST = 4

# Bounded in width and depth, safe on cycles: repr() of a deep or huge value may not be.
_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 1000


class InvalidJsonValueError(ValueError):
    """A value that is not plain JSON. The message names where it is and what is wrong with it."""


def check_json_value(value: object) -> JsonValue:
    """Return `value` when it is plain JSON that every store can hold.

    The same object comes back, unless it holds subclasses (a `StrEnum`, a `defaultdict`, NumPy's
    `float64`): those become the plain types that they are.

    Raises:
        InvalidJsonValueError: for NaN and infinities, integers beyond 64 bits, NUL characters, lone
            surrogates, nesting deeper than `MAX_DEPTH`, keys that are not strings, and types
            outside JSON.
    """
    if _is_clean(value, MAX_DEPTH):
        return value  # type: ignore[return-value]  # _is_clean has just shown it
    _refuse_value(value, "", MAX_DEPTH)
    # All of it is JSON or a subclass of it: once through text it is in exact types.
    plain: JsonValue = json.loads(json.dumps(value))
    return plain


def check_json_object(value: object) -> JsonObject:
    """Check an object as `check_json_value` does; anything else is refused as well."""
    if not isinstance(value, dict):
        raise InvalidJsonValueError(f"must be a JSON object, not {_type_name(value)}")
    return check_json_value(value)  # type: ignore[return-value]  # an object stays an object


def check_text(value: str) -> str:
    """Return `value` when it is text that every store can hold: no NUL, no lone surrogate."""
    if problem := _text_problem(value):
        raise InvalidJsonValueError(problem)
    return value


def replace_unstorable(value: object) -> object:
    """Return a value with what no store can hold replaced by something that shows it.

    NUL and lone surrogates become U+FFFD, also in keys; NaN and infinities the texts `NaN`,
    `Infinity` and `-Infinity`; integers beyond 64 bits their digits as text. Anything that a tool
    stated is kept that way, and its call is not lost. A clean value is returned itself; types that
    JSON does not have and nesting deeper than `MAX_DEPTH` are left for `check_json_value` to
    refuse.
    """
    if _is_clean(value, MAX_DEPTH):
        return value
    return _clean_value(value, MAX_DEPTH)


def _clean_value(value: object, depth: int) -> object:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return _NOT_FINITE[repr(float(value))]
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        return _bounded_text(value)
    if depth > 0 and isinstance(value, dict):
        return {
            clean_text(key) if isinstance(key, str) else key: _clean_value(item, depth - 1)
            for key, item in value.items()
        }
    if depth > 0 and isinstance(value, list):
        return [_clean_value(item, depth - 1) for item in value]
    return value


def make_json_value(value: object) -> JsonValue:
    """Turn any Python value into a JSON value that `check_json_value` accepts.

    For recorders, which must not fail on what a tool returned: NaN and infinities become texts, NUL
    and lone surrogates U+FFFD; integers beyond 64 bits, what is too deep, holds itself or is of a
    foreign type becomes its (bounded) text.
    """
    return _make_value(value, MAX_DEPTH, (), [sys.maxsize])


def bounded_json(value: object, *, max_chars: int = MAX_RESULT_CHARS) -> JsonValue:
    """Return a JSON value of at most about `max_chars` characters, 20 levels deep.

    Long texts end in an ellipsis; of long arrays and objects the first members are kept. The work
    is bounded like the outcome, whatever the size of `value`. Never raises.
    """
    return _make_value(value, 20, (), [max_chars])


def bounded_text(text: str, max_chars: int) -> str:
    """Clean text of at most `max_chars` characters, the last being an ellipsis when cut."""
    return clean_text(str(text) if len(text) <= max_chars else text[: max_chars - 1] + "…")


def read_json(text: str | bytes, **options: Any) -> Any:
    """Return the value of a JSON text, as `json.loads` with these options.

    Raises:
        ValueError: the text is no JSON.
        RecursionError: the value is nested deeper than `MAX_READ_DEPTH`, in any version of Python.
    """
    value = json.loads(text, **options)
    marks: tuple[Any, Any] = ("[", "{") if isinstance(text, str) else (b"[", b"{")
    if sum(map(text.count, marks)) > MAX_READ_DEPTH and _is_deeper(value, MAX_READ_DEPTH):
        raise RecursionError("it is nested too deeply")
    return value


def json_or_none(text: str) -> Any:
    """Return the value of a JSON text; None for anything else."""
    try:
        return read_json(text)
    except (ValueError, RecursionError):
        return None


def printable_json(value: JsonValue) -> str:
    """Return a value as JSON on one line.

    What cannot be printed is escaped, so it stays that value.
    """
    text = json.dumps(value, ensure_ascii=False)
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def quote_text(value: object, max_chars: int) -> str:
    """Foreign text, or any value, for a reader: as `printable_json`, cut to its first characters.

    It cannot pass for a line of ours, nor turn the direction of one around.
    """
    return bounded_text(printable_json(bounded_json(value, max_chars=max_chars)), max_chars + 2)


def bounded_name(text: str | None) -> str | None:
    """Return a clean name of at most 256 characters; None when nothing is left of it."""
    if text:
        return clean_text(text).strip()[:MAX_NAME_CHARS] or None
    return None


def _make_value(
    value: object, depth: int, parents: tuple[int, ...], budget: list[int]
) -> JsonValue:
    """`budget` is the number of characters that are left."""
    try:
        if isinstance(value, str):
            return _spend_budget(str.__str__(value), budget)
        if isinstance(value, float) and not math.isfinite(value):
            return _spend_budget(_NOT_FINITE[repr(float(value))], budget)
        if value is None or isinstance(value, bool | float):
            budget[0] -= _SCALAR_COST
            return float.__float__(value) if isinstance(value, float) else value
        if isinstance(value, int) and abs(value) <= MAX_INTEGER:
            budget[0] -= _SCALAR_COST
            return int.__int__(value)
        is_container = isinstance(value, Mapping | list | tuple | set | frozenset)
        if not is_container or depth <= 0 or id(value) in parents:
            return _spend_budget(_bounded_text(value), budget)
        parents = (*parents, id(value))
        made: dict[str, JsonValue] = {}
        items: list[JsonValue] = []
        for item in cast("Iterable[object]", value):
            if budget[0] <= 0:
                break
            if isinstance(value, Mapping):
                name = _spend_budget(_key_text(item), budget)
                made[name] = _make_value(value[item], depth - 1, parents, budget)
            else:
                items.append(_make_value(item, depth - 1, parents, budget))
    # A proxy of nothing, or a dict that another thread is filling.
    except Exception:  # noqa: BLE001
        return _spend_budget(f"<{type(value).__name__}>", budget)
    return made if isinstance(value, Mapping) else items


def _spend_budget(text: str, budget: list[int]) -> str:
    kept = bounded_text(text, max(budget[0], 1))
    budget[0] -= len(kept) + _SCALAR_COST
    return kept


def _key_text(key: object) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    if key is None or isinstance(key, bool | float):
        return str(key)
    return _bounded_text(key)


def _bounded_text(value: object) -> str:
    """Return a value's `repr`, of at most some 1,000 characters, whatever its `__repr__` does."""
    try:
        return clean_text(_REPR.repr(value)[:1000])
    except Exception:  # noqa: BLE001  # any foreign __repr__ may raise anything
        return f"<{type(value).__name__}>"


def clean_text(text: str) -> str:
    """Replace NUL characters and lone surrogates by U+FFFD."""
    if _text_problem(text) is None:
        return text
    return "".join(
        _REPLACEMENT if char == "\x00" or "\ud800" <= char <= "\udfff" else char for char in text
    )


def unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an `object_pairs_hook` that refuses a key that stands twice; JSON keeps the last."""
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidJsonValueError(
            f"the key {bounded_text(twice, 60)!r} stands twice in an object"
        )
    return members


_CONTAINERS = (dict, list)  # a union would be made again for each value
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical_json(value: JsonValue) -> str:
    """Text that is equal for equal values: sorted keys, no spaces, UTF-8 as it is.

    `1` and `1.0` differ: a tool may show them apart.
    """
    if type(value) is int:
        return int.__repr__(value)
    return _CANONICAL.encode(value)


def exceeds_size(value: JsonValue, values: int, chars: int) -> bool:
    """Return whether a value holds more values than that, or more characters of text.

    Stops there.
    """
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            chars -= len(each)
        elif isinstance(each, _CONTAINERS):
            values -= len(each)
            if values >= 0:
                chars -= sum(map(len, each)) if isinstance(each, dict) else 0
                waiting.extend(each.values() if isinstance(each, dict) else each)
        if values < 0 or chars < 0:
            return True
    return False


def content_hash(value: JsonValue) -> str:
    """SHA-256 of the canonical JSON, 64 hexadecimal digits."""
    # The encoder in C lets no other thread run meanwhile; this one does, and is slower.
    is_large = exceeds_size(value, 20_000, sys.maxsize)
    text = "".join(_CANONICAL.iterencode(value)) if is_large else _CANONICAL.encode(value)
    return hashlib.sha256(text.encode()).hexdigest()


def _is_deeper(value: Any, depth: int) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(depth):
        inner = [each.values() if isinstance(each, dict) else each for each in level]
        level = [each for members in inner for each in members if isinstance(each, dict | list)]
        if not level:
            return False
    return True


def _is_clean(value: Any, depth: int) -> bool:
    """Return one pass without building paths; the path is looked for only when this states no."""
    kind = type(value)
    if kind is str:
        return _text_problem(value) is None
    if value is None or kind is bool:
        return True
    if kind is int:
        return bool(-MAX_INTEGER <= value <= MAX_INTEGER)
    if kind is float:
        return math.isfinite(value)
    if depth <= 0:
        return False
    if kind is dict:
        return all(
            type(key) is str and _text_problem(key) is None and _is_clean(item, depth - 1)
            for key, item in value.items()
        )
    if kind is list:
        return all(_is_clean(item, depth - 1) for item in value)
    return False


def _refuse_value(value: Any, path: str, depth: int) -> None:
    """Name the first fault and its place; only called when there is one, so it need not be fast."""
    problem = None
    if isinstance(value, str):
        problem = _text_problem(value)
    elif isinstance(value, float):
        if not math.isfinite(value):
            problem = f"is {value}, which is not a JSON number; send null or a finite number"
    elif isinstance(value, dict | list):
        if depth <= 0:
            path = path[:80]
            problem = f"is nested deeper than {MAX_DEPTH} levels"
        members = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in members if problem is None else ():
            if isinstance(value, dict) and (key_problem := _key_problem(key)):
                problem = key_problem
                break
            _refuse_value(item, f"{path}.{key}" if path else str(key), depth - 1)
    elif isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            problem = "is an integer of more than 64 bits; send it as text"
    elif value is not None:
        problem = f"is of type {type(value).__name__}, which JSON does not have"
    if problem is not None:
        raise InvalidJsonValueError(f"{path or 'the value'} {problem}")


def _key_problem(key: object) -> str | None:
    if not isinstance(key, str):
        return f"has the key {key!r}, which is not a string"
    problem = _text_problem(key)
    return problem and f"has a key that {problem}"


def _text_problem(text: str) -> str | None:
    if text.isascii():
        if "\x00" in text:
            return "contains a NUL character"
        return None
    if "\x00" in text:
        return "contains a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "contains a lone surrogate, which is not valid Unicode text"
    return None


def _type_name(value: object) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else "another type")


# --- JSON as people write it into configurations: with comments and last commas ---
_STRING = r'"(?:[^"\\]|\\.)*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)


def read_jsonc(text: str) -> Any:
    """Return the value of a text of JSON; comments, last commas and a byte order mark are skipped.

    Raises:
        ValueError: the text is no JSON, or a key stands twice in an object.
    """
    plain = _LAST_COMMA.sub(
        _blank_comment, _COMMENT.sub(_blank_comment, text.removeprefix("\ufeff"))
    )
    try:
        return json.loads(plain, object_pairs_hook=unique_members)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _blank_comment(found: re.Match[str]) -> str:
    """Return nothing instead of a comment; its line ends stay, so that errors name the line."""
    return found[0] if found[0][0] == '"' else "\n" * found[0].count("\n")
