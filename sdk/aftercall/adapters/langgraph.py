"""Reflection in LangChain's agents and LangGraph's tool nodes (extra `langgraph`).

    reflection = ReflectionMiddleware(client=client, recorder=recorder)

    agent = create_agent(model, tools, middleware=[reflection])

    node = ToolNode(
        tools,
        wrap_tool_call=reflection.wrap_tool_call,
        awrap_tool_call=reflection.awrap_tool_call,
    )

As middleware of an agent it also reads calls whose arguments are loose JSON, which LangChain calls
invalid and never makes. A tool node sees no invalid calls.

When nothing helps, the model sees the tool's own error with the suggestions after it. An interrupt
is a question to a person and no outcome: it passes through, unrecorded.
"""

import ast
import logging
import re
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, Unpack, cast

from pydantic import BaseModel

from aftercall.explain import require_extra

with require_extra("langgraph", "aftercall.adapters.langgraph"):
    from langchain.agents.middleware import AgentMiddleware
    from langchain.agents.middleware.types import ModelRequest, ModelResponse
    from langchain_core.messages import AIMessage, BaseMessage, InvalidToolCall, ToolMessage
    from langchain_core.messages.tool import tool_call
    from langchain_core.tools import BaseTool, ToolException
    from langgraph.config import get_config
    from langgraph.errors import GraphBubbleUp, is_invalid_resume
    from langgraph.prebuilt.tool_node import ToolCallRequest, ToolInvocationError
    from langgraph.types import Command

from aftercall.adapters import reflector
from aftercall.arguments import READ_NOTE, UnreadableArgumentsError, arguments_of
from aftercall.json_values import JsonObject, JsonValue, bounded_text
from aftercall.models.calls import ExecutionError
from aftercall.outcomes import MAX_MESSAGE_CHARS, Outcome, error_in_result
from aftercall.reflection import ReflectedResult
from aftercall.reflection.reflected_call import ReflectedCall
from aftercall.reflection.results import CallFacts, ResultReader, read_exception

_logger = logging.getLogger(__name__)

