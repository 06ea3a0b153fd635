"""Axes as they are compared: a tool's words without case, spacing, style and plural. Pure."""

import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

from aftercall.models import MAX_AXES, MAX_AXIS_CHARS

_MAX_READ = 4 * MAX_AXIS_CHARS
"""Characters read of one axis: a referral's own are shorter, and a dumped file names nothing."""
_MAX_LISTED = 50 * MAX_AXES
"""Axes looked at for the first `MAX_AXES` different ones."""
_FILLER = frozenset({"an", "the", "of", "for", "and", "or", "any", "some", "capability", "etc"})
"""Words that tell no two axes apart. `a` is none: `A/B testing`, `vitamin A`."""
_SPELLED_APART = {
    ("e", "mail"): "email", ("wi", "fi"): "wifi", ("git", "hub"): "github",
    ("git", "lab"): "gitlab", ("java", "script"): "javascript", ("type", "script"): "typescript",
    ("you", "tube"): "youtube", ("pay", "pal"): "paypal", ("o", "auth"): "oauth",
    ("graph", "ql"): "graphql", ("mongo", "db"): "mongodb", ("postgre", "sql"): "postgresql",
    ("web", "hook"): "webhook", ("data", "base"): "database", ("time", "zone"): "timezone",
}  # fmt: skip
"""Words that humps or hyphens take apart in one spelling and that are written as one in another."""
_IRREGULAR = {
    "analyses": "analysis", "axes": "axis", "children": "child", "indices": "index",
    "matrices": "matrix", "men": "man", "people": "person", "statuses": "status",
    "vertices": "vertex", "viruses": "virus", "women": "woman", "movies": "movie",
    "cookies": "cookie", "calories": "calorie", "lens": "lens", "lenses": "lens",
    "metrics": "metric", "topics": "topic", "comics": "comic", "clinics": "clinic",
}  # fmt: skip
_NO_PLURAL = frozenset(
    ("alias", "always", "atlas", "aws", "bias", "canvas", "chaos", "devops", "dns", "gps", "https",
     "ios", "kubernetes", "macos", "news", "rss", "series", "sms", "species", "tls")
)  # fmt: skip
"""Words whose final s is their own, beside those in ss, us, is and ics."""
_SHORTEST_PLURAL = 4
"""Letters from which on a final s is taken for a plural: `gas`, `bus` and `as` are none."""
_LONGEST_TIE = 4
"""Letters up to which `ies` is the plural of `ie`: `ties`, `pies`."""


def normalised_axes(axes: Iterable[str]) -> dict[str, str]:
    """The axes of one referral, by their normalised form, each as it was spelled first.

    In the order given, at most `MAX_AXES`; those of which nothing is left are left out.
    """
    found: dict[str, str] = {}
    for looked_at, axis in enumerate(axes):
        if looked_at == _MAX_LISTED or len(found) == MAX_AXES:
            break
        if normalised := normalise_axis(axis):
            found.setdefault(normalised, axis)
    return found


def normalise_axis(text: str) -> str:
    """An axis as it is compared: `HTMLParsing`, `html-parsing` and `HTML parsings` are one.

    Case, Unicode's compatibility forms, identifiers' humps and joiners, punctuation, the plural of
    English nouns and words that say nothing make no difference. Letters of any script and emoji
    stay. Idempotent.

    Returns:
        Words with one space between them, at most `MAX_AXIS_CHARS` characters; "" when nothing is
        left.
    """
    return _normalised(text[:_MAX_READ])


@lru_cache(maxsize=4_096)
def _normalised(text: str) -> str:
    apart = "".join(_humps_apart(_without_marks(text)))
    words = [singular(word[:MAX_AXIS_CHARS]) for word in _words(_folded(apart))]
    telling = [word for word in words if word not in _FILLER]
    return " ".join(_within_bound(_joined(telling or words)))


def _without_marks(text: str) -> str:
    """Without what only says how to draw a character, as it stands before it is composed anew."""
    kept = (char for char in text if not _is_drawing(char))
    return unicodedata.normalize("NFKC", "".join(kept))


def _is_drawing(char: str) -> bool:
    """Joiners, directions, soft hyphens; and what picks a picture for an emoji."""
    return unicodedata.category(char) == "Cf" or "\ufe00" <= char <= "\ufe0f"


def _folded(text: str) -> str:
    return _without_marks(text.casefold())


def _humps_apart(text: str) -> Iterator[str]:
    """The characters, with a space before each hump: `topK`, `HTMLParsing`, not `URLs`."""
    for place, char in enumerate(text):
        if place and _is_upper(char):
            before, after = text[place - 1], text[place + 1 : place + 2]
            ends_acronym = _is_upper(before) or before.isdigit()
            starts_word = _is_lower(after) and not _is_plural_s(text, place + 1)
            if _is_lower(before) or (ends_acronym and starts_word):
                yield " "
        yield char


def _is_upper(char: str) -> bool:
    """Whether folding makes it another letter, so that there is none in folded text."""
    return char.lower() != char and char.casefold() != char


def _is_lower(char: str) -> bool:
    return char.islower() and not _is_upper(char)


def _is_plural_s(text: str, place: int) -> bool:
    """Whether the letter is the s of an acronym's plural: `URLs`, `PDFsOfMine`."""
    return text[place] == "s" and not _is_lower(text[place + 1 : place + 2])


def _words(text: str) -> list[str]:
    return "".join(char if _is_of_a_word(char) else " " for char in text).split()


def _is_of_a_word(char: str) -> bool:
    """Letters and digits of any script with their marks, and pictures such as emoji."""
    category = unicodedata.category(char)
    return category[0] in "LMN" or category == "So"


def singular(word: str) -> str:
    """A word without the plural of English nouns, as far as its spelling tells."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    shorter = _without_plural(word)
    return word if shorter == word else singular(shorter)


def _without_plural(word: str) -> str:
    if not (word.endswith("s") and word.isascii() and word.isalnum()):
        return word
    if len(word) < _SHORTEST_PLURAL or word in _NO_PLURAL or not word[-2].isalpha():
        return word
    if word.endswith(("ss", "us", "is", "ics")):
        return word
    if word.endswith("ies"):
        return word[:-1] if len(word) <= _LONGEST_TIE else f"{word[:-3]}y"
    if word.endswith(("ches", "shes", "sses", "xes", "zzes")):
        return word[:-2]
    return word[:-1]


def _joined(words: list[str]) -> list[str]:
    joined: list[str] = []
    for word in words:
        whole = _SPELLED_APART.get((joined[-1], word)) if joined else None
        if whole:
            joined[-1] = whole
        else:
            joined.append(word)
    return joined


def _within_bound(words: list[str]) -> Iterator[str]:
    length = -1
    for word in words:
        length += 1 + len(word)
        if length > MAX_AXIS_CHARS:
            return
        yield word
