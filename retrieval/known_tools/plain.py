"""Plain text: what others said, as one line of visible characters; and how it is escaped. Pure."""

import re
from collections.abc import Callable
from xml.sax.saxutils import escape, quoteattr

Clean = Callable[[str], str]
"""Masks secrets in a text, such as `Redactor.text`."""

_READ = 2_000
"""Characters that are looked at of any text, so that none keeps the others waiting."""

_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Characters that are letters or marks by their category and show nothing."""

_MOST_DIGITS = 1e15
"""From here on floats do not tell neighbouring whole numbers apart."""

_MASK = re.compile(r"<(?:v|n|url|email|id|date|path|hex)>")
_BARE = re.compile(r"[A-Za-z_$][\w$.-]{0,63}", re.ASCII)
_MARKDOWN = re.compile(r"[\\`*_\[\]#|~!$]")


def plain(text: str, limit: int, clean: Clean) -> str:
    """One line of visible characters without secrets, at most `limit` of them, perhaps cut by `…`.

    Control characters, zero-width ones, changes of direction and whatever else cannot be seen go
    first, so that a secret is not put together from its parts after it was looked for.
    """
    visible = _visible(text[:_READ])
    folded = " ".join(clean(visible).split())
    return folded if len(folded) <= limit else folded[: limit - 1].rstrip() + "…"


def without_masks(signature: str) -> str:
    """A signature with `…` for each part that varies, as `retrieval.reading.signature` masks it."""
    return _MASK.sub("…", signature)


def _visible(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(char) for char in text)


def _shown(char: str) -> str:
    if char.isspace():
        return " "
    selects = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
    return char if char.isprintable() and char not in _BLANKS and not selects else ""


def number(value: float) -> str:
    """A number as people write it: `100`, `0.25`, `1e+20`."""
    whole = value.is_integer() and abs(value) < _MOST_DIGITS
    return str(int(value)) if whole else f"{value:.6g}"


def is_bare(name: str) -> bool:
    """Whether a name is a plain identifier, which needs no quotation marks."""
    return _BARE.fullmatch(name) is not None


def named(name: str) -> str:
    """A name that stands in running text: as it is, or in quotation marks."""
    return name if is_bare(name) else in_quotes(name)


def in_quotes(text: str) -> str:
    """A text in quotation marks that it cannot end itself."""
    return '"' + text.replace('"', "'") + '"'


def xml_text(text: str) -> str:
    """The content of an XML element; no tag begins or ends in it."""
    return escape(text)


def xml_attribute(text: str) -> str:
    """The value of an XML attribute, with its quotation marks."""
    return quoteattr(text)


def markdown_text(text: str) -> str:
    """The same text in Markdown: no HTML, no link, no heading, no code, no emphasis comes of it.

    Addresses are broken up, as many renderers make links of bare ones. It must not begin a line.
    """
    broken = text.replace("://", ": //").replace("@", " (at) ")
    broken = re.sub(r"(?i)\bwww\.", "www .", broken)
    return _MARKDOWN.sub(r"\\\g<0>", escape(broken))
