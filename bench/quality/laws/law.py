"""What a law is: a case turned into another, and a relation between the two answers."""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from bench.quality.laws.asking import Reply
from bench.quality.laws.case import Case

Relation = Callable[[Reply, Reply], str | None]
"""Takes the answers about the base and about the changed case; returns what is broken, or None."""


@dataclass(frozen=True, slots=True)
class Variation:
    """One comparison of a law."""

    kind: str
    """Which way the case is changed; a row of the table."""
    base: Case
    changed: Case | Callable[[Reply], Case | None]
    """The changed case, or how it follows from the answer about the base; None: nothing to ask."""
    relation: Relation


@dataclass(frozen=True, slots=True)
class Law:
    """A law with the variations that it makes of a case."""

    name: str
    claim: str
    vary: Callable[[Case, random.Random], Iterable[Variation]]


def itself(reply: Reply) -> Case:
    """Return the base again, for a relation within one answer."""
    return reply.case


def first_broken(*checks: tuple[bool, str]) -> str | None:
    """Return the words of the first check that does not hold."""
    return next((words for holds, words in checks if not holds), None)


def spread(variations: Iterator[Variation], rng: random.Random, most: int) -> list[Variation]:
    """Return at most so many variations, drawn so that all kinds have their turn."""
    found = list(variations)
    return found if len(found) <= most else rng.sample(found, most)
