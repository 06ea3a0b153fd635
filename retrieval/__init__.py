"""The answers: reading errors, proposals, confidence, fitness, patterns and the vector index."""

import json
import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

_PART = re.compile(r"\{([A-Z_]+)\}")


@cache
def read_word_table(name: str) -> dict[str, Any]:
    """Return one of the tables of words and patterns in this package; not to be changed.

    Lines of a text are joined, and `{NAME}` stands for that text of the table's `parts`.
    """
    table = tomllib.loads(files("retrieval").joinpath(name).read_text(encoding="utf-8"))
    parts: dict[str, str] = {}

    def fill_parts(value: Any) -> Any:
        if isinstance(value, str):
            return _PART.sub(lambda part: parts[part[1]], value.replace("\n", ""))
        if isinstance(value, list):
            return [fill_parts(each) for each in value]
        return {k: fill_parts(v) for k, v in value.items()} if isinstance(value, dict) else value

    for part, text in table.get("parts", {}).items():
        parts[part] = fill_parts(text)
    filled_table: dict[str, Any] = fill_parts(table)
    return filled_table


compiled = cache(re.compile)
"""A pattern of a table, compiled when a text is first searched for it: all of them take 0.1 s."""


@cache
def read_data_file(name: str) -> Any:
    """Return what one of this package's files states; not to be changed."""
    return json.loads(files("retrieval").joinpath(name).read_text(encoding="utf-8"))


WORDS: dict[str, frozenset[str]] = {
    what: frozenset(words)
    for what, words in read_word_table("knowledge/values/words.toml")["words"].items()
}
"""Words of names and texts, by what they say."""
