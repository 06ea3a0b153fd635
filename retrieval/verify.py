"""Verification: a proposal must fit the schema and the error, and must not be known to fail.

Schema, error and parameters are all the caller's, so that checking them is bounded: a large schema
is not checked, nothing is fetched, and regular expressions run on an engine that cannot backtrack.
"""

import json
from functools import lru_cache
from typing import Any

import jsonschema_rs

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue, canonical_json
from aftercall.redaction import is_redacted
from retrieval.parameters import MAX_SCHEMA, resolve
from retrieval.proposals.case import Case
from retrieval.proposals.compose import Proposal
from retrieval.reading.faults import Fault

_MAX_PARAMETERS = 100_000
"""Characters of parameters that are held against a schema."""
_MAX_ERRORS = 50
_MAX_PARTS = 5_000
_PATTERNS = jsonschema_rs.RegexOptions(size_limit=100_000)


class Verifier:
    """Says which proposals for one case may be made."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._validator = None if case.schema is None else _validator_of(case.schema)

    def accepts(self, proposal: Proposal) -> bool:
        """Whether it is not known to fail, and fits the schema and the error.

        A schema that is itself broken, or too large to check, cannot refuse anything.
        """
        case, parameters = self._case, proposal.parameters
        known = case.profile if case.profile_is_current else None
        if known and known.is_known_to_fail(parameters):
            return False
        if any(_contradicts(fault, case.parameters, parameters) for fault in case.faults):
            return False
        return self._validator is None or _fits_schema(self._validator, parameters)


def _fits_schema(validator: jsonschema_rs.Validator, parameters: JsonObject) -> bool:
    """Whether nothing is wrong but with masked values, which the caller has in full."""
    if len(canonical_json(parameters)) > _MAX_PARAMETERS:
        return True
    for seen, error in enumerate(validator.iter_errors(parameters)):
        top = error.instance_path[0] if error.instance_path else None
        value = parameters.get(top) if isinstance(top, str) else None
        if value is None or not is_redacted(value):
            return False
        if seen >= _MAX_ERRORS:
            break
    return True


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


def _validator_of(schema: JsonObject) -> jsonschema_rs.Validator | None:
    canonical = canonical_json(schema)
    return _validator(canonical) if len(canonical) <= MAX_SCHEMA else None


@lru_cache(maxsize=512)
def _validator(canonical: str) -> jsonschema_rs.Validator | None:
    """The schema's validator; None when it is no valid schema, or may take long."""
    schema = json.loads(canonical)
    try:
        _count(schema, schema, {})
        return jsonschema_rs.validator_for(schema, retriever=_refused, pattern_options=_PATTERNS)
    except (ValueError, RecursionError):  # what the library raises for schemas are ValueErrors
        return None


def _count(part: JsonValue, root: JsonObject, known: dict[str, int | None]) -> int:
    """The parts of a schema with its references written out, which bounds the work per value.

    Raises:
        ValueError: when there are more than `_MAX_PARTS`, or a reference leads to itself.
    """
    if isinstance(part, list):
        total = sum(_count(each, root, known) for each in part)
    elif isinstance(part, dict):
        total = 1 + sum(
            _count_reference(value, root, known) if key.endswith("Ref") or key == "$ref"
            else _count(value, root, known)
            for key, value in part.items()
        )  # fmt: skip
    else:
        return 0
    if total > _MAX_PARTS:
        raise ValueError("the schema branches too often")
    return total


def _count_reference(ref: JsonValue, root: JsonObject, known: dict[str, int | None]) -> int:
    if not isinstance(ref, str):
        return 0
    if ref not in known:
        known[ref] = None
        known[ref] = _count(resolve({"$ref": ref}, root), root, known)
    counted = known[ref]
    if counted is None:
        raise ValueError("the schema refers to itself")
    return counted


def _refused(uri: str) -> Any:
    raise ValueError(f"{uri[:200]} is another document, and nothing is fetched")
