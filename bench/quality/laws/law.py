"""What a law is: a case turned into another, and a relation between the two answers."""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from bench.quality.laws.asking import Reply, same
from bench.quality.laws.case import Case
from bench.quality.trial import Json

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


def _as_it_is(repaired: Json) -> Json:
    return repaired


@dataclass(frozen=True, slots=True)
class Same:
    """A relation: which parts of the answer about the changed case are those of the base."""

    placed: Callable[[Json], Json] = _as_it_is
    """Where the base's repaired call is expected in the changed case."""
    category: bool = False
    change_class: bool = False
    safe: bool = False
    within: float | None = None
    """How far the confidence may move; None where it does not count."""
    check: bool = False
    """Whether `/check` says and repairs the same, too."""

    def __call__(self, base: Reply, changed: Reply) -> str | None:
        """Return the first part that is another, in words."""
        return next((words for words in self._differences(base, changed) if words), None)

    def _differences(self, base: Reply, changed: Reply) -> Iterator[str]:
        if self.category:
            pair = base.suggested.pattern.category, changed.suggested.pattern.category
            yield _change("category", *pair)
        yield _change("action", base.action, changed.action)
        yield self._repair("another repair", base.repaired, changed.repaired)
        if self.change_class:
            yield _change("class", base.change_class, changed.change_class)
        if self.safe:
            yield _change("safe", base.safe, changed.safe)
        moved = changed.confidence - base.confidence
        if self.within is not None and abs(moved) > self.within:
            yield f"confidence moved by {moved:+.3f}"
        if self.check:
            yield _change("check", base.checked.verdict, changed.checked.verdict)
            yield self._repair("check: another repair", base.before, changed.before)

    def _repair(self, words: str, base: Json | None, changed: Json | None) -> str:
        wanted = None if base is None else self.placed(base)
        return "" if same(wanted, changed) else words


def _change(name: str, before: object, after: object) -> str:
    return "" if before == after else f"{name} {before} became {after}"


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
