"""Both clients: every endpoint, every error, retries; against a real server that can misbehave.

One suite runs over both: `Both` calls a method of either in the same way.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.client import Client, transport
from aftercall.client.async_client import AsyncClient
from aftercall.client.transport import retry_wait_s
from aftercall.errors import (
    AftercallError,
    ApiError,
    ConfigurationError,
    ConflictError,
    InvalidRequestError,
    NotAllowedError,
    NotFoundError,
    ProtocolError,
    RateLimitedError,
    ServiceFailedError,
    ServiceTimeoutError,
    ServiceUnreachableError,
    TooLargeError,
)
from aftercall.models import Execution, FailedCall, ToolAnnotations, ToolSpec
from aftercall.redaction import Redactor
from tests.sdk import loopback
from tests.sdk.loopback import Fault, Loopback

New = Callable[..., Execution]
FAILURE = {"outcome": "failure", "error": {"type": "ValidationError", "message": "topK too large"}}


@pytest.fixture
def once(service: Loopback, connect: Any) -> Any:
    """Never retries."""
    return connect(service.url, retries=0)


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between attempts, noted and not slept through."""
    noted: list[float] = []

    async def note(seconds: float) -> None:
        noted.append(seconds)

    monkeypatch.setattr("time.sleep", noted.append)
    monkeypatch.setattr("asyncio.sleep", note)
    return noted


async def test_an_execution_is_asked_about_as_a_failed_call(
    call: Any, service: Loopback, new_execution: New
) -> None:
    """`suggest` takes a recorded execution or a bare failed call, and says what it was told to."""
    execution = new_execution(**FAILURE)
    bare = FailedCall.model_validate(
        {"agent": "a", "toolName": "t", "parameters": {}, "error": FAILURE["error"]}
    )
    assert (await call("suggest", execution)).abstained
    await call("suggest", bare, limit=5, annotations=ToolAnnotations(read_only_hint=True))
    first, second = (request.json for request in service.requests)
    assert first["execution"] == json.loads(execution.model_dump_json())
    assert (first["limit"], first["annotations"]) == (3, None)
    assert second["execution"]["executionId"] is None
    assert (second["limit"], second["annotations"]["readOnlyHint"]) == (5, True)


@pytest.mark.parametrize(
    "tool_id",
    ["a/b", "a b", "ü", "a?b=c", "a#b", "a%2Fb", "..", ".", "...", "../status", "a\nb", "%", "/"],
)
async def test_any_tool_id_arrives_as_it_is(call: Any, service: Loopback, tool_id: str) -> None:
    """No id can lead a request to another endpoint."""
    await call("put_tool", tool_id, ToolSpec(name="t"))
    assert list(service.tools) == [tool_id]
    path = service.requests[0].path
    assert path.startswith("/tools/")
    assert path.count("/") == 2
    await call("delete_tool", tool_id)
    assert service.tools == {}


async def test_probes_say_yes_or_no(call: Any, service: Loopback) -> None:
    """A service that fails, hangs up or is gone is neither healthy nor ready, asked once."""
    assert await call("healthy")
    assert await call("ready")
    for fault in (
        loopback.error(503), loopback.page(500), loopback.page(502), loopback.reset,
    ):  # fmt: skip
        for probe in ("healthy", "ready"):
            service.fail(fault, times=1)
            assert not await call(probe)
    assert len(service.requests) == 10
    service.stop()
    assert not await call("healthy")
    assert not await call("ready")


async def test_the_redactor_can_be_chosen_or_left_out(
    service: Loopback, connect: Any, new_execution: New
) -> None:
    """Another one masks more, None masks nothing."""
    for redactor in (Redactor.create(extra_names=["query"]), None):
        call = connect(service.url, redactor=redactor)
        await call("record", new_execution(parameters={"query": "x", "password": "swordfish"}))
    masked, plain = (batch[0]["parameters"] for batch in service.batches)
    assert masked == {"query": "[redacted:string:1-8]", "password": "[redacted:string:9-16]"}
    assert plain == {"query": "x", "password": "swordfish"}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, InvalidRequestError), (401, NotAllowedError), (403, NotAllowedError),
        (404, NotFoundError), (405, ApiError), (408, ApiError), (409, ConflictError),
        (413, TooLargeError), (418, ApiError), (422, InvalidRequestError),
        (429, RateLimitedError), (500, ServiceFailedError), (501, ServiceFailedError),
        (502, ServiceFailedError), (503, ServiceFailedError), (504, ServiceFailedError),
        (507, ServiceFailedError), (599, ServiceFailedError),
    ],
)  # fmt: skip
async def test_errors_of_the_contract_keep_what_they_say(
    once: Any, service: Loopback, status: int, expected: type[ApiError]
) -> None:
    """Status, code, message, details and wait are on the exception of the right class."""
    service.fail(loopback.error(status, "a_code", retry_after="7", details={"field": "topK"}))
    with pytest.raises(ApiError) as failure:
        await once("status")
    error = failure.value
    assert type(error) is expected
    assert (error.status, error.code, error.retry_after_s) == (status, "a_code", 7.0)
    assert (error.message, error.details) == (f"told to say {status}", {"field": "topK"})
    assert str(error) == f"told to say {status} ({status} a_code)"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (413, TooLargeError), (429, RateLimitedError), (500, ServiceFailedError),
        (502, ServiceFailedError), (503, ServiceFailedError), (504, ServiceFailedError),
    ],
)  # fmt: skip
async def test_a_proxys_own_errors_are_known_by_their_status(
    once: Any, service: Loopback, status: int, expected: type[ApiError]
) -> None:
    """Where the status says all, a page of HTML will do; the code shows that it was no contract."""
    service.fail(loopback.page(status))
    with pytest.raises(expected) as failure:
        await once("status")
    assert failure.value.code == f"http_{status}"


