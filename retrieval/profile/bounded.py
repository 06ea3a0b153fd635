"""Bounded collections that do not depend on the order in which things were seen.

- A *sample* keeps those keys whose hashes are the smallest (bottom-k sampling: Cohen and Kaplan,
  "Summarizing data using bottom-k sketches", 2007). A key that was let go can never come back, so
  the counts that are kept are exact, and the sample of two halves is the sample of the whole.
- The *latest* keeps those keys that were seen last, by the clock of the executions.

Both are plain JSON and are changed in place; merging gives a new one.
"""

import hashlib
from bisect import insort
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TypeVar

K = TypeVar("K", bound=str)

AGENT_DIGITS = 6
"""Of the token of an agent."""
V = TypeVar("V")


def token(text: str, digits: int = 8) -> str:
    """Hexadecimal digits that stand for a text and say nothing else of it; the key of samples."""
    return hashlib.blake2b(text.encode(), digest_size=digits // 2).hexdigest()


def milliseconds(moment: datetime | None) -> int:
    """Milliseconds since 1970 in UTC; 0 for a moment that is not known."""
    return 0 if moment is None else round(moment.timestamp() * 1000)


def add_counts(left: Mapping[K, int], right: Mapping[K, int]) -> dict[K, int]:
    """The sums, key by key."""
    total = dict(left)
    for key, count in right.items():
        total[key] = total.get(key, 0) + count
    return total


def has_place(sample: dict[str, V], key: str, limit: int) -> bool:
    """Whether a key, a `token`, is among the smallest; then there is room for it."""
    if key in sample or len(sample) < limit:
        return True
    largest = max(sample)
    if key > largest:
        return False
    del sample[largest]
    return True


def count_in_sample(sample: dict[str, int], key: str, limit: int) -> None:
    """Count a key, a `token`, when it is among the smallest."""
    if has_place(sample, key, limit):
        sample[key] = sample.get(key, 0) + 1


def merge_samples(left: Mapping[str, int], right: Mapping[str, int], limit: int) -> dict[str, int]:
    """The sample of both, with the sums of the counts."""
    total = add_counts(left, right)
    return {key: total[key] for key in sorted(total)[:limit]}


def add_to_sample(sample: list[str], key: str, limit: int) -> None:
    """Remember a key, a `token`, when it is among the smallest; the list stays sorted."""
    if key not in sample and (len(sample) < limit or key < sample[-1]):
        insort(sample, key)
        del sample[limit:]


def touch(latest: dict[str, int], key: str, at: int, limit: int) -> None:
    """Remember when a key was seen, when it is among the latest; ties go to the larger key."""
    if latest.get(key, -1) >= at:
        return
    latest[key] = at
    if len(latest) > limit:
        del latest[min(zip(latest.values(), latest, strict=True))[1]]


def merge_latest(
    left: Mapping[str, int], right: Mapping[str, int], limit: int, without: Iterable[str] = ()
) -> dict[str, int]:
    """The latest of both, `without` some keys."""
    newest = dict(left)
    for key, at in right.items():
        newest[key] = max(at, newest.get(key, at))
    for key in without:
        newest.pop(key, None)
    kept = sorted(zip(newest.values(), newest, strict=True), reverse=True)[:limit]
    return {key: at for at, key in reversed(kept)}


def least(left: float | None, right: float | None) -> float | None:
    """The smaller of those that are known."""
    return right if left is None else left if right is None else min(left, right)


def greatest(left: float | None, right: float | None) -> float | None:
    """The larger of those that are known."""
    return right if left is None else left if right is None else max(left, right)
