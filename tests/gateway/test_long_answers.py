"""Answers of megabytes in steps, and how long the first list waits for servers that are late."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from aftercall.gateway import connection
from aftercall.gateway.connection import LIST_WAIT_S, FirstAnswers
from aftercall.gateway.long_answers import MOST_TOOLS, PAGE, PagedLists, WholeLines, read_long_line


class _Pieces:
    """A stream that gives what it holds in pieces of some bytes."""

    def __init__(self, content: bytes, size: int) -> None:
        self._pieces = [content[at : at + size] for at in range(0, len(content), size)]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
async def test_a_stream_is_read_in_whole_lines(size: int) -> None:
    """However it is cut, also within a character: the text is the same, and ends with a line."""
    text = '{"a": "grüße"}\n\n{"b": "☃"}\nno end'
    pieces = [each async for each in WholeLines(_Pieces(text.encode(), size))]  # type: ignore[arg-type]  # a stream is iterated
    assert "".join(pieces) == text
    assert all(each.endswith("\n") for each in pieces[:-1])


def test_a_long_line_is_read_as_the_answer_that_it_is() -> None:
    """What is no answer with a result is left to the SDK."""
    answer = {"jsonrpc": "2.0", "id": 7, "result": {"tools": [], "more": {"é": [1.5, None]}}}
    read = read_long_line(json.dumps(answer))
    assert read is not None
    assert (read.id, read.result) == (7, answer["result"])
    for line in ('{"jsonrpc": "2.0", "method": "x"}', '{"result": 1}', "[1, 2", "noise"):
        assert read_long_line(line) is None


@pytest.mark.parametrize("count", [0, 1, PAGE, PAGE + 1, 3 * PAGE, MOST_TOOLS + 500])
async def test_a_long_list_comes_in_pages_and_whole(count: int) -> None:
    """In its order, each tool once, up to the bound; the number that came is kept."""
    tools = [{"name": f"t{number}"} for number in range(count)]
    sent: list[Any] = []

    async def send(method: str, params: Any, *_: Any) -> dict[str, Any]:
        sent.append(params)
        return {"tools": list(tools), "ttlMs": 5} if method == "tools/list" else {"of": method}

    paged = PagedLists(send)
    found, cursor = [], None
    while True:
        answer = await paged.send("tools/list", {"cursor": cursor} if cursor else None, {})
        found += answer["tools"]
        assert answer["ttlMs"] == 5
        assert len(answer["tools"]) <= PAGE
        if not (cursor := answer.get("nextCursor")):
            break
    assert found == tools[:MOST_TOOLS]
    assert paged.listed == count
    assert len(sent) == 1
    assert await paged.send("tools/call", {"name": "x"}, {}) == {"of": "tools/call"}


async def test_the_pages_of_a_server_stay_its_own() -> None:
    """A list that comes in pages is asked for page by page, with the server's cursor."""
    pages = {None: {"tools": [{"name": "a"}], "nextCursor": "2"}, "2": {"tools": [{"name": "b"}]}}

    async def send(_: str, params: Any, *__: Any) -> dict[str, Any]:
        return dict(pages[(params or {}).get("cursor")])

    paged = PagedLists(send)
    first = await paged.send("tools/list", None, {})
    second = await paged.send("tools/list", {"cursor": first["nextCursor"]}, {})
    assert [each["name"] for each in (*first["tools"], *second["tools"])] == ["a", "b"]


@pytest.fixture
def usual_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is, and not as patient as the other tests want it."""
    monkeypatch.setattr(connection, "LIST_WAIT_S", LIST_WAIT_S)


class _Clock:
    """Says a time that the test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.usefixtures("usual_wait")
def test_a_server_that_is_late_is_in_the_first_list() -> None:
    """Each has 2.8 s, also where all others came at once; one that hangs delays them no longer."""
    clock = _Clock()
    first = FirstAnswers(3, clock=clock)
    first.left_s()
    clock.now = 100.4
    first.note_answer()
    for late, over in ((1.5, False), (2.7, False), (2.9, True)):
        clock.now = 100 + late
        assert first.are_over is over


@pytest.mark.usefixtures("usual_wait")
def test_servers_that_all_take_long_are_waited_for() -> None:
    """A client has something, and a second more for those that start with it."""
    clock = _Clock()
    first = FirstAnswers(2, clock=clock)
    first.left_s()
    clock.now = 120.0
    assert not first.are_over
    first.note_answer()
    clock.now = 120.9
    assert not first.are_over
    clock.now = 121.1
    assert first.are_over
