"""Hooks of coding agents: a client's event of a call is read, answered, and recorded.

`clients` reads the files of `clients/`, one for each client; `events` reads a payload by it, and
`answers` writes the client's own answer; `advice` finds what the session itself knows of a failure,
from what it showed (`shown`). These are pure. `handling` asks what `/check` and `/suggest` ask, and
records.
"""
