"""What libraries say of a call that a schema refuses: the same complaints in many dialects.

The lines stand in `dialects.toml`; what zod and FastAPI print is JSON, and made here.
"""

import json
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.quality.laws.case import KeyPath
from bench.quality.laws.complaints import BOUNDS, Complaint, complaints_of, kind_of
from bench.quality.trial import Json

_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_SHOWN = 50
"""Characters of a value that pydantic shows."""


def _types(wanted: Any) -> list[str]:
    return wanted if isinstance(wanted, list) else [str(wanted)]


def _type(wanted: Any, names: Json) -> str:
    kind = next((each for each in _types(wanted) if each != "null"), "string")
    return str(names.get(kind, kind))


def _in_words(table: Json, tool: str, complaints: Sequence[Complaint]) -> str:
    """The message of a dialect whose lines are in the table."""
    told = list(complaints)
    if table["reports"] == "first":
        ranks = {rule: at for at, rule in enumerate(table["order"])}
        told = [min(complaints, key=lambda each: ranks.get(each.rule, len(ranks)))]
    lines = dict.fromkeys(_line(table, tool, each) for each in told)
    said = table.get("between_lines", "").join(lines)
    whole: str = table["whole"]
    if len(told) == 1:
        whole = table.get("whole_of_one") or whole
    return whole.format(said=said, tool=tool, issues=len(told))


def _line(table: Json, tool: str, complaint: Complaint) -> str:
    rule = "bounds" if complaint.rule in BOUNDS else complaint.rule
    line: str = table.get(rule) or table["otherwise"]
    fields = {**_of_place(complaint), **_of_value(table, complaint), **_of_wanted(table, complaint)}
    return line.format(tool=tool, Tool=_capital(tool), chain=_chain(tool, complaint), **fields)


def _of_place(complaint: Complaint) -> Json:
    path, above = complaint.path, complaint.above
    return {
        "rule": complaint.rule,
        "name": complaint.name,
        "Name": _capital(complaint.name),
        "place": _slashed(path),
        "holder": _slashed(above),
        "dotted": ".".join(map(str, path)) or "input",
        "keys": ".".join(key for key in path if isinstance(key, str)),
        "indexed": _indexed(path),
        "above": f"{_indexed(above)}: " if above else "",
        "steps": "".join(_steps(path)),
        "steps_above": "".join(_steps(above)),
    }


def _of_value(table: Json, complaint: Complaint) -> Json:
    value = complaint.value
    kind, text = kind_of(value), repr(value)
    half = _SHOWN // 2
    got = table.get("got", {}).get(kind, kind)
    return {
        "value": json.dumps(value),
        "shown": str(value),
        "repr": text,
        "cut": text if len(text) <= _SHOWN else f"{text[:half]}...{text[1 - half :]}",
        "kind": kind,
        "pykind": type(value).__name__,
        "got": got.replace("{value}", json.dumps(value)),
        "message": complaint.message,
    }


def _of_wanted(table: Json, complaint: Complaint) -> Json:
    wanted, codes = complaint.wanted, table.get("codes", {})
    listed = wanted if isinstance(wanted, list) else []
    items = [table.get("item", "{}").format(each) for each in listed]
    return {
        "wanted": _type(wanted, table.get("types", {})),
        "types": ",".join(_types(wanted)) if complaint.rule == "type" else "",
        "limit": wanted,
        "limit_json": json.dumps(wanted),
        "limit_repr": repr(wanted),
        "code": codes.get(complaint.rule) or _type(wanted, codes),
        "bound": f"{BOUNDS.get(complaint.rule, '')} {wanted}",
        "side": table.get("sides", {}).get(complaint.rule, ""),
        "listed": _listed(items, table.get("between", ", "), table.get("last")),
        "bare": ", ".join(map(str, listed)),
        "count": len(listed),
        "pattern": json.dumps(f'must match "{wanted}"'),
    }


def _listed(items: list[str], between: str, last: str | None) -> str:
    if last is None or len(items) < 2:
        return between.join(items)
    return f"{between.join(items[:-1])}{last}{items[-1]}"


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]


