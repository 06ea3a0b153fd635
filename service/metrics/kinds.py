"""What can go wrong with a store, in a few words that a label may hold."""

from collections.abc import Mapping
from typing import Literal

from mongo.errors import (
    StoreDamagedError,
    StoreError,
    StoreFencedError,
    StoreFullError,
    StoreInUseError,
    StoreReadOnlyError,
    StoreTooNewError,
    StoreUnavailableError,
)
from retrieval.index.protocol import (
    IndexInUseError,
    IndexModelMismatchError,
    VectorIndexError,
    VectorIndexUnavailableError,
)

Store = Literal["log", "vectors"]

_OTHER = "other"

LOG_KINDS: Mapping[type[Exception], str] = {
    StoreReadOnlyError: "read_only",  # before what it is a kind of
    StoreUnavailableError: "unavailable",
    StoreFullError: "full",
    StoreFencedError: "fenced",
    StoreInUseError: "in_use",
    StoreDamagedError: "damaged",
    StoreTooNewError: "too_new",
    StoreError: _OTHER,
}

INDEX_KINDS: Mapping[type[Exception], str] = {
    VectorIndexUnavailableError: "unavailable",
    IndexInUseError: "in_use",
    IndexModelMismatchError: "model_mismatch",
    VectorIndexError: _OTHER,
}


def kind_of(error: Exception) -> str:
    """The kind of a store's error; `other` for one without a kind of its own."""
    kinds = (*LOG_KINDS.items(), *INDEX_KINDS.items())
    return next((kind for each, kind in kinds if isinstance(error, each)), _OTHER)
