"""The store on MongoDB: leases, facts, and which generation is current."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import quote
from uuid import uuid4

from bson.codec_options import CodecOptions
from pymongo import AsyncMongoClient, ReturnDocument, UpdateOne
from pymongo import errors as driver
from pymongo.read_concern import ReadConcern
from pymongo.uri_parser import parse_uri
from pymongo.write_concern import WriteConcern

from mongo import errors
from mongo.mongodb import database
from mongo.mongodb.database import MARK, Abilities, Database, Part, Record, guard_method, write
from mongo.mongodb.events import MongoEvents
from mongo.mongodb.knowledge import BASE, MongoKnowledge, copy_base, drop_generations
from mongo.mongodb.requirements import INDEXES, ask_abilities, make_collections
from mongo.protocol import EventLog, Leases, Metadata
from mongo.records import Lease

log = logging.getLogger(__name__)


class MongoStore(Part):
    """As `mongo.protocol.Store`; made by `open_mongo_store`.

    The record of STORE names the current generation, so that a switch is one write. While another
    one is made, it names the attempt too: one that began earlier can neither go on nor switch.
    """

    name = "mongodb"

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.events: EventLog = MongoEvents(db)
        self.leases: Leases = MongoLeases(db)
        self.metadata: Metadata = MongoMetadata(db)
        self._generations: dict[int, MongoKnowledge] = {}
        self._building: dict[int, str] = {}
        self._current: MongoKnowledge | None = None
        self._switched_to = BASE

    def __repr__(self) -> str:
        return f"MongoStore({self._db.where!r})"

    @property
    def knowledge(self) -> MongoKnowledge:
        """Current generation, as of the latest `refresh`."""
        if self._current is None:
            raise errors.closed_error()
        return self._current

    counters = knowledge

    @guard_method
    async def refresh_generation(self) -> bool:
        if (mark := await self._db.mark.find_one({"_id": MARK}, {"generation": 1})) is None:
            raise errors.StoreDamagedError(
                f"the database {self._db.where} has lost its record STORE: restore a backup of it"
            )
        number = int(mark["generation"])
        if self._current is not None and self._current.generation == number:
            return False
        self._current = self._generations.setdefault(number, MongoKnowledge(self._db, number))
        for passed in [each for each in self._generations if BASE < each < number]:
            del self._generations[passed]
        return True

    @guard_method
    async def open_generation(self, number: int) -> MongoKnowledge:
        if number not in self._generations:
            attempt = None
            if number > self.knowledge.generation:
                attempt = self._building[number] = uuid4().hex
                building = {"building": {"number": number, "id": attempt}}
                await self._db.mark.update_one({"_id": MARK}, {"$set": building})
                await drop_generations(self._db, {"$gte": number})
                await copy_base(self._db, number)
            self._generations[number] = MongoKnowledge(self._db, number, attempt)
        return self._generations[number]

    @guard_method
    async def switch_generation(self, number: int, facts: Mapping[str, str]) -> None:
        switched = await self._db.mark.update_one(
            {"_id": MARK, "generation": number - 1, "building.id": self._building.get(number)},
            {
                "$set": {
                    "generation": number,
                    **{_fact_field(name): value for name, value in facts.items()},
                },
                "$unset": {"building": ""},
            },
        )
        if not switched.matched_count:
            raise errors.StoreFencedError(
                f"generation {number} cannot become current: another rebuild was faster, or has "
                "begun anew; nothing was switched"
            )
        await self.refresh_generation()
        self._switched_to = number

    async def close(self) -> None:
        # Not before: other processes answer from the former generation until they look again.
        passed, self._switched_to = self._switched_to, BASE
        try:
            if passed != BASE:
                with self._db.guard_call():
                    await drop_generations(self._db, {"$gt": BASE, "$lt": passed})
        except errors.StoreUnavailableError as error:
            log.warning("a former generation is left to the next rebuild: %s", error)
        finally:
            await self._db.close()


class MongoLeases(Part):
    """As `mongo.protocol.Leases`: a record each, changed by compare-and-set."""

    @guard_method
    async def read(self, name: str) -> Lease | None:
        row = await self._db.leases.find_one({"_id": name})
        return None if row is None or row["token"] == 0 else _lease_of(row)

    @guard_method
    async def take_lease(self, name: str, holder: str, seen: Lease | None) -> Lease | None:
        if seen is None:
            # One that no one ever held has the token 0.
            fresh = {"holder": "", "token": 0, "beat": 0, "held": False}
            operation = UpdateOne({"_id": name}, {"$setOnInsert": fresh}, upsert=True)
            await write(self._db.leases, [operation])
            which: Record = {"_id": name, "token": 0}
        else:
            which = {**_holding_filter(seen), "beat": seen.beat, "held": seen.held}
        mine = Lease(name, holder, 1 if seen is None else seen.token + 1)
        taken = await self._db.leases.update_one(
            which, {"$set": {"holder": holder, "token": mine.token, "beat": 0, "held": True}}
        )
        return mine if taken.matched_count else None

    @guard_method
    async def renew_lease(self, lease: Lease) -> Lease | None:
        row = await self._db.leases.find_one_and_update(
            _holding_filter(lease), {"$inc": {"beat": 1}}, return_document=ReturnDocument.AFTER
        )
        return None if row is None else _lease_of(row)

    @guard_method
    async def give_back(self, lease: Lease) -> None:
        await self._db.leases.update_one(_holding_filter(lease), {"$set": {"held": False}})


class MongoMetadata(Part):
    """As `mongo.protocol.Metadata`: fields of the record of STORE."""

    @guard_method
    async def get(self, name: str) -> str | None:
        mark = await self._db.mark.find_one({"_id": MARK}, {"facts": 1}) or {}
        return cast(
            "str | None", mark.get("facts", {}).get(_fact_field(name).removeprefix("facts."))
        )

    @guard_method
    async def put(self, name: str, value: str) -> None:
        await self._db.mark.update_one({"_id": MARK}, {"$set": {_fact_field(name): value}})

    @guard_method
    async def keep_fact(self, name: str, value: str) -> str:
        field = _fact_field(name)
        await self._db.mark.update_one({"_id": MARK, field: None}, {"$set": {field: value}})
        return await self.get(name) or ""


def _holding_filter(lease: Lease) -> Record:
    return {"_id": lease.name, "token": lease.token, "held": True}  # a token has one holder


def _lease_of(row: Record) -> Lease:
    return Lease(row["_id"], row["holder"], row["token"], row["beat"], bool(row["held"]))


def _fact_field(name: str) -> str:
    """Return the path of a fact; names of fields hold neither dots nor dollars."""
    return f"facts.{quote(name, safe='').replace('.', '%2E')}"


LAYOUT = 4
"""Of the database; there are no migrations before the first release."""
_REQUIREMENTS = 1
"""Grows when more is asked of a server than before, so that each is asked again."""
_APPLICATION = "aftercall"
_PORT = 27017


@dataclass(frozen=True, slots=True)
class MongoOptions:
    """Where MongoDB is, and how it is spoken to."""

    uri: str = field(repr=False)
    """With user and password, so it is never shown."""
    database: str = "aftercall"
    pool_size: int = 32
    connect_timeout_s: float = 5.0
    timeout_s: float = 20.0
    """Seconds that a server which was reached may take for one operation."""

    @property
    def where(self) -> str:
        """Servers and the database, for messages: without user, password and options.

        A `StoreError` when the address is invalid.
        """
        try:
            servers = _server_names(self.uri)
        except (driver.PyMongoError, TypeError, ValueError) as error:
            # The driver's own words may repeat the address.
            raise errors.StoreError(
                f"the address of MongoDB cannot be read ({type(error).__name__}): write it as "
                "mongodb://user:password@host:27017/ (AFTERCALL_MONGO_URI), with characters "
                "such as @ and : in user and password escaped (%40, %3A), and with options as the "
                "driver takes them"
            ) from None
        return f"{servers}/{self.database}"


async def open_mongo_store(options: MongoOptions) -> MongoStore:
    """Open the store as `open_database` does, making what is missing; the caller closes it."""
    db = await open_database(options)
    try:
        store = MongoStore(db)
        await store.refresh_generation()
    except BaseException:
        await db.close()
        raise
    return store


async def open_database(options: MongoOptions) -> Database:
    """Open the database, making what is missing; the caller closes it.

    Raises:
        StoreUnavailableError: MongoDB does not answer, or takes no writes.
        StoreTooNewError: the database was written by a newer version; it was not changed.
        StoreDamagedError: the database holds collections of our names that are not ours, or of an
            older version; it was not changed.
        StoreError: it refuses the user, the address is invalid, or it cannot do what is needed.
    """
    where = options.where
    client = _make_client(options, where)
    database = client.get_database(
        options.database,
        codec_options=CodecOptions(tz_aware=True),
        write_concern=WriteConcern("majority", j=True),
        read_concern=ReadConcern("majority"),
    )
    db = Database(database, where, client)
    try:
        with db.guard_call():
            await _check_layout(db)
            await make_collections(db)
            await _ask_server(db)
    except BaseException:
        await db.close()
        raise
    return db


async def _check_layout(db: Database) -> None:
    name = db.database.name
    mark = await db.mark.find_one({"_id": MARK})
    if mark is None:
        taken = {*INDEXES, db.mark.name}.intersection(await db.database.list_collection_names())
        # Looked for again: another process may have made it, and collections, in between.
        mark = await db.mark.find_one({"_id": MARK})
        if mark is None and taken:
            raise errors.StoreDamagedError(
                f"the database {name} holds collections of our names ({', '.join(sorted(taken))}) "
                "that are not Aftercall's; it was left as it is. Name another database "
                "(AFTERCALL_MONGO_DATABASE), or restore a backup"
            )
    if mark is None:
        mark = {
            "_id": MARK, "application": _APPLICATION, "layout": LAYOUT, "generation": 1, "facts": {}
        }  # fmt: skip
        try:
            await db.mark.insert_one(mark)
        except driver.DuplicateKeyError:  # another process was faster
            mark = await db.mark.find_one({"_id": MARK}) or {}
    if mark.get("application") != _APPLICATION:
        raise errors.StoreDamagedError(
            f"the database {name} has a collection STORE that is not Aftercall's; it was left as "
            "it is. Name another database (AFTERCALL_MONGO_DATABASE)"
        )
    layout = mark.get("layout", 0)
    if layout > LAYOUT:
        raise errors.StoreTooNewError(
            f"the database {name} was written by a newer version of Aftercall (layout {layout}, "
            f"this one has {LAYOUT}); it was left as it is. Upgrade Aftercall, or name another "
            "database (AFTERCALL_MONGO_DATABASE)"
        )
    if layout < LAYOUT:
        raise errors.StoreDamagedError(
            f"the database {name} has layout {layout}, this version of Aftercall has {LAYOUT}, and "
            "there was no release between them: it can neither be read nor imported here. Go on "
            "with the version that wrote it, or name another database (AFTERCALL_MONGO_DATABASE)"
        )


async def _ask_server(db: Database) -> None:
    """Try what the server can do, unless this version of it was tried before."""
    build = await db.database.command("buildInfo")
    tried = {"version": str(build.get("version")), "requirements": _REQUIREMENTS}
    mark = await db.mark.find_one({"_id": MARK}, {"server": 1}) or {}
    known = mark.get("server", {})
    if {name: known.get(name) for name in tried} == tried:
        db.abilities = Abilities(joins_in_groups=known["joins_in_groups"])
        return
    db.abilities = await ask_abilities(db)
    noted = {**tried, "joins_in_groups": db.abilities.joins_in_groups}
    await db.mark.update_one({"_id": MARK}, {"$set": {"server": noted}})


def _make_client(options: MongoOptions, where: str) -> AsyncMongoClient[Record]:
    try:
        return AsyncMongoClient(
            options.uri,
            appname=_APPLICATION,
            maxPoolSize=options.pool_size,
            serverSelectionTimeoutMS=round(options.connect_timeout_s * 1000),
            connectTimeoutMS=round(options.connect_timeout_s * 1000),
            # Not the driver's `timeoutMS`: with it, one that is away would be waited for as long as
            # one that is slow.
            socketTimeoutMS=round(options.timeout_s * 1000),
            waitQueueTimeoutMS=round(options.timeout_s * 1000),
            retryWrites=True,
            retryReads=True,
        )
    except driver.ConfigurationError as error:
        raise database.from_driver(error, where) from None


def _server_names(uri: str) -> str:
    if uri.startswith("mongodb+srv://"):
        # Asking the name server would wait for it; the name alone states enough.
        return uri.removeprefix("mongodb+srv://").split("/")[0].split("?")[0].rpartition("@")[2]
    nodes: list[tuple[str, int | None]] = parse_uri(uri, warn=False)["nodelist"]
    return ",".join(
        host if host.endswith(".sock") else f"{host}:{port or _PORT}" for host, port in nodes
    )
