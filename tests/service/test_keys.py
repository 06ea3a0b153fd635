"""Keys: how they are made, what they open, how they end, and what the audit says of it."""

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest

from aftercall import Client, Recorder
from aftercall.errors import NotAllowedError
from aftercall.models import Execution, KeySpec
from aftercall.redaction import Redactor
from mongo.records import EventKind, StoredKey
from mongo.sqlite.control import SqliteControl, open_sqlite_control
from service.api.keys import create_key
from service.keys import CONSOLE, Keyring, KeySpace
from tests.service.keys_helper import bearer, client_of, key_id, new_key
from tests.service.running_service import (
    RunningService,
    eventually,
    execution,
    failure,
    finished,
    hashing_settings,
    on_loop,
    running,
    serving,
)

BOOTSTRAP = "ac_00112233445566aa_" + "b" * 64


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service with the operator's key of its settings."""
    settings = hashing_settings(tmp_path_factory.mktemp("guarded"), keys={"bootstrap": BOOTSTRAP})
    with running(settings) as started:
        yield started


def test_without_keys_the_owner_is_answered_and_makes_none_from_afar(
    service: RunningService,
) -> None:
    """Else the first who asks would lock all others out."""
    assert service.client.get("/status").status_code == 200
    assert service.client.get("/keys").json() == {"keys": []}
    refused = service.client.post("/keys", json={"name": "x", "scopes": ["admin"]})
    assert refused.status_code == 403
    assert "aftercall keys create" in refused.text


def test_a_key_is_made_used_rotated_and_revoked(guarded: RunningService) -> None:
    """Its secret is shown once; after a rotation the former one holds for the overlap only."""
    with Client(guarded.url, api_key=BOOTSTRAP) as operator:
        issued = operator.create_key(KeySpec(name="ci", workspace="life", scopes=["read"]))
        secret, name = issued.secret, issued.key.id
        masked = Redactor().parameters("t", {"x": secret, "y": f"with {secret}."})
        assert secret not in str(masked)
        with Client(guarded.url, api_key=secret) as mine:
            assert mine.key_id == name
            assert mine.status().executions == 0
            with pytest.raises(NotAllowedError, match="scope admin"):
                mine.delete_tool("t")
        [listed] = [each for each in operator.list_keys() if each.id == name]
        assert listed.workspace == "life"
        again = operator.rotate_key(name, overlap_s=600).secret
        for each in (secret, again):
            assert guarded.client.get("/tools", headers=bearer(each)).status_code == 200
        last = operator.rotate_key(name, overlap_s=0).secret
        status = {
            key: guarded.client.get("/tools", headers=bearer(key)).status_code
            for key in (secret, again, last)
        }
        assert status == {secret: 401, again: 401, last: 200}
        operator.revoke_key(name)
        refused = guarded.client.get("/tools", headers=bearer(last))
        assert refused.status_code == 401
        assert "revoked" in refused.text
        assert refused.headers["www-authenticate"] == "Bearer"
        actions = [each.action for each in operator.audit(limit=4)]
        assert actions == ["key.revoke", "key.rotate", "key.rotate", "key.create"]
        stored = Path(guarded.context.settings.data.dir, "control.sqlite3").read_bytes()
        for key in (secret, again, last, BOOTSTRAP):
            assert key.split("_", 2)[2].encode() not in stored


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer x", "Basic YTpi", f"Bearer {BOOTSTRAP}x", f"Bearer {BOOTSTRAP[:-1]}c"],
)
def test_what_is_no_key_is_refused(guarded: RunningService, header: str) -> None:
    """Whatever the path, and before a body is read; what says nothing of anybody stays open."""
    headers = {"authorization": header} if header else {}
    for path in ("/tools", "/executions", "/none", "/mcp", "/v1/traces", "/metrics"):
        answer = guarded.client.post(path, headers=headers, content=b"{")
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "key_needed"), path
        assert "redacted" not in answer.text
    for path in ("/healthz", "/readyz", "/openapi.json", "/docs"):
        assert guarded.client.get(path, headers=headers).status_code == 200


def test_a_key_expires(guarded: RunningService) -> None:
    """From that moment on."""
    past = datetime.now(UTC) - timedelta(seconds=1)
    key = new_key(guarded, "late", expires_at=past)
    refused = guarded.client.get("/tools", headers=bearer(key))
    assert refused.status_code == 401
    assert "expired" in refused.text


