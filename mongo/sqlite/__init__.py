"""The embedded store: SQLite files in one folder."""

from mongo.sqlite.store import FILE_NAME, SqliteStore, open_sqlite_store

__all__ = ["FILE_NAME", "SqliteStore", "open_sqlite_store"]
