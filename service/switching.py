"""Switching: when a rebuild has learned all anew, this process answers from its vectors."""

import logging
from collections.abc import Awaitable, Callable

from ingest.claims import Claims
from ingest.indexer import Indexer
from retrieval.index.opening import CurrentIndex, EdgePlace, IndexPlace
from retrieval.index.protocol import IndexModelMismatchError, VectorIndex
from service.former_vectors import remove_former_quietly
from service.logs import log_event

logger = logging.getLogger(__name__)

OTHER_MODEL = (
    "the vectors were rebuilt with another embedding model: restart this process with that model "
    "(AFTERCALL_EMBEDDING_MODEL); until then it answers from its former vectors and learns nothing"
)


class IndexSwitch:
    """Keeps the index that is asked the one that holds; told of generations by `following`.

    Args:
        index: what is asked.
        place: where indexes are; of embedded ones the former are removed, which nobody else can.
        named: tells the name of the index that holds.
        opened: opens the index of a name.
        indexer: fills it; told when it may go on, and stopped for good when it may not.
        claims: the indexer's; given back with that.
    """

    def __init__(
        self,
        *,
        index: CurrentIndex,
        place: IndexPlace,
        named: Callable[[], Awaitable[str]],
        opened: Callable[[str], Awaitable[VectorIndex]],
        indexer: Indexer,
        claims: Claims,
    ) -> None:
        self._index = index
        self._place = place
        self._named = named
        self._opened = opened
        self._indexer = indexer
        self._claims = claims
        self.problem: str | None = None
        """Why this process stands still, with the cure; None while all is well."""

    async def on_generation(self, generation: int) -> None:
        """Another generation holds, or this is the first that is seen.

        Raises:
            StoreError, VectorIndexError: it cannot be switched yet; to be told again.
        """
        name = await self._named()
        if name != self._index.opened:
            try:
                index = await self._opened(name)
            except IndexModelMismatchError:
                await self._stand_still()
                return
            await self._index.switch(index, name)
        self._indexer.switched(generation)
        if isinstance(self._place, EdgePlace):
            await remove_former_quietly(self._place, name)

    async def _stand_still(self) -> None:
        """Others may learn: texts are the same whatever the model, but vectors are not."""
        if self.problem is None:
            self.problem = OTHER_MODEL
            log_event(logger, OTHER_MODEL, level="error")
        await self._indexer.close()
        await self._claims.close()
