"""Text to terms for the sparse side of the index: identifiers split, yet kept whole.

BM25 sees words. Errors and parameters speak in identifiers: `topK`, `max_results`, `rag.query`,
`/etc/hosts`. An agent that writes `top_k` for `topK` must meet the same document, so an identifier
gives its words and, as one more term, itself: `topK` and `top_k` both give `topk top k`.
"""

import re

MAX_CHARACTERS = 8_000
"""Characters read of a text. MiniLM's own window is 256 tokens, about 1,000 characters."""

MAX_TERMS = 512
"""Terms given for a text; a posting list per term of a dumped file would help nobody."""

MAX_TERM_LENGTH = 64
"""Longer runs are hashes, keys or encoded data: no one searches for them."""

_CHUNK = re.compile(r"[^\W_]+(?:[._/:\\-]+[^\W_]+)*")
"""Word characters with joiners inside: `max_results`, `rag.query`, `well-known`, `a/b.py`."""

_PATH_JOINER = re.compile(r"[./:\\]+")
_NAME_JOINER = re.compile(r"[_-]+")
_HUMP = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z0-9]+")
"""`HTTPServer2` gives HTTP, Server2. Digits stay with their letters: `utf8`, a hash, a flight."""


def terms_text(text: str) -> str:
    """The terms of a text, lower case, separated by one space, in the order of the text.

    Repetition is kept (BM25 counts it). Punctuation is dropped. A text without a word gives `""`.
    """
    terms: list[str] = []
    for chunk in _CHUNK.findall(text[:MAX_CHARACTERS]):
        pieces = _PATH_JOINER.split(chunk)
        if len(pieces) > 1:
            terms.append(chunk)
        for piece in pieces:
            terms.extend(_name_terms(piece))
        if len(terms) >= MAX_TERMS:
            break
    kept = (term.lower() for term in terms[:MAX_TERMS] if len(term) <= MAX_TERM_LENGTH)
    return " ".join(kept)


def name_words(name: str) -> str:
    """An identifier in lower-case words, for a model that reads prose: `get health workforce`.

    A text of several identifiers gives the words of all, without its punctuation.
    """
    pieces = (piece for chunk in _CHUNK.findall(name) for piece in _PATH_JOINER.split(chunk))
    parts = (part for piece in pieces for part in _NAME_JOINER.split(piece) if part)
    return " ".join(word for part in parts for word in _split_humps(part)).lower()


def _name_terms(name: str) -> list[str]:
    """A name's terms: the name without its joiners, then its words when there are several."""
    parts = [part for part in _NAME_JOINER.split(name) if part]
    words = [word for part in parts for word in _split_humps(part)]
    return words if len(words) <= 1 else ["".join(parts), *words]


def _split_humps(part: str) -> list[str]:
    """Words of a camel-cased part. Humps are a habit of ASCII names; `München` is one word."""
    return _HUMP.findall(part) if part.isascii() else [part]
