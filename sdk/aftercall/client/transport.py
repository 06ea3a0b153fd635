"""What both clients share: a request as plain data, when it is retried, and which error means what.

Nothing is sent from here.
"""

import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Generic, TypeVar
from urllib.parse import quote, urlencode

import httpx2
from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from aftercall import errors
from aftercall.models import ErrorBody, ErrorResponse, Execution, RecordReceipt, WireModel
from aftercall.redaction import Redactor
from aftercall.running import BASE_URL, KEY_VARIABLE, URL_VARIABLE

T = TypeVar("T")
ModelT = TypeVar("ModelT", bound=WireModel)
QueryValue = str | int | bool | Sequence[str] | None
MAX_BODY_BYTES = 8 * 1024 * 1024
"""Most bytes in the body of one request (contract)."""
MAX_QUERY_CHARS = 60_000
"""Most characters of a query as it is sent: HTTP clients and servers end near 65,536."""
_BASE_S, _CAP_S, _MAX_RETRY_AFTER_S = 0.1, 2.0, 5.0

# What a proxy in front of the service may answer by itself: the status alone states what is wrong.
_STATUS_SAYS_ALL = frozenset({413, 429})
_LOWER_ERRORS = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.CookieConflict, httpx2.StreamError)


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """One request. `path` is percent-encoded; `read` raises `ProtocolError` on a foreign answer.

    `retried` are those that may be done twice without a change: no rollback, and no probe.
    """

    method: str
    path: str
    read: Callable[[bytes], T]
    body: bytes | None = None
    retried: bool = True


def path_segment(text: str) -> str:
    """Return one segment of a path, whatever the id holds; ValueError when it is empty."""
    if not text:
        raise ValueError("the id is empty; a request would go to another endpoint")
    # Left as they are, dots would be resolved: DELETE /tools/.. would become DELETE /.
    return quote(text, safe="") if text.strip(".") else text.replace(".", "%2E")


def query_string(fields: Mapping[str, QueryValue]) -> str:
    """Return the query of a path with its question mark; empty when no field has a value.

    Names are written in camelCase. A field of several texts stands there once for each.
    """
    given = {
        to_camel(name): str(value).lower() if isinstance(value, bool) else value
        for name, value in fields.items()
        if value is not None
    }
    text = urlencode(given, doseq=True, quote_via=quote)
    if len(text) > MAX_QUERY_CHARS:
        raise errors.QuestionTooLongError(
            f"the question has {len(text):,} characters as it is sent; at most "
            f"{MAX_QUERY_CHARS:,} fit, so say it in fewer words"
        )
    return f"?{text}" if text else ""


def model_reader(model: type[ModelT]) -> Callable[[bytes], ModelT]:
    """Reads an answer as a model."""

    def read(content: bytes) -> ModelT:
        try:
            # A newer service may send further fields; that is no reason to fail.
            return model.model_validate_json(content, extra="ignore")
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            where = ".".join(map(str, first["loc"])) or "the body"
            raise errors.ProtocolError(
                f"the answer is no {model.__name__} of the contract ({where}: {first['msg']}); "
                "does base_url name an Aftercall service of this version?"
            ) from error

    return read


def reads_nothing(_content: bytes) -> None:
    """Any answer of success will do."""


def encode_execution(execution: Execution, redactor: Redactor | None) -> bytes:
    """Return an execution as it is sent: one line of JSON, without secrets."""
    clean = execution if redactor is None else redactor.call(execution)
    return clean.model_dump_json().encode()


def record_encoded(lines: Sequence[bytes]) -> Request[RecordReceipt]:
    """`POST /executions` with what `encode` made."""

    def read(content: bytes) -> RecordReceipt:
        receipt = model_reader(RecordReceipt)(content)
        answered = receipt.accepted + receipt.duplicates + len(receipt.rejected)
        if answered != len(lines):
            # A caller who believed this receipt would throw away what was never stored.
            raise errors.ProtocolError(
                f"the receipt is for {answered} executions, {len(lines)} were sent"
            )
        return receipt

    return Request("POST", "/executions", read, b"[" + b",".join(lines) + b"]")


