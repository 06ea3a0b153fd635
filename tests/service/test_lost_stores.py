"""A store that had keys never answers without them, and a lost log is never passed over."""

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from aftercall.errors import ConfigurationError
from aftercall.models import KeySpec
from mongo.errors import StoreDamagedError
from mongo.records import StoredKey
from mongo.sqlite.control import SqliteControl, open_sqlite_control
from service.api.keys import create_key
from service.context import open_context
from service.keys import AUDIT_FACT, CONSOLE, Keyring, KeySpace, noted_head, verify_audit
from tests.service.keys_helper import bearer, new_key
from tests.service.running_service import (
    RunningService,
    eventually,
    execution,
    finished,
    hashing_settings,
    on_loop,
    running,
)


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a service with a key has learned a call."""
    folder = tmp_path_factory.mktemp("used")
    with running(hashing_settings(folder)) as service:
        key = new_key(service, "default")
        sent = service.client.post("/executions", json=execution(), headers=bearer(key))
        assert sent.status_code == 202
        asked = {"headers": bearer(key)}
        eventually(lambda: service.client.get("/status", **asked).json()["pendingIndexing"] == 0)
    return folder / "data"


async def opens(folder: Path) -> None:
    async with open_context(hashing_settings(folder.parent)):
        pass


@pytest.mark.parametrize("is_empty", [False, True])
def test_without_its_control_file_a_store_that_had_keys_answers_nobody(
    used: Path, tmp_path: Path, is_empty: bool
) -> None:
    """It does not start, and names the cure; a new key is one."""
    folder = tmp_path / "data"
    shutil.copytree(used, folder)
    for path in folder.glob("control.sqlite3*"):
        path.unlink()
    if is_empty:
        (folder / "control.sqlite3").touch()
    with pytest.raises(ConfigurationError, match="aftercall keys create"):
        asyncio.run(opens(folder))
    made = finished("keys", "create", "ops", "--scope", "admin", "--data-dir", str(folder))
    assert made[0] == 0
    with running(hashing_settings(folder.parent)) as service:
        assert service.client.get("/status").status_code == 401
        found = service.client.get("/status", headers=bearer(made[1].strip()))
        assert found.json()["executions"] == 1


async def test_keys_that_vanish_while_it_runs_open_nothing(tmp_path: Path) -> None:
    """Such as a collection that somebody drops."""

    class Emptied(SqliteControl):
        async def list_keys(self) -> list[StoredKey]:
            return []

    store = await open_sqlite_control(tmp_path)
    try:
        keyring = Keyring(store)
        await create_key(
            KeySpace(keyring, CONSOLE), KeySpec(name="a", workspace="w", scopes=["read"])
        )
        store.__class__ = Emptied
        await keyring.refresh_keys()
        assert keyring.is_required
    finally:
        await store.close()


@pytest.mark.parametrize("is_empty", [False, True])
def test_a_lost_log_beside_its_knowledge_is_refused(
    used: Path, tmp_path: Path, is_empty: bool
) -> None:
    """An empty one in its place would answer from what it knows no calls of."""
    folder = tmp_path / "data"
    shutil.copytree(used, folder)
    for path in folder.glob("aftercall.sqlite3*"):
        path.unlink()
    if is_empty:
        (folder / "aftercall.sqlite3").touch()
    with pytest.raises(StoreDamagedError, match="restore it from a backup"):
        asyncio.run(opens(folder))


def test_a_log_that_is_shorter_than_what_was_learned_from_it_is_refused(
    used: Path, tmp_path: Path
) -> None:
    """New calls would be taken for learned; learning anew from it is the cure."""
    folder = tmp_path / "data"
    shutil.copytree(used, folder)
    with sqlite3.connect(folder / "aftercall.sqlite3") as log:
        log.executescript("DELETE FROM events; DELETE FROM heads;")
    with pytest.raises(StoreDamagedError, match="aftercall rebuild"):
        asyncio.run(opens(folder))
    finished("rebuild", "--data-dir", str(folder))


async def test_an_audit_whose_end_was_cut_off_is_found_without_a_note(used: Path) -> None:
    """The log's store knows how far it came."""
    async with open_context(hashing_settings(used.parent)) as context:
        await context.keys.note_action(CONSOLE, "default", "tool.put", "t")
        await context.keys.note_action(CONSOLE, "default", "tool.put", "u")
        counted = noted_head(await context.store.metadata.get(AUDIT_FACT))
        assert (await verify_audit(context.keys.store, None, counted)).problem is None
    with sqlite3.connect(used / "control.sqlite3") as control:
        control.executescript(
            "DELETE FROM audit WHERE position = (SELECT max(position) FROM audit); UPDATE head SET "
            "position = (SELECT max(position) FROM audit), hash = (SELECT data ->> 'hash' FROM "
            "audit ORDER BY position DESC LIMIT 1)"
        )
    code, _, told = finished("audit", "--verify", "--data-dir", str(used))
    assert code == 1
    assert f"entry {counted.position} is missing" in told


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service with a key."""
    with running(hashing_settings(tmp_path_factory.mktemp("guarded"))) as service:
        new_key(service, "first")
        yield service


def test_signing_out_ends_the_cookie_for_who_has_a_copy(guarded: RunningService) -> None:
    """In this process and, by the log's store, in others and after a restart."""
    key = new_key(guarded, "default", ["read"])
    with httpx2.Client(base_url=guarded.url) as browser:
        browser.post("/dashboard/sign-in", data={"key": key})
        copy = dict(browser.cookies)
        assert browser.get("/dashboard/").status_code == 200
        browser.post("/dashboard/sign-out")
    with httpx2.Client(base_url=guarded.url, cookies=copy) as thief:
        assert thief.get("/dashboard/").status_code == 303
    other = Keyring(guarded.context.keys.store)
    on_loop(guarded, other.refresh_keys())
    on_loop(guarded, other.attach_facts(guarded.context.store.metadata))
    assert other.access_of_session(copy["aftercall_session"]) is None


