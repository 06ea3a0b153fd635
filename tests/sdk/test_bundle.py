"""`aftercall bundle`: a plug-in for Claude Code, a skill, a `server.json`, in published forms.

The forms are copies by hand (`tests.sdk.published_forms`).
"""

import json
import shlex
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from aftercall.cli import main
from aftercall.cli.bundle import plugin_files, server_json, skill_text
from aftercall.cli.client_files import known_clients
from aftercall.errors import ConfigurationError
from tests.sdk import published_forms as forms

PLUGIN_FILES = {
    ".claude-plugin/plugin.json": forms.PLUGIN,
    ".claude-plugin/marketplace.json": forms.MARKETPLACE,
    "hooks/hooks.json": forms.HOOKS,
    ".mcp.json": forms.MCP_SERVERS,
}


def check_form(value: Any, schema: forms.Schema) -> None:
    """Fail with the first fault of a value."""
    jsonschema_rs.validator_for(schema, validate_formats=True).validate(value)


def front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Return the head of a skill and its words."""
    _, head, body = text.split("---\n", 2)
    return yaml.safe_load(head), body


def test_the_plugin_has_the_published_form(tmp_path: Path) -> None:
    """Each of its files, at the place where Claude Code looks for it; and no file more."""
    assert main(["bundle", "claude-plugin", str(tmp_path)]) == 0
    made = {str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*") if each.is_file()}
    assert made == {*PLUGIN_FILES, "skills/aftercall/SKILL.md"}
    for name, schema in PLUGIN_FILES.items():
        check_form(json.loads((tmp_path / name).read_text()), schema)


def test_the_plugins_commands_are_commands_of_ours() -> None:
    """Hooks at the events that `install` writes, and a server that `aftercall mcp` is."""
    made = plugin_files("/opt/my tools/aftercall", "http://127.0.0.1:9000")
    hooks = json.loads(made["hooks/hooks.json"])["hooks"]
    told = known_clients()["claude-code"].hooks
    assert told is not None
    assert list(hooks) == list(told.events)
    lines = {each["command"] for [group] in hooks.values() for each in group["hooks"]}
    words = ["/opt/my tools/aftercall", "hook", "claude-code", "--service", "http://127.0.0.1:9000"]
    assert [shlex.split(line) for line in lines] == [words]
    [server] = json.loads(made[".mcp.json"])["mcpServers"].values()
    assert server == {"command": words[0], "args": ["mcp", *words[3:]]}


def test_the_skill_has_the_published_form_and_names_tools_that_there_are(tmp_path: Path) -> None:
    """Its name is its folder's; each of the MCP server's tools has its moment."""
    assert main(["bundle", "skill", str(tmp_path)]) == 0
    text = (tmp_path / "aftercall" / "SKILL.md").read_text()
    assert text == skill_text()
    head, body = front_matter(text)
    check_form(head, forms.SKILL)
    assert head["name"] == "aftercall"
    assert len(body.splitlines()) < 500
    told = (files("aftercall.mcp_server") / "tools.toml").read_text(encoding="utf-8")
    for tool in tomllib.loads(told)["tools"]:
        assert f"`{tool}`" in body


@pytest.mark.parametrize(
    "more",
    [
        ["--package", "aftercall", "--repository", "https://github.com/owner/aftercall"],
        ["--remote", "https://memory.example/mcp"],
    ],
)
def test_server_json_has_the_published_form(tmp_path: Path, more: list[str]) -> None:
    """As a package that uvx starts, or as a service that is there."""
    words = ["bundle", "server-json", str(tmp_path), "--name", "io.github.owner/aftercall", *more]
    assert main(words) == 0
    described = json.loads((tmp_path / "server.json").read_text())
    check_form(described, forms.SERVER_JSON)
    for package in described.get("packages", ()):
        assert [each["value"] for each in package["packageArguments"]] == ["mcp"]
        assert package["runtimeArguments"][0]["value"].startswith("mcp")


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ({"name": "aftercall", "description": "x", "version": "1"}, forms.SERVER_JSON),
        ({"name": "a/b", "description": "x" * 101, "version": "1"}, forms.SERVER_JSON),
        ({"name": "After Call"}, forms.PLUGIN),
        ({"hooks": {"BeforeTool": []}}, forms.HOOKS),
        ({"name": "-x", "description": "x"}, forms.SKILL),
    ],
)
def test_the_copied_forms_refuse_what_the_published_ones_refuse(
    value: Any, schema: forms.Schema
) -> None:
    """A check that passes everything proves nothing."""
    with pytest.raises(jsonschema_rs.ValidationError):
        check_form(value, schema)


def test_what_is_missing_or_wrong_is_said_with_its_cure() -> None:
    """A name of another form, and nothing that could be started."""
    with pytest.raises(ConfigurationError, match="reverse DNS"):
        server_json("aftercall", package="aftercall", remote=None, repository=None)
    with pytest.raises(ConfigurationError, match="--package"):
        server_json("io.github.o/a", package=None, remote=None, repository=None)


def test_files_that_differ_are_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of them, until a person says otherwise; the same again is no difference."""
    own = tmp_path / ".mcp.json"
    own.write_text("{}")
    assert main(["bundle", "claude-plugin", str(tmp_path)]) == 1
    assert "--replace writes over it" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == [".mcp.json"]
    assert main(["bundle", "claude-plugin", str(tmp_path), "--replace"]) == 0
    assert main(["bundle", "claude-plugin", str(tmp_path)]) == 0
