"""Contracts: what a tool's result must be, checked by a machine.

    wanted = Deliverable.from_dict({"titles": {"min_items": 1}})
    check({"titles": []}, wanted)   # [Violation('/titles', 'min_items', 1, 0)]

    @deliverable({"titles": {"min_items": 1}})
    def movies(genre: str) -> dict[str, object]: ...

A result that breaks its deliverable is a failed call of type `contract_violation`. Without a
deliverable a success stays a success, whatever it says of itself.

What is around a call (a decorator, a callable made from another, a reader) looks at the canonical
shape of a result: keys and containers only, never a value. Three differences are unmistakable, and
nothing else is touched:

- the style of a key that the deliverable names: it asks for `movie_titles`, and there are
  `movieTitles` or `Movie-Titles`, once. Never a synonym: `films` are no `titles`;
- an envelope: something is asked for, and there is an object with one key that says nothing
  (`result`, `items`, `data`), around just that;
- one object where an array of such objects is asked for, and an array of one where that one is
  asked for. A single text is never made an array: "no titles found" is not a list of one title.

Doing it twice changes nothing, and what is canonical already comes back as the same object. It may
still break the deliverable: that is for `check` to say.
"""

import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from aftercall.contracts.deliverables import Deliverable
from aftercall.contracts.values import folded, is_envelope, is_of_type
from aftercall.contracts.violations import (
    ContractViolationError,
    Violation,
    check,
    violation_error,
)
from aftercall.errors import ConfigurationError
from aftercall.json_values import JsonValue
from aftercall.models.calls import ExecutionError
from aftercall.outcomes import CONTRACT_VIOLATION, Outcome
from aftercall.reflection.results import ResultReader

__all__ = [
    "CONTRACT_VIOLATION", "ContractViolationError", "Deliverable", "DeliverableReader", "Violation",
    "canonical", "check", "checked", "deliverable", "enforce", "violation_error",
]  # fmt: skip

CallP = ParamSpec("CallP")
ResultT = TypeVar("ResultT")

_logger = logging.getLogger(__name__)


def deliverable(
    wanted: Deliverable | Mapping[str, object] | None = None, **constraints: object
) -> Callable[[Callable[CallP, ResultT]], Callable[CallP, ResultT]]:
    """A decorator: what the function returns must be `wanted`.

    For plain and `async` functions. They give back the canonical shape of what they returned (see
    the module). What breaks the deliverable is raised as
    `ContractViolationError`; a function that returns an `Outcome` gives back an error outcome of
    type `contract_violation` instead, as its callers look there. Outcomes that are errors already,
    and serialised ones, pass through untouched. `wanted` is a deliverable or what
    `Deliverable.from_dict` reads; keywords say the same: `@deliverable(type="array", min_items=1)`.

    Raises:
        ConfigurationError: the deliverable is wrong, or the function is a generator.
    """
    if wanted is not None and constraints:
        raise ConfigurationError("@deliverable takes a deliverable or keywords, not both")
    asked = Deliverable.from_dict(constraints if wanted is None else wanted)

    def decorate(function: Callable[CallP, ResultT]) -> Callable[CallP, ResultT]:
        return checked(function, asked)

    return decorate


def checked(
    call: Callable[CallP, ResultT], wanted: Deliverable | Mapping[str, object]
) -> Callable[CallP, ResultT]:
    """A callable like `call` whose result is held against `wanted`; see `deliverable`.

    It can stand wherever a tool is called: `call_with_reflection(checked(tool, wanted), ...)`.

    Raises:
        ConfigurationError: the deliverable is wrong, or `call` is a generator function.
    """
    asked = Deliverable.from_dict(wanted)
    if inspect.isgeneratorfunction(call) or inspect.isasyncgenfunction(call):
        raise ConfigurationError(
            "a generator returns no result to check; return the whole result, or check each part"
        )
    if inspect.iscoroutinefunction(call):

        @functools.wraps(call)
        async def awaiting(*args: CallP.args, **kwargs: CallP.kwargs) -> Any:
            return _held(await call(*args, **kwargs), asked)

        return awaiting  # type: ignore[return-value]  # a coroutine function, as `call` is

    @functools.wraps(call)
    def calling(*args: CallP.args, **kwargs: CallP.kwargs) -> Any:
        result = call(*args, **kwargs)
        return _awaited(result, asked) if inspect.isawaitable(result) else _held(result, asked)

    return calling


def enforce(value: Any, wanted: Deliverable) -> Any:
    """The canonical shape of `value`.

    Raises:
        ContractViolationError: it breaks the deliverable.
    """
    shaped, violations = held_against(value, wanted)
    if violations:
        raise ContractViolationError(violations)
    return shaped


def held_against(value: Any, wanted: Deliverable) -> tuple[Any, list[Violation]]:
    """The canonical shape and what it breaks, for a call that is under way. Never raises.

    What cannot be checked is no violation: that a JSON Schema cannot be applied, or that an object
    cannot be looked at, says nothing about the tool. The result stands as it is, and it is logged.
    """
    shaped = value
    try:
        shaped = canonical(value, wanted)
        return shaped, check(shaped, wanted)
    except ConfigurationError as error:
        _logger.warning("a result was not checked: %s", error)
    except Exception as error:  # noqa: BLE001  # foreign objects may raise anything
        _logger.warning("a result was not checked: %s", type(error).__name__)
    return shaped, []


async def _awaited(result: Awaitable[Any], wanted: Deliverable) -> Any:
    return _held(await result, wanted)


