"""The gateway as a FastMCP server: upstream servers, with reflection in front of them."""

import asyncio
import contextlib
import json
import logging
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TextIO, TypeAlias

import mcp_types
from fastmcp import FastMCP
from pydantic import ValidationError

from aftercall import AsyncClient, Recorder, errors, process
from aftercall.adapters.before_call import ToolHandling
from aftercall.adapters.fastmcp import ReflectionMiddleware, ServiceStart, take_texts
from aftercall.contracts import Deliverable
from aftercall.explain import how_to_install
from aftercall.files import data_folder
from aftercall.gateway.beside_tools import BesideTools
from aftercall.gateway.config import GatewayConfig
from aftercall.gateway.connection import FirstAnswers
from aftercall.gateway.learned_contracts import LearnedDescriptions
from aftercall.gateway.listing import Announcer, InUse, LastLists, ServerList
from aftercall.gateway.local_service import LINGER_S, WAITED_FOR_S, LocalService
from aftercall.gateway.long_answers import PAGE, PAUSE_S
from aftercall.gateway.providers import UpstreamProvider
from aftercall.gateway.relay import FrontWire
from aftercall.gateway.tool_search import NAMES, ToolSearch
from aftercall.gateway.upstreams import Upstream
from aftercall.json_values import bounded_text, make_json_value
from aftercall.models import ToolAnnotations, ToolSpec
from aftercall.redaction import DEFAULT_REDACTOR, Redactor
from aftercall.reflection import CallObserver, ExecutionSink, ReflectionPolicy

PATH = "/mcp"
RELIST_EVERY_S = 60.0
"""How often the servers are asked for their tools. 2026-07-28 servers do not announce changes on
their own, and a call must not wait for such a question."""
LISTED_WITHIN_S = 3.0
"""Servers whose list is known from the last run start once a client had it, or after this time."""
CHECK_EVERY_S = 30.0
"""How often the service is looked at, so that its return is noticed."""
_CONNECT_TIMEOUT_S = 1.0  # a service that is away must not hold a failing call up for long
_LAST_SPANS_S = 2.0  # as long as running calls get
_TRUST_S = 5.0
"""Seconds until the service is asked again whether a caller's key holds."""
_MAX_CALLERS = 32
"""Keys at a time: each starts the configured servers for itself."""
_FORBIDDEN = 403  # a key, without the scope to ask for the status
_App: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]
_AppOf: TypeAlias = Callable[[str | None], contextlib.AbstractAsyncContextManager[_App]]
_Opened: TypeAlias = Callable[[str | None], contextlib.AbstractAsyncContextManager[FastMCP[Any]]]
_logger = logging.getLogger(__name__)


def serve_gateway(
    config: GatewayConfig,
    service: str,
    policy: ReflectionPolicy,
    *,
    api_key: str | None = None,
    address: tuple[str, int] | None = None,
    agent: str | None = None,
    purpose: str | None = None,
    redactor: Redactor = DEFAULT_REDACTOR,
    verbose: bool = False,
    linger_s: float = LINGER_S,
    searches: bool = False,
    contracts: Path | None = None,
) -> int:
    """Run until the client leaves or a signal comes; the exit code.

    The service, a URL, may come and go; one on this machine is started where none answers, and
    ends `linger_s` seconds after its last gateway left. `api_key` is the gateway's own, by default
    that of the environment. `address` is host and port for HTTP; None
    serves the standard streams. `agent` is the name of callers that give none, `purpose` what
    they work on; `redactor` masks secrets. With `searches` clients find tools instead of seeing all
    of them; `contracts` is the file of what is added to descriptions, if anything is.
    """
    process.log_to_stderr(verbose=verbose)
    # FastMCP decorates its own log for a terminal; here it goes the way of all others.
    of_fastmcp = logging.getLogger("fastmcp")
    of_fastmcp.handlers.clear()
    of_fastmcp.propagate = True
    of_fastmcp.setLevel(logging.getLogger().level)
    local = LocalService(service, say=_print_sentence, linger_s=linger_s)

    @contextlib.asynccontextmanager
    async def open_gateway(callers_key: str | None) -> AsyncIterator[FastMCP[Any]]:
        key = callers_key or api_key
        recorder = Recorder(base_url=service, api_key=key, redactor=redactor, quiet_s=WAITED_FOR_S)
        saying = asyncio.create_task(_say_missing(service, key))
        try:
            # No retries of its own: a failing call would wait, and registration retries.
            async with _make_client(service, key, redactor) as client:
                yield build_gateway(
                    config,
                    client=client,
                    recorder=recorder,
                    policy=policy,
                    agent=agent,
                    purpose=purpose,
                    observers=observers,
                    lists=LastLists(data_folder() / "listed"),
                    in_use=local.wait_looked,
                    start=local,
                    searches=searches,
                    contracts=contracts,
                )
        finally:
            saying.cancel()
            await asyncio.to_thread(recorder.close)

    async def run() -> int:
        async with local.use_service():
            if address is not None:
                return await _serve_http(open_gateway, service, *address)
            async with open_gateway(None) as gateway:
                with process.gated_stdin() as end, process.ended_by_signals(end) as received:
                    await gateway.run_stdio_async(show_banner=False)
                    return process.exit_code(received)

    with _observe_calls() as observers:
        return asyncio.run(run())


