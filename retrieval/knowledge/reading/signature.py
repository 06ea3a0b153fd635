"""Signatures: the words of an error's message, under which like errors meet.

The words are taken out of any envelope: JSON, a Python repr, tags, frames of servers, a prefix, a
stack, a hint, the call's own arguments where they are echoed. Then values are masked.
"""

import ast
import json
import re
from collections.abc import Collection, Iterator

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue, check_json_value
from retrieval import read_word_table

MAX_LENGTH = 400
"""Characters of a signature; what follows shows like errors apart no further."""
_TABLE = read_word_table("knowledge/reading/dialects.toml")
_KEYS: dict[str, list[str]] = _TABLE["envelopes"]
_WORDS = _KEYS["words"]
_CODES = _KEYS["codes"]
_PLACES = _KEYS["places"]
_NAMES = frozenset(_WORDS)
_MAX_READ = 8_000
_MAX_PARTS = 12
_MAX_DEPTH = 6
_MAX_TRIES = 8
_FRAMES = re.compile(rf"\A(?:{'|'.join(_KEYS['frames'])})+")
_BOILERPLATE = re.compile("|".join(_KEYS["boilerplate"]))
_STACK = re.compile("|".join(_KEYS["stacks"]), re.MULTILINE)
_AFTER = re.compile("|".join(_KEYS["hints"]), re.IGNORECASE)
_ECHO = re.compile("|".join(_KEYS["echoes"]), re.IGNORECASE)
_TAGS = re.compile(r"</[A-Za-z][\w:.-]{0,60}>")
_TAG = re.compile(r"<[/?!]?[A-Za-z][^<>]{0,200}>")
_OPENING = re.compile(r"[{\[]")
_DECODER = json.JSONDecoder()

_MASKS: list[tuple[re.Pattern[str], str]] = [
    (re.compile(r"\[(?:redacted|hashed):[^\]\s]+\]"), "<v>"),
    (re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://[^\s'\"`<>)\]]+", re.IGNORECASE), "<url>"),
    (re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}\b"), "<email>"),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (
        re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"),
        "<date>",
    ),
    (re.compile(r"(?<![\w<])(?:~|\.{1,2})?(?:/[\w.@%+~-]+){2,}/?|\b[A-Z]:\\[^\s'\"]+"), "<path>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b", re.IGNORECASE), "<hex>"),
    (re.compile(r"(?<![\w.])-?\d+(?:[.,]\d+)*(?![\w])"), "<n>"),
]
_QUOTED = re.compile(r"'([^'\n]*)'|\"([^\"\n]*)\"|`([^`\n]*)`")


def signature_of(
    message: str,
    *,
    names: Collection[str] = (),
    values: Collection[str] = (),
    parameters: JsonObject | None = None,
) -> str:
    """Return the words of a message with its variable parts masked.

    Parameter `names` stay, also in quotation marks; the call's own `values` are masked wherever
    they stand, and its `parameters` left out where the message echoes them.
    """
    text = said_in(message, parameters or {})[: 4 * MAX_LENGTH]
    said = {value for value in values if len(value) >= 3 and value in text}
    for value in sorted(said, key=lambda value: (-len(value), value)):
        if value not in names:
            text = hide_word(text, value)
    text = _QUOTED.sub(
        lambda found: found[0] if found[found.lastindex or 0] in names else "<v>", text
    )
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    text = re.sub(r"<v>(?:,? ?(?:and |or )?<v>)+", "<v>", text)
    return re.sub(r"\s+", " ", text).strip()[:MAX_LENGTH]


def strip_frames(message: str) -> str:
    """Return a message without frames of servers and boilerplate, spaces folded."""
    bare = _FRAMES.sub("", _BOILERPLATE.sub("", message.strip()), count=1)
    return re.sub(r"[ \t]+", " ", bare)


def said_in(message: str, parameters: JsonObject, depth: int = 0) -> str:
    """Return the tool's own words of a message: out of its envelopes, without what is around."""
    text = _without_around(message[:_MAX_READ])
    for start, end, value in _values_in(text) if depth < _MAX_DEPTH else ():
        if _is_echo(value, parameters):
            before = _ECHO.sub("", text[:start])
            text = f"{before}{text[end:]}".strip()
            if text:
                return said_in(text, parameters, depth + 1)
            return message.strip()
        is_whole = not text[:start].strip() and not text[end:].strip()
        if not is_whole and not _is_envelope(value):
            continue
        words = [said_in(each, parameters, depth + 1) for each in _words_of(value)]
        if words:
            return "\n".join(dict.fromkeys(words[:_MAX_PARTS]))
    if _TAGS.search(text) and text.lstrip()[:1] == "<":
        bare = re.sub(r"\s+", " ", _TAG.sub(" ", text)).strip()
        return bare or text
    return re.sub(r"[ \t]+", " ", _BOILERPLATE.sub("", text))


def _without_around(text: str) -> str:
    """Return a text without frames, stack and hints; as it is if no more is left."""
    text = text.strip()
    bare = _FRAMES.sub("", _AFTER.split(_STACK.sub("", text))[0].strip()).strip()
    return bare or text


