"""JSON as people write it into configurations: with comments and last commas."""

import json
import re
from typing import Any

from aftercall.json_values import unique_members

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
