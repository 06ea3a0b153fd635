"""`aftercall install` and `uninstall`: the gateway in front of the servers of a client's own file.

Each server keeps its entry, name and environment, and the client's variables (`${input:token}`);
only what is started changes, so the names of its tools stay as they were:

    {"command": "npx", "args": ["-y", "some-server"]}
    {"command": ".../aftercall", "args": ["gateway", "--server", "some", "--", "npx", "-y", ...]}

All that is needed to undo it stands in the entry itself. The text is changed in these places alone:
comments, order and whatever else stands in the file stay. A server at an address becomes one that
is started, and its headers are the gateway's environment, from where it sends them.
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from aftercall.cli import Command, one_line
from aftercall.errors import ConfigurationError
from aftercall.explain import how_to_install
from aftercall.files import replace_file
from aftercall.json_values import unique_members
from aftercall.redaction import DEFAULT_REDACTOR

MODES = ("repair", "advise", "shadow", "off")
_COPY = ".before-aftercall"
_KEYS = ("mcpServers", "servers")  # the latter is VS Code's
_HTTP = (None, "http", "streamable-http", "streamableHttp")
_LOCAL_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
_DECODER = json.JSONDecoder()
_STRING = r'"(?:[^"\\]|\\.)*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)
_SHOWN = 400
_NO_ARGS = ',"args": ['
"""How a list of arguments begins where there was none; no formatter writes it so."""


def client_files(
    client: str, platform: str = sys.platform, environ: Mapping[str, str] = os.environ
) -> list[Path]:
    """Where a client keeps its servers, the user's file first; a path stands for itself."""
    home, here = Path.home(), Path.cwd()
    if platform == "darwin":
        settings = home / "Library/Application Support"
    elif platform == "win32":
        settings = Path(environ.get("APPDATA") or home / "AppData/Roaming")
    else:
        settings = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
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
    found = [path for path in known[client] if path.is_file()]
    if not found:
        places = " and ".join(map(str, known[client]))
        raise ConfigurationError(f"{client} has no configuration here: looked for {places}")
    return found


class _Member(NamedTuple):
    name: str
    name_at: int
    value_at: int
    end: int
    value: Any


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


@dataclass(slots=True)
class Changed:
    """A file's new text, and what was done: lines for people, without secrets."""

    text: str
    lines: list[str] = field(default_factory=list)


def wrapped(text: str, command: Sequence[str], more: Sequence[str] = ()) -> Changed:
    """A configuration with the gateway in front of each server that it can be in front of.

    `command` starts Aftercall, `more` are further options of the gateway. What is wrapped already
    is wrapped anew.

    Raises:
        ConfigurationError: the text cannot be read, or would not come back as it was.
    """
    bare = unwrapped(text).text
    run = [*command, "gateway"]
    changed = _with_each(bare, lambda plain, entry: _wrap(plain, entry, run, more))
    if unwrapped(changed.text).text != bare:
        raise ConfigurationError("it is written in a way that could not be undone; it stays")
    return changed


def unwrapped(text: str) -> Changed:
    """A configuration without the gateway; what was changed in it since stays changed."""
    return _with_each(text, _unwrap)


def _with_each(text: str, edit: Callable[[str, _Member], tuple[list[_Edit], str]]) -> Changed:
    plain = _plain(text)
    changed, edits = Changed(text), list[_Edit]()
    for entry in _entries(plain):
        made, note = edit(plain, entry)
        edits += made
        changed.lines += [f"  {one_line(entry.name)}{note}"] if note else []
    for start, end, new in sorted(edits, reverse=True):
        changed.text = changed.text[:start] + new + changed.text[end:]
    return changed


def _plain(text: str) -> str:
    """JSON with comments and last commas as JSON, with every character where it was."""

    def blank(found: re.Match[str]) -> str:
        return found[0] if found[0][0] == '"' else re.sub(r"\S", " ", found[0])

    plain = _LAST_COMMA.sub(blank, _COMMENT.sub(blank, text))
    try:
        content = json.loads(plain, object_pairs_hook=unique_members)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"cannot be read as JSON ({error}); nothing is changed") from error
    if not isinstance(content, dict):
        raise ConfigurationError("holds no JSON object; nothing is changed")
    return plain


