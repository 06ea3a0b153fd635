"""What every reader gives, how executions of transcripts and logs are made, what a tool answered.

Neither transcripts nor protocol logs have ids for executions. Here an id is made of what was called
and what came back, so that reading a file again, whole or longer than it was, gives the same ids.

An answer is a failure by what is structured in it: `isError`, an error object, a typed outcome.
What a tool states is never rewritten. Pure.
"""

import ast
import hashlib
import json
import re
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias

from pydantic import ValidationError

from aftercall.arguments import Arguments
from aftercall.json_values import (
    InvalidJsonValueError,
    JsonObject,
    JsonValue,
    bounded_json,
    bounded_text,
    canonical_json,
    check_json_object,
)
from aftercall.models import Execution
from aftercall.models.calls import ExecutionError
from aftercall.outcomes import (
    MAX_MESSAGE_CHARS,
    error_in_result,
    make_error,
    message_text,
    status_in_result,
    typed_error_in_text,
)

MAX_CONTEXT_CHARS = 4000
"""As the SDK bounds it."""
_MAX_NAME_CHARS = 256  # as the wire models have it
_NAMESPACE = uuid.UUID("5b0a3f0e-6c1d-5b52-9a34-6d0f0c6f7a51")
"""Of the ids made here; a change of it would count everything twice at the next import."""
_FIRST_YEAR, _LAST_YEAR = 1970, 2199  # as the wire models have it
_UNITS = ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6))
"""Moments after 1973 in ms, µs and ns lie above these bounds, and none before 5138 in s does."""
TOOL_ERROR = "ToolError"
"""Type of a failure that names none; as the gateway records it."""
TEXTS = frozenset({"text", "input_text", "output_text"})
_MAX_BLOCKS = 10_000
_MAX_LITERAL = 64 * 1024
_MAX_SCHEMAS = 2000
_MAX_NAMED = 10
_MAX_SCHEMA = 256 * 1024
"""Characters."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A call, or a piece of a file, that could not be read. Nothing else is lost with it."""

    message: str
    """What is wrong and, where there is one, the cure. Never a value of the call."""


@dataclass(frozen=True, slots=True)
class LeftOut(Unreadable):
    """A call that is whole and has no outcome, such as the last one of an interrupted session."""


@dataclass(frozen=True, slots=True)
class Noted:
    """Something to show once: all was read, and yet less can be learned than there could be."""

    message: str


@dataclass(frozen=True, slots=True)
class PassedOver(Noted):
    """Spans that are no calls of tools, counted by the instrumentation that made them."""

    counts: Mapping[str, int]


Read: TypeAlias = Execution | Unreadable | Noted


class Placed(NamedTuple):
    """Something read, and where."""

    where: str
    """For people: `line 7`, `resourceSpans[0].scopeSpans[0].spans[3]`."""
    read: Read