def _print_sentence(sentence: str) -> None:
    sys.stderr.write(f"aftercall: {sentence}\n")


async def _say_missing(service: str, api_key: str | None) -> None:
    """Once, as soon as the service answers: what calls leave out that could be learned from."""
    async with _make_client(service, api_key) as client:
        for _ in range(20):
            with suppress(errors.AftercallError):
                for each in (await client.status()).missing:
                    _print_sentence(each)
                return
            await asyncio.sleep(CHECK_EVERY_S / 10)


def _make_client(
    service: str, api_key: str | None, redactor: Redactor = DEFAULT_REDACTOR
) -> AsyncClient:
    return AsyncClient(
        service, api_key=api_key, retries=0, connect_timeout_s=_CONNECT_TIMEOUT_S, redactor=redactor
    )


async def _serve_http(opened: _Opened, service: str, host: str, port: int) -> int:
    with process.bind_socket(host, port) as listener:
        bound = listener.getsockname()[0]
        is_local = ip_address(bound).is_loopback

        @contextlib.asynccontextmanager
        async def app_of(api_key: str | None) -> AsyncIterator[_App]:
            async with opened(api_key) as gateway:
                app = gateway.http_app(
                    path=PATH,
                    host_origin_protection="auto",
                    # Against DNS rebinding: on this machine, only its own names are answered to.
                    allowed_hosts=[host, bound] if is_local else None,
                )
                async with app.router.lifespan_context(app):
                    yield app

        callers = _Callers(app_of, service, is_local=is_local)
        server = process.http_server(
            callers,
            lifespan="off",
            ws="none",
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=2,
        )
        _print_sentence(f"gateway at {process.url_of(listener)}{PATH}")
        with process.ended_by_signals(lambda: setattr(server, "should_exit", True)) as received:
            try:
                if is_local:
                    await callers.app_for("")
                await server.serve(sockets=[listener])
            finally:
                await callers.close()
            return process.exit_code(received)


