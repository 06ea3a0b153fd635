"""Reflection as middleware of a FastMCP server (extra `gateway`).

    mcp.add_middleware(ReflectionMiddleware(client=client, recorder=recorder, server_name="git"))

Every tool call is recorded; one that fails is asked about, and retried where that is safe. On the
way of a call that succeeds nothing is awaited but the call itself.

    deliverables={"find_movies": Deliverable.from_dict({"titles": {"min_items": 1}})}

makes a result that breaks its deliverable a failed call, of type `contract_violation`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from uuid import uuid4

try:
    import mcp_types
    from fastmcp.exceptions import DisabledError, NotFoundError, ToolError, ValidationError
    from fastmcp.server.context import Context
    from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
    from fastmcp.tools.base import Tool, ToolResult
    from fastmcp.tools.function_tool import FunctionTool
except ImportError as error:
    raise type(error)(
        f"aftercall.adapters.fastmcp needs FastMCP ({error}); "
        "install it with `pip install 'aftercall[gateway]'`",
        name=error.name,
    ) from error

from aftercall.adapters.asking import KnownTool
from aftercall.adapters.fastmcp_caller import caller_of
from aftercall.adapters.fastmcp_contracts import delivered, in_canonical_shape, with_violation
from aftercall.adapters.fastmcp_results import (
    META_KEY,
    ToolResultReader,
    with_advice,
    with_repair,
)
from aftercall.adapters.running import code_of, has_run
from aftercall.contracts import CONTRACT_VIOLATION, Deliverable, DeliverableReader
from aftercall.json_values import JsonObject
from aftercall.models.calls import Execution, SuggestResponse, ToolAnnotations
from aftercall.reflection import (
    AsyncSuggester,
    CallObserver,
    ExecutionSink,
    ReflectedResult,
    ReflectionPolicy,
    call_with_reflection,
)
from aftercall.reflection.reflected_call import FailureRates

_READER = ToolResultReader()

DeliverableOf = Callable[[str | None, str], Deliverable | None]
"""Server and tool -> what the tool's results must be."""

# What FastMCP itself turns into an `isError` result. Anything else is a matter of the protocol or
# of authorisation, has its own form on the wire, and keeps it.
_TOLD_AS_RESULT = (ToolError, ValidationError, NotFoundError, DisabledError)


