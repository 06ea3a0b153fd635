"""Confidence: what suggestions promised and what came of it, as the store has it."""

from aftercall.models import ConfidenceStatistics
from mongo.protocol import LogStore
from retrieval.confidence import Promise, reliability
from service.statistics.kept import Kept

MAX_OUTCOMES = 2_000
"""The latest outcomes that are looked at."""

_KEPT_S = 5.0


class Promises:
    """Tells how well confidence holds; what it says is up to some seconds old.

    Args:
        store: where outcomes are.
    """

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._kept: Kept[str, ConfidenceStatistics] = Kept(_KEPT_S)

    async def told(self, workspace: str) -> ConfidenceStatistics:
        """Of the latest outcomes of a workspace.

        Raises:
            StoreError: when the store cannot say.
        """
        return await self._kept.get(workspace, lambda: self._read(workspace))

    async def _read(self, workspace: str) -> ConfidenceStatistics:
        judged = await self._store.judged_suggestions(workspace, MAX_OUTCOMES)
        return reliability([Promise(each.confidence, each.outcome == "success") for each in judged])