def _entries(plain: str) -> Iterator[_Member]:
    """The servers' entries, also those that Claude Code keeps for each project."""
    for member in _members(plain, plain.index("{")):
        if member.name in _KEYS and isinstance(member.value, dict):
            yield from _objects(plain, member)
        if member.name == "projects" and isinstance(member.value, dict):
            for project in _objects(plain, member):
                for inner in _members(plain, project.value_at):
                    if inner.name == "mcpServers" and isinstance(inner.value, dict):
                        yield from _objects(plain, inner)


def _objects(plain: str, container: _Member) -> Iterator[_Member]:
    return (m for m in _members(plain, container.value_at) if isinstance(m.value, dict))


def _members(plain: str, start: int) -> Iterator[_Member]:
    at = _skip(plain, start + 1)
    while plain[at] != "}":
        name, end = _DECODER.raw_decode(plain, at)
        value_at = _skip(plain, plain.index(":", end) + 1)
        value, end = _DECODER.raw_decode(plain, value_at)
        yield _Member(name, at, value_at, end, value)
        at = _skip(plain, end)
        at = _skip(plain, at + 1) if plain[at] == "," else at


def _skip(plain: str, at: int) -> int:
    while plain[at].isspace():
        at += 1
    return at


def _wrap(
    plain: str, server: _Member, run: Sequence[str], more: Sequence[str]
) -> tuple[list[_Edit], str]:
    if reason := _not_wrapped(server.value):
        return [], f": left as it is: {reason}"
    entry = {each.name: each for each in _members(plain, server.value_at)}
    label = re.sub(r"[^A-Za-z0-9_.-]", "-", server.name)[:64].lstrip("_.-") or "server"
    before = [*run[1:], "--server", label, *more]
    if "command" in entry:
        command, args = entry["command"], entry.get("args")
        before += ["--"]
        # The command is written as it was: a name can be written in several ways.
        inner = f"{json.dumps(before)[1:-1]}, {plain[command.value_at : command.end]}"
        edits = [_Edit(command.value_at, command.end, json.dumps(run[0]))]
        if args is None:
            edits.append(_Edit(command.end, command.end, f"{_NO_ARGS}{inner}]"))
        else:
            inner += ", " if args.value else ""
            edits.append(_Edit(args.value_at + 1, args.value_at + 1, inner))
        old = [command.value, *(args.value if args else [])]
        return edits, _difference(old, [run[0], *before, *old])
    url, kind, headers = entry["url"], entry.get("type"), entry.get("headers")
    before += ["--type", kind.value] if kind else []
    for header in headers.value if headers else ():
        before += ["--header", header]
    words = f"{json.dumps([*before, '--url'])[:-1]}, {plain[url.value_at : url.end]}]"
    edits = [_Edit(url.name_at, url.end, f'"command": {json.dumps(run[0])}, "args": {words}')]
    if kind:
        edits.append(_Edit(kind.value_at, kind.end, '"stdio"'))
    if headers:
        edits.append(_Edit(headers.name_at, headers.name_at + len('"headers"'), '"env"'))
    return edits, _difference([url.value], [run[0], *before, "--url", url.value])


def _not_wrapped(value: dict[str, Any]) -> str | None:
    """Why the gateway cannot be in front of a server; None when it can."""
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
    is_open = bool(headers) or address.hostname in _LOCAL_HOSTS
    if not is_open or {"headersHelper", "oauth", "auth"} & value.keys():
        return "its login, if it has one, is the client's own, and would end there"
    return None


def _unwrap(plain: str, server: _Member) -> tuple[list[_Edit], str]:
    entry = {each.name: each for each in _members(plain, server.value_at)}
    command, args = entry.get("command"), entry.get("args")
    if command is None or args is None or not isinstance(args.value, list):
        return [], ""
    words = [command.value, *args.value]
    if not _is_ours(words):
        return [], ""
    if "--" in words:
        at = words.index("--")
        item, behind = _item(plain, args, at)
        edits = [_Edit(command.value_at, command.end, plain[item])]
        if len(words) == at + 2 and plain[command.end :].startswith(_NO_ARGS):
            edits.append(_Edit(command.end, args.end, ""))
        else:
            edits.append(_Edit(args.value_at + 1, behind, ""))
        return edits, _difference(words, words[at + 1 :])
    if "--url" not in words[:-1]:
        return [], ": left as it is: it does not say what it was before; see the copy"
    item, _ = _item(plain, args, words.index("--url"))
    edits = [_Edit(command.name_at, command.end, f'"url": {plain[item]}')]
    edits.append(_Edit(*_with_comma(list(entry.values()), args), ""))
    if "--type" in words[:-1] and "type" in entry:
        kind, was = entry["type"], words[words.index("--type") + 1]
        edits.append(_Edit(kind.value_at, kind.end, json.dumps(was)))
    if "--header" in words and "env" in entry:
        named = entry["env"].name_at
        edits.append(_Edit(named, named + len('"env"'), '"headers"'))
    return edits, _difference(words, [words[words.index("--url") + 1]])


