"""Statements about leases: who may do a thing at the moment, over all processes."""

import sqlite3
from collections.abc import Callable
from typing import TypeVar

from mongo.errors import StoreFencedError
from mongo.records import Lease

Result = TypeVar("Result")

_GET = "SELECT name, holder, token, beat, held FROM leases WHERE name = ?"

_TAKE_NEW = """
INSERT INTO leases (name, holder, token, beat, held) VALUES (?, ?, 1, 0, TRUE)
ON CONFLICT (name) DO NOTHING
"""

_TAKE_OVER = """
UPDATE leases SET holder = ?, token = token + 1, beat = 0, held = TRUE
WHERE name = ? AND holder = ? AND token = ? AND beat = ? AND held = ?
"""

_BEAT = """
UPDATE leases SET beat = beat + 1 WHERE name = ? AND holder = ? AND token = ? AND held
"""

_GIVE_BACK = "UPDATE leases SET held = FALSE WHERE name = ? AND holder = ? AND token = ?"


def read(connection: sqlite3.Connection, name: str) -> Lease | None:
    """The lease as it is; None when nobody ever held it."""
    row = connection.execute(_GET, (name,)).fetchone()
    if row is None:
        return None
    name, holder, token, beat, held = row
    return Lease(name, holder, token, beat, held=bool(held))


def take(
    connection: sqlite3.Connection, name: str, holder: str, seen: Lease | None
) -> Lease | None:
    """Take a lease that is still as it was seen; None when it is not."""
    if seen is None:
        taken = connection.execute(_TAKE_NEW, (name, holder)).rowcount
    else:
        before = (seen.holder, seen.token, seen.beat, seen.held)
        taken = connection.execute(_TAKE_OVER, (holder, name, *before)).rowcount
    return read(connection, name) if taken else None


def beat(connection: sqlite3.Connection, lease: Lease) -> Lease | None:
    """Say that the holder lives; None when it is the holder no more."""
    changed = connection.execute(_BEAT, (lease.name, lease.holder, lease.token)).rowcount
    return read(connection, lease.name) if changed else None


def give_back(connection: sqlite3.Connection, lease: Lease) -> None:
    """Let others have it; nothing when it is another's."""
    connection.execute(_GIVE_BACK, (lease.name, lease.holder, lease.token))


def check(connection: sqlite3.Connection, lease: Lease) -> None:
    """See that a lease is still held by who took it.

    Raises:
        StoreFencedError: it is not.
    """
    held = read(connection, lease.name)
    if held is None or not held.held or (held.holder, held.token) != (lease.holder, lease.token):
        raise StoreFencedError(
            f"the lease {lease.name} is held no more: take it again, read anew and do it again"
        )


def fenced(
    lease: Lease | None, operation: Callable[[sqlite3.Connection], Result]
) -> Callable[[sqlite3.Connection], Result]:
    """An operation that is done only while a lease is held; always, where none is given."""
    if lease is None:
        return operation

    def checked(connection: sqlite3.Connection) -> Result:
        check(connection, lease)
        return operation(connection)

    return checked
