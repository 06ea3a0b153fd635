"""The log store and the control store: opened, waited for, closed.

Commands that need no vectors import this without the model and the index.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from aftercall.explain import how_to_install
from mongo.errors import StoreError
from mongo.protocol import ControlStore, Store
from mongo.sqlite.control import open_sqlite_control
from mongo.sqlite.store import open_sqlite_store
from service.lifecycle import OnPhase, when_it_answers
from service.settings import Settings

if TYPE_CHECKING:
    from mongo.mongodb.store import MongoOptions


class _Closable(Protocol):
    async def close(self) -> None: ...


ClosableT = TypeVar("ClosableT", bound=_Closable)


def opened_store(
    settings: Settings,
    on_phase: OnPhase = lambda _: None,
    *,
    beside: bool = False,
    patience_s: float | None = None,
) -> AbstractAsyncContextManager[Store]:
    """Yield the log store until the block ends; a server that is away is waited for.

    It is MongoDB if its address is set, else the embedded store, which a running service may have
    open too (`beside`). A server is waited for `patience_s` seconds; None: for ever.
    """
    on_phase("opening its log store")
    return _open_patiently(
        partial(_open_store, settings, beside=beside), settings, on_phase, patience_s
    )


def opened_control(
    settings: Settings, on_phase: OnPhase = lambda _: None, *, patience_s: float | None = None
) -> AbstractAsyncContextManager[ControlStore]:
    """Yield keys and audit until the block ends; a running service may have them open, too."""
    on_phase("opening its keys")
    return _open_patiently(partial(_open_control, settings), settings, on_phase, patience_s)


@asynccontextmanager
async def _open_patiently(
    opened: Callable[[], Awaitable[ClosableT]],
    settings: Settings,
    on_phase: OnPhase,
    patience_s: float | None,
) -> AsyncIterator[ClosableT]:
    """Yield what is opened in the log's server or folder; a server is waited for."""
    where = f"the log store at {where_store_is(settings)}"
    patience_s = 0 if settings.mongo.uri is None else patience_s
    room = await when_it_answers(opened, where, on_phase=on_phase, patience_s=patience_s)
    async with closed_after(room):
        yield room


@asynccontextmanager
async def closed_after(room: ClosableT) -> AsyncIterator[ClosableT]:
    """Yield what is open, and close it when the block ends."""
    try:
        yield room
    finally:
        await room.close()


async def _open_control(settings: Settings) -> ControlStore:
    if settings.mongo.uri is None:
        return await open_sqlite_control(settings.data.dir)
    options = _mongo_options(settings)
    from mongo.mongodb.control import open_mongo_control  # noqa: PLC0415  # the driver is an extra

    return await open_mongo_control(options)


async def _open_store(settings: Settings, *, beside: bool) -> Store:
    if settings.mongo.uri is None:
        return await open_sqlite_store(settings.data.dir, beside=beside)
    options = _mongo_options(settings)
    from mongo.mongodb.store import open_mongo_store  # noqa: PLC0415  # the driver is an extra

    return await open_mongo_store(options)


def _mongo_options(settings: Settings) -> "MongoOptions":
    # The driver is an extra, and takes a quarter of a second to import.
    try:
        from mongo.mongodb.store import MongoOptions  # noqa: PLC0415
    except ImportError as error:
        raise StoreError(
            f"MongoDB needs what is not installed ({error.name}): "
            f"{how_to_install('servers', of_service=True)}, or unset AFTERCALL_MONGO_URI"
        ) from error
    uri, others = settings.mongo.uri, settings.mongo.model_dump(exclude={"uri"})
    return MongoOptions(uri="" if uri is None else uri.get_secret_value(), **others)


def where_store_is(settings: Settings) -> str:
    """Return the log store's address for messages, without credentials.

    Hosts and ports, or the folder.
    """
    if settings.mongo.uri is None:
        return str(settings.data.dir)
    # From the last @ on: a password may hold an unescaped slash.
    rest = settings.mongo.uri.get_secret_value().split("://", 1)[-1].rsplit("@", 1)[-1]
    return rest.split("/", 1)[0].split("?", 1)[0]
