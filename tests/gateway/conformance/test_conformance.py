"""MCP's own conformance suite: the gateway as server and as client, and the service's `/mcp`.

What the gateway is held against is the server behind it, asked alone.
"""

import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.conformance.gateway_client import run_scenario
from tests.gateway.conformance.reference_server import build_server
from tests.gateway.conformance.suite import OF_TASKS, Checks, Suite, failing
from tests.gateway.contract_service import ContractService
from tests.gateway.http_server import HttpServer
from tests.gateway.speaking import command, first_word, started
from tests.npm_packages import installed_packages
from tests.service.running_service import hashing_settings, running

pytestmark = [
    pytest.mark.real,
    # The suite still asks for what 2026-07-28 has taken away.
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
OLD, NEW = "2025-11-25", "2026-07-28"
REFERENCE = {
    "command": sys.executable,
    "args": ["-m", "tests.gateway.conformance.reference_server"],
    "cwd": str(ROOT),
}
BLANKS = "http-header-validation:sep-2243-server-accepts-whitespace-header-value"
"""The SDK's own server refuses them."""
OF_CLIENTS = [
    *((OLD, each) for each in ("initialize", "tools_call", "sse-retry")),
    (OLD, "elicitation-sep1034-client-defaults"),
    *((NEW, each) for each in ("tools_call", "request-metadata", "sep-2322-client-request-state")),
    *((NEW, f"http-{each}") for each in ("standard-headers", "custom-headers")),
    *((NEW, each) for each in ("http-invalid-tool-headers", "json-schema-ref-no-deref")),
    (NEW, "json-schema-2020-12-preservation"),
]
"""All but those of a login by OAuth, which the gateway leaves to the client."""
OF_TOOLS_ALONE = {
    OLD: ("server-initialize", "ping", "tools-list", "dns-rebinding-protection"),
    NEW: ("server-stateless", "tools-list", "dns-rebinding-protection", "http-header-validation"),
}
"""What the suite can ask of a server that has other tools than the suite's, and nothing else."""
OF_OTHER_TOOLS = {
    f"server-stateless:sep-2575-{each}"
    for each in (
        "server-rejects-undeclared-capability",
        "missing-capability-http-400",
        "http-server-no-independent-requests-on-stream",
        "server-no-log-without-loglevel",
    )
}
"""Checks that need a tool of the suite's."""


@pytest.fixture(scope="module")
def packages() -> Path:
    """The suite, from npm."""
    return installed_packages(HERE / "npm")


@pytest.fixture
def suite(packages: Path, tmp_path: Path) -> Suite:
    """The suite, with a folder for what it finds."""
    return Suite(packages, tmp_path / "results")


@pytest.fixture
async def alone() -> AsyncIterator[str]:
    """The address of the reference server, without a gateway."""
    server = HttpServer()
    await server.start(build_server().streamable_http_app())
    yield server.url
    await server.stop()


@asynccontextmanager
async def gateway_before(
    server: dict[str, Any], service: ContractService, tmp_path: Path, environment: dict[str, str]
) -> AsyncIterator[str]:
    """The address of a gateway in front of one server."""
    config = tmp_path / "servers.json"
    config.write_text(json.dumps({"mcpServers": {"reference": server}}))
    words = command(config, service.url, "--transport", "http", "--port", "0")
    async with started(words, environment) as process:
        yield (await first_word(process)).split()[-1]


def asks_for_input(check: str) -> bool:
    """Return whether a check is about results that ask for input."""
    return check.startswith("input-required-result-")


def of_required(checks: Checks) -> set[str]:
    """Return what failed of the protocol itself."""
    return {each for each in failing(checks) if not each.startswith(OF_TASKS)}


@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_the_gateway_conforms_as_the_server_behind_it(
    packages: Path,
    service: ContractService,
    alone: str,
    tmp_path: Path,
    environment: dict[str, str],
    revision: str,
) -> None:
    """No check that the server passes alone fails behind the gateway, in both protocols.

    A server of the handshake alone is one of the newest protocol behind the gateway, but for
    results that ask for input, which it cannot give.
    """

    async def behind(
        name: str, server: dict[str, Any], known: Callable[[str], bool] = lambda _: False
    ) -> Checks:
        folder = tmp_path / name
        folder.mkdir()
        async with gateway_before(server, service, folder, environment) as url:
            suite = Suite(packages, folder / "results")
            return await suite.try_server(url, revision, known)

    old = REFERENCE | {"args": [*REFERENCE["args"], "--legacy"]}
    suite = Suite(packages, tmp_path / "results")
    by_itself = await suite.try_server(alone, revision, {BLANKS}.__contains__)
    by_stdio = await behind("stdio", REFERENCE)
    by_http = await behind("http", {"url": alone})
    by_handshake = await behind("handshake", old, asks_for_input)
    assert of_required(by_itself) <= {BLANKS}
    for checks in (by_stdio, by_http):
        assert of_required(checks) == set()
        assert by_itself.keys() <= checks.keys()
    assert {each for each in of_required(by_handshake) if not asks_for_input(each)} == set()


@pytest.mark.parametrize(("revision", "scenario"), OF_CLIENTS)
async def test_the_gateway_conforms_as_a_client(suite: Suite, revision: str, scenario: str) -> None:
    """Each scenario for clients passes when the gateway is the one that asks."""
    assert failing(await suite.try_client(scenario, revision, run_scenario)) == set()


@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_the_services_own_mcp_conforms(suite: Suite, tmp_path: Path, revision: str) -> None:
    """All that the suite can ask of a server that offers tools alone."""

    def applies(key: str) -> bool:
        return (
            key.split(":", maxsplit=1)[0] in OF_TOOLS_ALONE[revision] and key not in OF_OTHER_TOOLS
        )

    with running(hashing_settings(tmp_path)) as served:
        url = f"{served.url}/mcp"
        checks = await suite.try_server(url, revision, lambda key: not applies(key))
    asked = {key: each for key, each in checks.items() if applies(key)}
    assert len({key.split(":")[0] for key in asked}) == len(OF_TOOLS_ALONE[revision])
    assert failing(asked) == set()
