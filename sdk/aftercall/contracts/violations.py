"""Checking a value against a deliverable, and what a violation becomes. Pure; linear in the value.

Only what the constraints say is looked at: whatever a result says of itself in words or in a
status changes nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice

from aftercall.contracts.deliverables import Deliverable
from aftercall.contracts.values import (
    described,
    is_empty,
    is_envelope,
    is_of_type,
    items_of,
    members_of,
    schema_errors,
    type_of,
)
from aftercall.json_values import JsonObject, JsonValue, bounded_json
from aftercall.models.calls import ExecutionError
from aftercall.outcomes import CONTRACT_VIOLATION, ToolFailedError, make_error

MAX_VIOLATIONS = 20
"""Reported of one result; of more, the first."""

_MAX_PATH_CHARS = 500
"""Of a pointer into a result; a longer one stops at the last place that fits."""

_MAX_EXPECTED_CHARS = 300

_WORDS = {
    "type": "must be of type {0.expected}, but it is: {0.actual}",
    "required": "the key {0.expected!r} is missing ({0.actual})",
    "non_empty": "must not be empty, but it is: {0.actual}",
    "min_items": "needs {0.expected} or more items, but has {0.actual}",
    "max_items": "may have {0.expected} items at most, but has {0.actual}",
    "min_length": "needs {0.expected} or more characters, but has {0.actual}",
    "max_length": "may have {0.expected} characters at most, but has {0.actual}",
    "minimum": "must be {0.expected} or more; it is a {0.actual}",
    "maximum": "must be {0.expected} or less; it is a {0.actual}",
    "json_schema": "does not fit the JSON Schema, {0.expected} ({0.actual})",
}


@dataclass(frozen=True, slots=True)
class Violation:
    """One constraint that a result does not meet.

    Attributes:
        path: JSON Pointer (RFC 6901) to the place in the result; `""` is the result itself. For
            something that is missing, the place that lacks it.
        mismatch: the constraint: `type`, `required`, `non_empty`, `min_items`, `json_schema` ...
        expected: what the constraint says.
        actual: a count, a type or a size; never the value itself, which may be private.
    """

    path: str
    mismatch: str
    expected: JsonValue
    actual: JsonValue

    def __str__(self) -> str:
        place = f" at {self.path}" if self.path else ""
        return f"the result breaks its contract{place}: {_WORDS[self.mismatch].format(self)}"

    def to_dict(self) -> JsonObject:
        """Plain JSON, with one member for each attribute."""
        return asdict(self)


class ContractViolationError(ToolFailedError):
    """The tool ran and returned, but not what its deliverable asks for.

    `error` is what a failed call is recorded with; `violations` are one to twenty.
    """

    def __init__(self, violations: Sequence[Violation]) -> None:
        super().__init__(violation_error(violations))
        self.violations = tuple(violations)


def violation_error(violations: Sequence[Violation]) -> ExecutionError:
    """The violations (one or more) as the error of a failed call, in the words of the wire.

    `details` has the first one's `path`, `mismatch`, `expected` and `actual`, and all of them
    under `violations`.
    """
    first, more = violations[0], len(violations) - 1
    message = str(first)
    if more:
        least = "at least " if len(violations) >= MAX_VIOLATIONS else ""
        message += f"; and {least}{more} more"
    every: list[JsonValue] = [violation.to_dict() for violation in violations]
    details: JsonObject = {**first.to_dict(), "violations": every}
    return make_error(CONTRACT_VIOLATION, message, details=details)


def check(value: object, deliverable: Deliverable) -> list[Violation]:
    """What `value` does not meet, outer places first, in the order of the deliverable; at most 20.

    The value is taken as it is: see `aftercall.contracts.canonical` for what differs in key style
    or container only.

    Raises:
        ConfigurationError: the deliverable's JSON Schema cannot be applied to the value.
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


def _of_schema(value: object, schema: JsonObject, path: str) -> Iterator[Violation]:
    for error in schema_errors(value, schema, most=MAX_VIOLATIONS):
        here = path
        for part in error.instance_path:
            here = _below(here, part)
        asked = bounded_json(error.kind.value, max_chars=_MAX_EXPECTED_CHARS)
        yield Violation(here, "json_schema", {error.kind.name: asked}, described(error.instance))


def _holds_nothing(value: object) -> bool:
    """Where no type is asked for, an envelope around nothing is empty: `{"result": []}`."""
    members = members_of(value) or {}
    return len(members) == 1 and all(is_envelope(k) and is_empty(v) for k, v in members.items())


def _of_member(value: object, name: str, wanted: Deliverable, path: str) -> Iterator[Violation]:
    here, part = _below(path, name), wanted.fields.get(name)
    if name not in wanted.needed and value is None:
        return  # an optional key that is null says the same as one that is missing
    if name in wanted.full and is_empty(value):
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


def _below(path: str, part: str | int) -> str:
    """RFC 6901; a key may hold any text, so that only so much of it is shown."""
    token = str(part).replace("~", "~0").replace("/", "~1")
    longer = f"{path}/{token}"
    return longer if len(longer) <= _MAX_PATH_CHARS else path
