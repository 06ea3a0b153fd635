"""An entry of an MCP client's configuration with the gateway in front of its server, and without.

Each server keeps its entry, name and environment, and the client's variables (`${input:token}`);
only what is started changes, so the names of its tools stay as they were:

    {"command": "npx", "args": ["-y", "some-server"]}
    {"command": ".../aftercall", "args": ["gateway", "--server", "some", "--", "npx", "-y", ...]}

All that is needed to undo it stands in the entry itself. A server at an address becomes one that
is started, and its headers are the gateway's environment, from where it sends them. How a client
writes an entry is its `EntryForm`; within this module entries are in the usual form.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from aftercall.cli import one_line
from aftercall.gateway.local_service import LOCAL_HOSTS
from aftercall.redaction import DEFAULT_REDACTOR

_KEYS: tuple[tuple[str, ...], ...] = (("mcpServers",), ("servers",))  # the latter is VS Code's
_URLS = ("url", "httpUrl", "serverUrl", "uri")
_HTTP = (None, "http", "streamable-http", "streamableHttp", "streamable_http", "remote")
_OTHER_LOGINS = frozenset({"headersHelper", "oauth", "auth", "bearer_token_env_var"})
_SHOWN = 400
Content = dict[str, Any]
"""What stands in a file."""
Changed = tuple[Content, list[str]]
"""The new content, and what was done: lines for people, without secrets."""


@dataclass(frozen=True, slots=True)
class EntryForm:
    """What a client calls the parts of an entry."""

    command: str = "command"
    args: str = "args"
    env: str = "env"
    headers: str = "headers"
    started: str = "stdio"
    """Its word for a server that is started."""
    is_joined: bool = False
    """Whether the command is a list that holds its arguments."""

    def usual_form(self, entry: Mapping[str, Any]) -> tuple[Content, str]:
        """Return an entry in the usual form, and the key that its address has."""
        made: Content = {}
        url_key = "url"
        for key, value in entry.items():
            if key == self.command and self.is_joined and isinstance(value, list) and value:
                made |= {"command": value[0], "args": list(value[1:])}
            elif key == self.command and isinstance(value, Mapping):  # Zed's older form
                made |= {"command": value.get("path"), "args": list(value.get("args", []))}
                if value.get("env"):
                    made["env"] = dict(value["env"])
            elif key in _URLS and "url" not in made:
                made["url"], url_key = value, key
            else:
                made[self._usual_name(key)] = value
        return made, url_key

    def write_entry(self, entry: Mapping[str, Any], usual: Content, url_key: str) -> Content:
        """Return a usual entry in the form of the one that it was made of."""
        made: Content = {}
        nested = isinstance(entry.get(self.command), Mapping)
        for key, value in usual.items():
            if key == "command" and self.is_joined:
                made[self.command] = [value, *usual.get("args", [])]
            elif key == "command" and nested:
                inner = {"path": value, "args": usual.get("args", [])}
                made[self.command] = {**entry[self.command], **inner}
            elif key == "url":
                made[url_key] = value
            elif key == "type" and value == "stdio":
                made[key] = self.started
            elif not ((key == "args" and (self.is_joined or nested)) or (key == "env" and nested)):
                made[self._own_name(key)] = value
        return made

    def _usual_name(self, key: str) -> str:
        names = {self.command: "command", self.args: "args", self.env: "env"}
        return (names | {self.headers: "headers"}).get(key, key)

    def _own_name(self, key: str) -> str:
        names = {"command": self.command, "args": self.args, "env": self.env}
        return (names | {"headers": self.headers}).get(key, key)


FORMS = {
    "usual": EntryForm(),
    "codex": EntryForm(headers="http_headers"),
    "copilot": EntryForm(started="local"),
    "opencode": EntryForm(env="environment", started="local", is_joined=True),
    "goose": EntryForm(command="cmd", env="envs"),
}
Keys = Sequence[Sequence[str]]
Edit = Callable[[str, Content, str], tuple[Content, str, str]]
"""Of a name, a usual entry and the key of its address: both again, and a line about it."""


def wrap_servers(
    content: Content,
    command: Sequence[str],
    more: Sequence[str] = (),
    *,
    keys: Keys = (),
    form: EntryForm = FORMS["usual"],
) -> Changed:
    """Return a configuration with the gateway in front of each server that it can be in front of.

    `command` starts Aftercall, `more` are further options of the gateway; `keys` are paths to the
    servers next to the usual ones. Anything that is wrapped already is wrapped again.
    """
    bare, _ = unwrap_servers(content, keys=keys, form=form)
    run = [*command, "gateway"]

    def wrap_entry(name: str, entry: Content, url_key: str) -> tuple[Content, str, str]:
        made, note = _wrap_entry(name, entry, url_key, run, more)
        return made, url_key, note

    return _with_each(bare, keys, form, wrap_entry, before=content)


def unwrap_servers(
    content: Content, *, keys: Keys = (), form: EntryForm = FORMS["usual"]
) -> Changed:
    """Return a configuration without the gateway; what was changed in it since stays changed."""
    return _with_each(content, keys, form, lambda _, entry, url_key: _unwrap_entry(entry, url_key))


def wrapped_names(
    content: Content, *, keys: Keys = (), form: EntryForm = FORMS["usual"]
) -> list[str]:
    """Return the names of the servers that have a gateway in front of them."""
    return [
        name
        for _, name, entry in _walk_entries(content, keys)
        if _is_ours(_command_words(form.usual_form(entry)[0]))
    ]


def _with_each(
    content: Content, keys: Keys, form: EntryForm, edit: Edit, before: Content | None = None
) -> Changed:
    """Return the content with each entry edited; no line about one that stays as it was before."""
    changed, lines = deepcopy(content), []
    former = list(_walk_entries(content if before is None else before, keys))
    for (holder, name, entry), (*_, old) in zip(
        list(_walk_entries(changed, keys)), former, strict=True
    ):
        usual, url_key = form.usual_form(entry)
        made, url_key, note = edit(name, usual, url_key)
        if made != usual:
            written = form.write_entry(entry, made, url_key)
            note = "" if written == old else note
            _put_entry(holder, name, entry, written)
        lines += [f"  {one_line(name)}{note}"] if note else []
    return changed, lines


def _put_entry(holder: Any, name: str, entry: MutableMapping[str, Any], made: Content) -> None:
    if type(entry) is dict and isinstance(holder, dict):
        holder[name] = made
        return
    # A table of TOML or YAML is changed in its place, where its comments are.
    for key in [key for key in entry if key not in made]:
        del entry[key]
    for key, value in made.items():
        if key not in entry or entry[key] != value:
            entry[key] = value


def _walk_entries(content: Content, keys: Keys) -> Iterator[tuple[Any, str, Any]]:
    """Yield what holds an entry, its name, and the entry; of a list each has its name within."""
    for servers in _walk_servers(content, keys):
        if isinstance(servers, list):
            for place, entry in enumerate(servers):
                if isinstance(entry, MutableMapping):
                    yield servers, str(entry.get("name", place)), entry
            continue
        for name, entry in list(servers.items()):
            if isinstance(entry, MutableMapping):
                yield servers, str(name), entry


def _walk_servers(content: Content, keys: Keys) -> Iterator[Any]:
    """Yield the servers, also those that Claude Code keeps for each project."""
    projects = content.get("projects")
    owners = [content, *(projects.values() if isinstance(projects, Mapping) else ())]
    for owner in owners:
        for path in (*_KEYS, *keys):
            held: Any = owner
            for key in path:
                held = held.get(key) if isinstance(held, Mapping) else None
            if isinstance(held, MutableMapping | list):
                yield held


def _wrap_entry(
    name: str, entry: Content, url_key: str, run: Sequence[str], more: Sequence[str]
) -> tuple[Content, str]:
    reason = _not_wrapped(entry)
    if reason:
        return entry, f": left as it is: {reason}"
    label = re.sub(r"[^A-Za-z0-9_.-]", "-", name)[:64].lstrip("_.-") or "server"
    args = [*run[1:], "--server", label, *more]
    if "command" in entry:
        old = [entry["command"], *entry.get("args", [])]
        args += ["--", *old]
        return entry | {"command": run[0], "args": args}, _show_difference(old, [run[0], *args])
    if "type" in entry:
        args += ["--type", entry["type"]]
    if url_key != "url":
        args += ["--url-key", url_key]
    for header in entry.get("headers", {}):
        args += ["--header", header]
    args += ["--url", entry["url"]]
    started: dict[str, Content] = {
        "url": {"command": run[0], "args": args},
        "type": {"type": "stdio"},
        "headers": {"env": entry.get("headers")},
    }
    return _replace_members(entry, started), _show_difference([entry["url"]], [run[0], *args])


def _replace_members(entry: Content, members: Mapping[str, Content]) -> Content:
    made: Content = {}
    for name, value in entry.items():
        made |= members.get(name, {name: value})
    return made


def _not_wrapped(value: Content) -> str | None:
    command = value.get("command")
    args = value.get("args", [])
    if not isinstance(command, str) or not command:
        return _not_reached(value)
    if _program_name(command) == "aftercall":
        return "it is Aftercall's own"
    if isinstance(args, list) and all(isinstance(word, str) for word in args):
        return None
    return "its args are no list of texts"


def _not_reached(value: Content) -> str | None:
    url = value.get("url")
    headers = value.get("headers", {})
    if not isinstance(url, str) or value.get("env") or not isinstance(headers, Mapping):
        return "it has neither a command nor an address alone"
    address = urlsplit(url)
    if address.scheme not in ("http", "https"):
        return "its address is not one of HTTP"
    if value.get("type") not in _HTTP or address.path.rstrip("/").endswith("/sse"):
        return "it speaks SSE; the gateway speaks streamable HTTP"
    if address.query or address.username:
        return "its address holds parameters, which could be read in the list of processes"
    is_open = bool(headers) or address.hostname in LOCAL_HOSTS
    if not is_open or _OTHER_LOGINS & value.keys():
        return "its login, if it has one, is the client's own, and would end there"
    return None


def _command_words(entry: Content) -> list[Any]:
    args = entry.get("args")
    return [entry.get("command"), *(args if isinstance(args, list) else [])]


def _unwrap_entry(entry: Content, url_key: str) -> tuple[Content, str, str]:
    words = _command_words(entry)
    if not _is_ours(words):
        return entry, url_key, ""
    if "--" in words[:-1]:
        old = words[words.index("--") + 1 :]
        made = entry | {"command": old[0], "args": old[1:]}
        if not made["args"]:
            del made["args"]
        return made, url_key, _show_difference(words, old)
    given = dict(pairwise(words))
    url = given.get("--url")
    if url is None:
        what = ": left as it is: it does not say what it was before; see the copy"
        return entry, url_key, what
    before: dict[str, Content] = {"command": {"url": url}, "args": {}}
    if "--type" in given:
        before["type"] = {"type": given["--type"]}
    if "--header" in words:
        before["env"] = {"headers": entry.get("env")}
    return (
        _replace_members(entry, before),
        given.get("--url-key", "url"),
        _show_difference(words, [url]),
    )


def _is_ours(words: Sequence[Any]) -> bool:
    if not all(isinstance(word, str) for word in words):
        return False
    by_module = list(words[1:3]) == ["-m", "aftercall.cli"]
    start = 3 if by_module else 1
    ours = by_module or is_own_program(words[0])
    return ours and list(words[start : start + 2]) == ["gateway", "--server"]


def is_own_program(command: object) -> bool:
    """Return whether a command is Aftercall's own."""
    return _program_name(command) == "aftercall"


def _program_name(command: object) -> str:
    return re.split(r"[/\\]", str(command))[-1].removesuffix(".exe")


def _show_difference(old: Sequence[str], new: Sequence[str]) -> str:
    shown = (one_line(DEFAULT_REDACTOR.text(shlex.join(words)), _SHOWN) for words in (old, new))
    return "".join(f"\n    {sign} {line}" for sign, line in zip("-+", shown, strict=True))
