"""What is kept of the store follows every change; a read under way spoils nothing."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from aftercall.models import Tool
from mongo.contents import StoredTool, tool_command
from mongo.protocol import Store
from mongo.records import Commit, Cursor, Row, StateRow, ToolKey, encode_json
from mongo.sqlite.store import open_sqlite_store
from retrieval.knowledge.memory import (
    HEALTH,
    KNOWLEDGE,
    REGISTERED,
    USED,
    Memory,
    Registered,
    tool_row,
)
from retrieval.knowledge.rows.health import KnownHealth, Weak
from retrieval.knowledge.tool.profile import ToolProfile
from retrieval.knowledge.tool.rules import ToolKnowledge

AT = datetime(2026, 3, 1, tzinfo=UTC)


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
    [row] = await store.events.read_state("w", "tool", [tool.tool.tool_id]) or [None]
    before = StoredTool("w", tool.tool, row.position) if row else None
    event, state = tool_command("w", tool.tool.tool_id, before, tool.tool)
    await store.events.append("w", [event], [state])


async def test_a_read_that_began_before_a_change_is_not_kept(store: Store) -> None:
    """However the store's answer and the change meet, the next question knows of the change."""
    old, new = a_tool("a", "old"), a_tool("a", "new")
    await put(store, old)
    for pauses in range(6):
        memory = Memory(store)
        reading = asyncio.create_task(memory.read_registry("w"))
        for _ in range(pauses):
            await asyncio.sleep(0)
        await put(store, new)
        memory.tool_changed("w", "a", new)
        await reading
        assert (await memory.read_registry("w")).by_id["a"] == new
        assert await memory.list_tools("w") == [new]
        await put(store, old)


async def test_of_many_registered_tools_those_asked_about_are_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the names of their calls; all are, where one evolved from another or any is promoted."""
    monkeypatch.setattr("retrieval.knowledge.memory._MAX_TOOLS", 2)
    for name in "abc":
        await put(store, a_tool(name))
        names = encode_json(Registered(schema_hashes={name: None}))
        row = Row(REGISTERED.name, tool_row(ToolKey("w", None, name)), names)
        await store.knowledge.commit(Commit("w", [row]))
    asked = [ToolKey("w", None, name) for name in ("b", "unknown")]
    found = await Memory(store).read_registry_of("w", asked)
    assert [*found.by_id] == ["b"]
    assert [found.tool_name(each).tool_id for each in asked] == ["b", None]
    child = a_tool("b").tool.model_copy(update={"evolved_from": "a"})
    await put(store, StoredTool("w", child))
    assert [*(await Memory(store).read_registry_of("w", asked)).by_id] == ["a", "b", "c"]


async def learn_names(store: Store, *names: str) -> None:
    """Learn which tools are registered under these names, up to the end of the log."""
    cursor = (await store.knowledge.read_cursors()).get("w", Cursor())
    rows = [
        Row(
            REGISTERED.name,
            tool_row(ToolKey("w", None, name)),
            encode_json(Registered(schema_hashes={name: None})),
        )
        for name in names
    ]
    head = (await store.events.read_heads())["w"].position
    await store.knowledge.commit(Commit("w", rows, moved=(cursor.position, head)))


async def test_of_many_registered_tools_one_is_read_by_its_name(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all that was put, renamed or deleted a moment ago; the others are not read."""
    monkeypatch.setattr("retrieval.knowledge.memory._MAX_TOOLS", 2)
    named = {name: ToolKey("w", None, name) for name in ("a", "b", "c", "d", "e")}
    for name in "abc":
        await put(store, a_tool(name))
    await learn_names(store, *"abc")
    memory = Memory(store)
    monkeypatch.setattr(memory, "list_tools", None)  # whoever reads all of them fails
    assert await memory.find_tool(named["b"]) == a_tool("b")
    assert await memory.find_tool(named["d"]) is None
    for number in range(20):
        await put(store, a_tool("d", f"{number}"))
    moved = a_tool("c").tool.model_copy(update={"name": "e"})
    await put(store, StoredTool("w", moved))
    await store.events.append("w", [], [StateRow("tool", "a", None)])
    memory.forget_state("w")
    found = {name: await memory.find_tool(key) for name, key in named.items()}
    first = await memory.list_first_tools("w", 2)
    assert [each.tool.tool_id for each in first] == ["b", "c"]
    shown = {name: each and each.tool.tool_id for name, each in found.items()}
    assert shown == {"a": None, "b": "b", "c": None, "d": "d", "e": "c"}
    assert found["d"] is not None
    assert found["d"].tool.description == "19"


