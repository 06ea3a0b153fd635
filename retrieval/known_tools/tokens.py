"""Tokens: how many a text has at most, whichever tokenizer reads it. Pure, no vocabulary.

An upper bound in practice for byte-level BPE (GPT, Llama, Qwen, ...) and WordPiece (BERT), exact
for none of them; `bench/known_tools.py` holds it against the bundled model's WordPiece. The rule:

- A word of the short list below counts 1 where it stands alone: it is in every vocabulary.
- Other words are cut where the letter case changes, and each part of n letters counts
  (n + 1) / 3, rounded up; 4 n / 5 where it is all capitals, cannot be spoken or is very long, and
  n where it is one letter or two.
- Each digit, each mark of ASCII, each line break and each space before a digit or space counts 1;
  other spaces go with the word behind them.
- Each other character counts its UTF-8 bytes, which is what byte-level BPE falls back to; the few
  typographic marks that every vocabulary has count 1.

Where words end, so does what is counted: the estimate of texts that are put together at a line
break or mark is the sum of their estimates.
"""

import re
from functools import lru_cache
from math import ceil

COMMON_WORDS = frozenset(
    (
        "a", "about", "above", "actions", "after", "again", "age", "agent", "all", "also",
        "an", "and", "any", "are", "array", "as", "ask", "at", "available", "be", "before",
        "best", "block", "body", "book", "both", "bound", "boundary", "branch", "break",
        "breaks", "bug", "build", "but", "by", "call", "called", "calls", "can", "case",
        "change", "changes", "channel", "city", "class", "clear", "close", "code", "color",
        "comment", "common", "content", "context", "contract", "copy", "cost", "count",
        "country", "create", "created", "currency", "current", "data", "database", "date",
        "day", "days", "default", "description", "directory", "do", "document", "documents",
        "domain", "down", "each", "edit", "else", "end", "error", "event", "events",
        "example", "expected", "fail", "failed", "fails", "false", "field", "fields",
        "file", "files", "filter", "find", "first", "flight", "for", "format", "found",
        "from", "get", "given", "go", "group", "health", "here", "high", "history", "hotel",
        "hour", "hours", "id", "if", "image", "in", "index", "information", "input",
        "instead", "integer", "is", "issue", "issues", "it", "its", "item", "items", "job",
        "key", "kind", "know", "known", "label", "language", "last", "lately", "later",
        "least", "left", "length", "less", "level", "limit", "line", "link", "list",
        "little", "load", "local", "location", "lock", "log", "long", "look", "lower",
        "main", "make", "many", "map", "market", "match", "max", "maximum", "may", "memory",
        "merge", "message", "messages", "method", "methods", "min", "minimum", "minutes",
        "missing", "mode", "model", "month", "more", "most", "move", "must", "name",
        "names", "near", "never", "new", "next", "night", "no", "none", "not", "note",
        "notes", "now", "null", "number", "object", "of", "off", "office", "often", "on",
        "one", "only", "open", "option", "optional", "options", "or", "order", "other",
        "others", "out", "output", "over", "own", "page", "pages", "parent", "part",
        "parts", "path", "pattern", "pay", "payment", "people", "place", "places", "plan",
        "play", "point", "port", "position", "post", "press", "price", "process", "project",
        "pull", "query", "quote", "range", "rate", "read", "reason", "record", "recorded",
        "records", "red", "release", "remove", "repair", "report", "reported", "request",
        "required", "result", "results", "return", "room", "route", "row", "rule", "run",
        "safe", "same", "sample", "save", "schedule", "score", "search", "second",
        "seconds", "section", "see", "send", "sent", "server", "service", "set", "short",
        "show", "sign", "since", "site", "size", "small", "some", "sort", "source", "split",
        "start", "state", "status", "step", "stock", "stop", "store", "string", "success",
        "sum", "system", "table", "take", "target", "task", "team", "test", "text", "that",
        "the", "then", "thing", "this", "tickets", "time", "times", "title", "to", "token",
        "told", "tool", "tools", "top", "total", "track", "translation", "true", "try",
        "type", "unit", "until", "up", "update", "use", "used", "user", "users", "using",
        "utility", "value", "values", "version", "view", "wait", "was", "way", "weather",
        "web", "week", "weeks", "what", "when", "where", "which", "while", "who", "why",
        "with", "within", "word", "words", "work", "worked", "works", "write", "year",
        "years",
    )
)  # fmt: skip
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


def estimate_tokens(text: str) -> int:
    """How many tokens a text has at most, in practice; 0 for an empty one."""
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
