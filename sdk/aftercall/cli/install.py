"""`aftercall install` and `uninstall`: the gateway in front of the servers of a client's own file.

Each server keeps its entry, name and environment, and the client's variables (`${input:token}`);
only what is started changes, so the names of its tools stay as they were:

    {"command": "npx", "args": ["-y", "some-server"]}
    {"command": ".../aftercall", "args": ["gateway", "--server", "some", "--", "npx", "-y", ...]}

All that is needed to undo it stands in the entry itself. A server at an address becomes one that
is started, and its headers are the gateway's environment, from where it sends them. The file is
written anew in its order and with its indentation, without comments: the copy has them, and is put
back where nothing else has changed since.
"""

import argparse
import importlib.util
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aftercall.cli import Command, one_line
from aftercall.cli.status import add_service
from aftercall.client.transport import checked_base_url
from aftercall.errors import ConfigurationError
from aftercall.explain import how_to_install
from aftercall.files import replace_file, user_folder
from aftercall.gateway.local_service import LOCAL_HOSTS
from aftercall.jsonc import read_jsonc
from aftercall.redaction import DEFAULT_REDACTOR
from aftercall.running import KEY_VARIABLE, URL_VARIABLE

MODES = ("repair", "advise", "shadow", "off")
_COPY = ".before-aftercall"
_KEYS = ("mcpServers", "servers")  # the latter is VS Code's
_HTTP = (None, "http", "streamable-http", "streamableHttp")
_SHOWN = 400
Content = dict[str, Any]
"""What stands in a file."""
Changed = tuple[Content, list[str]]
"""The new content, and what was done: lines for people, without secrets."""


def client_files(
    client: str, platform: str = sys.platform, environ: Mapping[str, str] = os.environ
) -> list[Path]:
    """Where a client keeps its servers, the user's file first; a path stands for itself."""
    home, here = Path.home(), Path.cwd()
    of_linux = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    settings = home / "Library/Application Support" if platform == "darwin" else of_linux
    of_claude = Path(environ.get("CLAUDE_CONFIG_DIR") or home)
    known = {
        "claude-desktop": [settings / "Claude/claude_desktop_config.json"],
        "claude-code": [of_claude / ".claude.json", here / ".mcp.json"],
        "cursor": [home / ".cursor/mcp.json", here / ".cursor/mcp.json"],
        "vscode": [settings / "Code/User/mcp.json", here / ".vscode/mcp.json"],
    }
    if client not in known:
        if not Path(client).is_file():
            raise ConfigurationError(f"{client} is no file, and none of {', '.join(known)}")
        return [Path(client)]
    if not (found := [path for path in known[client] if path.is_file()]):
        places = " and ".join(map(str, known[client]))
        raise ConfigurationError(f"{client} has no configuration here: looked for {places}")
    return found


def wrapped(content: Content, command: Sequence[str], more: Sequence[str] = ()) -> Changed:
    """A configuration with the gateway in front of each server that it can be in front of.

    `command` starts Aftercall, `more` are further options of the gateway. What is wrapped already
    is wrapped anew.
    """
    bare, _ = unwrapped(content)
    return _with_each(bare, lambda name, entry: _wrap(name, entry, [*command, "gateway"], more))


def unwrapped(content: Content) -> Changed:
    """A configuration without the gateway; what was changed in it since stays changed."""
    return _with_each(content, lambda _, entry: _unwrap(entry))


def _with_each(content: Content, edit: Callable[[str, Content], tuple[Content, str]]) -> Changed:
    changed, lines = deepcopy(content), []
    for servers in _servers(changed):
        for name, entry in servers.items():
            if isinstance(entry, dict):
                servers[name], note = edit(name, entry)
                lines += [f"  {one_line(name)}{note}"] if note else []
    return changed, lines


def _servers(content: Content) -> Iterator[Content]:
    """The servers, also those that Claude Code keeps for each project."""
    projects = content.get("projects")
    for owner in [content, *(projects.values() if isinstance(projects, dict) else ())]:
        for key in _KEYS:
            if isinstance(owner, dict) and isinstance(owner.get(key), dict):
                yield owner[key]


def read_content(text: str) -> Content:
    """The content of a file, whose JSON may hold comments and last commas."""
    try:
        content = read_jsonc(text)
    except ValueError as error:
        raise ConfigurationError(f"cannot be read as JSON ({error}); nothing is changed") from error
    if not isinstance(content, dict):
        raise ConfigurationError("holds no JSON object; nothing is changed")
    return content


