"""Arguments that came as a text: the object that they say, where that is no guess.

Small models send JSON with single quotes, without quotes, in a fence, with a remark behind it, or
cut off. `json-repair` reads what `notations` does not; what breaks off inside of a value is left.
"""

import json
import re
from typing import Any

import json_repair

from aftercall.json_values import JsonObject
from retrieval.notations import object_in
from retrieval.parameters import CallT, leaves_like

MAX_ARGUMENTS = 64 * 1024
"""Characters of the text of a call's arguments that are read."""


def read_arguments(text: str) -> JsonObject | None:
    """Return the object that the text of a call's arguments says, however loosely it is written.

    None where it says none, where it breaks off inside of a value, and where a value of the object
    stands nowhere in the text: nothing is completed by a guess.
    """
    if len(text) > MAX_ARGUMENTS or _ends_inside(text):
        return None
    found: Any = object_in(text) or json_repair.loads(text, skip_json_loads=True)
    if not isinstance(found, dict) or not found:
        return None
    written = text + text.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")
    leaves = (str(value) for _, value in leaves_like(found, ()) if isinstance(value, str))
    return (
        found
        if all(each in written or json.dumps(each)[1:-1].lower() in text.lower() for each in leaves)
        else None
    )


def with_arguments(call: CallT) -> CallT:
    """Return a call whose arguments came as a text with the object that this says, if it is one."""
    read = read_arguments(call.arguments_text) if call.arguments_text is not None else None
    if read is None:
        return call
    return call.model_copy(update={"parameters": read, "parameters_known": True})


_QUOTED = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_WHOLE = re.compile(r"[\]}\"'`]\s*\Z|\b(?:true|false|null|True|False|None)\s*\Z")


def _ends_inside(text: str) -> bool:
    """Whether a text has open brackets at its end and no whole value before it."""
    bare = _QUOTED.sub('""', text)
    opened = sum(map(bare.count, "[{")) - sum(map(bare.count, "]}"))
    return opened > 0 and (_WHOLE.search(bare) is None or bare.count('"') % 2 > 0)