def record_request(
    executions: Execution | Sequence[Execution], redactor: Redactor | None
) -> Request[RecordReceipt]:
    """`POST /executions`."""
    batch = [executions] if isinstance(executions, Execution) else executions
    return record_encoded([encode_execution(execution, redactor) for execution in batch])


def in_groups(
    items: Iterable[T], size_of: Callable[[T], int], *, most: int, most_bytes: int
) -> Iterator[list[T]]:
    """Yield the items in their order, in lists of so many and of so many bytes, or of one item."""
    group: list[T] = []
    size = 0
    for each in items:
        if group and (len(group) >= most or size + size_of(each) > most_bytes):
            yield group
            group, size = [], 0
        group.append(each)
        size += size_of(each)
    if group:
        yield group


def full_jitter_s(attempt: int, *, base_s: float, cap_s: float) -> float:
    """Seconds to wait after attempt 1, 2, ...: anything up to an exponentially growing bound.

    Source: M. Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog, 2015.
    """
    bound = min(cap_s, base_s * 2.0 ** min(attempt - 1, 60))
    return random.uniform(0.0, bound)  # noqa: S311  # spreads load, keeps no secret


def retry_wait_s(attempt: int, error: errors.AftercallError, retries: int) -> float | None:
    """Seconds until a failed request is sent again, after attempt 1, 2, ...; None when it is not.

    Connections that were refused or broke off, 429, 502, 503 and 504 are retried; an answer that
    did not come in time is not, for the caller's time is up then. A `Retry-After` beyond 5 seconds
    ends the matter too: the error carries it, and the caller may come back.
    """
    asked_s = None
    if isinstance(error, errors.ApiError):
        may_pass, asked_s = error.status in (429, 502, 503, 504), error.retry_after_s
    else:
        may_pass = isinstance(error, errors.ServiceUnreachableError)
        may_pass = may_pass and not isinstance(error, errors.ServiceTimeoutError)
    if attempt > retries or not may_pass or (asked_s or 0.0) > _MAX_RETRY_AFTER_S:
        return None
    jitter_s = full_jitter_s(attempt, base_s=_BASE_S, cap_s=_CAP_S)
    # On top of the wait that was asked for, or all who were turned away would come back at once.
    return jitter_s if asked_s is None else asked_s + min(jitter_s, _BASE_S)


def service_url(given: str | None = None) -> str:
    """Return the given address, that of `AFTERCALL_URL`, or that of `aftercall serve`."""
    return (os.environ.get(URL_VARIABLE) or BASE_URL) if given is None else given


def checked_base_url(given: str | None) -> httpx2.URL:
    """Return the URL of the service; of None, see `service_url`."""
    base_url = service_url(given)
    try:
        url = httpx2.URL(base_url)
    except (httpx2.InvalidURL, TypeError) as error:
        raise errors.ConfigurationError(
            f"the service's address (base_url, --service or {URL_VARIABLE}) is no URL: {error}; "
            f"an example: {BASE_URL}"
        ) from error
    if url.scheme not in {"http", "https"} or not url.host:
        raise errors.ConfigurationError(
            f"the service's address (base_url, --service or {URL_VARIABLE}) must start with "
            f"http:// or https:// and name a host, such as {BASE_URL}"
        )
    return url


def client_headers(headers: Mapping[str, str] | None, api_key: str) -> dict[str, str]:
    """Return the headers of every request; the caller's win over ours."""
    ours = {"accept": "application/json", "user-agent": "aftercall-sdk"}
    if api_key:
        ours["authorization"] = f"Bearer {api_key}"
    return ours | {name.lower(): value for name, value in (headers or {}).items()}


def own_key(api_key: str | None) -> str:
    """Return the key that was given, else that of `AFTERCALL_API_KEY`; empty for none."""
    key = (os.environ.get(KEY_VARIABLE, "") if api_key is None else api_key).strip()
    if not (key.isascii() and key.isprintable()):
        raise errors.ConfigurationError(
            f"the text of {KEY_VARIABLE} is no key: keys begin with ac_"
        )
    return key


def key_id(api_key: str) -> str:
    """Return the part of a key that is no secret; empty without a key."""
    parts = api_key.split("_", 2)
    return parts[1] if len(parts) == 3 and parts[0] == "ac" else ""


