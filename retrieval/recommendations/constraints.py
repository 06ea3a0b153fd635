"""Which constraint of a `deliverable` would have caught weak answers. A hint in words, no contract.

The reasons are those of `retrieval.health.signals`.
"""

import re
from collections import Counter
from collections.abc import Sequence

from retrieval.health.record import Weak
from retrieval.recommendations.words import Words

_HINTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"the result is an empty list$"), "`min_items: 1`"),
    (re.compile(r"the result is an empty (?:text|object)$"), "`non_empty: true`"),
    (re.compile(r"there is nothing in .+$"),
     "`non_empty` with that key (or `min_items: 1` for a list)"),
    (re.compile(r"the tool calls it"),
     "a `json_schema` with an `enum` of the statuses that are a real success"),
)  # fmt: skip
"""In this order: what is empty is seen more surely than what a status means."""

_ANY = "`min_items`, `non_empty` or `required`"


def constraint_for(weak: Sequence[Weak], words: Words) -> str:
    """What to demand of the results, after the most frequent reason of the weak successes."""
    if not weak:
        return f"say in its deliverable what makes an answer useful, such as {_ANY}"
    counts = Counter(each.why for each in weak)
    why = max(counts, key=lambda each: (counts[each], each))
    hint = next((hint for pattern, hint in _HINTS if pattern.search(why)), _ANY)
    return f"mostly {words.quoted(why)}, which {hint} in its deliverable would catch"
