"""`POST /v1/traces` under bad input: bounded, told in the exporter's own encoding, nothing lost."""

import gzip
import tracemalloc
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from google.rpc.status_pb2 import Status

from service.errors import ProblemError, TooLargeProblemError
from service.requests import unpack_gzip
from tests.ingest.otlp_samples import in_protobuf, request, tool_span
from tests.service.running_service import RunningService, hashing_settings, running

PROTOBUF = {"content-type": "application/x-protobuf"}
JSON = {"content-type": "application/json"}
GZIP = {"content-encoding": "gzip"}
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """One that takes bodies of 1 MiB, and 4 MiB unpacked."""
    limits = {"body_bytes": MIB, "unpacked_bytes": 4 * MIB}
    settings = hashing_settings(tmp_path_factory.mktemp("service"), limits=limits)
    with running(settings) as started:
        yield started


def refused(
    service: RunningService, content: bytes, headers: dict[str, str], status: int, code: str
) -> str:
    """The message of a refusal, the same in both encodings of errors."""
    response = service.client.post("/v1/traces", content=content, headers=headers)
    assert response.status_code == status, response.content
    if headers.get("content-type", "").startswith("application/x-protobuf"):
        assert response.headers["content-type"] == "application/x-protobuf"
        assert int(response.headers["content-length"]) == len(response.content)
        return Status.FromString(response.content).message
    assert response.json()["error"]["code"] == code
    message: str = response.json()["error"]["message"]
    return message


@pytest.mark.real
def test_a_truncated_message_is_refused_whole(service: RunningService) -> None:
    """400, which exporters do not retry; nothing of it is stored."""
    before = service.client.get("/status").json()["executions"]
    body = in_protobuf(request(tool_span(1), tool_span(2)))
    message = refused(service, body[:-20], PROTOBUF, 400, "malformed_traces")
    assert "nothing was stored, send it whole" in message
    refused(service, gzip.compress(body)[:-20], PROTOBUF | GZIP, 400, "malformed_gzip")
    refused(service, body, PROTOBUF | GZIP, 400, "malformed_gzip")
    refused(service, b"", PROTOBUF | GZIP, 400, "malformed_gzip")
    assert service.client.get("/status").json()["executions"] == before


@pytest.mark.real
@pytest.mark.parametrize("headers", [PROTOBUF, JSON], ids=["protobuf", "json"])
def test_a_gzip_bomb_is_refused(service: RunningService, headers: dict[str, str]) -> None:
    """A megabyte that would be a gigabyte: 413 at the bound."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(bytes(MIB)) for _ in range(512)) + packer.flush()
    assert len(bomb) < MIB
    message = refused(service, bomb, headers | GZIP, 413, "too_large")
    assert "larger than 4,194,304 bytes when unpacked" in message


@pytest.mark.real
@pytest.mark.parametrize(
    ("content", "headers", "status", "code", "words"),
    [
        (b"{}", {}, 415, "unsupported_media_type", "application/x-protobuf or application/json"),
        (b"{}", {"content-type": "text/plain"}, 415, "unsupported_media_type", "Content-Type"),
        (b"{}", JSON | {"content-encoding": "br"}, 415, "unsupported_media_type", "gzip"),
        (b"", PROTOBUF | {"content-encoding": "deflate"}, 415, "", "gzip"),
        (b"", JSON, 400, "malformed_json", "empty"),
        (b"{", JSON, 400, "malformed_json", "line 1"),
        (b"[]", JSON, 400, "malformed_traces", "resourceSpans"),
        (b'{"resourceSpans": 1}', JSON, 400, "malformed_traces", "must be a list"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, JSON, 400, "malformed_traces", "nested deeper"),
        (bytes(2 * MIB), PROTOBUF, 413, "too_large", "send it in several requests"),
        (b"\x0a\xff", PROTOBUF, 400, "malformed_traces", "send it whole"),
    ],
)
def test_what_is_no_request_is_refused_with_the_cure(
    service: RunningService,
    content: bytes,
    headers: dict[str, str],
    status: int,
    code: str,
    words: str,
) -> None:
    """JSON callers get the house's form, protobuf callers a `google.rpc.Status`."""
    assert words in refused(service, content, headers, status, code)


@pytest.mark.real
@pytest.mark.parametrize("value", [b"{},", b"1,"])
def test_json_of_very_many_values_is_refused(service: RunningService, value: bytes) -> None:
    """A few bytes each in a body that was a few thousand, they would be far more in memory."""
    many = value * (600_000 if value == b"{}," else 2_050_000)
    body = b'{"resourceSpans": [' + many + b"{}]}"
    message = refused(service, gzip.compress(body), JSON | GZIP, 413, "too_large")
    assert "more than 500,000 objects and lists" in message


@pytest.mark.real
def test_many_packed_requests_at_once_all_have_their_turn(service: RunningService) -> None:
    """Few are unpacked at a time; the others wait, and none is lost or refused."""
    before = service.client.get("/status").json()["executions"]

    def export(sender: int) -> bytes:
        first = 20_000 + 300 * sender
        spans = [tool_span(number) for number in range(first, first + 300)]
        body = gzip.compress(in_protobuf(request(*spans)))
        response = service.client.post("/v1/traces", content=body, headers=PROTOBUF | GZIP)
        assert response.status_code == 200
        return response.content

    with ThreadPoolExecutor(8) as senders:
        assert set(senders.map(export, range(8))) == {b""}
    assert service.client.get("/status").json()["executions"] == before + 2_400


def test_unpacking_never_holds_more_than_the_bound() -> None:
    """Whatever the body would expand to."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(bytes(MIB)) for _ in range(256)) + packer.flush()
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeProblemError):
            unpack_gzip(bomb, MIB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * MIB


@pytest.mark.parametrize("size", [0, 1, 65_536, 200_000])
def test_unpacking_gives_what_was_packed(size: int) -> None:
    """Exactly as much as may be is taken; one byte more is not."""
    data = bytes(number % 251 for number in range(size))
    assert unpack_gzip(gzip.compress(data), size) == data
    with pytest.raises(TooLargeProblemError):
        unpack_gzip(gzip.compress(data + b"x"), size)


@pytest.mark.parametrize(
    "packed",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x1f\x8b", id="its first bytes"),
        pytest.param(b"no gzip", id="text"),
        # Named, since gzip writes the time: each process of the tests would have a name of its own.
        pytest.param(gzip.compress(b"x") + b"rest", id="more behind it"),
        pytest.param(gzip.compress(b"") * 2, id="more than one member"),
    ],
)
def test_what_is_no_gzip_is_refused(packed: bytes) -> None:
    """400, also for what follows a whole member."""
    with pytest.raises(ProblemError) as caught:
        unpack_gzip(packed, MIB)
    assert caught.value.status_code == 400
