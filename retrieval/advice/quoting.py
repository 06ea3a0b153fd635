"""Words of tools inside a lesson: as data, one line, quoted and cut."""

import json
import re

from aftercall.json_values import JsonValue

_MAX = 120
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")


def quoted(value: JsonValue, limit: int = _MAX) -> str:
    """A value as JSON on one line, cut; control and direction marks are blanks."""
    if isinstance(value, str):
        value = " ".join(_CONTROL.sub(" ", value[: 4 * limit]).split())
        value = value if len(value) <= limit else f"{value[:limit]}..."
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit + 5 else f"{text[:limit]}..."
