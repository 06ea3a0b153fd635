"""Reading the JSON of validators and APIs: where each issue is, and what it states.

Which keys hold the place, the words, the code and the facts of an issue is data (`dialects.toml`).
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from aftercall.json_values import JsonObject, JsonValue
from retrieval import read_word_table
from retrieval.knowledge.reading.complaints import read_at, read_complaints
from retrieval.knowledge.reading.faults import (
    FORMATS,
    Fault,
    FaultKind,
    beyond_bound,
    json_types,
    path_of,
    read_number,
    read_text,
)
from retrieval.knowledge.reading.unwrap import read_steps
from retrieval.knowledge.values.parameters import Path

_TABLE = read_word_table("knowledge/reading/dialects.toml")
_KINDS: dict[str, FaultKind] = {
    code: kind for kind, codes in _TABLE["codes"].items() for code in codes
}
_KEYS: dict[str, list[str]] = _TABLE["issues"]
_WRAPPERS = frozenset(_KEYS["around"])
_TEXTS = frozenset(_KEYS["words"])
_MAX_ISSUES = 20
_MAX_DEPTH = 4
_LENGTHS = frozenset({"string", "array", "set"})
_PYDANTIC = re.compile(
    r"^(?P<loc>\S[^\n]{0,300})\n\s+(?P<message>[^\n]+?) [\[(]type=(?P<type>[\w.]+)"
    r"(?:, input_value=(?P<value>[^\n]*), input_type=\w+)?[^\n]*[\])]",
    re.MULTILINE,
)
"""One error: its location on a line of its own, then the message, with the type in brackets."""


def read_pydantic(message: str) -> Iterator[Fault]:
    """Yield the faults that pydantic's text names; none when it is not pydantic's."""
    for match in _PYDANTIC.finditer(message):
        path = tuple(map(_read_step, re.split(r"\s*->\s*|\.", match["loc"].strip())))
        for fault in _of_facts(path, match["type"], match["message"], {}):
            yield replace(fault, shown_input=match["value"] or None)


def read_structured(value: JsonValue, depth: int = 0) -> Iterator[Fault]:
    """Yield the faults in a JSON value of a validator or an API; none when it is something else."""
    for issue in value[:_MAX_ISSUES] if isinstance(value, list) else [value]:
        if isinstance(issue, dict) and issue.get("valid") is not True:
            yield from _of_issue(issue, depth)


def _of_issue(issue: JsonObject, depth: int) -> Iterator[Fault]:
    text = next((words for key in _KEYS["words"] if (words := _join_words(issue.get(key)))), "")
    code = next((str(issue[key]) for key in _KEYS["code"] if isinstance(issue.get(key), str)), "")
    place = _issue_place(issue)
    members = list(_of_members(issue, depth)) if depth < _MAX_DEPTH else []
    if members:
        yield from members
    elif place is not None and (place or code) and (text or code):
        yield from _of_facts(place, code, text, _collect_facts(issue))
    elif said := _said_by_field(issue, with_texts=depth > 0):
        for at, words in said.items():
            yield from read_at(at, words)
    elif told := _clear_texts(issue):
        yield from told
    elif depth < _MAX_DEPTH:
        inner: list[Fault] = []
        for key in _KEYS["around"]:
            body = issue.get(key)
            if isinstance(body, list | dict):
                inner += read_structured(body, depth + 1)
        if not any(fault.path for fault in inner) and text:
            inner = read_complaints(text) or inner or list(read_text(text))
        yield from inner


def _of_members(issue: JsonObject, depth: int) -> Iterator[Fault]:
    """Yield what the members of a union say, where they all say the same."""
    held = next((issue[key] for key in _KEYS["members"] if isinstance(issue.get(key), list)), [])
    found = {
        (fault.kind, fault.path, fault.expected_types): fault
        for fault in read_structured(held, depth + 1)
    }
    if len(found) == 1:
        [fault] = found.values()
        if fault.path and fault.kind != "invalid":
            yield fault


def _join_words(value: JsonValue) -> str:
    """Return a text, or several, a line each: `"message": ["size must be an integer", ...]`."""
    texts = value[:_MAX_ISSUES] if isinstance(value, list) else [value]
    if isinstance(value, dict) and len(value) == 1:
        texts = list(value.values())
    if all(isinstance(each, str) for each in texts):
        return "\n".join(map(str, texts))
    return ""


def _clear_texts(issue: JsonObject) -> list[Fault]:
    """Return the texts of the fields, where one of them states more than that it is wrong."""
    said = _said_by_field(issue, with_texts=True)
    faults = [fault for at, words in said.items() for fault in read_at(at, words)]
    if any(fault.kind != "invalid" for fault in faults):
        return faults
    return []


def _said_by_field(issue: JsonObject, *, with_texts: bool) -> dict[Path, str]:
    """Return what Laravel, Rails, Django and others say of each field.

    Empty where a value is no texts.

    A text alone, instead of a list of texts, counts only `with_texts`.
    """
    said: dict[Path, str] = {}
    for field, texts in list(issue.items())[:_MAX_ISSUES]:
        if isinstance(texts, list) and len(texts) == 1 and isinstance(texts[0], dict):
            texts = texts[0]  # noqa: PLW2901
        inner = {}
        words = texts if with_texts else None
        if isinstance(texts, dict):
            inner = _said_by_field(texts, with_texts=True)
        elif isinstance(texts, list) and texts:
            words = texts[0]
        at = path_of(f"'{field}'")
        if inner and at and field not in _WRAPPERS:
            said |= {(*at, *below): words for below, words in inner.items()}
        elif not isinstance(words, str) or " " not in words or field in _TEXTS or not at:
            return {}  # a word alone may be a value that is echoed
        else:
            said[at] = words
    return said


def _issue_place(issue: JsonObject) -> Path | None:
    """Return the place that one issue states; None when it states no place."""
    is_named = "reason" in issue or "message" in issue
    for key in _KEYS["place"]:
        found = issue.get(key)
        if isinstance(found, list):
            steps = tuple(map(_read_step, found))
            # FastAPI puts the part of the request before the path.
            if len(steps) > 1 and steps[0] in _KEYS["request"]:
                return steps[1:]
            return steps
        if isinstance(found, str) and len(found) <= 200 and (key != "name" or is_named):
            if found[:1] in "/#.":
                return read_steps(found.removeprefix("#"))
            return _dotted_path(found)
    return None


def _dotted_path(text: str) -> Path:
    if text:
        return path_of(f"'{text}'")
    return ()


def _read_step(part: Any) -> str | int:
    if isinstance(part, int):
        return part
    if str(part).isdecimal():
        return int(part)
    return str(part)


def _collect_facts(issue: JsonObject) -> JsonObject:
    held = (issue.get(key) for key in _KEYS["facts"])
    return {key: each for part in held if isinstance(part, dict) for key, each in part.items()} | {
        key: each for key, each in issue.items() if each is not None
    }


def _find_fact(facts: JsonObject, what: str) -> JsonValue:
    return next((facts[key] for key in _KEYS[what] if facts.get(key) is not None), None)


def _of_facts(path: Path, code: str, text: str, facts: JsonObject) -> Iterator[Fault]:
    """Yield the faults of one issue, by its code and its facts, or else by its words."""
    code = code.removeprefix("value_error.").removeprefix("type_error.")
    kind = _KINDS.get(code)
    is_absent = facts.get("received") == "undefined" or "undefined" in text or text == "Required"
    if kind == "wrong_type" and is_absent:
        kind = "missing"
    names = _as_list(_find_fact(facts, "names"))
    if kind in ("missing", "unexpected"):
        places = [(*path, name) for name in names if isinstance(name, str)]
        yield from (Fault(kind, place) for place in places or [path])
        return
    stated = _stated_fault(kind, path, code, facts) if kind is not None else None
    found = [stated] if stated is not None else read_at(path, text) if path or text else []
    for fault in found:
        is_vague = fault.kind == "invalid" and kind == "out_of_range"
        yield replace(fault, kind="out_of_range") if is_vague else fault


def _stated_fault(kind: FaultKind, path: Path, code: str, facts: JsonObject) -> Fault | None:
    """Return the fault that the facts of an issue state.

    None where they say no more than its words.
    """
    fault = Fault(kind, path)
    match kind:
        case "not_allowed":
            listed = _as_list(_find_fact(facts, "allowed"))
            allowed = tuple(each for each in listed if isinstance(each, str | int | float))
            right = allowed[0] if len(allowed) == 1 else None
            if allowed:
                return replace(fault, allowed=allowed, stated=right)
            return None
        case "wrong_type":
            expected = _find_fact(facts, "types")
            names = expected if isinstance(expected, list) else str(expected).split(",")
            types = json_types(map(str, names))
            if types:
                return replace(fault, expected_types=types)
            return None
        case "bad_format":
            form = _find_fact(facts, "pattern") or _find_fact(facts, "format")
            form = None if form == "regex" or not isinstance(form, str) else form.strip("/")
            return replace(fault, expected_format=FORMATS.get(form.lower(), form) if form else None)
        case "out_of_range":
            return _fault_beyond(path, code, facts)
    step = _find_fact(facts, "step")
    if step is not None:
        return replace(fault, multiple_of=read_number(step))
    return None


def _fault_beyond(path: Path, code: str, facts: JsonObject) -> Fault | None:
    low = read_number(facts.get("minimum"))
    high = read_number(facts.get("maximum"))
    limit = read_number(facts.get("limit"))
    if limit is not None:
        low, high = (limit, None) if "inim" in code or "min" in code else (None, limit)
    if facts.get("exact") is True:
        low, high = (high if low is None else low), (low if high is None else high)
    measured = facts.get("type") or facts.get("origin")
    of_length = measured in _LENGTHS or re.search(r"Length|Items|Properties", code) is not None
    is_open = facts.get("inclusive") is False or code.startswith("exclusive")
    if low is None and high is None:
        return None
    return beyond_bound(path, low, high, exclusive=is_open, of_length=of_length)


def _as_list(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, list):
        return value
    if value is None:
        return []
    return [value]
