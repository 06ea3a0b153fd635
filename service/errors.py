"""What the service answers when it cannot do what was asked; every exception becomes it here.

raised below                             answered
──────────────────────────────────────────────────────────────────────────
ProblemError                             itself
ConflictError, CorrectionConflictError   409 conflict
InvalidExecutionError, RefusedError,
InvalidCorrectionError                   422 invalid_request
UnknownSuggestionError,
NothingToCorrectError                    404 not_found
UnknownNamespaceError, UnknownToolError  404 not_found, `details.nearest`
NoToolFitsError                          404 no_tool_fits
NotPromotedError                         404 not_promoted
NothingBeforeError                       409 nothing_before
StoreFullError                           503 store_full, Retry-After
StoreReadOnlyError                       503 store_read_only, Retry-After
StoreError                               503 store_unavailable, Retry-After
VectorIndexError, EmbeddingError         503 index_unavailable / embedder_unavailable
Starlette's 404 and 405                  404 not_found, 405 method_not_allowed with Allow
RequestValidationError                   422 invalid_request
anything else                            500 internal_error (`service.middleware.RequestLog`)
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from aftercall.json_values import clean_text
from aftercall.models import ErrorBody, ErrorResponse
from aftercall.redaction import Redactor
from embeddings.protocol import EmbeddingError
from ingest.intake import ConflictError, InvalidExecutionError
from ingest.outcomes import UnknownSuggestionError
from mongo.errors import StoreError, StoreFullError, StoreReadOnlyError
from retrieval.fitness.registry import NoToolFitsError, UnknownNameError
from retrieval.index.protocol import VectorIndexError
from service.changes import NothingBeforeError, NotPromotedError, RefusedError
from service.correcting import (
    CorrectionConflictError,
    InvalidCorrectionError,
    NothingToCorrectError,
)
from service.explain import explain_parameters
from service.logs import log_event

MAX_MESSAGE = 500
"""Characters of a message: enough for a field's path and a cure, not for an echo of the input."""

_REDACTOR = Redactor()


class ProblemError(Exception):
    """An answer other than success. Raised anywhere below a route, rendered in one place."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        details: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.details = details
        self.headers = dict(headers or {})


class MalformedJsonError(ProblemError):
    """400: the body is not JSON."""

    def __init__(self, message: str) -> None:
        super().__init__(400, "malformed_json", message)


class InvalidRequestError(ProblemError):
    """422: JSON, but not what the contract asks for."""

    def __init__(self, message: str, details: Any = None) -> None:
        super().__init__(422, "invalid_request", message, details=details)


class NotFoundError(ProblemError):
    """404."""

    def __init__(self, message: str, details: Any = None) -> None:
        super().__init__(404, "not_found", message, details=details)


class TooLargeError(ProblemError):
    """413: more than one request may carry."""

    def __init__(self, message: str) -> None:
        super().__init__(413, "too_large", message)


class UnavailableError(ProblemError):
    """503: come back in `retry_after_s` seconds."""

    def __init__(self, code: str, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(503, code, message, headers={"retry-after": str(retry_after_s)})


def safe_message(message: str) -> str:
    """A message fit to leave the process: valid text, secrets masked, length bounded."""
    masked = _REDACTOR.text(clean_text(message))
    return masked if len(masked) <= MAX_MESSAGE else masked[: MAX_MESSAGE - 1] + "…"


def render(problem: ProblemError) -> Response:
    """The one form of every error."""
    body = ErrorResponse(
        error=ErrorBody(
            code=problem.code, message=safe_message(problem.message), details=problem.details
        )
    )
    return Response(
        body.model_dump_json(),
        status_code=problem.status,
        headers=problem.headers,
        media_type="application/json",
    )


logger = logging.getLogger(__name__)

ErrorT = TypeVar("ErrorT", bound=Exception)

_FULL = (
    "the log store has no space left; nothing of this call was stored, reading goes on; "
    "free space on its volume and send the call again"
)

_READ_ONLY = (
    "the log store takes no writes at the moment; nothing of this call was stored, reading goes "
    "on; send the call again shortly"
)

_AWAY = "the {} cannot do this at the moment; try again shortly"


def install_error_handlers(app: FastAPI) -> None:
    """Answer every exception in the contract's form."""
    _install(app, ProblemError, lambda _, problem: problem)
    _install(app, ConflictError, lambda _, error: ProblemError(409, "conflict", str(error)))
    _install(app, InvalidExecutionError, lambda _, error: InvalidRequestError(str(error)))
    _install(app, UnknownSuggestionError, lambda _, error: NotFoundError(str(error)))
    _install(app, UnknownNameError, _unknown_name)
    _install(app, NoToolFitsError, lambda _, error: ProblemError(404, "no_tool_fits", str(error)))
    _install(app, NotPromotedError, lambda _, error: ProblemError(404, "not_promoted", str(error)))
    _install(app, RefusedError, lambda _, error: InvalidRequestError(str(error)))
    _install(
        app, NothingBeforeError, lambda _, error: ProblemError(409, "nothing_before", str(error))
    )
    _install(app, NothingToCorrectError, lambda _, error: NotFoundError(str(error)))
    _install(app, InvalidCorrectionError, lambda _, error: InvalidRequestError(str(error)))
    _install(
        app, CorrectionConflictError, lambda _, error: ProblemError(409, "conflict", str(error))
    )
    _install(app, StoreFullError, _unavailable("store_full", _FULL, retry_after_s=30))
    _install(app, StoreReadOnlyError, _unavailable("store_read_only", _READ_ONLY, retry_after_s=5))
    _install(app, StoreError, _unavailable("store_unavailable", _AWAY.format("log store")))
    _install(app, VectorIndexError, _unavailable("index_unavailable", _AWAY.format("vector index")))
    _install(app, EmbeddingError, _unavailable("embedder_unavailable", _AWAY.format("embedder")))
    _install(app, HTTPException, _http)
    _install(app, RequestValidationError, _invalid_parameters)


