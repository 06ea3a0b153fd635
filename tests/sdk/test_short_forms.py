"""The shortest ways in: a bare decorator, the environment, three words."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aftercall import AsyncClient, Client, ExecutionError, Recorder
from aftercall.mcp_server.server import SuggestFix
from aftercall.outcomes import error_of
from tests.sdk.loopback import Loopback

BARE = """
import asyncio
from aftercall import reflecting

@reflecting
def half(number: int) -> float:
    if number > 10:
        raise ValueError("number must be <= 10")
    return number / 2

@reflecting(may_repeat=True)
async def double(number: int) -> int:
    return number * 2

print(half(4), asyncio.run(double(4)))
try:
    half(50)
except ValueError as error:
    print(error)
"""


def run_bare(folder: Path, **environ: str) -> str:
    kept = {key: os.environ[key] for key in ("PATH", "PYTHONPATH") if key in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", BARE],
        env={**kept, "HOME": str(folder), **environ},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def test_a_bare_decorator_records_and_asks(service: Loopback, tmp_path: Path) -> None:
    """By `AFTERCALL_URL`; plain and async functions, with and without options."""
    assert run_bare(tmp_path, AFTERCALL_URL=service.url) == "2.0 8\nnumber must be <= 10\n"
    recorded = sorted((each["toolName"], each["outcome"]) for each in service.executions.values())
    assert recorded == [("double", "success"), ("half", "failure"), ("half", "success")]


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "no address"])
def test_without_a_service_functions_do_what_they_did(tmp_path: Path, url: str) -> None:
    """Nobody answers, or the address is wrong: same results, same errors."""
    assert run_bare(tmp_path, AFTERCALL_URL=url) == "2.0 8\nnumber must be <= 10\n"


async def test_clients_and_recorders_honour_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is given wins over `AFTERCALL_URL`, which wins over this machine."""
    with Client() as client:
        assert client.base_url.rstrip("/") == "http://127.0.0.1:8799"
    monkeypatch.setenv("AFTERCALL_URL", "https://aftercall.example")
    with Client() as client, Client("http://other.example") as given:
        assert client.base_url.rstrip("/") == "https://aftercall.example"
        assert given.base_url.rstrip("/") == "http://other.example"
    async with AsyncClient() as other:
        assert other.base_url.rstrip("/") == "https://aftercall.example"
    with Recorder(spool_dir=tmp_path) as recorder:
        assert "aftercall.example" in recorder._base_url


async def test_a_failed_call_is_asked_about_in_three_words(call: Any, service: Loopback) -> None:
    """Tool, parameters, error; an exception, a text or an object."""
    asked: list[dict[str, Any]] = []
    answer = service.suggest
    service.suggest = lambda question: [asked.append(question), answer(question)][1]
    await call("suggest", "search", {"topK": 50}, ValueError("too many"), server_name="rag")
    await call("suggest", "search", error="too many")
    one, other = (each["execution"] for each in asked)
    assert (one["toolName"], one["serverName"], one["parameters"]) == (
        "search",
        "rag",
        {"topK": 50},
    )
    assert (one["error"]["type"], one["error"]["message"]) == ("ValueError", "too many")
    assert (other["error"]["message"], other["parameters"]) == ("too many", {})
    with pytest.raises(ValueError, match="say what the tool said"):
        await call("suggest", "search", {"topK": 50})


@pytest.mark.parametrize(
    ("said", "kind", "message"),
    [
        ("topK must be <= 10", "Error", "topK must be <= 10"),
        ('{"type": "Bad", "message": "no", "code": 7}', "Bad", "no"),
        ({"error": {"name": "Bad", "message": "no"}}, "Bad", "no"),
        ({"error": "no"}, "Error", "no"),
        ({"isError": True, "content": [{"type": "text", "text": "no"}]}, "Error", "no"),
        ({"detail": "no"}, "Error", '{"detail":"no"}'),
        ({"message": ""}, "Error", '{"message":""}'),
        (KeyError("k"), "KeyError", "'k'"),
        (RuntimeError(), "RuntimeError", "RuntimeError"),
        ([], "Error", "[]"),
        ({"content": []}, "Error", '{"content":null}'),
        (ExecutionError(message="no"), "Error", "no"),
    ],
)
def test_an_error_is_read_in_any_form(said: object, kind: str, message: str) -> None:
    """As tools, protocols and models write errors; never an exception of ours."""
    error = error_of(said)
    assert (error.type, error.message.replace(" ", "")) == (kind, message.replace(" ", ""))


@pytest.mark.parametrize(
    "said",
    [
        {"toolName": "create", "serverName": "gh", "parameters": {"a": 1}, "error": "no"},
        {"tool": "create", "server": "gh", "arguments": {"a": 1}, "error": {"message": "no"}},
        {"tool": "mcp__gh__create", "args": '{"a": 1}', "error": "no"},
        {"tool_name": "mcp__gh__create", "tool_input": {"a": 1}, "error_message": "no"},
        {"toolName": "mcp__x__create", "serverName": "gh", "parameters": {"a": 1}, "error": "no"},
    ],
)
def test_suggest_fix_takes_what_a_model_sends(said: dict[str, Any]) -> None:
    """Other names of the fields, arguments as JSON text, a client's own name of the tool."""
    read = SuggestFix.model_validate(said)
    assert (read.tool_name, read.server_name, read.parameters) == ("create", "gh", {"a": 1})
    assert read.error.message == "no"