class _Callers:
    """A gateway for each key that callers bring, so that none shares a session with another.

    Each has its own connections to the servers, its own recorder and client of the service, which
    sees the caller's key. Without a key, on this machine alone, the gateway's own is used.
    """

    def __init__(self, app_of: _AppOf, service: str, *, is_local: bool) -> None:
        self._app_of = app_of
        self._service = service
        self._is_local = is_local
        self._apps: dict[str, _App] = {}
        self._seen: dict[str, float] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._ended = asyncio.Event()
        self._opening = asyncio.Lock()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        # Blanks around a value are not part of it (RFC 9110, 5.5); the MCP SDK compares them.
        given = [(name, value.strip(b" \t")) for name, value in scope.get("headers", ())]
        scope, headers = {**scope, "headers": given}, dict(given)
        kind, _, key = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        key = key.strip() if kind.lower() == "bearer" else ""
        if (problem := await self._key_problem(key)) is None:
            await (await self.app_for(key))(scope, receive, send)
            return
        status, message = problem
        body = json.dumps({"error": {"code": "key_needed", "message": message}}).encode()
        head = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": body})

    async def _key_problem(self, key: str) -> tuple[int, str] | None:
        if not key:
            said = "send a key of the service in the header Authorization"
            return None if self._is_local else (401, said)
        if time.monotonic() - self._seen.get(key, -_TRUST_S) < _TRUST_S:
            return None
        if key not in self._apps and len(self._apps) > _MAX_CALLERS:
            return 503, f"more than {_MAX_CALLERS} keys at a time; start another gateway for it"
        try:
            async with _make_client(self._service, key) as client:
                await client.status()
        except (errors.NotAllowedError, errors.ConfigurationError) as error:
            if not isinstance(error, errors.NotAllowedError) or error.status != _FORBIDDEN:
                return 401, "the service does not know this key"
        except errors.AftercallError:
            # One that was served goes on while the service is away; others have to wait.
            return None if key in self._apps else (503, "the service cannot say whose this key is")
        self._seen[key] = time.monotonic()
        return None

    async def app_for(self, key: str) -> _App:
        async with self._opening:
            if key not in self._apps:
                ready: asyncio.Future[_App] = asyncio.get_running_loop().create_future()
                self._tasks.append(asyncio.create_task(self._hold_app(key or None, ready)))
                self._apps[key] = await ready
        return self._apps[key]

    async def _hold_app(self, key: str | None, ready: "asyncio.Future[_App]") -> None:
        # Its task groups want to be left by the task that entered them.
        try:
            async with self._app_of(key) as app:
                ready.set_result(app)
                await self._ended.wait()
        except Exception as error:
            if ready.done():
                raise
            ready.set_exception(error)

    async def close(self) -> None:
        self._ended.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@contextlib.contextmanager
def _observe_calls() -> Iterator[list[CallObserver]]:
    """Observe calls by spans, where OpenTelemetry's variables name a collector."""
    names = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    if not any(map(os.environ.get, names)) or os.environ.get("OTEL_TRACES_EXPORTER") == "none":
        yield []
        return
    try:
        from aftercall.span_export import export_spans  # noqa: PLC0415  # the extra
        from aftercall.tracing import TracingObserver  # noqa: PLC0415  # as above
    except ImportError:
        # The variables may be meant for other programs, so this is no reason to stop.
        _logger.warning(
            "no spans are sent: OpenTelemetry is not installed; %s", how_to_install("gateway,otel")
        )
        yield []
        return
    service = {"service.name": "aftercall-gateway", "service.version": version("aftercall")}
    with export_spans(service, url=None, close_within_s=_LAST_SPANS_S) as provider:
        yield [TracingObserver(provider)]


def build_gateway(
    config: GatewayConfig,
    *,
    client: AsyncClient,
    recorder: ExecutionSink,
    policy: ReflectionPolicy | None = None,
    agent: str | None = None,
    purpose: str | None = None,
    errlog: TextIO | None = None,
    observers: Sequence[CallObserver] = (),
    lists: LastLists | None = None,
    in_use: InUse | None = None,
    start: ServiceStart | None = None,
    searches: bool = False,
    contracts: Path | None = None,
) -> FastMCP[Any]:
    """Return a server that offers the tools, resources and prompts of all configured servers.

    With one server the tools keep their names; with several they become `<server>_<tool>`. The
    servers are started with the gateway's lifespan, once, and ended with it. A server that does
    not start does not keep the others away: calls of its tools say what is wrong.

    The client asks `/suggest` and registers tools; it and the recorder stay the caller's to close.
    `errlog` is where stdio servers' standard error goes; this process's own when None. `lists` are
    those of the last run; `in_use` states which service is used, for the instructions; questions
    wait for its `start`. With `searches` clients see the tools of `ToolSearch` instead of all
    others; with a file of `contracts`, descriptions with what calls keep getting wrong.
    """
    upstreams = _Upstreams(config, client, errlog, lists or LastLists(None), in_use)
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
                purpose=purpose,
                policy=policy,
                locate=upstreams.locate_tool,
                deliverables=upstreams.deliverable_of,
                handling_of=upstreams.tool_handling,
                passes=NAMES.__contains__ if searches else None,
                check=client,
                start=start,
                observers=observers,
            )
        ],
    )
    take_texts(gateway)
    if contracts is not None:
        learned = LearnedDescriptions(
            contracts, client, upstreams.locate_tool, upstreams.describes_learned
        )
        learned.serve_clients(gateway, upstreams.announcer.announce_change)
        upstreams.beside.append(learned.run)
    if start is not None:
        upstreams.beside.append(partial(upstreams.register_after, start))
    upstreams.front.serve_clients(gateway)
    upstreams.announcer.serve_clients(gateway)
    BesideTools(upstreams.servers, upstreams.announcer.bus).serve_clients(gateway)
    # A call of a tool whose server is away must say so, and not "unknown tool".
    gateway.provider_error_strategy = "raise"
    # Without a lookup the MCP SDK lists all tools before every call over HTTP (2026-07-28), to
    # check the call's headers; FastMCP has no setting for it.
    gateway._mcp_server.get_tool_input_schema = upstreams.input_schema  # noqa: SLF001  # no setting
    for name, provider in upstreams.providers.items():
        gateway.add_provider(provider, namespace=name if upstreams.are_several else "")
    if searches:
        gateway.add_transform(ToolSearch(client, upstreams.locate_tool))
    return gateway


