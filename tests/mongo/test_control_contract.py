"""What every control store promises of keys and of the audit."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mongo.errors import KeyChangedError
from mongo.mongodb.control import open_mongo_control
from mongo.protocol import ControlStore
from mongo.records import AuditEntry, AuditHead, StoredKey
from mongo.sqlite.control import open_sqlite_control
from tests.mongo.conftest import mongo_options

OpenControl = Callable[[], Awaitable[ControlStore]]
NOW = datetime(2026, 2, 20, 14, 30, 0, 123456, UTC)
KEY = StoredKey(
    id="0a1b", name="Ünser CI", workspace="team-a", scopes=("record", "suggest"),
    secret_hash="f" * 64, created_at=NOW, expires_at=NOW + timedelta(days=1), rate=2.5,
)  # fmt: skip
ENTRY = AuditEntry("key.create", "0a1b", "owner", "team-a", NOW)


@pytest.fixture(params=["sqlite", "mongodb"])
async def open_control(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[OpenControl]:
    """Opens the same control store, again and again if wanted."""
    async with AsyncExitStack() as stack:

        async def opened() -> ControlStore:
            if request.param == "sqlite":
                store = await open_sqlite_control(tmp_path / "data")
            else:
                store = await open_mongo_control(await mongo_options(tmp_path))
            stack.push_async_callback(store.close)
            return store

        yield opened


async def test_keys_are_put_as_they_were_read(open_control: OpenControl) -> None:
    """Every process sees them; a change of what somebody else changed meanwhile is refused."""
    one, other = await open_control(), await open_control()
    assert await one.list_keys() == []
    await one.append(ENTRY, KEY)
    assert await other.list_keys() == [KEY]
    revoked = replace(KEY, revoked_at=NOW)
    await other.append(replace(ENTRY, action="key.revoke"), revoked, KEY)
    for before in (KEY, None):
        with pytest.raises(KeyChangedError, match="0a1b"):
            await one.append(ENTRY, replace(KEY, name="again"), before)
    await one.append(ENTRY, replace(KEY, id="0a1c"))
    assert [each.id for each in await one.list_keys()] == ["0a1b", "0a1c"]


async def test_the_latest_use_counts(open_control: OpenControl) -> None:
    """It is no change of the key, and one of a key that is not there is passed over."""
    store = await open_control()
    await store.append(ENTRY, KEY)
    for seconds in (5, 1):
        await store.note_used({KEY.id: NOW + timedelta(seconds=seconds), "gone": NOW})
    [key] = await store.list_keys()
    assert key == replace(KEY, used_at=NOW + timedelta(seconds=5))
    await store.append(ENTRY, replace(key, name="other"), key)
    assert (await store.list_keys())[0].used_at == key.used_at


async def test_entries_form_a_chain(open_control: OpenControl) -> None:
    """Also where several processes append at once: positions have no gaps."""
    stores = [await open_control(), await open_control()]
    await asyncio.gather(
        *(
            stores[number % 2].append(replace(ENTRY, subject=str(number), workspace=f"w{number}"))
            for number in range(20)
        )
    )
    entries = await stores[0].list_entries(100)
    assert [each.position for each in entries] == [*range(20, 0, -1)]
    head = AuditHead()
    for entry in reversed(entries):
        assert entry == replace(ENTRY, subject=entry.subject, workspace=entry.workspace).chain_to(
            head
        )
        head = AuditHead(entry.position, entry.hash)
    assert await stores[1].read_head() == head
    assert await stores[1].list_entries(3, before=11) == entries[10:13]
    [only] = await stores[0].list_entries(5, workspace="w7")
    assert only.subject == "7"
