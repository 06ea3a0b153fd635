"""Reflection as middleware of a FastMCP server (extra `gateway`).

    mcp.add_middleware(ReflectionMiddleware(client=client, recorder=recorder, server_name="git"))

Every tool call is recorded; one that fails is asked about, and retried where that is safe. On the
way of a call that succeeds nothing is awaited but the call itself.

A tool of a FastMCP server returns `outcome_result(outcome)`. Then type and metadata of an error
cross process borders: they are the structured content, and the text is for people and models.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, Unpack
from uuid import uuid4

from aftercall.explain import require_extra

with require_extra("gateway", "aftercall.adapters.fastmcp"):
    import mcp_types
    from fastmcp import FastMCP
    from fastmcp.server.context import Context
    from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
    from fastmcp.tools.base import Tool, ToolResult
    from fastmcp.tools.function_tool import FunctionTool
    from mcp.server.context import CallNext as CallAnything
    from mcp.server.context import ServerRequestContext
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from aftercall import outcomes
from aftercall.adapters import asked_user, before_call
from aftercall.adapters.fastmcp_results import (
    ToolResultReader,
    advise_failure,
    claims_of_tool,
    note_success,
    reader_of,
    rebuild_result,
)
from aftercall.adapters.mcp_sessions import HttpSessions, meta_of_headers
from aftercall.adapters.reflector import (
    META_KEY,
    KnownTool,
    ReflectionOptions,
    Reflector,
    code_of,
    has_run,
    text_with_advice,
)
from aftercall.arguments import UnreadableArgumentsError, arguments_of
from aftercall.change_classes import reads_only
from aftercall.client import AsyncClient
from aftercall.contracts import Deliverable
from aftercall.error_texts import ErrorTexts, name_or_none
from aftercall.json_values import JsonObject
from aftercall.mcp_calls import Caller
from aftercall.models.calls import Call, CheckResponse, ExecutionError, ShadowFacts, ToolAnnotations
from aftercall.reflection import ReflectedResult

DeliverableOf = Callable[[str | None, str], Deliverable | None]
"""Server and tool -> what the tool's results must be."""

_USUAL = before_call.ToolHandling()
_TEXT_KEY = "aftercall/argumentsText"
"""Under which a text comes to the middleware, see `take_texts`."""


class ServiceStart(Protocol):
    """The start of the service that is asked, while it lasts."""

    @property
    def patience_s(self) -> float:
        """Seconds that a question may wait for it."""

    async def wait_settled(self) -> None:
        """Wait until the service answers, for `patience_s` at most."""


class _NoStart:
    patience_s = 0.0

    async def wait_settled(self) -> None:
        """There is nothing to wait for."""


