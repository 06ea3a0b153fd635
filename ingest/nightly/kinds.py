"""The kind of a stored document, read off its beginning: most are not worth decoding."""

from mongo.records import DocumentRow
from retrieval.index.protocol import Kind

_BEGINNING = 100
"""Bytes: a document says its id first (a UUID) and then its kind."""


def is_of(row: DocumentRow, *kinds: Kind) -> bool:
    """Whether a document is of one of these kinds."""
    beginning = row.data[:_BEGINNING]
    return any(f'"kind":"{kind}"'.encode() in beginning for kind in kinds)
