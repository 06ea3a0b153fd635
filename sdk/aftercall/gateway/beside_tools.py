"""What clients ask a server for next to its lists and calls: completions, updates, log levels."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from contextvars import Context as CleanContext
from typing import Any

import mcp_types
from fastmcp import FastMCP
from fastmcp.prompts import Prompt
from fastmcp.resources import Resource, ResourceTemplate
from fastmcp.server.completions import CompletionReference, CompletionValues
from mcp import ClientSession
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from aftercall.gateway.upstreams import Upstream
from aftercall.tables import keep_latest

_SENT_WITHIN_S = 2.0
_MAX_RESOURCES = 10_000
_NAMES = (
    ("_backend_uri", "uri"),
    ("_backend_uri_template", "uri_template"),
    ("_backend_name", "name"),
)
"""Where FastMCP keeps a name at the server, and the one that clients see: the same without it."""
Context = ServerRequestContext[Any, Any]


class BesideTools:
    """Asks the server whose prompt or resource it is, and brings its updates to who wants them.

    `bus` is where clients of 2026-07-28 listen. Names and addresses are those that clients see.
    """

    def __init__(self, upstreams: Sequence[Upstream], bus: InMemorySubscriptionBus) -> None:
        self._upstreams = {each.name: each for each in upstreams}
        self._bus = bus
        self._listening = ListenHandler(bus)
        self._exposed: dict[tuple[str, str], str] = {}
        self._sessions: dict[str, dict[int, ServerSession]] = {}
        self._wanted: dict[str, int] = {}
        self._streams: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._gateway: FastMCP[Any] | None = None
        for upstream in upstreams:
            upstream.on_resource_updated = self._on_updated

    def serve_clients(self, gateway: FastMCP[Any]) -> None:
        """Let clients of the gateway ask."""
        self._gateway = gateway
        gateway.add_completion_handler(self._complete_argument)
        server = gateway._mcp_server  # noqa: SLF001  # FastMCP serves none of these itself
        wanted, unwanted = mcp_types.SubscribeRequestParams, mcp_types.UnsubscribeRequestParams
        server.add_request_handler("resources/subscribe", wanted, self._subscribe_client)
        server.add_request_handler("resources/unsubscribe", unwanted, self._unsubscribe_client)
        listened = mcp_types.SubscriptionsListenRequestParams
        server.add_request_handler("subscriptions/listen", listened, self._listen_modern)
        kept = server.get_request_handler("logging/setLevel")

        async def set_level(
            context: Context, params: mcp_types.SetLevelRequestParams
        ) -> mcp_types.EmptyResult:
            for upstream in self._upstreams.values():
                await _set_level(upstream, params.level)
            if kept is not None:
                await kept.handler(context, params)
            return mcp_types.EmptyResult()

        server.add_request_handler("logging/setLevel", mcp_types.SetLevelRequestParams, set_level)

    async def _complete_argument(
        self,
        ref: CompletionReference,
        argument: mcp_types.CompletionArgument,
        context: mcp_types.CompletionContext | None,
    ) -> CompletionValues:
        """Ask the server behind a prompt or template; nothing where it completes nothing."""
        assert self._gateway is not None  # noqa: S101  # `serve` was called
        found: Prompt | ResourceTemplate | None = None
        if isinstance(ref, mcp_types.PromptReference):
            found = await self._gateway.get_prompt(ref.name)
        else:
            templates = await self._gateway.list_resource_templates()
            found = next((each for each in templates if each.uri_template == ref.uri), None)
        if (behind := _server_behind(self._upstreams.values(), found)) is None:
            return None
        upstream, name = behind
        own: CompletionReference
        if isinstance(ref, mcp_types.PromptReference):
            own = ref.model_copy(update={"name": name})
        else:
            own = ref.model_copy(update={"uri": name})
        return await _ask_completion(upstream, own, argument, context)

    async def _locate_resource(self, uri: str) -> tuple[Upstream, str]:
        """Return the server of a resource, and the resource's address there."""
        assert self._gateway is not None  # noqa: S101  # `serve` was called
        found: Resource | ResourceTemplate | None = await self._gateway.get_resource(uri)
        if found is not None and (behind := _server_behind(self._upstreams.values(), found)):
            return behind
        found = await self._gateway.get_resource_template(uri)
        if found is not None and (behind := _server_behind(self._upstreams.values(), found)):
            upstream, template = behind
            is_renamed = template != getattr(found, "uri_template", template)
            if not is_renamed:
                return upstream, uri
        raise MCPError(mcp_types.INVALID_PARAMS, "Resource not found", {"uri": uri})

    async def _want_resource(self, uri: str) -> None:
        upstream, own = await self._locate_resource(uri)
        keep_latest(self._exposed, (upstream.name, own), uri, _MAX_RESOURCES)
        self._wanted[uri] = self._wanted.get(uri, 0) + 1
        if self._wanted[uri] == 1:
            await self._subscribe_at(upstream, own)

    async def _leave_resource(self, uri: str) -> None:
        left = self._wanted.get(uri, 0) - 1
        if left > 0:
            self._wanted[uri] = left
            return
        self._wanted.pop(uri, None)
        for (name, own), exposed in list(self._exposed.items()):
            if exposed == uri:
                del self._exposed[name, own]
                with suppress(Exception):  # it may be away: then it sends nothing either
                    await self._unsubscribe_at(self._upstreams[name], own)

    async def _subscribe_client(
        self, context: Context, params: mcp_types.SubscribeRequestParams
    ) -> mcp_types.EmptyResult:
        uri, connection = str(params.uri), context.session._connection  # noqa: SLF001  # what lasts
        sessions = self._sessions.setdefault(uri, {})
        if id(connection) not in sessions:
            sessions[id(connection)] = context.session
            try:
                await self._want_resource(uri)
            except BaseException:
                sessions.pop(id(connection), None)
                raise
            connection.exit_stack.push_async_callback(self._forget_connection, uri, id(connection))
        return mcp_types.EmptyResult()

    async def _unsubscribe_client(
        self, context: Context, params: mcp_types.UnsubscribeRequestParams
    ) -> mcp_types.EmptyResult:
        connection = id(context.session._connection)  # noqa: SLF001
        await self._forget_connection(str(params.uri), connection)
        return mcp_types.EmptyResult()

    async def _forget_connection(self, uri: str, connection: int) -> None:
        sessions = self._sessions.get(uri, {})
        if sessions.pop(connection, None) is not None:
            await self._leave_resource(uri)
        if not sessions:
            self._sessions.pop(uri, None)

    async def _listen_modern(
        self, context: Context, params: mcp_types.SubscriptionsListenRequestParams
    ) -> mcp_types.SubscriptionsListenResult:
        wanted: list[str] = []

        async def want_all() -> None:
            for uri in map(str, params.notifications.resource_subscriptions or ()):
                with suppress(Exception):  # of an unknown resource there is nothing to show
                    await self._want_resource(uri)
                    wanted.append(uri)

        # Next to the stream, which is open by then: a server may say at once what has changed.
        wanting = asyncio.create_task(want_all())
        try:
            return await self._listening(context, params)
        finally:
            wanting.cancel()
            for uri in wanted:
                await asyncio.shield(self._leave_resource(uri))

    async def _subscribe_at(self, upstream: Upstream, uri: str) -> None:
        """Have a server say when a resource changes; nothing where it does not do so."""
        client = await upstream.connected_client()
        able = client.session.server_capabilities
        if able is None or able.resources is None or not able.resources.subscribe:
            return
        if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
            listening = self._hear_updates(upstream.name, client.session, uri)
            task = asyncio.get_running_loop().create_task(listening, context=CleanContext())
            self._streams[upstream.name, uri] = task
            return
        params = mcp_types.SubscribeRequestParams(uri=uri)
        asked = mcp_types.SubscribeRequest(params=params)
        await client.session.send_request(asked, mcp_types.EmptyResult)

    async def _hear_updates(self, name: str, session: ClientSession, uri: str) -> None:
        with suppress(MCPError, SubscriptionLost, TimeoutError):
            async with listen(session, resource_subscriptions=[uri]) as changes:
                async for change in changes:
                    if isinstance(change, ResourceUpdated):
                        await self._on_updated(name, change.uri)

    async def _unsubscribe_at(self, upstream: Upstream, uri: str) -> None:
        if (stream := self._streams.pop((upstream.name, uri), None)) is not None:
            stream.cancel()
            return
        params = mcp_types.UnsubscribeRequestParams(uri=uri)
        asked = mcp_types.UnsubscribeRequest(params=params)
        await (await upstream.connected_client()).session.send_request(asked, mcp_types.EmptyResult)

    async def _on_updated(self, name: str, own: str) -> None:
        uri = self._exposed.get((name, own), own)
        await self._bus.publish(ResourceUpdated(uri=uri))
        for session in list(self._sessions.get(uri, {}).values()):
            with suppress(Exception):  # it has gone, or does not read
                async with asyncio.timeout(_SENT_WITHIN_S):
                    await session.send_resource_updated(uri)