LOWER_ERRORS: dict[type[BaseException], type[AftercallError]] = {
    httpx2.ConnectError: ServiceUnreachableError,
    httpx2.ProxyError: ServiceUnreachableError,
    httpx2.ReadError: ServiceUnreachableError,
    httpx2.ReadTimeout: ServiceTimeoutError,
    httpx2.PoolTimeout: ServiceTimeoutError,
    httpx2.UnsupportedProtocol: ConfigurationError,
    httpx2.InvalidURL: ConfigurationError,
    httpx2.RemoteProtocolError: ProtocolError,
    httpx2.DecodingError: ProtocolError,
    httpx2.CookieConflict: ProtocolError,
    httpx2.StreamConsumed: ProtocolError,
}


@pytest.mark.parametrize(
    ("lower", "expected"), LOWER_ERRORS.items(), ids=[e.__name__ for e in LOWER_ERRORS]
)
def test_errors_of_httpx2_become_ours(
    lower: type[BaseException], expected: type[AftercallError]
) -> None:
    """With the lower one as its cause, and the address in the message, but no password in it."""
    error = lower.__new__(lower)
    error.args = ("it went wrong",)
    url = httpx2.URL("https://me:swordfish@example.org:8799/aftercall")
    with pytest.raises(AftercallError) as failure, transport.mapped_errors(url):
        raise error
    assert type(failure.value) is expected
    assert failure.value.__cause__ is error
    assert "https://example.org:8799" in str(failure.value)
    assert "swordfish" not in str(failure.value)


@pytest.mark.parametrize(
    "fault",
    [
        loopback.reset, loopback.disconnect, loopback.cut_off,
        loopback.garbage, loopback.page(200), loopback.page(301), loopback.page(400),
        loopback.page(401), loopback.page(404), loopback.page(409), loopback.error(301),
        loopback.answer(b'{"detail": "Not Found"}', status=404),
        loopback.answer(b'{"error": "no"}', status=422), loopback.answer(b""),
        loopback.answer(b"null"), loopback.answer(b"[]"), loopback.answer(b"{}"),
        loopback.answer(b'{"version": 1}'),
        loopback.answer(b'{"version": "0.1.0", "ready": "perhaps"'), loopback.answer(b"\xff\xfe"),
        loopback.answer(b"[" * 100_000),
        loopback.answer(b"not gzip", headers={"content-encoding": "gzip"}),
        loopback.answer(b"", status=204),
    ],
)  # fmt: skip
async def test_what_is_not_of_the_contract_is_a_protocol_error(
    once: Any, service: Loopback, fault: Fault
) -> None:
    """Another program on the port, or a version that speaks otherwise, is called that.

    What is reset, or closed without a whole answer, is neither that nor a timeout.
    """
    service.fail(fault)
    broken = fault in (loopback.reset, loopback.disconnect, loopback.cut_off)
    with pytest.raises(ServiceUnreachableError if broken else ProtocolError) as failure:
        await once("status")
    assert not isinstance(failure.value, ServiceTimeoutError)


@pytest.mark.parametrize(
    "receipt",
    [
        b'{"accepted": 1}',
        b'{"accepted": 3}',
        b'{"accepted": 0, "rejected": []}',
        b'{"accepted": 2, "rejected": [{"index": 0, "message": "m"}]}',
    ],
)
async def test_a_receipt_for_something_else_is_not_believed(
    once: Any, service: Loopback, new_execution: New, receipt: bytes
) -> None:
    """It must account for every execution that was sent."""
    service.fail(loopback.answer(receipt, status=202))
    with pytest.raises(ProtocolError, match="the receipt is for"):
        await once("record", [new_execution(), new_execution()])


@pytest.mark.parametrize(
    "base_url",
    ["", "127.0.0.1:8799", "example.org", "ftp://example.org", "http://", "http:///x",
     "http://example.org:port", "unix:///run/x"],
)  # fmt: skip
def test_a_bad_address_is_a_configuration_error(base_url: str) -> None:
    """At once, with an example of a good one."""
    for kind in (Client, AsyncClient):
        with pytest.raises(ConfigurationError, match=r"http://127\.0\.0\.1:8799"):
            kind(base_url)