@dataclass(frozen=True, slots=True)
class Given:
    """What a person states of a file, for what the file itself does not say."""

    at: datetime
    """When the calls were made whose time is nowhere in the file."""
    agent: str | None = None
    error_pattern: re.Pattern[str] | None = None
    """Results whose text it is found in are failures; then no text is guessed to be one."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """A success with its result, or a failure with its error."""

    error: ExecutionError | None = None
    result: JsonValue = None
    status: str | None = None

    def execution_fields(self) -> dict[str, Any]:
        """Return the fields of an execution that hold this answer."""
        if self.error is not None:
            return {"outcome": "failure", "error": self.error}
        return {"outcome": "success", "result": self.result, "result_status": self.status}


def placed_execution(where: str, **fields: Any) -> Placed:
    """Return the execution of these fields; what is wrong with them where it cannot be one."""
    try:
        return Placed(where, Execution.model_validate(fields))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = bounded_text(".".join(str(part) for part in first["loc"]), 100) or "the call"
        return unreadable_at(where, f"{name}: {first['msg']}")


_LOOSE = "the arguments of some calls are texts that are no JSON objects; they were read as such"
_UNREAD = (
    "the arguments of some calls are texts that are cut off or say no object; they are kept as "
    "they came, and nothing can be learned of parameters from them"
)


def passed_over(counts: Mapping[str, int]) -> PassedOver:
    """Return what there is to show what was passed over, the most frequent first."""
    most = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    named = [f"{number:,} of {name}" for name, number in most[:_MAX_NAMED]]
    rest = sum(number for _, number in most[_MAX_NAMED:])
    named += [f"{rest:,} of others"] if rest else []
    return PassedOver(f"passed over, as they are no calls of tools: {', '.join(named)}", counts)


def notes_of(where: str, arguments: Arguments) -> Iterator[Placed]:
    """Yield what there is to show arguments that came as a text and are no JSON."""
    if arguments.text is not None:
        yield Placed(where, Noted(_UNREAD if arguments.parameters is None else _LOOSE))


def unreadable_at(where: str, message: str) -> Placed:
    """Return what could not be read at a place."""
    return Placed(bounded_text(where, 200), Unreadable(message))


def left_out(where: str, message: str) -> Placed:
    """Return what is no mistake of the file, and yet no call that can be recorded."""
    return Placed(bounded_text(where, 200), LeftOut(message))


def stable_id(*parts: JsonValue) -> str:
    """Return an execution id that is the same for the same parts."""
    return str(uuid.uuid5(_NAMESPACE, digest_of(list(parts))))


def digest_of(value: JsonValue) -> str:
    """SHA-256 of the canonical JSON; also of text that has lone surrogates in it."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def name_of(value: object) -> str | None:
    """Return a name as the wire takes it; None for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return bounded_text(value, _MAX_NAME_CHARS) if isinstance(value, str) and value else None


def first_name(value: dict[str, Any], *keys: str) -> str | None:
    """Return the first of the members that is a name."""
    return next((name for key in keys if (name := name_of(value.get(key)))), None)


def first_moment(value: dict[str, Any], *keys: str) -> datetime | None:
    """Return the first of the members that is a moment."""
    return next((at for key in keys if (at := read_moment(value.get(key)))), None)


def read_moment(value: object) -> datetime | None:
    """Return the UTC moment of ISO 8601, or of s, ms, µs or ns since 1970."""
    try:
        if isinstance(value, str) and not value.isdecimal():
            said = datetime.fromisoformat(value.strip().replace(",", "."))
            found = (said if said.tzinfo else said.replace(tzinfo=UTC)).astimezone(UTC)
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            number = float(value)
            unit = next((unit for bound, unit in _UNITS if abs(number) < bound), 1e9)
            found = datetime.fromtimestamp(number / unit, UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return found if _FIRST_YEAR <= found.year <= _LAST_YEAR else None


def python_literal(text: str) -> object:
    """Return the JSON value of a Python `repr` (tuples are lists).

    None for none. Nothing is executed.
    """
    if len(text) > _MAX_LITERAL:
        return None
    try:
        with warnings.catch_warnings(action="ignore"):  # of escapes that Python does not know
            return json.loads(json.dumps(ast.literal_eval(text)))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def schemas_of(tools: object) -> dict[str, JsonObject]:
    """Input schemas by the names of tools, in the lists of MCP and of both model APIs."""
    found: dict[str, JsonObject] = {}
    for tool in tools if isinstance(tools, list) else ():
        told = tool.get("function", tool) if isinstance(tool, dict) else None
        if not isinstance(told, dict) or not isinstance(name := told.get("name"), str):
            continue
        stated = (told.get(key) for key in ("parameters", "input_schema", "inputSchema"))
        schema = next((each for each in stated if isinstance(each, dict)), None)
        # What cannot be stored is no schema; the calls are read without it.
        with suppress(InvalidJsonValueError):
            clean = {} if schema is None else check_json_object(schema)
            if clean and len(found) < _MAX_SCHEMAS and len(canonical_json(clean)) <= _MAX_SCHEMA:
                found[name] = clean
    return found


def failure_in_text(text: str) -> ToolAnswer:
    """Return the failure that a text shows, where something else marks it as one."""
    message = bounded_text(text, MAX_MESSAGE_CHARS)
    return ToolAnswer(typed_error_in_text(text) or ExecutionError(type=TOOL_ERROR, message=message))


def failure_in_object(error: object) -> ToolAnswer:
    """Return a failure as an error object of an API or of JSON-RPC.

    `message`, `type`, `code`, ...
    """
    if not isinstance(error, Mapping):
        return failure_in_text(message_text(error))
    said = {key: error.get(key) for key in ("message", "type", "name", "code")}
    kind = next((said[key] for key in ("type", "name") if isinstance(said[key], str)), None)
    code = said["code"]
    return ToolAnswer(
        make_error(
            kind or TOOL_ERROR,
            said["message"] or bounded_json(error),
            code=code if isinstance(code, str | int) and not isinstance(code, bool) else None,
            details={str(key): item for key, item in error.items() if key not in said},
        )
    )


def failure_in_rpc(error: object) -> ToolAnswer:
    """Return the failure that the error of a JSON-RPC response shows."""
    if not isinstance(error, Mapping):
        return failure_in_text(message_text(error))
    data = error.get("data")
    details = data if isinstance(data, Mapping) else {} if data is None else {"data": data}
    return failure_in_object(
        {"type": "McpError", "message": error.get("message") or "", "code": error.get("code")}
        | {key: item for key, item in details.items() if key not in {"type", "message", "code"}}
    )


def is_mcp_result(value: Mapping[str, Any]) -> bool:
    """Return whether an object is the result of `tools/call`."""
    content = value.get("content")
    return isinstance(content, list) and all(
        isinstance(block, Mapping) and isinstance(block.get("type"), str)
        for block in content[:_MAX_BLOCKS]
    )


def mcp_answer(result: Mapping[str, Any]) -> ToolAnswer:
    """Return the answer in a result of `tools/call`: `isError`, structured content, texts."""
    blocks = result.get("content")
    texts = texts_of(blocks if isinstance(blocks, list) else [])
    structured = result.get("structuredContent")
    is_error = result.get("isError") is True
    if (typed := error_in_result(structured, texts, is_error=is_error)) is not None:
        return ToolAnswer(typed)
    if is_error:
        return failure_in_text("\n".join(texts) or message_text(structured))
    meta = result.get("_meta")
    status = status_in_result(structured, meta if isinstance(meta, Mapping) else None)
    if structured is not None:
        return ToolAnswer(result=bounded_json(structured), status=status)
    kinds = [each.get("type") for each in (blocks if isinstance(blocks, list) else ())[:_MAX_BLOCKS]
             if isinstance(each, Mapping)]  # fmt: skip
    # Of what is no text, the kind only.
    others = (f"<{bounded_text(str(kind), 50)}>" for kind in kinds if kind not in TEXTS)
    shown: list[Any] = [*texts, *others]
    return ToolAnswer(result=bounded_json(shown[0] if len(shown) == 1 else shown), status=status)


def texts_of(blocks: Sequence[object]) -> list[str]:
    """Return the texts among content blocks or parts."""
    return [
        block["text"]
        for block in blocks[:_MAX_BLOCKS]
        if isinstance(block, Mapping)
        and block.get("type") in TEXTS
        and isinstance(block.get("text"), str)
    ]