class ReflectionMiddleware(Middleware):
    """Records the calls of a server's tools, and repairs failed ones.

    The agent, the session and the purpose are read from the request's `_meta` keys
    `aftercall/agent`, `aftercall/session` and `aftercall/context`; see `fastmcp_caller` for what
    stands in when they are left out.

    Args:
        client: asks `/suggest`.
        recorder: takes every attempt.
        server_name: the server that the calls are recorded under.
        agent: name of the caller when the request gives none; the MCP client's name when None.
        policy: limits; `ReflectionPolicy()` when None.
        rates: failure counts per tool, to share with others; own ones when None.
        locate: server and tool behind an exposed tool name, where the two differ (a gateway);
            `server_name` and the name itself when None.
        deliverables: what the results of tools must be, by tool name, or a function of server and
            tool. Structured content is checked, or the JSON in the text where there is none, in
            its canonical shape. The caller gets that shape too, except for tools that announce an
            output schema, against which clients check what they get. A result that breaks its
            deliverable is recorded and asked about as a failure, and reaches the caller as an
            error result: the tool's own content first, then what it breaks.
        observers: look on, attempt by attempt (`aftercall.events`, `aftercall.tracing`).
    """

    def __init__(
        self,
        *,
        client: AsyncSuggester,
        recorder: ExecutionSink,
        server_name: str | None = None,
        agent: str | None = None,
        policy: ReflectionPolicy | None = None,
        rates: FailureRates | None = None,
        locate: Callable[[str], tuple[str | None, str]] | None = None,
        deliverables: Mapping[str, Deliverable] | DeliverableOf | None = None,
        observers: Sequence[CallObserver] = (),
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._server_name = server_name
        self._agent = agent
        self._policy = policy or ReflectionPolicy()
        self._rates = rates or FailureRates()
        self._locate = locate or self._own_tool
        self._deliverable_of = (
            deliverables if callable(deliverables) else _by_name(deliverables or {})
        )
        self._observers = tuple(observers)
        self._process_session = str(uuid4())

    async def on_call_tool(
        self,
        context: MiddlewareContext[mcp_types.CallToolRequestParams],
        call_next: CallNext[mcp_types.CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        """Call the tool with reflection.

        Raises:
            Exception: the tool's own, unchanged, when there is nothing to add to it.
        """
        request = context.message
        arguments: JsonObject = request.arguments or {}
        server_name, tool_name = self._locate(request.name)
        wanted = self._deliverable_of(server_name, tool_name)
        caller = caller_of(
            context.fastmcp_context, agent=self._agent, process_session=self._process_session
        )

        asking = _ToolDescribing(self._client, context.fastmcp_context, request.name)

        async def call(parameters: JsonObject) -> ToolResult:
            asking.raised = None
            try:
                if parameters is arguments:
                    return await call_next(context)
                changed = request.model_copy(update={"arguments": parameters})
                return await call_next(context.copy(message=changed))
            except Exception as error:
                asking.raised = error
                raise

        reflected = await call_with_reflection(
            call,
            tool_name=tool_name,
            parameters=arguments,
            agent=caller.agent,
            client=asking,
            recorder=self._recorder,
            server_name=server_name,
            session_id=caller.session_id,
            context=caller.context,
            policy=self._policy,
            rates=self._rates,
            reader=_READER if wanted is None else _reader_for(wanted),
            observers=self._observers,
        )
        if wanted is None:
            return _present(reflected)
        if reflected.succeeded:
            shown = _present(reflected)
            return await _shaped(shown, wanted, context.fastmcp_context, request.name)
        return _present_violation(reflected) if _is_violation(reflected) else _present(reflected)

    def _own_tool(self, name: str) -> tuple[str | None, str]:
        return self._server_name, name


class _ToolDescribing:
    """Adds what is known of the tool to a question; only failures pay for it.

    Its live schema, its annotations, and whether it ran, where it is a function of this process.
    """

    def __init__(self, client: AsyncSuggester, context: Context | None, exposed_name: str) -> None:
        self._client = client
        self._context = context
        self._exposed_name = exposed_name
        self.raised: Exception | None = None
        """What the latest attempt raised."""

    async def suggest(
        self,
        execution: Execution,
        *,
        limit: int = 3,
        annotations: ToolAnnotations | None = None,
    ) -> SuggestResponse:
        tool = await self._tool()
        if tool is not None:
            known = KnownTool(schema=lambda: tool.parameters, has_run=lambda: self._has_run(tool))
            execution = known.described(execution)
            if annotations is None and tool.annotations is not None:
                claims = tool.annotations.model_dump(exclude_none=True)
                annotations = ToolAnnotations.model_validate(claims)
        return await self._client.suggest(execution, limit=limit, annotations=annotations)

    def _has_run(self, tool: Tool) -> bool:
        if self.raised is None or not isinstance(tool, FunctionTool):
            return False
        return has_run(code_of(tool.fn), self.raised)

    async def _tool(self) -> Tool | None:
        return await _known_tool(self._context, self._exposed_name)


async def _known_tool(context: Context | None, exposed_name: str) -> Tool | None:
    try:
        return await context.fastmcp.get_tool(exposed_name) if context else None
    except Exception:  # noqa: BLE001  # the tool's server is away; what it said still counts
        return None


def _by_name(deliverables: Mapping[str, Deliverable]) -> DeliverableOf:
    return lambda _, tool_name: deliverables.get(tool_name)


def _reader_for(wanted: Deliverable) -> DeliverableReader[ToolResult]:
    return DeliverableReader(_READER, wanted, lambda result: delivered(result, wanted))


def _is_violation(reflected: ReflectedResult[ToolResult]) -> bool:
    """Whether the tool itself said that it succeeded, and only the deliverable says otherwise."""
    error, result = reflected.error, reflected.result
    is_success = reflected.exception is None and result is not None and not result.is_error
    return is_success and error is not None and error.type == CONTRACT_VIOLATION


def _present_violation(reflected: ReflectedResult[ToolResult]) -> ToolResult:
    """What the tool gave, what that breaks, and then the suggestions."""
    if reflected.error is None:
        return reflected.value()
    told = with_violation(reflected.value(), reflected.error)
    if not reflected.advice:
        return told
    advised = with_advice(told, reflected)
    violation, advice = (told.meta or {})[META_KEY], (advised.meta or {})[META_KEY]
    return ToolResult(
        content=advised.content,
        structured_content=advised.structured_content,
        meta={**(advised.meta or {}), META_KEY: {**violation, **advice}},
        is_error=True,
    )


async def _shaped(
    result: ToolResult, wanted: Deliverable, context: Context | None, exposed_name: str
) -> ToolResult:
    """The canonical shape, where the tool has not promised another one to its callers."""
    if not _READER.is_outcome(result):
        return result
    # Linear in the result, which may be of any size: not on the event loop.
    shaped = await asyncio.to_thread(in_canonical_shape, result, wanted)
    if shaped is None:
        return result
    tool = await _known_tool(context, exposed_name)
    return result if tool is None or tool.output_schema is not None else shaped


def _present(reflected: ReflectedResult[ToolResult]) -> ToolResult:
    """What the caller sees: the tool's own result or error first, in any case."""
    if reflected.repaired:
        return with_repair(reflected.value(), reflected)
    error = reflected.exception
    is_told_as_result = error is None or isinstance(error, _TOLD_AS_RESULT)
    if reflected.succeeded or not reflected.advice or not is_told_as_result:
        return reflected.value()
    told = reflected.value() if error is None else ToolResult(content=str(error), is_error=True)
    return with_advice(told, reflected)
