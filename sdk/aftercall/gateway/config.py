"""The standard `mcpServers` JSON file: which servers the gateway stands in front of.

    {"mcpServers": {"git": {"command": "mcp-server-git", "args": ["--repository", "."]},
                    "wiki": {"url": "https://wiki.example/mcp", "headers": {"X-Key": "..."}}}}

Fields that other programs keep in the same file are passed over. Variables are not expanded: what
stands in the file is what is used. What is the gateway's own stands under `aftercall`, which other
programs pass over in turn: what the results of a server's tools must be (`aftercall.contracts`).

    {"mcpServers": {"films": {"command": "films", "aftercall": {
        "deliverables": {"find_movies": {"fields": {"titles": {"min_items": 1}}}}}}}}
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aftercall.contracts import Deliverable
from aftercall.errors import ConfigurationError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""What may stand in a tool's name (MCP SEP-986), since names become prefixes."""

_HTTP_TYPES = ("http", "streamable-http", "streamableHttp")

_OWN_KEY = "aftercall"
_DELIVERABLES = "deliverables"

_MAX_DELIVERABLES = 1_000
"""Of one server; servers have some hundred tools at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioServer:
    """A server that the gateway starts and talks to over its standard streams.

    `env` is added to the few variables (PATH, HOME, ...) that MCP passes on; `timeout_s` bounds a
    request, None does not. `deliverables` are by the tool's own name.
    """

    name: str
    command: str
    args: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None
    timeout_s: float | None = None
    deliverables: dict[str, Deliverable] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpServer:
    """A server that is reached at an address (streamable HTTP)."""

    name: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    timeout_s: float | None = None
    deliverables: dict[str, Deliverable] = field(default_factory=dict)


Server = StdioServer | HttpServer


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """The servers, in the order of the file; at least one."""

    servers: list[Server]

    @classmethod
    def from_file(cls, path: Path) -> "GatewayConfig":
        """Read a file.

        Raises:
            ConfigurationError: names the file, the server and the field at fault, and the cure.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{path}: cannot be read: {error}") from error
        try:
            content = json.loads(text, object_pairs_hook=_without_duplicates)
        except ValueError as error:
            raise ConfigurationError(f"{path}: {error}") from error
        return cls.from_dict(content, source=str(path))

    @classmethod
    def from_dict(cls, content: object, *, source: str = "the configuration") -> "GatewayConfig":
        """Read what stands in such a file; `source` is named in errors.

        Raises:
            ConfigurationError: as `from_file`.
        """
        entries = content.get("mcpServers") if isinstance(content, dict) else None
        if not isinstance(entries, dict):
            raise ConfigurationError(f'{source}: needs an object "mcpServers" with a server each')
        servers = [
            _server(_Entry(source, name, entry))
            for name, entry in entries.items()
            if not (isinstance(entry, dict) and entry.get("disabled") is True)
        ]
        if not servers:
            raise ConfigurationError(f'{source}: "mcpServers" names no server that is enabled')
        return cls(servers)


class _Entry:
    """One server's object, with errors that name file, server and field."""

    def __init__(self, source: str, name: str, content: object) -> None:
        self.name = name
        self._place = f"{source}: server {name!r}"
        if not _NAME.fullmatch(name):
            raise ConfigurationError(
                f"{self._place}: rename it to letters, digits, '_', '-' and '.' (64 at most): "
                "the name becomes part of its tools' names"
            )
        if not isinstance(content, dict):
            raise ConfigurationError(f"{self._place}: must be an object with a command or a url")
        self._content: dict[str, Any] = content

    def has(self, key: str) -> bool:
        return self._content.get(key) is not None

    def text(self, key: str) -> str:
        value = self._content.get(key)
        if not isinstance(value, str) or not value:
            raise self.error(key, "must be a text that is not empty")
        return value

    def texts(self, key: str) -> list[str]:
        value = self._content.get(key) or []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(key, "must be an array of texts")
        return value

    def mapping(self, key: str) -> dict[str, str]:
        value = self._content.get(key) or {}
        if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
            raise self.error(key, 'must be an object of texts (write numbers as "1")')
        return value

    def timeout_s(self) -> float | None:
        """`timeout` stands in milliseconds, as in FastMCP's reading of the format."""
        value = self._content.get("timeout")
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise self.error("timeout", "must be a number of milliseconds above 0")
        return value / 1000

    def deliverables(self) -> dict[str, Deliverable]:
        own = self._content.get(_OWN_KEY)
        if own is None:
            return {}
        if not isinstance(own, dict):
            raise self.error(_OWN_KEY, f'must be an object, such as {{"{_DELIVERABLES}": {{}}}}')
        for key in own:
            if key != _DELIVERABLES:
                raise self.error(_OWN_KEY, f'has no {key[:80]!r}, only "{_DELIVERABLES}"')
        by_tool = own.get(_DELIVERABLES, {})
        if not isinstance(by_tool, dict) or len(by_tool) > _MAX_DELIVERABLES:
            raise self.error(
                _DELIVERABLES,
                f"must be an object with a deliverable for each of {_MAX_DELIVERABLES:,} tools at "
                "most, by the names that the server gives them",
            )
        return {
            tool: Deliverable.from_dict(
                wanted, place=f"{self._place}: deliverable of tool {tool!r}"
            )
            for tool, wanted in by_tool.items()
        }

    def error(self, key: str, problem: str) -> ConfigurationError:
        return ConfigurationError(f'{self._place}: "{key}" {problem}')


def _server(entry: _Entry) -> Server:
    if entry.has("command") and entry.has("url"):
        raise entry.error("url", 'stands beside "command"; keep the one that is meant')
    kind = entry.text("type") if entry.has("type") else None
    kind = entry.text("transport") if kind is None and entry.has("transport") else kind
    if entry.has("url"):
        return _http_server(entry, kind)
    if not entry.has("command"):
        raise entry.error("command", 'is missing (or "url", for a server that is already running)')
    if kind not in (None, "stdio"):
        raise entry.error("type", f'is {kind!r}, but a server with a "command" is "stdio"')
    return StdioServer(
        name=entry.name,
        command=entry.text("command"),
        args=entry.texts("args"),
        env=entry.mapping("env"),
        cwd=entry.text("cwd") if entry.has("cwd") else None,
        timeout_s=entry.timeout_s(),
        deliverables=entry.deliverables(),
    )


def _http_server(entry: _Entry, kind: str | None) -> HttpServer:
    if kind is not None and kind not in _HTTP_TYPES:
        raise entry.error(
            "type", f'is {kind!r}; only "http" (streamable HTTP) is supported, also for its url'
        )
    url = entry.text("url")
    if not url.startswith(("http://", "https://")):
        raise entry.error("url", f"must start with http:// or https://, not {url!r}")
    return HttpServer(
        name=entry.name,
        url=url,
        headers=entry.mapping("headers"),
        timeout_s=entry.timeout_s(),
        deliverables=entry.deliverables(),
    )


def _without_duplicates(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    """JSON keeps the last of two equal keys; in this file that would drop a server silently."""
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object; rename one of the two")
    return members