async def test_what_a_tool_evolved_from_is_read_with_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a circle, and where one of them is not there."""
    monkeypatch.setattr("retrieval.knowledge.memory._MAX_TOOLS", 2)
    evolved = {"a": "b", "b": "c", "c": "a", "d": "unknown", "e": None}
    for name, before in evolved.items():
        tool = a_tool(name).tool.model_copy(update={"evolved_from": before})
        await put(store, StoredTool("w", tool))
    memory = Memory(store)
    assert {*(await memory.read_lineage("w", ["a"])).by_id} == {"a", "b", "c"}
    assert {*(await memory.read_lineage("w", ["d", "e", "unknown"])).by_id} == {"d", "e"}


async def test_names_of_one_server_are_read_without_its_tools(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By pages; a server whose name begins as this one's is another, and so is none."""
    names = {"s": ["a", "b", "c", "d", "e"], "s2": ["x"], None: ["s"]}
    rows = [
        Row(REGISTERED.name, tool_row(ToolKey("w", server, name)), encode_json(registered))
        for server, of_server in names.items()
        for name in of_server
        if (registered := Registered(schema_hashes={name: None}))
    ]
    gone = Row(REGISTERED.name, tool_row(ToolKey("w", "s", "gone")), encode_json(Registered()))
    await store.knowledge.commit(Commit("w", [*rows, gone]))
    memory = Memory(store)
    for limit in (2, 3, 50):
        monkeypatch.setattr("retrieval.knowledge.memory._MAX_TOOLS", limit)
        memory._large.add("w")
        for server, of_server in names.items():
            assert await memory.read_server_names("w", server) == {*of_server}


async def test_tools_without_a_call_are_found_by_name(store: Store) -> None:
    for name in "abcd":
        await put(store, a_tool(name))
    await learn_names(store, *"abcd")
    used = Row(USED.name, tool_row(ToolKey("w", None, "b")), b"", rank=1)
    await store.knowledge.commit(Commit("w", [used]))
    found = await Memory(store).list_uncalled_tools("w", 3)
    assert [each.tool.tool_id for each in found] == ["a", "c"]


async def test_what_another_process_did_is_followed(store: Store) -> None:
    """Rows that it committed and tools that it put, and nothing else is forgotten."""
    memory = Memory(store)
    rows = [health_row(name, "before") for name in ("a", "b")]
    await store.knowledge.commit(Commit("w", rows))
    await memory.follow_changes()
    key, other = ToolKey("w", None, "a"), ToolKey("w", None, "b")
    kept = (await memory.read_health([other]))[other]
    assert (await memory.read_health([key]))[key].recent_weak[0].why == "before"
    assert await memory.list_tools("w") == []
    await store.knowledge.commit(Commit("w", [health_row("a", "after")]))
    await put(store, a_tool("a"))
    await memory.follow_changes()
    assert [each.tool.tool_id for each in await memory.list_tools("w")] == ["a"]
    assert (await memory.read_health([key]))[key].recent_weak[0].why == "after"
    assert (await memory.read_health([other]))[other] is kept
    await store.events.append("w", [], [StateRow("tool", "a", None)])  # as many events as before
    await memory.follow_changes()
    assert await memory.list_tools("w") == []


@pytest.mark.parametrize("asked_before", ["following", "the first commit"])
async def test_what_another_process_learned_first_is_followed(
    store: Store, asked_before: str
) -> None:
    """Though it was kept that nothing is known; what is known of other workspaces stays."""
    memory = Memory(store)
    await store.knowledge.commit(Commit("v", [health_row("a", "before", "v")]))
    key, elsewhere = ToolKey("w", None, "a"), ToolKey("v", None, "a")
    if asked_before == "following":
        assert await memory.read_health([key]) == {}
        await store.knowledge.commit(Commit("w", [health_row("a", "after")]))
        await memory.follow_changes()
    else:
        await memory.follow_changes()
        assert await memory.read_health([key]) == {}
        kept = (await memory.read_health([elsewhere]))[elsewhere]
        await store.knowledge.commit(Commit("w", [health_row("a", "after")]))
        await memory.follow_changes()
        assert (await memory.read_health([elsewhere]))[elsewhere] is kept
    assert (await memory.read_health([key]))[key].recent_weak[0].why == "after"


async def test_of_a_sibling_what_was_known_does_while_much_is_learned(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a while; what is learned of few tools is there at once."""
    memory, tools = Memory(store), [ToolKey("w", None, f"t{number}") for number in range(20)]

    async def learn(calls: int, of: list[ToolKey]) -> None:
        rows = [knowledge_row(each, calls) for each in of]
        await store.knowledge.commit(Commit("w", rows))
        await memory.follow_changes()

    async def known_now() -> tuple[int, int]:
        sibling, own = await memory.read_sibling(tools[0]), await memory.read_knowledge(tools[0])
        assert sibling is not None
        assert own is not None
        return sibling.profiles[""].successes, own.profiles[""].successes

    await learn(1, tools)
    assert await known_now() == (1, 1)
    await learn(2, tools)
    assert await known_now() == (1, 2)
    assert await known_now() == (2, 2)  # it is decoded anyway
    await learn(3, tools[:1])
    assert await known_now() == (3, 3)
    await learn(4, tools)
    monkeypatch.setattr("retrieval.knowledge.memory._MAX_CHANGED", 20)
    await learn(5, tools)
    assert await known_now() == (3, 5)
    monkeypatch.setattr("retrieval.knowledge.rows.cache._FORMER_S", -1.0)
    await learn(6, tools)
    assert await known_now() == (6, 6)
    assert not memory._former._rows


def knowledge_row(tool: ToolKey, calls: int) -> Row:
    known = ToolKnowledge(profiles={"": ToolProfile(successes=calls)})
    return Row(KNOWLEDGE.name, tool_row(tool), encode_json(known), tool)


def health_row(name: str, why: str, workspace: str = "w") -> Row:
    tool = ToolKey(workspace, None, name)
    known = KnownHealth(recent_weak=[Weak(at=AT, execution_id="x", why=why)])
    return Row(HEALTH.name, tool_row(tool), encode_json(known), tool)
