"""Notations: what a value states by name, in whatever notation a call or a part of it is written.

Named values come as an object, as JSON text (also of JSON text), in a fence, as XML, YAML, an
address's query, a table of one row, a line of a program, options of a command, or as a list of
names and values. Arguments that came as a text are read here too: the SDK reads what is JSON,
however loosely written (`aftercall.arguments`); here other notations, and a text behind whose last
value only brackets are missing.
"""

import ast
import json
import re
import shlex
from functools import lru_cache
from urllib.parse import parse_qsl

from aftercall.arguments import MAX_ARGUMENTS, is_cut_off, is_in_text, read_arguments
from aftercall.json_values import JsonObject, JsonValue, check_json_value
from retrieval.knowledge.values.parameters import CallT
from retrieval.knowledge.values.scalars import cast_to_one

_FENCE = re.compile(r"```\w*\s*(.*?)\s*```", re.DOTALL)
_TAG = re.compile(r"<(?:([A-Za-z_]\w*)|\w+ name=\"(\w+)\")>([^<>]*)</\w+>\s*")
_LINE = re.compile(r"([A-Za-z_]\w*): +(\S.*)")
_LOOSE = re.compile(
    r"(?P<text>\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*')|(?P<remark>//[^\n]*|/\*.*?\*/)"
    r"|(?P<word>[A-Za-z_$][\w$]*)(?=(?P<colon>\s*:)?)",
    re.DOTALL,
)
"""Of programs: texts, which stay as they are, remarks, and words."""
_CONSTANTS = {"true": "True", "false": "False", "null": "None", "undefined": "None"}
_RULED = re.compile(r"[-|:+\s]+")
_BETWEEN_CELLS = ("|", "\t", ";", ",")
_OPTION = re.compile(
    r"--?(?P<name>[A-Za-z][\w-]*)(?:=(?P<value>.*))?|(?P<key>[A-Za-z]\w*)=(?P<given>.*)", re.DOTALL
)
_KEYS = frozenset(("key", "name", "path", "id", "field"))
"""Words of the names of fields that say which of several things it is."""
_SETS = frozenset(("add", "set", "replace"))
MAX_TEXT = 2_000
"""Characters of a text that are read; JSON text may be longer."""
MAX_KEYS = 40


def object_in(value: JsonValue) -> JsonObject:
    """Return an object, the only one of a list, or one in text or in named values.

    Else an empty one.
    """
    if isinstance(value, list):
        named = named_in_list(value)
        if named:
            return named
        if len(value) != 1:
            return _read_options(value)
        value = value[0]
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        made = cast_to_one(value, ["object"])
        if made is None:
            return _in_code(value[:MAX_TEXT])
        value = made[1]
    elif isinstance(value, str):
        return _in_notation(value) or _in_code(value[:MAX_TEXT]) or _read_options(value)
    if isinstance(value, dict) and len(value) <= MAX_KEYS:
        return value
    return {}


def named_in_list(value: JsonValue) -> JsonObject:
    """Return what a list states by name.

    `[{"name": "a", "value": 1}]`, `[["a", 1]]`, `[{"a": 1}, ...]`.

    Lines of names and values are one text. Empty where a list is anything else, or has a name
    twice.
    """
    items = value[:MAX_KEYS] if isinstance(value, list) else []
    if len(items) > 1 and all(isinstance(each, str) for each in items):
        return _in_notation("\n".join(map(str, items)))
    found = dict(filter(None, map(name_value_pair, items)))
    is_one = len(items) == 1 and isinstance(items[0], dict) and "value" not in items[0]
    if len(found) == len(items) and not is_one:
        return found
    return {}


def name_value_pair(item: JsonValue) -> tuple[str, JsonValue] | None:
    """Return a name and its value; what states that it is to be set, such as `"op".

    "add"`, may stand by.
    """
    if isinstance(item, dict):
        keys = [key for key in item if key in _KEYS]
        if len(keys) == 1 and "value" in item:
            rest = {each for key, each in item.items() if key not in (*keys, "value")}
            if rest <= _SETS:
                return (str(item[keys[0]]).lstrip("/"), item["value"])
            return None
        if len(item) == 1:
            return next(iter(item.items()))
        return None
    if isinstance(item, list) and len(item) == 2 and isinstance(item[0], str):
        return item[0], item[1]
    return None


@lru_cache(512)
def _in_code(text: str) -> JsonObject:
    """Return what a program passes by name.

    `a=1, b='x'`, `tool(a=1)`, `tool({a: 1})`. Nothing is run.
    """
    if not {"=", "{"} & set(text):
        return {}
    plain = _LOOSE.sub(_as_python, text.strip().removeprefix("json"))
    for form in (plain, f"f({plain})"):
        try:
            lines = ast.parse(form).body
            first, *others = (_passed_values(getattr(line, "value", None)) for line in lines[:3])
            if first and all(each == first for each in others):
                held = check_json_value(first)
                if isinstance(held, dict) and len(held) <= MAX_KEYS:
                    return held
                return {}
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
            continue
    return {}


