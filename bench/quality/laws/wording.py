"""Laws of words and order: names, envelope, dialect and order."""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from aftercall.change_classes import is_destroying, qualifiers_of, reads_only
from aftercall.json_patch import same_json
from bench.quality.laws.asking import Reply, same
from bench.quality.laws.case import Case, is_secret
from bench.quality.laws.complaints import complaints_of
from bench.quality.laws.dialects import DIALECTS, error_in
from bench.quality.laws.law import Same, Variation
from bench.quality.laws.past import fixed_by_others
from bench.quality.laws.values import properties_of, words_of
from bench.quality.trial import Json

_NEAR = 0.01
"""How far the confidence may move where only a name changes that nothing hangs on."""
_INVENTED = ("zorvex", "quilto", "brinda", "marnok", "velpir", "tasuno", "girdle", "plovex")
_LONGEST = 1_500
"""Characters up to which an error is put into an envelope."""


def vary_names(case: Case, rng: random.Random) -> Iterator[Variation]:
    """Yield the case with tool, server, agent, session and right parameters renamed throughout."""
    yield Variation("server", case, replace(case, server="quilto-hub"), _SAME)
    yield Variation("agent", case, replace(case, agent="marnok"), _SAME)
    yield Variation("session", case, replace(case, session="velpir-77"), _SAME)
    tool = _renamed_tool(case)
    if tool != case.tool:
        message = case.message.replace(case.tool, tool)
        message = message.replace(
            case.tool[:1].upper() + case.tool[1:], tool[:1].upper() + tool[1:]
        )
        changed = replace(case.with_message(message), tool=tool)
        yield Variation("tool", case, changed, _SAME)
    yield from _renamed_parameters(case, rng)


def _renamed_tool(case: Case) -> str:
    """The tool's name with invented nouns; verbs stay, for they say what the tool may do."""
    call_words = set().union(set(), *map(words_of, case.call))
    known_words = set().union(set(), *map(words_of, properties_of(case) or {}))
    nouns = [
        word
        for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", case.tool)
        if not (reads_only(word, None) or is_destroying(word, None))
        and reads_only(f"get_{word}", None)
        and word.lower() not in call_words | known_words
        and word.lower().rstrip("s") not in call_words | known_words
    ]
    tool = case.tool
    for noun, invented in zip(nouns, _INVENTED, strict=False):
        shown = invented.title() if noun[:1].isupper() else invented
        if not re.search(rf"\b{noun}", case.message.replace(case.tool, ""), re.IGNORECASE):
            tool = tool.replace(noun, shown, 1)
    return tool


def _renamed_parameters(case: Case, rng: random.Random) -> Iterator[Variation]:
    """Right parameters at the top level that the error does not name, with invented names."""
    properties = properties_of(case)
    if properties is None or case.schema is None or not case.right:
        return
    for name, value in case.call.items():
        is_kept = name in properties and same_json(case.right[0].get(name), value)
        if not is_kept or qualifiers_of(name) or is_secret(name, value):
            continue
        if name in case.message or not isinstance(value, str | int | float | bool):
            continue
        if _is_named_by_a_rule(case.schema, name):
            continue
        invented = rng.choice(_INVENTED)
        schema = {
            **case.schema, "properties": _renamed(properties, name, invented),
            "required": [invented if each == name else each
                         for each in case.schema.get("required", ())],
        }  # fmt: skip
        changed = replace(case, call=_renamed(case.call, name, invented), schema=schema)
        relation = replace(_SAME, placed=partial(_renamed, name=name, new=invented))
        yield Variation("parameter", case, changed, relation)


def _is_named_by_a_rule(schema: Json, name: str) -> bool:
    """Whether the schema names a parameter elsewhere than as a property and as required."""
    return json.dumps(schema).count(json.dumps(name)) > 1 + (name in schema.get("required", ()))


def _renamed(members: Json, name: str, new: str) -> Json:
    return {new if each == name else each: value for each, value in members.items()}


_SAME = Same(change_class=True, safe=True, within=_NEAR, check=True)
"""The same answer."""


def _envelopes(case: Case) -> Iterator[tuple[str, str]]:
    said, sent = case.message, json.dumps(case.call)
    yield "JSON error", json.dumps({"error": said})
    yield "JSON ok false", json.dumps({"ok": False, "error": said})
    yield "JSON error object", json.dumps({"error": {"code": "BAD_REQUEST", "message": said}})
    yield (
        "JSON-RPC",
        json.dumps({"jsonrpc": "2.0", "id": 7, "error": {"code": -32602, "message": said}}),
    )
    yield "content list", json.dumps({"content": [{"type": "text", "text": said}], "isError": True})
    yield "Python repr", repr({"status": "error", "message": said})
    yield "XML", f"<tool_use_error>{said}</tool_use_error>"
    yield "executing tool", f"Error executing tool {case.tool}: {said}"
    yield "MCP error", f"MCP error -32602: {said}"
    yield "prefix", f"Error: {said}"
    yield "HTTP", f"400 Bad Request: {said}"
    yield "hint after", f"{said}\n\nHint: read the documentation of the tool and try again."
    yield (
        "stack after",
        f'{said}\n  File "/app/tools/run.py", line 88, in call_tool\n    raise error',
    )
    yield "stack of JavaScript", f"{said}\n    at callTool (/app/dist/server.js:214:11)"
    yield "arguments after", f"{said}\nArguments: {sent}"
    yield "arguments before", f"Tool {case.tool} called with {sent} failed: {said}"


