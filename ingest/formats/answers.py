"""What a tool answered, by what is structured in it: `isError`, an error object, a typed outcome.

What a tool says is never rewritten: no text makes a failure of a success here. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aftercall.bounded import bounded_json, bounded_text
from aftercall.json_values import JsonValue
from aftercall.models.calls import ExecutionError
from aftercall.outcomes import error_in_result, status_in_result, typed_error_in_text
from aftercall.outcomes.typed_errors import MAX_MESSAGE_CHARS, make_error, words_of

TOOL_ERROR = "ToolError"
"""Type of a failure that names none; as the gateway records it."""

_TEXTS = frozenset({"text", "input_text", "output_text"})
_MAX_BLOCKS = 10_000


@dataclass(frozen=True, slots=True)
class Answer:
    """A success with its result, or a failure with its error."""

    error: ExecutionError | None = None
    result: JsonValue = None
    status: str | None = None

    def fields(self) -> dict[str, Any]:
        """Of an execution."""
        if self.error is not None:
            return {"outcome": "failure", "error": self.error}
        return {"outcome": "success", "result": self.result, "result_status": self.status}


def failure_in_text(text: str) -> Answer:
    """The failure that a text tells of, of which something else says that it is one."""
    message = bounded_text(text, MAX_MESSAGE_CHARS)
    return Answer(typed_error_in_text(text) or ExecutionError(type=TOOL_ERROR, message=message))


def failure_in_object(error: object) -> Answer:
    """A failure as an error object of an API or of JSON-RPC: `message`, `type`, `code`, ..."""
    if not isinstance(error, Mapping):
        return failure_in_text(words_of(error))
    said = {key: error.get(key) for key in ("message", "type", "name", "code")}
    kind = next((said[key] for key in ("type", "name") if isinstance(said[key], str)), None)
    code = said["code"]
    return Answer(
        make_error(
            kind or TOOL_ERROR,
            said["message"] or bounded_json(error),
            code=code if isinstance(code, str | int) and not isinstance(code, bool) else None,
            details={str(key): item for key, item in error.items() if key not in said},
        )
    )


def failure_in_rpc(error: object) -> Answer:
    """The failure that the error of a JSON-RPC response tells of."""
    if not isinstance(error, Mapping):
        return failure_in_text(words_of(error))
    data = error.get("data")
    details = data if isinstance(data, Mapping) else {} if data is None else {"data": data}
    return failure_in_object(
        {"type": "McpError", "message": error.get("message") or "", "code": error.get("code")}
        | {key: item for key, item in details.items() if key not in {"type", "message", "code"}}
    )


def is_mcp_result(value: Mapping[str, Any]) -> bool:
    """Whether an object is the result of `tools/call`."""
    content = value.get("content")
    return isinstance(content, list) and all(
        isinstance(block, Mapping) and isinstance(block.get("type"), str)
        for block in content[:_MAX_BLOCKS]
    )


def mcp_answer(result: Mapping[str, Any]) -> Answer:
    """The answer in a result of `tools/call`: `isError`, structured content, texts."""
    blocks = result.get("content")
    texts = texts_of(blocks if isinstance(blocks, list) else [])
    structured = result.get("structuredContent")
    is_error = result.get("isError") is True
    typed = error_in_result(structured, texts, is_error=is_error)
    if typed is not None:
        return Answer(typed)
    if is_error:
        return failure_in_text("\n".join(texts) or words_of(structured))
    meta = result.get("_meta")
    status = status_in_result(structured, meta if isinstance(meta, Mapping) else None)
    if structured is not None:
        return Answer(result=bounded_json(structured), status=status)
    shown: list[Any] = [*texts, *_others(blocks if isinstance(blocks, list) else [])]
    return Answer(result=bounded_json(shown[0] if len(shown) == 1 else shown), status=status)


def texts_of(blocks: Sequence[object]) -> list[str]:
    """The texts among content blocks or parts."""
    return [
        block["text"]
        for block in blocks[:_MAX_BLOCKS]
        if isinstance(block, Mapping)
        and block.get("type") in _TEXTS
        and isinstance(block.get("text"), str)
    ]


def _others(blocks: Sequence[object]) -> list[str]:
    """Blocks that are no text, by their kind only."""
    kinds = (block.get("type") for block in blocks[:_MAX_BLOCKS] if isinstance(block, Mapping))
    return [f"<{bounded_text(str(kind), 50)}>" for kind in kinds if kind not in _TEXTS]
