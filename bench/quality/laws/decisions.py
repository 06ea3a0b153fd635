"""Laws of what is done: ambiguity, fixpoint and agreement."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aftercall.json_patch import same_json
from bench.quality.laws.asking import SURE, Reply, same
from bench.quality.laws.case import (
    Case,
    KeyPath,
    leaves,
    objects,
    pointer,
    put_at,
    put_schema_at,
    schema_at,
)
from bench.quality.laws.complaints import errors_of
from bench.quality.laws.dialects import refusal
from bench.quality.laws.law import Relation, Variation, first_broken, itself
from bench.quality.laws.values import words_of
from bench.quality.trial import Json

_PLAIN = {"type": "string"}
_EVEN = 0.5
"""Confidence from which on a change is likelier right than not."""


@dataclass(frozen=True, slots=True)
class Twins:
    """Two open places that would take a value, and the name that it was sent under."""

    kind: str
    key: str
    places: tuple[str, str]
    value: str
    required: bool = False


_TWINS = (
    Twins("shared word", "name", ("channelName", "userName"), "bob"),
    Twins("shared word", "path", ("source_path", "target_path"), "/srv/walnut/harbour.txt"),
    Twins("shared word", "address", ("billingAddress", "shippingAddress"), "12 Harbour Street"),
    Twins("shared word", "id", ("order_id", "invoice_id"), "A-30412"),
    Twins("shared word", "date", ("arrivalDate", "departureDate"), "2026-03-04"),
    Twins("shared word", "email", ("sender_email", "recipient_email"), "ana@example.org"),
    Twins("no word", "value", ("remark", "headline"), "harbour walnut"),
    Twins("no word", "text", ("caption", "footnote"), "The lantern stays"),
    Twins("no word", "data", ("motto", "slogan"), "copper violin"),
    Twins("no word", "input", ("riddle", "answer"), "saddle orchid"),
    Twins("one compound", "name", ("channelName", "user"), "bob"),
    Twins("one compound", "id", ("userId", "email"), "alice@example.org"),
    Twins("one compound", "id", ("group_id", "member"), "raven"),
    Twins("one compound", "name", ("file_name", "owner"), "walnut"),
    Twins("both required", "value", ("remark", "headline"), "harbour walnut", required=True),
    Twins("both required", "name", ("channelName", "userName"), "bob", required=True),
)
_NOBODYS = "raven harbour"
"""A text that says of no place that it is meant."""
_NEUTRAL = ("value", "text", "data", "input", "content", "item", "argument")


def vary_ambiguity(case: Case, rng: random.Random) -> Iterator[Variation]:
    """Yield calls with a value that two open places of the schema would take."""
    if not case.right or case.schema is None or errors_of(case.schema, case.right[0]):
        return
    holders = [
        (path, holder, part)
        for path, holder in objects(case.right[0])
        if (part := schema_at(case.schema, path)) and isinstance(part.get("properties"), dict)
    ]
    for path, holder, part in rng.sample(holders, min(2, len(holders))):
        for twins in rng.sample(_TWINS, 4):
            if made := _with_twins(case, path, holder, part, twins):
                yield Variation(twins.kind, made, itself, _not_filled(twins.value, twins.places))
        if found := _with_natural_twins(case, path, holder, part, rng):
            made, places = found
            yield Variation("of real schemas", made, itself, _not_filled(_NOBODYS, places))


def _with_twins(case: Case, path: KeyPath, holder: Json, part: Json, twins: Twins) -> Case | None:
    taken = set().union(*map(words_of, (*part["properties"], *holder, case.tool)))
    if taken & set().union(*map(words_of, (twins.key, *twins.places))):
        return None
    added = dict.fromkeys(twins.places, _PLAIN)
    required = [*part.get("required", ()), *(twins.places if twins.required else ())]
    schema = {
        **part, "properties": {**part["properties"], **added}, "required": required,
        "additionalProperties": False,
    }  # fmt: skip
    return _refused(case, path, {**holder, twins.key: twins.value}, schema)


def _with_natural_twins(
    case: Case, path: KeyPath, holder: Json, part: Json, rng: random.Random
) -> tuple[Case, list[str]] | None:
    """A value under a neutral name, where two optional texts of the schema are open."""
    places = [
        name
        for name, of in part["properties"].items()
        if name not in holder and isinstance(of, dict) and {*of} <= {"type", "description", "title"}
        if of.get("type") == "string" and name not in part.get("required", ())
    ]
    taken = set().union(*map(words_of, part["properties"]))
    neutral = [name for name in _NEUTRAL if name not in taken]
    if len(places) < 2 or not neutral:
        return None
    sent = {**holder, rng.choice(neutral): _NOBODYS}
    made = _refused(case, path, sent, {**part, "additionalProperties": False})
    return None if made is None else (made, places)


def _refused(case: Case, path: KeyPath, holder: Json, part: Json) -> Case | None:
    assert case.right
    assert case.schema is not None
    schema = put_schema_at(case.schema, path, part)
    call = put_at(case.right[0], path, holder)
    dialect = case.dialect or "jsonschema"
    error = refusal(dialect, case.tool, schema, call)
    if error is None:
        return None
    return replace(case, schema=schema, call=call, error=error, right=None, dialect=dialect)


def _not_filled(value: str, places: Sequence[str]) -> Relation:
    def filled(repaired: Json | None) -> str:
        found = [] if repaired is None else leaves(repaired)
        taken = [path for path, each in found if same_json(each, value)]
        return ", ".join(pointer(path) for path in taken if path[-1] in places)

    def relation(reply: Reply, _: Reply) -> str | None:
        offered = zip(reply.suggested.suggestions, reply.repairs, strict=True)
        safe = [filled(repaired) for each, repaired in offered if each.safe]
        return first_broken(
            (not filled(reply.before), f"check fills: {filled(reply.before)}"),
            (not any(safe), f"safe to fill: {', '.join(filter(None, safe))}"),
            (not filled(reply.sent), f"the SDK fills: {filled(reply.sent)}"),
        )

    return relation


def vary_fixpoint(case: Case, _: random.Random) -> Iterator[Variation]:
    """Yield right calls, and calls that were repaired once."""
    if case.right and (case.schema is None or not errors_of(case.schema, case.right[0])):
        right = replace(case, call=case.right[0])
        yield Variation("right call", right, itself, _is_left_alone)
        bare = replace(right, schema=None)
        yield Variation("right call, no schema", bare, itself, _is_left_alone)
    yield Variation("check twice", case, _checked, _second_is_left_alone)
    yield Variation("suggest, then check", case, _repaired, _second_is_left_alone)
    if case.dialect is not None:
        yield Variation("suggest twice", case, _repaired, _is_not_changed_again)


def _checked(reply: Reply) -> Case | None:
    return None if reply.before is None else replace(reply.case, call=reply.before)


def _repaired(reply: Reply) -> Case | None:
    case = reply.case
    if reply.repaired is None or case.schema is None or errors_of(case.schema, reply.repaired):
        return None
    return replace(case, call=reply.repaired)


def _is_left_alone(reply: Reply, _: Reply) -> str | None:
    verdict = reply.checked.verdict
    return None if verdict in ("pass", "warn") else f"check: {verdict}"


def _second_is_left_alone(_: Reply, second: Reply) -> str | None:
    return _is_left_alone(second, second)


def _is_not_changed_again(_: Reply, second: Reply) -> str | None:
    changes = second.action == "change_parameters" and second.confidence >= _EVEN
    return f"changed again at {second.confidence:.2f}" if changes else None


def vary_agreement(case: Case, _: random.Random) -> Iterator[Variation]:
    """Yield the case itself: check and suggest agree, and so do service and SDK."""
    if case.schema is not None:
        yield Variation("check and schema", case, itself, _check_fits_schema)
    yield Variation("check and suggest", case, itself, _check_is_suggested)
    yield Variation("SDK and service", case, itself, _sdk_does_what_is_safe)
    yield Variation("retry and safe", case, itself, _retry_is_of_the_first)


def _check_fits_schema(reply: Reply, _: Reply) -> str | None:
    assert reply.case.schema is not None
    faults = [each for each in errors_of(reply.case.schema, reply.case.call)
              if each.validator != "format"]  # fmt: skip
    verdict = reply.checked.verdict
    return first_broken(
        (not faults or verdict != "pass", "check passes what the schema refuses"),
        (bool(faults) or verdict != "repair", "check repairs what the schema takes"),
    )


def _check_is_suggested(reply: Reply, _: Reply) -> str | None:
    if reply.before is None:
        return None
    return first_broken(
        (reply.action == "change_parameters", f"check repairs; suggest: {reply.action}"),
        (same(reply.before, reply.repaired), "check and suggest repair otherwise"),
        (reply.checked.change_class == reply.change_class,
         f"check: {reply.checked.change_class}; suggest: {reply.change_class}"),
    )  # fmt: skip


def _sdk_does_what_is_safe(reply: Reply, _: Reply) -> str | None:
    wanted: Any = None
    for each, repaired in zip(reply.suggested.suggestions, reply.repairs, strict=True):
        if each.action not in ("change_parameters", "retry_unchanged") or each.confidence <= SURE:
            break
        if each.safe:
            wanted = repaired if each.action == "change_parameters" else reply.case.call
            break
    if wanted is not None and reply.sent is None:
        return f"safe, but the SDK does not follow: {reply.why_not}"
    return None if same(wanted, reply.sent) else "the SDK sends what is not the first safe one"


def _retry_is_of_the_first(reply: Reply, _: Reply) -> str | None:
    if reply.first is None or reply.first.safe is None:
        return None
    safe = reply.suggested.retry.safe
    return None if safe == reply.first.safe else f"retry.safe is {safe}, the first one's is not"
