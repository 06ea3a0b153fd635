"""The `mcpServers` file: what is read, and what each mistake is answered with."""

import json
from pathlib import Path
from typing import Any

import pytest

from aftercall.contracts import Deliverable
from aftercall.errors import ConfigurationError
from aftercall.gateway.config import GatewayConfig, UpstreamServer
from bench import data
from tests.conftest import NO_DATA


def _wanting(deliverable: Any) -> dict[str, Any]:
    """A server with a deliverable for one tool."""
    return {"command": "x", "aftercall": {"deliverables": {"find": deliverable}}}


def test_both_kinds_of_server_are_read_in_their_order(tmp_path: Path) -> None:
    """Commands and addresses, with what other programs keep in the same file passed over."""
    file = tmp_path / "servers.json"
    git = {
        "command": "mcp-server-git", "args": ["--repository", "."], "env": {"A": "${B}"},
        "cwd": "/srv", "timeout": 1500,
    }  # fmt: skip
    wiki = {"url": "https://w.example/mcp", "headers": {"k": "v"}}
    servers = {
        "git": {**git, "autoApprove": ["git_log"]}, "off": {"command": "x", "disabled": True},
        "wiki": {"type": "http", **wiki},
    }  # fmt: skip
    file.write_text(json.dumps({"theme": "dark", "mcpServers": servers}))
    assert GatewayConfig.from_file(file).servers == [
        UpstreamServer.model_validate({"name": "git", **git}),
        UpstreamServer.model_validate({"name": "wiki", **wiki}),
    ]


def test_deliverables_stand_under_the_gateways_own_key() -> None:
    """Other programs that read the same file pass the key over; both kinds of server have them."""
    own = {"deliverables": {"find": {"fields": {"titles": {"minItems": 1}}}, "count": {}}}
    servers = {
        "films": {"command": "films", "aftercall": own},
        "wiki": {"url": "http://h", "aftercall": own},
        "git": {"command": "git", "aftercall": {}},
    }
    config = GatewayConfig.from_dict({"mcpServers": servers})
    wanted = Deliverable(fields={"titles": Deliverable(min_items=1)})
    films, wiki, git = config.servers

    assert films.deliverables == wiki.deliverables == {"find": wanted, "count": Deliverable()}
    assert git.deliverables == {}


FILES: dict[str | None, str] = {
    "{": "Expecting property name",
    "[]": 'needs an object "mcpServers"',
    "{}": 'needs an object "mcpServers"',
    '{"mcpServers": {}}': "names no server",
    '{"mcpServers": {"a": {"command": "x", "disabled": true}}}': "names no server",
    '{"mcpServers": {"my server": {"command": "x"}}}': "rename it",
    '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}': "'a' stands twice",
    "\ud800": "cannot be read",
    None: "cannot be read",
}
"""Broken JSON, no servers, names that cannot be part of a tool's name or stand twice, no file."""


@pytest.mark.parametrize(
    ("server", "named"),
    [
        *FILES.items(),
        ({}, 'needs either "command"'),
        ([], "must be an object"),
        ({"command": ""}, "command: should not be empty"),
        ({"command": 3}, "command: should be a valid string"),
        ({"command": "x", "args": "a b"}, "args: should be a valid list"),
        ({"command": "x", "args": [1]}, "args.0: should be a valid string"),
        ({"command": "x", "env": {"N": [1]}}, "env.N: should be a valid string"),
        ({"command": "x", "timeout": -1}, "timeout: should be greater than 0"),
        ({"command": "x", "timeout": True}, "timeout: should be a valid number"),
        ({"command": "x", "cwd": 1}, "cwd: should be a valid string"),
        ({"command": "x", "url": "http://h"}, 'needs either "command"'),
        ({"command": "x", "type": "http"}, '"type" is \'http\'; only "stdio" with a command'),
        ({"url": "ftp://h"}, "url: should be an address that begins with http:// or https://"),
        ({"url": "http://h", "transport": "ws"}, "\"type\" is 'ws'"),
        ({"url": "http://h", "headers": ["a"]}, "headers: should be a valid dictionary"),
        ({"command": "x", "aftercall": []}, '"aftercall": should be a valid dictionary'),
        (
            {"command": "x", "aftercall": {"deliverable": {}}},
            "unknown field `deliverable`; did you mean `deliverables`?",
        ),
        (
            {"command": "x", "aftercall": {"deliverables": []}},
            "deliverables: should be a valid dictionary",
        ),
        (_wanting([]), "deliverables.find: should be a valid dictionary"),
        (
            _wanting({"fields": {"titles": {"min_itms": 1}}}),
            "`min_itms` in `deliverables.find.fields.titles`; did you mean `min_items`?",
        ),
        (_wanting({"min_items": 2, "max_items": 1}), "min_items is 2 and max_items is 1"),
        (_wanting({"json_schema": {"$ref": "http://h/s"}}), "json_schema: at its root: Resource"),
    ],
)
def test_a_mistake_names_file_server_and_field(tmp_path: Path, server: Any, named: str) -> None:
    """Whoever wrote the file can go straight to the place."""
    file = tmp_path / "servers.json"
    is_file = isinstance(server, str | None)
    text = server if is_file else json.dumps({"mcpServers": {"mine": server}})
    if text is not None:
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(ConfigurationError) as caught:
        GatewayConfig.from_file(file)

    assert str(caught.value).startswith(f"{file}: " + ("" if is_file else "server 'mine': "))
    assert named in str(caught.value)