class _Upstreams:
    def __init__(
        self,
        config: GatewayConfig,
        client: AsyncClient,
        errlog: TextIO | None,
        lists: LastLists,
        in_use: InUse | None,
    ) -> None:
        self.are_several = len(config.servers) > 1
        self._configured = {server.name: server for server in config.servers}
        self._registrar = ToolRegistrar(client)
        self._changed = {server.name: asyncio.Event() for server in config.servers}
        self.front = front = FrontWire()
        self.servers = [
            Upstream(
                server, on_tools_changed=self._changed[server.name].set, errlog=errlog, front=front
            )
            for server in config.servers
        ]
        self.beside: list[Callable[[], Coroutine[Any, Any, None]]] = []
        """What else runs as long as the gateway."""
        self._lists = lists
        self._known = {server.name: lists.read(server) for server in config.servers}
        # What servers stated about their use in the last run; of those whose list is known.
        before = {name: known.instructions for name, known in self._known.items() if known}
        first = FirstAnswers(len(config.servers))
        self.announcer = Announcer(self.servers, before, in_use, first)
        self.providers = {
            upstream.name: UpstreamProvider(
                upstream,
                on_tools=self._take_list,
                before=known.tools if known else None,
                first=first,
            )
            for upstream, known in zip(self.servers, self._known.values(), strict=True)
        }

    def locate_tool(self, exposed: str) -> tuple[str | None, str]:
        """Server and tool behind an exposed name, in the order in which FastMCP looks for it."""
        if not self.are_several:
            return self.servers[0].name, exposed
        fitting = [name for name in self.providers if exposed.startswith(f"{name}_")]
        for name in fitting:
            tool_name = exposed.removeprefix(f"{name}_")
            if self.providers[name].known_tool(tool_name) is not None:
                return name, tool_name
        if fitting:
            longest = max(fitting, key=len)
            return longest, exposed.removeprefix(f"{longest}_")
        return None, exposed

    def deliverable_of(self, server_name: str | None, tool_name: str) -> Deliverable | None:
        server = self._configured.get(server_name or "")
        return server.deliverables.get(tool_name) if server else None

    def tool_handling(self, server_name: str | None, tool_name: str) -> ToolHandling:
        server = self._configured.get(server_name or "")
        return server.handling_of.get(tool_name, server.handling) if server else ToolHandling()

    async def register_after(self, start: ServiceStart) -> None:
        """Register the tools as soon as a service that is being started answers."""
        await start.wait_settled()
        self._registrar.look_again()

    def _take_list(self, server_name: str, tools: Sequence[mcp_types.Tool]) -> None:
        self._registrar.offer_tools(server_name, tools)
        upstream = next(each for each in self.servers if each.name == server_name)
        before, now = self._known[server_name], ServerList(tools, upstream.instructions)
        if now == before:
            return
        if self.providers[server_name].is_missed or (before and before.tools != tools):
            self.announcer.announce_change()
        self._known[server_name] = now
        self._lists.write(self._configured[server_name], now)

    def describes_learned(self, server_name: str | None, tool_name: str) -> bool | None:
        """Return whether a tool's description is given what was learned, where that is set."""
        return self.tool_handling(server_name, tool_name).learned

    def input_schema(self, exposed: str) -> dict[str, Any] | None:
        server_name, tool_name = self.locate_tool(exposed)
        provider = self.providers.get(server_name or "")
        tool = provider.known_tool(tool_name) if provider is not None else None
        return tool.parameters if tool is not None else None

    @contextlib.asynccontextmanager
    async def lifespan(self, _: FastMCP[Any]) -> AsyncIterator[None]:
        for upstream in self.servers:
            upstream.start(now=self._known[upstream.name] is None)
        # Each server by itself: one that hangs keeps no other's list from being renewed.
        keeping = [self._keep_listed(name) for name in self.providers]
        more = [run() for run in self.beside]
        work = (*keeping, *more, self._registrar.run(), self.announcer.run())
        tasks = [asyncio.create_task(each) for each in work]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.gather(*(u.close() for u in self.servers), return_exceptions=True)

    async def _keep_listed(self, server_name: str) -> None:
        if self._known[server_name] is not None:
            # Servers that start take the processor from the answer that the client waits for.
            with suppress(TimeoutError):
                await asyncio.wait_for(self.announcer.listed.wait(), LISTED_WITHIN_S)
        while True:
            self._changed[server_name].clear()
            with suppress(Exception):  # it may be away
                await self.providers[server_name].refresh_tools()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed[server_name].wait(), RELIST_EVERY_S)


