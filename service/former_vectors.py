"""Vectors of former generations: removed once nobody asks them any more."""

import logging

from retrieval.index.opening import IndexPlace, destroy_index, list_indexes
from retrieval.index.protocol import IndexInUseError, VectorIndexError
from service.logs import log_event

logger = logging.getLogger(__name__)


async def remove_former(place: IndexPlace, current: str) -> list[str]:
    """Remove the indexes of generations before the current one; the names of those removed.

    An embedded one that a process has open stays: that process answers from it, and removes it when
    it has switched. What is newer than the current one is being made by a rebuild, or was.

    Raises:
        VectorIndexError: when they cannot be listed or removed.
    """
    removed = []
    names = await list_indexes(place)
    for name in names[: names.index(current)] if current in names else []:
        try:
            await destroy_index(place, name)
        except IndexInUseError:
            continue
        removed.append(name)
    return removed


async def remove_former_quietly(place: IndexPlace, current: str) -> None:
    """As `remove_former`, for who has better to do: what fails is only logged."""
    try:
        removed = await remove_former(place, current)
    except (VectorIndexError, OSError) as error:
        log_event(logger, "former vectors were not removed", level="warning", error=error)
    else:
        if removed:
            log_event(logger, "former vectors removed", names=", ".join(removed))