# How LangGraph's tool node frames an error for the model; its templates are the same.
_REFUSED = re.compile(
    r"Error invoking tool '[^'\n]*' with kwargs .*? with error:\n (?P<error>.*)\n"
    r" Please fix the error and try again\.",
    re.DOTALL,
)
_RAISED = re.compile(r"Error: (?P<error>.*)\n Please fix your mistakes\.", re.DOTALL)
_REPR = re.compile(
    r"(?P<type>[A-Za-z_]\w{0,99})\((?P<text>(?P<quote>['\"]).*(?P=quote))\)", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class _Interrupted:
    """In place of a result: the tool has asked a person, or the graph goes elsewhere."""

    error: Exception


GraphResult: TypeAlias = ToolMessage | Command[Any] | list[ToolMessage | Command[Any]]
_Reflected: TypeAlias = ReflectedResult[GraphResult | _Interrupted]


class ReflectionMiddleware(AgentMiddleware[Any, Any, Any]):
    """Records the tool calls of an agent or a tool node, and repairs failed ones.

    The session is the thread (`configurable.thread_id`), or else the run. Recorded are the
    arguments that the model gave: what LangGraph injects (state, store, runtime) is not among them,
    and what a model makes up under those names is left out. A tool's claims (`readOnlyHint`,
    `idempotentHint`) are taken from its `metadata` and nowhere else.

    `agent` is the name given to `create_agent` when None, and `context` states of a call what it is
    for. Tools in `may_repeat` may be called twice without harm. Failed calls of those in
    `never_retried` are only advised on. Put tools there whose calls a person approves
    (`HumanInTheLoopMiddleware`): a retry has arguments no one approved.

    All other arguments are those of `ReflectionOptions`: a `Client` serves agents that are invoked
    either way, an `AsyncClient` those that are only awaited.
    """

    def __init__(
        self,
        *,
        agent: str | None = None,
        context: Callable[[ToolCallRequest], str | None] | None = None,
        may_repeat: Collection[str] = (),
        never_retried: Collection[str] = (),
        **options: Unpack[reflector.ReflectionOptions],
    ) -> None:
        super().__init__()
        self._reflector = reflector.Reflector(**options)
        self._agent = agent
        self._context = context
        self._may_repeat = frozenset(may_repeat)
        self._never_retried = frozenset(never_retried)

    # The base class knows no list of messages, which a tool may return; the tool node does.
    def wrap_tool_call(  # type: ignore[override]
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], GraphResult]
    ) -> GraphResult:
        """Call the tool with reflection; an interrupt or another matter of the graph is raised."""
        call = _Call(request)

        def attempt_call(parameters: JsonObject) -> GraphResult | _Interrupted:
            try:
                return handler(call.with_arguments(parameters))
            except Exception as error:  # noqa: BLE001  # what is the tool's own is raised again
                return _interruption_of(error)

        return self._present_result(
            call, self._reflector.call(attempt_call, call.known_tool(), **self._call_facts(call))
        )

    async def awrap_tool_call(  # type: ignore[override]
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[GraphResult]]
    ) -> GraphResult:
        """Await what `wrap_tool_call` does."""
        call = _Call(request)

        async def attempt_call(parameters: JsonObject) -> GraphResult | _Interrupted:
            try:
                return await handler(call.with_arguments(parameters))
            except Exception as error:  # noqa: BLE001  # as above
                return _interruption_of(error)

        facts = self._call_facts(call)
        return self._present_result(
            call, await self._reflector.call_async(attempt_call, call.known_tool(), **facts)
        )

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model; calls that LangChain could not parse are read where that is no guess.

        What is cut off or states no object stays an invalid call of the message, and is recorded.
        """
        return self._with_read_calls(handler(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Await what `wrap_model_call` does."""
        return self._with_read_calls(await handler(request))

    def _with_read_calls(self, response: ModelResponse[Any]) -> ModelResponse[Any]:
        messages = [self._with_read(message) for message in response.result]
        return replace(response, result=messages)

    def _with_read(self, message: BaseMessage) -> BaseMessage:
        if not isinstance(message, AIMessage) or not message.invalid_tool_calls:
            return message
        read, unread = list(message.tool_calls), []
        for call in message.invalid_tool_calls:
            said = arguments_of(call["args"] or "").parameters
            if said is None or not call["name"]:
                unread.append(call)
                self._record_unmade(call)
                continue
            _logger.info("%s: %s", call["name"], READ_NOTE)
            read.append(tool_call(name=call["name"], args=said, id=call["id"]))
        update: dict[str, Any] = {"tool_calls": read, "invalid_tool_calls": unread}
        if len(read) > len(message.tool_calls):
            facts = {"note": READ_NOTE, "calls": [c["id"] for c in read[len(message.tool_calls) :]]}
            update["response_metadata"] = {**message.response_metadata, reflector.META_KEY: facts}
        return message.model_copy(update=update)

    def _record_unmade(self, call: InvalidToolCall) -> None:
        """Record a call that could not be made as failed; no one is asked about it."""
        facts = CallFacts(
            tool_name=call["name"] or "unknown",
            server_name=self._reflector.server_name,
            **_caller_in(get_config(), self._agent),
        )
        given, policy = call["args"] or "", self._reflector.policy
        unmade: ReflectedCall[object] = ReflectedCall(
            facts, given, policy, self._reflector.recorder, rates=self._reflector.rates,
            observers=self._reflector.observers,
        )  # fmt: skip
        unmade.begin_attempt()
        unmade.note_stopped()
        unmade.note_raised(UnreadableArgumentsError())

    def _call_facts(self, call: "_Call") -> dict[str, Any]:
        return {
            **call.call_facts(),
            **({"agent": self._agent} if self._agent else {}),
            "context": self._context(call.request) if self._context else None,
            "may_repeat": call.name in self._may_repeat,
            "is_retried": call.name not in self._never_retried,
        }

    def _present_result(self, call: "_Call", reflected: _Reflected) -> GraphResult:
        if (error := reflected.exception) is None:
            result = reflected.value()
            if isinstance(result, _Interrupted):
                raise result.error
            return call.with_notes(result, reflected)
        if reflected.error is None:
            raise error
        _logger.info("%s raised %s; the model reads it", call.name, reflected.error.type)
        return ToolMessage(
            content=reflector.text_with_advice(reflected.error, reflected.advice),
            name=call.name,
            tool_call_id=call.request.tool_call["id"],
            status="error",
        )


