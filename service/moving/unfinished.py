"""The mark of an import in its target: which archive, how far, and whether it came to its end."""

from pydantic import BaseModel, ConfigDict, ValidationError

from mongo.errors import StoreError
from mongo.protocol import LogStore

FACT = "import"
"""Name of the store's fact; one of `mongo.archive.LOCAL_FACTS`."""


class HalfImportedError(StoreError):
    """An import into the store did not come to its end."""


class Mark(BaseModel):
    """How far an import has come."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    archive: str
    """`Header.id` of the archive."""
    kinds: tuple[str, ...] = ()
    """Kinds of which every record is in the store."""
    is_done: bool = False
    """Whether the store was read again and agreed with the archive."""


async def read_mark(store: LogStore) -> Mark | None:
    """What the store says; None when nothing was ever imported into it."""
    value = await store.get_fact(FACT)
    if value is None:
        return None
    try:
        return Mark.model_validate_json(value)
    except ValidationError:
        # Written by another version, which did not say that it was done in words of this one.
        return Mark(archive="")


async def write_mark(store: LogStore, mark: Mark) -> None:
    """Tell the store."""
    await store.put_fact(FACT, mark.model_dump_json())


async def refuse_half_imported(store: LogStore) -> None:
    """For whoever is to serve from a store, learn from it, or copy it.

    Raises:
        HalfImportedError: an import did not come to its end, so that what is there is only a part.
    """
    mark = await read_mark(store)
    if mark is not None and not mark.is_done:
        raise HalfImportedError(
            f"an import into this store did not come to its end (archive {mark.archive}): run "
            "`aftercall import FILE` again with the same file, which goes on, or begin with an "
            "empty store: another data folder, or another database"
        )