@pytest.mark.parametrize(
    "fault",
    [loopback.error(429), loopback.error(502), loopback.error(503), loopback.error(504),
     loopback.page(502), loopback.reset, loopback.disconnect, loopback.cut_off],
    ids=["429", "502", "503", "504", "proxy", "reset", "disconnect", "cut-off"],
)  # fmt: skip
@pytest.mark.parametrize("method", ["record", "status"])
async def test_what_passes_by_itself_is_retried(
    call: Any, service: Loopback, new_execution: New, waits: list[float], fault: Fault, method: str
) -> None:
    """Two failures, then success: the caller does not notice."""
    service.fail(fault, times=2)
    execution = new_execution()
    await call(method, *([execution] if method == "record" else []))
    assert len(service.requests) == 3
    assert len(waits) == 2
    bodies = {request.body for request in service.requests}
    assert len(bodies) == 1


@pytest.mark.parametrize(
    "fault",
    [loopback.error(400), loopback.error(401), loopback.error(404), loopback.error(409),
     loopback.error(413), loopback.error(422), loopback.error(500), loopback.error(501),
     loopback.page(200), loopback.garbage],
)  # fmt: skip
async def test_what_would_fail_again_is_not_retried(
    call: Any, service: Loopback, fault: Fault
) -> None:
    """A refusal stays a refusal, a foreign program stays foreign."""
    service.fail(fault)
    with pytest.raises(AftercallError):
        await call("status")
    assert len(service.requests) == 1


async def test_an_answer_that_takes_too_long_is_not_waited_for_twice(
    service: Loopback, connect: Any
) -> None:
    """`timeout_s` is what the caller is willing to wait."""
    call = connect(service.url, retries=2, timeout_s=0.1)
    service.fail(loopback.hang)
    with pytest.raises(ServiceTimeoutError, match="timeout_s"):
        await call("status")
    assert len(service.requests) == 1
    service.heal()


async def test_a_service_that_comes_back_is_reached(
    service: Loopback, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused connections are retried too."""
    port = service.port
    service.stop()

    async def restart(_: float) -> None:
        service.start(port)

    monkeypatch.setattr("time.sleep", lambda _: service.start(port))
    monkeypatch.setattr("asyncio.sleep", restart)
    assert (await call("status")).ready


async def test_the_wait_that_the_service_asks_for_is_kept(
    call: Any, service: Loopback, waits: list[float]
) -> None:
    """Never less, and a little jitter more; in seconds or as a date."""
    service.fail(loopback.error(503, retry_after="2"), times=1)
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=4), usegmt=True)
    service.fail(loopback.error(429, retry_after=date), times=1)
    await call("status")
    assert 2.0 <= waits[0] <= 2.1
    assert 1.0 <= waits[1] <= 4.1


async def test_a_wait_that_is_too_long_is_left_to_the_caller(
    call: Any, service: Loopback, waits: list[float]
) -> None:
    """The error says how long, and is raised at once."""
    service.fail(loopback.error(503, retry_after="3600"))
    with pytest.raises(ServiceFailedError) as failure:
        await call("status")
    assert failure.value.retry_after_s == 3600.0
    assert waits == []


@given(attempt=st.integers(1, 10_000), retries=st.integers(0, 10_000))
def test_waits_grow_by_two_and_stay_under_the_cap(attempt: int, retries: int) -> None:
    """Full jitter: anything from nothing to the bound of this attempt."""
    error = ServiceUnreachableError("gone")
    wait_s = retry_wait_s(attempt, error, retries)
    if attempt > retries:
        assert wait_s is None
    else:
        assert 0.0 <= wait_s <= min(2.0, 0.1 * 2.0 ** min(attempt - 1, 10))
    assert retry_wait_s(attempt, ServiceTimeoutError("slow"), retries) is None


async def test_our_headers_and_the_callers_are_sent(
    service: Loopback, connect: Any, new_execution: New
) -> None:
    """The caller's win."""
    call = connect(service.url, headers={"X-Key": "k", "User-Agent": "mine"})
    await call("record", new_execution())
    headers = service.requests[0].headers
    assert (headers["x-key"], headers["user-agent"]) == ("k", "mine")
    assert (headers["content-type"], headers["accept"]) == ("application/json",) * 2


async def test_a_service_below_a_path_is_reached(service: Loopback, connect: Any) -> None:
    """`base_url` may carry a prefix, as behind a proxy."""
    call = connect(f"{service.url}/aftercall/")
    with pytest.raises(NotFoundError):
        await call("status")
    assert service.requests[0].path == "/aftercall/status"


async def test_the_proxy_of_the_environment_is_not_used(
    service: Loopback, connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call to this machine must not leave it because of a variable."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    call = connect(service.url, retries=0)
    assert (await call("status")).ready


async def test_clients_are_context_managers(service: Loopback) -> None:
    """Leaving closes the connections, closing twice does nothing."""
    with Client(service.url) as client:
        assert client.healthy()
    client.close()
    async with AsyncClient(service.url) as asynchronous:
        assert await asynchronous.healthy()
    await asynchronous.close()
