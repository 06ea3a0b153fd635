"""`aftercall install`: copies of the clients' own files, wrapped and given back."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.cli.client_files import client_files, read_content, write_content
from aftercall.cli.entries import unwrap_servers, wrap_servers
from aftercall.cli.install import install, uninstall
from aftercall.errors import ConfigurationError

CLAUDE = "Claude/claude_desktop_config.json"
RUN = ["/opt/aftercall/bin/aftercall"]
TOKEN = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"

DESKTOP = json.dumps(
    {
        "globalShortcut": "",
        "mcpServers": {
            "filesystem": {
                "command": "npx",
                "args": ["-y", "@modelcontextprotocol/server-filesystem", "/Users/me/Desktop"],
            },
            "github": {"command": "docker", "args": ["run"], "env": {"GITHUB_TOKEN": TOKEN}},
            "my own": {"command": "/usr/local/bin/own"},
            "memory": {"command": "aftercall", "args": ["mcp"]},
        },
    },
    indent=2,
)
CODE = json.dumps(
    {
        "numStartups": 3,
        "projects": {
            "/home/me/work": {
                "allowedTools": [],
                "mcpServers": {"db": {"type": "stdio", "command": "db", "args": [], "env": {}}},
            },
            "/home/me/play": {"mcpServers": {}},
        },
        "mcpServers": {
            "wiki": {
                "type": "http",
                "url": "https://wiki.example/mcp",
                "headers": {"Authorization": f"Bearer {TOKEN}"},
            },
            "linear": {"type": "sse", "url": "https://mcp.linear.app/sse"},
            "notion": {"type": "http", "url": "https://mcp.notion.com/mcp"},
        },
    }
)
CURSOR = """{
\t"mcpServers": {
\t\t"local": {"url": "http://localhost:3000/mcp"},
\t\t"keyed": {"url": "https://x.example/mcp?key=abcdefgh"},
\t\t"py": {"command": "python", "args": ["${workspaceFolder}/s.py"], "envFile": ".env"}
\t}
}
"""
VSCODE = """{
  // Asked for once, kept by VS Code
  "inputs": [{"type": "promptString", "id": "key", "password": true, }],
  "servers": {
    "perplexity": { /* the "official" one */
      "type": "stdio",
      "command": "npx",
      "args": [ // in this order
        "-y", "server-perplexity-ask",
      ],
      "env": {"PERPLEXITY_API_KEY": "${input:key}"},
    },
    "gh": {"type": "http", "headers": {"X-Key": "${input:key}"}, "url": "https://gh.example/mcp"},
  },
}
"""
FILES = {"desktop": DESKTOP, "code": CODE, "cursor": CURSOR, "vscode": VSCODE}


def servers(content: dict[str, Any]) -> dict[str, Any]:
    """All entries of a file."""
    found = dict(content.get("mcpServers") or content["servers"])
    for project in content.get("projects", {}).values():
        found |= project["mcpServers"]
    return found


def read(client: str) -> dict[str, Any]:
    return read_content(FILES[client])


@pytest.mark.parametrize("client", FILES)
def test_what_is_wrapped_comes_back(client: str) -> None:
    """In its order; wrapping twice is wrapping once, and by another command wrapping anew."""
    content = read(client)
    changed, _ = wrap_servers(content, RUN)
    assert changed != content
    assert wrap_servers(changed, RUN)[0] == changed
    moved, before = (json.dumps(each) for each in (wrap_servers(changed, ["/new"])[0], changed))
    assert moved.count('"/new"') == before.count(f'"{RUN[0]}"') > 0
    back, _ = unwrap_servers(changed)
    bare = json.dumps(content).replace(', "args": []', "")
    assert json.dumps(back) == bare


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_file_is_written_as_it_was(ends: str) -> None:
    """With its indentation, its line ends and its last one."""
    for text in (DESKTOP, CODE, f"{DESKTOP}\n", DESKTOP.replace("  ", "\t")):
        assert write_content(read_content(text), text) == text
    with_ends = DESKTOP.replace("\n", ends)
    assert write_content(read_content(with_ends), with_ends) == with_ends


def test_an_entry_keeps_all_but_what_is_started() -> None:
    """Names, environments and the client's variables stay; the old command stands behind `--`."""
    entries = servers(wrap_servers(read("desktop"), RUN, ["--mode", "shadow"])[0])
    assert entries["github"] == {
        "command": RUN[0],
        "args": ["gateway", "--server", "github", "--mode", "shadow", "--", "docker", "run"],
        "env": {"GITHUB_TOKEN": TOKEN},
    }
    words = ["gateway", "--server", "my-own", "--mode", "shadow", "--", "/usr/local/bin/own"]
    assert entries["my own"]["args"] == words
    of_code = servers(wrap_servers(read("code"), RUN)[0])
    assert of_code["wiki"] == {
        "type": "stdio",
        "command": RUN[0],
        "args": [
            *["gateway", "--server", "wiki", "--type", "http", "--header", "Authorization"],
            *("--url", "https://wiki.example/mcp"),
        ],
        "env": {"Authorization": f"Bearer {TOKEN}"},
    }
    assert of_code["db"]["args"] == ["gateway", "--server", "db", "--", "db"]


