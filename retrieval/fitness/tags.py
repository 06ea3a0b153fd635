"""Negative tags: what a tool is not to be offered for, such as `not-for-code-blocks` (seed 002)."""

import re
from collections.abc import Iterable
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+")
_PREFIX = ("not", "for")
_SHORTEST = 4
"""Letters from which on a final s is taken for a plural: `gas`, `bus` and `as` are none."""


def exclusion(
    negative_tags: Iterable[str], requested_tags: Iterable[str], scenario: str
) -> str | None:
    """Why a tool is not offered, in words; None when no negative tag speaks against it.

    A tag `not-for-x-y` excludes when `x-y` is requested, or when the scenario says the words `x y`
    one after the other. Case, separators and plain English plurals make no difference. A tag that
    does not begin with `not-for-` is taken for what the tool is not for.
    """
    requested = {_words(tag): tag for tag in requested_tags}
    said = _words(scenario)
    for tag in negative_tags:
        topic = _topic(tag)
        if not topic:
            continue
        if topic in requested:
            return f"it has the tag {tag!r} and {requested[topic]!r} was asked for"
        if _says(said, topic):
            return f"it has the tag {tag!r} and the scenario says {' '.join(topic)!r}"
    return None


def _topic(tag: str) -> tuple[str, ...]:
    words = _words(tag)
    return words[len(_PREFIX) :] if words[: len(_PREFIX)] == _PREFIX else words


def _says(said: tuple[str, ...], topic: tuple[str, ...]) -> bool:
    starts = range(len(said) - len(topic) + 1)
    return any(said[start : start + len(topic)] == topic for start in starts)


@lru_cache(maxsize=4_096)
def _words(text: str) -> tuple[str, ...]:
    return tuple(_singular(word) for word in _WORD.findall(text.casefold()))


def _singular(word: str) -> str:
    """A word without the plural of English nouns, as far as its spelling tells."""
    if len(word) < _SHORTEST or word.endswith(("ss", "us", "is")) or not word.endswith("s"):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1]