def _is_ours(words: list[Any]) -> bool:
    if not all(isinstance(word, str) for word in words):
        return False
    by_module = words[1:3] == ["-m", "aftercall.cli"]
    start = 3 if by_module else 1
    ours = by_module or _program(words[0]) == "aftercall"
    return ours and words[start : start + 2] == ["gateway", "--server"]


def _program(command: object) -> str:
    return re.split(r"[/\\]", str(command))[-1].removesuffix(".exe")


def _item(plain: str, items: _Member, index: int) -> tuple[slice, int]:
    """An item of a list, and where the list goes on behind it and the comma that was set there."""
    at, item = items.value_at, slice(0)
    for _ in range(index + 1):
        start = _skip(plain, at + 1)
        item = slice(start, _DECODER.raw_decode(plain, start)[1])
        at = _skip(plain, item.stop)
    if plain[at] != ",":
        return item, item.stop
    return item, at + (2 if plain[at + 1] == " " else 1)


def _with_comma(members: list[_Member], member: _Member) -> tuple[int, int]:
    """Where a member is, with one comma beside it."""
    at = members.index(member)
    if at:
        return members[at - 1].end, member.end
    return member.name_at, members[1].name_at if len(members) > 1 else member.end


def _difference(old: Sequence[str], new: Sequence[str]) -> str:
    shown = (one_line(DEFAULT_REDACTOR.text(shlex.join(words)), _SHOWN) for words in (old, new))
    return "".join(f"\n    {sign} {line}" for sign, line in zip("-+", shown, strict=True))


def _own_command() -> list[str]:
    """What starts this Aftercall again, from wherever a client starts it.

    Raises:
        ConfigurationError: it could be gone tomorrow, or cannot be a gateway.
    """
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


def _install(args: argparse.Namespace) -> int:
    command = _own_command()
    more = ["--mode", args.mode] if args.mode else []
    return _change(args, lambda text: wrapped(text, command, more))


def _uninstall(args: argparse.Namespace) -> int:
    return _change(args, unwrapped)


def _change(args: argparse.Namespace, change: Callable[[str], Changed]) -> int:
    code = 0
    for path in client_files(args.client):
        try:
            code = max(code, _change_file(path.resolve(), change, args))
        except ConfigurationError as error:
            raise ConfigurationError(f"{path}: {error}") from error
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{path}: {error}; nothing is changed") from error
    return code


def _change_file(path: Path, change: Callable[[str], Changed], args: argparse.Namespace) -> int:
    before = path.read_bytes()
    mark = b"\xef\xbb\xbf" if before.startswith(b"\xef\xbb\xbf") else b""
    text = before[len(mark) :].decode()
    changed = change(text)
    print("\n".join([str(path), *changed.lines]))
    if changed.text == text:
        print("  nothing to change")
        return 0
    if args.dry_run:
        return 0
    if not args.yes and not _agrees():
        print("  nothing is changed")
        return 1
    if path.read_bytes() != before:
        raise ConfigurationError("it was changed meanwhile; nothing is done, run this again")
    copy = path.with_name(path.name + _COPY)
    if not copy.exists() or unwrapped(text).text == text:
        shutil.copy2(path, copy)
    replace_file(path, mark + changed.text.encode())
    print(f"  changed; as it was: {copy}. Restart the client")
    return 0


def _agrees() -> bool:
    if not sys.stdin.isatty():
        print("  say --yes to change it")
        return False
    return input("  change it? [y/N] ").strip().lower() in ("y", "yes")


install = Command(
    "install",
    "put the gateway in front of the MCP servers of a client",
    _add_install_arguments,
    _install,
)
uninstall = Command(
    "uninstall", "remove the gateway from the MCP servers of a client", _add_arguments, _uninstall
)
