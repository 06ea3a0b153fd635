"""Typed errors: which mappings are one, and what a referral says. Pure; never raises.

A mapping is a typed error only where it says so unmistakably: its `status` or `outcome` is `error`,
and it names a type of the shared vocabulary (`wrong_tool_boundary`, `low_utility`,
`contract_violation`). Any other type counts only in the very form of a serialised `Outcome`: a tool
that *reports on* failures (a job, an error tracker, the body of an API's answer, a line of a log)
has succeeded. Where something else says that the call failed (`isError`, an exit status, an
exception), any type is read, if the mapping holds nothing else than an error does.

Referral metadata is read tolerantly and strict in the result: of key style (`boundary_axes`,
`boundaryAxes`, `Boundary Axes`), of a single value where a list belongs, of numbers, nulls and junk
(see `aftercall.outcomes.words`); of more than the wire allows, the first are kept, and long texts
end in an ellipsis. Doing it twice changes nothing.
"""

import json
import re
from collections.abc import Mapping
from itertools import islice
from typing import cast, get_args

from aftercall.json_values import JsonObject, bounded_json, bounded_text, clean_text
from aftercall.models.calls import ExecutionError
from aftercall.models.health import (
    MAX_AXES,
    MAX_AXIS_CHARS,
    MAX_SPLIT,
    MAX_WORDS_CHARS,
    Referral,
    ReferralKind,
)
from aftercall.outcomes.words import distinct, text_in, texts_in

REFERRALS: frozenset[ReferralKind] = frozenset(get_args(ReferralKind))
"""Types of an error that refer the caller elsewhere rather than report a fault."""

CONTRACT_VIOLATION = "contract_violation"

MAX_MESSAGE_CHARS = 8_000
MAX_DETAILS_CHARS = 8_000
"""Of the details that are no referral metadata: as much as a message may have."""

_MAX_NAME_CHARS = 256  # as the wire models have it
_MAX_STACK_CHARS = 8_000
_MAX_KEYS = 1_000
_MAX_TEXT = 100_000
"""Characters of a text that may be the JSON of a typed error; one is far shorter."""

# By their letters and digits alone; the plural and the singular say the same.
_FIELDS = {
    "boundaryaxes": "boundary_axes",
    "boundaryaxis": "boundary_axes",
    "observedtaskshape": "observed_task_shape",
    "suggestedsplit": "suggested_split",
    "suggestedsplits": "suggested_split",
    "evidence": "evidence",
}
_SHARED = {kind.replace("_", ""): kind for kind in (*REFERRALS, CONTRACT_VIOLATION)}
_OF_AN_ERROR = frozenset({
    "status", "outcome", "errortype", "error", "message", "errormessage", "code", "errorcode",
    "details", "metadata", "stack",
})  # fmt: skip
_WRITTEN_WITHIN = frozenset({"type", "message", "code", "stack", "details"})
"""The keys that `Outcome.to_dict` writes."""

_OUTCOME_FIELDS = {"value", "status", "failure"}
"""Of an `Outcome`: FastMCP and others write one that a tool returns like any dataclass."""


def typed_error(value: object, *, has_failed: bool = False) -> ExecutionError | None:
    """The typed error that a value is; None when it is none, or not unmistakably. Never raises.

    Args:
        value: what a tool gave back.
        has_failed: whether something else says that the call failed, so that this can only say how.
    """
    try:
        if isinstance(value, Mapping) and value.keys() == _OUTCOME_FIELDS and not value["value"]:
            value = {"outcome": "error", "error": value["failure"]}
        return _read(value, has_failed=has_failed) if isinstance(value, Mapping) else None
    except Exception:  # noqa: BLE001  # a foreign mapping may raise anything when it is looked at
        return None


def _read(value: Mapping[object, object], *, has_failed: bool) -> ExecutionError | None:
    if len(value) > _MAX_KEYS:
        return None
    outer = {_folded(key): item for key, item in value.items() if isinstance(key, str)}
    if not any(str(outer.get(key)).strip().lower() == "error" for key in ("status", "outcome")):
        return None
    error = value.get("error", outer.get("error"))
    inner: dict[str, object] = {}
    if isinstance(error, Mapping):
        inner = {_folded(key): item for key, item in islice(error.items(), _MAX_KEYS)}
    kind = outer.get("errortype") or inner.get("type") or inner.get("errortype")
    if not isinstance(kind, str) or not kind.strip():
        return None
    is_as_written = (
        value.keys() == {"outcome", "error"}
        and isinstance(error, Mapping)
        and "type" in error
        and _WRITTEN_WITHIN.issuperset(error)
    )
    is_error = _OF_AN_ERROR.issuperset(outer) if has_failed else is_as_written
    if canonical_type(kind) not in _SHARED.values() and not is_error:
        return None
    text = None if isinstance(error, Mapping) else error
    places = (outer.get("message"), outer.get("errormessage"), inner.get("message"), text)
    return make_error(
        kind,
        next((text for each in places if (text := words_of(each))), ""),
        code=_first(str | int, outer, inner, "code", "errorcode"),
        stack=_first(str, outer, inner, "stack"),
        details=_details(value, error, outer, inner),
    )


