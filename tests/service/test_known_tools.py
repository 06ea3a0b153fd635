"""`GET /known-tools` of a true service: calls are recorded, and the next agent is told of them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import httpx2
import pytest

from retrieval.answers.known_tools.facts import ToolFacts, facts_of
from retrieval.knowledge.tool.record import ToolRecord
from tests.service.fitness_client import Fitness, fresh
from tests.service.running_service import (
    RunningService,
    eventually,
    execution,
    failure,
    hashing_settings,
    on_loop,
    running,
)

SCHEMA = {
    "type": "object",
    "properties": {
        "repo_path": {"type": "string"},
        "max_count": {"type": "integer", "minimum": 1, "maximum": 100},
        "order": {"enum": ["asc", "desc"]},
        "paths": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["repo_path"],
}


def ask(service: RunningService, **query: Any) -> httpx2.Response:
    return service.client.get("/known-tools", params=query)


def told(service: RunningService, **query: Any) -> str:
    answer = ask(service, **query)
    assert answer.status_code == 200, answer.text
    return answer.text


def parsed(text: str) -> ET.Element:
    """A block as XML."""
    return ET.fromstring(text)  # noqa: S314  # our own output is what is tested


def names(text: str) -> list[str]:
    """The tools of a block, in its order."""
    return [each.attrib["name"] for each in parsed(text)]


def record_mended(fitness: Fitness, name: str, sessions: int = 3) -> None:
    """In each session a call fails for its maximum, and works with it."""
    now = datetime.now(UTC) - timedelta(hours=1)
    message = "Invalid parameter: max_count must be <= 100"
    for number in range(sessions):
        common = {
            "toolName": name, "serverName": "git", "sessionId": fresh("s"),
            "agent": f"agent-{number}", "inputSchema": SCHEMA,
        }  # fmt: skip
        at = now + timedelta(minutes=number)
        wrong = {"repo_path": "/srv/repo", "max_count": 500}
        fitness.service.record(
            failure(
                **common, timestamp=at.isoformat(), parameters=wrong,
                error={"type": "ValidationError", "message": message},
            )
        )  # fmt: skip
        at += timedelta(seconds=5)
        right = {"repo_path": "/srv/repo", "max_count": 100}
        fitness.service.record(execution(**common, timestamp=at.isoformat(), parameters=right))
    fitness.learned()


def test_what_was_learned_of_a_tool_is_told(fitness: Fitness) -> None:
    """Its signature, how it fares, the common mistake and what mends it, in both forms."""
    name = fresh("git_log")
    fitness.put(name, serverName="git", inputSchema=SCHEMA)
    record_mended(fitness, name)
    answer = ask(fitness.service, tool=name)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    [tool] = parsed(answer.text)
    assert tool.attrib == {"name": name, "server": "git"}
    said = tool.text or ""
    assert said.startswith(
        '(repo_path: string, max_count?: integer 1..100, order?: "asc"|"desc", paths?: string[])\n'
    )
    assert "6 calls, 50% ok, lately 50%" in said
    assert 'pitfall, 3 times: "Invalid parameter: max_count must be <= …"' in said
    assert "`max_count` must be at most 100" in said
    page = ask(fitness.service, tool=name, format="markdown")
    assert page.headers["content-type"] == "text/markdown; charset=utf-8"
    assert "### Common pitfalls" in page.text
    assert "### If it fails" in page.text


def test_recorded_names_will_do_for_ids(fitness: Fitness) -> None:
    """With or without the server, also where a server's name holds a slash."""
    name, server = fresh("read"), fresh("files/local")
    fitness.record(name, ok=True, serverName=server)
    fitness.learned()
    for asked in (name, f"{server}/{name}"):
        assert names(told(fitness.service, tool=asked)) == [name]
    registered = fresh("write")
    fitness.put(registered)
    assert set(names(told(fitness.service, tool=[name, registered]))) == {name, registered}


def test_an_unknown_name_is_told_with_the_nearest(fitness: Fitness) -> None:
    """Registered or only recorded, tools and namespaces."""
    name = fresh("calendar_search")
    fitness.record(name, ok=True)
    fitness.learned()
    answer = ask(fitness.service, tool=name.replace("search", "serach"))
    assert answer.status_code == 404
    error = answer.json()["error"]
    assert error["code"] == "not_found"
    assert name in error["details"]["nearest"]
    namespace = fresh("translation")
    fitness.put(fresh("translator"), namespace=namespace)
    answer = ask(fitness.service, namespace=f"{namespace}s")
    assert answer.status_code == 404
    assert namespace in answer.json()["error"]["details"]["nearest"]


def test_a_namespace_is_told_whole(fitness: Fitness) -> None:
    """All tools that serve it, and no other; further tools add to them."""
    namespace = fresh("weather")
    one, two, other = fresh("forecast"), fresh("report"), fresh("elsewhere")
    for name in (one, two):
        fitness.put(name, namespace=namespace)
    fitness.put(other)
    assert set(names(told(fitness.service, namespace=namespace))) == {one, two}
    assert set(names(told(fitness.service, namespace=namespace, tool=other))) == {one, two, other}


def test_all_tools_are_told_the_most_useful_first(own_fitness: Fitness) -> None:
    """Those that fail often before those that work, and those before tools that nobody called."""
    service = own_fitness.service
    assert "No tool is known." in told(service)
    assert "No tool is known." in told(service, format="markdown", maxTokens=50)
    own_fitness.put("unused")
    for _ in range(3):
        own_fitness.record("steady", ok=True)
        own_fitness.record("failing", ok=False)
    own_fitness.learned()
    assert names(told(service)) == ["failing", "steady", "unused"]


def test_what_is_told_of_a_tool_is_made_once(
    own_fitness: Fitness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until more is known of that tool: an agent of many asks for the same ones."""
    made: list[str] = []

    def counted(record: ToolRecord, **known: Any) -> ToolFacts:
        made.append(record.key.tool_name)
        return facts_of(record, **known)

    def is_kept() -> bool:
        made.clear()
        told(own_fitness.service)
        return not made

    monkeypatch.setattr("service.api.known_tools.facts_of", counted)
    for name in ("one", "two"):
        own_fitness.record(name, ok=True)
    own_fitness.learned()
    eventually(is_kept)
    on_loop(own_fitness.service, own_fitness.service.context.indexer.hand_over_known())
    assert is_kept()
    own_fitness.record("two", ok=True)
    own_fitness.learned()
    assert not is_kept()
    assert made == ["two"]
    eventually(is_kept)


def test_links_have_the_public_address(tmp_path: Path) -> None:
    """Where people reach the service is not where it listens."""
    settings = hashing_settings(tmp_path, server={"public_url": "https://tools.example.org/"})
    with running(settings) as service:
        Fitness(service).put("a.b")
        page = told(service, format="markdown")
        assert "[Dashboard](https://tools.example.org/dashboard/tools/a.b)" in page
