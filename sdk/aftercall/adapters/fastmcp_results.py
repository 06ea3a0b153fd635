"""Results of tools of a FastMCP server: which are failures, and what is added to them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastmcp.exceptions import DisabledError, NotFoundError, ToolError, ValidationError
from fastmcp.tools.base import InputRequiredToolResult, Tool, ToolResult
from mcp_types import TextContent

from aftercall import outcomes
from aftercall.adapters import before_call
from aftercall.adapters.reflector import META_KEY, dump_model, repair_facts
from aftercall.change_classes import reads_only
from aftercall.contracts import CONTRACT_VIOLATION, Deliverable, DeliverableReader
from aftercall.error_texts import ErrorTexts, ToolKey
from aftercall.json_values import JsonObject, bounded_text, json_or_none
from aftercall.mcp_calls import McpResultReader
from aftercall.models.calls import ExecutionError, ToolAnnotations
from aftercall.reflection import ReflectedResult, ResultReader
from aftercall.reflection.results import read_exception

_BODY_ERROR = "_ToolBodyError"
"""FastMCP's own, around a validation error of a tool that has run."""
# What FastMCP itself turns into an `isError` result. Anything else is a matter of the protocol or
# of authorisation, has its own form on the wire, and keeps it.
_TOLD_AS_RESULT = (ToolError, ValidationError, NotFoundError, DisabledError)


def claims_of_tool(tool: Tool | None) -> ToolAnnotations | None:
    """Return what a tool claims of itself; None where it claims nothing."""
    claims = tool.annotations.model_dump(exclude_none=True) if tool and tool.annotations else None
    if claims is None:
        return None
    return ToolAnnotations.model_validate(claims)


def reader_of(own: "ToolResultReader", wanted: Deliverable | None) -> ResultReader[ToolResult]:
    """Return the reader of results, which also holds them against what they must be."""
    if wanted is None:
        return own
    return DeliverableReader(own, wanted, lambda result: delivered_value(result, wanted))


def note_success(
    reflected: ReflectedResult[ToolResult], checked: before_call.Checked, when: before_call.Noting
) -> ToolResult:
    """Return a success with what was changed in its meta and in a last text, and what is odd."""
    result = reflected.value()
    followed = reflected.followed
    said = checked.said
    if not _is_outcome(result):
        return result
    changes = [*checked.changes, *(reflected.attempts[-1].changes if followed else ())]
    facts = repair_facts(reflected) if reflected.repaired else {}
    texts = []
    if changes:
        if said is not None and said.changes:
            before = dump_model(said)
            kept = ("confidence", "evidence", "account")
            facts = {
                "repaired": True,
                "note": "repaired before the call",
                **{name: before[name] for name in kept if name in before},
                "lesson": " ".join(said.reasons),
                **facts,
            }
        facts["changes"] = [dump_model(change) for change in changes]
        lossless = followed is None or followed.change_class == "lossless"
        if when == "always" or (when == "lossy" and not lossless):
            accounts = [said.account] if said is not None and said.account is not None else []
            accounts += reflected.accounts
            texts.append(before_call.note_of(changes, before=followed is None, accounts=accounts))
    elif checked.warnings and when != "never":
        facts["warnings"] = [*checked.warnings]
        texts.append(before_call.warning_of(checked.warnings))
    if facts:
        return rebuild_result(result, facts, texts)
    return result


def advise_failure(
    reflected: ReflectedResult[ToolResult], checked: before_call.Checked
) -> ToolResult:
    """Return a failure: the tool's own content, what it breaks, what was changed, suggestions.

    All of it is in the meta too.
    """
    raised = reflected.exception
    error = reflected.error
    result = reflected.result
    if isinstance(raised, _TOLD_AS_RESULT) and (reflected.advice or checked.changes):
        result = ToolResult(content=str(raised), is_error=True)
    elif raised is not None or error is None or result is None:
        return reflected.value()
    facts: JsonObject = {}
    texts = []
    is_violation = error is not None and error.type == CONTRACT_VIOLATION and not result.is_error
    if error is not None and is_violation:
        texts.append(f"{error.type}: {error.message}")
        facts["violation"] = dict(error.details)
    if checked.changes:
        texts.append(before_call.note_of_failure(checked.changes))
        facts["changes"] = [dump_model(change) for change in checked.changes]
    if reflected.advice:
        texts.append(reflected.advice)
        facts |= {
            "repaired": False,
            "note": reflected.note,
            "attempts": len(reflected.attempts),
            "suggestions": [dump_model(suggestion) for suggestion in reflected.suggestions],
        }
    if error is not None and (read := error.details.get("readAsError")):
        facts["readAsError"] = read
    if not facts:
        return result
    advised = rebuild_result(result, facts, texts)
    advised.is_error |= is_violation
    return advised


