"""The words of a message as terms: what an embedding blurs and a category hangs on."""

from collections.abc import Iterator
from itertools import pairwise


def terms_of(text: str) -> set[str]:
    """Words, pairs of neighbours, and beginnings and ends of longer words.

    Args:
        text: plain words with single spaces between them, as `text_of` makes them.
    """
    return set(_terms(text.split()))


def _terms(words: list[str]) -> Iterator[str]:
    yield from words
    yield from map(" ".join, pairwise(words))
    for word in words:
        if len(word) > 4:
            yield f"{word[:4]}-"
        if len(word) > 5:
            yield f"-{word[-4:]}"
        if len(word) > 6:
            yield f"{word[:6]}-"
