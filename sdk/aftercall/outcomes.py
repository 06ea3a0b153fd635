"""Typed outcomes: a tool states that it succeeded, that it failed, or that this is not its job.

    return Outcome.ok(films, status="success_no_parse")
    return Outcome.wrong_tool_boundary(
        "this page has to be fetched and then read",
        boundary_axes=["transport", "extraction"],
        suggested_split=["http_get", "extract_titles"],
        evidence="the url answers with HTML, and only JSON is read here",
    )

Nothing here, and nothing that reads outcomes, turns a success into a failure by reading its text.

A mapping is a typed error only where it states so unmistakably: its `status` or `outcome` is
`error`, and it names a type of the shared vocabulary (`wrong_tool_boundary`, `low_utility`,
`contract_violation`), or it has the very form of a serialised `Outcome`: a tool that *reports on*
failures has succeeded. Where something else states that the call failed (`isError`, an exit status,
an exception), any type is read, if the mapping holds nothing else than an error does.

Referral metadata is read tolerantly, whatever the style of keys, and is strict in the result. A
lone text is several only where it is unmistakably a list: lines, parts between arrows, semicolons
or bars, and parts between commas (or ` + `) that are all short names of at most three words without
an `and` inside (`transport, extraction`, but not `read, parse and render it`). From more than the
wire allows, the first are kept. Doing it twice changes nothing.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Generic, TypeVar, get_args, overload

from aftercall.errors import AftercallError
from aftercall.json_values import (
    MAX_NAME_CHARS,
    JsonObject,
    bounded_json,
    bounded_text,
    clean_text,
    json_or_none,
    make_json_value,
)
from aftercall.models.calls import ErrorCategory, ExecutionError
from aftercall.models.health import (
    MAX_AXES,
    MAX_AXIS_CHARS,
    MAX_SPLIT,
    MAX_WORDS_CHARS,
    Referral,
    ReferralKind,
)
from aftercall.redaction import DEFAULT_REDACTOR

ValueT = TypeVar("ValueT")
OtherT = TypeVar("OtherT")
STATUS_KEY = "aftercall/status"
"""Under this key of a result's `_meta` stands the tool's own word for its success."""
TRANSIENT: frozenset[ErrorCategory] = frozenset({"timeout", "rate_limited", "unavailable"})
"""Failures of the moment: the same call may work later."""
REFERRALS: frozenset[ReferralKind] = frozenset(get_args(ReferralKind))
"""Types of an error that refer the caller elsewhere rather than report a fault."""
CONTRACT_VIOLATION = "contract_violation"
MAX_MESSAGE_CHARS = 8_000
"""Of an error's message, of its stack, and of the details that are no referral metadata."""
_MAX_READ_STATUS_CHARS = 100
"""Of a `status` that is read from a mapping: the longest word for an outcome is far shorter."""
_MAX_TEXT = 100_000
"""Characters of a text that may be the JSON of a typed error; one is far shorter."""
_MAX_READ = 20_000
"""Characters of one text that are read; of more the rest is cut off anyway."""

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
_HELD = ("details", "metadata")
_WRITTEN_WITHIN = frozenset({"type", "message", "code", "stack", "details"})
"""The keys that `Outcome.to_dict` writes."""


class ToolFailedError(AftercallError):
    """A tool failed. `error` is its message; `ran` states whether it may have done anything.

    `execution_id` is the recorded call's, once it has been recorded.
    """

    ran = True

    # Without the base's, so that `args` are a class's own: it crosses processes by them.
    def __init__(self, error: ExecutionError, *, ran: bool = True) -> None:
        self.error = error
        self.ran = ran
        self.execution_id: str | None = None

    def __str__(self) -> str:
        return f"{self.error.type}: {self.error.message}"


class _Error:
    """`Outcome.error(...)` makes an outcome; the `error` of one is its error (seed 000's names)."""

    @overload
    def __get__(self, outcome: None, owner: type) -> "Callable[..., Outcome[Any]]": ...

    @overload
    def __get__(self, outcome: "Outcome[Any]", owner: type) -> ExecutionError | None: ...

    def __get__(self, outcome: "Outcome[Any] | None", owner: type) -> object:
        if outcome is None:
            return _make_failed
        return outcome.failure


