"""Laws of the values that nothing is wrong with: bystander and bytes."""

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from aftercall.json_patch import same_json
from aftercall.models import Change, FailedCall, SuggestResponse
from aftercall.redaction import is_redacted
from aftercall.reflection.retry_rules import apply_changes
from bench.quality.laws.asking import Reply, same
from bench.quality.laws.case import Case, KeyPath, leaves, pointer, put_at, schema_at
from bench.quality.laws.complaints import errors_of
from bench.quality.laws.dialects import refusal
from bench.quality.laws.law import Relation, Same, Variation, first_broken, itself
from bench.quality.laws.past import fixed_by_others, mends_of
from bench.quality.trial import Json

TOLERANCE = 0.05
"""How far the confidence may move for a bystander (`6-proof.md`, 5)."""
_SESSIONS = 4
_TEXT, _LIST = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
_CODE = "def total(rows):\n    # sum **all** of `rows`\n    return sum(r['n'] ** 2 for r in rows)\n"
_LONG = "The harbour office moves to the second floor and the lantern stays where it is now. " * 12
_BYSTANDERS: tuple[tuple[str, str, Json, Any], ...] = (
    ("text", "remark", _TEXT, "harbour walnut at noon"),
    ("secret: api_token", "api_token", _TEXT, "tok_4fK9x2LmQ8vT7bWz3RhYpN6c"),
    ("secret: password", "password", _TEXT, "Winter-2026!harbour"),
    ("secret: passport", "passport_number", _TEXT, "C01X00T47"),
    ("code", "remark", _TEXT, _CODE),
    ("object", "extra_details", {"type": "object", "properties": {
        "room": {"type": "string"}, "floor": {"type": "integer"},
        "lamp": {"type": "object", "properties": {"colour": {"type": "string"}}}}},
     {"room": "north", "floor": 2, "lamp": {"colour": "amber"}}),
    ("free object", "extra_details", {"type": "object"},
     {"path": "a.py", "retries": "3", "edits": [{"old_text": "x", "new_text": "y"}]}),
    ("list of objects", "watchers", {"type": "array", "items": {"type": "object"}},
     [{"name": "ana", "role": "owner"}, {"name": "ben", "role": "reader"}]),
    ("list", "watchers", _LIST, ["ana", "ben", "chloe"]),
    ("long text", "remark", _TEXT, _LONG.strip()),
)  # fmt: skip


def words_of(name: str) -> set[str]:
    """Return the words of a name in lower case."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)}


def properties_of(case: Case) -> Json | None:
    """Return the properties of the case's schema; None where it states none plainly."""
    schema = case.schema
    if not isinstance(schema, dict) or any(key in schema for key in ("oneOf", "anyOf", "allOf")):
        return None
    found = schema.get("properties")
    return found if isinstance(found, dict) and found else None


def lists_names(case: Case) -> bool:
    """Return whether the error lists the known names, so that a new one would be missing there."""
    known = properties_of(case) or {}
    named = sum(name in case.message for name in known)
    return len(known) > 1 and named >= max(2, 0.8 * len(known))


def is_call_wrapped(case: Case) -> bool:
    """Return whether the whole call stands under names that the schema does not know."""
    known = properties_of(case) or {}
    return not any(name in known for name in case.call) and any(
        isinstance(value, dict | list) or str(value).lstrip()[:1] in ("{", "[")
        for value in case.call.values()
    )


def vary_bystanders(case: Case, rng: random.Random) -> Iterator[Variation]:
    """Yield the case with one more parameter that is right, which the schema knows, or the tool."""
    properties = properties_of(case)
    if properties is None or is_call_wrapped(case):
        return
    if case.dialect is None and lists_names(case):
        return
    taken = set().union(*map(words_of, (*properties, *case.call)))
    open_ones = [each for each in _BYSTANDERS if not words_of(each[1]) & taken]
    for kind, name, schema, value in open_ones:
        changed = _with_parameter(case, name, schema, value)
        if changed is not None:
            yield Variation(kind, case, changed, _same_beside(name, value))
    if open_ones and mends_of(case) and not lists_names(case):
        kind, name, _, value = rng.choice(open_ones)
        learned, changed = _learned(case, name, value)
        yield Variation(f"{kind}, learned", learned, changed, _same_beside(name, value))


def _learned(case: Case, name: str, value: Any) -> tuple[Case, Case]:
    """The case without a schema, where others sent the parameter; and the same with it."""
    history = tuple(
        replace(each, call={**each.call, name: _other(value, number)})
        for number in range(_SESSIONS)
        for each in fixed_by_others(case, number)
    )
    learned = replace(case, schema=None, history=history)
    return learned, replace(learned, call={**case.call, name: value})


