"""Serialised typed errors: which mappings are one, read into an `ExecutionError`. Pure.

A mapping is a typed error only where it says so unmistakably: its `status` or `outcome` is `error`,
and it names a type of the shared vocabulary (`wrong_tool_boundary`, `low_utility`,
`contract_violation`). Any other type counts only in the very form of a serialised `Outcome`: a tool
that *reports on* failures (a job, an error tracker, the body of an API's answer, a line of a log)
has succeeded. Where something else says that the call failed (`isError`, an exit status, an
exception), any type is read, if the mapping holds nothing else than an error does.
"""

import json
import re
from collections.abc import Mapping
from itertools import islice
from typing import TypeAlias

from aftercall.bounded import bounded_json, bounded_text
from aftercall.json_values import JsonObject, clean_text
from aftercall.models.calls import ExecutionError
from aftercall.outcomes.referrals import MAX_DETAILS_CHARS, REFERRALS, normalised_details

CONTRACT_VIOLATION = "contract_violation"

MAX_MESSAGE_CHARS = 8_000
_MAX_NAME_CHARS = 256  # as the wire models have it
_MAX_STACK_CHARS = 8_000
_MAX_KEYS = 1_000
_MAX_TEXT = 100_000
"""Characters of a text that may be the JSON of a typed error; one is far shorter."""

_Members: TypeAlias = Mapping[str, object]
"""Of a mapping, by their folded keys."""

_SHARED = {kind.replace("_", ""): kind for kind in (*REFERRALS, CONTRACT_VIOLATION)}
_OUTCOMES = frozenset({"status", "outcome"})
_OF_AN_ERROR = _OUTCOMES | {
    "errortype", "error", "message", "errormessage", "code", "errorcode", "details", "metadata",
    "stack",
}  # fmt: skip
_WRITTEN = {"outcome", "error"}
_WRITTEN_WITHIN = frozenset({"type", "message", "code", "stack", "details"})
"""The keys that `Outcome.to_dict` writes."""

_FIELDS = {"value", "status", "failure"}
"""Of an `Outcome`: FastMCP and others write one that a tool returns like any dataclass."""


def typed_error(value: object, *, has_failed: bool = False) -> ExecutionError | None:
    """The typed error that a value is; None when it is none, or not unmistakably. Never raises.

    Args:
        value: what a tool gave back.
        has_failed: whether something else says that the call failed, so that this can only say how.
    """
    try:
        return _read(_unpacked(value), has_failed=has_failed)
    except Exception:  # noqa: BLE001  # a foreign mapping may raise anything when it is looked at
        return None


def _unpacked(value: object) -> object:
    if isinstance(value, Mapping) and value.keys() == _FIELDS and value["value"] is None:
        return {"outcome": "error", "error": value["failure"]}
    return value


def _read(value: object, *, has_failed: bool) -> ExecutionError | None:
    if not isinstance(value, Mapping) or not value or len(value) > _MAX_KEYS:
        return None
    members = {_folded(key): item for key, item in value.items() if isinstance(key, str)}
    if not any(_says_error(members.get(each)) for each in _OUTCOMES):
        return None
    inner = members.get("error")
    nested = (
        {_folded(key): item for key, item in islice(inner.items(), _MAX_KEYS)}
        if isinstance(inner, Mapping)
        else {}
    )
    kind = members.get("errortype") or nested.get("type") or nested.get("errortype")
    if not isinstance(kind, str) or not kind.strip():
        return None
    if canonical_type(kind) not in _SHARED.values() and not (
        _OF_AN_ERROR.issuperset(members) if has_failed else _is_as_written(value)
    ):
        return None
    return make_error(
        kind,
        _message(members, nested, inner),
        code=_code(members) or _code(nested),
        stack=_first(members, "stack") or _first(nested, "stack"),
        details=_details(value, members, inner, nested),
    )


def typed_error_in_text(text: str) -> ExecutionError | None:
    """The typed error whose JSON the text of a failure is; None for any other. Never raises."""
    told = text.strip() if len(text) <= _MAX_TEXT else ""
    if not (told.startswith("{") and told.endswith("}") and '"error"' in told.lower()):
        return None
    try:
        return typed_error(json.loads(told), has_failed=True)
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
        bounded: object = normalised_details(details)
    else:
        bounded = bounded_json(details, max_chars=MAX_DETAILS_CHARS)
    return ExecutionError(
        type=kind,
        message=bounded_text(words_of(message), MAX_MESSAGE_CHARS),
        code=None if code is None else bounded_text(str(code), _MAX_NAME_CHARS),
        stack=None if stack is None else bounded_text(stack, _MAX_STACK_CHARS),
        details=_object(bounded),
    )


def canonical_type(error_type: str) -> str:
    """A type of the shared vocabulary in its own spelling (`wrongToolBoundary`), others as said."""
    shared = _SHARED.get(_folded(error_type))
    return shared or clean_text(error_type.strip())[:_MAX_NAME_CHARS] or "Error"


def _is_as_written(value: Mapping[object, object]) -> bool:
    inner = value.get("error")
    return (
        value.keys() == _WRITTEN
        and isinstance(inner, Mapping)
        and "type" in inner
        and _WRITTEN_WITHIN.issuperset(inner)
    )


def _message(members: _Members, nested: _Members, inner: object) -> str:
    """Wherever it stands; the first of the places that says anything."""
    said = (
        *(members.get(name) for name in ("message", "errormessage")),
        nested.get("message"),
        None if isinstance(inner, Mapping) else inner,
    )
    return next((text for each in said if (text := words_of(each))), "")


def _details(
    value: Mapping[object, object], members: _Members, inner: object, nested: _Members
) -> dict[str, object]:
    """All that has no place of its own in an error, and what `details` and `metadata` hold."""
    details: dict[str, object] = {}
    for holder in (value, inner):
        if isinstance(holder, Mapping):
            own = _OF_AN_ERROR | {"type"} if holder is inner else _OF_AN_ERROR
            details.update(
                {
                    key: item
                    for key, item in islice(holder.items(), _MAX_KEYS)
                    if isinstance(key, str) and _folded(key) not in own
                }
            )
    for place in (members, nested):
        for name in ("metadata", "details"):
            held = place.get(name)
            if isinstance(held, Mapping):
                details.update({str(key): item for key, item in islice(held.items(), _MAX_KEYS)})
            elif held is not None:
                details[name] = held
    return details


def words_of(value: object) -> str:
    """A message as text: itself, '' for nothing, and JSON for what is no text."""
    if value is None or isinstance(value, str):
        return str.__str__(value) if value else ""
    made = bounded_json(value, max_chars=MAX_MESSAGE_CHARS)
    return made if isinstance(made, str) else json.dumps(made, ensure_ascii=False)


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _folded(key: object) -> str:
    return re.sub(r"[-_.\s]+", "", key[:_MAX_NAME_CHARS]).lower() if isinstance(key, str) else ""


def _says_error(value: object) -> bool:
    return isinstance(value, str) and value.strip().lower() == "error"


def _first(members: Mapping[str, object], *names: str) -> str | None:
    texts = (members.get(name) for name in names)
    return next((str.__str__(text) for text in texts if isinstance(text, str) and text), None)


def _code(members: Mapping[str, object]) -> str | int | None:
    codes = (members.get(name) for name in ("code", "errorcode"))
    fit = (c for c in codes if isinstance(c, str | int) and not isinstance(c, bool) and c != "")
    return next(fit, None)
