"""What settings name, opened: the log store; and where the vectors are."""

from urllib.parse import urlsplit

from mongo.errors import StoreError
from mongo.protocol import LogStore
from mongo.sqlite import open_sqlite_store
from retrieval.index.opening import EdgePlace, IndexPlace, QdrantPlace
from service.settings import Settings

LOCAL_QDRANT = "local:"
"""What an address begins with that names a folder of the client's own slow store."""


async def open_store(settings: Settings, *, beside: bool = False) -> LogStore:
    """Open the log store that the settings name; the caller closes it.

    Args:
        settings: MongoDB where an address of one is set, else the embedded store.
        beside: whether a running service may have the embedded store open; it goes on.

    Raises:
        StoreInUseError: a service has the embedded store open, and `beside` is false.
        StoreUnavailableError: MongoDB does not answer.
        StoreError: what else keeps it from being opened, with the cure.
    """
    if settings.mongo.uri is None:
        return await open_sqlite_store(settings.data.dir, beside=beside)
    # The driver is an extra, and takes a quarter of a second to import.
    try:
        from mongo.mongodb.opening import MongoOptions, open_mongo_store  # noqa: PLC0415
    except ImportError as error:
        raise StoreError(
            f"MongoDB needs what is not installed ({error.name}): run "
            "pip install 'aftercall-service[servers]', or unset AFTERCALL_MONGO_URI"
        ) from error

    chosen = settings.mongo
    return await open_mongo_store(
        MongoOptions(
            uri=settings.mongo.uri.get_secret_value(),
            database=chosen.database,
            pool_size=chosen.pool_size,
            connect_timeout_s=chosen.connect_timeout_s,
            timeout_s=chosen.timeout_s,
            analytics=chosen.analytics,
            retention_days=settings.retention.days,
        )
    )


def index_place(settings: Settings) -> IndexPlace:
    """Where the vectors are: on a Qdrant server where one is named, else in the data folder."""
    chosen = settings.qdrant
    if chosen.url is None:
        return EdgePlace(settings.data.dir)
    key = chosen.api_key
    return QdrantPlace(
        url=chosen.url,
        api_key=None if key is None else key.get_secret_value(),
        grpc_port=chosen.grpc_port,
        prefix=chosen.prefix,
        shards=chosen.shards,
        replicas=chosen.replicas,
        write_consistency=chosen.write_consistency,
        timeout_s=chosen.timeout_s,
    )


def is_remote(settings: Settings) -> bool:
    """Whether any of the stores is a server, which may be away for a while."""
    return settings.mongo.uri is not None or settings.qdrant.url is not None


def where_store_is(settings: Settings) -> str:
    """The log store's address for messages, without credentials: hosts and ports, or the folder."""
    if settings.mongo.uri is None:
        return str(settings.data.dir)
    # From behind the last @: a password may hold a slash that somebody forgot to escape.
    rest = settings.mongo.uri.get_secret_value().split("://", 1)[-1].rsplit("@", 1)[-1]
    return rest.split("/", 1)[0].split("?", 1)[0]


def where_index_is(settings: Settings) -> str:
    """The vector index's address for messages, without credentials."""
    url = settings.qdrant.url
    if url is None:
        return str(settings.data.dir)
    if url.startswith(LOCAL_QDRANT):
        return url.removeprefix(LOCAL_QDRANT)
    parts = urlsplit(url if "://" in url else f"//{url}")
    # It is asked over gRPC.
    return f"{parts.hostname or 'an address without a host'}:{settings.qdrant.grpc_port}"
