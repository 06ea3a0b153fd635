"""Names of tools in what a tool says. Pure; work is bounded by the text."""

import re

from retrieval.identifiers import words_of

_WORD = re.compile(r"[\"'`]?[\w][\w.:/-]{0,255}[\"'`]?")
_NAMING = re.compile(
    r"(?:use|try|call|prefer|invoke|see)(?: the)?(?: tools?| function)? [\"'`]?"
    r"(?P<name>\w[\w.:/-]{0,255})|"
    r"(?:tool|function)s?:? [\"'`]?(?P<tool>\w[\w.:/-]{0,255})",
    re.IGNORECASE,
)


def names_said(text: str) -> list[str]:
    """Words of a text that may name a tool, in order.

    A plain word (`search`) counts only where it stands in quotation marks or as what to use;
    identifiers of several words (`http_get`) count anywhere.
    """
    said = [
        (found.start(), found[0])
        for found in _WORD.finditer(text)
        if found[0][0] in "\"'`" or len(words_of(found[0])) > 1
    ]
    for use in _NAMING.finditer(text):
        kind = "name" if use["name"] else "tool"
        said.append((use.start(kind), use[kind]))
    return [word.strip("\"'`").rstrip(".:") for _, word in sorted(said)]