class _Call(ResultReader[object]):
    """One tool call of a graph, and the reader of what its attempts came to.

    A failure is the tool's message with status `error`, wherever it stands (a `Command` may carry
    it), or a typed error in a message's artifact. The frame that the tool node puts around an error
    is taken off, since it repeats the arguments and hides the tool's words.
    """

    def __init__(self, request: ToolCallRequest) -> None:
        self.request = request
        self.name: str = request.tool_call["name"]
        # As the model gave them, without names that only the graph fills in.
        injected, given = _injected_names(request.tool), request.tool_call["args"]
        self.arguments = {n: v for n, v in given.items() if n not in injected}
        self._injected = {n: v for n, v in given.items() if n in injected}
        self._sent = self.arguments
        # Whether the failure read last is an exception of the tool's own code. A `ToolException`
        # may hand on what a server has stated, and its words count.
        self._has_run = False

    def with_arguments(self, arguments: JsonObject) -> ToolCallRequest:
        self._sent, self._has_run = arguments, False
        if arguments is self.arguments:
            return self.request
        args = {**self._injected, **arguments}
        return self.request.override(tool_call={**self.request.tool_call, "args": args})

    def known_tool(self) -> reflector.KnownTool:
        tool = self.request.tool
        return reflector.KnownTool(
            schema=lambda: _schema_of(tool),
            annotations=reflector.claims_in(tool.metadata if tool is not None else None),
            has_run=lambda: self._has_run,
        )

    def call_facts(self) -> dict[str, Any]:
        """Return what is called, by whom (the name of `create_agent`), in which session.

        That is the thread, or else the run; None outside a graph, where there is no runtime.
        """
        config: Any = getattr(self.request.runtime, "config", None)
        config = config if isinstance(config, dict) else {}
        info = getattr(self.request.runtime, "execution_info", None)
        thread = config.get("configurable", {}).get("thread_id")
        session = thread or config.get("run_id") or getattr(info, "run_id", None)
        return {
            "tool_name": self.name,
            "parameters": self.arguments,
            "agent": config.get("metadata", {}).get("lc_agent_name") or "unknown",
            "session_id": str(session) if session else None,
            "reader": self,
        }

    def message_in(self, result: object) -> ToolMessage | None:
        call_id = self.request.tool_call["id"]
        return next((m for m in _tool_messages(result) if m.tool_call_id == call_id), None)

    def read(self, result: object) -> Outcome[Any] | None:
        if isinstance(result, _Interrupted):
            return None
        if (message := self.message_in(result)) is None:
            return Outcome(f"<{type(result).__name__}>")
        is_error, artifact, text = message.status == "error", message.artifact, str(message.text)
        if isinstance(artifact, Outcome):
            failure, status = artifact.error, artifact.status
        else:
            structured = artifact.get("structured_content") if isinstance(artifact, dict) else None
            failure = error_in_result(structured or artifact, [text], is_error=is_error)
            failure, status = failure or (self._unframe_error(text) if is_error else None), None
        if failure is not None:
            return Outcome(failure=failure)
        content = message.content
        if isinstance(content, str):
            return Outcome(content, status)
        shown = [_show_block(block) for block in content]
        return Outcome(shown[0] if len(shown) == 1 else shown, status)

    def read_exception(self, error: Exception) -> ExecutionError:
        if isinstance(error, ToolInvocationError):
            return self._unframe_error(str(error))
        self._has_run = not isinstance(error, ToolException)
        return read_exception(error)

    def _unframe_error(self, text: str) -> ExecutionError:
        if refused := _REFUSED.fullmatch(text):
            # The tool's check in its own words, which the frame has shortened. What passes it now
            # was not refused by it: then the tool itself has raised a validation error.
            refusal = _refusal_of(self.request.tool, self._sent)
            self._has_run = refusal is None
            return ExecutionError(
                type="ValidationError",
                message=bounded_text(str(refusal or refused["error"]), MAX_MESSAGE_CHARS),
            )
        raised = _RAISED.fullmatch(text)
        kind, message = _split_repr(raised["error"]) if raised else ("ToolError", text)
        if kind == ToolInvocationError.__name__ and _REFUSED.fullmatch(message):
            return self._unframe_error(message)  # the frame of all errors, around that of refusals
        self._has_run = raised is not None and kind != ToolException.__name__
        return ExecutionError(type=kind, message=bounded_text(message, MAX_MESSAGE_CHARS))

    def with_notes(self, result: GraphResult, reflected: _Reflected) -> GraphResult:
        message = self.message_in(result)
        if message is None or not (reflected.repaired or reflected.advice):
            return result
        if reflected.repaired:
            facts = reflector.repair_facts(reflected)
            update: dict[str, Any] = {
                "response_metadata": {**message.response_metadata, reflector.META_KEY: facts}
            }
        elif reflected.succeeded:
            return result
        elif isinstance(message.content, str):
            update = {"content": reflector.with_advice(message.content, reflected.advice)}
        else:
            update = {"content": [*message.content, {"type": "text", "text": reflected.advice}]}
        noted = _replace_message(result, message, message.model_copy(update=update))
        return cast("GraphResult", noted)