def _as_python(found: re.Match[str]) -> str:
    if found["text"] or found["remark"]:
        return found["text"] or ""
    if found["colon"]:
        return json.dumps(found["word"])
    return _CONSTANTS.get(found[0], found[0])


def _passed_values(node: object) -> JsonObject:
    """Return the named values of the innermost call, or the object that is its only value."""
    while isinstance(node, ast.Await) or (
        isinstance(node, ast.Call) and not node.keywords and len(node.args) == 1
    ):
        node = node.value if isinstance(node, ast.Await) else node.args[0]
    if isinstance(node, ast.Call) and not node.args and all(each.arg for each in node.keywords):
        return {str(each.arg): _read_constant(each.value) for each in node.keywords}
    held = _read_constant(node) if isinstance(node, ast.Dict) else {}
    if isinstance(held, dict):
        return held
    return {}


def _read_constant(node: ast.expr) -> JsonValue:
    value = node.id if isinstance(node, ast.Name) else ast.literal_eval(node)
    if isinstance(value, tuple):
        return list(value)
    return value


def _in_notation(text: str) -> JsonObject:
    """Return the value of a text in a fence, nested JSON, XML, YAML or a query."""
    text = text[:MAX_TEXT].strip()
    fenced = _FENCE.fullmatch(text)
    text = fenced[1] if fenced else text
    for _ in range(2):
        if text[:1] not in ("{", '"'):
            break
        value = json_or_text(text)
        if isinstance(value, dict):
            return value if len(value) <= MAX_KEYS else {}
        if isinstance(value, str):
            text = value
    tags = list(_TAG.finditer(text))
    if tags and sum(len(tag[0]) for tag in tags) == len(text):
        return {tag[1] or tag[2]: json_or_text(tag[3]) for tag in tags}
    lines = [_LINE.fullmatch(line.strip()) for line in text.splitlines()]
    if lines and all(lines):
        return {line[1]: json_or_text(line[2]) for line in lines if line}
    cells = cells_in(text)
    if cells:
        names, *rows = cells
        if len(rows) != 1 or len(rows[0]) != len(names) or not all(map(str.isidentifier, names)):
            return {}
        return dict(zip(names, map(json_or_text, rows[0]), strict=True))
    return _in_query(text)


def _in_query(text: str) -> JsonObject:
    """Return the values of an address's query."""
    if "=" not in text or not {"&", "?"} & set(text):
        return {}
    try:
        pairs = parse_qsl(text.rpartition("?")[2], strict_parsing=True)
    except ValueError:
        return {}
    return {name: json_or_text(value) for name, value in pairs}


def cells_in(text: str) -> list[list[str]]:
    """Return the cells of a text that is a table of two lines or more; empty for any other text."""
    lines = [line.strip().strip("|") for line in text.splitlines() if not _RULED.fullmatch(line)]
    mark = next((each for each in _BETWEEN_CELLS if lines and each in lines[0]), None)
    if mark is None:
        return []
    if len(lines) < 2:
        return []
    if not all(mark in line for line in lines):
        return []
    return [[cell.strip() for cell in line.split(mark)] for line in lines[:MAX_KEYS]]


def _read_options(written: str | list[JsonValue]) -> JsonObject:
    """Return what the options of a command say by name: `tool --a 1 --b=x`, `["a=1", "b=x"]`."""
    try:
        words = shlex.split(written[:MAX_TEXT]) if isinstance(written, str) else written
    except ValueError:
        return {}
    found: JsonObject = {}
    waiting: str | None = None
    for at, word in enumerate(words[:MAX_KEYS]):
        option = _OPTION.fullmatch(word) if isinstance(word, str) else None
        if option is None:
            if waiting is None and at:
                return {}
            if str(word)[:1] in ("(", "<"):
                return {}
            if waiting is not None:  # else it is the command itself
                found[waiting] = json_or_text(word) if isinstance(word, str) else word
            waiting = None
            continue
        found |= {} if waiting is None else {waiting: True}
        given = option["value"] if option["key"] is None else option["given"]
        waiting = option["name"] if given is None else None
        if given is not None:
            found[option["name"] or option["key"]] = json_or_text(given)
    if waiting is None:
        return found
    return {**found, waiting: True}


def json_or_text(text: str) -> JsonValue:
    """Return what a text states as JSON, or else the text."""
    try:
        value: JsonValue = json.loads(text.lower() if text in ("True", "False") else text)
    except ValueError:
        return text
    return value


# --- Arguments that came as a text ---
def read_any_arguments(text: str) -> JsonObject | None:
    """Return the object that the text of a call's arguments states, in whatever notation.

    None where it states no object, where it breaks off inside of a value, and where a value of the
    object stands nowhere in the text: nothing is completed by a guess.
    """
    if len(text) > MAX_ARGUMENTS or is_cut_off(text, unclosed=True):
        return None
    if found := object_in(text):
        return found if is_in_text(found, text) else None
    return read_arguments(text, unclosed=True)


def with_arguments(call: CallT) -> CallT:
    """Return a call whose arguments came as a text with the object that the text states, if any."""
    read = read_any_arguments(call.arguments_text) if call.arguments_text is not None else None
    if read is None:
        return call
    return call.model_copy(update={"parameters": read, "parameters_known": True})
