"""Referral metadata: read tolerantly from what a tool gave, strict in the result. Pure.

Tolerant of key style (`boundary_axes`, `boundaryAxes`, `Boundary Axes`), of a single value where a
list belongs, of numbers, nulls and junk (see `aftercall.outcomes.words`); of more than the wire
allows, the first are kept, and long texts end in an ellipsis. Doing it twice changes nothing.
"""

import re
from collections.abc import Mapping
from itertools import islice
from typing import cast, get_args

from aftercall.bounded import bounded_json
from aftercall.json_values import JsonObject
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
"""Types of an error that refer the caller elsewhere rather than tell of a fault."""

MAX_DETAILS_CHARS = 8_000
"""Of the details that are no referral metadata: as much as a message may have."""

_MAX_KEYS = 1_000
_MAX_KEY_CHARS = 64

# By their letters and digits alone; the plural and the singular say the same.
_FIELDS = {
    "boundaryaxes": "boundary_axes",
    "boundaryaxis": "boundary_axes",
    "observedtaskshape": "observed_task_shape",
    "suggestedsplit": "suggested_split",
    "suggestedsplits": "suggested_split",
    "evidence": "evidence",
}


def is_referral(error: ExecutionError | None) -> bool:
    """Whether an error is a typed referral."""
    return error is not None and error.type in REFERRALS


def referral_of(error: ExecutionError) -> Referral | None:
    """What a referral says beside its message; None for all other errors. Never raises."""
    return referral_in(error.details) if is_referral(error) else None


def referral_in(details: Mapping[str, object]) -> Referral:
    """The referral metadata in details, whatever their form. Never raises."""
    found = _values(details)
    axes = texts_in(found["boundary_axes"], max_chars=MAX_AXIS_CHARS)
    split = texts_in(found["suggested_split"], max_chars=MAX_WORDS_CHARS)
    return Referral(
        boundary_axes=distinct(axes, MAX_AXES),
        observed_task_shape=_text(found["observed_task_shape"]),
        suggested_split=split[:MAX_SPLIT],
        evidence=_text(found["evidence"]),
    )


def referral_details(referral: Referral) -> JsonObject:
    """A referral as `error.details` has it: camelCase, and only what it says."""
    dumped = referral.model_dump(mode="json", by_alias=True)
    return {name: value for name, value in dumped.items() if value not in (None, [])}


def normalised_details(details: Mapping[str, object]) -> JsonObject:
    """Details with the referral metadata in the wire's form; all others untouched but for bounds.

    Keys that say the same (`boundaryAxes` and `boundary_axes`) become one.
    """
    others = {
        key: value for key, value in islice(details.items(), _MAX_KEYS) if _field(key) is None
    }
    bounded = cast("JsonObject", bounded_json(others, max_chars=MAX_DETAILS_CHARS))
    return {**referral_details(referral_in(details)), **bounded}


def _values(details: Mapping[str, object]) -> dict[str, object]:
    """By field, the value, or a list of the values where several keys mean the field."""
    found: dict[str, list[object]] = {name: [] for name in _FIELDS.values()}
    for key, value in islice(details.items(), _MAX_KEYS):
        field = _field(key)
        if field is not None:
            found[field].append(value)
    return {field: values[0] if len(values) == 1 else values for field, values in found.items()}


def _field(key: object) -> str | None:
    if not isinstance(key, str) or len(key) > _MAX_KEY_CHARS:
        return None
    return _FIELDS.get(re.sub(r"[-_.\s]+", "", key).lower())


def _text(value: object) -> str | None:
    return text_in(value, max_chars=MAX_WORDS_CHARS) or None