def written(content: Content, like: str) -> str:
    """The text of a content, with the indentation and the line ends of another."""
    indent = re.search(r"\n([ \t]+)\S", like)
    text = json.dumps(content, indent=indent and indent[1], ensure_ascii=like.isascii())
    text += "\n" if like.endswith("\n") else ""
    return text.replace("\n", "\r\n") if "\r\n" in like else text


def _wrap(
    name: str, entry: Content, run: Sequence[str], more: Sequence[str]
) -> tuple[Content, str]:
    if reason := _not_wrapped(entry):
        return entry, f": left as it is: {reason}"
    label = re.sub(r"[^A-Za-z0-9_.-]", "-", name)[:64].lstrip("_.-") or "server"
    args = [*run[1:], "--server", label, *more]
    if "command" in entry:
        old = [entry["command"], *entry.get("args", [])]
        args += ["--", *old]
        return entry | {"command": run[0], "args": args}, _difference(old, [run[0], *args])
    args += ["--type", entry["type"]] if "type" in entry else []
    for header in entry.get("headers", {}):
        args += ["--header", header]
    args += ["--url", entry["url"]]
    started: dict[str, Content] = {
        "url": {"command": run[0], "args": args},
        "type": {"type": "stdio"},
        "headers": {"env": entry.get("headers")},
    }
    return _replaced(entry, started), _difference([entry["url"]], [run[0], *args])


def _replaced(entry: Content, members: Mapping[str, Content]) -> Content:
    made: Content = {}
    for name, value in entry.items():
        made |= members.get(name, {name: value})
    return made


def _not_wrapped(value: dict[str, Any]) -> str | None:
    command, args = value.get("command"), value.get("args", [])
    if not isinstance(command, str) or not command:
        return _not_reached(value)
    if _program(command) == "aftercall":
        return "it is Aftercall's own"
    if isinstance(args, list) and all(isinstance(word, str) for word in args):
        return None
    return "its args are no list of texts"


def _not_reached(value: dict[str, Any]) -> str | None:
    url, headers = value.get("url"), value.get("headers", {})
    if not isinstance(url, str) or "env" in value or not isinstance(headers, dict):
        return "it has neither a command nor an address alone"
    address = urlsplit(url)
    if value.get("type") not in _HTTP or address.path.rstrip("/").endswith("/sse"):
        return "it speaks SSE; the gateway speaks streamable HTTP"
    if address.query or address.username:
        return "its address holds parameters, which could be read in the list of processes"
    is_open = bool(headers) or address.hostname in LOCAL_HOSTS
    if not is_open or {"headersHelper", "oauth", "auth"} & value.keys():
        return "its login, if it has one, is the client's own, and would end there"
    return None


def _unwrap(entry: Content) -> tuple[Content, str]:
    args = entry.get("args")
    words = [entry.get("command"), *(args if isinstance(args, list) else [])]
    if not _is_ours(words):
        return entry, ""
    if "--" in words[:-1]:
        old = words[words.index("--") + 1 :]
        made = entry | {"command": old[0], "args": old[1:]}
        if not made["args"]:
            del made["args"]
        return made, _difference(words, old)
    given = dict(pairwise(words))
    if (url := given.get("--url")) is None:
        return entry, ": left as it is: it does not say what it was before; see the copy"
    before: dict[str, Content] = {"command": {"url": url}, "args": {}}
    if "--type" in given:
        before["type"] = {"type": given["--type"]}
    if "--header" in words:
        before["env"] = {"headers": entry.get("env")}
    return _replaced(entry, before), _difference(words, [url])


def _is_ours(words: list[Any]) -> bool:
    if not all(isinstance(word, str) for word in words):
        return False
    by_module = words[1:3] == ["-m", "aftercall.cli"]
    start = 3 if by_module else 1
    ours = by_module or _program(words[0]) == "aftercall"
    return ours and words[start : start + 2] == ["gateway", "--server"]


def _program(command: object) -> str:
    return re.split(r"[/\\]", str(command))[-1].removesuffix(".exe")


def _difference(old: Sequence[str], new: Sequence[str]) -> str:
    shown = (one_line(DEFAULT_REDACTOR.text(shlex.join(words)), _SHOWN) for words in (old, new))
    return "".join(f"\n    {sign} {line}" for sign, line in zip("-+", shown, strict=True))


