"""The layout of the database: its mark and version, its collections' indexes, and expiry.

The mark is the only record of STORE. It also says which generation holds and whether a shadow is
being learned, so that a switch is one write.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from pymongo import ASCENDING, DESCENDING, IndexModel
from pymongo.errors import CollectionInvalid, DuplicateKeyError, OperationFailure

from mongo.errors import StoreDamagedError, StoreTooNewError
from mongo.mongodb.collections import (
    DERIVED_NAMES,
    SHARED_NAMES,
    STORE_ID,
    Collection,
    Collections,
    Record,
)

LAYOUT = 1
"""The version of the layout that this one writes. It reads all older ones."""

_MARK = "aftercall"

_DAY_S = 86_400
_TOMBSTONES_S = _DAY_S
"""Seconds that the fence of a removed document outlives its vector: far longer than a process can
sleep with a write under way."""

_CHANGES_S = 3_600
"""Seconds that changes are kept for followers; one that slept longer is told so by the gap."""

_EXPIRY = "learned_since"

_EXISTS = 48  # NamespaceExists


@dataclass(frozen=True, slots=True)
class State:
    """What the mark says."""

    generation: int
    shadow: int | None
    epoch: int
    """Grows whenever a switch that is under way must not take place any more."""


def _index(*fields: str, unique: bool = False, only: str | None = None) -> IndexModel:
    """An index on fields, `-` before one for descending; with `only`, of records that have it."""
    keys = [
        (field.removeprefix("-"), DESCENDING if field.startswith("-") else ASCENDING)
        for field in fields
    ]
    options: dict[str, Any] = {"name": "_".join(name for name, _ in keys)[:100]}
    if unique:
        options["unique"] = True
    if only is not None:
        options["partialFilterExpression"] = {only: {"$exists": True}}
    return IndexModel(keys, **options)


def _expiring(field: str, seconds: int) -> IndexModel:
    return IndexModel([(field, ASCENDING)], name=f"{field}_expires", expireAfterSeconds=seconds)


_QUEUE = _index("queued", "workspace", "position", only="queued")
"""The queue's field first: which workspaces wait, and how much, is read from the index alone."""

_POSITION = _index("workspace", "position", unique=True)
_BY_TOOL = ("workspace", "server_name", "tool_name")

# An `_id` is made of the workspace and the record's own id: it is the unique index on both.
SHARED_INDEXES: dict[str, list[IndexModel]] = {
    "executions": [
        _POSITION,
        _QUEUE,
        _index(
            "workspace", "session_id", "server_name", "tool_name", "position", only="session_id"
        ),
        _index("workspace", "schema_hash", only="schema_hash"),
    ],
    "tools": [
        _index("workspace", "revision", unique=True),
        _index(*_BY_TOOL, "revision"),
    ],
    "changed_tools": [_POSITION, _QUEUE],
    "outcomes": [_POSITION, _QUEUE],
    "marks": [
        _POSITION,
        _QUEUE,
        _index(*_BY_TOOL, "position"),
        _index("workspace", "execution_id", only="execution_id"),
    ],
    "corrections": [
        _POSITION,
        _QUEUE,
        _index("workspace", "execution_id"),
    ],
    "recommendations": [_index("workspace", "changed_us")],
    "promotions": [_index("workspace", "namespace")],
    "promotion_history": [_POSITION, _QUEUE, _index("workspace", "namespace", "position")],
    "patterns": [_index("workspace", "-count", "-last_seen_us", "pattern_id")],
    "changes": [_expiring("at", _CHANGES_S)],
    "steps": [_index("workspace")],
}

DERIVED_INDEXES: dict[str, list[IndexModel]] = {
    "health": [
        _index("workspace", "-used_us", "server_name", "tool_name"),
        _index("workspace", "-troubled_us", "server_name", "tool_name", only="troubled_us"),
    ],
    "documents": [
        _index("waits", "workspace", "queued_at", only="waits"),
        _index("gone", "workspace", only="gone"),
        _expiring("gone_since", _TOMBSTONES_S),
    ],
    "repairs": [_index("workspace", "position"), _index(*_BY_TOOL, "position")],
    "ties": [_index(*_BY_TOOL, "position")],
}


