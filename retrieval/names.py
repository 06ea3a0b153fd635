"""Names of parameters: their words, and whether two of them mean the same."""

import re

from rapidfuzz.distance import DamerauLevenshtein, JaroWinkler


def words_of(name: str) -> tuple[str, ...]:
    """The words of an identifier: `sourceTimeZone` and `source_time_zone` give the same."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return tuple(re.findall(r"[a-z0-9]+", spaced.lower()))


_MAX_NAME = 80
# Words that say which side, which end, which aspect of a thing is meant. In one name only, or with
# another of them in the other name, they make two parameters of two that look like one.
_ASPECTS = frozenset(
    (
        "min", "max", "minimum", "maximum", "from", "to", "start", "end", "begin", "first", "last",
        "before", "after", "since", "until", "source", "target", "src", "dst", "dest", "origin",
        "destination", "old", "new", "sender", "receiver", "recipient", "left", "right", "include",
        "exclude", "enable", "disable", "not", "no", "is", "has", "size", "count", "number",
        "total",
        "type", "kind", "format", "name", "title", "status", "state", "index", "offset", "order",
        "by", "only", "all", "body", "text", "html", "date", "time", "zone", "timezone", "lat",
        "lon", "lng", "latitude", "longitude", "width", "height", "follower", "following", "parent",
        "child", "author", "owner", "created", "updated", "cc", "bcc", "hour", "hours", "minute",
        "minutes", "second", "seconds", "day", "days",
    )
)  # fmt: skip
# ... unless such a word stands for the whole: `repo_name` is the repo, `max_results` the results.
_HARMLESS = frozenset(
    (
        "name",
        "title",
        "text",
        "number",
        "max",
        "maximum",
        "source",
        "all",
        "is",
        "date",
        "time",
        "by",
    )
)
# An id and what it is the id of share a name, and only the value tells which of them is there.
_IDS = frozenset(("id", "ids", "uuid", "key"))
_ID_OR_THING = 0.6
# Words that look alike and are not.
_UNLIKE = tuple(
    frozenset(pair)
    for pair in (
        ("content", "context"), ("text", "test"), ("state", "status"), ("date", "data"),
        ("city", "capacity"), ("time", "timezone"), ("follower", "following"), ("to", "top"),
        ("source", "resource"), ("subject", "object"), ("user", "username"), ("id", "idx"),
        ("message", "messages"), ("host", "hostname"),
    )
)  # fmt: skip


def _mean_different_things(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    only_a, only_b = set(a) - set(b), set(b) - set(a)
    if len(only_a) == 1 and len(only_b) == 1 and frozenset(only_a | only_b) in _UNLIKE:
        return True
    aspects_a, aspects_b = only_a & _ASPECTS, only_b & _ASPECTS
    if aspects_a and aspects_b:
        # `tz_source` against `target_tz`; an abbreviation (`min`, `minimum`) is the same aspect.
        return not any(_word_similarity(x, y) >= 0.8 for x in aspects_a for y in aspects_b)
    if not (aspects_a or aspects_b):
        return False
    # One name has the aspect alone: another thing when the other name is all the rest of it.
    aspects, rest = (aspects_a, only_b) if aspects_a else (aspects_b, only_a)
    return not rest and not aspects <= _HARMLESS


def name_similarity(left: str, right: str) -> float:
    """How likely two parameter names mean the same, 0 to 1; 1 is equal up to case and separators.

    Equal words count most, then abbreviations (`tz` of `timezone`, `msg` of `message`), then
    spelling (Jaro-Winkler). A word that makes another thing of it (`page` and `page_size`) or its
    opposite (`min_price` and `max_price`) makes it 0, however alike the rest is.
    """
    a, b = words_of(left[:_MAX_NAME]), words_of(right[:_MAX_NAME])
    if not a or not b:
        return 0.0
    if "".join(a) == "".join(b):
        return 1.0
    if sorted(a) == sorted(b):
        return 0.95
    if _mean_different_things(a, b):
        return 0.0
    shared = _matched(a, b)
    spelling = JaroWinkler.similarity("".join(a), "".join(b))
    containment = shared / min(len(a), len(b))
    coverage = shared / max(len(a), len(b))
    by_words = 0.55 * containment + 0.4 * coverage
    likeness = max(by_words, spelling if spelling >= 0.85 else 0.6 * spelling)
    return min(likeness, _ID_OR_THING) if {*a} ^ {*b} <= _IDS else likeness


def _matched(a: tuple[str, ...], b: tuple[str, ...]) -> float:
    """The sum over the shorter name's words of how well each matches one of the other's."""
    short, long = (a, b) if len(a) <= len(b) else (b, a)
    rest, total = list(long), 0.0
    for word in short:
        best = max(rest, key=lambda other: _word_similarity(word, other), default=None)
        if best is not None and (score := _word_similarity(word, best)) > 0:
            total += score
            rest.remove(best)
    return total


def _word_similarity(a: str, b: str) -> float:
    if a == b:
        return 1.0
    short, long = sorted((a, b), key=len)
    if long.rstrip("s") == short.rstrip("s"):
        return 0.98
    if long.startswith(short):
        return 0.9 if len(short) >= 2 else 0.6
    if len(short) >= 2 and short[0] == long[0] and _is_subsequence(short, long):
        return 0.8
    return 0.75 if len(short) >= 4 and DamerauLevenshtein.distance(a, b) == 1 else 0.0


def _is_subsequence(short: str, long: str) -> bool:
    letters = iter(long)
    return all(char in letters for char in short)


# How much is asked for at a time: to get less is still what was meant.
_PORTION = frozenset(
    ("limit", "top", "k", "max", "maximum", "count", "n", "num", "size", "per", "page", "results",
     "depth", "timeout", "width", "height", "quality", "tokens", "lines", "length")
)  # fmt: skip


def is_portion(name: str) -> bool:
    """Whether a parameter says how much is wanted at a time, such as `limit` or `topK`."""
    return not _PORTION.isdisjoint(words_of(name))