@dataclass(eq=False)
class ToolResultReader(McpResultReader):
    """Failures are results with `isError` or with a typed error in them, and exceptions.

    So are results whose text fits a pattern; without one, those that read as an error of this tool.
    """

    texts: ErrorTexts
    tool_key: ToolKey
    listed: Tool | None
    sent: JsonObject
    pattern: re.Pattern[str] | None

    def read_exception(self, error: Exception) -> ExecutionError:
        """Return the error behind FastMCP's wrapping: the type and code are those of its cause.

        A text that is the JSON of a typed error is that error.
        Subclasses are no wrappings: they say more than what caused them. The cause's text is used
        only where the caller sees it too, so that what a server masks (`mask_error_details`) does
        not come back in a suggestion.
        """
        if isinstance(error, ToolError) and (typed := outcomes.typed_error_in_text(str(error))):
            return typed
        cause = error.__cause__
        if type(cause).__name__ == _BODY_ERROR and cause is not None:
            cause = cause.__cause__
        if type(error) in (ToolError, ValidationError) and isinstance(cause, Exception):
            shown = str(error)
            inner = str(cause)
            return read_exception(cause, message=inner if inner and inner in shown else shown)
        return read_exception(error)

    def read(self, result: object) -> outcomes.Outcome[Any] | None:
        """Return none for a request for input (SEP-2322) and for results of extensions (tasks)."""
        outcome = super().read(result) if _is_outcome(result) else None
        if outcome is None or not isinstance(result, ToolResult):
            return outcome
        blocks = [block.text for block in result.content if isinstance(block, TextContent)]
        text = bounded_text("\n".join(blocks), outcomes.MAX_MESSAGE_CHARS)
        if outcome.error is not None:
            if result.is_error:
                self.texts.learn_error(self.tool_key, text)
            return outcome
        read: JsonObject
        if self.pattern is not None:
            if not self.pattern.pattern or self.pattern.search(text) is None:
                return outcome
            read = {"readAsError": self.pattern.pattern}
        else:
            is_text = len(result.content) == len(blocks) == 1
            is_all = is_text and outcomes.unwrap_structured(result.structured_content) in (
                None,
                text,
            )
            reads = reads_only(self.tool_key[1], claims_of_tool(self.listed))
            why = (
                self.texts.explain_success(self.tool_key, text, self.sent, reads=reads)
                if is_all
                else None
            )
            if why is None:
                return outcome
            read = {"readAsError": why, "guessed": True}
        return outcomes.Outcome(
            failure=ExecutionError(type="ToolError", message=text, details=read)
        )


def _is_outcome(result: object) -> bool:
    return isinstance(result, ToolResult) and not isinstance(result, InputRequiredToolResult)


def rebuild_result(result: ToolResult, facts: JsonObject, texts: Sequence[str]) -> ToolResult:
    """Return a result with facts in its metadata, and texts after its own content."""
    # Built again: a copy would keep the upstream's raw result, which is sent in its place.
    return ToolResult(
        content=[*result.content, *(TextContent(type="text", text=text) for text in texts)],
        structured_content=result.structured_content,
        meta={**(result.meta or {}), META_KEY: facts},
        is_error=result.is_error,
    )


def delivered_value(result: ToolResult, wanted: Deliverable) -> object:
    """Return the value that a result delivers: its structured content, or the JSON in its text.

    What FastMCP put into `{"result": ...}` is taken out, where no such key is asked for. Text that
    is no JSON, or where a string is asked for, is a string. Several text blocks of JSON are an
    array where one is asked for, as servers without structured content give each item a block.
    None without any text.
    """
    if (structured := result.structured_content) is not None:
        if "result" in wanted.named:
            return structured
        return outcomes.unwrap_structured(structured)
    kind = wanted.expected_type
    texts = [block.text for block in result.content if isinstance(block, TextContent)]
    values = [] if kind == "string" else [json_or_none(text) for text in texts]
    if len(values) > 1 and kind == "array":
        lists = [value for value in values if isinstance(value, list)]
        if len(lists) == 1:
            return lists[0]
        if all(isinstance(value, dict | list) for value in values):
            return values
    for value in values:
        is_scalar = isinstance(value, int | float) and len(values) == 1 and kind is not None
        if isinstance(value, dict | list) or is_scalar:
            return value
    if texts:
        return "\n".join(texts)
    return None