def _install(
    app: FastAPI, kind: type[ErrorT], to_problem: Callable[[Request, ErrorT], ProblemError]
) -> None:
    async def handler(request: Request, error: Exception) -> Response:
        if not isinstance(error, kind):  # Starlette looks handlers up by type
            raise error
        return render(to_problem(request, error))

    app.add_exception_handler(kind, handler)


def _unavailable(
    code: str, message: str, *, retry_after_s: int = 2
) -> Callable[[Request, Exception], ProblemError]:
    """The log gets the room's own words, which name files; the caller gets `message`."""

    def to_problem(request: Request, error: Exception) -> ProblemError:
        log_event(logger, code, level="error", reason=str(error), error=error)
        services = request.app.state.lifecycle.context
        if services is not None and isinstance(error, StoreError):  # others count where they arise
            services.metrics.failed("log", error)
        return UnavailableError(code, message, retry_after_s=retry_after_s)

    return to_problem


def _unknown_name(_: Request, error: UnknownNameError) -> ProblemError:
    return NotFoundError(str(error), details={"nearest": list(error.nearest)})


def _http(request: Request, error: HTTPException) -> ProblemError:
    if error.status_code == 404:
        return NotFoundError("there is no such path; see /docs for those there are")
    if error.status_code == 405:
        allowed = ", ".join(sorted(set(_methods_at(request))))
        return ProblemError(
            405,
            "method_not_allowed",
            f"this path takes {allowed}, not {request.method[:20]}",
            headers={"allow": allowed},
        )
    return ProblemError(error.status_code, "invalid_request", str(error.detail))


def _methods_at(request: Request) -> Iterator[str]:
    """The methods of every route at the request's path; Starlette tells those of the first only."""
    for context in iter_route_contexts(request.app.routes):
        match, _ = context.original_route.matches(request.scope)
        if match is not Match.NONE:
            yield from context.methods or ()


def _invalid_parameters(_: Request, error: RequestValidationError) -> ProblemError:
    return InvalidRequestError(explain_parameters(error.errors()))