def _values_in(text: str) -> Iterator[tuple[int, int, JsonValue]]:
    """Yield the objects and lists that stand in a text, as JSON or a repr, with their places."""
    at = 0
    for _ in range(_MAX_TRIES):
        opening = _OPENING.search(text, at)
        if opening is None:
            return
        start = opening.start()
        found = _read_at(text, start)
        if found is None:
            at = start + 1
            continue
        value, at = found
        yield start, at, value


def _read_at(text: str, start: int) -> tuple[JsonValue, int] | None:
    try:
        value, end = _DECODER.raw_decode(text, start)
        check_json_value(value)
    except (ValueError, RecursionError):
        return _repr_at(text, start)
    return value, end


def _repr_at(text: str, start: int) -> tuple[JsonValue, int] | None:
    """Read a Python repr up to the last bracket of the text."""
    end = text.rfind("}" if text[start] == "{" else "]") + 1
    if end <= start:
        return None
    if "'" not in text[start:end]:
        return None
    try:
        value = ast.literal_eval(text[start:end])
        check_json_value(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
    return value, end


def _is_envelope(value: JsonValue) -> bool:
    """Return whether an object in the middle of a text holds words, and is no value of the call."""
    held = value if isinstance(value, list) else [value]
    return any(isinstance(each, dict) and not _NAMES.isdisjoint(each) for each in held)


def _is_echo(value: JsonValue, parameters: JsonObject) -> bool:
    """Return whether a value is the call's arguments, or a part of them."""
    if not parameters:
        return False
    if not isinstance(value, dict):
        return False
    if not value:
        return False
    held = value.get("arguments", value.get("params", value)) if len(value) <= 2 else value
    return (
        isinstance(held, dict)
        and bool(held)
        and all(
            name in parameters and same_json(parameters[name], each) for name, each in held.items()
        )
    )


def _words_of(value: JsonValue, depth: int = 0) -> list[str]:
    """Return the sentences of an envelope, or else its codes; no text if it has no words."""
    if isinstance(value, str):
        if value.strip():
            return [value]
        return []
    if depth > _MAX_DEPTH:
        return []
    if not isinstance(value, dict | list):
        return []
    if isinstance(value, list):
        return [words for each in value[:_MAX_PARTS] for words in _words_of(each, depth + 1)]
    known = {name.lower(): name for name in value}
    held = [value[known[key]] for key in _WORDS if key in known]
    found = [words for each in held for words in _words_of(each, depth + 1)]
    if found:
        places = (_place_of(value[known[key]]) for key in _PLACES if key in known)
        place = next(places, "")
        if not place:
            return found
        return [f"{place}: {words}" for words in found]
    codes = [value[known[key]] for key in _CODES if key in known]
    return [each for each in codes if isinstance(each, str)] or _by_field(value, depth)


def _by_field(value: JsonObject, depth: int) -> list[str]:
    """Return what is stated of each field, where names of fields are the keys."""
    stated = []
    for field, said in list(value.items())[:_MAX_PARTS]:
        if not isinstance(said, dict | list) and not (isinstance(said, str) and " " in said):
            continue
        words = _words_of(said, depth + 1)
        if not field.isdecimal() and " " not in field:
            words = [f"{field}: {each}" for each in words]
        stated += words
    return stated


def inner_text(message: str) -> str:
    """Return the JSON text that is all that an envelope of JSON states; else the message itself."""
    for _ in range(_MAX_DEPTH):
        text = _FRAMES.sub("", message.strip(), count=1)
        found = _read_at(text, 0) if text[:1] in ("{", "[") else None
        words = _words_of(found[0]) if found is not None and found[1] == len(text) else []
        if len(words) != 1 or words[0].strip()[:1] not in ("{", "["):
            break
        message = words[0]
    return message


def _place_of(value: JsonValue) -> str:
    """Return the place of one issue as it is shown: its names, without positions in lists."""
    steps = value if isinstance(value, list) else [value]
    names = [each for each in steps if isinstance(each, str) and each not in _KEYS["roots"]]
    return ".".join(names)


def without_values(message: str, values: Collection[str]) -> str:
    """Return the message without the call's own values: no echo decides what it means.

    A value that is a plain word or number may be the tool's own word too (`timeout`, `404`): it is
    taken out only where a quotation mark, `=` or `:` stands before it.
    """
    said = [value for value in values if len(value) >= 3 and value in message]
    for value in sorted(said, key=lambda value: (-len(value), value)):
        message = hide_word(message, value, told=value.isalnum())
    return message


_WORD = re.compile(r"\w")
_BEFORE = {True: re.compile(r"['\"`=:] ?\Z"), False: re.compile(r"(?:\A|\W)\Z")}


def hide_word(text: str, value: str, *, told: bool = False) -> str:
    """Return a text with `<v>` where a value stands that is no part of a word.

    With `told` only behind a quotation mark, `=` or `:`. Not by a pattern of the value: to compile
    one takes longer than all else that is done with it.
    """
    hidden = ""
    done = 0
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        if _BEFORE[told].search(text[max(0, at - 2) : at]) and not _WORD.match(text, end):
            hidden += f"{text[done:at]}<v>"
            done = at = end
        else:
            at += 1
        at = text.find(value, at)
    return hidden + text[done:]
