"""Placing: which value of a call a fault is about, by whatever its text gives.

The place may be written in any spelling, with names of types before it. Else the value that is
quoted states it, a position in the text of the call, or the names that exist where it stands. More
than one candidate is a question, and then the fault has no place.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from aftercall.json_values import JsonObject, JsonValue, canonical_json
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.reading.unwrap import Position
from retrieval.knowledge.values.forms import in_form
from retrieval.knowledge.values.likeness import words_of
from retrieval.knowledge.values.parameters import EVERY, Path, value_at
from retrieval.knowledge.values.scalars import fits_types, type_of

_MAX_FOUND = 100
_MAX_DEPTH = 12
_MAX_TEXT = 20_000
"""Characters of a call's text in which a position is looked for."""


def place_fault(fault: Fault, call: JsonObject) -> Fault:
    """Return the fault with its place in the call, if its text can mean one place only."""
    if not fault.path and fault.kind == "missing":
        return fault
    found = _named_places(fault, call)
    if not found:
        if fault.kind == "unexpected" and fault.path[-1:] in _FLAGS:
            # A flag of a command takes no value.
            sent = str(fault.path[-1])
            fault = Fault("wrong_type", value_text=sent, expected_types=("boolean",))
        found = _by_value(fault, call)
    if fault.position is not None and len(found) != 1:
        at = _by_position(fault, call)
        found = [each for each in found if each in at] or list(at)
    if not found and fault.known:
        found = _by_names(fault, call)
    if not found and not fault.path and fault.kind == "bad_format":
        found = _by_format(fault, call)
    if len(found) > 1:
        found = _narrow_places(fault, call, found)
    if len(found) != 1:
        return fault
    [path] = found
    if fault.kind == "missing":
        spelt = _spelt_otherwise(path, call)
        if spelt is not None:
            return replace(fault, kind="unexpected", path=spelt)
    is_written = path[: len(fault.path)] == fault.path
    is_inferred = not is_written and len(path) > 1
    return replace(fault, path=path, guessed_place=is_inferred or fault.guessed_place)


def _spelt_otherwise(path: Path, call: JsonObject) -> Path | None:
    """Return where the call has a field that the fault names as Go does, in its own spelling."""
    *above, last = path
    around = _value_around(path, call)
    name = str(last)
    if not name[:1].isupper() or not isinstance(around, dict):
        return None
    key = _key_for(name, around)
    return None if key in (None, last) else (*above, str(key))


_FLAGS = (("true",), ("false",))


def _by_value(fault: Fault, call: JsonObject) -> list[Path]:
    """Return where the quoted value stands: as a value, or else as words in a text."""
    quoted = fault.value_text
    if quoted is None:
        return []
    found = [at for at, value in _walk_values(call) if _shows_value(value, quoted)]
    if not found and len(quoted) > 1:
        word = re.compile(rf"(?<![\w.-]){re.escape(quoted)}(?![\w-])")
        found = [at for at, text in _walk_texts(call) if word.search(text)]
    return found


def _by_format(fault: Fault, call: JsonObject) -> list[Path]:
    """Return the texts that can be written in the format that is asked for."""
    form = fault.expected_format
    if not form:
        return []
    return [at for at, text in _walk_texts(call) if in_form(text, form) is not None]


def _value_around(path: Path, call: JsonObject) -> JsonValue:
    """Return the value that a place stands in."""
    return value_at(call, path[:-1]) if len(path) > 1 else call


def faults_of_others(fault: Fault, call: JsonObject) -> list[Fault]:
    """Return the faults of the other names next to the wrong one that are none of those listed."""
    around = _value_around(fault.path, call)
    if fault.kind != "unexpected" or not fault.known or not isinstance(around, dict):
        return []
    above = fault.path[:-1]
    others = [key for key in islice(around, _MAX_FOUND) if key not in fault.known]
    return [replace(fault, path=(*above, key), suggested=None) for key in others]


def _named_places(fault: Fault, call: JsonObject) -> list[Path]:
    """Return the places that the written path leads to.

    From the root, or else from inside the call.
    """
    path = fault.path
    is_missing = fault.kind == "missing"
    for start in range(len(path)):
        before = path[:start]
        steps = path[start:]
        if is_missing and start == 1 and not _is_of_type(str(before[0])):
            continue  # what the missing one is in is missing itself
        places = _walk_path(call, (), steps, is_missing=is_missing)
        found = list(islice(places, _MAX_FOUND))
        if found and is_missing and len(steps) == 1:
            return _in_object(fault, call, found)
        if found:
            return found
    if len(path) <= is_missing:
        return []
    found = []
    for at, value in _walk_values(call):
        if at and isinstance(value, dict):
            found += _walk_path(value, at, path, is_missing=is_missing)
    return found[:_MAX_FOUND]


