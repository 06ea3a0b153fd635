"""What the service answers when it cannot do what was asked: status, code, message, details."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from aftercall.json_values import clean_text
from aftercall.models import ErrorBody, ErrorResponse
from aftercall.redaction import Redactor

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
