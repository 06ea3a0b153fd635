"""Opening a MongoDB log store: the client, its concerns, checks, indexes."""

import sys
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal

from bson.codec_options import CodecOptions
from pymongo import AsyncMongoClient
from pymongo.errors import ConfigurationError, PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import (
    Nearest,
    Primary,
    PrimaryPreferred,
    Secondary,
    SecondaryPreferred,
)
from pymongo.uri_parser import parse_uri
from pymongo.write_concern import WriteConcern

from mongo.errors import StoreError
from mongo.mongodb import faults, layout, together
from mongo.mongodb.collections import Collections, Record
from mongo.mongodb.store import MongoLogStore

ReadPreference = Literal[
    "primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"
]

_READ_PREFERENCES = {
    "primary": Primary,
    "primaryPreferred": PrimaryPreferred,
    "secondary": Secondary,
    "secondaryPreferred": SecondaryPreferred,
    "nearest": Nearest,
}

_PORT = 27017


@dataclass(frozen=True, slots=True)
class MongoOptions:
    """Where MongoDB is, and how it is spoken to."""

    uri: str = field(repr=False)
    """With user and password, so it is never shown."""
    database: str = "aftercall"
    pool_size: int = 32
    connect_timeout_s: float = 5.0
    """Seconds until a server counts as away."""
    timeout_s: float = 20.0
    """Seconds that a server which was reached may take for one operation."""
    analytics: ReadPreference = "secondaryPreferred"
    """For what streams over the log."""
    retention_days: float = 90.0
    """Days until an execution that was learned from is deleted by the server; 0 for never."""

    @property
    def where(self) -> str:
        """The servers and the database, for messages: without user, password and options.

        Raises:
            StoreError: when the address is none.
        """
        try:
            servers = _servers(self.uri)
        except (PyMongoError, TypeError, ValueError) as error:
            # The driver's own words may repeat the address.
            raise StoreError(
                f"the address of MongoDB cannot be read ({type(error).__name__}): write it as "
                "mongodb://user:password@host:27017/ (AFTERCALL_MONGO_URI), with characters "
                "such as @ and : in user and password escaped (%40, %3A), and with options as the "
                "driver takes them"
            ) from None
        return f"{servers}/{self.database}"


async def open_mongo_store(options: MongoOptions) -> MongoLogStore:
    """Open the store, making what is missing in the database; the caller closes it.

    Raises:
        StoreUnavailableError: MongoDB does not answer, or takes no writes.
        StoreTooNewError: the database was written by a newer version; it was not changed.
        StoreDamagedError: the database holds collections of our names that are not ours.
        StoreError: it refuses the user, or the address is none.
    """
    where = options.where
    client = _client(options, where)
    try:
        with faults.translated(where):
            database = client.get_database(
                options.database,
                codec_options=CodecOptions(tz_aware=True),
                write_concern=WriteConcern("majority", j=True),
                read_concern=ReadConcern("majority"),
            )
            db = Collections(database, analytics=_READ_PREFERENCES[options.analytics]())
            state = await layout.prepare(db, options.retention_days)
            await together.complete(db)
    except BaseException:
        await client.close()
        raise
    return MongoLogStore(db.of_generation(state.generation), where, client)


def _client(options: MongoOptions, where: str) -> AsyncMongoClient[Record]:
    extra: dict[str, Any] = {"compressors": "zstd"} if _has_zstd() else {}
    try:
        return AsyncMongoClient(
            options.uri,
            appname="aftercall",
            maxPoolSize=options.pool_size,
            serverSelectionTimeoutMS=round(options.connect_timeout_s * 1000),
            connectTimeoutMS=round(options.connect_timeout_s * 1000),
            # Not the driver's `timeoutMS`: with it, one that is away would be waited for as long as
            # one that is slow.
            socketTimeoutMS=round(options.timeout_s * 1000),
            waitQueueTimeoutMS=round(options.timeout_s * 1000),
            retryWrites=True,
            retryReads=True,
            **extra,
        )
    except ConfigurationError as error:
        raise faults.from_driver(error, where) from None


def _has_zstd() -> bool:
    """Whether the driver can compress with zstd; it warns when it is asked and cannot."""
    module = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _servers(uri: str) -> str:
    if uri.startswith("mongodb+srv://"):
        # Asking the name server would wait for it; the name alone says enough.
        address = uri.removeprefix("mongodb+srv://").split("/")[0].split("?")[0]
        return address.rpartition("@")[2]
    nodes: list[tuple[str, int | None]] = parse_uri(uri, warn=False)["nodelist"]
    return ",".join(
        host if host.endswith(".sock") else f"{host}:{port or _PORT}" for host, port in nodes
    )
