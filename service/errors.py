"""The answers of the service to what cannot be done; every exception becomes one of them here.

`ANSWERS` has the answer to each exception of an operation. Besides, pydantic's faults of a request
are 422 invalid_request, Starlette's 404 and 405 are not_found and method_not_allowed with Allow,
and anything else is 500 internal_error (`service.middleware.RequestLog`).
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope

from aftercall.explain import explain_request
from aftercall.json_values import JsonObject, clean_text, make_json_value
from aftercall.models import ErrorBody, ErrorResponse
from aftercall.redaction import DEFAULT_REDACTOR
from embeddings.protocol import EmbeddingError
from ingest.formats.otlp.wire import status_protobuf
from ingest.intake import ExecutionConflictError, InvalidExecutionError
from mongo.errors import KeyChangedError, StoreError, StoreFullError, StoreReadOnlyError
from retrieval.index.protocol import VectorIndexError
from retrieval.knowledge.rows.registry import NoToolFitsError, UnknownNameError
from service.keys import KeyRefusedError, UnknownKeyError
from service.logs import log_event

logger = logging.getLogger(__name__)
MAX_MESSAGE = 500
"""Characters of a message: enough for a field's path and a cure, not for an echo of the input."""
TRACES: Final = "/v1/traces"
PROTOBUF: Final = "application/x-protobuf"


class InvalidChangeError(ValueError):
    """The change is wrong by itself, such as a path that leaves its folder."""


class RefusedError(ValueError):
    """The change makes no sense here, such as a circle of `evolvedFrom`; the message states why."""


class NothingBeforeError(LookupError):
    """There is no earlier promotion to go back to."""


class NotPromotedError(LookupError):
    """Nothing is promoted in the namespace."""


class NotRecordedError(LookupError):
    """The workspace has no such suggestion, or no such call of the session."""


class CorrectionConflictError(ValueError):
    """The correction id is taken by a correction with other content."""


class ProblemError(HTTPException):
    """An answer other than success: raised anywhere below a route, rendered in one place."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        details: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, message, dict(headers or {}))
        self.code = code
        self.message = message
        self.details = details


class _KnownProblemError(ProblemError):
    status: int
    kind: str

    def __init__(self, message: str) -> None:
        super().__init__(self.status, self.kind, message)


class MalformedJsonError(_KnownProblemError):
    """400: the body is not JSON."""

    status, kind = 400, "malformed_json"


class InvalidProblemError(_KnownProblemError):
    """422: JSON, but not what the contract asks for."""

    status, kind = 422, "invalid_request"


class NotFoundProblemError(_KnownProblemError):
    """404."""

    status, kind = 404, "not_found"


class TooLargeProblemError(_KnownProblemError):
    """413: more than one request may carry."""

    status, kind = 413, "too_large"


class UnavailableError(ProblemError):
    """503: come back in `retry_after_s` seconds."""

    def __init__(self, code: str, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(503, code, message, headers={"retry-after": str(retry_after_s)})


_FULL = (
    "the log store has no space left; nothing of this call was stored, reading goes on; "
    "free space on its volume and send the call again"
)
_READ_ONLY = (
    "the log store takes no writes at the moment; nothing of this call was stored, reading goes "
    "on; send the call again shortly"
)
_AWAY = "the {} cannot do this at the moment; try again shortly"
ANSWERS: Mapping[type[Exception], tuple[int, str]] = {
    ExecutionConflictError: (409, "conflict"),
    InvalidExecutionError: (409, "refused"),
    UnknownNameError: (404, "not_found"),
    NoToolFitsError: (404, "no_tool_fits"),
    NotPromotedError: (404, "not_promoted"),
    InvalidChangeError: (422, "invalid_request"),
    RefusedError: (409, "refused"),
    NothingBeforeError: (409, "nothing_before"),
    NotRecordedError: (404, "not_found"),
    CorrectionConflictError: (409, "conflict"),
    UnknownKeyError: (404, "not_found"),
    KeyRefusedError: (403, "not_allowed"),
    KeyChangedError: (409, "conflict"),
}
"""Status and code of what operations raise; the message is the exception's. `refused` is what is
well-formed and makes no sense here and now."""
UNAVAILABLE: Mapping[type[Exception], tuple[str, str, int]] = {
    StoreFullError: ("store_full", _FULL, 30),
    StoreReadOnlyError: ("store_read_only", _READ_ONLY, 5),
    StoreError: ("store_unavailable", _AWAY.format("log store"), 2),
    VectorIndexError: ("index_unavailable", _AWAY.format("vector index"), 2),
    EmbeddingError: ("embedder_unavailable", _AWAY.format("embedder"), 2),
}
"""Code, message and seconds to wait of a 503. The exception's own words are for the log."""