async def test_a_slow_look_at_the_keys_hides_none_made_meanwhile(tmp_path: Path) -> None:
    """What it has read is older than what was made and read since."""
    has_read, may_end = asyncio.Event(), asyncio.Event()

    class SlowOnce(SqliteControl):
        async def list_keys(self) -> list[StoredKey]:
            found = await super().list_keys()
            if not has_read.is_set():
                has_read.set()
                await may_end.wait()
            return found

    store = await open_sqlite_control(tmp_path)
    store.__class__ = SlowOnce
    try:
        keyring = Keyring(store)
        looking = asyncio.create_task(keyring.refresh_keys())
        await has_read.wait()
        making = asyncio.create_task(
            create_key(
                KeySpace(keyring, CONSOLE), KeySpec(name="new", workspace="w", scopes=["read"])
            )
        )
        await asyncio.wait({making}, timeout=0.3)
        may_end.set()
        await looking
        assert keyring.find_access((await making).secret).workspace == "w"
    finally:
        await store.close()


def test_a_rate_is_kept_for_each_key(guarded: RunningService) -> None:
    """Five seconds' worth at once, then 429 with the seconds to wait; others are not held up."""
    slow, other = (new_key(guarded, "rate", rate=0.2) for _ in range(2))
    assert guarded.client.get("/tools", headers=bearer(slow)).status_code == 200
    refused = guarded.client.get("/tools", headers=bearer(slow))
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["retry-after"]) <= 5
    assert guarded.client.get("/tools", headers=bearer(other)).status_code == 200


def test_an_admin_rules_his_own_workspace_only(guarded: RunningService) -> None:
    """Keys of others are not there for him, and he makes none for them."""
    mine, theirs = new_key(guarded, "mine"), new_key(guarded, "theirs")
    with client_of(guarded, mine) as client:
        listed = client.get("/keys").json()["keys"]
        assert {each["workspace"] for each in listed} == {"mine"}
        assert all("secret" not in name.lower() for each in listed for name in each)
        for workspace in ("theirs", "*"):
            spec = {"name": "x", "workspace": workspace, "scopes": ["read"]}
            assert client.post("/keys", json=spec).status_code == 404
        path = f"/keys/{key_id(theirs)}"
        assert client.delete(path).status_code == 404
        assert client.post(f"{path}/rotation", json={}).status_code == 404
        assert client.delete(f"/keys/{key_id(BOOTSTRAP)}").status_code == 404
        seen = client.get("/audit").json()["entries"]
        assert {each["workspace"] for each in seen} == {"mine"}
        foreign = {"aftercall-workspace": "theirs"}
        assert client.get("/tools", headers=foreign).status_code == 404
    with client_of(guarded, BOOTSTRAP) as operator:
        operator.put("/tools/t", json={"name": "t"}, headers=foreign)
        assert operator.get("/tools/t").status_code == 404
        assert operator.get("/tools/t", headers=foreign).status_code == 200
        assert operator.delete(f"/keys/{key_id(BOOTSTRAP)}").status_code == 403


def test_every_event_says_whose_it_is(guarded: RunningService) -> None:
    """The key is the principal, whatever agent a call names."""
    key = new_key(guarded, "who")
    with client_of(guarded, key) as client:
        failed = failure(sessionId="s")
        assert client.post("/executions", json=failed).status_code == 202
        tool = {"name": "rag_query", "serverName": "rag-server", "namespace": "n"}
        assert client.put("/tools/t", json=tool).status_code == 200
        question = {n: failed[n] for n in failed if n not in ("executionId", "timestamp")}
        answer = client.post("/suggest", json={"execution": question}).json()
        on_loop(guarded, guarded.context.suggester.close())
        outcome = {"outcome": "success", "executionId": str(uuid4())}
        path = f"/suggestions/{answer['suggestions'][0]['suggestionId']}/outcome"
        assert client.post(path, json=outcome).status_code == 204
        mark = {"scenario": "x", "errorMessage": "y", "severity": "low"}
        assert client.post("/tools/t/failures", json=mark).status_code == 202
        said = {"executionId": failed["executionId"], "text": "not films", "kind": "low_utility"}
        assert client.post("/corrections", json=said).is_success
        promotion = {"evolvedVersion": "1.1.0", "originalVersion": "1.0.0", "reason": "r",
                     "mutation": "m", "evolvedFile": "t.py"}  # fmt: skip
        assert client.put("/namespaces/n/promotion", json=promotion).is_success
    kinds: tuple[EventKind, ...] = (
        "execution", "tool", "suggestion", "outcome", "mark", "correction", "promotion",
    )  # fmt: skip
    for kind in kinds:
        log = guarded.context.store.events
        [event, *_] = on_loop(guarded, log.latest_events("who", kind, 5))
        assert event.principal == key_id(key), kind
        assert on_loop(guarded, log.latest_events("default", kind, 5)) == []


