"""Reflection in LangChain's agents and LangGraph's tool nodes (extra `langgraph`).

    reflection = ReflectionMiddleware(client=client, recorder=recorder)

    agent = create_agent(model, tools, middleware=[reflection])

    node = ToolNode(
        tools,
        wrap_tool_call=reflection.wrap_tool_call,
        awrap_tool_call=reflection.awrap_tool_call,
    )

Every tool call is recorded; one that fails is asked about, and retried with corrected arguments
where that is safe. When nothing helps, the model sees the tool's own error with the suggestions
after it. An interrupt is a question to a person and no outcome: it passes through, unrecorded.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

try:
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.messages import ToolMessage
    from langgraph.errors import GraphBubbleUp, is_invalid_resume
    from langgraph.prebuilt.tool_node import ToolCallRequest
except ImportError as error:
    raise type(error)(
        f"aftercall.adapters.langgraph needs LangChain 1 and LangGraph ({error}); "
        "install it with `pip install 'aftercall[langgraph]'`",
        name=error.name,
    ) from error

from aftercall.adapters.asking import (
    AnySuggester,
    Asking,
    AsyncAsking,
    KnownTool,
    claims_in,
    told,
)
from aftercall.adapters.langgraph_messages import (
    Interrupted,
    MessageReader,
    ToolResult,
    with_advice,
    with_repair,
)
from aftercall.adapters.langgraph_requests import (
    agent_of,
    arguments_of,
    schema_of,
    session_of,
    with_arguments,
)
from aftercall.json_values import JsonObject
from aftercall.reflection import (
    CallObserver,
    ExecutionSink,
    FailureRates,
    ReflectedResult,
    ReflectionPolicy,
    call_with_reflection,
    call_with_reflection_sync,
)

__all__ = ["ReflectionMiddleware", "ToolCallRequest"]

_logger = logging.getLogger(__name__)

_Reflected: TypeAlias = ReflectedResult[ToolResult | Interrupted]


class ReflectionMiddleware(AgentMiddleware[Any, Any, Any]):
    """Records the tool calls of an agent or a tool node, and repairs failed ones.

    The session is the thread (`configurable.thread_id`), or else the run. Recorded are the
    arguments that the model gave: what LangGraph injects (state, store, runtime) is not among them,
    and what a model makes up under those names is left out. A tool's claims (`readOnlyHint`,
    `idempotentHint`) are taken from its `metadata` and nowhere else.

    Args:
        client: asks `/suggest`: a `Client` for agents that are invoked either way, or an
            `AsyncClient` for those that are only awaited.
        recorder: takes every attempt.
        agent: who calls; the name given to `create_agent` when None.
        server_name: what the tools belong to.
        context: says of a call what the agent is trying to do, such as
            `langgraph_requests.latest_request`; nothing when None.
        may_repeat: tools that may be called twice without harm.
        never_retried: tools whose failed calls are only advised on. Put tools here whose calls a
            person approves (`HumanInTheLoopMiddleware`): a retry has arguments nobody approved.
        raise_errors: an exception that nothing repaired is raised, with the suggestions as a note,
            for the tool node's `handle_tool_errors` or the caller to deal with. Otherwise the model
            is told in a message with status `error`, whether there are suggestions or not.
        policy: limits; `ReflectionPolicy()` when None.
        rates: failure counts per tool, to share with others; own ones when None.
        observers: look on, attempt by attempt.
    """

    def __init__(
        self,
        *,
        client: AnySuggester,
        recorder: ExecutionSink,
        agent: str | None = None,
        server_name: str | None = None,
        context: Callable[[ToolCallRequest], str | None] | None = None,
        may_repeat: Collection[str] = (),
        never_retried: Collection[str] = (),
        raise_errors: bool = False,
        policy: ReflectionPolicy | None = None,
        rates: FailureRates | None = None,
        observers: Sequence[CallObserver] = (),
    ) -> None:
        super().__init__()
        self._client = client
        self._recorder = recorder
        self._agent = agent
        self._server_name = server_name
        self._context = context
        self._may_repeat = frozenset(may_repeat)
        self._never_retried = frozenset(never_retried)
        self._raise_errors = raise_errors
        self._policy = policy or ReflectionPolicy()
        self._rates = rates or FailureRates()
        self._observers = observers

    # The base class knows no list of messages, which a tool may return; the tool node does.
    def wrap_tool_call(  # type: ignore[override]
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        """Call the tool with reflection.

        Raises:
            GraphBubbleUp: an interrupt, or another matter of the graph.
            Exception: the tool's own, with `raise_errors`.
            ConfigurationError: the client is an `AsyncClient`.
        """
        arguments = arguments_of(request)
        reader = MessageReader(request)

        def call(parameters: JsonObject) -> ToolResult | Interrupted:
            reader.sending(parameters)
            try:
                return handler(_with(request, arguments, parameters))
            except Exception as error:
                if _is_of_the_graph(error):
                    return Interrupted(error)
                raise

        reflected: _Reflected = call_with_reflection_sync(
            call,
            client=Asking(self._client, _known(request, reader)),
            reader=reader,
            **self._facts(request, arguments),
        )
        return self._present(request, reflected, reader)

    async def awrap_tool_call(  # type: ignore[override]
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolResult]],
    ) -> ToolResult:
        """As `wrap_tool_call`, awaited."""
        arguments = arguments_of(request)
        reader = MessageReader(request)

        async def call(parameters: JsonObject) -> ToolResult | Interrupted:
            reader.sending(parameters)
            try:
                return await handler(_with(request, arguments, parameters))
            except Exception as error:
                if _is_of_the_graph(error):
                    return Interrupted(error)
                raise

        reflected: _Reflected = await call_with_reflection(
            call,
            client=AsyncAsking(self._client, _known(request, reader)),
            reader=reader,
            **self._facts(request, arguments),
        )
        return self._present(request, reflected, reader)

    def _facts(self, request: ToolCallRequest, arguments: JsonObject) -> dict[str, Any]:
        """What both ways of calling take."""
        name = request.tool_call["name"]
        is_retried = name not in self._never_retried
        return {
            "tool_name": name,
            "parameters": arguments,
            "agent": self._agent or agent_of(request) or "unknown",
            "recorder": self._recorder,
            "server_name": self._server_name,
            "session_id": session_of(request),
            "context": self._context(request) if self._context else None,
            "may_repeat": name in self._may_repeat,
            "policy": self._policy if is_retried else replace(self._policy, max_attempts=1),
            "rates": self._rates,
            "observers": self._observers,
        }

    def _present(
        self,
        request: ToolCallRequest,
        reflected: _Reflected,
        reader: MessageReader,
    ) -> ToolResult:
        """What the graph gets: the tool's own result or error first, in any case."""
        if reflected.exception is not None:
            return self._told(request, reflected, reflected.exception)
        result = reflected.value()
        if isinstance(result, Interrupted):
            raise result.error
        if reflected.repaired:
            return with_repair(result, reader.message_in(result), reflected)
        if not reflected.succeeded and reflected.advice:
            return with_advice(result, reader.message_in(result), reflected.advice)
        return result

    def _told(
        self,
        request: ToolCallRequest,
        reflected: _Reflected,
        error: Exception,
    ) -> ToolMessage:
        if self._raise_errors or reflected.error is None:
            if reflected.advice:
                error.add_note(reflected.advice)
            raise error
        name = request.tool_call["name"]
        _logger.info("%s raised %s; the model is told", name, reflected.error.type)
        return ToolMessage(
            content=told(reflected.error, reflected.advice),
            name=name,
            tool_call_id=request.tool_call["id"],
            status="error",
        )


def _with(
    request: ToolCallRequest, arguments: JsonObject, parameters: JsonObject
) -> ToolCallRequest:
    """The request as it came for the first attempt, and with other arguments for a retry."""
    return request if parameters is arguments else with_arguments(request, parameters)


def _known(request: ToolCallRequest, reader: MessageReader) -> KnownTool:
    metadata = request.tool.metadata if request.tool is not None else None
    return KnownTool(
        schema=lambda: schema_of(request.tool),
        annotations=claims_in(metadata),
        has_run=reader.has_run,
    )


def _is_of_the_graph(error: Exception) -> bool:
    """Interrupts, commands to a parent graph, and answers to an interrupt that do not fit it."""
    return isinstance(error, GraphBubbleUp) or is_invalid_resume(error)
