"""How work grows with its input, by the thread's own processor time where nothing disturbs it."""

import gc
import time
from collections.abc import Callable

_ATTEMPTS = 20
"""The least of each size is taken, and that of work in proportion is soon found."""


def growth(work: Callable[[int], object], size: int, times: int) -> float:
    """How many times as long `times` as much takes, each at its quickest of several attempts.

    Without the garbage collector, whose work is as large as all that other tests left behind, and
    without other threads. It ends at the first attempt by which that is nearer to `times` than to
    its square, counted in powers.
    """
    least = most = float("inf")
    for _ in range(_ATTEMPTS):
        least = min(least, _seconds(work, size))
        most = min(most, _seconds(work, size * times))
        if most < times**1.5 * least:
            break
    return most / least


def _seconds(work: Callable[[int], object], size: int) -> float:
    was_collecting = gc.isenabled()
    gc.disable()
    try:
        begun = time.thread_time()
        work(size)
        return max(time.thread_time() - begun, 1e-5)
    finally:
        if was_collecting:
            gc.enable()
