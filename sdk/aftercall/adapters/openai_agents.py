"""Reflection in the OpenAI Agents SDK (extra `openai-agents`; its package is called `agents`).

    reflection = ToolReflection(client=client, recorder=recorder)

    # Failed calls are retried where that is safe:
    agent = Agent(name="librarian", tools=[reflection.reflecting(search)])

    # Or record and advise only, by the SDK's own ways in:
    @function_tool(failure_error_function=reflection.failure)
    def search(query: str) -> str: ...

    await Runner.run(agent, "...", hooks=reflection.run_hooks)

A failure never reaches the SDK's hooks: what a tool's failure function says comes to `on_tool_end`
as if it were a result. So a failure is recorded where it is seen, in `failure` or in a reflecting
tool, and the hooks record only what is a success for certain. Each call is recorded once, however
the ways are combined.

The SDK exports traces to OpenAI unless told otherwise (`set_tracing_disabled`); this module has no
part in that.
"""

import logging
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias
from uuid import uuid4

try:
    from agents import Agent, AgentHooks, FunctionTool, RunContextWrapper, RunHooks, Tool
    from agents.tool_context import ToolContext
except ImportError as error:
    raise type(error)(
        f"aftercall.adapters.openai_agents needs the OpenAI Agents SDK ({error}); "
        "install it with `pip install 'aftercall[openai-agents]'`",
        name=error.name,
    ) from error

from aftercall.adapters.asking import AnySuggester, KnownTool, claims_in, told
from aftercall.adapters.hooks import CallHooks
from aftercall.adapters.openai_agents_outcomes import AgentsReader, FailurePolicy
from aftercall.adapters.openai_agents_tools import (
    ReflectingInvoker,
    ToolSetup,
    json_arguments,
    reflecting_tool,
)
from aftercall.models.calls import ExecutionError, ToolAnnotations
from aftercall.reflection import CallObserver, ExecutionSink, FailureRates, ReflectionPolicy

_logger = logging.getLogger(__name__)

Said: TypeAlias = str | Callable[[RunContextWrapper[Any]], str | None] | None
"""A text, or a function of the run's context that says it of every call."""


