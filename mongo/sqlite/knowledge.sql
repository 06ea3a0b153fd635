-- One generation of knowledge and its counters. `server` and `tool` as in the log. `totals` are the
-- counters of all tools together, `numbers` says how many rows of each kind there are: pages ask for
-- both all the time, and there may be many thousands of tools.

CREATE TABLE rows (
    workspace TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, server TEXT NOT NULL,
    tool TEXT NOT NULL, rank INTEGER NOT NULL, serial INTEGER NOT NULL, data BLOB NOT NULL
);

CREATE UNIQUE INDEX rows_by_key ON rows (workspace, kind, key);

CREATE INDEX rows_by_rank ON rows (workspace, kind, rank DESC, key) WHERE rank <> 0;

CREATE INDEX rows_by_serial ON rows (workspace, serial);

CREATE INDEX rows_of_tool ON rows (workspace, kind, server, tool, key) WHERE tool <> '';

CREATE TABLE counters (
    workspace TEXT, what TEXT, hour INTEGER, server TEXT, tool TEXT,
    number INTEGER NOT NULL,
    PRIMARY KEY (workspace, hour, what, server, tool)
) WITHOUT ROWID;

CREATE TABLE totals (
    workspace TEXT, what TEXT, hour INTEGER, number INTEGER NOT NULL,
    PRIMARY KEY (workspace, hour, what)
) WITHOUT ROWID;

CREATE TABLE numbers (
    workspace TEXT, kind TEXT, number INTEGER NOT NULL, PRIMARY KEY (workspace, kind)
) WITHOUT ROWID;

CREATE TABLE cursors (workspace TEXT PRIMARY KEY, position INTEGER, serial INTEGER);

CREATE TABLE fences (name TEXT PRIMARY KEY, token INTEGER);
