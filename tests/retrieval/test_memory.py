"""What is kept of the store follows every change; a read under way spoils nothing."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import Tool
from mongo.contents import StoredTool, tool_command
from mongo.protocol import Store
from mongo.records import Commit, Row, StateRow, ToolKey, encoded
from mongo.sqlite.store import open_sqlite_store
from retrieval.health.record import KnownHealth, Weak
from retrieval.knowledge.rules import ToolKnowledge
from retrieval.memory import HEALTH, KNOWLEDGE, Memory, tool_row, with_change

AT = datetime(2026, 3, 1, tzinfo=UTC)

changes = st.lists(
    st.tuples(st.sampled_from("abcAB_é"), st.integers(0, 3) | st.none()), max_size=20
)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await open_sqlite_store(tmp_path)
    yield opened
    await opened.close()


def a_tool(tool_id: str, description: str = "") -> StoredTool:
    """A registered tool."""
    return StoredTool(
        "w", Tool(tool_id=tool_id, name=tool_id, description=description, updated_at=AT)
    )


async def put(store: Store, tool: StoredTool) -> None:
    """Register a tool."""
    [row] = await store.events.state("w", "tool", [tool.tool.tool_id]) or [None]
    before = StoredTool("w", tool.tool, row.position) if row else None
    event, state = tool_command("w", tool.tool.tool_id, before, tool.tool)
    await store.events.append("w", [event], [state])


@given(changes)
def test_changes_one_by_one_are_what_the_store_would_list(
    done: list[tuple[str, int | None]],
) -> None:
    """Puts of new and known ids and deletions, also of what is not there; always by id."""
    tools: list[StoredTool] = []
    truth: dict[str, StoredTool] = {}
    for tool_id, number in done:
        after = None if number is None else a_tool(tool_id, str(number))
        before = list(tools)
        changed = with_change(tools, tool_id, after)
        assert tools == before, "what others may be reading stays as it is"
        if after is None:
            truth.pop(tool_id, None)
        else:
            truth[tool_id] = after
        assert changed == [truth[each] for each in sorted(truth)]
        tools = changed


async def test_a_read_that_began_before_a_change_is_not_kept(store: Store) -> None:
    """However the store's answer and the change meet, the next question knows of the change."""
    old, new = a_tool("a", "old"), a_tool("a", "new")
    await put(store, old)
    for pauses in range(6):
        memory = Memory(store)
        reading = asyncio.create_task(memory.registry("w"))
        for _ in range(pauses):
            await asyncio.sleep(0)
        await put(store, new)
        memory.tool_changed("w", "a", new)
        await reading
        assert (await memory.registry("w")).by_id["a"] == new
        assert await memory.tools("w") == [new]
        await put(store, old)


async def test_what_another_process_did_is_followed(store: Store) -> None:
    """Rows that it committed and tools that it put, and nothing else is forgotten."""
    memory = Memory(store)
    rows = [health_row(name, "before") for name in ("a", "b")]
    await store.knowledge.commit(Commit("w", rows))
    await memory.follow()
    key, other = ToolKey("w", None, "a"), ToolKey("w", None, "b")
    kept = (await memory.health([other]))[other]
    assert (await memory.health([key]))[key].recent_weak[0].why == "before"
    assert await memory.tools("w") == []
    await store.knowledge.commit(Commit("w", [health_row("a", "after")]))
    await put(store, a_tool("a"))
    await memory.follow()
    assert [each.tool.tool_id for each in await memory.tools("w")] == ["a"]
    assert (await memory.health([key]))[key].recent_weak[0].why == "after"
    assert (await memory.health([other]))[other] is kept
    await store.events.append("w", [], [StateRow("tool", "a", None)])  # as many events as before
    await memory.follow()
    assert await memory.tools("w") == []


@pytest.mark.parametrize("asked_before", ["following", "the first commit"])
async def test_what_another_process_learned_first_is_followed(
    store: Store, asked_before: str
) -> None:
    """Though it was kept that nothing is known; what is known of other workspaces stays."""
    memory = Memory(store)
    await store.knowledge.commit(Commit("v", [health_row("a", "before", "v")]))
    key, elsewhere = ToolKey("w", None, "a"), ToolKey("v", None, "a")
    if asked_before == "following":
        assert await memory.health([key]) == {}
        await store.knowledge.commit(Commit("w", [health_row("a", "after")]))
        await memory.follow()
    else:
        await memory.follow()
        assert await memory.health([key]) == {}
        kept = (await memory.health([elsewhere]))[elsewhere]
        await store.knowledge.commit(Commit("w", [health_row("a", "after")]))
        await memory.follow()
        assert (await memory.health([elsewhere]))[elsewhere] is kept
    assert (await memory.health([key]))[key].recent_weak[0].why == "after"


async def test_health_is_kept_by_its_size(store: Store) -> None:
    """Of tools of which much is remembered fewer are kept, the latest asked for."""
    names = [f"tool-{number}" for number in range(300)]
    await store.knowledge.commit(Commit("w", [health_row(name, "w" * 40_000) for name in names]))
    memory = Memory(store)
    keys = [ToolKey("w", None, name) for name in names]
    read = [(await memory.health([key]))[key] for key in keys]
    for place in (-1, -200):
        assert (await memory.health([keys[place]]))[keys[place]] is read[place]
    again = (await memory.health([keys[0]]))[keys[0]]
    assert again == read[0]
    assert again is not read[0]


def health_row(name: str, why: str, workspace: str = "w") -> Row:
    tool = ToolKey(workspace, None, name)
    known = KnownHealth(recent_weak=[Weak(at=AT, execution_id="x", why=why)])
    return Row(HEALTH.name, tool_row(tool), encoded(known), tool)


async def test_what_was_read_is_not_read_again_however_large(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool that is called a lot has a row of many kilobytes, and is asked about the most."""
    tool = ToolKey("w", "server", "busy")
    knowledge = ToolKnowledge()
    for at in range(50):
        knowledge.signature_to_update(f"error number {at} of this tool", "unknown")
    row = Row(KNOWLEDGE.name, tool_row(tool), encoded(knowledge), tool=tool)
    assert len(row.data) > 2_000
    await store.knowledge.commit(Commit("w", put=[row]))
    memory, reads = Memory(store), []
    get = store.knowledge.get

    async def counted(workspace: str, kind: str, keys: list[str]) -> list[Row]:
        reads.append(keys)
        return await get(workspace, kind, keys)

    monkeypatch.setattr(store.knowledge, "get", counted)
    for _ in range(3):
        assert await memory.knowledge(tool) == knowledge
    assert len(reads) == 1
