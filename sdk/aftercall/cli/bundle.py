"""`aftercall bundle KIND PLACE`: what coding agents and registries take, made as files.

- `claude-plugin`: a folder that Claude Code installs: hooks, the MCP server, the skill, and a
  marketplace that lists the one plug-in.
- `skill`: the folder `aftercall` with `SKILL.md`, which shows an agent when to ask.
- `server-json`: the description of the MCP server for the MCP registry.

Nothing is sent anywhere. Anything that is there already and differs is left alone, unless
`--replace` is given.
"""

import argparse
import json
import re
from collections.abc import Callable, Mapping
from importlib.metadata import requires, version
from pathlib import Path
from typing import Any

from aftercall.cli.client_files import known_clients
from aftercall.cli.frame import Command
from aftercall.cli.hook_files import add_hooks
from aftercall.client.transport import checked_base_url
from aftercall.errors import ConfigurationError
from aftercall.files import replace_file
from aftercall.plugins import plugin_text

NAME = "aftercall"
SERVER_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
_CLIENT = "claude-code"
_TITLE = "Aftercall"
_OWNER = {"name": "Aftercall"}
_DESCRIPTION = "Memory of tool calls: repairs failed ones, knows tools, names the fittest."
"""Of at most 100 characters, as the MCP registry has it."""
_KEYWORDS = ["mcp", "tool-calls", "repair", "memory", "reliability"]
_SERVER_NAME = re.compile(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+")
"""Reverse DNS, a slash, the server: the registry's schema."""
_EXTRA = re.compile(r"([^;]+);\s*extra\s*==\s*['\"]mcp['\"]")


def plugin_files(program: str, service: str | None) -> dict[str, str]:
    """Return the files of the plug-in for Claude Code by their paths in its folder.

    Args:
        program: what starts Aftercall on the machine that installs the plug-in.
        service: the address of the service; None for the usual one, or `AFTERCALL_URL`.
    """
    more = ["--service", service] if service else []
    hooks = known_clients()[_CLIENT].hooks
    if hooks is None:
        raise ConfigurationError(f"{_CLIENT} has no hooks")
    settings, _ = add_hooks({}, hooks, [program, "hook", _CLIENT, *more])
    server = {"command": program, "args": ["mcp", *more]}
    about = {"name": NAME, "description": _DESCRIPTION}
    manifest = {**about, "version": version(NAME), "author": _OWNER, "keywords": _KEYWORDS}
    market = {"name": NAME, "owner": _OWNER, "plugins": [{**about, "source": "./"}]}
    return {
        ".claude-plugin/plugin.json": _write_json(manifest),
        ".claude-plugin/marketplace.json": _write_json(market),
        "hooks/hooks.json": _write_json({"description": _DESCRIPTION, **settings}),
        ".mcp.json": _write_json({"mcpServers": {NAME: server}}),
        f"skills/{NAME}/SKILL.md": skill_text(),
    }


def skill_text() -> str:
    """Return the skill: when an agent asks, and what it never does."""
    return plugin_text("SKILL.md").replace("{version}", version(NAME))


def server_json(
    name: str, *, package: str | None, remote: str | None, repository: str | None
) -> dict[str, Any]:
    """Return the description of the MCP server for the registry.

    Args:
        name: in reverse DNS, such as `io.github.owner/aftercall`.
        package: its name on PyPI; None where it is not published there.
        remote: the address of a service's `/mcp`; None for no address of its own.
        repository: the address of the source.

    Raises `ConfigurationError` for a name of another form, and where nothing could be started.
    """
    if not _SERVER_NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name} is no name of the MCP registry: it is reverse DNS, a slash and a name, such "
            "as io.github.OWNER/aftercall"
        )
    if package is None and remote is None:
        raise ConfigurationError(
            "nothing could be started: name the package on PyPI (--package) or the address of a "
            "service (--remote)"
        )
    described: dict[str, Any] = {
        "$schema": SERVER_SCHEMA,
        "name": name,
        "title": _TITLE,
        "description": _DESCRIPTION,
        "version": version(NAME),
    }
    if repository is not None:
        source = "gitlab" if "gitlab" in repository else "github"
        described["repository"] = {"url": repository, "source": source}
    if package is not None:
        described["packages"] = [_package_entry(package)]
    if remote is not None:
        key = {
            "name": "Authorization",
            "description": "Bearer and a key of the service, where it has keys",
            "isSecret": True,
        }
        url = str(checked_base_url(remote))
        described["remotes"] = [{"type": "streamable-http", "url": url, "headers": [key]}]
    return described