class ToolRegistrar:
    """Keeps the service's list of tools like the gateway's. Run `run` in a task.

    It looks at the service every `check_every_s` seconds, and in a tenth of that while it is away.
    """

    def __init__(self, client: AsyncClient, *, check_every_s: float = CHECK_EVERY_S) -> None:
        self._client = client
        self._check_every_s = check_every_s
        self._offered: dict[str, Sequence[mcp_types.Tool]] = {}
        self._wanted: dict[str, ToolSpec] = {}
        self._registered: dict[str, ToolSpec] = {}
        self._changed = asyncio.Event()
        self._is_away = False

    def offer_tools(self, server_name: str, listed: Sequence[mcp_types.Tool]) -> None:
        """Take the tools of a server over; those that are new or changed are registered."""
        self._offered[server_name] = listed
        self._changed.set()

    def look_again(self) -> None:
        """Look at the service now: it was started, or is back."""
        self._changed.set()

    async def _take_offers(self) -> None:
        """Read what was offered, in steps: calls have their turn between them."""
        while self._offered:
            server_name, listed = self._offered.popitem()
            for number, tool in enumerate(listed):
                tool_id = f"{server_name}.{tool.name}"
                spec = _make_spec(server_name, tool)
                if spec is not None:
                    self._wanted[tool_id] = spec
                if number % PAGE == PAGE - 1:
                    await asyncio.sleep(PAUSE_S)

    async def run(self) -> None:
        """Register what changed, until cancelled."""
        while True:
            self._changed.clear()
            await self._take_offers()
            await self._register_tools()
            pause_s = self._check_every_s if not self._is_away else self._check_every_s / 10
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), pause_s)
            is_there = False
            with suppress(errors.AftercallError):
                is_there = await self._client.ready()
            if is_there and self._is_away:
                self._registered.clear()  # its store may be empty
            self._is_away = not is_there

    async def _register_tools(self) -> None:
        for tool_id, spec in list(self._wanted.items()):
            if self._registered.get(tool_id) == spec:
                continue
            try:
                await self._client.put_tool(tool_id, spec)
            except (errors.RateLimitedError, errors.ServiceFailedError):
                return  # not now; asked again at the next look
            except errors.ApiError as error:
                # The service will not take this one however often it is asked.
                _logger.warning("tool %s is not registered: %s", tool_id, error)
            except errors.AftercallError:
                self._is_away = True
                return
            self._registered[tool_id] = spec


def _make_spec(server_name: str, tool: mcp_types.Tool) -> ToolSpec | None:
    claims = tool.annotations.model_dump(exclude_none=True) if tool.annotations else {}
    try:
        return ToolSpec.model_validate(
            {
                "name": tool.name,
                "server_name": server_name,
                "description": bounded_text(tool.description or "", 20_000),
                "input_schema": make_json_value(tool.input_schema),
                "annotations": ToolAnnotations.model_validate(claims),
            }
        )
    except ValidationError as error:
        fields = ", ".join(str(e["loc"]) for e in error.errors(include_input=False))
        _logger.warning("tool %s of %s is not registered: %s", tool.name, server_name, fields)
        return None
