"""Reflection in the OpenAI Agents SDK (extra `openai-agents`; its package is called `agents`).

    reflection = ToolReflection(client=client, recorder=recorder)

    # Failed calls are retried where that is safe:
    agent = Agent(name="librarian", tools=[reflection.reflecting(search)])

    # Or record and advise only, by the SDK's own ways in:
    @function_tool(failure_error_function=reflection.failure)
    def search(query: str) -> str: ...

    await Runner.run(agent, "...", hooks=reflection.run_hooks)

A failure never reaches the SDK's hooks: what a tool's failure function states comes to
`on_tool_end` as if it were a result. So a failure is recorded where it is seen, in `failure` or in
a reflecting tool. Each call is recorded once, however the ways are combined.
"""

import copy
import inspect
import json
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from itertools import count
from typing import Any, TypeAlias, Unpack, cast
from uuid import uuid4

from aftercall.explain import require_extra

with require_extra("openai-agents", "aftercall.adapters.openai_agents"):
    from agents import (
        Agent,
        AgentsException,
        FunctionTool,
        ModelBehaviorError,
        RunContextWrapper,
        RunHooks,
        Tool,
        ToolTimeoutError,
        default_tool_error_function,
    )
    from agents.tool import (
        default_tool_timeout_error_message,
        invoke_function_tool,
        resolve_function_tool_failure_error_function,
        set_function_tool_failure_error_function,
    )
    from agents.tool_context import ToolContext

from aftercall.adapters import reflector
from aftercall.adapters.hooks import CallHooks
from aftercall.errors import ConfigurationError
from aftercall.json_values import JsonObject, json_or_none
from aftercall.mcp_calls import McpResultReader
from aftercall.models.calls import ExecutionError, ToolAnnotations
from aftercall.reflection import ReflectedResult

_logger = logging.getLogger(__name__)
_REFUSED = "Invalid JSON input for tool "
"""The SDK begins so where it refuses arguments, before it calls the function."""
_INVALID_PARAMS = "-32602"
"""JSON-RPC: refused before it ran. The SDK's words say so, and no details by default."""
Stated: TypeAlias = str | Callable[[RunContextWrapper[Any]], str | None] | None
"""A text, or a function of the run's context that states it of every call."""