_OF_REQUESTS = frozenset(("args", "body", "data", "input", "params", "request"))


def _is_of_type(name: str) -> bool:
    return name[:1].isupper() or name in _OF_REQUESTS


def _in_object(fault: Fault, call: JsonObject, found: list[Path]) -> list[Path]:
    """Return the place of a missing name: the object that position or names show."""
    if fault.position is None and not fault.known:
        return found
    at = _by_position(fault, call) or set(_by_names(fault, call))
    if len(at) == 1:
        return list(at)
    return found


def _walk_path(value: JsonValue, done: Path, steps: Path, *, is_missing: bool) -> Iterator[Path]:
    if not steps or len(done) > _MAX_DEPTH:
        yield done
        return
    step = steps[0]
    rest = steps[1:]
    if isinstance(value, dict):
        if is_missing and not rest:
            yield (*done, str(step))
            return
        key = _key_for(str(step), value)
        if key is not None:
            yield from _walk_path(value[key], (*done, key), rest, is_missing=is_missing)
    elif isinstance(value, list):
        size = len(value)
        for index in range(size) if step == EVERY else [step]:
            if isinstance(index, int) and index < size:
                yield from _walk_path(value[index], (*done, index), rest, is_missing=is_missing)
    elif done and not is_missing:
        yield done  # names of a union's members, behind the value


def _key_for(step: str, value: JsonObject) -> str | None:
    if step in value:
        return step
    letters = "".join(words_of(step))
    if not letters:
        return None
    same = [key for key in islice(value, _MAX_FOUND) if "".join(words_of(key)) == letters]
    return same[0] if len(same) == 1 else None


def _walk_values(call: JsonValue, done: Path = ()) -> Iterator[tuple[Path, JsonValue]]:
    """Yield all values of a call with their places, the outer ones first."""
    yield done, call
    if len(done) >= _MAX_DEPTH:
        return
    items: Iterable[tuple[str | int, JsonValue]] = ()
    if isinstance(call, dict):
        items = call.items()
    elif isinstance(call, list):
        items = enumerate(call)
    for key, value in islice(items, _MAX_FOUND):
        yield from _walk_values(value, (*done, key))


def _walk_texts(call: JsonObject) -> Iterator[tuple[Path, str]]:
    for at, value in _walk_values(call):
        if isinstance(value, str):
            yield at, value


def _shows_value(value: JsonValue, text: str) -> bool:
    """Return whether a text shows a value: as it is, or as JSON or Python writes it."""
    if isinstance(value, str):
        return text in (value, value.strip())
    if isinstance(value, list | dict):
        if text[:1] not in ("[", "{") or len(value) >= _MAX_FOUND:
            return False
        return text in (repr(value), canonical_json(value), json.dumps(value))
    return text in (str(value), json.dumps(value))


def _narrow_places(fault: Fault, call: JsonObject, found: Sequence[Path]) -> list[Path]:
    """Return those of several places whose values are as the fault states."""
    values = {at: value_at(call, at) for at in found}
    quoted = fault.value_text
    if quoted is not None:
        shown = {at: value for at, value in values.items() if _shows_value(value, quoted)}
        values = shown or values
    return [at for at, value in values.items() if _can_be_wrong(fault, value)]


def _can_be_wrong(fault: Fault, value: JsonValue) -> bool:
    """Return whether a value is wrong in the way that the fault states."""
    if fault.kind == "wrong_type" and fault.expected_types:
        return not fits_types(value, fault.expected_types)
    if fault.kind == "bad_format" and fault.expected_format:
        return in_form(str(value), fault.expected_format) is not None
    if fault.kind == "not_allowed" and fault.allowed:
        return value not in fault.allowed
    return True


def _by_names(fault: Fault, call: JsonObject) -> list[Path]:
    """Return the objects that have all the other names that exist there."""
    name = str(fault.path[-1]) if fault.path else None
    is_missing = fault.kind == "missing"
    known = {name, *fault.known}
    found = []
    for at, value in _walk_values(call):
        if not isinstance(value, dict) or not value or (name in value) == is_missing:
            continue
        if value.keys() <= known:
            found.append(at if name is None else (*at, name))
    return found


