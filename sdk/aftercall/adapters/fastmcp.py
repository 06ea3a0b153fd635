"""Reflection as middleware of a FastMCP server (extra `gateway`).

    mcp.add_middleware(ReflectionMiddleware(client=client, recorder=recorder, server_name="git"))

Every tool call is recorded; one that fails is asked about, and retried where that is safe. On the
way of a call that succeeds nothing is awaited but the call itself.

A tool of a FastMCP server returns `outcome_result(outcome)`. Then type and metadata of an error
cross process borders: they are the structured content, and the text is for people and models.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Unpack
from uuid import uuid4

from aftercall.explain import needing

with needing("gateway", "aftercall.adapters.fastmcp"):
    import mcp_types
    from fastmcp import FastMCP
    from fastmcp.exceptions import DisabledError, NotFoundError, ToolError, ValidationError
    from fastmcp.server.context import Context
    from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
    from fastmcp.tools.base import InputRequiredToolResult, Tool, ToolResult
    from fastmcp.tools.function_tool import FunctionTool
    from mcp.server.context import CallNext as CallAnything
    from mcp.server.context import ServerRequestContext
    from mcp_types import TextContent
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from aftercall import outcomes
from aftercall.adapters import before_call
from aftercall.adapters.mcp_sessions import HttpSessions, meta_of_headers
from aftercall.adapters.reflector import (
    META_KEY,
    KnownTool,
    ReflectionOptions,
    Reflector,
    code_of,
    dumped,
    failure_text,
    has_run,
    repair_facts,
)
from aftercall.arguments import UnreadableArgumentsError, arguments_of
from aftercall.change_classes import reads_only
from aftercall.client import AsyncClient
from aftercall.contracts import CONTRACT_VIOLATION, Deliverable, DeliverableReader
from aftercall.error_texts import ErrorTexts, ToolKey, name_or_none
from aftercall.json_values import JsonObject, bounded_text, json_or_none
from aftercall.mcp_calls import Caller, McpResultReader
from aftercall.models.calls import Call, CheckResponse, ExecutionError, ToolAnnotations
from aftercall.reflection import ReflectedResult, ResultReader
from aftercall.reflection.results import read_exception

_BODY_ERROR = "_ToolBodyError"
"""FastMCP's own, around a validation error of a tool that has run."""
DeliverableOf = Callable[[str | None, str], Deliverable | None]
"""Server and tool -> what the tool's results must be."""

# What FastMCP itself turns into an `isError` result. Anything else is a matter of the protocol or
# of authorisation, has its own form on the wire, and keeps it.
_TOLD_AS_RESULT = (ToolError, ValidationError, NotFoundError, DisabledError)
_USUAL = before_call.ToolHandling()
_TEXT_KEY = "aftercall/argumentsText"
"""Under which a text comes to the middleware, see `take_texts`."""


class ServiceStart(Protocol):
    """The start of the service that is asked, while it lasts."""

    @property
    def patience_s(self) -> float:
        """Seconds that a question may wait for it."""

    async def settled(self) -> None:
        """Wait until the service answers, for `patience_s` at most."""


