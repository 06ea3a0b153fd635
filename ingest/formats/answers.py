"""What a tool answered, in the content of a transcript's result. Pure.

A failure is what the message marks as one (`is_error`, `status: "error"`); a typed outcome (see
`aftercall.outcomes`), an MCP result or anything else with `isError: true`, also as Python printed
it; and an object that holds nothing but an error: `{"error": "...", "code": 404}`. Anything that
only begins as errors do is guessed to be one, as the gateway does, and marked so (`readAsError`). A
person who knows better states how failures begin (`--error-prefix`, `--error-pattern`); then
nothing is guessed.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json

from aftercall.change_classes import reads_only
from aftercall.error_texts import ErrorTexts
from aftercall.json_values import JsonObject, bounded_json
from aftercall.models.calls import ExecutionError
from aftercall.outcomes import Outcome
from ingest.formats.calls import (
    TOOL_ERROR,
    Given,
    ToolAnswer,
    failure_in_object,
    failure_in_text,
    is_mcp_result,
    mcp_answer,
    python_literal,
    texts_of,
)

_MAX_JSON_CHARS = 1_000_000
"""Of a text that may be a JSON object; an error is far shorter, so a longer one is a success."""
_OF_AN_ERROR = frozenset({
    "error", "message", "errormessage", "msg", "code", "errorcode", "status", "statuscode", "type",
    "errortype", "name", "kind", "detail", "details", "data", "success", "ok", "iserror", "stack",
    "stacktrace", "traceback", "hint", "suggestion", "help", "requestid", "traceid", "timestamp",
    "path", "retryable",
})  # fmt: skip
"""Members, folded, of an object that is an error. One with others is a report that mentions one."""
_PRINTED = re.compile(r"\bcontent=\[.*\bis_?[eE]rror=True\b", re.DOTALL)
"""A failed result of MCP as Python prints it."""
_PRINTED_TEXT = re.compile(r"\btext=('(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\")")
_MAX_PRINTED = 200_000
_MAX_BEGINNING = 40


def transcript_answer(
    content: object, *, failed: bool, pattern: re.Pattern[str] | None
) -> ToolAnswer:
    """Return the answer in the content of a tool's message; `pattern` states how failures begin."""
    text = message_text_of(content)
    held = content if isinstance(content, Mapping) else _object_in(text)
    if held is not None and (found := _structured_answer(held, failed=failed)) is not None:
        return found
    if text is not None and (printed := _printed_error(text)) is not None:
        return failure_in_text(printed)
    if failed or (pattern is not None and text is not None and pattern.search(text)):
        return failure_in_text(text if text is not None else str(bounded_json(content)))
    status = None if held is None else Outcome.coerce(held).status
    return ToolAnswer(result=bounded_json(content if text is None else text), status=status)


@dataclass(slots=True)
class ErrorGuesses:
    """Takes results that read as errors for failures, and counts them by how they begin."""

    given: Given
    beginnings: Counter[str] = field(default_factory=Counter)
    """How the results begin that were taken for failures, and how many do."""
    _texts: ErrorTexts = field(default_factory=ErrorTexts)

    def judge_answer(
        self, answer: ToolAnswer, server: str | None, tool: str, sent: JsonObject
    ) -> ToolAnswer:
        """Return an answer as it is, or the failure that the text of a success reads as."""
        if self.given.error_pattern is not None:
            return answer
        if answer.error is not None:
            self._texts.learn_error((server, tool), answer.error.message)
            return answer
        if not isinstance(answer.result, str):
            return answer
        why = self._texts.explain_success(
            (server, tool), answer.result, sent, reads=reads_only(tool, None)
        )
        if why is None:
            return answer
        beginning = answer.result.lstrip()[:_MAX_BEGINNING].partition(":")
        self.beginnings["".join(beginning[:2])] += 1
        details: JsonObject = {"readAsError": why, "guessed": True}
        return ToolAnswer(ExecutionError(type=TOOL_ERROR, message=answer.result, details=details))


def _printed_error(text: str) -> str | None:
    """Return the words of a failed result of MCP that Python printed; None for any other text."""
    if len(text) > _MAX_PRINTED or _PRINTED.search(text) is None:
        return None
    words = [python_literal(quoted) for quoted in _PRINTED_TEXT.findall(text)]
    return "\n".join(word for word in words if isinstance(word, str)) or text


def message_text_of(content: object) -> str | None:
    """Return the text of a message; None for what is neither text nor parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(
        isinstance(part, Mapping) and isinstance(part.get("type"), str) for part in content
    ):
        return "\n".join(texts_of(content))
    # Parts without a type: Bedrock, Gemini, Copilot and Kiro write them.
    if isinstance(content, list) and content and all(map(_is_bare_text, content)):
        return "\n".join(str(word) for part in content for word in part.values())
    return None


def _is_bare_text(part: object) -> bool:
    keys = [str(key).lower() for key in part] if isinstance(part, Mapping) else []
    return keys in (["text"], ["value"])


def _object_in(text: str | None) -> Mapping[str, Any] | None:
    if text is None or len(text) > _MAX_JSON_CHARS or not text.lstrip().startswith("{"):
        return None
    try:
        value = from_json(text)
    except ValueError:
        return None
    return value if isinstance(value, Mapping) else None


def _structured_answer(held: Mapping[str, Any], *, failed: bool) -> ToolAnswer | None:
    if (typed := Outcome.coerce(held).error) is not None:
        return ToolAnswer(typed)
    if is_mcp_result(held) and "isError" in held:
        return mcp_answer(held)
    if held.get("isError") is True or failed or _is_an_error(held):
        inner = held.get("error")
        if isinstance(inner, Mapping) and inner:
            return failure_in_object(inner)
        message = inner if isinstance(inner, str) and inner else held.get("message")
        outer = {key: item for key, item in held.items() if key not in {"error", "isError"}}
        kind = held.get("type") or held.get("errorType") or held.get("error_type") or TOOL_ERROR
        return failure_in_object(outer | {"message": message or held, "type": kind})
    return None


def _is_an_error(held: Mapping[str, Any]) -> bool:
    error = held.get("error")
    told = isinstance(error, str | Mapping) and bool(error)
    flagged = error is True and isinstance(held.get("message"), str)
    return (told or flagged) and all(
        re.sub(r"[-_.\s]+", "", key[:100]).lower() in _OF_AN_ERROR for key in held
    )
