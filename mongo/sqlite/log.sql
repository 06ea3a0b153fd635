-- The log, the state of commands, leases and metadata. `server` is '' for a tool without a server,
-- `tool` for what is about none: NULL would not be found in a key. `received` is microseconds since 1970.

CREATE TABLE events (
    workspace TEXT NOT NULL, position INTEGER NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL,
    server TEXT NOT NULL, tool TEXT NOT NULL, session TEXT, principal TEXT NOT NULL,
    received INTEGER NOT NULL, content_hash TEXT NOT NULL, schema_hash TEXT, data BLOB NOT NULL
);

CREATE UNIQUE INDEX events_in_order ON events (workspace, position);

CREATE UNIQUE INDEX events_by_id ON events (workspace, kind, id);

CREATE INDEX events_of_session ON events (workspace, kind, session, position)
WHERE session IS NOT NULL;

CREATE INDEX events_of_tool ON events (workspace, kind, server, tool, position)
WHERE kind <> 'execution';

CREATE TABLE heads (workspace TEXT PRIMARY KEY, position INTEGER, received INTEGER);

CREATE TABLE counts (
    workspace TEXT, kind TEXT, number INTEGER, PRIMARY KEY (workspace, kind)
) WITHOUT ROWID;

CREATE TABLE schemas (
    workspace TEXT, hash TEXT, data TEXT, PRIMARY KEY (workspace, hash)
) WITHOUT ROWID;

CREATE TABLE state (
    workspace TEXT, kind TEXT, key TEXT, position INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (workspace, kind, key)
);

CREATE TABLE leases (
    name TEXT PRIMARY KEY, holder TEXT, token INTEGER, beat INTEGER, held INTEGER
);

CREATE TABLE metadata (name TEXT PRIMARY KEY, value TEXT);
