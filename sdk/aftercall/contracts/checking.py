"""Checking a value against a deliverable. Pure; the work is linear in the value.

Only what the constraints say is looked at: whatever a result says of itself in words or in a
status changes nothing.
"""

from collections.abc import Iterator
from itertools import islice

from aftercall.bounded import bounded_json
from aftercall.contracts.deliverables import Deliverable
from aftercall.contracts.json_types import (
    described,
    is_empty,
    is_of_type,
    items_of,
    members_of,
    type_of,
)
from aftercall.contracts.key_style import is_envelope
from aftercall.contracts.violations import MAX_VIOLATIONS, Violation
from aftercall.json_values import JsonObject, JsonValue

_MAX_PATH_CHARS = 500
"""Of a pointer into a result; a longer one stops at the last place that fits."""

_MAX_EXPECTED_CHARS = 300


def check(value: object, deliverable: Deliverable) -> list[Violation]:
    """What `value` does not meet, outer places first, in the order of the deliverable; at most 20.

    The value is taken as it is: see `aftercall.contracts.shape.canonical` for what differs in key
    style or container only.

    Raises:
        ConfigurationError: the deliverable's JSON Schema asks for more work than is done on this
            value, or cannot be applied to it.
    """
    return list(islice(_violations(value, deliverable, ""), MAX_VIOLATIONS))


def _violations(value: object, wanted: Deliverable, path: str) -> Iterator[Violation]:
    kind = wanted.expected_type
    if kind is not None and not is_of_type(value, kind):
        yield Violation(path, "type", kind, type_of(value))
        return
    if wanted.non_empty is True and (is_empty(value) or (kind is None and _holds_nothing(value))):
        yield Violation(path, "non_empty", True, described(value))  # noqa: FBT003  # what it says
    yield from _bounds(value, wanted, path)
    members = members_of(value) if wanted.named else None
    if members is not None:
        for name in wanted.needed:
            if name not in members:
                yield Violation(path, "required", name, described(value))
        for name in wanted.named:
            if name in members:
                yield from _of_member(members[name], name, wanted, path)
    if wanted.items is not None:
        for index, item in enumerate(items_of(value) or ()):
            yield from _violations(item, wanted.items, _below(path, index))
    if wanted.json_schema is not None:
        yield from _of_schema(value, wanted.json_schema, path)


def _holds_nothing(value: object) -> bool:
    """Where no type is asked for, an envelope around nothing is empty: `{"result": []}`."""
    members = members_of(value) or {}
    return len(members) == 1 and all(is_envelope(k) and is_empty(v) for k, v in members.items())


def _of_member(value: object, name: str, wanted: Deliverable, path: str) -> Iterator[Violation]:
    here, part = _below(path, name), wanted.fields.get(name)
    if name not in wanted.needed and value is None:
        return  # an optional key that is null says the same as one that is missing
    full = () if isinstance(wanted.non_empty, bool) else wanted.non_empty
    if name in full and is_empty(value):
        yield Violation(here, "non_empty", True, described(value))  # noqa: FBT003  # what it says
    elif part is not None:
        yield from _violations(value, part, here)


def _bounds(value: object, wanted: Deliverable, path: str) -> Iterator[Violation]:
    items = items_of(value)
    if items is not None:
        yield from _of_size(len(items), wanted.min_items, wanted.max_items, "items", path)
    elif isinstance(value, str):
        yield from _of_size(len(value), wanted.min_length, wanted.max_length, "length", path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if wanted.minimum is not None and value < wanted.minimum:
            yield Violation(path, "minimum", wanted.minimum, "smaller number")
        if wanted.maximum is not None and value > wanted.maximum:
            yield Violation(path, "maximum", wanted.maximum, "larger number")


def _of_size(
    size: int, least: int | None, most: int | None, unit: str, path: str
) -> Iterator[Violation]:
    if least is not None and size < least:
        yield Violation(path, f"min_{unit}", least, size)
    if most is not None and size > most:
        yield Violation(path, f"max_{unit}", most, size)


def _of_schema(value: object, schema: JsonObject, path: str) -> Iterator[Violation]:
    from aftercall.contracts.json_schema import schema_errors  # noqa: PLC0415  # the extra

    for error in schema_errors(value, schema, most=MAX_VIOLATIONS):
        here = path
        for part in error.absolute_path:
            here = _below(here, part)
        keyword = str(error.validator)
        asked: JsonValue = bounded_json(error.validator_value, max_chars=_MAX_EXPECTED_CHARS)
        yield Violation(here, "json_schema", {keyword: asked}, described(error.instance))


def _below(path: str, part: str | int) -> str:
    """RFC 6901; a key may hold any text, so that only so much of it is told."""
    if path.count("/") and len(path) >= _MAX_PATH_CHARS:
        return path
    token = str(part).replace("~", "~0").replace("/", "~1")
    longer = f"{path}/{token}"
    return longer if len(longer) <= _MAX_PATH_CHARS else path
