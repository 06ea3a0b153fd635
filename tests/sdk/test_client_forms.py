"""`aftercall install` for each client: its own form of file, and its hooks, there and back."""

import argparse
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from aftercall.cli.client_files import known_clients, read_content
from aftercall.cli.entries import unwrap_servers, wrap_servers
from aftercall.cli.hook_files import installed_hooks
from aftercall.cli.install import install, uninstall
from aftercall.plugins import plugin_text

RUN = ["/opt/aftercall/bin/aftercall"]
CODEX = """# mine
model = "gpt-5"   # the large one

[mcp_servers.docs]  # local
command = "npx"
args = ["-y", "docs-server"]
env = { "TOKEN" = "t" }

[mcp_servers.far]
url = "https://far.example/mcp"
http_headers = { "X-Key" = "k" }   # rotates

[mcp_servers.login]
url = "https://login.example/mcp"
bearer_token_env_var = "LOGIN"

[tui]
theme = "dark"
"""
GOOSE = """# goose
extensions:
  developer:
    type: builtin
    enabled: true   # always
  docs:
    type: stdio
    cmd: npx
    args:
      - -y
      - docs-server
    envs: {TOKEN: t}
    timeout: 300
  far:
    type: streamable_http
    uri: https://far.example/mcp
    headers:
      X-Key: "k"
GOOSE_MODEL: large
"""
CONTINUE = """name: mine  # my own
mcpServers:
  - name: docs
    command: npx
    args:
      - "-y"
      - docs-server
    env:
      TOKEN: t
  - name: far
    type: streamable-http
    url: https://far.example/mcp
"""
REMOTE = {"headers": {"X-Key": "k"}}
FAR = "https://far.example/mcp"
DOCS: dict[str, Any] = {"command": "npx", "args": ["-y", "docs-server"], "env": {"TOKEN": "t"}}
OPENCODE = """{
  // mine
  "$schema": "https://opencode.ai/config.json",
  "mcp": {
    "docs": {
      "type": "local", "command": ["npx", "-y", "docs-server"], "environment": {"TOKEN": "t"}
    },
    "far": {"type": "remote", "url": "https://far.example/mcp", "headers": {"X-Key": "k"}},
  },
}
"""


def as_json(key: str, **servers: Any) -> str:
    """A file of JSON with servers under a key."""
    return json.dumps({"theme": "x", key: servers}, indent=2) + "\n"


FILES = {
    "claude-code": (".claude.json", as_json("mcpServers", docs=DOCS, far={"url": FAR, **REMOTE})),
    "cursor": (".cursor/mcp.json", as_json("mcpServers", docs=DOCS)),
    "codex": (".codex/config.toml", CODEX),
    "gemini": (
        ".gemini/settings.json",
        as_json("mcpServers", docs=DOCS, far={"httpUrl": FAR, "timeout": 5000, **REMOTE}),
    ),
    "qwen": (".qwen/settings.json", as_json("mcpServers", docs=DOCS)),
    "copilot": (
        ".copilot/mcp-config.json",
        as_json("mcpServers", docs={"type": "local", "tools": ["*"], **DOCS}),
    ),
    "opencode": (".config/opencode/opencode.json", OPENCODE),
    "windsurf": (
        ".codeium/windsurf/mcp_config.json",
        as_json("mcpServers", far={"serverUrl": FAR, **REMOTE}),
    ),
    "zed": (
        ".config/zed/settings.json",
        as_json(
            "context_servers",
            docs={"source": "custom", **DOCS},
            old={"command": {"path": "npx", "args": ["-y", "old"], "env": {}}},
        ),
    ),
    "cline": (
        ".cline/data/settings/cline_mcp_settings.json",
        as_json("mcpServers", far={"type": "streamableHttp", "url": FAR, **REMOTE, "timeout": 60}),
    ),
    "roo": (
        ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        as_json("mcpServers", docs=DOCS | {"alwaysAllow": ["a"]}),
    ),
    "continue": (".continue/config.yaml", CONTINUE),
    "goose": (".config/goose/config.yaml", GOOSE),
    "amp": (".config/amp/settings.json", as_json("amp.mcpServers", docs=DOCS)),
    "vscode": (
        ".config/Code/User/settings.json",
        json.dumps({"editor.tabSize": 2, "mcp": {"servers": {"docs": DOCS}}}, indent=4),
    ),
}
HOOKED = [name for name, told in known_clients().items() if told.hooks is not None]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, where no variable says otherwise."""
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("CLINE_DATA_DIR", "AFTERCALL_URL", "AFTERCALL_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr("sys.platform", "linux")
    return tmp_path / "home"


def do(client: str, *words: str, is_install: bool = True) -> int:
    """Run the command without a question."""
    command = install if is_install else uninstall
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args(["--client", client, "--yes", *words]))


def everything(folder: Path) -> dict[str, bytes]:
    """All files below a folder but the copies."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in files
        if not path.name.endswith(".before-aftercall")
    }


