"""Error texts of a tool, so that an error that nothing marks is known; and names of MCP tools."""

import json
import re

from aftercall.json_values import JsonObject, bounded_name
from aftercall.tables import keep_latest

ToolKey = tuple[str | None, str]
"""Server name and tool name."""
_CLIENTS_NAME = re.compile(r"mcp__(.+?)__(.+)", re.DOTALL)
MAX_TEXT = 600
"""Characters of a text that may be nothing but an error; a page that begins so is longer."""
MAX_LINES = 6
_BEGINS = re.compile(
    r"\s*(?:[A-Z][\w-]*(?:[ ][\w-]+){0,2}[ ])?(?:[Ee]rror|ERROR|[A-Z]\w*(?:Error|Exception))"
    r"(?:[ ][\w ]{1,40}|[ ]?\(\S{1,20}\)|[ ]?\[\S{1,20}\])?:[ ]?\S"
    r"|Traceback \(most recent call last\):"
)
_OF_SERVERS = re.compile(
    r"\s*(?:Error (?:executing|calling) tool ['\"]?[\w./:-]{1,128}['\"]?|MCP error -?\d{1,6}): ?\S"
)
"""How SDKs of MCP put an exception of a tool into its text."""
_SET_OFF = re.compile(r"'([^']+)'|\"([^\"]+)\"|`([^`]+)`|: ?(\S+?)[.\s]*$")
_LEAST = 3
"""Characters of what is set off: fewer are in any text."""
_VARIES = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\S*[/\\]\S*|\d+")


def split_name(tool: str) -> tuple[str | None, str]:
    """Server and tool of a name as clients show it to their model: `mcp__server__tool`."""
    found = _CLIENTS_NAME.fullmatch(tool)
    return (found[1], found[2]) if found else (None, tool)


def name_or_none(value: object) -> str | None:
    """Return a name that the contract takes, of whatever a client sent.

    None for nothing of the kind.
    """
    return bounded_name(value) if isinstance(value, str) else None


class ErrorTexts:
    """Errors that a tool's text shows although its result states success.

    They are short and begin as errors do, or have the form of an error that the tool did call so
    before. The result of a reading tool may be a file or a row that begins so: there it must also
    set off something that it was sent, as errors do and what was stored before does not.
    """

    def __init__(self) -> None:
        self._known: dict[ToolKey, dict[str, None]] = {}

    def learn_error(self, tool: ToolKey, text: str) -> None:
        """Note that the tool sent this as an error."""
        forms = keep_latest(self._known, tool, self._known.get(tool) or {}, 500)
        keep_latest(forms, _text_form(text), None, 50)

    def explain_success(
        self, tool: ToolKey, text: str, sent: JsonObject, *, reads: bool = False
    ) -> str | None:
        """Why the text of a success reads as an error; None where it does not.

        `sent` are the call's parameters, `reads` states whether the tool only reads.
        """
        if not 0 < len(text) <= MAX_TEXT or text.count("\n") >= MAX_LINES:
            return None
        known = self._known.get(tool)
        if known and _text_form(text) in known:
            return "the tool sent the like as an error before"
        if _OF_SERVERS.match(text) and not any(text == value for value in sent.values()):
            return "it begins as errors do"
        begins = _BEGINS.match(text)
        if begins is None or any(isinstance(e, str) and text in e for e in sent.values()):
            return None  # nor is what the caller itself sent
        if reads:
            said = [next(filter(None, found)) for found in _SET_OFF.findall(text[begins.end() :])]
            asked = json.dumps(sent, ensure_ascii=False)
            if not any(len(each) >= _LEAST and each in asked for each in said):
                return None
        return "it begins as errors do"


def _text_form(text: str) -> str:
    return _VARIES.sub("*", text[:MAX_TEXT]).strip()
