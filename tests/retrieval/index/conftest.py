"""The places where an index may be: a folder, the client's own store, a server if there is one."""

import pytest

from retrieval.index.opening import destroy_index, list_indexes
from retrieval.index.protocol import EdgePlace, QdrantPlace
from tests.retrieval.index.servers import NEEDS_SERVER, server_place

ADAPTERS = [
    pytest.param(EdgePlace, id="edge"),
    pytest.param(lambda folder: QdrantPlace(f"local:{folder}"), id="local"),
    pytest.param(lambda _: server_place(), id="server", marks=[pytest.mark.real, NEEDS_SERVER]),
]
"""Functions (folder) -> a place of its own; opening an index there again finds its documents."""


@pytest.fixture(params=ADAPTERS)
async def place(request, tmp_path):
    """A place of the test's own, empty again at the end."""
    made = request.param(tmp_path)
    yield made
    for name in await list_indexes(made):
        await destroy_index(made, name)
