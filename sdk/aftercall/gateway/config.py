"""The standard `mcpServers` JSON file: which servers the gateway stands in front of.

    {"mcpServers": {"git": {"command": "mcp-server-git", "args": ["--repository", "."]},
                    "wiki": {"url": "https://wiki.example/mcp", "headers": {"X-Key": "..."}}}}

It may hold comments and last commas. `servers` is read too, and `httpUrl` and `serverUrl` for an
address; numbers in `env` are texts; a server that speaks SSE is named and left out. Fields that
other programs keep in the same file are passed over. Variables are not expanded: what
stands in the file is what is used. Anything that is the gateway's own stands under `aftercall`,
which other programs pass over in turn: what the results of a server's tools must be
(`aftercall.contracts`).

    {"mcpServers": {"films": {"command": "films", "aftercall": {
        "deliverables": {"find_movies": {"fields": {"titles": {"min_items": 1}}}}}}}}

`headersHelper`, next to a url, is a command that prints further headers as a JSON object; it is run
at the start, and once more when they are refused (401).

So does how its calls are handled, for the server or for one of its tools, as `docs/integrations.md`
states it:

    "aftercall": {"mode": "repair", "note": "always", "errorPattern": "^Database error",
                  "tools": {"drop_table": {"mode": "advise"}}}
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from aftercall.adapters.before_call import Asking, Mode, Noting, ToolHandling
from aftercall.contracts import Deliverable
from aftercall.errors import ConfigurationError
from aftercall.explain import explain_error
from aftercall.json_values import read_jsonc

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""What may stand in a tool's name (MCP SEP-986), since names become prefixes."""
_HTTP_TYPES = ("http", "streamable-http", "streamableHttp")
KEYS = ("mcpServers", "servers")
"""Where the servers stand; the latter is VS Code's."""
_URLS = ("httpUrl", "serverUrl")
"""Gemini CLI's and Windsurf's word for an address."""
_LEAST_MS = 1_000
"""A timeout below this is in seconds, as cline, Roo and Goose write it: no client gives a call less
than a second, and 60 read as milliseconds gives up a call that may have run."""
_Text = Annotated[str, StringConstraints(min_length=1)]


class UpstreamServer(BaseModel):
    """A server that is started, by a `command`, or reached at a `url` (streamable HTTP).

    `env` is added to the few variables (PATH, HOME, ...) that MCP passes on.
    """

    model_config = ConfigDict(
        strict=True, frozen=True, extra="ignore", arbitrary_types_allowed=True
    )
    name: _Text
    command: _Text | None = None
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    cwd: _Text | None = None
    url: Annotated[str, StringConstraints(pattern="^https?://")] = ""
    headers: dict[str, str] = Field(default_factory=dict)
    headers_helper: Annotated[str, Field(alias="headersHelper")] = ""
    """A command that prints further headers as a JSON object: at the start, and after a 401."""
    timeout: Annotated[float, Field(gt=0)] | None = None
    """Of a request, in milliseconds; what is below 1,000 in the file is in seconds."""
    deliverables: dict[str, Deliverable] = Field(default_factory=dict)
    """By the tool's own name."""
    handling: ToolHandling = ToolHandling()
    handling_of: dict[str, ToolHandling] = Field(default_factory=dict)
    """Of single tools, by their own names."""
    gets_environment: bool = False
    """Whether it gets all of the gateway's environment (but its key), as from the client itself."""


class _Handling(BaseModel):
    model_config = ConfigDict(extra="forbid")
    mode: Mode | None = None
    note: Noting | None = None
    ask: Asking | None = None
    learned: bool | None = None
    errorPattern: re.Pattern[str] | None = None  # noqa: N815  # as it stands in the file

    def merge_over(self, usual: ToolHandling) -> ToolHandling:
        return ToolHandling(
            self.mode or usual.mode,
            self.note or usual.note,
            self.ask or usual.ask,
            usual.learned if self.learned is None else self.learned,
            self.errorPattern or usual.error_pattern,
        )


