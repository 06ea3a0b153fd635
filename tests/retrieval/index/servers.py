"""The Qdrant server that tests may use, if there is one."""

import asyncio
import os
import uuid

import pytest

from retrieval.index.protocol import QdrantPlace
from retrieval.index.qdrant import list_names

URL = os.environ.get("AFTERCALL_TEST_QDRANT_URL")

NEEDS_SERVER = pytest.mark.skipif(
    URL is None, reason="no Qdrant server: AFTERCALL_TEST_QDRANT_URL is not set"
)

_places: list[QdrantPlace] = []


def server_place() -> QdrantPlace:
    """Collections of the caller's own on the server."""
    if URL is None:
        raise RuntimeError("mark the test with NEEDS_SERVER")
    place = QdrantPlace(
        url=URL,
        api_key=os.environ.get("AFTERCALL_TEST_QDRANT_KEY"),
        grpc_port=int(os.environ.get("AFTERCALL_TEST_QDRANT_GRPC_PORT", "6334")),
        prefix=f"aftercall-test-{uuid.uuid4().hex[:12]}",
    )
    _places.append(place)
    return place


def left_behind() -> list[str]:
    """Collections of this process on a given server."""
    return [name for place in _places for name in asyncio.run(list_names(place))]
