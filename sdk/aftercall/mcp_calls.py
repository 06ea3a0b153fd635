"""Calls over MCP: who makes them, as a request's `_meta` says it, and which results are failures.

| | first | then | else |
|---|---|---|---|
| agent | the tool's argument | `_meta["aftercall/agent"]` | the MCP client's name, `unknown` |
| session | the tool's argument | `_meta["aftercall/session"]` | the connection's or client's |
| context | | `_meta["aftercall/context"]` | the gateway's `--context`, none |
| recorded | | unless `_meta["aftercall/record"]` is false | yes |

Results are read as mappings or as models of any library.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aftercall import outcomes
from aftercall.json_values import JsonObject, bounded_name, bounded_text
from aftercall.models.calls import ExecutionError
from aftercall.reflection.reflected_call import ToolKey as ToolKey  # noqa: PLC0414
from aftercall.reflection.results import OutcomeReader
from aftercall.tables import keep

AGENT_KEY = "aftercall/agent"
SESSION_KEY = "aftercall/session"
CONTEXT_KEY = "aftercall/context"
RECORD_KEY = "aftercall/record"
_CLIENTS_NAME = re.compile(r"mcp__(.+?)__(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, in which session, and what for."""

    agent: str = "unknown"
    session_id: str | None = None
    context: str | None = None
    is_recorded: bool = True

    def with_meta(self, meta: Mapping[str, object]) -> "Caller":
        """The caller as the request's `_meta` names it, else as it is."""
        context = meta.get(CONTEXT_KEY)
        return Caller(
            name_or_none(meta.get(AGENT_KEY)) or self.agent,
            name_or_none(meta.get(SESSION_KEY)) or self.session_id,
            context if isinstance(context, str) and context else self.context,
            meta.get(RECORD_KEY) is not False,
        )


def split_name(tool: str) -> tuple[str | None, str]:
    """Server and tool of a name as clients show it to their model: `mcp__server__tool`."""
    found = _CLIENTS_NAME.fullmatch(tool)
    return (found[1], found[2]) if found else (None, tool)


def name_or_none(value: object) -> str | None:
    """A name that the contract takes, of whatever a client sent; None for nothing of the kind."""
    return bounded_name(value) if isinstance(value, str) else None


class McpResultReader(OutcomeReader):
    """Failures are results of MCP tools with `isError`, typed outcomes, and exceptions."""

    def read(self, result: object) -> outcomes.Outcome[Any] | None:
        """The typed error in a result, or else its text as it is; or what it holds.

        That is the structured content, or else the text, with other blocks by their kind only.
        """
        if (seen := _McpResult.of(result)) is None:
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
        """What the tool returned: the structured content as it was, or else the whole text."""
        if (seen := _McpResult.of(result)) is None:
            return result
        return (
            "\n".join(seen.shown)
            if seen.structured is None
            else outcomes.unwrapped(seen.structured)
        )


@dataclass(frozen=True, slots=True)
class _McpResult:
    is_error: bool
    texts: Sequence[str]
    shown: Sequence[str]
    structured: object
    meta: Mapping[str, object] | None

    @classmethod
    def of(cls, result: object) -> "_McpResult | None":
        blocks = _member(result, "content")
        if not isinstance(blocks, list):
            return None
        kinds = [_member(block, "type") for block in blocks]
        if not all(isinstance(kind, str) for kind in kinds):
            return None
        parts = [
            (kind, str(_member(block, "text"))) for kind, block in zip(kinds, blocks, strict=True)
        ]
        meta = _member(result, "_meta", "meta")
        return cls(
            is_error=_member(result, "isError", "is_error") is True,
            texts=[text for kind, text in parts if kind == "text"],
            shown=[text if kind == "text" else f"<{kind}>" for kind, text in parts],
            structured=_member(result, "structuredContent", "structured_content"),
            meta=meta if isinstance(meta, Mapping) else None,
        )


def _member(value: object, *names: str) -> object:
    for name in names:
        try:
            found = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        except Exception:  # noqa: BLE001  # a foreign property may raise anything
            return None
        if found is not None:
            return found
    return None


MAX_TEXT = 600
"""Characters of a text that may be nothing but an error; a page that begins so is longer."""
MAX_LINES = 6
_BEGINS = re.compile(
    r"\s*(?:[A-Z][\w-]*(?:[ ][\w-]+){0,2}[ ])?(?:[Ee]rror|ERROR|[A-Z]\w*(?:Error|Exception))"
    r"(?:[ ][\w ]{1,40}|[ ]?\(\S{1,20}\)|[ ]?\[\S{1,20}\])?:[ ]?\S"
    r"|Traceback \(most recent call last\):"
)
_SET_OFF = re.compile(r"'([^']+)'|\"([^\"]+)\"|`([^`]+)`|: ?(\S+?)[.\s]*$")
_LEAST = 3
"""Characters of what is set off: fewer are in any text."""
_VARIES = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\S*[/\\]\S*|\d+")


class ErrorTexts:
    """Errors that a tool's text tells of although its result says that there is none.

    They are short and begin as errors do, or have the form of an error that the tool did call so
    before. What a reading tool gives may be a file or a row that begins so: there it must also set
    off something that it was sent, as errors do and what was stored before does not.
    """

    def __init__(self) -> None:
        self._known: dict[ToolKey, dict[str, None]] = {}

    def learn(self, tool: ToolKey, text: str) -> None:
        """The tool sent this as an error."""
        forms = keep(self._known, tool, self._known.get(tool) or {}, 500)
        keep(forms, _form(text), None, 50)

    def why(self, tool: ToolKey, text: str, sent: JsonObject, *, reads: bool = False) -> str | None:
        """Why the text of a success reads as an error; None where it does not.

        `sent` are the call's parameters, `reads` says whether the tool only reads.
        """
        if not 0 < len(text) <= MAX_TEXT or text.count("\n") >= MAX_LINES:
            return None
        known = self._known.get(tool)
        if known and _form(text) in known:
            return "the tool sent the like as an error before"
        begins = _BEGINS.match(text)
        if begins is None or any(isinstance(e, str) and text in e for e in sent.values()):
            return None  # nor is what the caller itself sent
        if reads:
            said = [next(filter(None, found)) for found in _SET_OFF.findall(text[begins.end() :])]
            asked = json.dumps(sent, ensure_ascii=False)
            if not any(len(each) >= _LEAST and each in asked for each in said):
                return None
        return "it begins as errors do"


def _form(text: str) -> str:
    return _VARIES.sub("*", text[:MAX_TEXT]).strip()
