"""Verification: a proposal must fit the live schema and must not be known to fail."""

import json
import re
from functools import lru_cache

from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, canonical_json
from aftercall.redaction import is_redacted
from retrieval.proposals import Case, Proposal


def is_verified(case: Case, proposal: Proposal) -> bool:
    """Whether a proposal changes the call, is not known to fail, and fits the live schema.

    A schema that is itself broken cannot refuse anything.
    """
    if same_json(proposal.parameters, case.parameters):
        return False
    if case.profile and case.profile.is_known_to_fail(proposal.parameters):
        return False
    return case.schema is None or fits_schema(
        proposal.parameters, case.schema, unchanged=case.parameters
    )


def fits_schema(
    parameters: JsonObject, schema: JsonObject, *, unchanged: JsonObject | None = None
) -> bool:
    """Whether parameters are valid by a JSON Schema; True when the schema itself is broken.

    Args:
        parameters: what is to be sent.
        schema: the tool's input schema.
        unchanged: the failed call's parameters. A redacted value that stands there unchanged is not
            held against the proposal: the caller has the true one.
    """
    validator = _validator(canonical_json(schema))
    if validator is None:
        return True
    try:
        errors = list(validator.iter_errors(parameters))
    except (Unresolvable, RecursionError, re.error, TypeError, ValueError):
        return True
    for error in errors:
        top = error.absolute_path[0] if error.absolute_path else None
        value = parameters.get(top) if isinstance(top, str) else None
        if value is None or not is_redacted(value) or top not in (unchanged or {}):
            return False
    return True


@lru_cache(maxsize=2048)
def _validator(canonical: str) -> Validator | None:
    """The schema's validator; None when it is no valid schema. Never fetches a remote `$ref`."""
    schema = json.loads(canonical)
    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except (SchemaError, RecursionError, Unresolvable, re.error):
        return None
    return kind(schema, registry=Registry())