def _own_command() -> list[str]:
    """What starts this Aftercall again, from wherever a client starts it."""
    if {".cache", "Caches"} & set(Path(sys.prefix).parts):
        raise ConfigurationError(
            "this Aftercall runs from a cache that may be emptied, and your servers with it: "
            "install it to stay, by `uv tool install` or `pipx install` from the repository"
        )
    if importlib.util.find_spec("fastmcp") is None:
        raise ConfigurationError(f"the gateway is not installed: {how_to_install('gateway')}")
    script = Path(sys.executable).with_name("aftercall")
    return [str(script)] if script.exists() else [sys.executable, "-m", "aftercall.cli"]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--client",
        required=True,
        metavar="CLIENT",
        help="claude-desktop, claude-code, cursor or vscode, or the path of a file like theirs",
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would be changed")
    parser.add_argument("--yes", action="store_true", help="change it without asking")


def _add_install_arguments(parser: argparse.ArgumentParser) -> None:
    _add_arguments(parser)
    parser.add_argument(
        "--mode",
        choices=MODES,
        help="how calls are handled: repaired (the default), advised on, or only watched",
    )
    add_service(parser, otherwise=f"{URL_VARIABLE}, or what the gateway finds or starts")
    parser.add_argument(
        "--key-file",
        type=Path,
        metavar="FILE",
        help="a file that holds the key of the service (default: one is made of AFTERCALL_API_KEY)",
    )


def _install(args: argparse.Namespace) -> int:
    command = _own_command()
    more = ["--mode", args.mode] if args.mode else []
    # Clients start servers without the variables of this shell.
    if service := args.service or os.environ.get(URL_VARIABLE):
        more += ["--service", str(checked_base_url(service)).rstrip("/")]
    key = os.environ.get(KEY_VARIABLE)
    kept_in = user_folder("XDG_CONFIG_HOME", ".config") / "api-key" if key else None
    if key_file := args.key_file or kept_in:
        more += ["--key-file", str(key_file.absolute())]
    code = _change(args, lambda content: wrapped(content, command, more))
    if key and kept_in is not None and key_file == kept_in and not code and not args.dry_run:
        kept_in.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(kept_in, key.encode(), mode=0o600)
        print(f"{KEY_VARIABLE} is kept in {kept_in}, which only you can read")
    return code


def _change(args: argparse.Namespace, change: Callable[[Content], Changed]) -> int:
    code = 0
    for path in client_files(args.client):
        try:
            code = max(code, _change_file(path.resolve(), change, args))
        except ConfigurationError as error:
            raise ConfigurationError(f"{path}: {error}") from error
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{path}: {error}; nothing is changed") from error
    return code


def _change_file(path: Path, change: Callable[[Content], Changed], args: argparse.Namespace) -> int:
    before = path.read_bytes()
    mark = b"\xef\xbb\xbf" if before.startswith(b"\xef\xbb\xbf") else b""
    text = before[len(mark) :].decode()
    content = read_content(text)
    changed, lines = change(content)
    print("\n".join([str(path), *lines]))
    if changed == content:
        print("  nothing to change")
        return 0
    if args.dry_run:
        return 0
    if not args.yes and not sys.stdin.isatty():
        print("  say --yes to change it")
    if not args.yes and (
        not sys.stdin.isatty() or input("  change it? [y/N] ").strip().lower() not in ("y", "yes")
    ):
        print("  nothing is changed")
        return 1
    if path.read_bytes() != before:
        raise ConfigurationError("it was changed meanwhile; nothing is done, run this again")
    copy = path.with_name(path.name + _COPY)
    if unwrapped(content)[0] == content or not copy.exists():
        shutil.copy2(path, copy)
    after = mark + written(changed, text).encode()
    replace_file(path, copy.read_bytes() if _is_as_before(changed, copy) else after)
    print(f"  changed; as it was: {copy}. Restart the client")
    return 0


def _is_as_before(changed: Content, copy: Path) -> bool:
    """Whether a copy says the same; one without arguments is one with none of them."""
    content = read_content(copy.read_text(encoding="utf-8-sig"))
    return unwrapped(wrapped(content, ["aftercall"])[0])[0] == changed


install = Command(
    "install",
    "put the gateway in front of the MCP servers of a client",
    _add_install_arguments,
    _install,
)
uninstall = Command(
    "uninstall",
    "remove the gateway from the MCP servers of a client",
    _add_arguments,
    lambda args: _change(args, unwrapped),
)
