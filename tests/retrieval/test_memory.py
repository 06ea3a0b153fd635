"""The cache of registered tools follows every change; a read under way spoils nothing."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import Tool
from mongo.records import HealthRow, IndexCommit, StoredTool, ToolKey
from mongo.sqlite import open_sqlite_store
from retrieval.health.record import KnownHealth, Weak
from retrieval.memory import Memory, with_change

AT = datetime(2026, 3, 1, tzinfo=UTC)

changes = st.lists(
    st.tuples(st.sampled_from("abcAB_é"), st.integers(0, 3) | st.none()), max_size=20
)


def a_tool(tool_id: str, description: str = "", name: str | None = None) -> StoredTool:
    """A registered tool."""
    return StoredTool(
        "w",
        Tool(tool_id=tool_id, name=name or tool_id, description=description, updated_at=AT),
    )


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


async def test_a_change_is_known_without_reading_all_tools_again(tmp_path: Path) -> None:
    """By the list, by the registry, and by the names that a tool had before and has now."""
    async with await open_sqlite_store(tmp_path) as store:
        memory = Memory(store)
        first, second = a_tool("a"), a_tool("b")
        for each in (first, second):
            await store.put_tool(each)
        assert await memory.tools("w") == [first, second]
        assert await memory.tool(first.tool_key) == first
        renamed = a_tool("a", name="other")
        await store.put_tool(renamed)
        memory.tool_changed(first, renamed)
        await store.delete_tool("w", "b")
        memory.tool_changed(second, None)
        await store.put_tool(StoredTool("w", a_tool("unseen").tool))  # nobody told of it
        assert await memory.tools("w") == [renamed]
        assert list((await memory.registry("w")).by_id) == ["a"]
        assert await memory.tool(first.tool_key) is None
        assert await memory.tool(renamed.tool_key) == renamed
        memory.forget_tool(renamed.tool_key)
        assert [each.tool.tool_id for each in await memory.tools("w")] == ["a", "unseen"]


async def test_a_read_that_began_before_a_change_is_not_kept(tmp_path: Path) -> None:
    """However the store's answer and the change meet, the next question knows of the change."""
    async with await open_sqlite_store(tmp_path) as store:
        old, new = a_tool("a", "old"), a_tool("a", "new")
        await store.put_tool(old)
        for pauses in range(6):
            memory = Memory(store)
            reading = asyncio.create_task(memory.registry("w"))
            for _ in range(pauses):
                await asyncio.sleep(0)
            await store.put_tool(new)
            memory.tool_changed(old, new)
            await reading
            assert (await memory.registry("w")).by_id["a"] == new
            assert await memory.tools("w") == [new]
            await store.put_tool(old)


async def test_health_is_kept_by_its_size(tmp_path: Path) -> None:
    """Of tools of which much is remembered fewer are kept, the latest asked for."""
    known = KnownHealth(recent_weak=[Weak(at=AT, execution_id="x", why="w" * 40_000)])
    data = known.model_dump_json().encode()
    rows = [HealthRow(ToolKey("w", None, f"tool-{number}"), data, AT) for number in range(300)]
    async with await open_sqlite_store(tmp_path) as store:
        await store.commit_index(IndexCommit("w", 1, health=rows))
        memory = Memory(store)
        read = [(await memory.health([row.tool]))[row.tool] for row in rows]
        for row, before in ((rows[-1], read[-1]), (rows[-200], read[-200])):
            assert (await memory.health([row.tool]))[row.tool] is before
        again = (await memory.health([rows[0].tool]))[rows[0].tool]
        assert again == read[0]
        assert again is not read[0]
        memory.forget_health([row.tool for row in rows])
        together = await memory.health([rows[1].tool, rows[0].tool, ToolKey("w", None, "none")])
        assert list(together.values()) == [read[1], read[0]]
