"""What every index refuses before its engine sees it.

An engine may take such a point into its log and fail then, or keep it and never find it.
"""

import uuid
from typing import Any

import numpy as np

from retrieval.index.protocol import IndexPoint, VectorIndexError

UNIT_TOLERANCE = 1e-3
"""Half precision keeps a vector's length to that."""


def check_point(point: IndexPoint, dimension: int) -> None:
    """Refuse a point that cannot be found again.

    Raises:
        VectorIndexError: for an id that is no UUID in its usual form, a vector that is no unit, or
            a name that is no Unicode text.
    """
    check_id(point.document_id)
    check_vector(point.vector, dimension)
    for text in (point.workspace, point.server_name, point.tool_name, point.version, point.terms):
        _check_text(text or "")


def check_id(document_id: str) -> None:
    """Raises `VectorIndexError` unless the id is a UUID in its usual form."""
    try:
        usual = str(uuid.UUID(document_id))
    except ValueError:
        usual = ""
    if document_id != usual:
        raise VectorIndexError(
            f"the document id {document_id!r} is no UUID such as {uuid.UUID(int=10)}"
        )


def check_vector(vector: np.ndarray[Any, Any], dimension: int) -> None:
    """Raises `VectorIndexError` unless the vector has the shape (dimension,) and unit length."""
    if vector.shape != (dimension,):
        raise VectorIndexError(
            f"a vector has the shape {vector.shape}, the index takes ({dimension},); "
            "embed with the model of the index"
        )
    length = float(np.linalg.norm(vector))
    if not abs(length - 1.0) < UNIT_TOLERANCE:  # also refuses NaN and infinities
        raise VectorIndexError(f"a vector has the length {length:.4g}; divide it by that")


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise VectorIndexError(
            f"{text[:80]!r} holds half of a surrogate pair, which is no text: replace it"
        ) from error
