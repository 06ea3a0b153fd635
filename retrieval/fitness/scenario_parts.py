"""A scenario in its parts: what asks for several things is near to none of their tools as a whole.

One vector of "Find a flight to Oslo. Then book a table for two." lies between flights and tables.
So each sentence gets a vector too, and a tool is as near as its nearest one.
"""

import re

MAX_PARTS = 4
"""Sentences embedded beside the whole; of more, neighbours are put together. On Seal-Tools, whose
scenarios ask for three things and more, 3, 4, 5 and 8 gave an nDCG@10 of 0.922, 0.925, 0.927 and
0.928 on the training half, and each costs one more embedding."""

MIN_CHARACTERS = 12
"""Below that it is no request of its own: "Thanks!", "e.g. 2."."""

_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")


def scenario_parts(scenario: str) -> list[str]:
    """The texts to embed for a scenario: itself, then its sentences when there are several.

    One to five texts; never empty. The first vector is the scenario's own, for whatever compares
    scenarios with each other.
    """
    sentences = [part.strip() for part in _SENTENCE_END.split(scenario)]
    sentences = [part for part in sentences if len(part) >= MIN_CHARACTERS]
    return [scenario, *_grouped(sentences)] if len(sentences) > 1 else [scenario]


def _grouped(sentences: list[str]) -> list[str]:
    """At most `MAX_PARTS` texts of about equal length, each of whole neighbouring sentences."""
    if len(sentences) <= MAX_PARTS:
        return sentences
    groups: list[list[str]] = [[] for _ in range(MAX_PARTS)]
    total, before = sum(map(len, sentences)), 0
    for sentence in sentences:
        middle = before + len(sentence) / 2
        groups[int(MAX_PARTS * middle / total)].append(sentence)
        before += len(sentence)
    return [" ".join(group) for group in groups if group]
