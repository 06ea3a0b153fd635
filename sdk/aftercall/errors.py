"""The exceptions of the SDK.

AftercallError
├── ConfigurationError        a setting or a configuration file is wrong
│   ├── MissingExtraError         something is not installed; an ImportError too
│   └── PromotionsFileError       (promotions_file) with the entry
├── ToolFailedError           (executors) a tool failed, or was rejected before it ran
│   ├── ToolRefusedError          this machine did not run it
│   └── ContractViolationError    (contracts) it returned, but not what its deliverable asks for
├── QuestionTooLongError      more than fits into the address of a request; nothing was sent
├── ServiceUnreachableError   no answer: refused, reset, timed out
│   └── ServiceTimeoutError       connected, but no answer in time; it may have been done
├── ProtocolError             an answer that is not of the contract
└── ApiError                  the service stated no (status, code, message, details)
    ├── InvalidRequestError       400, 422
    ├── NotAllowedError           401, 403
    ├── NotFoundError             404
    ├── ConflictError             409
    ├── TooLargeError             413
    ├── RateLimitedError          429
    └── ServiceFailedError        5xx
"""

from typing import Any


class AftercallError(Exception):
    """Base of all that the SDK raises."""


class ConfigurationError(AftercallError):
    """A setting or a configuration file is wrong; the message names it and the cure."""


class MissingExtraError(ConfigurationError, ModuleNotFoundError):
    """What an extra brings is not installed; the message states by which command it is."""


class QuestionTooLongError(AftercallError, ValueError):
    """More than fits into the address of a request; the message states how much does."""


class ServiceUnreachableError(AftercallError):
    """The service gave no answer: refused, reset or timed out."""


class ServiceTimeoutError(ServiceUnreachableError):
    """The service took the request and gave no answer in time: it may have been done or not."""


class ProtocolError(AftercallError):
    """The answer is not of the contract: another program or another version is listening."""


class ApiError(AftercallError):
    """The service stated no.

    `code` is stable and meant for programs. It is `http_<status>` where not the service but
    something in front of it answered, such as a proxy. `retry_after_s` is the wait that the answer
    asks for, in seconds.
    """

    def __init__(
        self,
        *,
        status: int,
        code: str,
        message: str,
        details: Any = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(f"{message} ({status} {code})")
        self.status = status
        self.code = code
        self.message = message
        self.details = details
        self.retry_after_s = retry_after_s


class InvalidRequestError(ApiError):
    """400 or 422: malformed; the message names the field."""


class NotAllowedError(ApiError):
    """401 or 403."""


class NotFoundError(ApiError):
    """404."""


class ConflictError(ApiError):
    """409: the same id with other content."""


class TooLargeError(ApiError):
    """413: more than one request may carry."""


class RateLimitedError(ApiError):
    """429."""


class ServiceFailedError(ApiError):
    """5xx: 503 states when to come back."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: InvalidRequestError,
    401: NotAllowedError,
    403: NotAllowedError,
    404: NotFoundError,
    409: ConflictError,
    413: TooLargeError,
    422: InvalidRequestError,
    429: RateLimitedError,
}


def error_for_status(status: int) -> type[ApiError]:
    """Return the exception class for an HTTP status of 400 or more."""
    return _BY_STATUS.get(status, ServiceFailedError if status >= 500 else ApiError)