SERVER = {"command": "stub"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{\n  // said\n  "mcpServers": {"a": {"command": "stub", "args": [],},},\n}', ["a"]),
        ('{"servers": {"a": {"command": "stub"}}, "inputs": []}', ["a"]),
        ('\ufeff{"mcpServers": {"a": {"command": "stub"}}}', ["a"]),
        ('{"mcpServers": {"a": {"command": "s"}, "b": {"httpUrl": "http://h/mcp"}}}', ["a", "b"]),
        ('{"mcpServers": {"b": {"serverUrl": "http://h/mcp"}}}', ["b"]),
        ('{"mcpServers": {"a": {"command": "s"}, "b": {"type": "sse", "url": "http://h"}}}', ["a"]),
        ('{"mcpServers": {"a": {"command": "s"}, "b": {"url": "http://h/sse"}}}', ["a"]),
    ],
)
def test_what_clients_write_is_read(tmp_path: Path, text: str, names: list[str]) -> None:
    """As `aftercall install` reads it; SSE is left out, and named."""
    file = tmp_path / "mcp.json"
    file.write_text(text, encoding="utf-8")
    config = GatewayConfig.from_file(file)
    assert [server.name for server in config.servers] == names
    assert all(server.url or server.command for server in config.servers)
    assert len(config.left_out) == ("http://h/sse" in text or '"sse"' in text)


def test_numbers_in_the_environment_are_texts_and_short_timeouts_are_seconds() -> None:
    entry = SERVER | {"env": {"PORT": 3000, "DEBUG": True, "NAME": "x"}, "timeout": 60}
    [server] = GatewayConfig.from_dict({"mcpServers": {"a": entry}}).servers
    assert server.env == {"PORT": "3000", "DEBUG": "true", "NAME": "x"}
    assert server.timeout == 60_000
    for given, milliseconds in ((0.5, 500), (999, 999_000), (1_000, 1_000), (600_000, 600_000)):
        [server] = GatewayConfig.from_dict(
            {"mcpServers": {"a": SERVER | {"timeout": given}}}
        ).servers
        assert server.timeout == milliseconds


def test_where_nothing_but_sse_is_left_that_is_said() -> None:
    with pytest.raises(ConfigurationError, match="SSE"):
        GatewayConfig.from_dict({"mcpServers": {"old": {"type": "sse", "url": "http://h"}}})


@pytest.mark.data
@pytest.mark.parametrize(
    "name",
    [
        "comments.jsonc", "httpurl_beside.json", "number_in_env.json", "one_sse_beside.json",
        "servers_key.json", "timeout_in_seconds.json",
    ],
)  # fmt: skip
def test_configurations_that_were_seen_are_read(name: str) -> None:
    file = data.path(f"clients/gateway_{name}")
    if not file.exists():
        pytest.skip(NO_DATA)
    servers = GatewayConfig.from_file(file).servers
    assert servers[0].name == "stub"
    assert servers[0].timeout in (None, 60_000)
