"""Runs real coding agents from npm against a scripted model, with Aftercall's hooks alone.

Each has a home of its own, telemetry off, and no way to a registry. `package.json` names the
versions.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aftercall.plugins import plugin_text
from tests.hooks.scripted_model import ScriptedModel

Json = dict[str, Any]
AFTERCALL = str(Path(sys.executable).with_name("aftercall"))
DESK = {"command": sys.executable, "args": [str(Path(__file__).with_name("desk_server.py"))]}
FILES = {
    "README.md": "# demo\n",
    "src/config.py": "PORT = 8080\nHOST = 'localhost'\n",
    "src/main.py": "from config import PORT\n\nprint(PORT)\n",
    "notes.txt": "alpha\nbeta\ngamma\n",
}
PROMPT = "do the scripted work"
_WITHIN_S = 150
_GIT = ("git", "-c", "user.name=dev", "-c", "user.email=dev@example.com")


@dataclass(frozen=True)
class Machine:
    """A home and a repository of one run."""

    home: Path
    repo: Path
    bin: Path
    service: str

    def hook(self, client: str) -> str:
        """The command that a client starts."""
        return f"{AFTERCALL} hook {client} --service {self.service}"

    def write(self, place: str, content: Json | str) -> Path:
        """Write a file of the home."""
        path = self.home / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def environ(self, **more: str) -> dict[str, str]:
        """The environment of a client: nothing of this process but the path."""
        return {
            "PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "dumb",
            "NO_COLOR": "1", "CI": "1", "DO_NOT_TRACK": "1", "npm_config_fetch_retries": "0",
            "npm_config_registry": "http://127.0.0.1:9/", **more,
        }  # fmt: skip

    def run(self, words: list[str], environ: dict[str, str]) -> None:
        """Run a client to its end, or end it with all that it started."""
        words = [str(self.bin / words[0]), *words[1:]]
        with (self.home / "said.txt").open("wb") as said:
            process = subprocess.Popen(
                words, cwd=self.repo, env=environ, stdin=subprocess.DEVNULL, stdout=said,
                stderr=said, start_new_session=True,
            )  # fmt: skip
            try:
                process.wait(_WITHIN_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def end_left_over(self) -> None:
        """End what a client left behind: processes of this home alone."""
        mark = f"HOME={self.home}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    os.kill(int(folder.name), signal.SIGKILL)
            except OSError:
                continue


def new_machine(folder: Path, programs: Path, service: str) -> Machine:
    """A home and a repository with some files."""
    home, repo = folder / "home", folder / "repo"
    home.mkdir(parents=True)
    for name, text in FILES.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text)
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "start"]):
        subprocess.run([*_GIT, *words], cwd=repo, check=True, env={**os.environ, "HOME": str(home)})
    return Machine(home, repo, programs, service)


def _run_codex(machine: Machine, model: ScriptedModel) -> None:
    machine.write(
        "config.toml",
        f"""
