"""What is forgotten was never there: all answers equal those of a log that never had it."""

import argparse
import asyncio
import gzip
import io
import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, tzinfo
from pathlib import Path
from time import time
from typing import Any, Self
from uuid import uuid4

import httpx2
import pytest

from aftercall.errors import ConfigurationError
from aftercall.recording import recorder
from aftercall.recording.recorder import _service_folder
from aftercall.recording.spool import Spool
from aftercall.running import BASE_URL
from mongo.records import Commit, Counter, Event
from retrieval.knowledge.rows.counters import AGENT_FAILURE
from retrieval.knowledge.rows.log import count_rows
from retrieval.knowledge.rows.principals import agent_mark
from service.archive import ArchiveReader
from service.cli import forget as cli
from service.forget import Forgotten, forget_events, state_of
from service.rebuild import rebuild_store
from service.settings import Settings
from tests.golden.stories import normal
from tests.ingest.histories import WORKSPACE, history
from tests.service.keys_helper import client_of, new_key
from tests.service.running_service import (
    RunningService,
    eventually,
    execution,
    failure,
    hashing_settings,
    on_loop,
    running,
)
from workbench.in_process import in_process

KEY = "k9"
_LOADED = time()
_FAILED = {
    "serverName": "srv", "parameters": {"query": "q1", "topK": 50}, "agent": "new",
    "error": {"type": "ValidationError", "message": "Invalid parameter: topK must be <= 10"},
}  # fmt: skip
ASKED: list[tuple[str, str, Any]] = [
    *(
        ("GET", path, None)
        for path in (
            "/patterns", "/boundaries", "/recommendations", "/known-tools", "/tools",
            "/corrections", "/namespaces", "/promotions", "/stats/overview?window=30d",
            "/namespaces/pages/best?scenario=find%20pages", "/tools/search/health",
            "/tools/fetch/health", "/tools/search/failures",
            "/tools/search/failures?scenario=pages",
        )
    ),
    ("POST", "/suggest", {"execution": {**_FAILED, "toolName": "search"}}),
    ("POST", "/suggest", {"execution": {**_FAILED, "toolName": "fetch"}}),
    ("POST", "/similar", {"toolName": "search", "serverName": "srv", "parameters": {"a": "q1"}}),
    ("POST", "/tools/find", {"scenario": "find pages"}),
    ("POST", "/evolutions/find", {"scenario": "better pages"}),
]  # fmt: skip


def settings(folder: Path) -> Settings:
    return hashing_settings(folder, data={"dir": folder})


def told() -> list[Event]:
    """All kinds of events; every third is the key's."""
    events = history(3, 240, 4)
    return [
        replace(each, principal=KEY) if number % 3 == 0 else each
        for number, each in enumerate(events)
    ]


def quotes(event: Event, ids: set[str]) -> bool:
    """Whether it names the call or the suggestion of another event as what it is about."""
    if event.kind not in ("outcome", "mark", "correction"):
        return False
    data = json.loads(event.data)
    return bool(ids & {data.get("execution_id"), data.get("suggestion_id")})


async def learn(folder: Path, events: Sequence[Event]) -> None:
    """A service on the folder gets them and learns them."""
    async with in_process(folder, embedder="hashing") as service:
        for event in events:
            state = state_of(WORKSPACE, event)
            log = service.context.store.events
            await log.append(WORKSPACE, [event], [state] if state else [])
        await service.context.indexer.catch_up()


async def answers(folder: Path) -> dict[str, Any]:
    """What a service on the folder answers to everything."""
    async with (
        in_process(folder, embedder="hashing") as service,
        httpx2.AsyncClient(base_url="http://127.0.0.1", transport=service.transport) as http,
    ):
        found = {}
        for method, path, body in ASKED:
            answer = await http.request(method, path, json=body)
            is_json = "json" in answer.headers["content-type"]
            said = answer.json() if is_json else answer.text
            found[f"{path} {body}"] = answer.status_code, normal(said, set())
    return found


