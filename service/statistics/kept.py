"""Kept: what is read rarely enough, so that twenty who look cost as much as one."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_MOST = 64
"""Values that are kept: of some workspaces, in some windows."""


class _Value(NamedTuple, Generic[V]):
    value: V
    made_at: float


class Kept(Generic[K, V]):
    """Values for some seconds; who asks while one is made waits for it and makes none of their own.

    Args:
        for_s: seconds for which a value is good.
        clock: seconds that only grow.
    """

    def __init__(self, for_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._for_s = for_s
        self._clock = clock
        self._values: OrderedDict[K, _Value[V]] = OrderedDict()
        self._one_at_a_time = asyncio.Lock()

    async def get(self, key: K, make: Callable[[], Awaitable[V]]) -> V:
        """The value of a key, made when there is none or it is too old.

        Raises:
            whatever `make` raises; nothing is kept then.
        """
        if (found := self._fresh(key)) is not None:
            return found.value
        async with self._one_at_a_time:
            if (found := self._fresh(key)) is not None:
                return found.value
            # Its age counts from before it was read: what was written meanwhile is not in it.
            began = self._clock()
            value = await make()
            self._values[key] = _Value(value, began)
            self._values.move_to_end(key)
            if len(self._values) > _MOST:
                self._values.popitem(last=False)
            return value

    def forget(self) -> None:
        """Nothing that is kept holds any more."""
        self._values.clear()

    def _fresh(self, key: K) -> _Value[V] | None:
        found = self._values.get(key)
        if found is None or self._clock() - found.made_at >= self._for_s:
            return None
        return found