@pytest.mark.parametrize(
    ("client", "name", "why"),
    [
        ("code", "linear", "speaks SSE"),
        ("code", "notion", "its login, if it has one, is the client's own"),
        ("cursor", "keyed", "its address holds parameters"),
        ("desktop", "memory", "Aftercall's own"),
    ],
)
def test_what_cannot_be_wrapped_is_left_and_said(client: str, name: str, why: str) -> None:
    """A server that would stop working behind the gateway stays as it is."""
    changed, lines = wrap_servers(read(client), RUN)
    assert servers(changed)[name] == servers(read(client))[name]
    [line] = [line for line in lines if line.startswith(f"  {name}: left as it is: ")]
    assert why in line


def test_what_the_user_changed_since_stays_changed() -> None:
    """Entries that were edited, added, removed or written anew by the client come back right."""
    content, _ = wrap_servers(read("desktop"), RUN)
    content["mcpServers"]["filesystem"]["args"].append("/Users/me/Music")
    content["mcpServers"]["new"] = {"command": "new"}
    content["mcpServers"]["github"]["env"]["GITHUB_HOST"] = "ghe.example"
    del content["mcpServers"]["my own"]
    back = servers(unwrap_servers(content)[0])
    expected = servers(read("desktop"))
    assert back["filesystem"]["args"] == [*expected["filesystem"]["args"], "/Users/me/Music"]
    assert back["github"]["env"] == {"GITHUB_TOKEN": TOKEN, "GITHUB_HOST": "ghe.example"}
    assert back["new"] == {"command": "new"}
    assert list(back) == ["filesystem", "github", "memory", "new"]


WORD = st.text(max_size=8)
ENTRY = st.fixed_dictionaries(
    {"command": st.text(min_size=1, max_size=8)},
    optional={"args": st.lists(WORD, max_size=3), "env": st.dictionaries(WORD, WORD, max_size=2)},
)


@given(entries=st.dictionaries(WORD, ENTRY, max_size=3), indent=st.sampled_from([None, 2, "\t"]))
def test_any_file_comes_back(entries: dict[str, Any], indent: Any) -> None:
    """Whatever commands, names and words there are, comment signs and quotes among them."""
    text = json.dumps({"mcpServers": entries}, indent=indent)
    assert read_content(text) == {"mcpServers": entries}
    changed, _ = wrap_servers(read_content(text), RUN)
    assert read_content(write_content(changed, text)) == changed
    for name, entry in changed["mcpServers"].items():
        old = entries[name]
        assert entry["args"][4:] == [old["command"], *old.get("args", [])]
    assert unwrap_servers(changed)[0]["mcpServers"] == {
        name: {key: each for key, each in entry.items() if each or key != "args"}
        for name, entry in entries.items()
    }


def command_line(name: str, *words: str) -> int:
    """As `aftercall` runs a command."""
    command = {each.name: each for each in (install, uninstall)}[name]
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    try:
        return command.run(parser.parse_args(words))
    except ConfigurationError as error:
        sys.stderr.write(f"{error}\n")
        return 1


