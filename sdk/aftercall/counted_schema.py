"""JSON Schema validators whose work is counted: a hostile schema cannot take for ever (jsonschema).

Which patterns are matched, and how, is for whoever makes one to say.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend

Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]
"""How jsonschema checks one keyword: validator, what the schema says, instance, schema."""

_steps: ContextVar[list[int]] = ContextVar("steps")


class StepsUsedUpError(Exception):
    """A schema asks for more work than it was given steps."""


def counted_class(
    kind: type[Validator], replaced: Mapping[str, Keyword]
) -> Callable[..., Validator]:
    """A validator class of which each keyword that is applied takes a step, within `counting`.

    Args:
        kind: the class of a draft.
        replaced: keywords that are checked in another way.
    """
    keywords: dict[str, Keyword] = {**kind.VALIDATORS, **replaced}
    counted = {name: _counted(keyword) for name, keyword in keywords.items()}
    made: Callable[..., Validator] = extend(kind, counted)  # type: ignore[no-untyped-call]  # jsonschema has no types here
    return made


@contextmanager
def counting(steps: list[int]) -> Iterator[None]:
    """Take steps from this number (a list of one, which goes down) until the block ends."""
    token = _steps.set(steps)
    try:
        yield
    finally:
        _steps.reset(token)


def spend(steps: int) -> None:
    """Take steps.

    Raises:
        StepsUsedUpError: there are not so many left.
    """
    left = _steps.get()
    left[0] -= steps
    if left[0] < 0:
        raise StepsUsedUpError


def _counted(keyword: Keyword) -> Keyword:
    def counted(
        validator: Any, value: Any, instance: Any, schema: Any
    ) -> Iterator[ValidationError] | None:
        spend(1)
        return keyword(validator, value, instance, schema)

    return counted
