"""`Outcome`: what a tool gives back when it wants to say more than a value.

Also its exception, its line in a log, and its form inside results of MCP tools.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar, overload

from aftercall.errors import AftercallError
from aftercall.json_values import JsonObject, bounded_text, clean_text, make_json_value
from aftercall.models.calls import ExecutionError
from aftercall.outcomes.typed_errors import (
    make_error,
    referral_of,
    typed_error,
    typed_error_in_text,
    words_of,
)
from aftercall.outcomes.words import one_line
from aftercall.redaction import DEFAULT_REDACTOR

ValueT = TypeVar("ValueT")
OtherT = TypeVar("OtherT")

_MAX_STATUS_CHARS = 256  # as the wire models have it
_MAX_READ_STATUS_CHARS = 100
"""Of a `status` that is read from a mapping: the longest word for an outcome is far shorter."""

STATUS_KEY = "aftercall/status"
"""Under this key of a result's `_meta` stands the tool's own word for its success."""

MAX_LINE_CHARS = 500
_MAX_LINE_MESSAGE_CHARS = 200
_MAX_LINE_NAME_CHARS = 80
_MOST_AXES = 5


class ToolFailedError(AftercallError):
    """A tool failed. `error` is what it said; `ran` says whether it may have done anything.

    `execution_id` is the recorded call's, once it has been recorded.
    """

    ran = True

    def __init__(self, error: ExecutionError, *, ran: bool = True) -> None:
        super().__init__(f"{error.type}: {error.message}")
        self.error = error
        self.ran = ran
        self.execution_id: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Made again from what it says, for it crosses processes (`ProcessPoolExecutor`)."""
        return _bare, (type(self), self.args), self.__dict__


def _bare(kind: type[ToolFailedError], args: tuple[Any, ...]) -> ToolFailedError:
    return kind.__new__(kind, *args)


class _MakesError(Protocol):
    def __call__(
        self,
        error_type: str,
        message: str = "",
        *,
        details: Mapping[str, object] | None = None,
        **metadata: object,
    ) -> "Outcome[Any]": ...


class _Error:
    """`Outcome.error(...)` makes an outcome; the `error` of one is its error (seed 000's names)."""

    @overload
    def __get__(self, outcome: None, owner: type) -> _MakesError: ...

    @overload
    def __get__(self, outcome: "Outcome[Any]", owner: type) -> ExecutionError | None: ...

    def __get__(
        self, outcome: "Outcome[Any] | None", owner: type
    ) -> "_MakesError | ExecutionError | None":
        return _failed if outcome is None else outcome.failure


@dataclass(frozen=True)  # no slots: they break `Outcome[T](...)` on 3.11
class Outcome(Generic[ValueT]):
    """A success with its value, or a typed error. Make one by `ok`, `error`, or a referral's name.

    Attributes:
        value: what the tool returned; None for an error.
        status: the tool's own word for its success, such as `success_no_parse`; kept, never
            reinterpreted.
        error: what the tool says of its failure, or None. Called on the class, it makes a failure:
            `Outcome.error(error_type, message, details=..., **metadata)`, where the metadata go
            to the details.
        failure: the same as `error` of an outcome.
    """

    value: ValueT | None = None
    status: str | None = None
    failure: ExecutionError | None = None

    error = _Error()

    @classmethod
    def ok(cls, value: OtherT, status: str | None = None) -> "Outcome[OtherT]":
        """A success, weak or not: it stays one."""
        return Outcome(value, _status(status))

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
        """What was asked for crosses a boundary of this tool.

        Args:
            message: what the caller should know.
            boundary_axes: the capabilities that the request mixes: `["transport", "extraction"]`.
            observed_task_shape: what kind of task it is, such as `fetch + extract`.
            suggested_split: the tools, or the jobs, to split it into, in order.
            evidence: why, in short. Without it the referral counts, marked as lacking it.
            metadata: anything else; kept in the details.
        """
        fields = {
            "boundary_axes": boundary_axes,
            "observed_task_shape": observed_task_shape,
            "suggested_split": suggested_split,
            "evidence": evidence,
        }
        return _failed("wrong_tool_boundary", message, details={**metadata, **fields})

    @classmethod
    def low_utility(
        cls, message: str, *, evidence: object = None, **metadata: object
    ) -> "Outcome[Any]":
        """The output is valid and of little use to the caller; `evidence` says why, in short."""
        return _failed("low_utility", message, details={**metadata, "evidence": evidence})

    @classmethod
    def coerce(cls, returned: object) -> "Outcome[Any]":
        """Whatever a tool returned, as an outcome.

        An `Outcome` is itself; a mapping that is unmistakably a serialised typed error (see
        `aftercall.outcomes.typed_errors`) is that error. All else is a success with exactly this
        value, whatever it says: `{"status": "success_no_parse", "items": []}` succeeded, and its
        `status` is the tool's word for that.
        """
        if isinstance(returned, Outcome):
            return returned
        error = typed_error(returned)
        if error is not None:
            return Outcome(failure=error)
        return Outcome(returned, _status_in(returned))

    @property
    def is_ok(self) -> bool:
        """Whether it is a success."""
        return self.failure is None

    def with_value(self, value: OtherT) -> "Outcome[OtherT]":
        """The same success with another value, such as its canonical shape; an error as it is."""
        if self.failure is not None:
            changed: Outcome[Any] = self
        else:  # another type of value
            changed = replace(self, value=value)  # type: ignore[arg-type]
        return changed

    def unwrap(self) -> ValueT:
        """The value of a success.

        Raises:
            ToolFailedError: it is a failure; carries `error`.
        """
        if self.failure is not None:
            raise ToolFailedError(self.failure)
        return self.value  # type: ignore[return-value]  # None only where the tool returned None

    def to_dict(self) -> JsonObject:
        """Plain JSON; `coerce` reads an error back. The value is made plain, and is not bounded."""
        if self.failure is None:
            value = make_json_value(self.value)
            return {"outcome": "ok", "status": self.status, "value": value}
        dumped = self.failure.model_dump(mode="json", by_alias=True, exclude_none=True)
        return {"outcome": "error", "error": dumped}