async def _ask_completion(
    upstream: Upstream,
    ref: CompletionReference,
    argument: mcp_types.CompletionArgument,
    context: mcp_types.CompletionContext | None,
) -> mcp_types.Completion | None:
    client = await upstream.connected_client()
    able = client.session.server_capabilities
    if able is None or able.completions is None:
        return None
    given = {"name": argument.name, "value": argument.value}
    filled = context.arguments if context is not None else None
    return (await client.session.complete(ref, given, filled)).completion


async def _set_level(upstream: Upstream, level: mcp_types.LoggingLevel) -> None:
    """Say from which level on messages are wanted, to a server of the handshake that logs."""
    client = upstream.end_connecting
    if client is None or client.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return
    able = client.session.server_capabilities
    if able is not None and able.logging is not None:
        params = mcp_types.SetLevelRequestParams(level=level)
        asked = mcp_types.SetLevelRequest(params=params)
        with suppress(Exception):  # what it logs is not worth a failure
            await client.session.send_request(asked, mcp_types.EmptyResult)


def _server_behind(
    upstreams: Iterable[Upstream], found: Prompt | Resource | ResourceTemplate | None
) -> tuple[Upstream, str] | None:
    """Return the server of something that it offers, and its name or address there."""
    factory = getattr(found, "_client_factory", None)
    for upstream in upstreams:
        if factory == upstream.connected_client:
            for kept, shown in _NAMES:
                if (name := getattr(found, kept, None) or getattr(found, shown, None)) is not None:
                    return upstream, str(name)
    return None