@dataclass(frozen=True)  # no slots: they break `Outcome[T](...)` on 3.11
class Outcome(Generic[ValueT]):
    """A success with its value, or a typed error. Make one by `ok`, `error`, or a referral's name.

    `status` is the tool's own word for its success, such as `success_no_parse`; kept, never
    reinterpreted. `error` (and `failure`) is what the tool states of its failure, or None. Called
    on the class, it makes one: `Outcome.error(error_type, message, details=..., **metadata)`, where
    the metadata go to the details.
    """

    value: ValueT | None = None
    status: str | None = None
    failure: ExecutionError | None = None
    error = _Error()

    @classmethod
    def ok(cls, value: OtherT, status: str | None = None) -> "Outcome[OtherT]":
        """Return a success, weak or not: it stays one, also with a status that is no text."""
        return Outcome(value, bounded_text(message_text(status), MAX_NAME_CHARS) or None)

    @classmethod
    def wrong_tool_boundary(
        cls,
        message: str,
        *,
        boundary_axes: object = (),
        observed_task_shape: object = None,
        suggested_split: object = None,
        evidence: object = None,
        **metadata: object,
    ) -> "Outcome[Any]":
        """Return what was asked for crosses a boundary of this tool.

        `boundary_axes` are the capabilities that the request mixes (`["transport", "extraction"]`),
        `observed_task_shape` is such as `fetch + extract`, `suggested_split` the tools or jobs to
        split it into, in order, `evidence` why, in short. Anything else is kept in the details.
        """
        fields = {
            "boundary_axes": boundary_axes,
            "observed_task_shape": observed_task_shape,
            "suggested_split": suggested_split,
            "evidence": evidence,
        }
        return _make_failed("wrong_tool_boundary", message, details={**metadata, **fields})

    @classmethod
    def low_utility(
        cls, message: str, *, evidence: object = None, **metadata: object
    ) -> "Outcome[Any]":
        """Say that the output is valid and of little use to the caller.

        `evidence` states why, in short.
        """
        return _make_failed("low_utility", message, details={**metadata, "evidence": evidence})

    @classmethod
    def coerce(cls, returned: object) -> "Outcome[Any]":
        """Return whatever a tool returned, as an outcome.

        An `Outcome` is itself; a mapping that is unmistakably a serialised typed error (see the
        module) is that error. All else is a success with exactly this value, whatever it states:
        `{"status": "success_no_parse", "items": []}` succeeded, and its `status` is the tool's word
        for that.
        """
        if isinstance(returned, Outcome):
            return returned
        if (error := typed_error(returned)) is not None:
            return Outcome(failure=error)
        try:
            word = returned.get("status") if isinstance(returned, Mapping) else None
        except Exception:  # noqa: BLE001  # a foreign mapping may raise anything
            word = None
        is_word = isinstance(word, str) and word.isprintable() and bool(word.strip())
        status = clean_text(str.__str__(word)) if is_word else ""
        return Outcome(returned, status if 0 < len(status) <= _MAX_READ_STATUS_CHARS else None)

    @property
    def is_ok(self) -> bool:
        """Return whether it is a success."""
        return self.failure is None

    def unwrap(self) -> ValueT:
        """Return the value of a success; a `ToolFailedError` with the `error` of a failure."""
        if self.failure is not None:
            raise ToolFailedError(self.failure)
        return self.value  # type: ignore[return-value]  # None only where the tool returned None

    def to_dict(self) -> JsonObject:
        """Plain JSON; `coerce` reads an error back. The value is made plain, and is not bounded."""
        if self.failure is None:
            return {"outcome": "ok", "status": self.status, "value": make_json_value(self.value)}
        dumped = self.failure.model_dump(mode="json", by_alias=True, exclude_none=True)
        return {"outcome": "error", "error": dumped}


def _make_failed(
    error_type: str,
    message: str = "",
    *,
    details: Mapping[str, object] | None = None,
    **metadata: object,
) -> Outcome[Any]:
    given = details if isinstance(details, Mapping) or details is None else {"details": details}
    return Outcome(failure=make_error(error_type, message, details={**(given or {}), **metadata}))


def log_line(outcome: Outcome[object], *, tool: str | None = None) -> str:
    """Such as `outcome=error tool="get" type=wrong_tool_boundary axes=["transport"] evidence=yes`.

    At most 500 characters on one line. The value of a success is not in it; texts of the tool are
    JSON strings without secrets, so that none can pass for another field.
    """
    error = outcome.error
    fields: dict[str, object] = {
        "outcome": "ok" if error is None else "error",
        "tool": _quote_text(tool),
        "status": _quote_text(outcome.status),
    }
    if error is not None:
        fields["type"] = _quote_text(error.type)
        if (referral := referral_of(error)) is not None:
            axes = [_quote_text(axis) for axis in referral.boundary_axes[:5]]
            axes += ["..."] * (len(referral.boundary_axes) > 5)
            fields["axes"] = axes and f"[{','.join(axes)}]"
            fields["split"] = len(referral.suggested_split)
            fields["evidence"] = "yes" if referral.evidence else "no"
        fields["message"] = _quote_text(error.message, 200)
    return bounded_text(" ".join(f"{name}={value}" for name, value in fields.items() if value), 500)