def _caller_in(config: Any, agent: str | None) -> dict[str, Any]:
    thread = config.get("configurable", {}).get("thread_id")
    session = thread or config.get("run_id")
    return {
        "agent": agent or config.get("metadata", {}).get("lc_agent_name") or "unknown",
        "session_id": str(session) if session else None,
    }


def _interruption_of(error: Exception) -> _Interrupted:
    """Interrupts, commands to a parent graph, and answers to an interrupt that do not fit it."""
    if isinstance(error, GraphBubbleUp) or is_invalid_resume(error):
        return _Interrupted(error)
    raise error


def _schema_of(tool: BaseTool | None) -> object:
    if tool is None:
        return None
    schema: Any = tool.tool_call_schema
    return schema if isinstance(schema, dict) else schema.model_json_schema()


def _refusal_of(tool: BaseTool | None, arguments: JsonObject) -> ValueError | None:
    """Return what the tool's own schema has against the arguments; None when nothing, or not known.

    The tool checks them by this before it runs, so what is refused here has not run.
    """
    schema = tool.tool_call_schema if tool is not None else None
    try:
        if isinstance(schema, type) and issubclass(schema, BaseModel):
            schema.model_validate(arguments)
    except ValueError as error:
        return error
    except Exception:  # noqa: BLE001  # a validator of the tool's own may raise anything
        return None
    return None


def _injected_names(tool: BaseTool | None) -> set[str]:
    if tool is None or isinstance(tool.args_schema, dict):
        return set()
    with suppress(Exception):  # a schema that cannot be made; the call will say so
        whole, shown = tool.get_input_schema(), tool.tool_call_schema
        if not isinstance(shown, dict):
            return set(_schema_fields(whole)) - set(_schema_fields(shown))
    return set()


def _schema_fields(schema: Any) -> Any:
    """Return the fields of a model of pydantic 2, or of 1 as LangChain still takes."""
    return getattr(schema, "model_fields", None) or getattr(schema, "__fields__", {})


def _tool_messages(result: object) -> list[ToolMessage]:
    if isinstance(result, ToolMessage):
        return [result]
    if isinstance(result, Command):
        update = result.update
        lists = update.values() if isinstance(update, dict) else [update]
        result = [each for each in lists if isinstance(each, list)]
    return [m for each in result for m in _tool_messages(each)] if isinstance(result, list) else []


def _replace_message(result: Any, old: ToolMessage, new: ToolMessage) -> Any:
    if result is old:
        return new
    if isinstance(result, list):
        return [_replace_message(each, old, new) for each in result]
    if isinstance(result, dict):
        return {name: _replace_message(each, old, new) for name, each in result.items()}
    if isinstance(result, Command):
        return replace(result, update=_replace_message(result.update, old, new))
    return result


def _split_repr(shown: str) -> tuple[str, str]:
    """Type and text of an exception whose `repr` is shown; the whole where it is not plain."""
    found = _REPR.fullmatch(shown) if len(shown) <= MAX_MESSAGE_CHARS else None
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        if found and isinstance(text := ast.literal_eval(found["text"]), str):
            return found["type"], text
    return "ToolError", shown


def _show_block(block: Any) -> JsonValue:
    if isinstance(block, str):
        return block
    return str(block.get("text")) if block.get("type") == "text" else f"<{block.get('type')}>"