def _failed(
    error_type: str,
    message: str = "",
    *,
    details: Mapping[str, object] | None = None,
    **metadata: object,
) -> Outcome[Any]:
    """A failure in the tool's own words."""
    given = details if isinstance(details, Mapping) or details is None else {"details": details}
    every = {**(given or {}), **metadata}
    return Outcome(failure=make_error(error_type, message, details=every))


def _status(word: object) -> str | None:
    """A success is none the less for a status that is no text, such as a member of an `Enum`."""
    return bounded_text(words_of(word), _MAX_STATUS_CHARS) or None


def _status_in(returned: object) -> str | None:
    """A mapping's own `status`, when it is a word on one line."""
    try:
        word = returned.get("status") if isinstance(returned, Mapping) else None
    except Exception:  # noqa: BLE001  # a foreign mapping may raise anything when it is looked at
        return None
    if not isinstance(word, str) or not word.strip() or len(word) > _MAX_READ_STATUS_CHARS:
        return None
    return clean_text(str.__str__(word)) if word.isprintable() else None


def log_line(outcome: Outcome[object], *, tool: str | None = None) -> str:
    """Such as `outcome=error tool="get" type=wrong_tool_boundary axes=["transport"] evidence=yes`.

    At most 500 characters on one line. The value of a success is not in it; texts of the tool are
    JSON strings without secrets, so that none can pass for another field.
    """
    parts = ["outcome=ok" if outcome.error is None else "outcome=error"]
    if tool is not None:
        parts.append(f"tool={_quoted(tool)}")
    if outcome.status is not None:
        parts.append(f"status={_quoted(outcome.status)}")
    error = outcome.error
    if error is not None:
        parts.append(f"type={_quoted(error.type)}")
        referral = referral_of(error)
        if referral is not None:
            axes = [_quoted(axis) for axis in referral.boundary_axes[:_MOST_AXES]]
            more = ["..."] if len(referral.boundary_axes) > _MOST_AXES else []
            parts += [f"axes=[{','.join(axes + more)}]"] if axes else []
            split = len(referral.suggested_split)
            parts += [f"split={split}"] if split else []
            parts.append(f"evidence={'yes' if referral.evidence else 'no'}")
        parts.append(f"message={_quoted(error.message, _MAX_LINE_MESSAGE_CHARS)}")
    return bounded_text(" ".join(parts), MAX_LINE_CHARS)


def _quoted(text: str, max_chars: int = _MAX_LINE_NAME_CHARS) -> str:
    return json.dumps(one_line(DEFAULT_REDACTOR.text(text), max_chars), ensure_ascii=False)


def error_in_result(
    structured: object, texts: Sequence[str], *, is_error: bool
) -> ExecutionError | None:
    """The typed error that a result carries: as structured content, or as a text that is its JSON.

    Args:
        structured: the structured content; None without.
        texts: the text blocks.
        is_error: whether the result says that it is an error. The text of one that does not is
            never read: a tool that reads files or pages may have found just such a text.
    """
    found = typed_error(unwrapped(structured), has_failed=is_error)
    if found is None and is_error:
        found = next((each for text in texts if (each := typed_error_in_text(text))), None)
    return found


def status_in_result(structured: object, meta: Mapping[str, object] | None) -> str | None:
    """The tool's own word for its success: in the result's `_meta`, or else its own `status`."""
    stated = (meta or {}).get(STATUS_KEY)
    return Outcome.coerce({"status": stated} if stated else unwrapped(structured)).status


def unwrapped(structured: object) -> object:
    """Structured content as the tool returned it: FastMCP puts what is no object under `result`."""
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        return structured["result"]
    return structured
