"""The database as all parts of the store use it: its collections, its records' names, its calls.

Records have this in common: `_id` is `record_id(workspace, ...)`, `workspace` is a field of its own
(the shard key: every filter carries it), times are microseconds since 1970, and `data` is bytes. Of
STORE, LOG_HEADS, CURSORS and LEASES there are few, and they are not sharded. Several processes
write at once, and there are no transactions: whatever changes several records is written down in
one record first, by a compare-and-set (a command in LOG_HEADS, a commit in CURSORS); from then on
it is done, and anyone who finds it there applies it. Each record keeps the serial number of the
change that wrote it: one that comes late finds a newer number and does nothing.
"""

import asyncio
import re
import time
from collections.abc import (
    AsyncIterable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

import pymongo
from bson.errors import InvalidDocument
from pymongo import AsyncMongoClient, UpdateOne
from pymongo import errors as driver
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.database import AsyncDatabase

from mongo import errors
from mongo.records import Event, Row, ToolKey

DUPLICATE_KEY = 11000
_READ_ONLY = {10107, 13435, 13436, 10058, 166}  # not the primary; IllegalOperation
_TOO_LARGE = {10334, 17280, 17419, 17420}  # BSONObjectTooLarge, and after an update
_ANSWERS: tuple[tuple[set[int], tuple[str, ...], type[errors.StoreError], str], ...] = (
    (
        {14031},  # OutOfDiskSpace
        ("no space left", "disk is full", "out of disk space"),
        errors.StoreFullError,
        "no space left for MongoDB at {where}: what this call was to store may be missing, reading "
        "goes on. Free space on the server and send the call again",
    ),
    (
        _READ_ONLY,
        ("readonly database", "read-only", "read only", "readonly mode"),
        errors.StoreReadOnlyError,
        "MongoDB at {where} takes no writes at the moment (no primary, or read-only): name all "
        "members of its replica set in the address, or see that it has a primary; then send the "
        "call again",
    ),
    (
        {18, 8000},
        (),
        errors.StoreError,
        "MongoDB at {where} refuses the user or the password: correct them in the address "
        "(AFTERCALL_MONGO_URI), with authSource where the user is of another database",
    ),
    (
        {13},
        (),
        errors.StoreError,
        "the user may not do this at MongoDB at {where}: give it the role readWrite on the "
        "database",
    ),
    (
        _TOO_LARGE,
        (),
        errors.StoreError,
        "a record is too large for MongoDB at {where} (16 MiB): send less in one call, or leave "
        "large results out",
    ),
    (
        {59, 115, 238, 40324},  # CommandNotFound, CommandNotSupported, NotImplemented, a stage
        (),
        errors.StoreError,
        "MongoDB at {where} does not know a statement that Aftercall needs: use MongoDB 4.4 or "
        "later, or another server that was tried (docs/operations.md lists them)",
    ),
)
"""By the code or a part of the text that the server sends."""
UNKNOWN = {2, 9, 14, 59, 67, 72, 115, 168, 197, 238, 15952, 40324}
"""How servers say that they do not know a command, an option, a stage or an operator."""
_VERSIONS = re.compile(r"wire version (?:\d+, but .* at least \d+ \((MongoDB [\d.]+)\))?")
"""The driver's message about a server that is too old or new, with the version that it takes."""
_AWAY = {6, 7, 24, 50, 64, 89, 91, 112, 133, 134, 189, 202, 262, 317, 358, 9001, 11600, 11602}
"""Host not reachable, interrupted, stepping down, shutting down, too slow."""


def from_driver(error: driver.PyMongoError | InvalidDocument, where: str) -> errors.StoreError:
    """Return the store's error for one of the driver's.

    The caller raises it `from` the original.
    """
    away = said = ""
    match error:
        case driver.BulkWriteError():
            return _from_bulk(error, where)
        case driver.NotPrimaryError():
            code = error.details.get("code") if isinstance(error.details, Mapping) else None
            if code is None or code in _READ_ONLY:
                return from_code(min(_READ_ONLY), "", where)
            away = "it steps down"
        case driver.ServerSelectionTimeoutError():
            away = "no server that takes writes answers"
        case driver.PyMongoError(timeout=True) if not isinstance(error, driver.WriteConcernError):
            away = "it took too long (AFTERCALL_MONGO_TIMEOUT_S)"
        case driver.ConnectionFailure():
            away = "the connection was lost or refused"
        case driver.DocumentTooLarge():
            return from_code(min(_TOO_LARGE), "", where)
        case driver.OperationFailure():
            return from_code(error.code, str(error), where)
        case driver.InvalidOperation():
            return errors.closed_error()
        case driver.ConfigurationError():
            said = _describe_misfit(error, where)
        case InvalidDocument():
            said = (
                "a record holds what MongoDB cannot keep: nothing of this call was stored. Send it "
                "without that value"
            )
        case _:
            said = f"MongoDB at {where}: {type(error).__name__}; look at the server's log"
    return _away_error(where, away) if away else errors.StoreError(said)


def _describe_misfit(error: driver.ConfigurationError, where: str) -> str:
    if (versions := _VERSIONS.search(str(error))) is None:
        return (
            f"the options for MongoDB at {where} do not fit it ({type(error).__name__}): look at "
            "the address (AFTERCALL_MONGO_URI)"
        )
    oldest = versions[1]
    age, cure = ("old", f"update it to {oldest} or later") if oldest else ("new", "update PyMongo")
    return f"MongoDB at {where} is too {age} for the driver (PyMongo {pymongo.version}): {cure}"


def from_code(code: int | None, text: str, where: str) -> errors.StoreError:
    """Return the store's error for a code of the server; `text` is looked at, never shown."""
    lowered = text.lower()
    for codes, texts, kind, message in _ANSWERS:
        if code in codes or any(each in lowered for each in texts):
            return kind(message.format(where=where))
    if code in _AWAY:
        return _away_error(where, f"it is busy or changes its state (code {code})")
    return errors.StoreError(
        f"MongoDB at {where} refused an operation (code {code}): look at the server's log, and "
        "report this if it repeats"
    )


def _from_bulk(error: driver.BulkWriteError, where: str) -> errors.StoreError:
    details: Mapping[str, Any] = error.details or {}
    for fault in details.get("writeErrors", []):
        if fault.get("code") != DUPLICATE_KEY:
            return from_code(fault.get("code"), str(fault.get("errmsg", "")), where)
    for fault in details.get("writeConcernErrors", []):
        return from_code(fault.get("code", 64), "", where)
    return from_code(DUPLICATE_KEY, "", where)


def _away_error(where: str, why: str) -> errors.StoreUnavailableError:
    return errors.StoreUnavailableError(
        f"MongoDB at {where} does not answer ({why}): see that it runs and that this machine "
        "reaches it; the call can be sent again"
    )


Record: TypeAlias = dict[str, Any]
"""`Any` as in `pymongo`: what a field holds is the business of the module that wrote it."""
Collection: TypeAlias = AsyncCollection[Record]
MAX_BYTES = 16 << 20
"""About how much one read brings into memory."""
PATIENCE_S = 0.5
"""Seconds that a change which is written down is left to the process that does it."""
MARK = "store"
"""The `_id` of the only record of STORE: application, layout, generation, facts."""
_SEPARATOR = "\x01"
_ESCAPE = "\x02"
P = ParamSpec("P")
T = TypeVar("T")


def record_id(*parts: str) -> str:
    """Return the `_id` of a record: the workspace first, then what shows it from others there.

    Keys are in the order of their parts, whatever characters those hold.
    """
    return _SEPARATOR.join(
        part.replace(_ESCAPE, _ESCAPE * 2).replace(_SEPARATOR, _ESCAPE + _SEPARATOR)
        for part in parts
    )


def ids_within(*parts: str) -> Record:
    """Return the condition on the `_id` of all records whose keys begin with these parts."""
    return {"$gte": record_id(*parts, ""), "$lt": record_id(*parts) + _ESCAPE}


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a server can do that the store does without where it cannot."""

    joins_in_groups: bool = True
    """Whether `$group` takes `$concat` as its key; else sums are made here."""


class Database:
    """The collections, and how long calls to them are made."""

    def __init__(
        self, database: AsyncDatabase[Record], where: str, client: AsyncMongoClient[Record]
    ) -> None:
        self.database = database
        self.where = where
        self.mark = database["STORE"]
        self.log = database["TOOL_EXECUTION_LOG"]
        self.heads = database["LOG_HEADS"]
        """One record for each workspace; see `mongo.mongodb.events`."""
        self.state = database["COMMAND_STATE"]
        self.schemas = database["INPUT_SCHEMAS"]
        self.cursors = database["CURSORS"]
        """One record for each workspace and generation; see `mongo.mongodb.knowledge`."""
        self.rows = database["KNOWLEDGE"]
        self.patterns = database["REFLECTION_PATTERNS"]
        """Rows of the kind `pattern`."""
        self.counters = database["TOOL_STATISTICS"]
        self.journal = database["JOURNAL"]
        """Large commits, in pieces, until they are applied."""
        self.leases = database["LEASES"]
        self.keys, self.audit = database["KEYS"], database["AUDIT"]
        self.abilities = Abilities()
        self._client = client
        self._is_closed = False
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @contextmanager
    def guard_call(self) -> Iterator[None]:
        """Around each call: the driver's errors become a `StoreError`, and closing waits.

        A `StoreUnavailableError` where it was closed before.
        """
        if self._is_closed and not self._running:  # else it is a part of what still runs
            raise errors.closed_error()
        self._running += 1
        self._idle.clear()
        try:
            yield
        except (driver.PyMongoError, InvalidDocument) as error:
            raise from_driver(error, self.where) from error
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()

    async def close(self) -> None:
        """Finish the calls that were begun, and let go of the server; twice does nothing."""
        self._is_closed = True
        await self._idle.wait()
        await self._client.close()


class Part:
    """Of a store in a database."""

    def __init__(self, db: Database) -> None:
        self._db = db


Own = TypeVar("Own", bound=Part)


def guard_method(
    method: Callable[Concatenate[Own, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Own, P], Coroutine[Any, Any, T]]:
    """Return a public method: it runs inside `Database.guard_call`."""

    @wraps(method)
    async def call_guarded(own: Own, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with own._db.guard_call():  # noqa: SLF001  # its own
            return await method(own, *args, **kwargs)

    return call_guarded


async def insert_records(collection: Collection, records: Sequence[Record]) -> set[int]:
    """Insert all, in any order; the places of those whose key was taken, which did nothing."""
    try:
        if records:
            await collection.insert_many(records, ordered=False)
    except driver.BulkWriteError as error:
        return _taken_places(error)
    return set()


async def write(collection: Collection, operations: Sequence[UpdateOne]) -> None:
    """Do all, in any order; those whose key was taken do nothing."""
    try:
        if operations:
            await collection.bulk_write(operations, ordered=False)
    except driver.BulkWriteError as error:
        _taken_places(error)


def _taken_places(error: driver.BulkWriteError) -> set[int]:
    """Return the places whose key is there already; raises the error where it complains of more."""
    details: Mapping[str, Any] = error.details or {}
    faults = details.get("writeErrors", [])
    is_more = any(fault.get("code") != DUPLICATE_KEY for fault in faults)
    if is_more or not faults or details.get("writeConcernErrors"):
        raise error
    return {int(each["index"]) for each in faults}


async def find_and_change(collection: Collection, which: Record, change: str) -> Record | None:
    """Return a record; apply its change when its own process was too slow."""
    seen, since = None, 0.0
    while True:
        if (row := await collection.find_one(which)) is None or change not in row:
            return row
        if row[change]["id"] != seen:
            seen, since = row[change]["id"], time.monotonic()
        if time.monotonic() - since >= PATIENCE_S:
            return row
        await asyncio.sleep(0.02)


def fenced_update(name: str, workspace: str, serial: int, update: Record) -> UpdateOne:
    """Return a change of a record that does nothing where this or a later one was made already.

    There the filter matches nothing, and the upsert fails by its key (`write` passes that over).
    """
    changed = {**update, "$set": {**update.get("$set", {}), "serial": serial}}
    which = {"_id": name, "workspace": workspace, "serial": {"$lt": serial}}
    return UpdateOne(which, changed, upsert=True)


def tool_fields(tool: ToolKey | None) -> Record:
    """Return the fields of a record that name its tool; None where it has none."""
    if tool is None:
        return {"serverName": None, "toolName": None}
    return {"serverName": tool.server_name or "", "toolName": tool.tool_name}


def tool_in(workspace: str, row: Mapping[str, Any]) -> ToolKey | None:
    """Return the tool that a record names."""
    if "toolName" not in row:
        return None
    return ToolKey(workspace, row["serverName"] or None, row["toolName"])


Kept = TypeVar("Kept", Event, Row)


async def bound_records(
    found: AsyncIterable[Record],
    made: Callable[[Record], Kept],
    limit: int,
    together: Callable[[Kept], object] | None = None,
) -> tuple[list[Kept], bool]:
    """Return what is made of records until it is much or large, and whether there is more.

    None is parted of what is `together`.
    """
    kept: list[Kept] = []
    size = 0
    async for record in found:
        each = made(record)
        is_full = len(kept) >= limit or size >= MAX_BYTES
        if is_full and not (together and kept and together(kept[-1]) == together(each)):
            return kept, True
        kept.append(each)
        size += len(each.data)
    return kept, False


def size_of(record: Record) -> int:
    """About how many bytes a record takes, or what changes one."""
    return 400 + len(record["_id"]) + len(record.get("set", record).get("data", b""))


def batch_records(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Lists of at most about 8 MiB, or of one record."""
    batch: list[Record] = []
    size = 0
    for record in records:
        more = size_of(record)
        if batch and size + more > MAX_BYTES >> 1:
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += more
    if batch:
        yield batch