def put(client: str, home: Path) -> Path:
    """A client's file in the home."""
    place, text = FILES[client]
    path = home / place
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("client", FILES)
def test_install_and_uninstall_leave_every_byte(client: str, home: Path, capsys: Any) -> None:
    """Servers are wrapped and hooks written; afterwards nothing of them is left."""
    path = put(client, home)
    if client == "claude-code":
        (home / ".claude").mkdir()
    before = everything(home)
    assert do(client) == 0
    shown = capsys.readouterr().out
    assert str(path) in shown
    text = path.read_text()
    assert "gateway" in text
    assert "--server" in text
    assert (client in HOOKED) == any(
        f"hook {client}" in content.decode() or "hooks/opencode" in content.decode()
        for content in everything(home).values()
    )
    assert do(client) == 0  # again changes nothing more
    assert path.read_text() == text
    assert do(client, is_install=False) == 0
    assert everything(home) == before


@pytest.mark.parametrize("client", FILES)
def test_a_dry_run_shows_and_changes_nothing(client: str, home: Path, capsys: Any) -> None:
    put(client, home)
    before = everything(home)
    assert do(client, "--dry-run") == 0
    assert "+ " in capsys.readouterr().out
    assert everything(home) == before


def changed(client: str) -> Any:
    """What stands in a client's file behind the gateway, as plain values."""
    place, text = FILES[client]
    told = known_clients()[client]
    content = read_content(text, Path(place).suffix)
    made, _ = wrap_servers(content, RUN, keys=told.keys, form=told.form)
    return json.loads(json.dumps(made))


def test_each_form_is_kept() -> None:
    """What is started changes, in the client's own words."""
    behind = ["gateway", "--server", "docs", "--", "npx", "-y", "docs-server"]
    codex = changed("codex")["mcp_servers"]
    assert codex["docs"] == {"command": RUN[0], "args": behind, "env": {"TOKEN": "t"}}
    assert codex["far"]["args"][-2:] == ["--url", FAR]
    assert codex["far"]["env"] == {"X-Key": "k"}
    assert codex["login"]["url"] == "https://login.example/mcp"
    opencode = changed("opencode")["mcp"]
    assert opencode["docs"]["command"] == [*RUN, *behind]
    assert opencode["docs"]["environment"] == {"TOKEN": "t"}
    assert opencode["far"]["type"] == "local"
    assert "url" not in opencode["far"]
    goose = changed("goose")["extensions"]
    assert goose["docs"]["cmd"] == RUN[0]
    assert goose["far"]["type"] == "stdio"
    assert goose["far"]["envs"] == {"X-Key": "k"}
    assert goose["developer"] == {"type": "builtin", "enabled": True}
    zed = changed("zed")["context_servers"]
    assert zed["old"]["command"]["path"] == RUN[0]
    assert zed["old"]["command"]["args"][-3:] == ["npx", "-y", "old"]
    far = changed("windsurf")["mcpServers"]["far"]
    assert "--url-key" in far["args"]
    [first, second] = changed("continue")["mcpServers"]
    assert first["args"] == behind
    assert second["url"] == FAR


@pytest.mark.parametrize("client", ["codex", "goose", "continue"])
def test_comments_stay_where_the_format_has_them(client: str, home: Path) -> None:
    path = put(client, home)
    do(client)
    text = path.read_text()
    comments = [line.partition("#")[2] for line in FILES[client][1].splitlines() if "#" in line]
    assert comments
    kept = [each for each in comments if each in text]
    assert len(kept) >= len(comments) - 1  # one stood behind a value that is another now
    read: Any = tomllib.loads(text) if client == "codex" else yaml.safe_load(text)
    assert read


