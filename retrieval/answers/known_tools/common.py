"""Common knowledge: what of a tool's calls may be shown to everyone (4-rules.md, Suggesting).

The measures are those of `proposers` and `retrieval.knowledge`, without an asker: there a
value may also travel because the asker stated it already, here no one has.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from math import ceil
from xml.sax.saxutils import escape

from aftercall.json_values import JsonValue, canonical_json
from retrieval.knowledge.tool.record import ToolRecord, is_common_name
from retrieval.knowledge.values.parameters import ParameterView
from retrieval.knowledge.values.scalars import write_number

# What others stated, as one line of visible characters; how it is escaped, and its tokens.

Clean = Callable[[str], str]
"""Masks secrets in a text, such as `Redactor.text`."""
_READ = 2_000
"""Characters that are looked at of any text, so that none keeps the others waiting."""
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Characters that are letters or marks by their category and show nothing."""
_MASK = re.compile(r"<(?:v|n|url|email|id|date|path|hex)>")
_OF_SOMEBODY = re.compile(
    r"\b(?![A-Z]{1,6}[-_]?\d+\b)(?=[\w-]*[A-Za-z])(?=[\w-]*\d{3})[\w-]{6,80}(?:[@.][\w.-]{1,80})?"
)
_BARE = re.compile(r"[A-Za-z_$][\w$.-]{0,63}", re.ASCII)
_MARKDOWN = re.compile(r"[\\`*_\[\]#|~!$]")
COMMON_WORDS = frozenset(
    files("retrieval.answers.known_tools")
    .joinpath("common_words.txt")
    .read_text(encoding="utf-8")
    .split()
)
"""Words of our own sentences and of tools' parameters that are one token in MiniLM's vocabulary
(`bench/known_tools.py` checks each) and, being this common, in the others'."""
_TYPOGRAPHIC = frozenset("\u2026\u2013\u2014\u2018\u2019\u201c\u201d\u2022\u2192\u00b0\u00a3\u20ac")
"""The ellipsis, dashes, quotation marks, the bullet, an arrow, and signs of degree and money."""
_UNSPOKEN = re.compile(r"[bcdfghjklmnpqrstvwxz]{4}", re.IGNORECASE)
_LONG = 20
"""Letters; longer parts are no words of any language that vocabularies know."""
_EACH = 2
"""Letters; parts as short as that may be rare pairs, and the common ones are in the list."""
_PIECES = re.compile(
    r"(?P<word>[A-Za-z0-9]+)|(?P<other>[^\sA-Za-z0-9])|(?P<space>\n| (?=[0-9 ])|[^\S\n ])"
)
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]")


def visible_line(text: str, limit: int, clean: Clean) -> str:
    """Return one line of at most `limit` visible characters, without secrets.

    Control characters, zero-width ones, changes of direction and whatever else cannot be seen go
    first, so that a secret is not put together from its parts after it was looked for.
    """
    read = text[:_READ]
    is_plain = read.isascii() and read.isprintable()
    folded = " ".join(clean(read if is_plain else "".join(map(_show_character, read))).split())
    if len(folded) <= limit:
        return folded
    return folded[: limit - 1].rstrip() + "…"


def without_masks(signature: str) -> str:
    """Return a signature with `…` for each part that varies, as `reading.reader` masks it.

    A number of a caller's thing that stands bare in it goes too; a code such as E11000 stays.
    """
    return _OF_SOMEBODY.sub("…", _MASK.sub("…", signature))


def _show_character(char: str) -> str:
    if char.isspace():
        return " "
    selects = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
    if char.isprintable() and char not in _BLANKS and not selects:
        return char
    return ""


def quote_name(name: str) -> str:
    """Return a name that stands in running text: as it is, or in quotation marks."""
    if _BARE.fullmatch(name):
        return name
    return in_quotes(name)


def in_quotes(text: str) -> str:
    """Return a text in quotation marks that it cannot end itself."""
    return '"' + text.replace('"', "'") + '"'


def markdown_text(text: str) -> str:
    """Return the same text in Markdown.

    No HTML, no link, no heading, no code, no emphasis comes of it.

    Addresses are broken up, as many renderers make links of bare ones. It must not begin a line.
    """
    broken = text.replace("://", ": //").replace("@", " (at) ")
    return _MARKDOWN.sub(r"\\\g<0>", escape(re.sub(r"(?i)\bwww\.", "www .", broken)))