async def read_state(db: Collections) -> State:
    """What holds now.

    Raises:
        StoreDamagedError: the mark is gone.
    """
    mark = await db.store.find_one({"_id": STORE_ID}, {"generation": 1, "shadow": 1, "epoch": 1})
    if mark is None:
        raise StoreDamagedError(
            f"the database {db.database.name} has lost its record STORE: restore a backup of it"
        )
    return state_of(mark)


def state_of(mark: Record) -> State:
    """What a mark says."""
    return State(mark["generation"], mark.get("shadow"), mark["epoch"])


async def prepare(db: Collections, retention_days: float) -> State:
    """Make or check the mark, and make what indexes are missing; repeating it does nothing.

    Raises:
        StoreTooNewError: a newer version wrote the database; it was not changed.
        StoreDamagedError: collections of our names are there, but not our mark.
    """
    mark = await _mark(db)
    if mark.get("layout", 0) > LAYOUT:
        raise StoreTooNewError(
            f"the database {db.database.name} was written by a newer version of Aftercall (layout "
            f"{mark['layout']}, this one knows up to {LAYOUT}); it was left as it is. Upgrade "
            "Aftercall, or name another database (AFTERCALL_MONGO_DATABASE)"
        )
    state = state_of(mark)
    await _make_collections(db)
    await asyncio.gather(
        *(
            getattr(db, name).create_indexes(list(indexes))
            for name, indexes in SHARED_INDEXES.items()
        ),
        prepare_generation(db.of_generation(state.generation)),
    )
    await _set_expiry(db.executions, retention_days)
    return state


async def prepare_generation(db: Collections) -> None:
    """Make the indexes of one generation's collections."""
    await asyncio.gather(
        *(
            getattr(db, name).create_indexes(list(indexes))
            for name, indexes in DERIVED_INDEXES.items()
        )
    )


async def _mark(db: Collections) -> Record:
    """The mark, made in a database that holds nothing of ours yet."""
    mark = await db.store.find_one({"_id": STORE_ID})
    if mark is None:
        ours = {*SHARED_NAMES.values(), *DERIVED_NAMES.values()}
        taken = ours.intersection(await db.database.list_collection_names())
        # Looked for again: another process may have made it, and collections, in between.
        mark = await db.store.find_one({"_id": STORE_ID})
        if mark is None and taken:
            raise StoreDamagedError(
                f"the database {db.database.name} holds collections of our names "
                f"({', '.join(sorted(taken))}) that are not Aftercall's; it was left as it is. "
                "Name another database (AFTERCALL_MONGO_DATABASE), or restore a backup"
            )
    if mark is None:
        fresh: Record = {
            "_id": STORE_ID, "workspace": "", "application": _MARK, "layout": LAYOUT,
            "generation": 1, "epoch": 0, "facts": {},
        }  # fmt: skip
        try:
            await db.store.insert_one(fresh)
        except DuplicateKeyError:
            mark = await db.store.find_one({"_id": STORE_ID})
        else:
            mark = fresh
    if mark is None or mark.get("application") != _MARK:
        raise StoreDamagedError(
            f"the database {db.database.name} has a collection STORE that is not Aftercall's; it "
            "was left as it is. Name another database (AFTERCALL_MONGO_DATABASE)"
        )
    return mark


async def _make_collections(db: Collections) -> None:
    """Those without an index too: some servers fail to aggregate over what is not there."""
    there = set(await db.database.list_collection_names())
    for name in {*SHARED_NAMES.values()} - there:
        try:
            await db.database.create_collection(name, check_exists=False)
        except (CollectionInvalid, OperationFailure) as error:
            if getattr(error, "code", _EXISTS) != _EXISTS:
                raise  # else another process was faster


async def _set_expiry(executions: Collection, days: float) -> None:
    """Let the server delete executions `days` after they were learned from; 0 for never."""
    seconds = round(days * _DAY_S)
    present = None
    async for index in await executions.list_indexes():
        if list(index["key"]) == [_EXPIRY]:
            present = index
    if present is None:
        if seconds:
            await executions.create_indexes([_expiring(_EXPIRY, seconds)])
    elif not seconds:
        await executions.drop_index(present["name"])
    elif present.get("expireAfterSeconds") != seconds:
        await executions.database.command(
            "collMod",
            executions.name,
            index={"keyPattern": {_EXPIRY: 1}, "expireAfterSeconds": seconds},
        )
