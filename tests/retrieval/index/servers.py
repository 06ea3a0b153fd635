"""The Qdrant server that tests may use, if there is one."""

import os
import uuid

import pytest

from retrieval.index.protocol import QdrantPlace

URL = os.environ.get("AFTERCALL_TEST_QDRANT_URL")

NEEDS_SERVER = pytest.mark.skipif(
    URL is None, reason="no Qdrant server: AFTERCALL_TEST_QDRANT_URL is not set"
)


def server_place() -> QdrantPlace:
    """Collections of the caller's own on the server."""
    if URL is None:
        raise RuntimeError("mark the test with NEEDS_SERVER")
    return QdrantPlace(
        url=URL,
        api_key=os.environ.get("AFTERCALL_TEST_QDRANT_KEY"),
        grpc_port=int(os.environ.get("AFTERCALL_TEST_QDRANT_GRPC_PORT", "6334")),
        prefix=f"aftercall-test-{uuid.uuid4().hex[:12]}",
    )
