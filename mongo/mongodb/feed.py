"""The feed of a MongoDB log store: what happened, in the store's own errors."""

from collections.abc import Awaitable, Callable

from mongo.mongodb import layout
from mongo.records import Change, Changes

Read = Callable[[], Awaitable[tuple[layout.State, list[Change]]]]


class MongoChangeFeed:
    """A `mongo.upkeep.ChangeFeed`; `notice` is told which generation holds at each poll."""

    def __init__(self, read: Read, notice: Callable[[int], None]) -> None:
        self._read = read
        self._notice = notice

    async def poll(self) -> Changes:
        """What happened since the last call, or since the feed was made."""
        state, changes = await self._read()
        self._notice(state.generation)
        return Changes(state.generation, changes)
