"""Values in a message: JSON, Python's and Ruby's writing of objects and lists."""

import json
import re
from ast import literal_eval
from collections.abc import Iterator

from aftercall.json_values import JsonValue, check_json_value

_OPENING = re.compile(r"[\[{]")
_MAX_OPENINGS = 20
"""Brackets tried as the start of JSON: a text of nothing but brackets is read without success."""
_PYTHON = re.compile(r"\[?\{'")
"""An object as Python prints it."""
MAX_LITERAL = 10_000
"""Characters of Python's writing that are read."""
_RUBY = re.compile(
    r"(?P<open>[{,]\s?)(?:\"(?P<text>[^\"\n]{1,100})\"|:(?P<symbol>\w{1,100}))\s?=>\s?"
)
_RUBY_NIL = re.compile(r": nil(?=[,}\]])")


def _as_json_of_ruby(text: str) -> str:
    """Return a text whose hashes are written as JSON, where they are written as Ruby does."""
    if "=>" not in text:
        return text
    text = _RUBY.sub(lambda pair: f'{pair["open"]}"{pair["text"] or pair["symbol"]}": ', text)
    return _RUBY_NIL.sub(": null", text)


def embedded_json(text: str) -> Iterator[JsonValue]:
    """JSON objects and arrays inside a message, also in Python's writing; at most three."""
    decoder = json.JSONDecoder()
    text = _as_json_of_ruby(text)
    position, found = 0, 0
    for _ in range(_MAX_OPENINGS):
        match = _OPENING.search(text, position)
        if found == 3 or match is None:
            return
        try:
            if _PYTHON.match(text, match.start()):
                position = text.rindex("]" if match[0] == "[" else "}") + 1
                value = literal_eval(text[match.start() : min(position, MAX_LITERAL)])
            else:
                value, position = decoder.raw_decode(text, match.start())
            check_json_value(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            position = match.start() + 1  # InvalidJsonValueError is a ValueError
            continue
        found += 1
        yield value
