"""Keys and the audit are exported to one file, and restored where there are none."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from aftercall.models import KeySpec
from mongo.protocol import ControlStore
from mongo.sqlite.control import open_sqlite_control
from service.api.keys import create_key, revoke_key
from service.key_archive import KeyArchiveError, pack_keys, restore_keys
from service.keys import CONSOLE, Keyring, KeySpace, verify_audit


@pytest.fixture
async def control(tmp_path: Path) -> AsyncIterator[ControlStore]:
    """A control store with two keys, one of them revoked."""
    store = await open_sqlite_control(tmp_path / "from")
    keyring = Keyring(store)
    for name in ("ada", "ben"):
        issued = await create_key(KeySpace(keyring, CONSOLE), KeySpec(name=name, scopes=["read"]))
    await revoke_key(KeySpace(keyring, CONSOLE), issued.key.id)
    yield store
    await store.close()


@pytest.fixture
async def empty(tmp_path: Path) -> AsyncIterator[ControlStore]:
    """A control store without keys and entries."""
    store = await open_sqlite_control(tmp_path / "to")
    yield store
    await store.close()


async def test_what_is_restored_is_what_was_there(
    control: ControlStore, empty: ControlStore
) -> None:
    """Keys with their hashes, revoked ones too; the audit goes on, and holds."""
    assert await restore_keys(empty, await pack_keys(control)) == 2
    assert await empty.list_keys() == await control.list_keys()
    restored = await empty.list_entries(100)
    before = await control.list_entries(100)
    assert restored[2:] == before
    assert [entry.action for entry in restored[:2]] == ["key.restore"] * 2
    assert (await verify_audit(empty)).problem is None


async def test_nothing_is_restored_over_keys(control: ControlStore) -> None:
    """A file of yesterday does not bring back what was revoked today."""
    content = await pack_keys(control)
    with pytest.raises(KeyArchiveError, match="there are keys"):
        await restore_keys(control, content)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda content: content[:-40], "cut off"),
        (lambda content: content.replace(b'"ada"', b'"eve"'), "changed"),
        (lambda content: content.replace(b'"form": 1', b'"form": 2'), "newer Aftercall"),
        (lambda _: b"", "no file of"),
        (lambda _: b"[]\n[]\n", "no file of"),
        (lambda _: b'{"aftercall": "keys"}', "no file of"),
    ],
)
async def test_a_damaged_file_is_refused_and_nothing_is_stored(
    control: ControlStore, empty: ControlStore, damage: Callable[[bytes], bytes], words: str
) -> None:
    """By its own checksum, before anything is written."""
    with pytest.raises(KeyArchiveError, match=words):
        await restore_keys(empty, damage(await pack_keys(control)))
    assert not await empty.list_keys()
    assert not await empty.list_entries(1)


async def test_no_secret_is_in_the_file(empty: ControlStore) -> None:
    """The file holds hashes: who reads it can use no key."""
    issued = await create_key(
        KeySpace(Keyring(empty), CONSOLE), KeySpec(name="ada", scopes=["read"])
    )
    assert issued.secret.rpartition("_")[2].encode() not in await pack_keys(empty)
