"""What can go wrong with a log store. Each message names the cure.

StoreError
├── StoreInUseError        another process has the same data folder open
├── StoreTooNewError       the store was written by a newer version
├── StoreDamagedError      the file is not a store, or is corrupt
├── StateConflictError     another command changed the same state meanwhile
│   └── KeyChangedError        so did another with the same key
├── StoreFencedError       another process holds the lease, or the generation is another one
├── StoreFullError         no space left; nothing was written, reading goes on
└── StoreUnavailableError  closed, or not answering; try again later
    └── StoreReadOnlyError     it can be read, but takes no writes at the moment
"""


class StoreError(Exception):
    """Base of all that a log store raises."""


class StoreInUseError(StoreError):
    """Another process has the same data folder open."""


class StoreTooNewError(StoreError):
    """The store was written by a newer version of Aftercall."""


class StoreDamagedError(StoreError):
    """The file is not a store of ours, or is corrupt."""


class StoreFullError(StoreError):
    """No space left on the device; nothing was written and reading goes on."""


class StoreUnavailableError(StoreError):
    """The store is closed or does not answer; trying again later may help."""


def closed_error() -> StoreUnavailableError:
    """Return the store was closed before this call."""
    return StoreUnavailableError("the log store is closed: open it again before calling it")


class StoreFencedError(StoreError):
    """What was to be written rests on what no longer holds: read again, and do it again.

    Another holds the lease, or a rebuild has switched the store meanwhile. Nothing was written.
    """


class StoreReadOnlyError(StoreUnavailableError):
    """The store can be read, but takes no writes at the moment; trying again later may help."""


class StateConflictError(StoreError):
    """Another command changed the state meanwhile: check it again. Nothing was written."""


class KeyChangedError(StateConflictError):
    """Another command changed the key meanwhile."""

    def __init__(self, key_id: str) -> None:
        super().__init__(f"the key {key_id} was changed meanwhile: look at it, and try again")
