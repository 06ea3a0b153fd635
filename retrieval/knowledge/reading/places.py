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
    named = _named_places(fault, call)
    found = named
    if not fault.path and fault.kind == "missing":
        return fault
    if not named and fault.kind == "unexpected" and fault.path[-1:] in (("true",), ("false",)):
        # A flag of a command takes no value.
        sent = str(fault.path[-1])
        fault = Fault("wrong_type", value_text=sent, expected_types=("boolean",))
    if not named and fault.value_text is not None:
        found = [at for at, value in _walk_values(call) if _shows_value(value, fault.value_text)]
    if not found and fault.value_text and len(fault.value_text) > 1:
        word = re.compile(rf"(?<![\w.-]){re.escape(fault.value_text)}(?![\w-])")
        texts = [(at, value) for at, value in _walk_values(call) if isinstance(value, str)]
        found = [at for at, text in texts if word.search(text)]
    if fault.position is not None and len(found) != 1:
        at = _by_position(fault, call)
        found = [each for each in found if each in at] or list(at)
    if not found and fault.known:
        found = _by_names(fault, call)
    if not found and not fault.path and fault.kind == "bad_format" and fault.expected_format:
        form = fault.expected_format
        texts = [(at, value) for at, value in _walk_values(call) if isinstance(value, str)]
        found = [at for at, text in texts if in_form(text, form) is not None]
    if len(found) > 1:
        found = _narrow_places(fault, call, found)
    if len(found) != 1:
        return fault
    [path] = found
    if fault.kind == "missing" and str(path[-1])[:1].isupper():
        around = value_at(call, path[:-1]) if len(path) > 1 else call
        key = _key_for(str(path[-1]), around) if isinstance(around, dict) else None
        if key is not None and key != path[-1]:  # a field's name in Go, and its other spelling
            return replace(fault, kind="unexpected", path=(*path[:-1], key))
    is_inferred = bool(fault.path) and path[: len(fault.path)] != fault.path and len(path) > 1
    return replace(fault, path=path, guessed_place=is_inferred or fault.guessed_place)


def faults_of_others(fault: Fault, call: JsonObject) -> list[Fault]:
    """Return the faults of the other names next to the wrong one that are none of those listed."""
    around = value_at(call, fault.path[:-1]) if len(fault.path) > 1 else call
    if fault.kind != "unexpected":
        return []
    if not fault.known:
        return []
    if not isinstance(around, dict):
        return []
    others = [key for key in islice(around, _MAX_FOUND) if key not in fault.known]
    return [replace(fault, path=(*fault.path[:-1], key), suggested=None) for key in others]


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
        found = list(islice(_walk_path(call, (), steps, is_missing=is_missing), _MAX_FOUND))
        if found:
            if len(steps) > 1:
                return found
            if not is_missing:
                return found
            return _in_object(fault, call, found)
    if not path:
        return []
    if is_missing and len(path) == 1:
        return []
    inner = (at for at, value in _walk_values(call) if at and isinstance(value, dict))
    return [
        found
        for at in inner
        for found in _walk_path(value_at(call, at), at, path, is_missing=is_missing)
    ][:_MAX_FOUND]


def _is_of_type(name: str) -> bool:
    return name[:1].isupper() or name in ("args", "body", "data", "input", "params", "request")


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
        key = _key_for(str(step), value)
        if is_missing and not rest:
            yield (*done, str(step) if key is None or key != step else key)
        elif key is not None:
            yield from _walk_path(value[key], (*done, key), rest, is_missing=is_missing)
    elif isinstance(value, list):
        indexes = range(len(value)) if step == EVERY else [step]
        for index in indexes:
            if isinstance(index, int) and index < len(value):
                yield from _walk_path(value[index], (*done, index), rest, is_missing=is_missing)
    elif done and not is_missing:
        yield done  # names of a union's members, behind the value


def _key_for(step: str, value: JsonObject) -> str | None:
    if step in value:
        return step
    words = "".join(words_of(step))
    same = [key for key in islice(value, _MAX_FOUND) if words and "".join(words_of(key)) == words]
    if len(same) == 1:
        return same[0]
    return None


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