model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[otel]
exporter = "none"
[model_providers.scripted]
name = "scripted"
base_url = "{model.url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0
[mcp_servers.desk]
command = {json.dumps(DESK["command"])}
args = {json.dumps(DESK["args"])}
""",
    )
    command = {"type": "command", "command": machine.hook("codex"), "timeout": 10}
    events = ("PreToolUse", "PostToolUse", "SessionEnd")
    machine.write("hooks.json", {"hooks": {each: [{"hooks": [command]}] for each in events}})
    words = ["codex", "exec", "--json", "--dangerously-bypass-hook-trust"]
    words += ["--dangerously-bypass-approvals-and-sandbox", PROMPT]
    machine.run(words, machine.environ(CODEX_HOME=str(machine.home), SCRIPTED_KEY="none"))


def _run_opencode(machine: Machine, model: ScriptedModel) -> None:
    options = {"baseURL": f"{model.url}/v1", "apiKey": "none"}
    limit = {"context": 100_000, "output": 4_000}
    offered = {"name": "scripted", "tool_call": True, "limit": limit}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "scripted", "options": options}
    config = {
        "model": "scripted/scripted", "small_model": "scripted/scripted", "autoupdate": False,
        "share": "disabled", "lsp": False, "formatter": False, "permission": "allow",
        "enabled_providers": ["scripted"],
        "provider": {"scripted": provider | {"models": {"scripted": offered}}},
        "mcp": {"desk": {"type": "local", "command": [DESK["command"], *DESK["args"]]}},
    }  # fmt: skip
    (machine.repo / "opencode.json").write_text(json.dumps(config))
    plugins = machine.repo / ".opencode" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "aftercall.js").write_text(plugin_text("opencode.js"))
    away = {
        f"OPENCODE_DISABLE_{name}": "1" for name in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD")
    }
    machine.run(
        ["opencode", "run", "--format", "json", PROMPT],
        machine.environ(AFTERCALL_URL=machine.service, **away),
    )


def _settings(machine: Machine, client: str, events: tuple[str, ...], auth: str) -> Json:
    command = {"type": "command", "command": machine.hook(client), "timeout": 10_000}
    return {
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "security": {"auth": {"selectedType": auth}},
        "mcpServers": {"desk": DESK},
        "hooks": {each: [{"hooks": [command]}] for each in events},
    }


def _run_gemini(machine: Machine, model: ScriptedModel) -> None:
    events = ("BeforeTool", "AfterTool", "SessionEnd")
    settings = _settings(machine, "gemini", events, "gemini-api-key")
    machine.write(".gemini/settings.json", settings)
    words = ["gemini", "-m", "gemini-2.5-flash", "-p", PROMPT, "--yolo", "--output-format"]
    environ = machine.environ(
        GEMINI_API_KEY="none", GOOGLE_GEMINI_BASE_URL=model.url, GEMINI_CLI_TRUST_WORKSPACE="true"
    )
    machine.run([*words, "stream-json"], environ)


def _run_qwen(machine: Machine, model: ScriptedModel) -> None:
    events = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "SessionEnd")
    machine.write(".qwen/settings.json", _settings(machine, "qwen", events, "openai"))
    environ = machine.environ(
        OPENAI_API_KEY="none", OPENAI_BASE_URL=f"{model.url}/v1", OPENAI_MODEL="scripted"
    )
    words = ["qwen", "-p", PROMPT, "--yolo", "--output-format", "stream-json"]
    machine.run(words, environ)


def _run_cline(machine: Machine, model: ScriptedModel) -> None:
    folder = machine.home / ".cline"
    for event in ("PreToolUse", "PostToolUse", "TaskComplete"):
        hook = machine.write(f".cline/hooks/{event}", f"#!/bin/sh\nexec {machine.hook('cline')}\n")
        hook.chmod(0o755)
    machine.write(".cline/data/settings/cline_mcp_settings.json", {"mcpServers": {"desk": DESK}})
    environ = machine.environ(
        CLINE_DIR=str(folder), CLINE_DATA_DIR=str(folder / "data"), CLINE_NO_AUTO_UPDATE="1",
        CLINE_TELEMETRY_DISABLED="1", OTEL_SDK_DISABLED="true", HTTP_PROXY="http://127.0.0.1:9",
        HTTPS_PROXY="http://127.0.0.1:9", NO_PROXY="127.0.0.1,localhost",
    )  # fmt: skip
    login = ["cline", "auth", "-p", "openai", "-k", "none", "-m", "scripted", "-b"]
    machine.run([*login, f"{model.url}/v1"], environ)
    machine.run(["cline", "--json", "--hooks-dir", str(folder / "hooks"), PROMPT], environ)
    time.sleep(0.5)  # its hub writes the last line after the process has ended
    machine.end_left_over()


RUNS: dict[str, Callable[[Machine, ScriptedModel], None]] = {
    "codex": _run_codex,
    "opencode": _run_opencode,
    "gemini": _run_gemini,
    "qwen": _run_qwen,
    "cline": _run_cline,
}


def remove(machine: Machine) -> None:
    """Remove a home and its repository."""
    shutil.rmtree(machine.home.parent, ignore_errors=True)
