"""Tool messages of LangGraph: read as outcomes, and telling a repair or advice."""

import ast
import re
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException
from langgraph.prebuilt.tool_node import ToolCallRequest, ToolInvocationError
from langgraph.types import Command

from aftercall.adapters import asking
from aftercall.adapters.langgraph_requests import arguments_of, refusal_of
from aftercall.bounded import bounded_json, bounded_text
from aftercall.json_values import JsonObject, JsonValue
from aftercall.models.calls import ExecutionError
from aftercall.outcomes import Outcome, error_in_result
from aftercall.reflection import ReflectedResult
from aftercall.reflection.results import read_exception

META_KEY = "aftercall"
"""Under this key of a message's `response_metadata` stands what Aftercall did."""

_MAX_MESSAGE_CHARS = 8000

# How LangGraph's tool node frames an error that it tells the model; its templates are the same.
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
class Interrupted:
    """In place of a result: the tool has asked a person, or the graph goes elsewhere."""

    error: Exception


ToolResult: TypeAlias = ToolMessage | Command[Any] | list[ToolMessage | Command[Any]]


class MessageReader:
    """Reads what the calls of one request came to.

    A failure is the tool's message with status `error`, wherever it stands (a `Command` may carry
    it), or a typed error in a message's artifact. The frame that the tool node puts around an error
    is taken off, since it repeats the arguments and hides the tool's words.

    Args:
        request: the call.
    """

    def __init__(self, request: ToolCallRequest) -> None:
        self._request = request
        self._sent = arguments_of(request)
        self._has_run = False

    def has_run(self) -> bool:
        """Whether the failure read last is an exception of the tool's own code.

        A `ToolException` may hand on what a server has said, and its words count.
        """
        return self._has_run

    def sending(self, arguments: JsonObject) -> None:
        """The next attempt has these arguments."""
        self._sent = arguments
        self._has_run = False

    def message_in(self, result: object) -> ToolMessage | None:
        """The message that ends this call."""
        call_id = self._request.tool_call["id"]
        for each in _messages(result):
            if each.tool_call_id == call_id:
                return each
        return None

    def read_failure(self, result: object) -> ExecutionError | None:
        """The error that the message tells of."""
        message = self.message_in(result)
        if message is None:
            return None
        is_error = message.status == "error"
        artifact = message.artifact
        if isinstance(artifact, Outcome):
            return artifact.error
        structured = artifact.get("structured_content") if isinstance(artifact, dict) else None
        text = str(message.text)
        typed = error_in_result(structured or artifact, [text], is_error=is_error)
        if typed is not None or not is_error:
            return typed
        return self._unframed(text)

    def read_exception(self, error: Exception) -> ExecutionError:
        """The exception; refused arguments are told without what the graph had injected."""
        if isinstance(error, ToolInvocationError):
            return self._unframed(str(error))
        self._has_run = not isinstance(error, ToolException)
        return read_exception(error)

    def is_outcome(self, result: object) -> bool:
        """False for an interrupt."""
        return not isinstance(result, Interrupted)

    def summarise(self, result: object) -> JsonValue:
        """The message's content, blocks other than text by their kind only."""
        message = self.message_in(result)
        if message is None:
            return f"<{type(result).__name__}>"
        content = message.content
        if isinstance(content, str):
            return bounded_json(content)
        shown = [_shown(block) for block in content]
        return bounded_json(shown[0] if len(shown) == 1 else shown)

    def read_status(self, result: object) -> str | None:
        """The tool's own word for its success, where its artifact is an `Outcome`."""
        message = self.message_in(result)
        artifact = message.artifact if message is not None else None
        return artifact.status if isinstance(artifact, Outcome) else None

    def _unframed(self, text: str) -> ExecutionError:
        if refused := _REFUSED.fullmatch(text):
            # The tool's check in its own words, which the frame has shortened. What passes it now
            # was not refused by it: then the tool itself has raised a validation error.
            refusal = refusal_of(self._request.tool, self._sent)
            self._has_run = refusal is None
            return ExecutionError(
                type="ValidationError",
                message=_cut(str(refusal) if refusal else refused["error"]),
            )
        raised = _RAISED.fullmatch(text)
        kind, message = _parted(raised["error"]) if raised else ("ToolError", text)
        if kind == ToolInvocationError.__name__ and _REFUSED.fullmatch(message):
            return self._unframed(message)  # the frame of all errors, around that of refusals
        self._has_run = raised is not None and kind != ToolException.__name__
        return ExecutionError(type=kind, message=_cut(message))


def with_repair(
    result: ToolResult,
    message: ToolMessage | None,
    reflected: ReflectedResult[Any],
) -> ToolResult:
    """The retried call's result, with the repair told in the message's metadata."""
    if message is None:
        return result
    followed, first = reflected.followed, reflected.attempts[0].error
    facts: JsonObject = {
        "repaired": True,
        "note": reflected.note,
        "attempts": len(reflected.attempts),
        "suggestionId": followed.suggestion_id if followed else None,
        "confidence": followed.confidence if followed else None,
        "lesson": followed.lesson if followed else None,
        "changes": [
            change.model_dump(mode="json", by_alias=True)
            for change in reflected.attempts[-1].changes
        ],
        "firstError": bounded_text(first.message, 500) if first else None,
    }
    metadata = {**message.response_metadata, META_KEY: facts}
    told: ToolResult = _replaced(
        result, message, message.model_copy(update={"response_metadata": metadata})
    )
    return told


def with_advice(result: ToolResult, message: ToolMessage | None, advice: str) -> ToolResult:
    """The tool's own error, then the suggestions."""
    if message is None:
        return result
    content = message.content
    advised = (
        asking.with_advice(content, advice)
        if isinstance(content, str)
        else [*content, {"type": "text", "text": advice}]
    )
    told: ToolResult = _replaced(result, message, message.model_copy(update={"content": advised}))
    return told


def _messages(result: object) -> list[ToolMessage]:
    if isinstance(result, ToolMessage):
        return [result]
    if isinstance(result, list):
        return [message for each in result for message in _messages(each)]
    if isinstance(result, Command):
        update = result.update
        lists = update.values() if isinstance(update, dict) else [update]
        return [m for each in lists if isinstance(each, list) for m in _messages(each)]
    return []


def _replaced(result: Any, old: ToolMessage, new: ToolMessage) -> Any:
    """The result with one message in the place of another."""
    if result is old:
        return new
    if isinstance(result, list):
        return [_replaced(each, old, new) for each in result]
    if isinstance(result, Command):
        update = result.update
        if isinstance(update, dict):
            changed: Any = {name: _replaced(each, old, new) for name, each in update.items()}
        else:
            changed = _replaced(update, old, new)
        return replace(result, update=changed)
    return result


def _parted(shown: str) -> tuple[str, str]:
    """Type and text of an exception whose `repr` is shown; the whole where it is not plain."""
    found = _REPR.fullmatch(shown) if len(shown) <= _MAX_MESSAGE_CHARS else None
    if found is None:
        return "ToolError", shown
    try:
        text = ast.literal_eval(found["text"])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return "ToolError", shown
    return (found["type"], text) if isinstance(text, str) else ("ToolError", shown)


def _shown(block: Any) -> JsonValue:
    if isinstance(block, str):
        return block
    if block.get("type") == "text":
        return str(block.get("text"))
    return f"<{block.get('type')}>"


def _cut(text: str) -> str:
    return bounded_text(text, _MAX_MESSAGE_CHARS)
