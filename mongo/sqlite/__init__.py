"""The embedded store: SQLite files in one folder."""
