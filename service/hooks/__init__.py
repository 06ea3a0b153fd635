"""Hooks of coding agents: what a client states of a call is read, answered, and recorded.

`clients` reads what the files of `clients/` say of each client; `events` reads a payload by it, and
`answers` writes the client's own answer; `advice` says what the session itself knows of a failure,
from what it showed (`shown`).
These are pure. `handling` asks what `/check` and `/suggest` ask, and records.
"""
