"""Errors that a tool's text tells of although its result says that there is none.

A setting names a server's own way (`errorPattern`; an empty one reads nothing so). Without one, a
short text alone that begins as errors do is read as one ("Database error: no such table"), and so
is one of the same form as an error that the tool did call so before. What a reading tool gives may
be a file or a row that begins so: there it must also set off something that it was sent, as errors
do and what was stored before does not ("... no such table: users"). The tool's words stay as they
are; what was only read so is never a reason to call again.
"""

import json
import re
from collections import OrderedDict

from aftercall.json_values import JsonObject

MAX_TEXT = 600
"""Characters of a text that may be nothing but an error; a page that begins so is longer."""
MAX_LINES = 6
_MAX_TOOLS = 500
_MAX_FORMS = 50
_BEGINS = re.compile(
    r"\s*(?:[A-Z][\w-]*(?:[ ][\w-]+){0,2}[ ])?(?:[Ee]rror|ERROR|[A-Z]\w*(?:Error|Exception))"
    r"(?:[ ][\w ]{1,40}|[ ]?\(\S{1,20}\)|[ ]?\[\S{1,20}\])?:[ ]?\S"
    r"|Traceback \(most recent call last\):"
)
_SET_OFF = re.compile(r"'([^']+)'|\"([^\"]+)\"|`([^`]+)`|: ?(\S+?)[.\s]*$")
_LEAST = 3
"""Characters of what is set off: fewer are in any text."""
_VARIES = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\S*[/\\]\S*|\d+")
ToolKey = tuple[str | None, str]
"""Server and tool."""


class ErrorTexts:
    """The forms of errors that tools sent; the latest of each tool, for the tools used last."""

    def __init__(self) -> None:
        self._known: OrderedDict[ToolKey, OrderedDict[str, None]] = OrderedDict()

    def learn(self, tool: ToolKey, text: str) -> None:
        """The tool sent this as an error."""
        forms = self._known.setdefault(tool, OrderedDict())
        self._known.move_to_end(tool)
        forms[_form(text)] = None
        if len(forms) > _MAX_FORMS:
            forms.popitem(last=False)
        if len(self._known) > _MAX_TOOLS:
            self._known.popitem(last=False)

    def why(self, tool: ToolKey, text: str, sent: JsonObject, *, reads: bool = False) -> str | None:
        """Why the text of a success reads as an error; None where it does not.

        `sent` are the call's parameters, `reads` says whether the tool only reads.
        """
        if not 0 < len(text) <= MAX_TEXT or text.count("\n") >= MAX_LINES:
            return None
        if _form(text) in self._known.get(tool, ()):
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