def _shows_value(value: JsonValue, text: str) -> bool:
    """Return whether a text shows a value: as it is, or as JSON or Python writes it."""
    if isinstance(value, str):
        return value == text or value.strip() == text
    if isinstance(value, list | dict):
        is_shown = text[:1] in ("[", "{") and len(value) < _MAX_FOUND
        return is_shown and text in (repr(value), canonical_json(value), json.dumps(value))
    return text in (str(value), json.dumps(value))


def _narrow_places(fault: Fault, call: JsonObject, found: Sequence[Path]) -> list[Path]:
    """Return those of several places whose values are as the fault states."""
    kept = list(dict.fromkeys(found))
    if fault.value_text is not None:
        said = [each for each in kept if _shows_value(value_at(call, each), fault.value_text)]
        kept = said or kept
    if fault.kind == "wrong_type" and fault.expected_types:
        kept = [each for each in kept if not fits_types(value_at(call, each), fault.expected_types)]
    if fault.kind == "bad_format" and (form := fault.expected_format):
        kept = [each for each in kept if in_form(str(value_at(call, each)), form) is not None]
    if fault.kind == "not_allowed" and fault.allowed:
        kept = [each for each in kept if value_at(call, each) not in fault.allowed]
    return kept


def _by_names(fault: Fault, call: JsonObject) -> list[Path]:
    """Return the objects that have all the other names that exist there."""
    name = str(fault.path[-1]) if fault.path else None
    known = set(fault.known)
    found = []
    for at, value in _walk_values(call):
        if isinstance(value, dict) and value and (fault.kind == "missing") != (name in value):
            others = value.keys() - {name}
            if others <= known:
                found.append((*at, name) if name is not None else at)
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
        found = {
            at
            for text, tokens in written
            for index in _possible_indexes(text, position)
            for token in tokens
            if token.start in (index, index + 1) or token.end in (index, index + 1)
            if (at := _agreed_place(fault, call, token)) is not None
        }
        if found:
            return found
    return set()


def _agreed_place(fault: Fault, call: JsonObject, token: _Token) -> Path | None:
    """Return the place of a token, if the fault can be about it."""
    value, path = value_at(call, token.path), token.path
    name = str(fault.path[-1]) if fault.path else None
    if fault.kind == "missing":
        return (*path, name) if name is not None and isinstance(value, dict) else None
    if fault.kind == "unexpected":
        is_named = bool(path) and (name is None or path[-1] == name)
        return path if is_named and path[-1] != fault.rival and token.what == "key" else None
    if fault.value_text is not None:
        shown = _shows_value(value, fault.value_text) or (path and path[-1] == fault.value_text)
        return path if shown else None
    if fault.expected_types and fits_types(value, fault.expected_types):
        return None
    if fault.given_types and type_of(value) not in fault.given_types:
        return None
    is_text = isinstance(value, str) or fault.kind != "bad_format"
    return path if path and is_text else None


@lru_cache(maxsize=16)
def _written_forms(call: str, *, in_lines: bool) -> list[list[tuple[str, list[_Token]]]]:
    """Return the texts of a call with their tokens: as it came, then with its keys in order."""
    value = json.loads(call) if len(call) <= _MAX_TEXT else {}
    forms: list[dict[str, Any]] = [{"indent": 2}] if in_lines else [{}, {"separators": (",", ":")}]
    return [
        [
            (text, _read_tokens(text))
            for form in forms
            for as_ascii in (False, True)
            for text in [json.dumps(value, ensure_ascii=as_ascii, sort_keys=in_order, **form)]
        ]
        for in_order in (False, True)
    ]


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
            start, here, is_key = *around.pop()[:2], False
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
    before = sum(len(line) + 1 for line in lines[: max(0, position.line - 1)])
    line = lines[max(0, position.line - 1)]
    if position.column == 0:
        return {before + len(line) - len(line.lstrip())}
    column = position.column - (1 if position.line else 0)
    in_bytes = len(line.encode()[:column].decode(errors="ignore"))
    return {before + column, before + in_bytes}