def _other(value: Any, number: int) -> Any:
    """Another value of the same kind: nobody sent the case's own call before."""
    if isinstance(value, str):
        return f"{value}{number}"
    return {**value, "number": number} if isinstance(value, dict) else value[: 1 + number % 2]


def _same_beside(name: str, value: Any) -> Same:
    beside = partial(_with_value, name=name, value=value)
    return Same(beside, change_class=True, within=TOLERANCE, check=True)


def _with_value(call: Json, name: str, value: Any) -> Json:
    return {**call, name: value}


def _with_parameter(case: Case, name: str, of: Json, value: Any) -> Case | None:
    assert case.schema is not None
    schema = {**case.schema, "properties": {**case.schema["properties"], name: of}}
    call = {**case.call, name: value}
    error = refusal(case.dialect, case.tool, schema, call) if case.dialect else case.error
    return None if error is None else replace(case, schema=schema, call=call, error=error)


_WITNESSES: dict[str, str] = {
    "leading blanks": "    return 2", "trailing blanks": "two columns   ",
    "tab": "\tname\tvalue",
    "line break at the end": "    return 2\n", "windows lines": "one\r\ntwo\r\n",
    "double quotes": '"harbour walnut"', "single quotes": "'harbour walnut'",
    "semicolon": "select 1;", "full stop": "The lantern stays.",
    "markdown": "**bold** and `code`\n\n- one\n- two",
    "backticks": "```py\nx = 1\n```", "unicode": "Zoe\u0308 \u2013 caf\u00e9\u00a0\u200b\U0001f980",
    "escapes": "C:\\new\\table", "markup": "<b>A &amp; B</b>", "digits": "007", "number": "1.0",
    "word of a value": "true", "JSON text": '{"a": 1}', "list text": "[1, 2]", "commas": "a, b,c",
    "blank": " ", "brackets": "(walnut)", "comma at the end": "harbour,",
}  # fmt: skip
_NUMBERS: dict[str, int | float] = {
    "number 1.0": 1.0, "number 1e3": 1e3, "number .1+.2": 0.1 + 0.2, "number -0.0": -0.0,
    "large number": 2**63 - 1, "small number": 5e-324,
}  # fmt: skip
_WHOLE: dict[str, int | float] = {"whole 2^53+1": 2**53 + 1, "whole 10^18": 10**18}
_STATED = ("enum", "const", "pattern", "format", "minLength", "maxLength", "minimum", "maximum",
           "exclusiveMinimum", "exclusiveMaximum", "multipleOf")  # fmt: skip
_PER_LEAF = 3


def vary_bytes(case: Case, rng: random.Random) -> Iterator[Variation]:
    """Yield the case itself, and the case with values in it that look odd and are right."""
    yield Variation("patch", case, itself, _patch_is_whole)
    yield Variation("minimal", case, itself, _patch_is_minimal)
    yield Variation("wire", case, itself, _wire_keeps)
    plain = [(path, value) for path, value in leaves(case.call) if _is_plain(case, path, value)]
    rng.shuffle(plain)
    for path, value in plain[:_PER_LEAF]:
        known = _witnesses(case, path, value)
        for kind in rng.sample(sorted(known), min(_PER_LEAF, len(known))):
            witness = known[kind]
            changed = replace(case, call=put_at(case.call, path, witness))
            yield Variation(kind, case, changed, _keeps(path, value, witness))