def _quote_text(text: str | None, max_chars: int = 80) -> str:
    if text is None:
        return ""
    return json.dumps(_one_line(DEFAULT_REDACTOR.text(text), max_chars), ensure_ascii=False)


def error_in_result(
    structured: object, texts: Sequence[str], *, is_error: bool
) -> ExecutionError | None:
    """Return the typed error that a result carries.

    As structured content, or as a text that is its JSON.

    The texts of one that does not say `is_error` are never read: a tool may have read such a text.
    """
    found = typed_error(unwrap_structured(structured), has_failed=is_error)
    if found is None and is_error:
        found = next((each for text in texts if (each := typed_error_in_text(text))), None)
    return found


def status_in_result(structured: object, meta: Mapping[str, object] | None) -> str | None:
    """Return the tool's own word for its success.

    In the result's `_meta`, or else its own `status`.
    """
    stated = (meta or {}).get(STATUS_KEY)
    return Outcome.coerce({"status": stated} if stated else unwrap_structured(structured)).status


def unwrap_structured(structured: object) -> object:
    """Structured content as the tool returned it: FastMCP puts what is no object under `result`."""
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        return structured["result"]
    return structured


def typed_error(value: object, *, has_failed: bool = False) -> ExecutionError | None:
    """Return the typed error that a value is.

    None when it is no error, or not unmistakably. Never raises.

    With `has_failed` something else states that the call failed, so that this can only say how.
    """
    try:
        # An `Outcome` itself: FastMCP and others write one that a tool returns like any dataclass.
        if (
            isinstance(value, Mapping)
            and value.keys() == {"value", "status", "failure"}
            and not value["value"]
        ):
            value = {"outcome": "error", "error": value["failure"]}
        return _read_error(value, has_failed=has_failed) if isinstance(value, Mapping) else None
    except Exception:  # noqa: BLE001  # a foreign mapping may raise anything when it is looked at
        return None


def _read_error(value: Mapping[object, object], *, has_failed: bool) -> ExecutionError | None:
    if len(value) > 1_000:
        return None
    outer = {_fold_key(key): item for key, item in value.items() if isinstance(key, str)}
    if not any(str(outer.get(key)).strip().lower() == "error" for key in ("status", "outcome")):
        return None
    error = value.get("error", outer.get("error"))
    within: Mapping[object, object] = error if isinstance(error, Mapping) else {}
    inner = {_fold_key(key): item for key, item in within.items()}
    kind = outer.get("errortype") or inner.get("type") or inner.get("errortype")
    if not isinstance(kind, str) or not kind.strip():
        return None
    is_as_written = value.keys() == {"outcome", "error"} and (
        {"type"} <= within.keys() <= _WRITTEN_WITHIN
    )
    is_error = _OF_AN_ERROR.issuperset(outer) if has_failed else is_as_written
    if canonical_type(kind) not in _SHARED.values() and not is_error:
        return None
    # What `details` and `metadata` hold, and all that has no place of its own in an error.
    details: dict[str, object] = {}
    for place, own in ((value, _OF_AN_ERROR), (within, _OF_AN_ERROR | {"type"})):
        for key, item in place.items():
            name = _fold_key(key)
            if name in _HELD and isinstance(item, Mapping):
                details |= {str(each): held for each, held in item.items()}
            elif isinstance(key, str) and item is not None and (name not in own or name in _HELD):
                details[key] = item
    text = None if isinstance(error, Mapping) else error
    texts = (outer.get("message"), outer.get("errormessage"), inner.get("message"), text)
    codes = [place.get(name) for place in (outer, inner) for name in ("code", "errorcode")]
    codes = [code for code in codes if isinstance(code, str | int) and type(code) is not bool]
    stacks = (place.get("stack") for place in (outer, inner))
    return make_error(
        kind,
        next((words for each in texts if (words := message_text(each))), ""),
        code=next((str(code) for code in codes if code != ""), None),
        stack=next((stack for stack in stacks if stack and isinstance(stack, str)), None),
        details=details,
    )