@pytest.mark.parametrize("client", FILES)
def test_what_was_changed_since_stays(client: str, home: Path) -> None:
    """A change of the user's own is kept, without the gateway."""
    path = put(client, home)
    do(client)
    mark = {".toml": "\n[mine]\nkept = 1\n", ".yaml": "mine: kept\n"}.get(path.suffix)
    if mark is None:
        content = json.loads(path.read_text()) | {"mine": "kept"}
        path.write_text(json.dumps(content))
    else:
        path.write_text(path.read_text() + mark)
    do(client, is_install=False)
    text = path.read_text()
    told = known_clients()[client]
    content = read_content(text, path.suffix)
    assert "mine" in content
    assert "gateway" not in text
    assert unwrap_servers(content, keys=told.keys, form=told.form)[0] == content
    before = read_content(FILES[client][1], path.suffix)
    assert {key: value for key, value in content.items() if key != "mine"} == before


def test_what_cannot_be_wrapped_is_named_with_its_reason() -> None:
    entries = {
        "sse": {"type": "sse", "url": "http://127.0.0.1:9/sse"},
        "socket": {"type": "http", "url": "unix:///run/x.sock"},
        "login": {"url": "https://login.example/mcp"},
        "keyed": {"url": "https://x.example/mcp?key=abcdefgh", "headers": {"A": "b"}},
        "builtin": {"type": "builtin", "enabled": True},
        "own": {"command": "aftercall", "args": ["mcp"]},
        "text": {"command": "npx", "args": "-y docs"},
    }
    _, lines = wrap_servers({"mcpServers": entries}, RUN)
    words = ("SSE", "HTTP", "login", "parameters", "neither", "own", "list")
    for line, name, word in zip(lines, entries, words, strict=True):
        assert line.startswith(f"  {name}: left as it is: ")
        assert word in line


def test_hooks_stand_beside_those_of_the_user(home: Path) -> None:
    path = home / ".gemini/settings.json"
    path.parent.mkdir(parents=True)
    own = {"matcher": "x", "hooks": [{"type": "command", "command": "mine hook"}]}
    before = json.dumps({"hooks": {"BeforeTool": [own]}}, indent=2)
    path.write_text(before)
    assert do("gemini") == 0
    groups = json.loads(path.read_text())["hooks"]
    assert groups["BeforeTool"][0] == own
    assert " hook gemini" in groups["BeforeTool"][1]["hooks"][0]["command"]
    assert do("gemini", is_install=False) == 0
    assert path.read_text() == before


def test_servers_with_a_gateway_are_left_to_it(home: Path) -> None:
    """A call is not recorded twice."""
    put("codex", home)
    do("codex", "--mode", "advise")
    text = (home / ".codex/hooks.json").read_text()
    command = json.loads(text)["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
    assert command.endswith("hook codex --mode advise --except docs --except far")


def test_hooks_can_be_left_alone(home: Path) -> None:
    put("codex", home)
    assert do("codex", "--no-hooks") == 0
    assert not (home / ".codex/hooks.json").exists()


def test_a_client_without_servers_gets_its_hooks(home: Path, capsys: Any) -> None:
    (home / ".codex").mkdir(parents=True)
    assert do("codex") == 0
    assert "trust" in capsys.readouterr().out
    [(name, note)] = installed_hooks()
    assert name == "codex"
    assert "trust" in note
    assert (home / ".codex/hooks.json").exists()
    assert do("codex", is_install=False) == 0
    assert everything(home) == {}


def test_a_foreign_plug_in_of_the_name_stays(home: Path) -> None:
    put("opencode", home)
    plugin = home / ".config/opencode/plugins/aftercall.js"
    plugin.parent.mkdir()
    plugin.write_text("// somebody's own\n")
    do("opencode")
    assert plugin.read_text() == "// somebody's own\n"
    plugin.write_text(plugin_text("opencode.js"))
    do("opencode", is_install=False)
    assert not plugin.exists()