def _witnesses(case: Case, path: KeyPath, value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return dict(_WITNESSES)
    return dict(_WHOLE if _kind_at(case, path, value) == "integer" else _NUMBERS)


def _part_of(case: Case, path: KeyPath, value: Any) -> Json | None:
    """The schema of a leaf where it stands, or where the right call holds its value."""
    part = schema_at(case.schema, path)
    if part is None and case.right:
        held = [where for where, each in leaves(case.right[0]) if same_json(each, value)]
        part = schema_at(case.schema, held[0]) if len(held) == 1 else None
    return part


def _kind_at(case: Case, path: KeyPath, value: Any) -> Any:
    part = _part_of(case, path, value)
    return None if part is None else part.get("type")


def _is_plain(case: Case, path: KeyPath, value: Any) -> bool:
    part = _part_of(case, path, value)
    if part is None or any(each in part for each in _STATED) or str(value) in case.message:
        return False
    kind = part.get("type")
    if isinstance(value, str):
        return kind == "string" and len(value) > 1
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and kind in ("number", "integer")


def _keeps(path: KeyPath, value: Any, witness: Any) -> Relation:
    def relation(base: Reply, changed: Reply) -> str | None:
        for way, before, after, changes in _ways(base, changed):
            if before is None or after is None or not _holds(before, value):
                continue
            if not _holds(after, witness) and _is_altered(base.case, path, witness, after, changes):
                return f"{way}: {witness!r} at {pointer(path)} is not in the result"
        return None

    return relation


def _ways(base: Reply, changed: Reply) -> Iterator[tuple[str, Any, Any, list[Change]]]:
    suggested = changed.first.changes if changed.first else []
    yield "suggest", base.repaired, changed.repaired, suggested
    yield "check", base.before, changed.before, changed.checked.changes
    yield "SDK", base.sent, changed.sent, suggested


def _holds(call: Any, value: Any) -> bool:
    return any(same_json(each, value) for _, each in leaves(call))


def _is_altered(case: Case, path: KeyPath, witness: Any, after: Any, changes: list[Change]) -> bool:
    """Whether the value was changed in silence, or is there in another form without need.

    Where the schema takes the call, or is unknown, a change that names the value may be meant.
    """
    place = pointer(path)
    if not any(f"{place}/".startswith(f"{each.path}/") for each in changes):
        return True
    if not any(_is_near(each, witness) for _, each in leaves(after)):
        return False
    is_elsewhere = case.schema is not None and bool(errors_of(case.schema, case.call))
    return is_elsewhere or not any(each.path == place for each in changes)


def _is_near(one: Any, other: Any) -> bool:
    def letters(value: Any) -> str:
        return re.sub(r"\W+", "", str(value)).casefold()

    return letters(one) == letters(other) and letters(one) != ""


def _patch_is_whole(reply: Reply, _: Reply) -> str | None:
    offered = zip(reply.suggested.suggestions, reply.repairs, strict=True)
    for suggestion, repaired in offered:
        if suggestion.action == "change_parameters":
            told = suggestion.corrected_parameters
            if repaired is None or not _same_unmasked(repaired, told):
                return "suggest: the changes do not lead to correctedParameters"
    told = reply.checked.corrected_parameters
    if reply.checked.verdict != "repair":
        return None
    is_whole = reply.before is not None and _same_unmasked(reply.before, told)
    return None if is_whole else "check: the changes do not lead to correctedParameters"


def _same_unmasked(left: Any, told: Any) -> bool:
    if is_redacted(told):
        return True
    if isinstance(left, dict) and isinstance(told, dict):
        return left.keys() == told.keys() and all(_same_unmasked(left[k], told[k]) for k in left)
    if isinstance(left, list) and isinstance(told, list):
        pairs = zip(left, told, strict=False)
        return len(left) == len(told) and all(_same_unmasked(*pair) for pair in pairs)
    return "[redacted" in str(told) or same_json(left, told)


def _wire_keeps(reply: Reply, _: Reply) -> str | None:
    """What goes over HTTP as JSON and comes back is the same, in the question and the answer."""
    question = reply.case.question()
    asked = FailedCall.model_validate_json(question.model_dump_json(by_alias=True))
    told = reply.suggested.model_dump_json(by_alias=True)
    answer = SuggestResponse.model_validate_json(told)
    after = [apply_changes(reply.case.call, each.changes) for each in answer.suggestions]
    pairs = zip(after, reply.repairs, strict=True)
    return first_broken(
        (same_json(asked.parameters, reply.case.call), "the call is another after the wire"),
        (all(same(*pair) for pair in pairs), "the changes are others after the wire"),
    )


def _patch_is_minimal(reply: Reply, _: Reply) -> str | None:
    first = reply.first.changes if reply.first else []
    for way, changes in (("suggest", first), ("check", reply.checked.changes)):
        for each in changes:
            if each.op == "replace" and (kept := _kept_in(each.from_, each.value)):
                return f"{way}: {each.path} is replaced whole, though {kept} of it stays"
    return None


def _kept_in(before: Any, after: Any) -> str | None:
    """The place of a leaf that is the same before and after; None where there is none."""
    if type(before) is not type(after) or not isinstance(before, dict | list):
        return None
    if isinstance(before, list) and len(before) != len(after):
        return None
    known = dict(leaves(after))
    for path, value in leaves(before):
        if path in known and same_json(known[path], value):
            return pointer(path)
    return None