class _Own(_Handling):
    tools: dict[str, _Handling] = Field(default_factory=dict, max_length=1_000)
    deliverables: dict[str, Deliverable] = Field(default_factory=dict, max_length=1_000)


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """The servers, in the order of the file; at least one.

    `left_out` are lines about those that the gateway cannot stand in front of.
    """

    servers: list[UpstreamServer]
    left_out: list[str] = field(default_factory=list)

    @classmethod
    def from_file(cls, path: Path) -> "GatewayConfig":
        """Read a file; a `ConfigurationError` names it, the server and the field at fault."""
        try:
            content = read_jsonc(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigurationError(f"{path}: cannot be read: {reason}") from error
        except ValueError as error:
            raise ConfigurationError(f"{path}: {error}") from error
        return cls.from_dict(content, source=str(path))

    @classmethod
    def from_words(
        cls,
        name: str,
        command: Sequence[str],
        *,
        url: str = "",
        headers: Sequence[str] = (),
        mode: Mode | None = None,
    ) -> "GatewayConfig":
        """Return one server, as `aftercall install` writes it: its command, or its address.

        `headers` are names; their values are variables of the environment of the same names.
        """
        entry: dict[str, Any] = {"aftercall": {"mode": mode}}
        if command:
            entry |= {"command": command[0], "args": list(command[1:]), "gets_environment": True}
        if url:
            if absent := [each for each in headers if each not in os.environ]:
                raise ConfigurationError(f"--header {absent[0]}: there is no such variable")
            entry |= {"url": url, "headers": {each: os.environ[each] for each in headers}}
        return cls.from_dict({"mcpServers": {name: entry}}, source="the command line")

    @classmethod
    def from_dict(cls, content: object, *, source: str = "the configuration") -> "GatewayConfig":
        """Read what stands in such a file; `source` is named in errors."""
        found = [content.get(key) for key in KEYS] if isinstance(content, dict) else []
        entries = next((each for each in found if isinstance(each, dict)), None)
        if entries is None:
            raise ConfigurationError(f'{source}: needs an object "mcpServers" with a server each')
        servers, left_out = [], []
        for name, entry in entries.items():
            usual = usual_entry(entry) if isinstance(entry, dict) else entry
            if isinstance(usual, dict) and usual.get("disabled") is True:
                continue
            if isinstance(usual, dict) and speaks_sse(usual):
                left_out.append(
                    f"server {name!r} is left out: it speaks SSE, and the gateway streamable HTTP"
                )
                continue
            servers.append(_read_server(f"{source}: server {name!r}", name, usual))
        if not servers:
            why = "".join(f"; {each}" for each in left_out)
            raise ConfigurationError(f'{source}: "mcpServers" names no server that is enabled{why}')
        return cls(servers, left_out)


def usual_entry(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry in the usual form: clients write addresses, numbers and times otherwise."""
    made = dict(entry)
    for key in _URLS:
        if key in made and "url" not in made:
            made["url"] = made.pop(key)
    if isinstance(made.get("env"), dict):
        made["env"] = {name: _as_text(value) for name, value in made["env"].items()}
    timeout = made.get("timeout")
    if (
        isinstance(timeout, int | float)
        and not isinstance(timeout, bool)
        and 0 < timeout < _LEAST_MS
    ):
        made["timeout"] = timeout * 1000
    return made


def speaks_sse(entry: dict[str, Any]) -> bool:
    """Return whether a server in the usual form is reached by SSE, the transport before HTTP's."""
    if entry.get("type", entry.get("transport")) == "sse":
        return True
    url = entry.get("url")
    return (
        isinstance(url, str)
        and "type" not in entry
        and urlsplit(url).path.rstrip("/").endswith("/sse")
    )


def _as_text(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _read_server(place: str, name: str, entry: object) -> UpstreamServer:
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{place}: rename it to letters, digits, '_', '-' and '.' (64 at most): "
            "the name becomes part of its tools' names"
        )
    if not isinstance(entry, dict):
        raise ConfigurationError(f"{place}: must be an object with a command or a url")
    given = {key: value for key, value in entry.items() if value is not None}
    if ("command" in given) == ("url" in given):
        raise ConfigurationError(
            f'{place}: needs either "command", for a server that is started, or "url", for one '
            "that is already running"
        )
    kind = given.get("type", given.get("transport"))
    wanted = ("stdio",) if "command" in given else _HTTP_TYPES
    if kind is not None and kind not in wanted:
        raise ConfigurationError(
            f'{place}: "type" is {kind!r}; only "stdio" with a command, and "http" (streamable '
            "HTTP) with a url, are supported"
        )
    try:
        own = _Own.model_validate(given.get("aftercall", {}))
        handling = own.merge_over(ToolHandling())
        return UpstreamServer.model_validate(
            {
                **given,
                "name": name,
                "deliverables": own.deliverables,
                "handling": handling,
                "handling_of": {
                    tool: each.merge_over(handling) for tool, each in own.tools.items()
                },
            }
        )
    except ValidationError as error:
        is_own = error.title == _Own.__name__
        where, model = (f'{place}: "aftercall"', _Own) if is_own else (place, UpstreamServer)
        raise ConfigurationError(f"{where}: {explain_error(error, model)}") from error
