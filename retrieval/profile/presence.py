"""Which parameters successes have together, and which never."""

from collections.abc import Collection, Iterable
from itertools import combinations

from pydantic import BaseModel, Field

from retrieval.profile.bounded import add_counts

MAX_NAMES = 24
"""Parameters whose pairs are counted: 276 pairs at most."""
_EXPECTED = 5.0
"""Never together is a finding when chance alone would have brought them together so often: it
would then leave them apart once in 150 times (Poisson)."""


class JointPresence(BaseModel):
    """Counts of parameters and of their pairs in successes. Merging is exact up to `MAX_NAMES`."""

    counts: dict[str, int] = Field(default_factory=dict)
    pairs: dict[str, dict[str, int]] = Field(default_factory=dict)
    """By the first name of the pair in the order of text, then by the second."""
    is_complete: bool = True
    """False once a parameter was let go: then what is not here may yet have been."""

    def observe(self, names: Iterable[str]) -> None:
        """Count the parameters of one success."""
        present = sorted(names)
        for name in present:
            self.counts[name] = self.counts.get(name, 0) + 1
        for first, second in combinations(present, 2):
            others = self.pairs.setdefault(first, {})
            others[second] = others.get(second, 0) + 1
        if len(self.counts) > MAX_NAMES:
            self._trim()

    def together(self, one: str, other: str) -> int:
        """In how many successes both were present."""
        first, second = sorted((one, other))
        return self.pairs.get(first, {}).get(second, 0)

    def usual_with(self, names: Collection[str]) -> list[tuple[str, float]]:
        """What successes with all of these parameters also had, with the share of those that did.

        The most usual first. With one name the share (0 to 1) is exact, with several an upper
        bound: only pairs are counted. Names that were never seen are passed over.
        """
        given = [name for name in names if name in self.counts]
        if not given:
            return []
        shares = {
            other: min(self.together(other, name) / self.counts[name] for name in given)
            for other in self.counts
            if other not in names
        }
        found = [(name, share) for name, share in shares.items() if share > 0]
        return sorted(found, key=lambda item: (-item[1], item[0]))

    def never_with(self, names: Collection[str], successes: int) -> list[str]:
        """Parameters that no success had together with one of these, and not by chance.

        `successes` is the number of all successes. Empty when parameters had to be forgotten.
        """
        if not self.is_complete or not successes:
            return []
        return sorted(
            other
            for other, count in self.counts.items()
            if other not in names
            and any(
                not self.together(other, name)
                and count * self.counts.get(name, 0) / successes >= _EXPECTED
                for name in names
            )
        )

    def _trim(self) -> None:
        self.is_complete = False
        rarest = sorted(self.counts, key=lambda name: (-self.counts[name], name))[MAX_NAMES:]
        for name in rarest:
            del self.counts[name]
            self.pairs.pop(name, None)
            for others in self.pairs.values():
                others.pop(name, None)
        self.pairs = {first: others for first, others in self.pairs.items() if others}


def merge_presence(left: JointPresence, right: JointPresence) -> JointPresence:
    """The counts of both."""
    merged = JointPresence(
        counts=add_counts(left.counts, right.counts),
        pairs={
            first: add_counts(left.pairs.get(first, {}), right.pairs.get(first, {}))
            for first in left.pairs | right.pairs
        },
        is_complete=left.is_complete and right.is_complete,
    )
    if len(merged.counts) > MAX_NAMES:
        merged._trim()  # noqa: SLF001  # of the same class
    return merged
