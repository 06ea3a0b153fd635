"""What others said, as one line of visible characters; how it is escaped, and its tokens. Pure."""

import re
from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files
from math import ceil
from xml.sax.saxutils import escape

Clean = Callable[[str], str]
"""Masks secrets in a text, such as `Redactor.text`."""
_READ = 2_000
"""Characters that are looked at of any text, so that none keeps the others waiting."""
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Characters that are letters or marks by their category and show nothing."""
_MASK = re.compile(r"<(?:v|n|url|email|id|date|path|hex)>")
_BARE = re.compile(r"[A-Za-z_$][\w$.-]{0,63}", re.ASCII)
_MARKDOWN = re.compile(r"[\\`*_\[\]#|~!$]")
COMMON_WORDS = frozenset(
    files("retrieval.known_tools").joinpath("common_words.txt").read_text(encoding="utf-8").split()
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


def plain(text: str, limit: int, clean: Clean) -> str:
    """One line of visible characters without secrets, at most `limit` of them, perhaps cut by `…`.

    Control characters, zero-width ones, changes of direction and whatever else cannot be seen go
    first, so that a secret is not put together from its parts after it was looked for.
    """
    visible = _visible(text[:_READ])
    folded = " ".join(clean(visible).split())
    return folded if len(folded) <= limit else folded[: limit - 1].rstrip() + "…"


def without_masks(signature: str) -> str:
    """A signature with `…` for each part that varies, as `retrieval.reading.reader` masks it."""
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


def named(name: str) -> str:
    """A name that stands in running text: as it is, or in quotation marks."""
    return name if _BARE.fullmatch(name) else in_quotes(name)


def in_quotes(text: str) -> str:
    """A text in quotation marks that it cannot end itself."""
    return '"' + text.replace('"', "'") + '"'


def markdown_text(text: str) -> str:
    """The same text in Markdown: no HTML, no link, no heading, no code, no emphasis comes of it.

    Addresses are broken up, as many renderers make links of bare ones. It must not begin a line.
    """
    broken = text.replace("://", ": //").replace("@", " (at) ")
    broken = re.sub(r"(?i)\bwww\.", "www .", broken)
    return _MARKDOWN.sub(r"\\\g<0>", escape(broken))


def estimate_tokens(text: str) -> int:
    """How many tokens a text has at most, whichever tokenizer reads it; 0 for an empty one.

    An upper bound in practice for byte-level BPE (GPT, Llama, Qwen, ...) and WordPiece (BERT),
    exact for none of them; `bench/known_tools.py` holds it against the bundled model's WordPiece:

    - A word of `COMMON_WORDS` counts 1 where it stands alone: it is in every vocabulary.
    - Other words are cut where the letter case changes, and each part of n letters counts
      (n + 1) / 3, rounded up; 4 n / 5 where it is all capitals, cannot be spoken or is very long,
      and n where it is one letter or two.
    - Each digit, each mark of ASCII, each line break and each space before a digit or space counts
      1; other spaces go with the word behind them.
    - Each other character counts its UTF-8 bytes, which is what byte-level BPE falls back to; the
      few typographic marks that every vocabulary has count 1.

    Where words end, so does what is counted: the estimate of texts that are put together at a line
    break or mark is the sum of their estimates.
    """
    total = 0
    for piece in _PIECES.finditer(text):
        if piece.lastgroup == "word":
            total += _of_word(piece[0])
        elif piece.lastgroup == "other":
            char = piece[0]
            total += (
                1
                if char.isascii() or char in _TYPOGRAPHIC
                else len(char.encode("utf-8", "replace"))
            )
        else:
            total += 1
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


def times(count: int) -> str:
    """`once`, `12 times`."""
    return "once" if count == 1 else f"{count} times"


def percent(share: float) -> str:
    """`92%`; 100% and 0% only where it is exactly that."""
    rounded = round(100 * share)
    if rounded == 100 and share < 1:
        rounded = 99
    if rounded == 0 and share > 0:
        rounded = 1
    return f"{rounded}%"


def duration(seconds: float) -> str:
    """`0.5 s`, `90 s`, `12 min`, `3 h`: two digits that matter."""
    for size, unit in ((3_600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{_rounded(seconds / size)} {unit}"
    return f"{_rounded(max(seconds, 0.1))} s"


def _rounded(amount: float) -> str:
    return f"{amount:.0f}" if amount >= 10 else f"{amount:.2g}"