def _slashed(path: KeyPath) -> str:
    return "".join(f"/{key}" for key in path)


def _indexed(path: KeyPath) -> str:
    parts = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return "".join(parts).removeprefix(".")


def _steps(path: KeyPath) -> Iterator[str]:
    """Where jsonschema-go was in the schema, one place after the other."""
    steps = ""
    for key in path:
        steps += "/items" if isinstance(key, int) else f"/properties/{key}"
        yield f"validating {steps}: "


def _chain(tool: str, complaint: Complaint) -> str:
    """Jackson's reference chain."""
    of = f"com.acme.tools.{_capital(tool)}Request"
    return "->".join(
        f"java.util.ArrayList[{key}]" if isinstance(key, int) else f'{of}["{key}"]'
        for key in complaint.path
    )


def _fastapi(_: str, complaints: Sequence[Complaint]) -> str:
    """The body of FastAPI's answer of 422, with pydantic's words."""
    detail = []
    for each in complaints:
        _, words, *_rest = _line(_TABLES["pydantic"], "", each).splitlines()
        message, _, code = words.strip().partition(" [type=")
        loc = ["body", *each.path]
        detail.append({"type": code.partition(",")[0], "loc": loc, "msg": message})
    return json.dumps({"detail": detail})


def _zod(tool: str, complaints: Sequence[Complaint]) -> str:
    """Zod's issues as JSON, as MCP's TypeScript SDK shows them."""
    issues = json.dumps([_zod_issue(each) for each in complaints], indent=2)
    return f"MCP error -32602: Invalid arguments for tool {tool}: {issues}"


def _zod_issue(each: Complaint) -> Json:
    path = list(each.path)
    if each.rule == "additionalProperties":
        message = f"Unrecognized key(s) in object: '{each.name}'"
        keys = [each.name]
        return {"code": "unrecognized_keys", "keys": keys, "path": path[:-1], "message": message}
    if each.rule in ("required", "type"):
        return _zod_type(each, path)
    if each.rule == "enum":
        shown = " | ".join(f"'{value}'" for value in each.wanted)
        message = f"Invalid enum value. Expected {shown}, received '{each.value}'"
        issue = {"code": "invalid_enum_value", "options": each.wanted, "received": each.value}
        return {**issue, "path": path, "message": message}
    if each.rule in BOUNDS:
        return _zod_bound(each, path)
    message = "Invalid" if each.rule == "pattern" else f"Invalid {each.wanted}"
    return {"code": "invalid_string", "validation": each.rule, "path": path, "message": message}


def _zod_type(each: Complaint, path: list[Any]) -> Json:
    wanted = _type(each.wanted, {"integer": "number"})
    got = "undefined" if each.rule == "required" else kind_of(each.value)
    got = "number" if got == "integer" else got
    message = "Required" if each.rule == "required" else f"Expected {wanted}, received {got}"
    issue = {"code": "invalid_type", "expected": wanted, "received": got}
    return {**issue, "path": path, "message": message}


def _zod_bound(each: Complaint, path: list[Any]) -> Json:
    is_high = "aximum" in each.rule
    code, key = ("too_big", "maximum") if is_high else ("too_small", "minimum")
    side = "less than or equal to" if is_high else "greater than or equal to"
    issue = {"code": code, key: each.wanted, "type": "number", "inclusive": True}
    return {**issue, "path": path, "message": f"Number must be {side} {each.wanted}"}


Dialect = Callable[[str, Sequence[Complaint]], str]
DIALECTS: dict[str, Dialect] = {
    **{name: partial(_in_words, table) for name, table in _TABLES.items()},
    "fastapi": _fastapi,
    "zod": _zod,
}


def error_in(dialect: str, tool: str, complaints: Sequence[Complaint]) -> Json:
    """Return the error of a refused call in the words of a library."""
    return {"type": "ToolError", "message": DIALECTS[dialect](tool, complaints)}


def refusal(dialect: str, tool: str, schema: Json, call: Json) -> Json | None:
    """Return the error about a call; None where the schema takes it, or refuses it unclearly."""
    complaints = complaints_of(schema, call)
    return error_in(dialect, tool, complaints) if complaints else None