def _held(result: Any, wanted: Deliverable) -> Any:
    outcome = Outcome.coerce(result)
    if not outcome.is_ok:
        return result
    if not isinstance(result, Outcome):
        return enforce(result, wanted)
    try:
        shaped = enforce(outcome.value, wanted)
    except ContractViolationError as violation:
        return Outcome(failure=violation.error)
    return result if shaped is outcome.value else outcome.with_value(shaped)


class DeliverableReader(ResultReader[ResultT]):
    """A `ResultReader` that holds what another one takes for a success against a deliverable.

    With it, `call_with_reflection` records a violation as the call's failure and asks about it.
    The result itself is neither changed nor recorded in another shape.

    Args:
        inner: says which results are failures by their own word; those are not checked.
        deliverable: what the successes must be, in their canonical shape.
        delivered: what a result delivers: the value that is checked. When left out, the value of
            an `Outcome`, and of anything else the result itself.
    """

    reads_in_thread = True  # the work is linear in the result, which may be of any size

    def __init__(
        self,
        inner: ResultReader[ResultT],
        deliverable: Deliverable,
        delivered: Callable[[ResultT], object] | None = None,
    ) -> None:
        self._inner = inner
        self._deliverable = deliverable
        self._delivered = delivered or _value_of

    def read_failure(self, result: ResultT) -> ExecutionError | None:
        """The failure in the result, or its violation."""
        error = self._inner.read_failure(result)
        if error is not None:
            return error
        _, violations = held_against(self._delivered(result), self._deliverable)
        return violation_error(violations) if violations else None

    def read_exception(self, error: Exception) -> ExecutionError:
        """As the inner reader."""
        return self._inner.read_exception(error)

    def read_status(self, result: ResultT) -> str | None:
        """As the inner reader."""
        return self._inner.read_status(result)

    def is_outcome(self, result: ResultT) -> bool:
        """As the inner reader."""
        return self._inner.is_outcome(result)

    def summarise(self, result: ResultT) -> JsonValue:
        """As the inner reader: what the tool said, in its own shape."""
        return self._inner.summarise(result)


def _value_of(result: object) -> object:
    return Outcome.coerce(result).value


def canonical(value: Any, wanted: Deliverable) -> Any:
    """`value` in the keys and containers that `wanted` speaks of; see the module."""
    value = _in_container(value, wanted)
    if isinstance(value, dict):
        return _with_fields(_in_style(value, wanted), wanted)
    if isinstance(value, list) and wanted.items is not None:
        items = [canonical(item, wanted.items) for item in value]
        return value if _same(items, value) else items
    return value


def _in_container(value: Any, wanted: Deliverable) -> Any:
    kind = wanted.expected_type
    if kind is None:
        return value
    if kind == "object":
        return _object_in(value, wanted)
    if isinstance(value, dict):
        held = _enveloped(value, wanted)
        if held is not None and is_of_type(held, kind):
            return held
    if kind == "array":
        is_one = isinstance(value, dict) and wanted.items is not None
        return [value] if is_one and _answers_to(value, wanted.items) else value
    return _only(value, kind)


def _object_in(value: Any, wanted: Deliverable) -> Any:
    held = _enveloped(value, wanted) if isinstance(value, dict) else None
    if _answers_to(held, wanted):
        return held
    only = _only(value, "object")
    return only if _answers_to(only, wanted) else value


def _enveloped(value: dict[Any, Any], wanted: Deliverable) -> Any:
    """What the one key holds, when it is an envelope and not a key that was asked for."""
    if len(value) != 1:
        return None
    (key,) = value
    is_asked_for = isinstance(key, str) and folded(key) in wanted.named_in_any_style
    return value[key] if is_envelope(key) and not is_asked_for else None


def _answers_to(value: Any, wanted: Deliverable | None) -> bool:
    """Whether it is an object with all keys that are needed, or with any when none is."""
    if wanted is None or not isinstance(value, dict):
        return False
    there = {folded(key) for key in value if isinstance(key, str)}
    needed = [folded(name) for name in wanted.needed]
    if needed:
        return there.issuperset(needed)
    return not there.isdisjoint(wanted.named_in_any_style)


def _only(value: Any, kind: str) -> Any:
    is_one = isinstance(value, list) and len(value) == 1 and is_of_type(value[0], kind)
    return value[0] if is_one else value


def _in_style(value: dict[Any, Any], wanted: Deliverable) -> dict[Any, Any]:
    """Keys in the deliverable's spelling, each where it stood; two that fit are both left."""
    missing = [name for name in wanted.named if name not in value]
    if not missing:
        return value
    by_style: dict[str, list[str]] = {}
    for key in value:
        if isinstance(key, str) and key not in wanted.named:
            by_style.setdefault(folded(key), []).append(key)
    renamed = {
        found[0]: name
        for name in missing
        if len(found := by_style.get(folded(name), [])) == 1
        and wanted.named_in_any_style[folded(name)] == 1
    }
    return {renamed.get(key, key): item for key, item in value.items()} if renamed else value


def _with_fields(value: dict[Any, Any], wanted: Deliverable) -> dict[Any, Any]:
    changed = {
        name: made
        for name, part in wanted.fields.items()
        if name in value and (made := canonical(value[name], part)) is not value[name]
    }
    return {key: changed.get(key, item) for key, item in value.items()} if changed else value


def _same(items: list[Any], others: list[Any]) -> bool:
    return all(item is other for item, other in zip(items, others, strict=True))
