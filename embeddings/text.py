"""Texts for the index: the terms of its sparse side, and what is embedded of calls and failures.

BM25 sees words. Errors and parameters speak in identifiers: `topK`, `max_results`, `rag.query`,
`/etc/hosts`. An agent that writes `top_k` for `topK` must meet the same document, so an identifier
gives its words and, as one more term, itself: `topK` and `top_k` both give `topk top k`.

The embedded texts of questions and documents share one form, so one embedding of a failed call
finds both its like successes and its like failures.
"""

import heapq
import re
from functools import lru_cache
from itertools import islice

from aftercall.json_values import JsonObject, JsonValue

MAX_CHARACTERS = 8_000
"""Characters read of a text. MiniLM's own window is 256 tokens, about 1,000 characters."""
MAX_TERMS = 512
"""Terms given for a text; a posting list per term of a dumped file would help no one."""
MAX_TERM_LENGTH = 64
"""Longer runs are hashes, keys or encoded data: no one searches for them."""
_CHUNK = re.compile(r"[^\W_]+(?:[._/:\\-]+[^\W_]+)*")
"""Word characters with joiners inside: `max_results`, `rag.query`, `well-known`, `a/b.py`."""
_PATH_JOINER = re.compile(r"[./:\\]+")
_NAME_JOINER = re.compile(r"[_-]+")
_HUMP = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z0-9]+")
"""`HTTPServer2` gives HTTP, Server2. Digits stay with their letters: `utf8`, a hash, a flight."""
_MAX_CHUNKS = 8_192
"""Short ones whose terms are kept: names and words come again and again."""
MAX_TEXT = 1200
"""Characters embedded: about the 256 tokens that all-MiniLM-L6-v2 reads."""
_MAX_VALUE = 60
_MAX_PARAMETERS = 100
"""The first by name; no more than these fit into the text anyway."""


def terms_text(text: str) -> str:
    """Return the terms of a text, lower case, separated by one space, in the order of the text.

    Repetition is kept (BM25 counts it). Punctuation is dropped. A text without a word gives `""`.
    """
    return " ".join(split_terms(text))


def split_terms(text: str) -> list[str]:
    """Return the terms of a text, lower case, in the order of the text."""
    terms: list[str] = []
    for chunk in _CHUNK.findall(text[:MAX_CHARACTERS]):
        terms += _terms_of(chunk) if len(chunk) <= MAX_TERM_LENGTH else _split_chunk(chunk)
        if len(terms) >= MAX_TERMS:
            break
    return [term for term in terms[:MAX_TERMS] if len(term) <= MAX_TERM_LENGTH]


def _split_chunk(chunk: str) -> tuple[str, ...]:
    pieces = _PATH_JOINER.split(chunk)
    terms = [chunk] if len(pieces) > 1 else []
    for piece in pieces:
        # The name without its joiners, then its words when there are several.
        parts = [part for part in _NAME_JOINER.split(piece) if part]
        words = [word for part in parts for word in _split_humps(part)]
        terms += words if len(words) <= 1 else ["".join(parts), *words]
    return tuple(term.lower() for term in terms)


_terms_of = lru_cache(_MAX_CHUNKS)(_split_chunk)


def name_words(name: str) -> str:
    """Return an identifier in lower-case words, for a model that reads prose.

    `get health workforce`.

    A text of several identifiers gives the words of all, without its punctuation.
    """
    pieces = (piece for chunk in _CHUNK.findall(name) for piece in _PATH_JOINER.split(chunk))
    parts = (part for piece in pieces for part in _NAME_JOINER.split(piece) if part)
    return " ".join(word for part in parts for word in _split_humps(part)).lower()


def _split_humps(part: str) -> list[str]:
    """Words of a camel-cased part. Humps are a habit of ASCII names; `München` is one word."""
    return _HUMP.findall(part) if part.isascii() else [part]


def call_text(tool_name: str, parameters: JsonObject, context: str | None) -> str:
    """Return a call, for nearness to other calls: tool, intent, parameters."""
    first = heapq.nsmallest(_MAX_PARAMETERS, parameters)
    shown = "; ".join(f"{name[:_MAX_VALUE]}: {_short_value(parameters[name])}" for name in first)
    intent = f" for {context[:200]}" if context else ""
    return f"{tool_name}{intent} with {shown or 'no parameters'}"[:MAX_TEXT]


def failure_text(tool_name: str | None, signature: str) -> str:
    """Return a kind of failure: tool and signature."""
    return f"{tool_name + ' ' if tool_name else ''}failed: {signature}"[:MAX_TEXT]


def question_text(
    tool_name: str, parameters: JsonObject, context: str | None, signature: str
) -> str:
    """Return a failed call, for nearness to successes and to failures alike."""
    call = call_text(tool_name, parameters, context)[: MAX_TEXT - 420]
    return f"{call} failed: {signature[:400]}"


def _short_value(value: JsonValue) -> str:
    if isinstance(value, str):
        return value[:_MAX_VALUE]
    if isinstance(value, dict):
        return "{" + ", ".join(key[:_MAX_VALUE] for key in islice(value, 8)) + "}"
    if isinstance(value, list):
        inside = ", ".join(_short_value(item) for item in value[:3])[: 3 * _MAX_VALUE]
        return f"[{inside}{', ...' if len(value) > 3 else ''}]"
    return str(value)
