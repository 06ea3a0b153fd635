"""What MongoDB and its driver say, in the store's own errors, each with its cure.

Messages name the server and a code, never credentials, and never what a record holds: the server
puts values into its own messages (such as those about duplicate keys), so those stay out.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from bson.errors import InvalidDocument
from pymongo.errors import (
    BulkWriteError,
    ConfigurationError,
    ConnectionFailure,
    DocumentTooLarge,
    InvalidOperation,
    NotPrimaryError,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
    WriteConcernError,
)

from mongo.errors import StoreError, StoreFullError, StoreReadOnlyError, StoreUnavailableError

DUPLICATE_KEY = 11000

_FULL = frozenset((14031,))  # OutOfDiskSpace
_TOO_LARGE = frozenset((10334, 17280, 17419, 17420))  # BSONObjectTooLarge, and after an update
_UNAUTHENTICATED = frozenset((18, 8000))
_UNAUTHORISED = frozenset((13,))
_READ_ONLY = frozenset((10107, 13435, 13436, 10058, 166))  # not the primary; IllegalOperation
_AWAY = frozenset(
    (6, 7, 24, 50, 64, 89, 91, 112, 133, 134, 189, 202, 262, 317, 358, 9001, 11600, 11602)
)  # host not reachable, interrupted, stepping down, shutting down, too slow

_FULL_TEXTS = ("no space left", "disk is full", "out of disk space")
_READ_ONLY_TEXTS = ("readonly database", "read-only", "read only", "readonly mode")


def closed() -> StoreUnavailableError:
    """The store was closed before this call."""
    return StoreUnavailableError("the log store is closed: open it again before calling it")


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Raise the store's own errors for the driver's; `where` names the servers and the database."""
    try:
        yield
    except (PyMongoError, InvalidDocument) as error:
        raise from_driver(error, where) from error


def from_driver(error: PyMongoError | InvalidDocument, where: str) -> StoreError:
    """The store's error for one of the driver's; the caller raises it `from` the original."""
    if isinstance(error, BulkWriteError):
        return _from_bulk(error, where)
    if isinstance(error, ConnectionFailure) or (
        isinstance(error, PyMongoError)
        and error.timeout
        and not isinstance(error, WriteConcernError)
    ):
        return _from_connection(error, where)
    if isinstance(error, DocumentTooLarge):
        return _too_large(where)
    if isinstance(error, OperationFailure):
        return from_code(error.code, str(error), where)
    if isinstance(error, InvalidOperation):
        return closed()
    if isinstance(error, ConfigurationError):
        return StoreError(
            f"the options for MongoDB at {where} do not fit it ({type(error).__name__}): look at "
            "the address (AFTERCALL_MONGO_URI)"
        )
    if isinstance(error, InvalidDocument):
        return StoreError(
            "a record holds what MongoDB cannot keep: nothing of this call was stored. Send it "
            "without that value"
        )
    return StoreError(f"MongoDB at {where}: {type(error).__name__}; look at the server's log")


def _from_connection(error: PyMongoError, where: str) -> StoreUnavailableError:
    if isinstance(error, NotPrimaryError):
        code = error.details.get("code") if isinstance(error.details, Mapping) else None
        return _read_only(where) if code in (None, *_READ_ONLY) else _away(where, "it steps down")
    if isinstance(error, ServerSelectionTimeoutError):
        return _away(where, "no server that takes writes answers")
    if error.timeout:
        return _away(where, "it took too long (AFTERCALL_MONGO_TIMEOUT_S)")
    return _away(where, "the connection was lost or refused")


def from_code(code: int | None, text: str, where: str) -> StoreError:
    """The store's error for a code of the server; `text` is looked at, never shown."""
    lowered = text.lower()
    if code in _FULL or any(each in lowered for each in _FULL_TEXTS):
        return StoreFullError(
            f"no space left for MongoDB at {where}: what this call was to store may be missing, "
            "reading goes on. Free space on the server and send the call again"
        )
    if code in _READ_ONLY or any(each in lowered for each in _READ_ONLY_TEXTS):
        return _read_only(where)
    if code in _UNAUTHENTICATED:
        return StoreError(
            f"MongoDB at {where} refuses the user or the password: correct them in the address "
            "(AFTERCALL_MONGO_URI), with authSource where the user is of another database"
        )
    if code in _UNAUTHORISED:
        return StoreError(
            f"the user may not do this at MongoDB at {where}: give it the role readWrite on the "
            "database"
        )
    if code in _TOO_LARGE:
        return _too_large(where)
    if code in _AWAY:
        return _away(where, f"it is busy or changes its state (code {code})")
    return StoreError(
        f"MongoDB at {where} refused an operation (code {code}): look at the server's log, and "
        "report this if it repeats"
    )


def only_duplicates(error: BulkWriteError) -> bool:
    """Whether all that a bulk write complains of is that a key is there already."""
    details: Mapping[str, Any] = error.details or {}
    if details.get("writeConcernErrors"):
        return False
    faults = details.get("writeErrors", [])
    return bool(faults) and all(fault.get("code") == DUPLICATE_KEY for fault in faults)


def _from_bulk(error: BulkWriteError, where: str) -> StoreError:
    details: Mapping[str, Any] = error.details or {}
    for fault in details.get("writeErrors", []):
        if fault.get("code") != DUPLICATE_KEY:
            return from_code(fault.get("code"), str(fault.get("errmsg", "")), where)
    for fault in details.get("writeConcernErrors", []):
        return from_code(fault.get("code", 64), "", where)
    return from_code(DUPLICATE_KEY, "", where)


def _away(where: str, why: str) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"MongoDB at {where} does not answer ({why}): see that it runs and that this machine "
        "reaches it; the call can be sent again"
    )


def _read_only(where: str) -> StoreReadOnlyError:
    return StoreReadOnlyError(
        f"MongoDB at {where} takes no writes at the moment (no primary, or read-only): name all "
        "members of its replica set in the address, or see that it has a primary; then send the "
        "call again"
    )


def _too_large(where: str) -> StoreError:
    return StoreError(
        f"a record is too large for MongoDB at {where} (16 MiB): send less in one call, or leave "
        "large results out"
    )
