"""The store on MongoDB: leases, facts, and which generation is current."""

from collections.abc import Mapping
from urllib.parse import quote
from uuid import uuid4

from pymongo import ReturnDocument, UpdateOne

from mongo.errors import StoreDamagedError, StoreFencedError
from mongo.mongodb import faults
from mongo.mongodb.database import MARK, Database, Record, guarded, write
from mongo.mongodb.events import MongoEvents
from mongo.mongodb.knowledge import BASE, MongoKnowledge, copy_base, drop_generations
from mongo.protocol import EventLog, Leases, Metadata
from mongo.records import Lease


class MongoStore:
    """As `mongo.protocol.Store`; made by `open_mongo_store`.

    The record of STORE names the current generation, so that a switch is one write. While another
    one is made, it names the attempt too: one that began earlier can neither go on nor switch.
    """

    name = "mongodb"

    def __init__(self, db: Database) -> None:
        self._db = db
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
        """The current generation, as of the latest `refresh`."""
        if self._current is None:
            raise faults.closed()
        return self._current

    counters = knowledge

    @guarded
    async def refresh(self) -> bool:  # noqa: D102
        return await self._refresh()

    async def _refresh(self) -> bool:
        mark = await self._db.mark.find_one({"_id": MARK}, {"generation": 1})
        if mark is None:
            raise StoreDamagedError(
                f"the database {self._db.where} has lost its record STORE: restore a backup of it"
            )
        number = int(mark["generation"])
        if self._current is not None and self._current.generation == number:
            return False
        self._current = self._generations.setdefault(number, MongoKnowledge(self._db, number))
        for passed in [each for each in self._generations if BASE < each < number]:
            del self._generations[passed]
        return True

    @guarded
    async def open_generation(self, number: int) -> MongoKnowledge:  # noqa: D102
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

    @guarded
    async def switch(self, number: int, facts: Mapping[str, str]) -> None:  # noqa: D102
        switched = await self._db.mark.update_one(
            {
                "_id": MARK,
                "generation": number - 1,
                "building.id": self._building.get(number),
            },
            {
                "$set": {
                    "generation": number,
                    **{_field(name): value for name, value in facts.items()},
                },
                "$unset": {"building": ""},
            },
        )
        if not switched.matched_count:
            raise StoreFencedError(
                f"generation {number} cannot become current: another rebuild was faster, or has "
                "begun anew; nothing was switched"
            )
        await self._refresh()
        self._switched_to = number

    async def close(self) -> None:  # noqa: D102
        # Not before: other processes answer from the former generation until they look again.
        passed, self._switched_to = self._switched_to, BASE
        if passed != BASE:
            await drop_generations(self._db, {"$gt": BASE, "$lt": passed})
        await self._db.close()


class MongoLeases:
    """As `mongo.protocol.Leases`: a record each, changed by compare-and-set."""

    def __init__(self, db: Database) -> None:
        self._db = db

    @guarded
    async def read(self, name: str) -> Lease | None:  # noqa: D102
        row = await self._db.leases.find_one({"_id": name})
        return None if row is None or row["token"] == 0 else _lease(row)

    @guarded
    async def take(self, name: str, holder: str, seen: Lease | None) -> Lease | None:  # noqa: D102
        if seen is None:
            # One that nobody ever held has the token 0.
            fresh = {"holder": "", "token": 0, "beat": 0, "held": False}
            operation = UpdateOne({"_id": name}, {"$setOnInsert": fresh}, upsert=True)
            await write(self._db.leases, [operation])
            which: Record = {"_id": name, "token": 0}
        else:
            which = {**_holding(seen), "beat": seen.beat, "held": seen.held}
        mine = Lease(name, holder, 1 if seen is None else seen.token + 1)
        taken = await self._db.leases.update_one(
            which, {"$set": {"holder": holder, "token": mine.token, "beat": 0, "held": True}}
        )
        return mine if taken.matched_count else None

    @guarded
    async def beat(self, lease: Lease) -> Lease | None:  # noqa: D102
        row = await self._db.leases.find_one_and_update(
            _holding(lease), {"$inc": {"beat": 1}}, return_document=ReturnDocument.AFTER
        )
        return None if row is None else _lease(row)

    @guarded
    async def give_back(self, lease: Lease) -> None:  # noqa: D102
        await self._db.leases.update_one(_holding(lease), {"$set": {"held": False}})


class MongoMetadata:
    """As `mongo.protocol.Metadata`: fields of the record of STORE."""

    def __init__(self, db: Database) -> None:
        self._db = db

    @guarded
    async def get(self, name: str) -> str | None:  # noqa: D102
        mark = await self._db.mark.find_one({"_id": MARK}, {"facts": 1}) or {}
        value: str | None = mark.get("facts", {}).get(_field(name).removeprefix("facts."))
        return value

    @guarded
    async def put(self, name: str, value: str) -> None:  # noqa: D102
        await self._db.mark.update_one({"_id": MARK}, {"$set": {_field(name): value}})


def _holding(lease: Lease) -> Record:
    """The filter of a lease's record as long as it is the holder's."""
    return {"_id": lease.name, "holder": lease.holder, "token": lease.token, "held": True}


def _lease(row: Record) -> Lease:
    return Lease(row["_id"], row["holder"], row["token"], row["beat"], bool(row["held"]))


def _field(name: str) -> str:
    """The path of a fact; names of fields hold neither dots nor dollars."""
    return f"facts.{quote(name, safe='').replace('.', '%2E')}"
