"""Ways to write the same text: letter case and separators, and what may be taken off it. Pure."""

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Literal

from retrieval.identifiers import words_of
from retrieval.values import CastError, cast

MAX_TEXT = 2_000
"""Characters of a text that is respelt or stripped; a longer one is content."""

Style = Literal["lower", "upper", "title", "capital", "snake", "kebab", "camel", "pascal", "spaced"]
Mark = Literal["spaces", "quotes", "@", "#", "path", "extension", "unit"]

_PLAIN_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_EXTENSION = re.compile(r"(?<=[\w)])\.[A-Za-z][A-Za-z0-9]{0,4}\Z")


def _pascal(text: str) -> str:
    return "".join(word.capitalize() for word in words_of(text))


def _camel(text: str) -> str:
    joined = _pascal(text)
    return joined[:1].lower() + joined[1:]


_STYLES: dict[Style, Callable[[str], str]] = {
    "lower": str.lower,
    "upper": str.upper,
    "title": str.title,
    "capital": str.capitalize,
    "snake": lambda text: "_".join(words_of(text)),
    "kebab": lambda text: "-".join(words_of(text)),
    "camel": _camel,
    "pascal": _pascal,
    "spaced": lambda text: " ".join(words_of(text)),
}
_BY_WORDS: frozenset[Style] = frozenset({"snake", "kebab", "camel", "pascal", "spaced"})
_SAYABLE = re.compile(r"[\w\s-]+", re.ASCII)


def respelt(text: str, style: Style) -> str | None:
    """`text` in another letter case or with other separators; None when that would lose something.

    Only letters, digits, spaces, `_` and `-` can be said in words.
    """
    if len(text) > MAX_TEXT or (style in _BY_WORDS and not _SAYABLE.fullmatch(text)):
        return None
    return _STYLES[style](text) or None


def stripped(text: str, what: Mark) -> str | None:
    """`text` without spaces around it, its quotation marks, sign, folder, extension or unit.

    None when it has none, or when nothing would be left.
    """
    if len(text) > MAX_TEXT:
        return None
    bare = _without(text, what)
    return bare if bare and bare != text else None


def _without(text: str, what: Mark) -> str | None:
    match what:
        case "spaces":
            return text.strip()
        case "quotes":
            quoted = len(text) > 2 and text[0] == text[-1] and text[0] in "'\"`"
            return text[1:-1] if quoted else None
        case "path":
            return None if "://" in text else PurePosixPath(text.replace("\\", "/")).name
        case "extension":
            return _EXTENSION.sub("", text)
        case "unit":
            return _without_unit(text)
        case _:
            return text.removeprefix(what)


def _without_unit(text: str) -> str | None:
    """The number of `10 commits` as text; not of `5 minutes`, which may be 300 (see `values`)."""
    if _PLAIN_NUMBER.fullmatch(text.strip()):
        return None
    try:
        number = cast(text, "number")
    except CastError:
        return None
    return str(number)