class ReflectionMiddleware(Middleware):
    """Records the calls of a server's tools, and repairs failed ones.

    The agent, the session and the purpose are read from the request's `_meta` keys
    `aftercall/agent`, `aftercall/session` and `aftercall/context`, else over HTTP from the headers
    `aftercall-agent`, `aftercall-session` and `aftercall-context`; without them they are the MCP
    client's name, its session (over HTTP without one: ours, see `HttpSessions`), and `purpose`. A
    call with `aftercall/record: false` passes unseen.

    Args:
        agent: name of the caller when the request gives none; the MCP client's name when None.
        purpose: what callers work on that do not say so.
        locate: server and tool behind an exposed tool name, where the two differ (a gateway);
            `server_name` and the name itself when None.
        deliverables: what the results of tools must be, by tool name, or a function of server and
            tool. Structured content is checked, or else the JSON in the text, in
            its canonical shape; the caller gets it as the tool gave it. A result that breaks its
            deliverable is recorded and asked about as a failure, and reaches the caller as an
            error result: the tool's own content first, then what it breaks.
        handling_of: how calls of a server's tool are handled.
        passes: exposed names of tools that only lead to others: their calls pass unseen.
        check: asked before calls that look wrong; None makes all calls as they are.
        start: the service's start, which questions wait for; None where it runs or is away.

    All other arguments are those of `ReflectionOptions`.
    """

    def __init__(
        self,
        *,
        agent: str | None = None,
        purpose: str | None = None,
        locate: Callable[[str], tuple[str | None, str]] | None = None,
        deliverables: Mapping[str, Deliverable] | DeliverableOf | None = None,
        handling_of: Callable[
            [str | None, str], before_call.ToolHandling
        ] = lambda _server, _tool: _USUAL,
        passes: Callable[[str], bool] | None = None,
        check: AsyncClient | None = None,
        start: ServiceStart | None = None,
        **options: Unpack[ReflectionOptions],
    ) -> None:
        self._reflector = reflector = Reflector(**options)
        self._agent = agent
        self._locate = locate or (lambda name: (reflector.server_name, name))
        by_name = {} if deliverables is None or callable(deliverables) else deliverables
        self._deliverable_of: DeliverableOf = (
            deliverables if callable(deliverables) else lambda _, tool: by_name.get(tool)
        )
        self._handling_of = handling_of
        self._passes = passes or (lambda _name: False)
        self._checker = check
        self._start = start or _NoStart()
        self._before = before_call.BeforeCall()
        self._asked = asked_user.AskedUser()
        self._error_texts = ErrorTexts()
        self._purpose = purpose
        self._process_session = str(uuid4())
        self._sessions = HttpSessions()

    async def on_call_tool(
        self,
        context: MiddlewareContext[mcp_types.CallToolRequestParams],
        call_next: CallNext[mcp_types.CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        """Call the tool with reflection; raises the tool's own where there is nothing to add."""
        text = (context.message.arguments or {}).get(_TEXT_KEY)
        if not isinstance(text, str):
            return await self._call_tool(context, call_next)
        given = arguments_of(text)
        if given.parameters is None:
            return await self._refuse_call(context, text)
        update = {"arguments": given.parameters}
        read = context.copy(message=context.message.model_copy(update=update))
        result = await self._call_tool(read, call_next)
        handling = self._handling_of(*self._locate(context.message.name))
        if not given.note or handling.note == "never":
            return result
        facts = {**((result.meta or {}).get(META_KEY) or {}), "note": given.note}
        return rebuild_result(result, facts, [f"Aftercall: {given.note}. Send an object."])

    async def _call_tool(
        self,
        context: MiddlewareContext[mcp_types.CallToolRequestParams],
        call_next: CallNext[mcp_types.CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        server_name, tool_name = self._locate(context.message.name)
        handling = self._handling_of(server_name, tool_name)
        caller = self._caller_of(context.fastmcp_context)
        name = context.message.name
        if handling.mode == "off" or not caller.is_recorded or self._passes(name):
            return await call_next(context)
        # An own server's tool is not looked up for each call.
        is_looked_up = self._checker is not None
        listed = await _tool_of(context.fastmcp_context, name) if is_looked_up else None
        key = caller.session_id or caller.agent, server_name, tool_name
        call = _OneCall(context, call_next, handling, caller, key, listed)
        if handling.mode == "shadow":
            return await self._watch_call(call)
        answered = self._asked.read_answer(call.front, key[0]) if call.acts else None
        if answered is not None:
            return await self._made_answered(call, answered)
        checked = await self._check_call(call)
        if (question := self._approval_question(call, checked)) is not None:
            # What was approved is what runs: without an answer it is the call as it came.
            checked = before_call.Checked(call.arguments)
            if self._asked.may_ask(call.front, key[0], question):
                return await self._asked_about(call, question, None)
        if checked.refusal:
            return ToolResult(
                content=checked.refusal, meta={META_KEY: {"blocked": True}}, is_error=True
            )
        return await self._make_call(call, checked)

    async def _watch_call(self, call: "_OneCall") -> ToolResult:
        checked = await self._check_call(call)
        shadow = self._before.watch_call(call.key, call.arguments, checked)
        reflected = await self._reflect_call(call, checked, shadow)
        if reflected.unmade is not None:
            self._before.would_send(call.key, reflected.unmade)
        return reflected.value()

    async def _make_call(self, call: "_OneCall", checked: before_call.Checked) -> ToolResult:
        """Make a call; one that fails may be a question of where a value goes."""
        reflected = await self._reflect_call(call, checked)
        if reflected.succeeded:
            return note_success(reflected, checked, call.handling.note)
        failed = partial(advise_failure, reflected, checked)
        if not call.acts or call.tool is None:
            return failed()
        offered, schema = reflected.suggestions, call.tool.parameters
        question = asked_user.ask_place(call.name, offered, checked.parameters, schema)
        if question is None and self._is_approved(call):
            least = self._reflector.policy.min_confidence
            question = asked_user.ask_repair(call.name, offered, checked.parameters, least)
        if question is None or not self._asked.may_ask(call.front, call.key[0], question):
            return failed()
        return await self._asked_about(call, question, failed())

    async def _asked_about(
        self, call: "_OneCall", question: asked_user.UserQuestion, otherwise: ToolResult | None
    ) -> ToolResult:
        if call.front is None:
            raise LookupError("there is no client to ask")  # `may_ask` has seen one
        asked = await self._asked.ask_user(call.front, call.key[0], question, otherwise)
        if not isinstance(asked, asked_user.Answered):
            return asked
        return await self._made_answered(call, asked)

    async def _made_answered(self, call: "_OneCall", answered: asked_user.Answered) -> ToolResult:
        """Make the call that the user chose; without a choice, the one that came, if any."""
        if answered.choice is None:
            if answered.otherwise is not None:
                return answered.otherwise
            return await self._make_call(call, before_call.Checked(call.arguments))
        chosen = answered.question.calls[answered.choice]
        checked = before_call.Checked(chosen)
        reflected = await self._reflect_call(call, checked)
        if not reflected.succeeded:
            return advise_failure(reflected, checked)
        note = asked_user.note_of_answer(answered.question, answered.choice)
        texts = [] if call.handling.note == "never" else [note]
        facts: JsonObject = {"repaired": True, "asked": answered.choice, "sent": chosen}
        return rebuild_result(reflected.value(), facts, texts)

    async def _reflect_call(
        self, call: "_OneCall", checked: before_call.Checked, shadow: ShadowFacts | None = None
    ) -> ReflectedResult[ToolResult]:
        server_name, tool_name = call.key[1:]
        wanted = self._deliverable_of(server_name, tool_name)
        pattern = call.handling.error_pattern
        own = ToolResultReader(
            self._error_texts, call.key[1:], call.tool, checked.parameters, pattern
        )
        caller, is_approved = call.caller, self._is_approved(call)

        async def known_tool() -> KnownTool:
            await self._start.wait_settled()
            return await call.known_tool()

        reflected: ReflectedResult[ToolResult] = await self._reflector.call_async(
            call.send,
            known_tool,
            tool_name=tool_name,
            parameters=checked.parameters,
            is_retried=call.handling.mode != "advise"
            and not (is_approved and call.handling.ask == "always"),
            keeps_values=is_approved,
            patience_s=self._start.patience_s,
            shadow=shadow,
            repaired_before=bool(checked.changes),
            agent=caller.agent,
            server_name=server_name,
            session_id=caller.session_id,
            context=caller.context,
            reader=reader_of(own, wanted),
        )
        self._before.count_ended(call.key, succeeded=reflected.succeeded)
        return reflected

    def _approval_question(
        self, call: "_OneCall", checked: before_call.Checked
    ) -> asked_user.UserQuestion | None:
        """Return what the user has to say before a changed call is made; None for nothing.

        Of a call that a user approves only what keeps every value is changed alone.
        """
        said = checked.said
        if not checked.changes or said is None or not self._is_approved(call):
            return None
        if call.handling.ask == "lossy" and said.change_class == "lossless":
            return None
        return asked_user.ask_approval(call.name, checked.changes, checked.parameters)

    def _is_approved(self, call: "_OneCall") -> bool:
        """Return whether a user may have approved a call, as clients ask for tools that write."""
        if call.handling.ask == "never" or call.tool is None:
            return False
        claims = claims_of_tool(call.tool) if self._reflector.policy.trust_annotations else None
        return not reads_only(call.key[2], claims, call.arguments)

    def _caller_of(self, context: Context | None) -> Caller:
        """Return the caller of the request that `context` belongs to."""
        request = context.request_context if context is not None else None
        if context is None or request is None:
            return Caller(self._agent or "unknown", context=self._purpose)
        params = request.session.client_params
        info = params.client_info if params is not None else None
        meta: dict[str, object] = {}
        if (http := request.request) is not None:
            meta = meta_of_headers(http.headers)
            if negotiated := http.headers.get("mcp-session-id"):
                session = _session_name(negotiated)
            else:
                host = http.client.host if http.client else ""
                by = http.headers.get("authorization", "")
                name = (info.name, info.version) if info else ("", "")
                session = self._sessions.session_of(host, by, *name)
        elif request.protocol_version in MODERN_PROTOCOL_VERSIONS:
            session = self._process_session
        else:
            session = context.session_id
        client = name_or_none(info.name) if info is not None else None
        caller = Caller(self._agent or client or "unknown", session, self._purpose)
        return caller.with_meta({**meta, **(request.meta or {})})

    async def _refuse_call(
        self, context: MiddlewareContext[mcp_types.CallToolRequestParams], text: str
    ) -> ToolResult:
        """Return a call whose arguments say no object: not made, recorded as it came."""
        server_name, tool_name = self._locate(context.message.name)
        caller = self._caller_of(context.fastmcp_context)
        error = UnreadableArgumentsError().error
        mode = self._handling_of(server_name, tool_name).mode
        if mode == "off" or not caller.is_recorded or self._passes(context.message.name):
            return ToolResult(content=text_with_advice(error, ""), is_error=True)

        async def make_none(_: JsonObject) -> ToolResult:
            raise UnreadableArgumentsError

        reflected: ReflectedResult[ToolResult] = await self._reflector.call_async(
            make_none,
            KnownTool(),
            tool_name=tool_name,
            parameters=text,
            agent=caller.agent,
            server_name=server_name,
            session_id=caller.session_id,
            context=caller.context,
        )
        advice = "" if mode == "shadow" else reflected.advice
        return ToolResult(content=text_with_advice(error, advice), is_error=True)

    async def _check_call(self, call: "_OneCall") -> before_call.Checked:
        """Return what to send; the call as it is for an agent that wants no reflection."""
        policy, checker, caller = self._reflector.policy, self._checker, call.caller
        if checker is None or policy.leaves_alone(caller.agent):
            return before_call.Checked(call.arguments)
        schema = call.tool.parameters if call.tool is not None else None

        async def ask_service() -> CheckResponse:
            await self._start.wait_settled()
            asked = Call(
                agent=caller.agent, server_name=call.key[1], tool_name=call.key[2],
                parameters=call.arguments, session_id=caller.session_id, context=caller.context,
                input_schema=schema,
            )  # fmt: skip
            claims = claims_of_tool(call.tool) if policy.trust_annotations else ToolAnnotations()
            return await checker.check(asked, annotations=claims)

        return await self._before.check_call(
            call.key,
            call.arguments,
            schema,
            ask_service,
            acts=call.acts,
            patience_s=self._start.patience_s,
        )


@dataclass(eq=False)
class _OneCall:
    """A call as it came, with what is known of it."""

    context: MiddlewareContext[mcp_types.CallToolRequestParams]
    call_next: CallNext[mcp_types.CallToolRequestParams, ToolResult]
    handling: before_call.ToolHandling
    caller: Caller
    key: before_call.CallKey
    tool: Tool | None
    raised: Exception | None = None

    @property
    def name(self) -> str:
        """Tool's name, as clients see it."""
        return self.context.message.name

    @property
    def arguments(self) -> JsonObject:
        """Parameters that came."""
        return self.context.message.arguments or {}

    @property
    def front(self) -> Context | None:
        """Client's request."""
        return self.context.fastmcp_context

    @property
    def acts(self) -> bool:
        """Return whether anything may be done about it but to advise."""
        return self.handling.mode == "repair"

    async def send(self, parameters: JsonObject) -> ToolResult:
        """Call the tool."""
        self.raised = None
        request = self.context.message
        try:
            if parameters is request.arguments:
                return await self.call_next(self.context)
            changed = request.model_copy(update={"arguments": parameters})
            return await self.call_next(self.context.copy(message=changed))
        except Exception as error:
            self.raised = error
            raise

    async def known_tool(self) -> KnownTool:
        """Return what the service is shown of the tool."""
        if (tool := await _tool_of(self.front, self.name)) is None:
            return KnownTool()
        error, code = self.raised, code_of(tool.fn) if isinstance(tool, FunctionTool) else None
        return KnownTool(
            schema=lambda: tool.parameters,
            annotations=claims_of_tool(tool),
            has_run=lambda: error is not None and has_run(code, error),
        )


def take_texts(server: FastMCP[Any]) -> None:
    """Have a server hand calls whose arguments are a text to its `ReflectionMiddleware`.

    Without it the MCP SDK refuses them before any middleware of FastMCP sees them.
    """
    server._mcp_server.middleware.append(_carry_text)  # noqa: SLF001  # FastMCP shows no way


async def _carry_text(ctx: ServerRequestContext[Any, Any], call_next: CallAnything) -> Any:
    text = (ctx.params or {}).get("arguments") if ctx.method == "tools/call" else None
    if isinstance(text, str):
        ctx = replace(ctx, params={**(ctx.params or {}), "arguments": {_TEXT_KEY: text}})
    return await call_next(ctx)


async def _tool_of(context: Context | None, exposed_name: str) -> Tool | None:
    try:
        return await context.fastmcp.get_tool(exposed_name) if context else None
    except Exception:  # noqa: BLE001  # the tool's server is away; what it said still counts
        return None


def _session_name(session_id: str) -> str:
    """Return a negotiated session's name.

    Hashed, since one who knows the id can speak in the session.
    """
    return hashlib.sha256(session_id.encode()).hexdigest()[:32]


def outcome_result(outcome: outcomes.Outcome[Any]) -> ToolResult:
    """Return an outcome as the result of a tool of a FastMCP server.

    A success is the result that returning its value makes, with its status in `_meta`. A failure
    is an error result; its structured content is `outcome.to_dict()`.
    """
    if outcome.error is not None:
        return ToolResult(
            content=_as_text(outcome.error), structured_content=outcome.to_dict(), is_error=True
        )
    value = outcome.value
    return ToolResult(
        content=[] if value is None else value,
        structured_content=value if isinstance(value, dict) else {"result": value},
        meta=None if outcome.status is None else {outcomes.STATUS_KEY: outcome.status},
    )


def _as_text(error: ExecutionError) -> str:
    lines = [f"{error.type}: {error.message}"]
    if (referral := outcomes.referral_of(error)) is not None:
        words = ("Mixes", "Task", "Suggested split", "Evidence")
        for word, (_, value) in zip(words, referral, strict=True):
            shown = "; ".join(value) if isinstance(value, list) else value
            lines += [f"{word}: {shown}"] if shown else []
    return "\n".join(lines)
