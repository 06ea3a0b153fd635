"""Usage up to now, by workspace: what the nightly run counted, and the tail behind it."""

from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from mongo.protocol import LogStore
from retrieval.usage.view import UsageView
from service.statistics.long_tail import LONG, LongTails, RunStep
from service.statistics.usage_page import UsagePage

PATIENCE_S: Final = 0.05
"""A question waits as long for the tail; then it is told what is known."""

FIRST_PATIENCE_S: Final = 0.5
"""The first ones of a workspace of which nothing was summed up yet wait as long: some thousand
executions are counted by then, and who is told zeros believes them."""

MAX_WORKSPACES: Final = 16
"""Whose usage is kept at hand: some megabytes each."""


def _now() -> datetime:
    return datetime.now(UTC)


class UsageBook:
    """Knows the usage of workspaces up to now. All on one event loop.

    Args:
        store: holds what was counted, and the log.
        run_step: runs the nightly step `statistics` when a tail is long; nobody does unless given.
        on_caught_up: told a workspace when all is known of which a question was told a part.
        patience_s: seconds that a question waits for the tail.
        first_patience_s: seconds that the first ones wait where nothing was summed up yet.
        clock: tells the time.
    """

    def __init__(
        self,
        store: LogStore,
        *,
        run_step: RunStep | None = None,
        on_caught_up: Callable[[str], None] = lambda _: None,
        patience_s: float = PATIENCE_S,
        first_patience_s: float = FIRST_PATIENCE_S,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        self._store = store
        self._long_tails = LongTails(run_step)
        self._on_caught_up = on_caught_up
        self._patience_s = patience_s
        self._first_patience_s = first_patience_s
        self._clock = clock
        self._pages: OrderedDict[str, UsagePage] = OrderedDict()

    async def view(self, workspace: str) -> UsageView:
        """Usage up to now; without what is still being counted when the patience ends.

        Raises:
            StoreError: when the store cannot be read.
        """
        page = self._pages.get(workspace) or UsagePage(
            self._store, workspace, self._clock, self._on_caught_up
        )
        self._pages[workspace] = page
        self._pages.move_to_end(workspace)
        known, is_fresh = await page.now(self._patience_s, self._first_patience_s)
        self._forget_idle()
        if known.tail.executions > LONG or not known.is_stored:
            self._long_tails.wanted()
        return UsageView(
            (known.base.counts, known.tail.counts),
            self._clock(),
            is_complete=is_fresh and known.is_complete,
        )

    async def close(self) -> None:
        """Stop what works in the background."""
        await self._long_tails.close()
        for page in list(self._pages.values()):
            await page.close()

    def _forget_idle(self) -> None:
        """The workspaces that nobody asked about for longest; those at work stay until they end."""
        idle = [name for name, page in self._pages.items() if not page.is_working]
        for name in idle[: max(0, len(self._pages) - MAX_WORKSPACES)]:
            del self._pages[name]