class _NoStart:
    patience_s = 0.0

    async def settled(self) -> None:
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
            tool. Structured content is checked, or the JSON in the text where there is none, in
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
            return await self._called(context, call_next)
        given = arguments_of(text)
        if given.parameters is None:
            return await self._refused(context, text)
        update = {"arguments": given.parameters}
        read = context.copy(message=context.message.model_copy(update=update))
        result = await self._called(read, call_next)
        handling = self._handling_of(*self._locate(context.message.name))
        if not given.note or handling.note == "never":
            return result
        facts = {**((result.meta or {}).get(META_KEY) or {}), "note": given.note}
        return _rebuilt(result, facts, [f"Aftercall: {given.note}. Send an object."])

    async def _called(
        self,
        context: MiddlewareContext[mcp_types.CallToolRequestParams],
        call_next: CallNext[mcp_types.CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        request = context.message
        arguments: JsonObject = request.arguments or {}
        server_name, tool_name = self._locate(request.name)
        handling = self._handling_of(server_name, tool_name)
        caller = self._caller_of(context.fastmcp_context)
        if handling.mode == "off" or not caller.is_recorded or self._passes(request.name):
            return await call_next(context)
        wanted = self._deliverable_of(server_name, tool_name)
        raised: Exception | None = None

        async def call(parameters: JsonObject) -> ToolResult:
            nonlocal raised
            raised = None
            try:
                if parameters is arguments:
                    return await call_next(context)
                return await call_next(
                    context.copy(message=request.model_copy(update={"arguments": parameters}))
                )
            except Exception as error:
                raised = error
                raise

        async def known() -> KnownTool:
            await self._start.settled()
            if (tool := await _tool_of(context.fastmcp_context, request.name)) is None:
                return KnownTool()
            error, code = raised, code_of(tool.fn) if isinstance(tool, FunctionTool) else None
            return KnownTool(
                schema=lambda: tool.parameters,
                annotations=_claims_of(tool),
                has_run=lambda: error is not None and has_run(code, error),
            )

        key = caller.session_id or caller.agent, server_name, tool_name
        # An own server's tool is not looked up for each call.
        is_looked_up = self._checker is not None
        listed = await _tool_of(context.fastmcp_context, request.name) if is_looked_up else None
        checked = await self._checked(
            key, caller, arguments, listed, acts=handling.mode == "repair"
        )
        if checked.refusal:
            return ToolResult(
                content=checked.refusal, meta={META_KEY: {"blocked": True}}, is_error=True
            )
        own = ToolResultReader(
            self._error_texts, key[1:], listed, checked.parameters, handling.error_pattern
        )
        is_shadow = handling.mode == "shadow"
        shadow = self._before.watched(key, arguments, checked) if is_shadow else None
        reflected: ReflectedResult[ToolResult] = await self._reflector.call_async(
            call,
            known,
            tool_name=tool_name,
            parameters=checked.parameters,
            is_retried=handling.mode != "advise",
            patience_s=self._start.patience_s,
            shadow=shadow,
            repaired_before=bool(checked.changes),
            agent=caller.agent,
            server_name=server_name,
            session_id=caller.session_id,
            context=caller.context,
            reader=_reader(own, wanted),
        )
        self._before.ended(key, succeeded=reflected.succeeded)
        if shadow is not None:
            if reflected.unmade is not None:
                self._before.would_send(key, reflected.unmade)
            return reflected.value()
        is_well = reflected.succeeded
        return (
            _noted(reflected, checked, handling.note) if is_well else _advised(reflected, checked)
        )

    def _caller_of(self, context: Context | None) -> Caller:
        """The caller of the request that `context` belongs to."""
        request = context.request_context if context is not None else None
        if context is None or request is None:
            return Caller(self._agent or "unknown", context=self._purpose)
        params = request.session.client_params
        info = params.client_info if params is not None else None
        meta: dict[str, object] = {}
        if (http := request.request) is not None:
            meta = meta_of_headers(http.headers)
            if negotiated := http.headers.get("mcp-session-id"):
                session = _negotiated(negotiated)
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

    async def _refused(
        self, context: MiddlewareContext[mcp_types.CallToolRequestParams], text: str
    ) -> ToolResult:
        """A call whose arguments say no object: not made, recorded as it came."""
        server_name, tool_name = self._locate(context.message.name)
        caller = self._caller_of(context.fastmcp_context)
        error = UnreadableArgumentsError().error
        mode = self._handling_of(server_name, tool_name).mode
        if mode == "off" or not caller.is_recorded or self._passes(context.message.name):
            return ToolResult(content=failure_text(error, ""), is_error=True)

        async def unmade(_: JsonObject) -> ToolResult:
            raise UnreadableArgumentsError

        reflected: ReflectedResult[ToolResult] = await self._reflector.call_async(
            unmade,
            KnownTool(),
            tool_name=tool_name,
            parameters=text,
            agent=caller.agent,
            server_name=server_name,
            session_id=caller.session_id,
            context=caller.context,
        )
        advice = "" if mode == "shadow" else reflected.advice
        return ToolResult(content=failure_text(error, advice), is_error=True)

    async def _checked(
        self,
        key: before_call.CallKey,
        caller: Caller,
        arguments: JsonObject,
        tool: Tool | None,
        *,
        acts: bool,
    ) -> before_call.Checked:
        """What to send; the call as it is for an agent that wants no reflection."""
        policy, checker = self._reflector.policy, self._checker
        if checker is None or policy.leaves_alone(caller.agent):
            return before_call.Checked(arguments)
        schema = tool.parameters if tool is not None else None

        async def ask() -> CheckResponse:
            await self._start.settled()
            call = Call(
                agent=caller.agent, server_name=key[1], tool_name=key[2], parameters=arguments,
                session_id=caller.session_id, context=caller.context, input_schema=schema,
            )  # fmt: skip
            claims = _claims_of(tool) if policy.trust_annotations else ToolAnnotations()
            return await checker.check(call, annotations=claims)

        patience_s = self._start.patience_s
        return await self._before.check(
            key, arguments, schema, ask, acts=acts, patience_s=patience_s
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


def _reader(own: "ToolResultReader", wanted: Deliverable | None) -> ResultReader[ToolResult]:
    if wanted is None:
        return own
    return DeliverableReader(own, wanted, lambda result: delivered(result, wanted))


async def _tool_of(context: Context | None, exposed_name: str) -> Tool | None:
    try:
        return await context.fastmcp.get_tool(exposed_name) if context else None
    except Exception:  # noqa: BLE001  # the tool's server is away; what it said still counts
        return None


def _claims_of(tool: Tool | None) -> ToolAnnotations | None:
    claims = tool.annotations.model_dump(exclude_none=True) if tool and tool.annotations else None
    return None if claims is None else ToolAnnotations.model_validate(claims)


def _negotiated(session_id: str) -> str:
    """A negotiated session's name: hashed, since one who knows the id can speak in the session."""
    return hashlib.sha256(session_id.encode()).hexdigest()[:32]


def _noted(
    reflected: ReflectedResult[ToolResult], checked: before_call.Checked, when: before_call.Noting
) -> ToolResult:
    """A success with what was changed in its meta, and in a last text; so for what is odd."""
    result, followed, said = reflected.value(), reflected.followed, checked.said
    if not _is_outcome(result):
        return result
    changes = [*checked.changes, *(reflected.attempts[-1].changes if followed else ())]
    facts = repair_facts(reflected) if reflected.repaired else {}
    texts = []
    if changes:
        if said is not None and said.changes:
            before = dumped(said)
            kept = ("confidence", "evidence", "account")
            facts = {
                "repaired": True,
                "note": "repaired before the call",
                **{name: before[name] for name in kept if name in before},
                "lesson": " ".join(said.reasons),
                **facts,
            }
        facts["changes"] = [dumped(change) for change in changes]
        lossless = followed is None or followed.change_class == "lossless"
        if when == "always" or (when == "lossy" and not lossless):
            accounts = [said.account] if said is not None and said.account is not None else []
            accounts += reflected.accounts
            texts.append(before_call.note_of(changes, before=followed is None, accounts=accounts))
    elif checked.warnings and when != "never":
        facts["warnings"] = [*checked.warnings]
        texts.append(before_call.warning_of(checked.warnings))
    return _rebuilt(result, facts, texts) if facts else result


def _advised(reflected: ReflectedResult[ToolResult], checked: before_call.Checked) -> ToolResult:
    """A failure: the tool's own content, what it breaks, what was changed, and the suggestions.

    All of it is in the meta too.
    """
    raised, error, result = reflected.exception, reflected.error, reflected.result
    if isinstance(raised, _TOLD_AS_RESULT) and (reflected.advice or checked.changes):
        result = ToolResult(content=str(raised), is_error=True)
    elif raised is not None or error is None or result is None:
        return reflected.value()
    facts: JsonObject = {}
    texts = []
    is_violation = error is not None and error.type == CONTRACT_VIOLATION and not result.is_error
    if error is not None and is_violation:
        texts.append(f"{error.type}: {error.message}")
        facts["violation"] = dict(error.details)
    if checked.changes:
        texts.append(before_call.note_of_failure(checked.changes))
        facts["changes"] = [dumped(change) for change in checked.changes]
    if reflected.advice:
        texts.append(reflected.advice)
        facts |= {
            "repaired": False,
            "note": reflected.note,
            "attempts": len(reflected.attempts),
            "suggestions": [dumped(suggestion) for suggestion in reflected.suggestions],
        }
    if error is not None and (read := error.details.get("readAsError")):
        facts["readAsError"] = read
    if not facts:
        return result
    advised = _rebuilt(result, facts, texts)
    advised.is_error |= is_violation
    return advised


@dataclass(eq=False)
class ToolResultReader(McpResultReader):
    """Failures are results with `isError` or with a typed error in them, and exceptions.

    So are results whose text fits a pattern; without one, those that read as an error of this tool.
    """

    texts: ErrorTexts
    tool_key: ToolKey
    listed: Tool | None
    sent: JsonObject
    pattern: re.Pattern[str] | None

    def read_exception(self, error: Exception) -> ExecutionError:
        """The error behind FastMCP's wrapping: the type and code are those of its cause.

        A text that is the JSON of a typed error is that error.
        Subclasses are no wrappings: they say more than what caused them. The cause's text is used
        only where the caller sees it too, so that what a server masks (`mask_error_details`) does
        not come back in a suggestion.
        """
        if isinstance(error, ToolError) and (typed := outcomes.typed_error_in_text(str(error))):
            return typed
        cause = error.__cause__
        if type(cause).__name__ == _BODY_ERROR and cause is not None:
            cause = cause.__cause__
        if type(error) in (ToolError, ValidationError) and isinstance(cause, Exception):
            shown, inner = str(error), str(cause)
            return read_exception(cause, message=inner if inner and inner in shown else shown)
        return read_exception(error)

    def read(self, result: object) -> outcomes.Outcome[Any] | None:
        """None for a request for input (SEP-2322) and for results of extensions (tasks)."""
        outcome = super().read(result) if _is_outcome(result) else None
        if outcome is None or not isinstance(result, ToolResult):
            return outcome
        blocks = [block.text for block in result.content if isinstance(block, TextContent)]
        text = bounded_text("\n".join(blocks), outcomes.MAX_MESSAGE_CHARS)
        if outcome.error is not None:
            if result.is_error:
                self.texts.learn(self.tool_key, text)
            return outcome
        read: JsonObject
        if self.pattern is not None:
            if not self.pattern.pattern or self.pattern.search(text) is None:
                return outcome
            read = {"readAsError": self.pattern.pattern}
        else:
            is_text = len(result.content) == len(blocks) == 1
            is_all = is_text and outcomes.unwrapped(result.structured_content) in (None, text)
            reads = reads_only(self.tool_key[1], _claims_of(self.listed))
            why = self.texts.why(self.tool_key, text, self.sent, reads=reads) if is_all else None
            if why is None:
                return outcome
            read = {"readAsError": why, "guessed": True}
        return outcomes.Outcome(
            failure=ExecutionError(type="ToolError", message=text, details=read)
        )


def _is_outcome(result: object) -> bool:
    return isinstance(result, ToolResult) and not isinstance(result, InputRequiredToolResult)


def outcome_result(outcome: outcomes.Outcome[Any]) -> ToolResult:
    """An outcome as the result of a tool of a FastMCP server.

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


def _rebuilt(result: ToolResult, facts: JsonObject, texts: Sequence[str]) -> ToolResult:
    # Built anew: a copy would keep the upstream's raw result, which is sent in its place.
    return ToolResult(
        content=[*result.content, *(TextContent(type="text", text=text) for text in texts)],
        structured_content=result.structured_content,
        meta={**(result.meta or {}), META_KEY: facts},
        is_error=result.is_error,
    )


def delivered(result: ToolResult, wanted: Deliverable) -> object:
    """The value that a result delivers: the structured content, or else the JSON in its text.

    What FastMCP put into `{"result": ...}` is taken out, where no such key is asked for. Text that
    is no JSON, or where a string is asked for, is a string. Several text blocks of JSON are an
    array where one is asked for, as servers without structured content give each item a block.
    None without any text.
    """
    if (structured := result.structured_content) is not None:
        return structured if "result" in wanted.named else outcomes.unwrapped(structured)
    kind = wanted.expected_type
    texts = [block.text for block in result.content if isinstance(block, TextContent)]
    values = [] if kind == "string" else [json_or_none(text) for text in texts]
    if len(values) > 1 and kind == "array":
        lists = [value for value in values if isinstance(value, list)]
        if len(lists) == 1:
            return lists[0]
        if all(isinstance(value, dict | list) for value in values):
            return values
    for value in values:
        is_scalar = isinstance(value, int | float) and len(values) == 1 and kind is not None
        if isinstance(value, dict | list) or is_scalar:
            return value
    return "\n".join(texts) if texts else None
