"""The SDK by itself: what it installs and imports, what extras are for, and its README."""

import importlib
import json
import re
import runpy
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from aftercall.errors import ConfigurationError
from tests.sdk.loopback import Loopback

ROOT = Path(__file__).parents[2]
SDK = ROOT / "sdk"

USE = """
import importlib.util, json, sys
from datetime import UTC, datetime
from uuid import uuid4

import aftercall
from aftercall import Client, Execution, Recorder

url, spool_dir = sys.argv[1:]

def new():
    return Execution(
        execution_id=str(uuid4()), timestamp=datetime.now(UTC), agent="a", tool_name="t",
        parameters={"apiKey": "k" * 20}, outcome="success",
    )

with Client(url) as client:
    accepted = client.record(new()).accepted
    executions = client.status().executions
with Recorder(base_url=url, spool_dir=spool_dir) as recorder:
    recorder.record(new())
absent = ["numpy", "fastapi", "fastmcp", "torch", "service", "mongo", "uvicorn"]
print(json.dumps({
    "accepted": accepted,
    "executions": executions,
    "there": [name for name in absent if importlib.util.find_spec(name)],
    "exported": [name for name in aftercall.__all__ if not hasattr(aftercall, name)],
    "where": aftercall.__file__,
}))
"""


LOADS = """
import sys, aftercall, aftercall.stages
from aftercall.adapters import functions, hooks
with aftercall.Client(sys.argv[1]) as client:
    client.status()
print(*sorted({name.split('.')[0] for name in sys.modules}))
"""


@pytest.mark.real
def test_the_sdk_installs_and_works_alone(
    tmp_path: Path, service: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an empty environment: client and recorder work, and nothing heavy has come with them."""
    # Isolated (-I), or this checkout would be found in the caller's PYTHONPATH.
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    run = [python, "-I", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    constraints = ["-c", ROOT / "constraints.txt"]
    installed = subprocess.run(
        [*run, SDK, *constraints], capture_output=True, text=True, check=False
    )
    assert installed.returncode == 0, installed.stderr
    used = subprocess.run(
        [python, "-I", "-W", "error", "-c", USE, service.url, tmp_path / "spool"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert used.returncode == 0, used.stderr
    found = json.loads(used.stdout)
    assert found["where"].startswith(str(environment))
    assert (found["accepted"], found["executions"]) == (1, 1)
    assert (found["there"], found["exported"]) == ([], [])
    assert len(service.executions) == 2


@pytest.mark.real
def test_using_the_sdk_imports_nothing_heavy(service: Loopback) -> None:
    """Here, where everything is installed, client and plain adapters load only what they need."""
    loaded = subprocess.run(
        [sys.executable, "-I", "-c", LOADS, service.url], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "aftercall" in loaded
    heavy = {
        "numpy", "fastapi", "fastmcp", "mcp", "mcp_types", "starlette", "torch", "rich",
        "multiprocessing", "agents", "langchain", "langgraph", "opentelemetry", "prometheus_client",
    }  # fmt: skip
    assert heavy.isdisjoint(loaded)


def test_the_examples_of_the_readme_work(
    service: Loopback,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All Python in it, one after the other, against a service."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    text = (SDK / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 12
    source = "\n".join(blocks)
    for there, here in {
        "http://127.0.0.1:8799": service.url,
        "/var/tmp/my-gateway": str(tmp_path / "spool"),  # what the README says
        "Client(redactor": f"Client({service.url!r}, redactor",
    }.items():
        assert there in source
        source = source.replace(there, here)
    # Two recorders are made one after the other; each is closed before its name is taken.
    source = source.replace("recorder = Recorder(\n", "recorder.close()\nrecorder = Recorder(\n")
    source += "\nrecorder.close()\nclient.close()\n"
    exec(compile(source, "README.md", "exec"), {})  # noqa: S102  # our own README
    assert len(service.executions) == 4
    assert list(service.tools) == ["shout"]
    assert [request.path for request in service.requests].count("/suggest") == 1
    printed = capsys.readouterr().out
    assert "token=[redacted:string:9-16]" in printed
    assert "success_no_parse\nwrong_tool_boundary\n" in printed
    assert "{'titles': ['Alien']}\n/titles min_items\nlow_utility 0.6\n" in printed
    assert "HELLO\nTrue GOOD DAY the first tool succeeded\n" in printed


def test_the_synchronous_modules_are_those_of_their_sources() -> None:
    """Whoever changes an asynchronous module runs `make generate`."""
    script = runpy.run_path(str(SDK / "generate_sync.py"))
    stale = [
        path.name for path, text in script["generate_files"]().items() if path.read_text() != text
    ]
    assert stale == [], "run `make generate`"


@pytest.mark.parametrize(
    ("module", "missing", "cure"),
    [
        ("adapters.langgraph", "langchain.agents.middleware", "./sdk[langgraph]"),
        ("adapters.openai_agents", "agents", "./sdk[openai-agents]"),
        ("adapters.fastmcp", "mcp_types", "./sdk[gateway]"),
        ("tracing", "opentelemetry", "./sdk[otel]"),
        ("metrics", "prometheus_client", "./sdk[metrics]"),
    ],
)
def test_the_error_names_what_to_install(
    module: str, missing: str, cure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the extra: the package of one of them is not called as its module is."""
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, f"aftercall.{module}", raising=False)
    with pytest.raises((ImportError, ConfigurationError), match=re.escape(cure)):
        importlib.import_module(f"aftercall.{module}")