class ToolReflection(RunHooks[Any]):
    """Records the calls of function tools, and advises on or repairs those that fail.

    Arguments that are loose JSON are recorded as the object that they say, and a reflecting tool is
    called with that. Anything that is cut off or states no object is recorded as a failed call with
    its text, and left to the SDK, which refuses it. Other tools than function tools (hosted ones,
    the shell, a computer) show no arguments here and are not recorded.

    `agent` is the SDK's when None. Calls of one `session_id` are looked at together for repairs:
    the run's `group_id` when None, or else each run by itself. `context` is what the agent is
    trying to do, `annotations` are claims about tools, by name; those of an MCP server for its own
    tools. Tools in `may_repeat` may be called twice without harm.

    All other arguments are those of `ReflectionOptions`.
    """

    def __init__(
        self,
        *,
        agent: str | None = None,
        session_id: Stated = None,
        context: Stated = None,
        annotations: Mapping[str, ToolAnnotations] | None = None,
        may_repeat: Collection[str] = (),
        **options: Unpack[reflector.ReflectionOptions],
    ) -> None:
        self._reflector = reflector.Reflector(**options)
        self._agent = agent
        self._session_id = session_id
        self._context = context
        self._annotations = annotations or {}
        self._may_repeat = frozenset(may_repeat)
        self._warned: set[str] = set()
        options["rates"] = self._reflector.rates
        self._calls = CallHooks(reader=_AgentsReader(), **options)
        self.run_hooks: RunHooks[Any] = self
        """For `Runner.run(..., hooks=...)`: calls of all agents of the run."""

    async def failure(self, context: RunContextWrapper[Any], error: Exception) -> str:
        """Return a `failure_error_function`: records the failure and asks about it.

        For `function_tool(failure_error_function=...)`, and for the tools of MCP servers
        `Agent(mcp_config={"failure_error_function": ...})`.

        Returns:
            What the model reads: the tool's own error, then the suggestions.
        """
        read = _AgentsReader().read_exception(error)
        if not isinstance(context, ToolContext):
            return reflector.text_with_advice(read, "")
        key = _id_of(context)
        if not self._calls.is_open(key):  # no hooks are set, so it is begun here
            await self.on_tool_start(context, None, None)
        ended = await self._calls.post(key=key, error=error) if self._calls.is_open(key) else None
        return reflector.text_with_advice(read, ended.advice if ended is not None else "")

    def reflecting(self, tool: FunctionTool) -> FunctionTool:
        """Return a copy of a tool whose failed calls are retried where that is safe.

        Nothing else about it changes: when nothing repairs a call, the tool's own failure function
        decides what the model reads, and the suggestions come after that. With the SDK's default
        function, which hides the error, the error is shown. Calls of a tool that needs approval or
        has input guardrails are only advised on: a retry has arguments that no one has looked at. A
        tool that is an agent, or whose `needs_approval` is a function, is a `ConfigurationError`;
        use the hooks and `failure` for it.
        """
        if isinstance(tool.on_invoke_tool, _ReflectingInvoker):
            return tool
        if callable(tool.needs_approval):
            raise ConfigurationError(
                f"the tool {tool.name!r} decides by a function whether it needs approval, and the "
                "SDK checks the arguments for it on its own tools only; use ToolReflection's hooks "
                "and `failure` for this tool"
            )
        if getattr(tool, "_is_agent_tool", False):
            raise ConfigurationError(
                f"the tool {tool.name!r} is an agent, and its run is many calls; wrap the tools "
                "that this agent has"
            )
        outer = copy.copy(tool)
        outer.timeout_seconds = None  # each attempt has the tool's time
        outer.on_invoke_tool = _ReflectingInvoker(self, tool)
        return outer

    def call_facts(self, context: ToolContext[Any]) -> dict[str, Any]:
        """Return the caller, the session and the intent."""
        config, agent = context.run_config, context.agent
        group = config.group_id if config is not None else None
        return {
            "agent": self._agent or (agent.name if agent is not None else "unknown"),
            "session_id": _value_of(self._session_id, context) or group or _id_of(context.usage),
            "context": _value_of(self._context, context),
        }

    async def reflect_call(
        self,
        tool: FunctionTool,
        context: ToolContext[Any],
        arguments: str,
        invoke: Callable[[JsonObject | str], Any],
    ) -> ReflectedResult[Any]:
        """Return one call with reflection; for a reflecting tool."""
        reader = _AgentsReader()
        return await self._reflector.call_async(
            invoke,
            replace(self._known_tool(tool), has_run=lambda: reader.has_run),
            tool_name=tool.name,
            parameters=arguments,
            takes_text=True,
            may_repeat=tool.name in self._may_repeat,
            # What looks at the arguments before the call would not look at those of a retry.
            is_retried=not (tool.needs_approval or tool.tool_input_guardrails),
            reader=reader,
            **self.call_facts(context),
        )

    async def on_tool_start(self, context: Any, _: Agent[Any] | None, tool: Tool | None) -> None:
        """Note that a call is about to be made."""
        is_function = tool is None or isinstance(tool, FunctionTool)
        if not isinstance(context, ToolContext) or not is_function:
            return
        function = tool if isinstance(tool, FunctionTool) else None
        if function is not None and isinstance(function.on_invoke_tool, _ReflectingInvoker):
            return  # records itself
        text, key = context.tool_arguments, _id_of(context)
        if self._calls.is_open(key):  # the hooks of run and agent are both set
            return
        known = self._known_tool(function)
        self._calls.pre(context.tool_name, text, key=key, tool=known, **self.call_facts(context))

    async def on_tool_end(self, context: Any, _: Agent[Any], tool: Tool, result: object) -> None:
        """Note that a call ended with something that is shown to the model."""
        if not isinstance(context, ToolContext) or not isinstance(tool, FunctionTool):
            return
        key = _id_of(context)
        if not self._calls.is_open(key):  # `failure` has recorded it, or there is nothing to record
            return
        policy = _FailurePolicy(tool, context, ours=self.failure)
        if policy.hides_failures:
            self._calls.drop(key)
            if tool.name not in self._warned:
                self._warned.add(tool.name)
                _logger.warning(
                    "calls of %s are not recorded: its failure_error_function makes a failure look "
                    "like a result; use ToolReflection.failure for it, or "
                    "ToolReflection.reflecting(tool)",
                    tool.name,
                )
            return
        await self._calls.post(result, key=key, error=policy.framework_error(result))

    def _known_tool(self, tool: FunctionTool | None) -> reflector.KnownTool:
        if tool is None:
            return reflector.KnownTool()
        mcp = tool.mcp_annotations
        claims = self._annotations.get(tool.name)
        if claims is None and mcp is not None:
            claims = reflector.claims_in(mcp.model_dump(by_alias=True))
        return reflector.KnownTool(schema=lambda: tool.params_json_schema, annotations=claims)


