"""The gateway as a FastMCP server: upstream servers, with reflection in front of them."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence
from difflib import get_close_matches
from importlib.metadata import version
from typing import Any, Protocol, TextIO

import mcp_types
from fastmcp import FastMCP

from aftercall.adapters.fastmcp import ReflectionMiddleware
from aftercall.contracts import Deliverable
from aftercall.gateway.config import GatewayConfig
from aftercall.gateway.instructions import InstructionsMiddleware
from aftercall.gateway.provider import UpstreamProvider
from aftercall.gateway.registration import ToolRegistrar, ToolRegistry
from aftercall.gateway.upstreams import Upstream, UpstreamUnavailableError
from aftercall.reflection import AsyncSuggester, CallObserver, ExecutionSink, ReflectionPolicy

RELIST_EVERY_S = 60.0
"""How often the servers are asked for their tools. 2026-07-28 servers do not announce changes on
their own, and a call must not wait for such a question."""

_logger = logging.getLogger(__name__)


class ServiceClient(AsyncSuggester, ToolRegistry, Protocol):
    """What the gateway needs of `AsyncClient`."""


def build_gateway(
    config: GatewayConfig,
    *,
    client: ServiceClient,
    recorder: ExecutionSink,
    policy: ReflectionPolicy | None = None,
    agent: str | None = None,
    errlog: TextIO | None = None,
    observers: Sequence[CallObserver] = (),
) -> FastMCP[Any]:
    """A server that offers the tools, resources and prompts of all configured servers.

    With one server the tools keep their names; with several they become `<server>_<tool>`. The
    servers are started with the gateway's lifespan, once, and ended with it. A server that does
    not start does not keep the others away: calls of its tools say what is wrong.

    Args:
        config: the servers.
        client: asks `/suggest` and registers tools; stays the caller's to close.
        recorder: takes every call; stays the caller's to close.
        policy: limits of the retries.
        agent: name of callers that give none.
        errlog: where stdio servers' standard error goes; this process's own when None.
        observers: look on, attempt by attempt.
    """
    upstreams = _Upstreams(config, client, errlog)
    gateway: FastMCP[Any] = FastMCP(
        "aftercall-gateway",
        version=version("aftercall"),
        lifespan=upstreams.lifespan,
        dereference_schemas=False,  # agents see the schemas that the servers give
        middleware=[
            ReflectionMiddleware(
                client=client,
                recorder=recorder,
                agent=agent,
                policy=policy,
                locate=upstreams.locate,
                deliverables=upstreams.deliverable,
                observers=observers,
            ),
            InstructionsMiddleware(upstreams.servers),
        ],
    )
    # A call of a tool whose server is away must say so, and not "unknown tool".
    gateway.provider_error_strategy = "raise"
    # Without a lookup the MCP SDK lists all tools before every call over HTTP (2026-07-28), to
    # check the call's headers; FastMCP has no setting for it.
    gateway._mcp_server.get_tool_input_schema = upstreams.input_schema  # noqa: SLF001  # no setting
    for name, provider in upstreams.providers.items():
        gateway.add_provider(provider, namespace=name if upstreams.are_several else "")
    return gateway


class _Upstreams:
    """The servers behind one gateway, and the tasks that keep them known."""

    def __init__(
        self, config: GatewayConfig, registry: ToolRegistry, errlog: TextIO | None
    ) -> None:
        self.are_several = len(config.servers) > 1
        self._deliverables = {server.name: server.deliverables for server in config.servers}
        self._absent: dict[str, set[str]] = {}
        self._registrar = ToolRegistrar(registry)
        self._relist = asyncio.Event()
        self.servers = [
            Upstream(server, on_tools_changed=self._relist.set, errlog=errlog)
            for server in config.servers
        ]
        self.providers = {
            upstream.name: UpstreamProvider(upstream, on_tools=self._listed)
            for upstream in self.servers
        }

    def locate(self, exposed: str) -> tuple[str | None, str]:
        """Server and tool behind an exposed name, in the order in which FastMCP looks for it."""
        if not self.are_several:
            return self.servers[0].name, exposed
        fitting = [name for name in self.providers if exposed.startswith(f"{name}_")]
        for name in fitting:
            tool_name = exposed.removeprefix(f"{name}_")
            if self.providers[name].known(tool_name) is not None:
                return name, tool_name
        if fitting:
            longest = max(fitting, key=len)
            return longest, exposed.removeprefix(f"{longest}_")
        return None, exposed

    def deliverable(self, server_name: str | None, tool_name: str) -> Deliverable | None:
        """What the configuration says that the tool's results must be."""
        return self._deliverables.get(server_name or "", {}).get(tool_name)

    def _listed(self, server_name: str, tools: Sequence[mcp_types.Tool]) -> None:
        """Register the tools, and say once which deliverables are for tools that are not there."""
        self._registrar.offer(server_name, tools)
        names = [tool.name for tool in tools]
        absent = set(self._deliverables[server_name]).difference(names)
        for name in sorted(absent - self._absent.get(server_name, set())):
            nearest = get_close_matches(name, names, n=1)
            cure = f"; did you mean {nearest[0]!r}?" if nearest else ""
            _logger.warning(
                "the configuration has a deliverable for the tool %r of server %r, which lists "
                "no such tool%s",
                name[:80],
                server_name,
                cure,
            )
        self._absent[server_name] = absent

    def input_schema(self, exposed: str) -> dict[str, Any] | None:
        """The input schema of an exposed tool; None while it is not known."""
        server_name, tool_name = self.locate(exposed)
        provider = self.providers.get(server_name or "")
        tool = provider.known(tool_name) if provider is not None else None
        return tool.parameters if tool is not None else None

    @contextlib.asynccontextmanager
    async def lifespan(self, _: FastMCP[Any]) -> AsyncIterator[None]:
        for upstream in self.servers:
            upstream.start()
        tasks = [asyncio.create_task(work) for work in (self._keep_listed(), self._registrar.run())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.gather(*(u.close() for u in self.servers), return_exceptions=True)

    async def _keep_listed(self) -> None:
        while True:
            self._relist.clear()
            await asyncio.gather(*(_refresh(provider) for provider in self.providers.values()))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._relist.wait(), RELIST_EVERY_S)


async def _refresh(provider: UpstreamProvider) -> None:
    try:
        await provider.refresh()
    except UpstreamUnavailableError as error:
        _logger.debug("not listed: %s", error)