def _package_entry(package: str) -> dict[str, Any]:
    return {
        "registryType": "pypi",
        "identifier": package,
        "version": version(NAME),
        "runtimeHint": "uvx",
        "runtimeArguments": [
            {"type": "named", "name": "--with", "value": each} for each in _needed_for_mcp()
        ],
        "packageArguments": [{"type": "positional", "value": "mcp"}],
        "transport": {"type": "stdio"},
        "environmentVariables": [
            {
                "name": "AFTERCALL_URL",
                "description": "Where the service is",
                "default": "http://127.0.0.1:8799",
            },
            {
                "name": "AFTERCALL_API_KEY",
                "description": "A key of the service, where it has keys",
                "isSecret": True,
            },
        ],
    }


def _needed_for_mcp() -> list[str]:
    """Return what `aftercall mcp` needs next to the package, as it states itself."""
    found = map(_EXTRA.fullmatch, requires(NAME) or ())
    return [each[1].strip() for each in found if each]


def _write_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _write_files(folder: Path, contents: Mapping[str, str], *, is_replaced: bool) -> None:
    paths = {folder / name: text for name, text in contents.items()}
    for path, text in paths.items():
        is_other = path.exists() and path.read_text(encoding="utf-8") != text
        if is_other and not is_replaced:
            raise ConfigurationError(f"{path} is there and differs; --replace writes over it")
    for path, text in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode(), mode=0o644)
        print(path)


def _file_contents(args: argparse.Namespace) -> dict[str, str]:
    service = str(checked_base_url(args.service)).rstrip("/") if args.service else None
    if args.kind == "claude-plugin":
        return plugin_files(args.program, service)
    if args.kind == "skill":
        return {f"{NAME}/SKILL.md": skill_text()}
    if args.name is None:
        raise ConfigurationError("the registry wants a name: --name io.github.OWNER/aftercall")
    described = server_json(
        args.name, package=args.package, remote=args.remote, repository=args.repository
    )
    return {"server.json": _write_json(described)}


_NEXT: Mapping[str, Callable[[Path], str]] = {
    "claude-plugin": lambda folder: (
        f"install it in Claude Code: /plugin marketplace add {folder.resolve()}, then "
        f"/plugin install {NAME}@{NAME}; beside it, `aftercall install` takes --no-hooks"
    ),
    "skill": lambda _: "an agent finds it in its folder of skills, such as ~/.claude/skills",
    "server-json": lambda _: (
        "`mcp-publisher publish` sends it to the registry; for a package, its README on PyPI has "
        "to hold the line `mcp-name: NAME`"
    ),
}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=tuple(_NEXT), help="what is made")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where it is put")
    parser.add_argument("--replace", action="store_true", help="write over files that differ")
    plugin = parser.add_argument_group("claude-plugin")
    plugin.add_argument(
        "--program", default=NAME, metavar="PATH", help="what starts Aftercall there (%(default)s)"
    )
    plugin.add_argument("--service", metavar="URL", help="where the service is")
    registry = parser.add_argument_group("server-json")
    registry.add_argument("--name", help="such as io.github.OWNER/aftercall")
    registry.add_argument("--package", metavar="NAME", help="its name on PyPI")
    registry.add_argument("--remote", metavar="URL", help="the address of a service's /mcp")
    registry.add_argument("--repository", metavar="URL", help="where the source is")


def _run_command(args: argparse.Namespace) -> int:
    _write_files(args.folder, _file_contents(args), is_replaced=args.replace)
    print(_NEXT[args.kind](args.folder))
    return 0


command = Command(
    "bundle",
    "make a plug-in for Claude Code, a skill, or a server.json",
    _add_arguments,
    _run_command,
)
