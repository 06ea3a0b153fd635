"""Errors that a tool's text tells of although its result says that there is none.

A setting names a server's own way (`errorPattern`; an empty one reads nothing so). Without one, a
short text alone that begins as errors do is read as one ("Database error: no such table"), and so
is one of the same form as an error that the tool did call so before. The tool's words stay as they
are; what was only read so is never a reason to call again.
"""

import re
from collections import OrderedDict

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

    def why(self, tool: ToolKey, text: str) -> str | None:
        """Why the text of a success reads as an error; None where it does not."""
        if not 0 < len(text) <= MAX_TEXT or text.count("\n") >= MAX_LINES:
            return None
        if _BEGINS.match(text):
            return "it begins as errors do"
        is_known = _form(text) in self._known.get(tool, ())
        return "the tool sent the like as an error before" if is_known else None


def _form(text: str) -> str:
    return _VARIES.sub("*", text[:MAX_TEXT]).strip()