def estimate_tokens(text: str) -> int:
    """Return how many tokens a text has at most, whichever tokenizer reads it; 0 for an empty one.

    An upper bound in practice for byte-level BPE (GPT, Llama, Qwen, ...) and WordPiece (BERT),
    exact for none of them; `bench/known_tools.py` holds it against the bundled model's WordPiece. A
    word of `COMMON_WORDS` counts 1; others are cut where the letter case changes, and their parts
    count as `_of_part` states. Each digit, mark of ASCII, line break and space before a digit or
    space counts 1, each other character its UTF-8 bytes, which byte-level BPE falls back to. Where
    words end, so does what is counted: the estimate of texts that are put together at a line break
    or mark is the sum of their estimates.
    """
    total = 0
    for piece in _PIECES.finditer(text):
        said = piece[0]
        is_word = piece.lastgroup == "word"
        is_one = piece.lastgroup == "space" or said.isascii() or said in _TYPOGRAPHIC
        rare = 1 if is_one else len(said.encode("utf-8", "replace"))
        total += _of_word(said) if is_word else rare
    return total


@lru_cache(maxsize=8_192)
def _of_word(word: str) -> int:
    if word in COMMON_WORDS or (word.istitle() and word.lower() in COMMON_WORDS):
        return 1
    return sum(_of_part(part) for part in _PARTS.findall(word))


def _of_part(part: str) -> int:
    length = len(part)
    if length <= _EACH:
        return length
    if part.isupper() or length > _LONG or _UNSPOKEN.search(part):
        return ceil(4 * length / 5)
    return ceil((length + 1) / 3)


def count_times(count: int) -> str:
    """`once`, `12 times`."""
    if count == 1:
        return "once"
    return f"{count} times"


def show_percent(share: float) -> str:
    """`92%`; 100% and 0% only where it is exactly that."""
    least = 1 if share > 0 else 0
    most = 99 if share < 1 else 100
    return f"{min(most, max(least, round(100 * share)))}%"


_MAX_SHOWN = 16
"""Parameters that are shown one by one; required ones come first."""
_MAX_ALLOWED = 8
_MAX_NAME = 64
_MAX_VALUE = 30


@dataclass(frozen=True, slots=True)
class Signature:
    """A tool's parameters, unescaped: in full, or the required ones' names; `(?)` where unknown."""

    short: str
    full: str


UNKNOWN = Signature("(?)", "(?)")


def signature_of_tool(record: ToolRecord, clean: Clean) -> Signature:
    """Return the signature of a tool. An optional parameter has a `?` behind its name."""
    views = _common_views(record)
    if views is None:
        return UNKNOWN
    required = [each for each in views if each.required]
    optional = [each for each in views if not each.required]
    names = [_quote_parameter(each, clean) for each in required[:_MAX_SHOWN]]
    left = len(required) - len(names)
    if left:
        names.append(f"{left} more")
    if len(optional) == 1 and not left:
        names.append(f"{_quote_parameter(optional[0], clean)}?")
    elif optional:
        names.append(f"{len(optional)} optional")
    told = [_describe_parameter(each, clean) for each in [*required, *optional][:_MAX_SHOWN]]
    if len(views) > _MAX_SHOWN:
        told.append(f"{len(views) - _MAX_SHOWN} more")
    short = f"({', '.join(names)})"
    full = f"({', '.join(told)})"
    return Signature(min(full, short, key=estimate_tokens), full)


def _common_views(record: ToolRecord) -> Sequence[ParameterView] | None:
    view = record.schema_view()
    if view is not None:
        return list(view.parameters.values())
    profile = record.profile.without_strangers() if record.profile is not None else None
    if profile is None or not profile.successes:
        return None
    common = [
        each
        for name, each in sorted(profile.make_view().parameters.items())
        if is_common_name(profile.parameters[name], profile)
    ]
    if common or not profile.parameters:
        return common
    return None


def _quote_parameter(view: ParameterView, clean: Clean) -> str:
    return quote_name(visible_line(view.name, _MAX_NAME, clean))


def _describe_parameter(view: ParameterView, clean: Clean) -> str:
    items = view.item_types[:1]
    types = [f"{items[0]}[]" if each == "array" and items else each for each in view.types]
    what = " ".join(filter(None, ("|".join(types), _show_bounds(view.minimum, view.maximum))))
    if view.allowed:
        shown = [_show_value(each, clean) for each in view.allowed[:_MAX_ALLOWED]]
        left = len(view.allowed) - len(shown)
        what = "|".join([*shown, *([f"{left} more"] if left else [])])
    name = _quote_parameter(view, clean) + ("" if view.required else "?")
    if what:
        return f"{name}: {what}"
    return name


def _show_bounds(low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return ""
    if low is None or high is None:
        if low is not None:
            return f"from {write_number(low)}"
        return f"up to {write_number(high or 0)}"
    return f"{write_number(low)}..{write_number(high)}"


def _show_value(value: JsonValue, clean: Clean) -> str:
    is_text = isinstance(value, str)
    shown = visible_line(str(value) if is_text else canonical_json(value), _MAX_VALUE, clean)
    if is_text:
        return in_quotes(shown)
    return shown