def _first(kind: object, outer: object, inner: object, *names: str) -> str | None:
    places = cast("tuple[dict[str, object], ...]", (outer, inner))
    values = (place.get(name) for place in places for name in names)
    fit = (
        v
        for v in values  # a union is a class here
        if isinstance(v, kind) and v != "" and not isinstance(v, bool)  # type: ignore[arg-type]
    )
    return next((str(each) for each in fit), None)


def _details(
    value: Mapping[object, object],
    error: object,
    outer: dict[str, object],
    inner: dict[str, object],
) -> dict[str, object]:
    """All that has no place of its own in an error, and what `details` and `metadata` hold."""
    details: dict[str, object] = {}
    for holder, own in ((value, _OF_AN_ERROR), (error, _OF_AN_ERROR | {"type"})):
        if isinstance(holder, Mapping):
            members = islice(holder.items(), _MAX_KEYS)
            details |= {
                key: item
                for key, item in members
                if isinstance(key, str) and _folded(key) not in own
            }
    for place in (outer, inner):
        for name in ("metadata", "details"):
            held = place.get(name)
            if isinstance(held, Mapping):
                details |= {str(key): item for key, item in islice(held.items(), _MAX_KEYS)}
            elif held is not None:
                details[name] = held
    return details


def typed_error_in_text(text: str) -> ExecutionError | None:
    """The typed error whose JSON the text of a failure is; None for any other. Never raises."""
    text = text.strip() if len(text) <= _MAX_TEXT else ""
    if not (text.startswith("{") and text.endswith("}") and '"error"' in text.lower()):
        return None
    try:
        return typed_error(json.loads(text), has_failed=True)
    except (ValueError, RecursionError):
        return None


def make_error(
    error_type: str,
    message: object,
    *,
    details: Mapping[str, object],
    code: str | int | None = None,
    stack: str | None = None,
) -> ExecutionError:
    """An error within the bounds of the wire; a referral's metadata in the wire's form.

    The message is kept but for what is beyond 8,000 characters; one that is no text becomes JSON.
    """
    kind = canonical_type(error_type)
    if kind in REFERRALS:
        bounded = normalised_details(details)
    else:
        bounded = cast("JsonObject", bounded_json(details, max_chars=MAX_DETAILS_CHARS))
    return ExecutionError(
        type=kind,
        message=bounded_text(words_of(message), MAX_MESSAGE_CHARS),
        code=None if code is None else bounded_text(str(code), _MAX_NAME_CHARS),
        stack=None if stack is None else bounded_text(stack, _MAX_STACK_CHARS),
        details=bounded if isinstance(bounded, dict) else {},
    )


def canonical_type(error_type: str) -> str:
    """A type of the shared vocabulary in its own spelling (`wrongToolBoundary`), others as said."""
    shared = _SHARED.get(_folded(error_type))
    return shared or clean_text(error_type.strip())[:_MAX_NAME_CHARS] or "Error"


def words_of(value: object) -> str:
    """A message as text: itself, '' for nothing, and JSON for what is no text."""
    if value is None or isinstance(value, str):
        return str.__str__(value) if value else ""
    made = bounded_json(value, max_chars=MAX_MESSAGE_CHARS)
    return made if isinstance(made, str) else json.dumps(made, ensure_ascii=False)


def is_referral(error: ExecutionError | None) -> bool:
    """Whether an error is a typed referral."""
    return error is not None and error.type in REFERRALS


def referral_of(error: ExecutionError) -> Referral | None:
    """What a referral says beside its message; None for all other errors."""
    return referral_in(error.details) if is_referral(error) else None


def referral_in(details: Mapping[str, object]) -> Referral:
    """The referral metadata in details, whatever their form."""
    given: dict[str, list[object]] = {name: [] for name in _FIELDS.values()}
    for key, value in islice(details.items(), _MAX_KEYS):
        if (field := _field(key)) is not None:
            given[field].append(value)
    found = {name: values[0] if len(values) == 1 else values for name, values in given.items()}
    axes = texts_in(found["boundary_axes"], max_chars=MAX_AXIS_CHARS)
    split = texts_in(found["suggested_split"], max_chars=MAX_WORDS_CHARS)
    return Referral(
        boundary_axes=distinct(axes, MAX_AXES),
        observed_task_shape=text_in(found["observed_task_shape"], max_chars=MAX_WORDS_CHARS)
        or None,
        suggested_split=split[:MAX_SPLIT],
        evidence=text_in(found["evidence"], max_chars=MAX_WORDS_CHARS) or None,
    )


def referral_details(referral: Referral) -> JsonObject:
    """A referral as `error.details` has it: camelCase, and only what it says."""
    dumped = referral.model_dump(mode="json", by_alias=True)
    return {name: value for name, value in dumped.items() if value not in (None, [])}


def normalised_details(details: Mapping[str, object]) -> JsonObject:
    """Details with the referral metadata in the wire's form; all others untouched but for bounds.

    Keys that say the same (`boundaryAxes` and `boundary_axes`) become one.
    """
    members = islice(details.items(), _MAX_KEYS)
    others = {key: value for key, value in members if _field(key) is None}
    bounded = cast("JsonObject", bounded_json(others, max_chars=MAX_DETAILS_CHARS))
    return {**referral_details(referral_in(details)), **bounded}


def _field(key: object) -> str | None:
    return _FIELDS.get(_folded(key))


def _folded(key: object) -> str:
    return re.sub(r"[-_.\s]+", "", key[:_MAX_NAME_CHARS]).lower() if isinstance(key, str) else ""