def test_a_recorder_sends_with_its_key_and_keeps_what_was_refused(
    guarded: RunningService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A spool belongs to a service and a key: what one could not send never comes as another's."""
    call = Execution.model_validate(execution())
    with Recorder(base_url=guarded.url, api_key="", spool_dir=tmp_path) as nobody:
        nobody.record(call)
        assert not nobody.flush()
    monkeypatch.setenv("AFTERCALL_API_KEY", new_key(guarded, "spool"))
    with Recorder(base_url=guarded.url, spool_dir=tmp_path) as recorder:
        recorder.record(Execution.model_validate(execution()))
        assert recorder.flush()
        assert recorder.stats().sent == 1
    assert len(list(tmp_path.iterdir())) == 2
    with Client(guarded.url) as client:
        assert client.status().executions == 1


def test_the_command_line_makes_keys_beside_a_running_service(tmp_path: Path) -> None:
    """It is known within a second; from then on nobody is answered without one."""
    place = ("--data-dir", str(tmp_path))
    with serving(tmp_path) as service, Client(service.url) as nobody:
        assert nobody.status().ready
        code, secret, told = finished("keys", "create", "ops", "--scope", "admin",
                                      "--workspace", "*", *place)  # fmt: skip
        assert (code, secret.count("\n")) == (0, 1), told

        def is_closed() -> bool:
            try:
                nobody.status()
            except NotAllowedError:
                return True
            return False

        assert eventually(is_closed)
        with Client(service.url, api_key=secret.strip()) as operator:
            [key] = operator.list_keys()
            code, _, _ = finished("keys", "rotate", key.id, "--overlap-s", "0", *place)
            assert code == 0
        assert finished("keys", "revoke", "0" * 16, *place)[0] == 1
        code, listed, _ = finished("keys", "list", *place)
        assert key.id in listed
        assert secret.strip() not in listed
    code, entries, _ = finished("audit", *place)
    assert [line.split()[5] for line in entries.splitlines()] == ["key.rotate", "key.create"]


def test_where_others_can_reach_it_a_service_wants_a_key(tmp_path: Path) -> None:
    """It does not start, and says how it would."""
    place = ("--data-dir", str(tmp_path))
    code, _, told = finished("serve", "--host", "0.0.0.0", "--port", "0", *place)  # noqa: S104
    assert code == 1
    for cure in ("aftercall keys create", "AFTERCALL_KEYS_BOOTSTRAP", "ALLOW_STRANGERS"):
        assert cure in told
    (tmp_path / "key").write_text(f"{BOOTSTRAP}\n")
    for environ in (
        {"AFTERCALL_KEYS_BOOTSTRAP_FILE": str(tmp_path / "key")},
        {"AFTERCALL_SERVER_ALLOW_STRANGERS": "1"},
    ):
        with serving(tmp_path, "--host", "0.0.0.0", environ=environ) as service:  # noqa: S104
            url = service.url.replace("0.0.0.0", "127.0.0.1")  # noqa: S104
            with Client(url, api_key=BOOTSTRAP) as client:
                assert client.status().ready
    bad = {"AFTERCALL_KEYS_BOOTSTRAP": "secret"}
    code, _, told = finished("serve", "--port", "0", *place, environ=bad)
    assert code == 1
    assert "openssl rand" in told


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with three entries in its audit, and what notes the last one."""
    folder = tmp_path_factory.mktemp("audited")
    place = ("--data-dir", str(folder))
    for name in ("a one", "b two", "c three"):
        assert finished("keys", "create", name, *place)[0] == 0
    code, head, _ = finished("audit", "--verify", *place)
    assert code == 0
    assert head.startswith("3:")
    return folder, head.strip()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("UPDATE audit SET data = replace(data, 'console', 'nobody') WHERE position = 2",
         "entry 2 was changed"),
        ("DELETE FROM audit WHERE position = 2", "entry 2 is missing"),
        ("DELETE FROM audit WHERE position = 3", "entry 3 is missing"),
        ("UPDATE head SET position = 2, hash = (SELECT data ->> 'hash' FROM audit "
         "WHERE position = 2); DELETE FROM audit WHERE position = 3", "not the one that was noted"),
    ],
)  # fmt: skip
def test_any_change_of_the_audit_is_found(
    audited: tuple[Path, str], tmp_path: Path, change: str, problem: str
) -> None:
    """An entry that was changed or left out, the last ones too; with a note even a new writing."""
    folder, head = audited
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    with sqlite3.connect(tmp_path / "control.sqlite3") as connection:
        connection.executescript(change)
    code, _, told = finished("audit", "--verify", "--noted", head, "--data-dir", str(tmp_path))
    assert code == 1
    assert problem in told


def test_a_browser_signs_in_with_a_key_and_out_again(guarded: RunningService) -> None:
    """The cookie opens pages only, cannot be forged, and ends at the sign-out and with the key."""
    key = new_key(guarded, "pages", ["read"])
    with httpx2.Client(base_url=guarded.url) as browser:
        asked = browser.get("/dashboard/tools")
        assert (asked.status_code, asked.headers["location"]) == (303, "/dashboard/sign-in")
        assert 'type="password"' in browser.get("/dashboard/sign-in").text
        refused = browser.post("/dashboard/sign-in", data={"key": key[:-1]})
        assert refused.status_code == 401
        assert key[:-1] not in refused.text
        given = browser.post("/dashboard/sign-in", data={"key": f" {key}\n"})
        cookie = given.headers["set-cookie"]
        assert given.status_code == 303
        assert {"HttpOnly", "SameSite=strict", "Path=/dashboard"} <= {*cookie.split("; ")}
        assert key.split("_", 2)[2] not in cookie
        shown = browser.get("/dashboard/tools")
        assert shown.status_code == 200
        assert "Sign out" in shown.text
        assert browser.get("/dashboard/?workspace=who").status_code == 404
        assert browser.get("/tools").status_code == 401
        name, until, signature = browser.cookies["aftercall_session"].split(".")
        for forged in (f"{name}.{int(until) + 1}.{signature}", f"{name}.{until}.x", f"x.{until}.",
                       f"{key_id(BOOTSTRAP)}.{until}.{signature}", "", "a.b"):  # fmt: skip
            headers = {"cookie": f"aftercall_session={forged}"}
            answer = httpx2.get(f"{guarded.url}/dashboard/tools", headers=headers)
            assert answer.status_code == 303, forged
        held = {"cookie": f"aftercall_session={name}.{until}.{signature}"}
        out = browser.post("/dashboard/sign-out")
        assert "Max-Age=0" in out.headers["set-cookie"]
        assert browser.get("/dashboard/").status_code == 303
        assert httpx2.get(f"{guarded.url}/dashboard/tools", headers=held).status_code == 303
        browser.post("/dashboard/sign-in", data={"key": key})
        again = browser.cookies["aftercall_session"]
        held = {"cookie": f"aftercall_session={again}"}
        assert httpx2.get(f"{guarded.url}/dashboard/tools", headers=held).status_code == 200
        with Client(guarded.url, api_key=BOOTSTRAP) as operator:
            operator.revoke_key(name)
        assert httpx2.get(f"{guarded.url}/dashboard/tools", headers=held).status_code == 303


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "http://evil.example:8799", "null", "http://[::1", "file://", "junk"],
)
def test_a_page_of_another_site_changes_nothing(service: RunningService, origin: str) -> None:
    """Without a body too: a form across sites asks no preflight."""
    headers = {"origin": origin}
    for method, path in (
        ("POST", "/namespaces/n/promotion/rollback"), ("DELETE", "/tools/t"), ("POST", "/mcp"),
        ("POST", "/dashboard/sign-in"), ("POST", "/dashboard/sign-out"), ("POST", "/dashboard/try"),
    ):  # fmt: skip
        answer = service.client.request(method, path, headers=headers)
        assert answer.status_code == 403, path
        assert answer.json()["error"]["code"] == "origin_not_allowed"
        assert "access-control-allow-origin" not in answer.headers
    own = {"origin": service.url}
    assert service.client.delete("/tools/t", headers=own).status_code == 404


@pytest.mark.parametrize(
    "host",
    ["[::1].evil.example", "127.0.0.1:80@evil.example", "localhost:80:90", "[localhost]", "",
     "127.0.0.1/evil", "evil.example", "localhost:", "[::1"],
)  # fmt: skip
def test_a_host_that_only_begins_like_ours_is_refused(service: RunningService, host: str) -> None:
    """The whole header is read, not its beginning."""
    assert service.client.get("/tools", headers={"host": host}).status_code in (400, 403)
    assert service.client.get("/tools", headers={"host": "[::1]:80"}).status_code == 200