def typed_error_in_text(text: str) -> ExecutionError | None:
    """Return the typed error whose JSON the text of a failure is.

    None for any other. Never raises.
    """
    held = _object_in(text) if '"error"' in text.lower() else None
    if held is None:
        return None
    return typed_error(held, has_failed=True)


def make_error(
    error_type: str,
    message: object,
    *,
    details: Mapping[str, object] = MappingProxyType({}),
    code: str | int | None = None,
    stack: str | None = None,
) -> ExecutionError:
    """Return an error within the bounds of the wire; a referral's metadata in the wire's form.

    The message is kept but for what is beyond 8,000 characters; one that is no text becomes JSON.
    """
    kind = canonical_type(error_type)
    return ExecutionError(
        type=kind,
        message=bounded_text(message_text(message), MAX_MESSAGE_CHARS),
        code=None if code is None else bounded_text(str(code), MAX_NAME_CHARS),
        stack=None if stack is None else bounded_text(stack, MAX_MESSAGE_CHARS),
        details=normalised_details(details) if kind in REFERRALS else _bound_details(details),
    )


def error_of(said: object) -> ExecutionError:
    """Return the error in what someone gives for one: an exception, a text, an object of any form.

    A text may be an object's JSON; an object may hold the error under `error`, as MCP content
    (`content`), or be one (`type` or `name`, `message`, `code`, `stack`, `details`).
    """
    if isinstance(said, ExecutionError):
        return said
    if isinstance(said, BaseException):
        return make_error(type(said).__name__, str(said) or type(said).__name__)
    if isinstance(said, str):
        held = _object_in(said)
        return make_error("Error", said) if held is None else error_of(held)
    if not isinstance(said, Mapping):
        return make_error("Error", said)
    if (typed := typed_error(said, has_failed=True)) is not None:
        return typed
    if isinstance(content := said.get("content"), list):
        texts = [str(each["text"]) for each in content if isinstance(each, dict) and "text" in each]
        return error_of("\n".join(texts) or dict(said) | {"content": None})
    if (inner := said.get("error")) and isinstance(inner, str | Mapping):
        return error_of(inner)
    kind = next((said[key] for key in ("type", "name") if isinstance(said.get(key), str)), "Error")
    message, code = said.get("message"), said.get("code")
    details = said.get("details")
    if not isinstance(details, Mapping):
        own = {"type", "name", "message", "code", "stack", "details"}
        details = {str(key): each for key, each in said.items() if key not in own}
    stack = said.get("stack")
    return make_error(
        kind or "Error",
        message or said,
        code=code if isinstance(code, str | int) else None,
        stack=stack if isinstance(stack, str) else None,
        details=details,
    )


def _object_in(text: str) -> Mapping[str, object] | None:
    bare = text.strip() if len(text) <= _MAX_TEXT else ""
    held = json_or_none(bare) if bare.startswith("{") and bare.endswith("}") else None
    if isinstance(held, dict):
        return held
    return None


def _bound_details(details: Mapping[str, object]) -> JsonObject:
    bounded = bounded_json(details, max_chars=MAX_MESSAGE_CHARS)
    if isinstance(bounded, dict):
        return bounded
    return {}


def canonical_type(error_type: str) -> str:
    """Return a type of the shared vocabulary in its own spelling (`wrongToolBoundary`).

    Others as is.
    """
    shared = _SHARED.get(_fold_key(error_type))
    return shared or clean_text(error_type.strip())[:MAX_NAME_CHARS] or "Error"


def message_text(value: object) -> str:
    """Return a message as text: itself, '' for nothing, and JSON for what is no text."""
    if value is None or isinstance(value, str):
        if value:
            return str.__str__(value)
        return ""
    made = bounded_json(value, max_chars=MAX_MESSAGE_CHARS)
    if isinstance(made, str):
        return made
    return json.dumps(made, ensure_ascii=False)


def is_referral(error: ExecutionError | None) -> bool:
    """Return whether an error is a typed referral."""
    return error is not None and error.type in REFERRALS


def referral_of(error: ExecutionError) -> Referral | None:
    """Return what a referral states next to its message; None for all other errors."""
    if is_referral(error):
        return referral_in(error.details)
    return None


