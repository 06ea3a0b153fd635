"""The embedded log store: one SQLite file, one writer with group commit, readers beside it."""

from mongo.sqlite.opening import FILE_NAME, open_sqlite_store
from mongo.sqlite.store import SqliteLogStore

__all__ = ["FILE_NAME", "SqliteLogStore", "open_sqlite_store"]
