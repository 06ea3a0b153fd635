"""Verification: a proposal must fit the schema and the error, and must not be known to fail.

Schema, error and parameters are all the caller's, so that checking them is bounded: a large schema
is not checked, steps are counted, and regular expressions run on an engine that cannot backtrack.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import lru_cache
from typing import Annotated, Any

from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, extend, validator_for
from pydantic import StringConstraints, TypeAdapter
from pydantic import ValidationError as PydanticError
from pydantic_core import SchemaError as PydanticSchemaError
from referencing import Registry

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue, canonical_json
from aftercall.redaction import is_redacted
from retrieval.parameters import MAX_SCHEMA
from retrieval.proposals.case import Case
from retrieval.proposals.compose import Proposal
from retrieval.reading.faults import Fault

Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]
"""How jsonschema checks one keyword: validator, what the schema says, instance, schema."""

_steps: ContextVar[list[int]] = ContextVar("steps")
"""How many keywords may still be applied in this thread or task: a list of one."""


class StepsUsedUpError(Exception):
    """A schema asks for more work than it was given steps."""


MAX_STEPS = 5_000
"""Keywords applied per answer, up to 10 microseconds each; a usual proposal takes about 50."""
_MAX_PATTERN = 200
_REPEATS = re.compile(r"\{\d{3,}|\{\d*,\d{3,}|\{\d{2,}[^{]*\{\d{2,}")
"""Counted repeats are written out by the engine: many, or some within others, take it long."""
_MAX_MATCHED = 2_000
_MAX_UNIQUE = 200


class Verifier:
    """Says which proposals for one case may be made; the steps of all of them are counted."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._validator = None if case.schema is None else _validator_of(case.schema)
        self._steps = [MAX_STEPS]

    def accepts(self, proposal: Proposal) -> bool:
        """Whether it is not known to fail, and fits the schema and the error.

        A schema that is itself broken, or too costly to check, cannot refuse anything.
        """
        case, parameters = self._case, proposal.parameters
        known = case.profile if case.profile_is_current else None
        if known and known.is_known_to_fail(parameters):
            return False
        if any(_contradicts(fault, case.parameters, parameters) for fault in case.faults):
            return False
        return self._validator is None or self._fits_schema(self._validator, parameters)

    def _fits_schema(self, validator: Validator, parameters: JsonObject) -> bool:
        token = _steps.set(self._steps)
        try:
            errors = validator.iter_errors(parameters)
            return all(self._is_hidden(error, parameters) for error in errors)
        except Exception:  # noqa: BLE001 - a schema may be broken in any way; see `accepts`
            return True
        finally:
            _steps.reset(token)

    def _is_hidden(self, error: ValidationError, parameters: JsonObject) -> bool:
        """Whether an error is only about a masked value that the caller has in full."""
        top = error.absolute_path[0] if error.absolute_path else None
        value = parameters.get(top) if isinstance(top, str) else None
        return value is not None and is_redacted(value)


def _contradicts(fault: Fault, before: JsonObject, after: JsonObject) -> bool:
    """Whether a parameter was changed to something that the error or the schema rules out."""
    name = fault.parameter
    if name is None or len(fault.path) > 1:
        return False
    if name not in after:
        return fault.kind == "missing" and name in before
    if name not in before:
        return fault.kind == "unexpected"
    value = after[name]
    if same_json(before[name], value):
        return False
    if fault.kind == "not_allowed" and fault.allowed:
        return not any(str(value) == str(each) for each in fault.allowed)
    if fault.kind != "out_of_range" or fault.of_length or isinstance(value, bool):
        return False
    return isinstance(value, int | float) and _is_beyond(fault, value)


def _is_beyond(fault: Fault, value: float) -> bool:
    too_small = fault.minimum is not None and value < fault.minimum
    return too_small or (fault.maximum is not None and value > fault.maximum)


def _validator_of(schema: JsonObject) -> Validator | None:
    canonical = canonical_json(schema)
    return _validator(canonical) if len(canonical) <= MAX_SCHEMA else None


@lru_cache(maxsize=512)
def _validator(canonical: str) -> Validator | None:
    """The schema's validator; None when it is no valid schema. Never fetches a remote `$ref`."""
    if '"patternProperties"' in canonical:
        return None  # checked by `re` in several keywords, and too rare in arguments to be worth it
    schema = json.loads(canonical)
    try:
        kind = validator_for(schema, default=Draft202012Validator)
        kind.check_schema(schema)
        return _bounded(kind)(schema, registry=Registry())
    except (SchemaError, RecursionError):
        return None
    except Exception:  # noqa: BLE001 - such as a `$schema` or `$ref` of the wrong type
        return None


@lru_cache(maxsize=16)
def _bounded(kind: type[Validator]) -> Callable[..., Validator]:
    """The same validator class with counted steps and safe regular expressions."""
    replaced = {"pattern": _pattern, "uniqueItems": _unique(kind.VALIDATORS)}
    keywords: dict[str, Keyword] = {**kind.VALIDATORS, **replaced}
    counted = {name: _counted(keyword) for name, keyword in keywords.items()}
    made: Callable[..., Validator] = extend(kind, counted)  # type: ignore[no-untyped-call]  # jsonschema has no types here
    return made


def _counted(keyword: Keyword) -> Keyword:
    def counted(
        validator: Any, value: Any, instance: Any, schema: Any
    ) -> Iterator[ValidationError] | None:
        left = _steps.get()
        left[0] -= 1
        if left[0] < 0:
            raise StepsUsedUpError
        return keyword(validator, value, instance, schema)

    return counted


def _pattern(
    _validator: Any, pattern: str, instance: JsonValue, _schema: JsonValue
) -> Iterator[ValidationError]:
    if isinstance(instance, str) and len(instance) <= _MAX_MATCHED:
        matcher = _matcher(pattern)
        try:
            if matcher:
                matcher.validate_python(instance)
        except PydanticError:
            yield ValidationError(f"{instance!r} does not match {pattern!r}")


@lru_cache(maxsize=512)
def _matcher(pattern: str) -> TypeAdapter[str] | None:
    """Matches on Rust's regex engine, linear in the text; None for what it does not know."""
    if len(pattern) > _MAX_PATTERN or _REPEATS.search(pattern):
        return None
    try:
        return TypeAdapter(Annotated[str, StringConstraints(pattern=pattern)])
    except PydanticSchemaError:
        return None


def _unique(keywords: dict[str, Keyword]) -> Keyword:
    check = keywords.get("uniqueItems")

    def unique(
        validator: Any, wanted: Any, instance: Any, schema: Any
    ) -> Iterator[ValidationError] | None:
        if check is None or not isinstance(instance, list) or len(instance) > _MAX_UNIQUE:
            return None  # it compares each with each
        return check(validator, wanted, instance, schema)

    return unique