def referral_in(details: Mapping[str, object]) -> Referral:
    """Return the referral metadata in details, whatever their form."""
    given: dict[str, list[object]] = {name: [] for name in _FIELDS.values()}
    for key, value in details.items():
        if (field := _FIELDS.get(_fold_key(key))) is not None:
            given[field].append(value)
    found = {name: values[0] if len(values) == 1 else values for name, values in given.items()}
    axes: dict[str, str] = {}
    for axis in _texts_in(found["boundary_axes"], MAX_AXIS_CHARS):
        axes.setdefault(axis.casefold(), axis)  # once whatever its case, as spelled first
    return Referral(
        boundary_axes=list(axes.values())[:MAX_AXES],
        observed_task_shape=_text_in(found["observed_task_shape"], MAX_WORDS_CHARS) or None,
        suggested_split=_texts_in(found["suggested_split"], MAX_WORDS_CHARS)[:MAX_SPLIT],
        evidence=_text_in(found["evidence"], MAX_WORDS_CHARS) or None,
    )


def referral_details(referral: Referral) -> JsonObject:
    """Return a referral as `error.details` has it: camelCase, and only what it states."""
    dumped = referral.model_dump(mode="json", by_alias=True)
    return {name: value for name, value in dumped.items() if value not in (None, [])}


def normalised_details(details: Mapping[str, object]) -> JsonObject:
    """Details with the referral metadata in the wire's form; all others untouched but for bounds.

    Keys that say the same (`boundaryAxes` and `boundary_axes`) become one.
    """
    others = {key: value for key, value in details.items() if _fold_key(key) not in _FIELDS}
    return {**referral_details(referral_in(details)), **_bound_details(others)}


def _fold_key(key: object) -> str:
    if isinstance(key, str):
        return re.sub(r"[-_.\s]+", "", key[:MAX_NAME_CHARS]).lower()
    return ""


# Controls, marks of direction and the byte order mark are blanks; joiners stay, for emoji and
# several scripts need them.
_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]+")
_SURE_BREAK = re.compile(r"[\r\n;\uff1b|]+|->|=>|→|⇒")
_COMMA = re.compile(r"[,\uff0c\u3001]| \+ ")
_BULLET = re.compile(r"^\s*(?:[-*•·]|\(?\d{1,2}[.)])\s+")
_LAST_OF_LIST = re.compile(r"^\s*(?:and|or|&)\s+", re.IGNORECASE)
_JOINED = re.compile(r"\s(?:and|or|&)\s", re.IGNORECASE)


def _texts_in(value: object, max_chars: int) -> list[str]:
    """Return all texts in a value, each on one line of at most `max_chars` characters."""
    if isinstance(value, str):
        value = _split_parts(str.__str__(value)[:_MAX_READ])
    return [text for each in _walk_leaves(value, 5) if (text := _text_in(each, max_chars))]


def _text_in(value: object, max_chars: int) -> str:
    """Return a value as one text on one line.

    '' for nothing. Arrays are joined, objects become JSON.
    """
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, list | tuple):
        parts = (_text_in(item, max_chars) for item in value[:100])
        value = "; ".join(dict.fromkeys(part for part in parts if part))
    elif not isinstance(value, str):
        made = bounded_json(value, max_chars=max_chars)
        value = json.dumps(made, ensure_ascii=False) if isinstance(made, dict | list) else made
        value = str(value) if made not in (None, {}, []) else ""
    return _one_line(str.__str__(value), max_chars)


def _one_line(text: str, max_chars: int) -> str:
    """Clean text on one line, cut with an ellipsis; '' when there is nothing to be seen in it."""
    shown = clean_text(_BLANKS.sub(" ", text[:_MAX_READ]).strip())
    if not any(unicodedata.category(char)[0] not in "CZM" for char in shown[:max_chars]):
        return ""
    return bounded_text(shown, max_chars)


def _walk_leaves(value: object, depth: int) -> Iterator[object]:
    if not isinstance(value, list | tuple | set | frozenset):
        yield value
    elif depth > 0:
        for item in sorted(value, key=str) if isinstance(value, set | frozenset) else value:
            yield from _walk_leaves(item, depth - 1)


def _split_parts(text: str) -> list[str]:
    sure = [part for part in _SURE_BREAK.split(text) if part.strip()]
    if len(sure) > 1:
        return [_BULLET.sub("", part) for part in sure]
    parts = [_LAST_OF_LIST.sub("", part) for part in _COMMA.split(text)]
    are_names = all(  # of at most three words and 40 characters; more is a clause
        0 < len(part.split()) <= 3 and len(part) <= 40 and not _JOINED.search(part)
        for part in parts
    )
    if len(parts) > 1 and are_names:
        return parts
    return [text]
