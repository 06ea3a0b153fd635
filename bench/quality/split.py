"""Splits: by session, decided by a hash of its name, so that nobody chooses."""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

from bench.quality.sessions import Session

HISTORY_SHARE = 0.6

T = TypeVar("T")


def split(sessions: Sequence[Session]) -> tuple[list[Session], list[Session]]:
    """History and test: other sessions, and the history is the older one."""
    history = [session for session in sessions if _place(session.name) < HISTORY_SHARE]
    test = [session for session in sessions if _place(session.name) >= HISTORY_SHARE]
    return history, test


def folds(sessions: Sequence[T], count: int) -> list[tuple[list[T], list[T]]]:
    """For each fold the sessions outside and inside of it."""
    return [
        (
            [each for at, each in enumerate(sessions) if at % count != fold],
            [each for at, each in enumerate(sessions) if at % count == fold],
        )
        for fold in range(count)
    ]


def _place(name: str) -> float:
    """A number in [0, 1) that stands for the name."""
    return int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) / 2**32