def test_the_commands_show_keep_a_copy_and_undo(tmp_path: Path, capsys: Any) -> None:
    """`--dry-run` and a missing `--yes` change nothing; no secret is shown; all comes back."""
    file = tmp_path / "claude_desktop_config.json"
    text = DESKTOP.replace('"run"', f'"run", "--token", "{TOKEN}"').replace("{", "{ // mine", 1)
    file.write_text(text)
    file.chmod(0o600)
    link = tmp_path / "link.json"
    link.symlink_to(file)
    assert command_line("install", "--client", str(file), "--dry-run") == 0
    assert command_line("install", "--client", str(file)) == 1
    assert file.read_text() == text
    assert command_line("install", "--client", str(link), "--yes") == 0
    assert "gateway" in file.read_text()
    assert link.is_symlink()
    assert (tmp_path / "claude_desktop_config.json.before-aftercall").read_text() == text
    capsys.readouterr()
    assert command_line("install", "--client", str(file), "--yes") == 0
    again = capsys.readouterr().out.splitlines()
    assert (again[0], again[-1]) == (str(file), "  nothing to change")
    assert all(line.endswith("left as it is: it is Aftercall's own") for line in again[1:-1])
    assert command_line("uninstall", "--client", str(file), "--yes") == 0
    shown = capsys.readouterr().out
    assert file.read_text() == text
    assert file.stat().st_mode & 0o777 == 0o600
    assert "docker run" in shown
    assert TOKEN not in shown


def test_the_service_and_a_reference_to_the_key_stand_in_the_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients start servers without the variables of the shell; the key itself stands nowhere."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("AFTERCALL_URL", "http://127.0.0.1:9001/")
    file = tmp_path / "mcp.json"
    file.write_text(DESKTOP)

    def words() -> list[str]:
        args: list[str] = json.loads(file.read_text())["mcpServers"]["my own"]["args"]
        return args[3:]

    command_line("install", "--client", str(file), "--yes")
    assert words() == ["--service", "http://127.0.0.1:9001", "--", "/usr/local/bin/own"]
    monkeypatch.setenv("AFTERCALL_API_KEY", "ac_secret")
    key_file = tmp_path / "config" / "aftercall" / "api-key"
    given = ("--client", str(file), "--service", "https://team.example")
    command_line("install", *given, "--dry-run")
    assert not key_file.exists()
    command_line("install", *given, "--yes")
    assert words()[:4] == ["--service", "https://team.example", "--key-file", str(key_file)]
    assert "ac_secret" not in file.read_text()
    assert (key_file.read_text(), key_file.stat().st_mode & 0o777) == ("ac_secret", 0o600)
    command_line("uninstall", "--client", str(file), "--yes")
    assert file.read_text() == DESKTOP


@pytest.mark.parametrize(
    "content", ["", '{"mcpServers": {"a": {"command": "x"', "[]", '{"a": 1, "a": 2}', "\xff\xfe"]
)
def test_a_file_that_cannot_be_read_stays_as_it_is(
    tmp_path: Path, capsys: Any, content: str
) -> None:
    """Half-written, no object, twice the same key, another encoding: exit 1, no copy, no change."""
    file = tmp_path / "mcp.json"
    file.write_bytes(content.encode("latin-1"))
    assert command_line("install", "--client", str(file), "--yes") == 1
    assert file.read_bytes() == content.encode("latin-1")
    assert [each.name for each in tmp_path.iterdir()] == ["mcp.json"]
    assert str(file) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("client", "platform", "place"),
    [
        ("claude-desktop", "darwin", f"Library/Application Support/{CLAUDE}"),
        ("claude-desktop", "linux", f".config/{CLAUDE}"),
        ("claude-code", "linux", ".claude.json"),
        ("cursor", "darwin", ".cursor/mcp.json"),
        ("vscode", "darwin", "Library/Application Support/Code/User/mcp.json"),
        ("vscode", "linux", ".config/Code/User/mcp.json"),
    ],
)
def test_clients_keep_their_files_where_they_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str, platform: str, place: str
) -> None:
    """By system; a client without any is named with the places that were looked at."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="looked for"):
        client_files(client, platform, {})
    file = tmp_path / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{}")
    assert file in client_files(client, platform, {})