_CODED = ("JSON-RPC", "MCP error", "HTTP", "JSON error object")
"""Envelopes with a code, which says that the arguments were refused."""


def vary_envelope(case: Case, rng: random.Random) -> Iterator[Variation]:
    """Yield the case with its error in envelopes: the reading, and then the repair."""
    if len(case.message) > _LONGEST or not case.message:
        return
    envelopes = list(_envelopes(case))
    for kind, message in rng.sample(envelopes, 4):
        changed = case.with_message(message)
        relation = _same_if_refused if kind in _CODED else _SAME_READING
        yield Variation(kind, case, changed, relation)
        yield Variation(f"{kind}: signature", case, changed, _same_signature)


_SAME_READING = Same(category=True, change_class=True)


def _same_if_refused(base: Reply, changed: Reply) -> str | None:
    """The same, where the code says no more than the words do."""
    is_refused = base.suggested.pattern.category == "invalid_parameters"
    return _SAME_READING(base, changed) if is_refused else None


def _same_signature(base: Reply, changed: Reply) -> str | None:
    old, new = base.suggested.pattern.signature, changed.suggested.pattern.signature
    return None if old == new else f"signature {old[:120]!r} became {new[:160]!r}"


def vary_dialect(case: Case, rng: random.Random) -> Iterator[Variation]:
    """Yield the case with its fault in the words of other libraries."""
    if case.schema is None:
        return
    complaints = complaints_of(case.schema, case.call)
    if not complaints:
        return
    base = case
    if case.dialect is None:  # the words of its server may say more than the schema does
        base = replace(case, error=error_in("jsonschema", case.tool, complaints),
                       dialect="jsonschema")  # fmt: skip
    others = [name for name in DIALECTS if name != base.dialect]
    for name in rng.sample(others, 4):
        error = error_in(name, case.tool, complaints)
        changed = replace(base, error=error, dialect=name)
        yield Variation(name, base, changed, Same())


def vary_order(case: Case, rng: random.Random) -> Iterator[Variation]:
    """Yield the case with parameters, schema and learned events in another order."""
    yield Variation("parameters", case, replace(case, call=_turned(case.call)), _all_the_same)
    if case.schema is not None:
        if not any(isinstance(each, list) for each in case.call.values()):
            schema = _turned_schema(case.schema, "properties")
            yield Variation("schema", case, replace(case, schema=schema), _all_the_same)
        required = _turned_schema(case.schema, "required")
        yield Variation("required", case, replace(case, schema=required), _all_the_same)
    if len(case.mends) >= 3:
        sessions = [fixed_by_others(case, at) for at in range(3)]
        learned = replace(case, history=tuple(chain(*sessions)))
        shuffled = rng.sample(sessions, 3)
        turned = replace(case, history=tuple(chain(*shuffled)))
        yield Variation("sessions", learned, turned, _all_the_same)
        mixed = tuple(each for pair in zip(*sessions, strict=True) for each in pair)
        yield Variation("events", learned, replace(case, history=mixed), _all_the_same)
        yield Variation("batches", learned, replace(learned, batch=1), _all_the_same)


def _turned(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _turned(value[name]) for name in reversed(value)}
    return [_turned(each) for each in value] if isinstance(value, list) else value


def _turned_schema(schema: Any, keyword: str) -> Any:
    """The schema with the members of a keyword the other way round, at every depth."""
    if isinstance(schema, list):
        return [_turned_schema(each, keyword) for each in schema]
    if not isinstance(schema, dict):
        return schema
    turned = {name: _turned_schema(each, keyword) for name, each in schema.items()}
    held = turned.get(keyword)
    if isinstance(held, dict):
        turned[keyword] = {name: held[name] for name in reversed(held)}
    elif isinstance(held, list):
        turned[keyword] = held[::-1]
    return turned


def _all_the_same(base: Reply, changed: Reply) -> str | None:
    if broken := _SAME(base, changed):
        return broken
    for old, new in zip(base.repairs, changed.repairs, strict=False):
        if not same(old, new):
            return "other suggestions below the first"
    count = len(base.repairs), len(changed.repairs)
    return None if count[0] == count[1] else f"{count[0]} suggestions became {count[1]}"
