"""What a rebuild that was killed has left: looked for at each start, since nobody else looks."""

import logging

from ingest.claims import REBUILD
from ingest.leasing import LeaseKeeper
from mongo.errors import StoreError
from mongo.protocol import LogStore
from retrieval.index.opening import IndexPlace, destroy_index, list_indexes
from retrieval.index.protocol import VectorIndexError
from service.logs import log_event

logger = logging.getLogger(__name__)


async def remove_leftovers(
    store: LogStore, place: IndexPlace, current: str, lease_s: float
) -> list[str]:
    """Remove the shadow and the half-made vectors of a rebuild that is gone; what those were.

    Nothing where a rebuild runs, as far as can be seen at once, or none ever ran. What fails is
    only logged: it takes room and does no harm.

    Args:
        store: the log store.
        place: where the vectors are.
        current: the name of the index that holds.
        lease_s: life of a lease, the same for all processes.
    """
    keeper = LeaseKeeper(store, REBUILD, ttl=lease_s)
    removed: list[str] = []
    try:
        if await store.read_lease(REBUILD) is None or not await keeper.try_take():
            return []
        await store.drop_shadow()
        names = await list_indexes(place)
        for name in names[names.index(current) + 1 :] if current in names else []:
            await destroy_index(place, name)
            removed.append(name)
    except (StoreError, VectorIndexError, OSError) as error:
        log_event(logger, "what a killed rebuild left is still there", level="warning", error=error)
    finally:
        await keeper.close()
    if removed:
        log_event(logger, "removed what a killed rebuild left", names=", ".join(removed))
    return removed