def install_error_handlers(app: FastAPI) -> None:
    """Answer every exception in the contract's form."""

    async def answer_error(request: Request, error: Exception) -> Response:
        return render_problem(problem_of(request, error), request.scope)

    for kind in (HTTPException, RequestValidationError, *ANSWERS, *UNAVAILABLE):
        app.add_exception_handler(kind, answer_error)


def problem_of(request: Request, error: Exception) -> ProblemError:
    """Return the answer to an exception."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, HTTPException):
        return _of_starlette(request, error)
    if isinstance(error, RequestValidationError):
        faults = error.errors()
        if [(fault["type"], fault["loc"]) for fault in faults] == [("missing", ("body",))]:
            return MalformedJsonError("the body is empty; send a JSON value")
        field = getattr(request.scope.get("route"), "body_field", None)
        return InvalidProblemError(explain_request(faults, field and field.field_info.annotation))
    for kind in type(error).__mro__:
        if kind in ANSWERS:
            status, code = ANSWERS[kind]
            nearest = getattr(error, "nearest", None)
            details = None if nearest is None else {"nearest": list(nearest)}
            return ProblemError(status, code, str(error), details=details)
        if kind in UNAVAILABLE:
            code, message, wait_s = UNAVAILABLE[kind]
            log_event(logger, code, level="error", reason=str(error), error=error)
            context = request.app.state.lifecycle.context
            if context is not None and isinstance(error, StoreError):  # others count their own
                context.metrics.count_failure("log", error)
            return UnavailableError(code, message, retry_after_s=wait_s)
    raise error


def _of_starlette(request: Request, error: HTTPException) -> ProblemError:
    if error.status_code == 404:
        return NotFoundProblemError("there is no such path; see /docs for those there are")
    if error.status_code == 405:
        allowed = ", ".join(_methods_at(request))
        return ProblemError(
            405,
            "method_not_allowed",
            f"this path takes {allowed}, not {request.method[:20]}",
            headers={"allow": allowed},
        )
    return ProblemError(error.status_code, "invalid_request", str(error.detail))


def _methods_at(request: Request) -> list[str]:
    """Return the methods of the first path that fits, over all its routes.

    Starlette reports those of one route.
    """
    path, methods = None, set[str]()
    for context in iter_route_contexts(request.app.routes):
        match, _ = context.original_route.matches(request.scope)
        if match is not Match.NONE and path in (None, context.path):
            path = context.path
            methods |= set(context.methods or ())
    return sorted(methods)


def safe_message(message: str) -> str:
    """Return a message fit to leave the process: valid text, secrets masked, length bounded."""
    masked = DEFAULT_REDACTOR.text(clean_text(message))
    return masked if len(masked) <= MAX_MESSAGE else masked[: MAX_MESSAGE - 1] + "…"


def _safe_details(details: JsonObject | None) -> JsonObject | None:
    safe = make_json_value(details)
    return safe if isinstance(safe, dict) else None


_RPC_CODES: Final = {403: 7, 404: 5, 405: 12, 408: 4, 413: 8, 429: 8, 500: 13, 503: 14}
"""`google.rpc.Code` by HTTP status; all others are the sender's mistake, 3."""


def render_problem(problem: ProblemError, scope: Scope) -> Response:
    """Return the one form of every error.

    For OTLP in protobuf, which `scope` shows, that is a `google.rpc.Status`.
    """
    message = safe_message(problem.message)
    if scope["path"] == TRACES and media_type(Headers(scope=scope)) == PROTOBUF:
        code = _RPC_CODES.get(problem.status_code, 3)
        return Response(
            status_protobuf(code, message), problem.status_code, problem.headers, PROTOBUF
        )
    body = ErrorResponse(
        error=ErrorBody(code=problem.code, message=message, details=_safe_details(problem.details))
    )
    return Response(
        body.model_dump_json(), problem.status_code, problem.headers, "application/json"
    )


def media_type(headers: Headers) -> str:
    """Return the media type of a request, without its parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()