class _ReflectingInvoker:
    def __init__(self, reflection: ToolReflection, tool: FunctionTool) -> None:
        self._reflection = reflection
        self._tool = tool
        # The tool with nothing between its exceptions and us.
        self._plain = set_function_tool_failure_error_function(copy.copy(tool), None)
        self._plain.timeout_behavior = "raise_exception"

    async def __call__(self, context: ToolContext[Any], text: str) -> Any:
        is_json = isinstance(json_or_none(text or "{}"), dict)
        calls = count()

        async def call_tool(parameters: JsonObject | str) -> Any:
            as_it_came = isinstance(parameters, str) or (next(calls) == 0 and is_json)
            sent = text if as_it_came else json.dumps(parameters, ensure_ascii=False)
            return await _invoke_tool(self._plain, context, sent)

        reflected = await self._reflection.reflect_call(self._tool, context, text, call_tool)
        if (error := reflected.exception) is None:
            return reflected.value()
        failure = _FailurePolicy(self._tool, context, ours=self._reflection.failure)
        if failure.raises_error(error) or reflected.error is None:
            if reflected.advice:
                error.add_note(reflected.advice)
            raise error
        # What the tool itself would say comes first, then the suggestions.
        if (own := await failure.text_for(error)) is None:
            return reflector.text_with_advice(reflected.error, reflected.advice)
        return reflector.with_advice(own, reflected.advice)


async def _invoke_tool(tool: FunctionTool, context: ToolContext[Any], text: str) -> Any:
    return await invoke_function_tool(function_tool=tool, context=context, arguments=text)


class _AgentsReader(McpResultReader):
    """Exceptions as the SDK raises them; results as for any hook. One for each call."""

    has_run = False
    """Whether the exception read last is the function's own, and none of the SDK's."""

    def read_exception(self, error: Exception) -> ExecutionError:
        self.has_run = not isinstance(error, AgentsException)
        # The SDK wraps a tool's own cancellation, for failure functions take exceptions only.
        cancelled = getattr(error, "cancelled_error", None)
        if isinstance(cancelled, BaseException):
            return ExecutionError(type=type(cancelled).__name__, message=str(error)[:8000])
        read = super().read_exception(error)
        if _is_refusal(error, read.message):
            return read.model_copy(update={"code": _INVALID_PARAMS})
        return read


def _is_refusal(error: Exception, message: str) -> bool:
    """Return whether the SDK refused the arguments.

    A tool that runs an agent may raise the same.
    """
    if type(error) is not ModelBehaviorError or not message.startswith(_REFUSED):
        return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is None or trace.tb_frame.f_globals.get("__name__") == FunctionTool.__module__


class _FailurePolicy:
    def __init__(
        self, tool: FunctionTool, context: ToolContext[Any], *, ours: Callable[..., object]
    ) -> None:
        self._tool = tool
        self._context = context
        self._function = resolve_function_tool_failure_error_function(tool, context)
        self._is_default = self._function is default_tool_error_function
        self._is_ours = self._function == ours
        has_own_function = not (self._function is None or self._is_ours or self._is_default)
        self.hides_failures = has_own_function or tool.timeout_error_function is not None

    def framework_error(self, result: object) -> ExecutionError | None:
        """Return the failure in what the SDK itself states in a tool's place, word for word.

        Else None.
        """
        seconds = self._tool.timeout_seconds
        if seconds is not None and result == default_tool_timeout_error_message(
            tool_name=self._tool.name, timeout_seconds=seconds
        ):
            return ExecutionError(type="ToolTimeoutError", message=str(result))
        if self._is_default and result == default_tool_error_function(self._context, Exception()):
            return ExecutionError(type="ToolError", message=str(result))
        return None

    async def text_for(self, error: Exception) -> str | None:
        """Return what the tool itself has the model read; None where it leaves that to others."""
        tool, told = self._tool, self._function
        if isinstance(error, ToolTimeoutError):
            told = tool.timeout_error_function or (
                lambda *_: default_tool_timeout_error_message(
                    tool_name=tool.name, timeout_seconds=tool.timeout_seconds or 0.0
                )
            )
        elif self._is_default or self._is_ours:
            return None
        said: Any = None if told is None else told(self._context, error)
        said = await said if inspect.isawaitable(said) else said
        return None if said is None else str(said)

    def raises_error(self, error: Exception) -> bool:
        if isinstance(error, ToolTimeoutError):
            return self._tool.timeout_behavior == "raise_exception"
        return self._function is None


def _id_of(known: Any) -> str:
    """Return an id that stays with an object.

    A call is known by its context, as models number calls again in every run; a run by its usage.
    """
    return cast("str", vars(known).setdefault("_aftercall_id", str(uuid4())))


def _value_of(stated: Stated, context: RunContextWrapper[Any]) -> str | None:
    return stated(context) if callable(stated) else stated
