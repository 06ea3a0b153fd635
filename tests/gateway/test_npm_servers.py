"""Five real servers, from npm and PyPI, behind the gateway's own process, with the true service."""

import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from tests.gateway.conftest import TIME_SERVER
from tests.gateway.results import texts
from tests.gateway.waiting import until
from tests.npm_packages import installed_packages
from tests.service.running_service import ServeProcess, serving

pytestmark = pytest.mark.real

Json = dict[str, Any]
LOCKED = Path(__file__).with_name("npm")
"""`package-lock.json` says which versions; they are installed beside it, once."""
GATEWAY = """
import sys
from functools import partial
from aftercall.adapters import before_call
from aftercall.cli import main
from aftercall.gateway import cli
before_call.TIMEOUT_S = 30  # however busy the machine is
cli.ReflectionPolicy = partial(cli.ReflectionPolicy, suggest_timeout_s=30)
sys.exit(main())
"""
GOOD: tuple[tuple[str, Json, str], ...] = (
    ("files_read_text_file", {"path": "notes.txt"}, "buy milk"),
    ("files_read_text_file", {"path": "error.log"}, "Error: disk full"),
    ("everything_get-annotated-message", {"messageType": "error"}, "Error: Operation failed"),
    ("files_list_directory", {"path": "docs"}, "[FILE] guide.md"),
    ("files_search_files", {"path": ".", "pattern": "**/*.md"}, "guide.md"),
    ("memory_search_nodes", {"query": "Anna"}, "likes tea"),
    ("memory_read_graph", {}, "likes tea"),
    ("everything_echo", {"message": "hello"}, "Echo: hello"),
    ("everything_get-sum", {"a": 2, "b": 5}, "7"),
    ("time_get_current_time", {"timezone": "UTC"}, "UTC"),
    ("git_git_log", {"repo_path": "repository", "max_count": 1}, "First"),
)
MISTAKES: tuple[tuple[str, Json, str], ...] = (
    ("files_read_text_file", {"file_path": "notes.txt"}, "buy milk"),
    ("files_list_directory", {"Path": "docs"}, "[FILE] guide.md"),
    ("files_read_multiple_files", {"paths": "notes.txt"}, "buy milk"),
    ("files_read_text_file", {"path": "notes.txt", "head": "1"}, "buy milk"),
    ("memory_search_nodes", {"search_query": "Anna"}, "likes tea"),
    ("memory_open_nodes", {"names": '["Anna"]'}, "likes tea"),
    ("everything_echo", {"input": '{"message": "hello"}'}, "Echo: hello"),
    ("everything_get-sum", {"a": "2", "b": 5}, "7"),
    ("everything_get-annotated-message", {"message_type": "success"}, "Operation completed"),
    ("everything_get-resource-links", {"count": 50}, "links"),
    ("time_get_current_time", {"tz": "Asia/Tokyo"}, "Asia/Tokyo"),
    ("time_get_current_time", {"time_zone": "europe/warsaw"}, "Europe/Warsaw"),
    ("git_git_log", {"repo_path": "repository", "max_count": "1"}, "First"),
)


@pytest.fixture(scope="module")
def programs() -> Path:
    """Where the servers from npm are; NPM in the environment, as CI has it, must be there."""
    return installed_packages(LOCKED) / ".bin"


@pytest.fixture(scope="module")
def service(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    """`aftercall serve` on an empty folder."""
    with serving(tmp_path_factory.mktemp("npm") / "data") as running:
        yield running


@pytest.fixture
def world(programs: Path, repository: Path, git_server: Json) -> Json:
    """The servers, and what they find: files, a graph, a repository."""
    folder = repository.parent
    (folder / "files" / "docs").mkdir(parents=True)
    (folder / "files" / "notes.txt").write_text("buy milk\ncall Anna\n")
    (folder / "files" / "error.log").write_text("Error: disk full\n")
    (folder / "files" / "docs" / "guide.md").write_text("# Guide\n")
    anna = {"type": "entity", "name": "Anna", "entityType": "person", "observations": ["likes tea"]}
    (folder / "graph.jsonl").write_text(json.dumps(anna))
    env, at = {"PATH": os.environ["PATH"]}, str(programs / "mcp-server-")
    graph = env | {"MEMORY_FILE_PATH": str(folder / "graph.jsonl")}
    files = {"command": f"{at}filesystem", "args": [str(folder / "files")], "env": env}
    return {
        "files": files | {"cwd": str(folder / "files")},
        "memory": {"command": f"{at}memory", "env": graph},
        "everything": {"command": f"{at}everything", "env": env},
        "time": TIME_SERVER,
        "git": git_server | {"cwd": str(folder)},
    }


@asynccontextmanager
async def through_gateway(
    world: Json, service: ServeProcess, folder: Path
) -> AsyncIterator[Client[Any]]:
    """A client of an `aftercall gateway` whose tools are registered; at the end all is learned."""
    config = folder / "mcp.json"
    config.write_text(json.dumps({"mcpServers": world}))
    words = ["-c", GATEWAY, "gateway", "--config", str(config), "--service", service.url]
    env = {key: os.environ[key] for key in ("PATH", "PYTHONPATH") if key in os.environ}
    env |= {"HOME": str(folder)}
    log = folder / "stderr.log"
    front = StdioTransport(sys.executable, words, env=env, log_file=log, keep_alive=False)
    async with Client(front, init_timeout=60) as client:
        offered = len(await client.list_tools())  # their schemas make repairs surer
        await until(lambda: service.get("/status")["tools"] >= offered, 200)
        yield client
    await until(lambda: service.get("/status")["pendingIndexing"] == 0, 60)


async def test_right_calls_pass_and_wrong_ones_are_repaired_before_or_after_and_announced(
    world: Json, service: ServeProcess, tmp_path: Path
) -> None:
    """Each mistake gives what was meant, at once, and the result says what was changed."""
    ended: dict[str, list[str]] = {}
    async with through_gateway(world, service, tmp_path) as client:
        for name, parameters, wanted in GOOD:
            result = await client.call_tool_mcp(name, parameters)
            assert not result.is_error, (name, texts(result))
            assert wanted in "\n".join(texts(result)), name
            assert "aftercall" not in (result.meta or {}), name
        [text, *_] = [r for r in await client.list_resources() if str(r.uri).endswith(".md")]
        assert (await client.read_resource(text.uri))[0].mime_type == "text/markdown"
        for name, parameters, wanted in MISTAKES:
            result = await client.call_tool_mcp(name, parameters)
            assert not result.is_error, (name, parameters, texts(result))
            *said, note = texts(result)
            assert wanted in "\n".join(said), name
            assert note.startswith("Aftercall repaired this call "), name
            facts = (result.meta or {})["aftercall"]
            ended.setdefault(facts["note"], []).append(name)
    assert "everything_get-resource-links" in ended["repaired via reflection"]
    assert len(ended["repaired before the call"]) >= len(MISTAKES) - 2
