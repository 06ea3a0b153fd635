"""Calls over MCP: who makes them, as a request's `_meta` states it, and which results are failures.

| | first | then | else |
|---|---|---|---|
| agent | the tool's argument | `_meta["aftercall/agent"]` | the MCP client's name, `unknown` |
| session | the tool's argument | `_meta["aftercall/session"]` | the connection's or client's |
| context | | `_meta["aftercall/context"]` | the gateway's `--context`, none |
| recorded | | unless `_meta["aftercall/record"]` is false | yes |

Results are read as mappings or as models of any library.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aftercall import outcomes
from aftercall.error_texts import name_or_none
from aftercall.json_values import bounded_text
from aftercall.models.calls import ExecutionError
from aftercall.reflection.results import OutcomeReader

AGENT_KEY = "aftercall/agent"
SESSION_KEY = "aftercall/session"
CONTEXT_KEY = "aftercall/context"
RECORD_KEY = "aftercall/record"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, in which session, and what for."""

    agent: str = "unknown"
    session_id: str | None = None
    context: str | None = None
    is_recorded: bool = True

    def with_meta(self, meta: Mapping[str, object]) -> "Caller":
        """Return the caller as the request's `_meta` names it, else as it is."""
        context = meta.get(CONTEXT_KEY)
        return Caller(
            name_or_none(meta.get(AGENT_KEY)) or self.agent,
            name_or_none(meta.get(SESSION_KEY)) or self.session_id,
            context if isinstance(context, str) and context else self.context,
            meta.get(RECORD_KEY) is not False,
        )


class McpResultReader(OutcomeReader):
    """Failures are results of MCP tools with `isError`, typed outcomes, and exceptions."""

    def read(self, result: object) -> outcomes.Outcome[Any] | None:
        """Return the typed error in a result, or else its text as it is; or what it holds.

        That is the structured content, or else the text, with other blocks by their kind only.
        """
        if (seen := _McpResult.from_result(result)) is None:
            return super().read(result)
        failure = outcomes.error_in_result(seen.structured, seen.texts, is_error=seen.is_error)
        if failure is None and seen.is_error:
            failure = ExecutionError(
                type="ToolError",
                message=bounded_text("\n".join(seen.texts), outcomes.MAX_MESSAGE_CHARS),
            )
        if failure is not None:
            return outcomes.Outcome(failure=failure)
        shown = seen.shown[0] if len(seen.shown) == 1 else seen.shown
        value = shown if seen.structured is None else seen.structured
        return outcomes.Outcome(value, outcomes.status_in_result(seen.structured, seen.meta))

    def value_of(self, result: object) -> object:
        """Return what the tool returned.

        The structured content as it was, or else the whole text.
        """
        if (seen := _McpResult.from_result(result)) is None:
            return result
        return (
            "\n".join(seen.shown)
            if seen.structured is None
            else outcomes.unwrap_structured(seen.structured)
        )


@dataclass(frozen=True, slots=True)
class _McpResult:
    is_error: bool
    texts: Sequence[str]
    shown: Sequence[str]
    structured: object
    meta: Mapping[str, object] | None

    @classmethod
    def from_result(cls, result: object) -> "_McpResult | None":
        blocks = _member_of(result, "content")
        if not isinstance(blocks, list):
            return None
        kinds = [_member_of(block, "type") for block in blocks]
        if not all(isinstance(kind, str) for kind in kinds):
            return None
        parts = [
            (kind, str(_member_of(block, "text")))
            for kind, block in zip(kinds, blocks, strict=True)
        ]
        meta = _member_of(result, "_meta", "meta")
        return cls(
            is_error=_member_of(result, "isError", "is_error") is True,
            texts=[text for kind, text in parts if kind == "text"],
            shown=[text if kind == "text" else f"<{kind}>" for kind, text in parts],
            structured=_member_of(result, "structuredContent", "structured_content"),
            meta=meta if isinstance(meta, Mapping) else None,
        )


def _member_of(value: object, *names: str) -> object:
    for name in names:
        try:
            found = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        except Exception:  # noqa: BLE001  # a foreign property may raise anything
            return None
        if found is not None:
            return found
    return None