class StoppedClock(datetime):
    """One moment for two services that are asked one after the other."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        """The moment at which this module was loaded."""
        return cls.fromtimestamp(_LOADED, tz)


@pytest.mark.parametrize(
    ("whose", "is_theirs"),
    [
        (Forgotten(workspace=WORKSPACE, key_id=KEY), lambda event: event.principal == KEY),
        (Forgotten(workspace=WORKSPACE, agent="eve"), lambda event: b'"agent":"eve"' in event.data),
    ],
    ids=["a key", "an agent"],
)
async def test_all_answers_are_those_of_a_log_that_never_had_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    whose: Forgotten,
    is_theirs: Callable[[Event], bool],
) -> None:
    """Also where others marked, corrected or reported what it did; recorders send it no more."""
    events = told()
    theirs = [each for each in events if is_theirs(each)]
    ids = {each.id for each in theirs if each.kind in ("execution", "suggestion")}
    left = [each for each in events if not is_theirs(each) and not quotes(each, ids)]
    assert len(theirs) > 30
    await learn(tmp_path / "a", events)
    before = await answers(tmp_path / "a")
    spool = Spool(tmp_path / "state" / "spool" / _service_folder(BASE_URL, ""), max_bytes=2**20)
    monkeypatch.setattr(recorder, "state_folder", lambda: tmp_path / "state" / "spool")
    spool.append([b'{"agent":"eve","timestamp":"2026-01-01T00:00:00Z"}', b'{"agent":"x"}'])
    gone = await asyncio.to_thread(asyncio.run, cli.forget_now(settings(tmp_path / "a"), whose))
    assert (
        spool.count_waiting() == 2 - gone.pop("calls not sent yet", 0) == (2 if whose.key_id else 1)
    )
    assert sum(gone.values()) == len(events) - len(left)
    await learn(tmp_path / "b", left)
    await asyncio.to_thread(asyncio.run, rebuild_store(settings(tmp_path / "b"), lambda _: None))
    for module in (
        "service.context",
        "retrieval.answers.fitness.history",
        "retrieval.answers.fitness.search",
    ):
        monkeypatch.setattr(f"{module}.datetime", StoppedClock)  # what fades does so by the clock
    after, never = await answers(tmp_path / "a"), await answers(tmp_path / "b")
    assert {ask: each for ask, each in after.items() if each != never[ask]} == {}
    assert [status for status, _ in after.values()].count(200) >= 14
    assert after != before


async def test_no_row_of_the_base_names_it(tmp_path: Path) -> None:
    """Of what expired events taught each row that bears a mark goes whole; the others stay."""
    async with in_process(tmp_path, embedder="hashing") as service:
        store = service.context.store
        events = told()
        for event in events:
            await store.events.append(WORKSPACE, [event])
        await service.context.indexer.catch_up()
        rows = await store.knowledge.scan_rows(WORKSPACE, None, 10_000, by="serial")
        base = await store.open_generation(0)
        counted = {Counter(f"{AGENT_FAILURE}{name}", 1): 7 for name in ("eve", "x")}
        await base.commit(Commit(WORKSPACE, put=rows, counters=counted))
        gone = await forget_events(store, Forgotten(workspace=WORKSPACE, agent="eve"))
        left = await base.scan_rows(WORKSPACE, None, 10_000, by="serial")
        assert gone["expired rows"] == len(rows) - len(left) > 0
        assert left
        marks = [b'"eve"', agent_mark("eve").encode(), agent_mark(f"{KEY}\x1eeve")[-12:].encode()]
        assert [row.key for row in left if any(mark in row.data for mark in marks)] == []
        [kept] = await base.sum_counters(
            WORKSPACE, [f"{AGENT_FAILURE}*"], since=0, until=9, by=("what",)
        )
        assert (kept.what, kept.number) == (f"{AGENT_FAILURE}x", 7)


def test_nothing_is_forgotten_without_a_name(tmp_path: Path) -> None:
    """The command asks for one; who never said anything leaves all as it is."""
    parser = argparse.ArgumentParser()
    cli.command.add_arguments(parser)
    for given in ([], ["--everything", "--agent", "eve"], ["--everything"]):
        with pytest.raises(ConfigurationError, match=r"--agent, --session|with --workspace"):
            cli.command.run(parser.parse_args(["--data-dir", str(tmp_path), *given]))


async def is_learned(service: RunningService) -> bool:
    return not (await count_rows(service.context.store)).pending


def test_an_admin_looks_at_exports_and_empties_a_workspace_over_http(tmp_path: Path) -> None:
    """Each by its key, and in the audit; another workspace stays as it was.

    What was learned of an agent is gone from answers once the generation named has begun.
    """
    with running(hashing_settings(tmp_path)) as service, ExitStack() as clients:
        admin, other = (
            clients.enter_context(client_of(service, new_key(service, name)))
            for name in ("red", "blue")
        )
        calls = [
            call | {"agent": agent, "sessionId": agent, "parameters": {"q": "q", "topK": top}}
            for agent in ("ann", "bob")
            for call, top in ((failure(), 50), (execution(), 10))
        ]
        for client in (admin, other):
            again = [call | {"executionId": str(uuid4())} for call in calls]
            assert client.post("/executions", json=again).json()["accepted"] == 4
            eventually(lambda: on_loop(service, is_learned(service)))
        [known] = admin.get("/workspaces").json()["workspaces"]
        assert (known["name"], known["keys"], known["events"] >= 4) == ("red", 1, True)
        rule = admin.get("/rules", params={"suspicious": True}).json()["rules"][0]
        assert admin.get(f"/rules/{rule['ruleId']}").json() == rule | {"repairs": 2}
        packed = admin.get("/export").content
        lines = [*ArchiveReader(io.BytesIO(gzip.decompress(packed))).read_lines()]
        assert {content.get("workspace") for _, content in lines} == {"red"}
        assert admin.post("/forget", json={"everything": True, "agent": "ann"}).status_code == 422
        gone = admin.post("/forget", json={"agent": "ann"}).json()
        assert gone["erased"]["execution"] == 2
        eventually(lambda: admin.get("/status").json()["generation"] >= gone["generation"])
        assert rule not in admin.get("/rules").json()["rules"]
        assert admin.post("/forget", json={"everything": True}).json()["erased"]["execution"] == 2
        eventually(lambda: admin.get("/status").json()["generation"] > gone["generation"])
        assert admin.get("/status").json()["executions"] == 0
        assert other.get("/status").json()["executions"] == 4
        assert other.get("/rules").json()["rules"][0]["ruleId"] == rule["ruleId"]
        noted = [each["action"] for each in admin.get("/audit").json()["entries"]]
        assert noted[:3] == ["forget", "forget", "workspace.export"]
        assert other.delete(f"/rules/{rule['ruleId']}").status_code == 204
        eventually(lambda: other.get(f"/rules/{rule['ruleId']}").status_code == 404)
