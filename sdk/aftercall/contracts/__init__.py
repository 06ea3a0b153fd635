"""Contracts: what a tool's result must be, checked by a machine.

    wanted = Deliverable.from_dict({"titles": {"min_items": 1}})
    check({"titles": []}, wanted)   # [Violation('/titles', 'min_items', 1, 0)]

    @deliverable({"titles": {"min_items": 1}})
    def movies(genre: str) -> dict[str, object]: ...

A result that breaks its deliverable is a failed call of type `contract_violation`. Without a
deliverable a success stays a success, whatever it states of itself.

What is around a call (a decorator, a reader) looks at the canonical shape of a result: keys and
containers only, never a value. Three differences are unmistakable, and nothing else is touched:

- the style of a key that the deliverable names: it asks for `movie_titles`, and there are
  `movieTitles` or `Movie-Titles`, once. Never a synonym: `films` are no `titles`;
- an envelope: something is asked for, and there is an object with one key that states nothing
  (`result`, `items`, `data`), around just that;
- one object where an array of such objects is asked for, and an array of one where that one is
  asked for. A single text is never made an array: "no titles found" is not a list of one title.

Doing it twice changes nothing, and what is canonical already comes back as the same object. It may
still break the deliverable: that is for `check` to say.
"""

import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, ParamSpec, TypeVar

from aftercall.contracts.deliverables import (
    Deliverable,
    describe_value,
    fold_name,
    holds_nothing,
    is_envelope,
    is_of_type,
    items_of,
    members_of,
    name_type,
    schema_errors,
)
from aftercall.errors import ConfigurationError
from aftercall.json_patch import make_pointer
from aftercall.json_values import JsonValue, bounded_json
from aftercall.models.calls import ExecutionError
from aftercall.outcomes import CONTRACT_VIOLATION, Outcome, ToolFailedError, make_error
from aftercall.reflection.results import ResultReader
from aftercall.tables import gather_values

