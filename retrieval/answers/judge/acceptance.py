"""Acceptance: whether a repaired call fits schema and error, and is not known to fail.

Schema, error and parameters are all the caller's, so that checking them is bounded: a large schema
is not checked, nothing is fetched, and regular expressions run on an engine that cannot backtrack.
"""

import json
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

import jsonschema_rs

from aftercall.json_patch import same_json
from aftercall.json_schemas import plain_schema
from aftercall.json_values import JsonObject, JsonValue, canonical_json
from aftercall.redaction import is_redacted
from retrieval.answers.proposers.case import Case
from retrieval.answers.proposers.compose import Proposal
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.values.parameters import MAX_SCHEMA, resolve_schema
from retrieval.knowledge.values.texts import is_number

_MAX_PARAMETERS = 100_000
"""Characters of parameters that are held against a schema."""
_MAX_STEPS = 5_000_000
"""Parts of a schema times characters: at most some 25 ms, whatever the schema states."""
_MAX_EXPLAINED = 100_000
"""The same where errors are shown one by one, each with those of all alternatives: ten times slower
and more."""
_MAX_ERRORS = 50
_MAX_PARTS = 5_000
_PATTERNS = jsonschema_rs.RegexOptions(size_limit=100_000)


def accepts(case: Case, proposal: Proposal, check: "SchemaCheck | None") -> bool:
    """Return whether a proposal may work: not known to fail, it fits error and schema."""
    parameters = proposal.parameters
    known = case.profile if case.profile_is_current else None
    if known and known.is_known_to_fail(parameters):
        return False
    # What the schema only words, as examples may be, rules out nothing that several repaired so.
    learned = any(option.share for option in proposal.options)
    faults = (fault for fault in case.faults if not (learned and fault.from_schema))
    if any(_contradicts(fault, case.parameters, parameters) for fault in faults):
        return False
    return check is None or fits_schema(check, parameters)


class SchemaCheck(NamedTuple):
    """A schema's validator, and how many parts the schema has."""

    validator: jsonschema_rs.Validator
    parts: int


def fits_schema(check: SchemaCheck, parameters: JsonObject) -> bool:
    """Return whether nothing is wrong but with masked values, which the caller has in full."""
    characters = len(canonical_json(parameters))
    if characters > _MAX_PARAMETERS or check.parts * characters > _MAX_STEPS:
        return True
    if check.validator.is_valid(parameters):
        return True
    if not is_redacted(parameters):
        return False
    if check.parts * characters > _MAX_EXPLAINED:
        return True
    for seen, error in enumerate(check.validator.iter_errors(parameters)):
        top = error.instance_path[0] if error.instance_path else None
        value = parameters.get(top) if isinstance(top, str) else None
        if value is None or not is_redacted(value):
            return False
        if seen >= _MAX_ERRORS:
            break
    return True


def _contradicts(fault: Fault, before: JsonObject, after: JsonObject) -> bool:
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
        if fault.value_text not in (None, str(before[name])) and isinstance(value, str):
            return not any(str(each) in value for each in fault.allowed)  # a piece of a text
        return str(value) not in map(str, fault.allowed)
    low = -inf if fault.minimum is None else fault.minimum
    high = inf if fault.maximum is None else fault.maximum
    is_amount = fault.kind == "out_of_range" and not fault.of_length
    return is_amount and is_number(value) and not low <= value <= high


def check_of(schema: JsonObject) -> SchemaCheck | None:
    """Checks parameters by a schema; None where it is broken, or too large to check."""
    canonical = canonical_json(schema)
    return _check(canonical) if len(canonical) <= MAX_SCHEMA else None


@lru_cache(maxsize=512)
def _check(canonical: str) -> SchemaCheck | None:
    try:
        schema = plain_schema(json.loads(canonical))
        parts = _count(schema, schema, {})
        return SchemaCheck(
            jsonschema_rs.validator_for(schema, retriever=_refused, pattern_options=_PATTERNS),
            parts,
        )
    except (ValueError, RecursionError):  # what the library raises for schemas are ValueErrors
        return None


def _count(part: JsonValue, root: JsonObject, known: dict[str, int | None]) -> int:
    """Count the parts of a schema with its references written out: it bounds the work per value."""
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
        known[ref] = _count(resolve_schema({"$ref": ref}, root), root, known)
    counted = known[ref]
    if counted is None:
        raise ValueError("the schema refers to itself")
    return counted


def _refused(uri: str) -> Any:
    raise ValueError(f"{uri[:200]} is another document, and nothing is fetched")