def request_headers(request: Request[T]) -> dict[str, str]:
    """Return the headers of one request: its body's type, and the caller's place in its trace."""
    headers = _trace_headers()
    if request.body is not None:
        headers["content-type"] = "application/json"
    return headers


def current_trace_id() -> str | None:
    """Return the id of the trace of the current span; None without one."""
    _, _, after = _trace_headers().get("traceparent", "").partition("-")
    return after.partition("-")[0] or None


def _trace_headers() -> dict[str, str]:
    """Return `traceparent` and `tracestate` of the current span (W3C Trace Context).

    No baggage: that is the caller's own and may hold anything. A process that has not imported
    OpenTelemetry has no current span, so nothing is imported for it.
    """
    headers: dict[str, str] = {}
    if "opentelemetry.trace" in sys.modules:
        # Only where it is used.
        from opentelemetry.trace.propagation import tracecontext  # noqa: PLC0415

        tracecontext.TraceContextTextMapPropagator().inject(headers)
    return headers


def read_answer(request: Request[T], response: httpx2.Response) -> T:
    """Return what the service answered."""
    if response.is_success:
        return request.read(response.content)
    raise _error_of(response)


def _error_of(response: httpx2.Response) -> errors.AftercallError:
    status = response.status_code
    try:
        body = ErrorResponse.model_validate_json(response.content, extra="ignore").error
    except ValidationError:
        if status not in _STATUS_SAYS_ALL and status < httpx2.codes.INTERNAL_SERVER_ERROR:
            return errors.ProtocolError(
                f"{response.request.method} {response.request.url.path} was answered with status "
                f"{status} and no error of the contract; does base_url name an Aftercall service?"
            )
        reason = response.reason_phrase or "no reason given"
        body = ErrorBody(
            code=f"http_{status}", message=f"{reason}, by something before the service"
        )
    if status < httpx2.codes.BAD_REQUEST:
        return errors.ProtocolError(f"status {status} with an error as its body")
    return errors.error_for_status(status)(
        status=status,
        code=body.code,
        message=body.message,
        details=body.details,
        retry_after_s=retry_after_s(response.headers.get("retry-after")),
    )


def retry_after_s(text: str | None) -> float | None:
    """Seconds of a Retry-After header (RFC 9110, 10.2.3): a count, or a date."""
    if text is None:
        return None
    if text.strip().isdecimal() and text.isascii():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


@contextmanager
def mapped_errors(url: httpx2.URL) -> Iterator[None]:
    """Raise what httpx2 raises as an error of ours, with the lower one as its cause."""
    try:
        yield
    except _LOWER_ERRORS as error:
        raise _map_error(error, f"{url.scheme}://{url.netloc.decode()}") from error


def _map_error(error: Exception, origin: str) -> errors.AftercallError:
    text = str(error) or type(error).__name__
    match error:
        case httpx2.ConnectError() | httpx2.ConnectTimeout() | httpx2.ProxyError():
            return errors.ServiceUnreachableError(
                f"no service at {origin} ({text}); "
                "start one with `aftercall serve`, or correct base_url"
            )
        case httpx2.TimeoutException():
            return errors.ServiceTimeoutError(
                f"{origin} gave no answer in time ({type(error).__name__}); it may be overloaded, "
                "or timeout_s too short"
            )
        case httpx2.NetworkError():
            return errors.ServiceUnreachableError(f"the connection to {origin} broke ({text})")
        case httpx2.RemoteProtocolError() if text.startswith(
            # h11 reports bad HTTP by the same class of error.
            ("Server disconnected", "peer closed connection")
        ):
            return errors.ServiceUnreachableError(
                f"{origin} broke off before its answer was whole ({text})"
            )
        case httpx2.UnsupportedProtocol() | httpx2.LocalProtocolError() | httpx2.InvalidURL():
            return errors.ConfigurationError(f"no request can be made to {origin} ({text})")
        case _:
            return errors.ProtocolError(
                f"{origin} answered with something that is not of the contract ({text}); "
                "does base_url name an Aftercall service?"
            )