__all__ = [
    "CONTRACT_VIOLATION", "ContractViolationError", "Deliverable", "DeliverableReader", "Violation",
    "canonical", "check", "checked", "deliverable", "violation_error",
]  # fmt: skip
CallP = ParamSpec("CallP")
ResultT = TypeVar("ResultT")
_logger = logging.getLogger(__name__)
MAX_VIOLATIONS = 20
"""Reported of one result; of more, the first."""
_MAX_PATH_CHARS = 500
"""Of a pointer into a result; a longer one stops at the last place that fits."""
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

    `path` is a JSON Pointer (RFC 6901) to the place in the result, or of what is missing to the
    place that lacks it; `""` is the result itself. `mismatch` names the constraint: `type`,
    `required`, `non_empty`, `min_items`, `json_schema` ... `actual` is a count, a type or a size;
    never the value itself, which may be private.
    """

    path: str
    mismatch: str
    expected: JsonValue
    actual: JsonValue

    def __str__(self) -> str:
        place = f" at {self.path}" if self.path else ""
        return f"the result breaks its contract{place}: {_WORDS[self.mismatch].format(self)}"


class ContractViolationError(ToolFailedError):
    """The tool ran and returned, but not what its deliverable asks for.

    `error` is what a failed call is recorded with; `violations` are one to twenty.
    """

    def __init__(self, violations: Sequence[Violation]) -> None:
        super().__init__(violation_error(violations))
        self.violations = tuple(violations)


def violation_error(violations: Sequence[Violation]) -> ExecutionError:
    """Return the violations (one or more) as the error of a failed call, in the words of the wire.

    `details` has the first one's `path`, `mismatch`, `expected` and `actual`, and all of them
    under `violations`.
    """
    first, more = violations[0], len(violations) - 1
    message = str(first)
    if more:
        least = "at least " if len(violations) >= MAX_VIOLATIONS else ""
        message += f"; and {least}{more} more"
    details = {**asdict(first), "violations": [asdict(violation) for violation in violations]}
    return make_error(CONTRACT_VIOLATION, message, details=details)


def check(value: object, deliverable: Deliverable) -> list[Violation]:
    """Return what `value` does not meet, outer places first, in the order of the deliverable.

    At most 20.

    The value is taken as it is: see `aftercall.contracts.canonical` for what differs in key style
    or container only. A JSON Schema that cannot be applied to it is a `ConfigurationError`.
    """
    return list(islice(_find_violations(value, deliverable, ""), MAX_VIOLATIONS))


def _find_violations(value: object, wanted: Deliverable, path: str) -> Iterator[Violation]:
    if (kind := wanted.expected_type) is not None and not is_of_type(value, kind):
        yield Violation(path, "type", kind, name_type(value))
        return
    if wanted.non_empty is True and (
        holds_nothing(value) or (kind is None and _holds_nothing(value))
    ):
        yield Violation(path, "non_empty", True, describe_value(value))  # noqa: FBT003
    yield from _check_bounds(value, wanted, path)
    members = members_of(value) if wanted.named else None
    if members is not None:
        for name in wanted.needed:
            if name not in members:
                yield Violation(path, "required", name, describe_value(value))
        for name in wanted.named:
            if name in members:
                yield from _of_member(members[name], name, wanted, path)
    if wanted.items is not None:
        for index, item in enumerate(items_of(value) or ()):
            yield from _find_violations(item, wanted.items, _path_below(path, index))
    for error in schema_errors(value, wanted.json_schema, most=MAX_VIOLATIONS):
        here = path
        for part in error.instance_path:
            here = _path_below(here, part)
        asked = bounded_json(error.kind.value, max_chars=300)
        yield Violation(
            here, "json_schema", {error.kind.name: asked}, describe_value(error.instance)
        )


def _holds_nothing(value: object) -> bool:
    """Return whether a value, or the envelope around it, holds nothing: `{"result": []}`."""
    members = members_of(value) or {}
    return len(members) == 1 and all(
        is_envelope(k) and holds_nothing(v) for k, v in members.items()
    )


def _of_member(value: object, name: str, wanted: Deliverable, path: str) -> Iterator[Violation]:
    here, part = _path_below(path, name), wanted.fields.get(name)
    if name not in wanted.needed and value is None:
        return  # an optional key that is null states the same as one that is missing
    if name in wanted.full and holds_nothing(value):
        yield Violation(here, "non_empty", True, describe_value(value))  # noqa: FBT003
    elif part is not None:
        yield from _find_violations(value, part, here)


def _check_bounds(value: object, wanted: Deliverable, path: str) -> Iterator[Violation]:
    if (items := items_of(value)) is not None:
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


def _path_below(path: str, part: str | int) -> str:
    """RFC 6901; a key may hold any text, so that only so much of it is shown."""
    longer = path + make_pointer([part])
    return longer if len(longer) <= _MAX_PATH_CHARS else path


def deliverable(
    wanted: Deliverable | Mapping[str, object] | None = None, **constraints: object
) -> Callable[[Callable[CallP, ResultT]], Callable[CallP, ResultT]]:
    """Return a decorator: what the function returns must be `wanted`.

    For plain and `async` functions. They give back the canonical shape of what they returned (see
    the module). What breaks the deliverable is raised as `ContractViolationError`; a function that
    returns an `Outcome` gives back an error outcome of type `contract_violation` instead, as its
    callers look there. Outcomes that are errors already, and serialised ones, pass through
    untouched. `wanted` is a deliverable or what `Deliverable.from_dict` reads; keywords say the
    same: `@deliverable(type="array", min_items=1)`. A wrong deliverable is a `ConfigurationError`,
    and so is a generator.
    """
    if wanted is not None and constraints:
        raise ConfigurationError("@deliverable takes a deliverable or keywords, not both")
    asked = Deliverable.from_dict(constraints if wanted is None else wanted)
    return lambda function: checked(function, asked)


def checked(
    call: Callable[CallP, ResultT], wanted: Deliverable | Mapping[str, object]
) -> Callable[CallP, ResultT]:
    """Return a callable like `call` whose result is held against `wanted`; see `deliverable`.

    It can stand wherever a tool is called: `call_with_reflection(checked(tool, wanted), ...)`.
    """
    asked = Deliverable.from_dict(wanted)
    if inspect.isgeneratorfunction(call) or inspect.isasyncgenfunction(call):
        raise ConfigurationError(
            "a generator returns no result to check; return the whole result, or check each part"
        )
    if inspect.iscoroutinefunction(call):

        @functools.wraps(call)
        async def await_checked(*args: CallP.args, **kwargs: CallP.kwargs) -> Any:
            return _hold_result(await call(*args, **kwargs), asked)

        return await_checked  # type: ignore[return-value]  # a coroutine function, as `call` is

    @functools.wraps(call)
    def call_checked(*args: CallP.args, **kwargs: CallP.kwargs) -> Any:
        result = call(*args, **kwargs)
        return (
            _await_result(result, asked)
            if inspect.isawaitable(result)
            else _hold_result(result, asked)
        )

    return call_checked


def held_against(value: Any, wanted: Deliverable) -> tuple[Any, list[Violation]]:
    """Return the canonical shape and what it breaks, for a call that is under way. Never raises.

    What cannot be checked is no violation: that a JSON Schema cannot be applied, or that an object
    cannot be looked at, states nothing about the tool. The result stands as it is, and it is
    logged.
    """
    shaped = value
    try:
        shaped = to_canonical(value, wanted)
        return shaped, check(shaped, wanted)
    except ConfigurationError as error:
        _logger.warning("a result was not checked: %s", error)
    except Exception as error:  # noqa: BLE001  # foreign objects may raise anything
        _logger.warning("a result was not checked: %s", type(error).__name__)
    return shaped, []


async def _await_result(result: Awaitable[Any], wanted: Deliverable) -> Any:
    return _hold_result(await result, wanted)


def _hold_result(result: Any, wanted: Deliverable) -> Any:
    if not (outcome := Outcome.coerce(result)).is_ok:
        return result
    shaped, violations = held_against(outcome.value, wanted)
    if not isinstance(result, Outcome):
        if violations:
            raise ContractViolationError(violations)
        return shaped
    if violations:
        return Outcome(failure=violation_error(violations))
    return result if shaped is outcome.value else replace(outcome, value=shaped)


@dataclass(eq=False)
class DeliverableReader(ResultReader[ResultT]):
    """A `ResultReader` that holds what another one takes for a success against a deliverable.

    With it, `call_with_reflection` records a violation as the call's failure and asks about it.
    The result itself is neither changed nor recorded in another shape.

    Failures by the word of the `inner` reader are not checked. Anything that is checked is what
    `delivered` makes of a result: when left out, an `Outcome`'s value, or the result itself.
    """

    reads_in_thread = True  # the work is linear in the result, which may be of any size

    inner: ResultReader[ResultT]
    deliverable: Deliverable
    delivered: Callable[[ResultT], object] = lambda result: Outcome.coerce(result).value

    def read(self, result: ResultT) -> Outcome[Any] | None:
        """Return what the inner reader states, or the violation of a success."""
        if (outcome := self.inner.read(result)) is None or not outcome.is_ok:
            return outcome
        _, violations = held_against(self.delivered(result), self.deliverable)
        return Outcome(failure=violation_error(violations)) if violations else outcome

    def read_exception(self, error: Exception) -> ExecutionError:
        """Read an exception as the inner reader does."""
        return self.inner.read_exception(error)


def to_canonical(value: Any, wanted: Deliverable) -> Any:
    """`value` in the keys and containers that `wanted` speaks of; see the module."""
    value = _in_container(value, wanted)
    if isinstance(value, dict):
        value = _in_style(value, wanted)
        changed = {
            name: made
            for name, part in wanted.fields.items()
            if name in value and (made := to_canonical(value[name], part)) is not value[name]
        }
        return {key: changed.get(key, each) for key, each in value.items()} if changed else value
    if isinstance(value, list) and wanted.items is not None:
        items = [to_canonical(item, wanted.items) for item in value]
        is_same = all(made is item for made, item in zip(items, value, strict=True))
        return value if is_same else items
    return value


def _in_container(value: Any, wanted: Deliverable) -> Any:
    """Out of an envelope, out of or into an array of one: where that makes it what is asked for."""
    if (kind := wanted.expected_type) is None:
        return value

    def is_fitting(each: Any) -> bool:
        return _answers_to(each, wanted) if kind == "object" else is_of_type(each, kind)

    if isinstance(value, dict):
        if (held := _open_envelope(value, wanted)) is not None and is_fitting(held):
            return held
        return [value] if kind == "array" and _answers_to(value, wanted.items) else value
    is_one = kind != "array" and isinstance(value, list) and len(value) == 1
    return value[0] if is_one and is_fitting(value[0]) else value


def _open_envelope(value: dict[Any, Any], wanted: Deliverable) -> Any:
    """Return what the one key holds, when it is an envelope and not a key that was asked for."""
    if len(value) != 1:
        return None
    (key,) = value
    is_asked_for = isinstance(key, str) and fold_name(key) in wanted.named_in_any_style
    return value[key] if is_envelope(key) and not is_asked_for else None


def _answers_to(value: Any, wanted: Deliverable | None) -> bool:
    """Return whether it is an object with all keys that are needed, or with any when none is."""
    if wanted is None or not isinstance(value, dict):
        return False
    there = {fold_name(key) for key in value if isinstance(key, str)}
    needed = [fold_name(name) for name in wanted.needed]
    return there.issuperset(needed) if needed else not there.isdisjoint(wanted.named_in_any_style)


def _in_style(value: dict[Any, Any], wanted: Deliverable) -> dict[Any, Any]:
    """Keys in the deliverable's spelling, each where it stood; two that fit are both left."""
    if not (missing := [name for name in wanted.named if name not in value]):
        return value
    by_style = gather_values(
        (fold_name(key), key) for key in value if isinstance(key, str) and key not in wanted.named
    )
    renamed = {
        found[0]: name
        for name in missing
        if len(found := by_style.get(fold_name(name), [])) == 1
        and wanted.named_in_any_style[fold_name(name)] == 1
    }
    return {renamed.get(key, key): item for key, item in value.items()} if renamed else value