@pytest.mark.parametrize(
    "cookie",
    ["é.1.x", "bootstrap.9.x", "..", "{key}.é.x", "{key}.1.é", "{key}." + "9" * 5000 + ".x"],
)  # fmt: skip
def test_an_odd_cookie_is_nobodys(guarded: RunningService, cookie: str) -> None:
    """Whatever its parts are; none is an error of the service."""
    known = next(iter(guarded.context.keys._known))
    text = f"aftercall_session={cookie.format(key=known)}".encode()
    asked = guarded.client.get("/dashboard/", headers=[(b"cookie", text)])
    assert asked.status_code == 303


def test_pages_mcp_and_large_bodies_count_in_a_rate(guarded: RunningService) -> None:
    """A page and a message of MCP as one request each, a body by its size as well."""
    slow = {"scopes": ["read", "record", "suggest"], "rate": 0.2}
    with httpx2.Client(base_url=guarded.url) as browser:
        browser.post("/dashboard/sign-in", data={"key": new_key(guarded, "default", **slow)})
        assert browser.get("/dashboard/").status_code == 200
        assert browser.get("/dashboard/tools").status_code == 429
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = bearer(new_key(guarded, "default", **slow)) | {"accept": "application/json"}
    assert guarded.client.post("/mcp", json=listing, headers=headers).status_code != 429
    assert guarded.client.post("/mcp", json=listing, headers=headers).status_code == 429
    swift = bearer(new_key(guarded, "default", scopes=["record"], rate=4))
    calls = [execution(context="x" * 60_000) for _ in range(40)]
    assert guarded.client.post("/executions", json=calls, headers=swift).status_code == 202
    refused = guarded.client.post("/executions", json=execution(), headers=swift)
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) > 1


def test_no_length_of_a_text_is_an_error_of_the_service(guarded: RunningService) -> None:
    """Of a path that no file system takes, and of a time of 5,000 digits."""
    headers = bearer(new_key(guarded, "default"))
    promotion = {"evolvedVersion": "1.1.0", "originalVersion": "1.0.0", "reason": "r",
                 "mutation": "m", "evolvedFile": "a" * 4096}  # fmt: skip
    tool = {"name": "t", "namespace": "n"}
    assert guarded.client.put("/tools/t", json=tool, headers=headers).is_success
    odd = ["a" * 4096, "a/" * 2048, "é" * 4096, "C:" + "a" * 4096, "//" * 2048 + "a"]
    for path in odd:
        body = promotion | {"evolvedFile": path}
        asked = guarded.client.put("/promotions", json={"n": body}, headers=headers)
        assert asked.status_code < 500, path[:9]
    for name in ("evolvedFile", "reason", "mutation", "evolvedVersion", "evolvedToolId"):
        body = promotion | {"evolvedFile": "t.py", name: "a" * 4096}
        asked = guarded.client.put("/namespaces/n/promotion", json=body, headers=headers)
        assert asked.status_code < 500, name
        for path in ("/namespaces/n/best?scenario=x", "/promotions", "/tools"):
            assert guarded.client.get(path, headers=headers).status_code < 500, path
    for until in ("9" * 5000, int("9" * 4000), f"{'9' * 5000}-01-01T00:00:00Z"):
        spec = {"name": "x", "workspace": "default", "scopes": ["read"], "expiresAt": until}
        asked = guarded.client.post("/keys", json=spec, headers=headers)
        assert asked.status_code in (400, 422), str(until)[:20]
    body = '{"name": "x", "scopes": ["read"], "expiresAt": ' + "9" * 5000 + "}"
    asked = guarded.client.post("/keys", content=body, headers=headers)
    assert asked.status_code in (400, 415, 422)
