"""The `mcpServers` file: what is read, and what each mistake is answered with."""

import json
from pathlib import Path
from typing import Any

import pytest

from aftercall.contracts import Deliverable
from aftercall.errors import ConfigurationError
from aftercall.gateway.config import GatewayConfig, UpstreamServer


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
        ({"command": ""}, "command: String should have at least 1 character"),
        ({"command": 3}, "command: should be a valid string"),
        ({"command": "x", "args": "a b"}, "args: should be a valid list"),
        ({"command": "x", "args": [1]}, "args.0: should be a valid string"),
        ({"command": "x", "env": {"N": 1}}, "env.N: should be a valid string"),
        ({"command": "x", "timeout": -1}, "timeout: should be greater than 0"),
        ({"command": "x", "timeout": True}, "timeout: should be a valid number"),
        ({"command": "x", "cwd": 1}, "cwd: should be a valid string"),
        ({"command": "x", "url": "http://h"}, 'needs either "command"'),
        ({"command": "x", "type": "http"}, '"type" is \'http\'; only "stdio" with a command'),
        ({"url": "ftp://h"}, "url: String should match pattern"),
        ({"url": "http://h/sse", "transport": "sse"}, "\"type\" is 'sse'"),
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
