"""A function tool of the OpenAI Agents SDK that retries its failed calls where that is safe."""

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from agents import FunctionTool
from agents.tool import invoke_function_tool, set_function_tool_failure_error_function
from agents.tool_context import ToolContext

from aftercall.adapters.asking import (
    AnySuggester,
    AsyncAsking,
    KnownTool,
    told,
    with_advice,
)
from aftercall.adapters.openai_agents_outcomes import AgentsReader, FailurePolicy
from aftercall.errors import ConfigurationError
from aftercall.json_values import JsonObject
from aftercall.reflection import (
    CallObserver,
    ExecutionSink,
    FailureRates,
    ReflectedResult,
    ReflectionPolicy,
    call_with_reflection,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSetup:
    """How one call is reflected on."""

    client: AnySuggester
    recorder: ExecutionSink
    agent: str
    server_name: str | None
    session_id: str | None
    context: str | None
    may_repeat: bool
    policy: ReflectionPolicy
    rates: FailureRates
    observers: Sequence[CallObserver]
    known: KnownTool
    failure: Callable[..., object]
    """The failure function that records what it is given."""


SetupOf: TypeAlias = Callable[[FunctionTool, ToolContext[Any]], ToolSetup]


def reflecting_tool(tool: FunctionTool, setup_of: SetupOf) -> FunctionTool:
    """A copy of the tool that reflects on its calls; one that does so already comes back itself.

    Raises:
        ConfigurationError: the tool cannot be wrapped without losing a check of its own.
    """
    if isinstance(tool.on_invoke_tool, ReflectingInvoker):
        return tool
    if callable(tool.needs_approval):
        raise ConfigurationError(
            f"the tool {tool.name!r} decides by a function whether it needs approval, and the SDK "
            "checks the arguments for it on its own tools only; use ToolReflection's hooks and "
            "`failure` for this tool"
        )
    if getattr(tool, "_is_agent_tool", False):
        raise ConfigurationError(
            f"the tool {tool.name!r} is an agent, and its run is many calls; wrap the tools that "
            "this agent has"
        )
    outer = copy.copy(tool)
    outer.timeout_seconds = None  # each attempt has the tool's time, see _plain
    outer.on_invoke_tool = ReflectingInvoker(tool, setup_of)
    return outer


class ReflectingInvoker:
    """Calls a tool with reflection; what the SDK calls in the tool's place.

    Args:
        tool: the tool as it was.
        setup_of: how to reflect on a call of it.
    """

    def __init__(self, tool: FunctionTool, setup_of: SetupOf) -> None:
        self._tool = tool
        self._setup_of = setup_of
        self._plain = _plain(tool)
        # Somebody or something looks at the arguments before the call, and would not at a retry's.
        self._is_retried = not (tool.needs_approval or tool.tool_input_guardrails)

    async def __call__(self, context: ToolContext[Any], text: str) -> Any:
        """Call the tool; for the SDK.

        Raises:
            Exception: the tool's own, where its failure function is None.
        """
        arguments = json_arguments(text)
        if arguments is None:  # nothing to learn from and nothing to correct
            return await self._invoked(self._tool, context, text)
        setup = self._setup_of(self._tool, context)

        async def call(parameters: JsonObject) -> Any:
            sent = text if parameters is arguments else json.dumps(parameters, ensure_ascii=False)
            return await self._invoked(self._plain, context, sent)

        policy, reader = setup.policy, AgentsReader()
        reflected: ReflectedResult[Any] = await call_with_reflection(
            call,
            tool_name=self._tool.name,
            parameters=arguments,
            agent=setup.agent,
            client=AsyncAsking(setup.client, replace(setup.known, has_run=reader.has_run)),
            recorder=setup.recorder,
            server_name=setup.server_name,
            session_id=setup.session_id,
            context=setup.context,
            may_repeat=setup.may_repeat,
            policy=policy if self._is_retried else replace(policy, max_attempts=1),
            rates=setup.rates,
            reader=reader,
            observers=setup.observers,
        )
        if reflected.exception is None:
            return reflected.value()
        policy_of_tool = FailurePolicy(self._tool, context, ours=setup.failure)
        return await _present(reflected, reflected.exception, policy_of_tool)

    async def _invoked(self, tool: FunctionTool, context: ToolContext[Any], text: str) -> Any:
        return await invoke_function_tool(function_tool=tool, context=context, arguments=text)


async def _present(
    reflected: ReflectedResult[Any], error: Exception, failure: FailurePolicy
) -> str:
    """What the model reads: what the tool itself would say first, then the suggestions."""
    if failure.raises(error) or reflected.error is None:
        if reflected.advice:
            error.add_note(reflected.advice)
        raise error
    own = await failure.text_for(error)
    if own is None:
        return told(reflected.error, reflected.advice)
    return with_advice(own, reflected.advice)


def _plain(tool: FunctionTool) -> FunctionTool:
    """The tool with nothing between its exceptions and us."""
    plain = set_function_tool_failure_error_function(copy.copy(tool), None)
    plain.timeout_behavior = "raise_exception"
    return plain


def json_arguments(text: str) -> JsonObject | None:
    """The arguments of a call; None when they are no JSON object."""
    try:
        parsed = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None