class ToolReflection:
    """Records the calls of function tools, and advises on or repairs those that fail.

    Calls whose arguments are no JSON object are not recorded: they say what the model cannot write,
    and nothing about the tool. Other tools than function tools (hosted ones, the shell, a computer)
    show no arguments here and are not recorded.

    Args:
        client: asks `/suggest`: a `Client` or an `AsyncClient`.
        recorder: takes every attempt.
        agent: who calls; the SDK's agent when None.
        server_name: what the tools belong to.
        session_id: calls of one session are looked at together for repairs. The run's `group_id`
            when None, or else each run is a session of its own.
        context: what the agent is trying to do.
        annotations: claims about tools, by tool name; those of an MCP server for its own tools.
        may_repeat: tools that may be called twice without harm.
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
        session_id: Said = None,
        context: Said = None,
        annotations: Mapping[str, ToolAnnotations] | None = None,
        may_repeat: Collection[str] = (),
        policy: ReflectionPolicy | None = None,
        rates: FailureRates | None = None,
        observers: Sequence[CallObserver] = (),
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._agent = agent
        self._server_name = server_name
        self._session_id = session_id
        self._context = context
        self._annotations = annotations or {}
        self._may_repeat = frozenset(may_repeat)
        self._policy = policy or ReflectionPolicy()
        self._rates = rates or FailureRates()
        self._observers = observers
        self._runs, self._keys = _Ids(), _Ids()
        self._warned: set[str] = set()
        self._calls = CallHooks(
            client=client,
            recorder=recorder,
            server_name=server_name,
            policy=self._policy,
            rates=self._rates,
            reader=AgentsReader(),
            observers=observers,
        )
        self.run_hooks: RunHooks[Any] = _RunHooks(self)
        """For `Runner.run(..., hooks=...)`: calls of all agents of the run."""
        self.agent_hooks: AgentHooks[Any] = _AgentHooks(self)
        """For `Agent(..., hooks=...)`: calls of that agent."""

    async def failure(self, context: RunContextWrapper[Any], error: Exception) -> str:
        """A `failure_error_function`: records the failure and asks about it.

        For `function_tool(failure_error_function=...)`, and for the tools of MCP servers
        `Agent(mcp_config={"failure_error_function": ...})`.

        Returns:
            What the model reads: the tool's own error, then the suggestions.
        """
        read = AgentsReader().read_exception(error)
        if not isinstance(context, ToolContext):
            return told(read, "")
        key = self._keys.of(context)
        if not self._calls.is_open(key):  # no hooks are set, so it is begun here
            self.began(context, context.agent, None)
        ended = await self._calls.post(key=key, error=error) if self._calls.is_open(key) else None
        return told(read, ended.advice if ended is not None else "")

    def reflecting(self, tool: FunctionTool) -> FunctionTool:
        """A copy of a tool whose failed calls are retried with corrected arguments where safe.

        Nothing else about it changes: when nothing repairs a call, the tool's own failure function
        decides what the model reads, and the suggestions come after that. With the SDK's default
        function, which hides the error, the error is told. Calls of a tool that needs approval or
        has input guardrails are only advised on: a retry has arguments that nobody has looked at.

        Raises:
            ConfigurationError: `needs_approval` is a function, whose check of the arguments the SDK
                makes on its own tools only, or the tool is an agent; use the hooks and `failure`.
        """
        return reflecting_tool(tool, self._setup)

    def _setup(self, tool: FunctionTool, context: ToolContext[Any]) -> ToolSetup:
        agent = context.agent
        return ToolSetup(
            client=self._client,
            recorder=self._recorder,
            agent=self._agent or (agent.name if agent is not None else "unknown"),
            server_name=self._server_name,
            session_id=self._session_of(context),
            context=_of(self._context, context),
            may_repeat=tool.name in self._may_repeat,
            policy=self._policy,
            rates=self._rates,
            observers=self._observers,
            known=self._known(tool),
            failure=self.failure,
        )

    def began(self, context: RunContextWrapper[Any], agent: Any, tool: Tool | None) -> None:
        """A call is about to be made; for the hooks."""
        if not isinstance(context, ToolContext):
            return
        if tool is not None and not isinstance(tool, FunctionTool):
            return
        if tool is not None and isinstance(tool.on_invoke_tool, ReflectingInvoker):
            return  # records itself
        arguments, key = json_arguments(context.tool_arguments), self._keys.of(context)
        if arguments is None or self._calls.is_open(key):  # the hooks of run and agent are both set
            return
        self._calls.pre(
            context.tool_name,
            arguments,
            key=key,
            agent=self._agent or (agent.name if agent is not None else None),
            session_id=self._session_of(context),
            context=_of(self._context, context),
            tool=self._known(tool),
        )

    async def ended(self, context: RunContextWrapper[Any], tool: Tool, result: object) -> None:
        """A call has come to something that is shown to the model; for the hooks."""
        if not isinstance(context, ToolContext) or not isinstance(tool, FunctionTool):
            return
        key = self._keys.of(context)
        if not self._calls.is_open(key):  # `failure` has recorded it, or there is nothing to record
            return
        policy = FailurePolicy(tool, context, ours=self.failure)
        if policy.hides_failures:
            self._calls.drop(key)
            self._warn(tool.name)
            return
        error: ExecutionError | None = policy.framework_error(result)
        if error is None:
            await self._calls.post(result, key=key)
        else:
            await self._calls.post(key=key, error=error)

    def _warn(self, name: str) -> None:
        if name in self._warned or len(self._warned) >= 1000:
            return
        self._warned.add(name)
        _logger.warning(
            "calls of %s are not recorded: its failure_error_function makes a failure look like a "
            "result; use ToolReflection.failure for it, or ToolReflection.reflecting(tool)",
            name,
        )

    def _known(self, tool: FunctionTool | None) -> KnownTool:
        if tool is None:
            return KnownTool()
        mcp = tool.mcp_annotations
        claims = self._annotations.get(tool.name)
        if claims is None and mcp is not None:
            claims = claims_in(mcp.model_dump(by_alias=True))
        return KnownTool(schema=lambda: tool.params_json_schema, annotations=claims)

    def _session_of(self, context: ToolContext[Any]) -> str:
        config = context.run_config
        group = config.group_id if config is not None else None
        return _of(self._session_id, context) or group or self._runs.of(context.usage)


class _RunHooks(RunHooks[Any]):
    def __init__(self, reflection: ToolReflection) -> None:
        self._reflection = reflection

    async def on_tool_start(
        self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool
    ) -> None:
        self._reflection.began(context, agent, tool)

    async def on_tool_end(
        self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool, result: object
    ) -> None:
        del agent
        await self._reflection.ended(context, tool, result)


class _AgentHooks(AgentHooks[Any]):
    def __init__(self, reflection: ToolReflection) -> None:
        self._reflection = reflection

    async def on_tool_start(
        self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool
    ) -> None:
        self._reflection.began(context, agent, tool)

    async def on_tool_end(
        self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool, result: object
    ) -> None:
        del agent
        await self._reflection.ended(context, tool, result)


class _Ids:
    """An id for each object, for as long as it lives; its address comes again after that.

    A call is known by its context, for models number their calls anew in every run; a run by its
    usage, which all its contexts share.
    """

    def __init__(self) -> None:
        self._ids: dict[int, tuple[weakref.ref[Any], str]] = {}

    def of(self, known: object) -> str:
        place = id(known)
        found = self._ids.get(place)
        if found is not None and found[0]() is known:
            return found[1]
        made = str(uuid4())
        self._ids[place] = (weakref.ref(known, lambda _: self._ids.pop(place, None)), made)
        return made


def _of(said: Said, context: RunContextWrapper[Any]) -> str | None:
    return said(context) if callable(said) else said
