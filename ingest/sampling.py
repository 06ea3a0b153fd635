"""Sampling: where a tool succeeds very often, a share of its successes shows as much as all.

Only plain successes are left out. A failure, a retry, a suggestion that was followed, and every
success of a session in which the tool has failed lately are kept: repairs are learned from them.
"""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from cachetools import LRUCache

from aftercall.models import Execution
from mongo.records import ToolKey

_MAX_TOOLS = 20_000
"""Tools whose rate is known; the latest called ones."""
_MAX_SESSIONS = 50_000
"""Sessions, each with a tool that failed in it, that are remembered; the latest ones."""


@dataclass(slots=True)
class _Rate:
    """A bucket of successes that are kept whatever comes; `left_out` since one was kept."""

    tokens: float
    seen_at: float
    left_out: int = 0


class SuccessSampler:
    """States of each execution whether it is kept, and for how many calls it stands.

    All of `successes_per_minute` of one tool are kept, and of those beyond that `kept_share`, in
    (0, 1]; 0 a minute keeps all. Which ones follows from the execution's id, so that one sent twice
    fares alike as long as the tool is as busy. `clock` gives seconds that only grow.
    """

    def __init__(
        self,
        successes_per_minute: float = 0.0,
        kept_share: float = 0.1,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_minute = successes_per_minute
        self._kept_share = kept_share
        self._clock = clock
        self._rates: LRUCache[ToolKey, _Rate] = LRUCache(_MAX_TOOLS)
        self._failed: LRUCache[tuple[ToolKey, str], None] = LRUCache(_MAX_SESSIONS)

    def stands_for(self, workspace: str, execution: Execution) -> int:
        """Calls that the execution stands for if it is kept, itself included; 0 to leave it out."""
        if not self._per_minute:
            return 1
        tool = ToolKey(workspace, execution.server_name, execution.tool_name)
        if execution.outcome == "failure":
            if execution.session_id:
                self._failed[tool, execution.session_id] = None
            return 1
        is_attempt = execution.attempt > 1 or execution.repair_of or execution.suggestion_id
        if is_attempt or (tool, execution.session_id or "") in self._failed:
            return 1
        rate = self._rate_of(tool)
        digest = hashlib.sha256(execution.execution_id.encode()).digest()
        if rate.tokens >= 1:
            rate.tokens -= 1
        elif int.from_bytes(digest[:8]) / 2**64 >= self._kept_share:
            rate.left_out += 1
            return 0
        left_out, rate.left_out = rate.left_out, 0
        return 1 + left_out

    def was_not_stored(self, workspace: str, execution: Execution, stood_for: int) -> None:
        """Take back what an execution stood for: it did not become a record of its own."""
        rate = self._rates.get(ToolKey(workspace, execution.server_name, execution.tool_name))
        if rate is not None:
            rate.left_out += stood_for - 1

    def _rate_of(self, tool: ToolKey) -> _Rate:
        now = self._clock()
        if (rate := self._rates.get(tool)) is None:
            rate = self._rates[tool] = _Rate(max(1.0, self._per_minute), now)
        earned = (now - rate.seen_at) * self._per_minute / 60
        rate.tokens = min(max(1.0, self._per_minute), rate.tokens + earned)
        rate.seen_at = now
        return rate