# ------------------------------------------------------------------ positions
class _Token(NamedTuple):
    start: int
    end: int
    path: Path
    what: str
    """`key` or `value`."""


def _by_position(fault: Fault, call: JsonObject) -> set[Path]:
    """Return the places at which the position is, in the texts of the call that are tried first."""
    position = fault.position
    if position is None:
        return set()
    for written in _written_forms(json.dumps(call), in_lines=position.line > 1):
        found = set[Path]()
        for text, tokens in written:
            places = _possible_indexes(text, position)
            places |= {index + 1 for index in places}
            for token in tokens:
                if token.start in places or token.end in places:
                    at = _agreed_place(fault, call, token)
                    if at is not None:
                        found.add(at)
        if found:
            return found
    return set()


def _agreed_place(fault: Fault, call: JsonObject, token: _Token) -> Path | None:
    """Return the place of a token, if the fault can be about it."""
    path = token.path
    value = value_at(call, path)
    name = str(fault.path[-1]) if fault.path else None
    if fault.kind == "missing":
        return (*path, name) if name is not None and isinstance(value, dict) else None
    return path if _can_be_at(fault, token, value, name) else None


def _can_be_at(fault: Fault, token: _Token, value: JsonValue, name: str | None) -> bool:
    last = token.path[-1] if token.path else None
    if fault.kind == "unexpected":
        is_other = last is None or last == fault.rival or token.what != "key"
        return not is_other and name in (None, last)
    if fault.value_text is not None:
        return last == fault.value_text or _shows_value(value, fault.value_text)
    if last is None or (fault.kind == "bad_format" and not isinstance(value, str)):
        return False
    if fault.expected_types and fits_types(value, fault.expected_types):
        return False
    return not fault.given_types or type_of(value) in fault.given_types


_Written = tuple[str, list[_Token]]
_ON_LINES: Sequence[dict[str, Any]] = ({"indent": 2},)
_ON_ONE_LINE: Sequence[dict[str, Any]] = ({}, {"separators": (",", ":")})


@lru_cache(maxsize=16)
def _written_forms(call: str, *, in_lines: bool) -> list[list[_Written]]:
    """Return the texts of a call with their tokens: as it came, then with its keys in order."""
    value = json.loads(call) if len(call) <= _MAX_TEXT else {}
    forms = _ON_LINES if in_lines else _ON_ONE_LINE
    return [_write_call(value, forms), _write_call(value, forms, in_order=True)]


def _write_call(
    call: JsonValue, forms: Sequence[dict[str, Any]], *, in_order: bool = False
) -> list[_Written]:
    written = []
    for form in forms:
        for as_ascii in (False, True):
            text = json.dumps(call, ensure_ascii=as_ascii, sort_keys=in_order, **form)
            written.append((text, _read_tokens(text)))
    return written


_LEXEME = re.compile(r'"(?:\\.|[^"\\])*"|[\[\]{}:,]|[^\s\[\]{}:,"]+')


def _read_tokens(text: str) -> list[_Token]:
    """Return the keys and values of a JSON text, with the places that they are at."""
    tokens: list[_Token] = []
    around: list[tuple[int, Path, bool]] = []
    here: Path = ()
    is_key = False
    for found in _LEXEME.finditer(text):
        sign = found[0]
        if sign in ("{", "["):
            is_key = sign == "{"
            around.append((found.start(), here, is_key))
            here = here if is_key else (*here, 0)
        elif sign in ("}", "]"):
            start, here, _ = around.pop()
            is_key = False
            tokens.append(_Token(start, found.end(), here, "value"))
        elif sign == ",":
            _, above, is_key = around[-1]
            here = above if is_key else (*above, int(here[-1]) + 1)
        elif is_key:
            is_key = False
            here = (*around[-1][1], json.loads(sign))
            tokens.append(_Token(*found.span(), here, "key"))
        elif sign != ":":
            tokens.append(_Token(*found.span(), here, "value"))
    return tokens


def _possible_indexes(text: str, position: Position) -> set[int]:
    """Return the characters that a position may mean, counted in characters or in bytes."""
    lines = text.split("\n")
    if position.line > len(lines):
        return set()
    at = max(0, position.line - 1)
    line = lines[at]
    before = sum(len(above) + 1 for above in lines[:at])
    if position.column == 0:
        return {before + len(line) - len(line.lstrip())}
    column = position.column
    if position.line:
        column -= 1
    in_bytes = len(line.encode()[:column].decode(errors="ignore"))
    return {before + column, before + in_bytes}
