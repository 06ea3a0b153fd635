"""A file's format is told by how it begins."""

import gzip
import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.detection import LOOK_BYTES, Detection, Format, look_at
from tests.ingest.transcripts import HELLO, answered, call, called, user

EXECUTION = {"executionId": "x", "toolName": "t", "parameters": {"messages": [{"role": "user"}]}}
SPANS = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": []}]}]}
CHAT = {"model": "m", "messages": [user("hello"), called("c", "t", {}), answered("c", "x")]}
RESPONSE = {"id": "resp_1", "object": "response", "output": [{"type": "function_call"}]}
PAIRS = [{"request": json.dumps({"method": "tools/call"}), "response": "{}"}]
ENTRY = {
    "id": "1",
    "timestamp": "2026-02-20T14:30:00Z",
    "direction": "request",
    "message": HELLO[0],
}
DESKTOP = (
    "Using MCP server command: {\n  metadata: {\n"
    "2026-02-20T14:30:00Z [w] [info] Message from client: " + json.dumps(HELLO[0]) + "\n"
)

VALUES: list[tuple[Any, Format]] = [
    (EXECUTION, "executions"), (SPANS, "otlp"), ({"resourceLogs": []}, "otlp"),
    (CHAT, "transcripts"), (CHAT["messages"], "transcripts"), ([CHAT, CHAT], "transcripts"),
    (RESPONSE, "transcripts"), ([{"type": "function_call", "call_id": "c"}], "transcripts"),
    (HELLO[0], "mcp"), (list(HELLO), "mcp"), (PAIRS, "mcp"), ([ENTRY], "mcp"),
    ({"a": 1}, "executions"), ([], "executions"), (7, "executions"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "format_"), VALUES)
def test_a_value_is_told_in_a_line_and_over_many(value: Any, format_: Format) -> None:
    """As the first line of many, and as one document, pretty-printed."""
    line = json.dumps(value).encode()
    assert look_at(line) == Detection(format_, "lines")
    assert look_at(line + b"\n" + line + b"\n").format == format_
    if isinstance(value, dict | list) and value:
        for indent in (1, 2, "\t"):
            pretty = json.dumps(value, indent=indent).encode()
            assert look_at(b"\xef\xbb\xbf\n" + pretty) == Detection(format_, "document")


def test_a_value_that_is_cut_off_is_told_as_far_as_it_goes() -> None:
    """A first line, or a document, that is longer than what is looked at."""
    long = {"model": "m", "messages": [user("é" * LOOK_BYTES)]}
    raw = json.dumps(long, ensure_ascii=False).encode()
    assert look_at(raw[:LOOK_BYTES]) == Detection("transcripts", "lines")
    assert look_at(raw[: LOOK_BYTES - 1]) == Detection("transcripts", "lines")
    pretty = json.dumps(long, indent=2).encode()[:LOOK_BYTES]
    assert look_at(pretty) == Detection("transcripts", "document")


def test_a_damaged_first_line_hides_nothing() -> None:
    """The next lines tell."""
    for damaged in (b"{not json", b'{"executionId": "x', b"", b"\n\n", b"{}", b"# a comment"):
        look = look_at(damaged + b"\n" + json.dumps(call(1, "t", {})).encode() + b"\n")
        assert look == Detection("mcp" if b"exec" not in damaged else "executions", "lines")


def test_a_log_of_a_desktop_client_is_told_by_its_first_message() -> None:
    """Whatever it says before."""
    assert look_at(DESKTOP.encode()) == Detection("mcp", "lines")
    assert look_at(b"[38956] Using x\n" + DESKTOP.encode()) == Detection("mcp", "lines")


@given(beginning=st.binary(max_size=300) | st.text(alphabet='{}[]",:\n a1', max_size=60))
def test_any_beginning_is_looked_at(beginning: bytes | str) -> None:
    """Nothing is raised, and what shows is a format."""
    raw = beginning if isinstance(beginning, bytes) else beginning.encode()
    assert look_at(raw).format in get_args(Format)
    assert look_at(gzip.compress(raw)).shape == "lines"


@given(cut=st.integers(0, 400))
def test_a_beginning_of_any_length_never_shows_another_format(cut: int) -> None:
    """It shows the right one, or is taken for executions yet."""
    for value, format_ in VALUES:
        assert look_at(json.dumps(value).encode()[:cut]).format in ("executions", format_)
