"""The embedded index and a Qdrant of any kind answer the same questions the same way.

Up to ties, and up to these tolerances: the embedded index keeps vectors in half precision, the
client's own store does not.
"""

import asyncio
import itertools
from collections.abc import Sequence

import pytest

from ingest.seed import load_seed
from retrieval.index.opening import (
    FIRST_INDEX,
    destroy_index,
    open_index,
)
from retrieval.index.protocol import EdgePlace, Hit, IndexPoint, QdrantPlace
from tests.embeddings.tool_errors import GROUPS
from tests.retrieval.index.documents import DIMENSION, point, question
from tests.retrieval.index.servers import NEEDS_SERVER, server_place

SIMILARITY_TOLERANCE = 1e-3
SCORE_TOLERANCE = 1e-3

TOOLS = ("search", "fetch", "write_file", "run_query")
WORKSPACES = ("default", "other", "@seed")
KINDS = ("success", "reflection", "tool")
VERSIONS = ("", "1.0.0")

TEXTS = sorted(
    {text for group in GROUPS for text in group}
    | {message for entry in load_seed().entries for message in entry.messages}
)
"""Some hundred errors of real tools."""

DOCUMENTS: list[IndexPoint] = [
    point(
        f"{number} {text}",
        text,
        workspace=WORKSPACES[number % 3],
        kind=KINDS[number // 3 % 3],
        tool_name=TOOLS[number // 9 % 4],
        version=VERSIONS[number % 2],
    )
    for number, text in enumerate(TEXTS * 2)
]

FILTERS = {
    "a workspace": {"workspaces": ("default",)},
    "two workspaces": {"workspaces": ("default", "@seed")},
    "a tool": {"workspaces": ("default",), "tool_name": "fetch"},
    "tools": {"workspaces": ("default", "other"), "kind": "tool"},
    "a version": {"workspaces": WORKSPACES, "tool_name": "search", "versions": ("1.0.0",)},
    "these": {
        "workspaces": WORKSPACES,
        "document_ids": tuple(each.document_id for each in DOCUMENTS[::5]),
    },
}


@pytest.fixture(
    params=[
        pytest.param(lambda folder: QdrantPlace(f"local:{folder}"), id="local"),
        pytest.param(lambda _: server_place(), id="server", marks=[pytest.mark.real, NEEDS_SERVER]),
    ]
)
async def both(request, tmp_path):
    """The embedded index and another one, with the same documents."""
    places = (EdgePlace(tmp_path), request.param(tmp_path / "local"))
    model = {"dimension": DIMENSION, "fingerprint": "hashing-1@96"}
    opened = [await open_index(place, FIRST_INDEX, **model) for place in places]
    for index in opened:
        await index.upsert(DOCUMENTS)
    yield opened
    for index, place in zip(opened, places, strict=True):
        await index.close()
        await destroy_index(place, FIRST_INDEX)


@pytest.mark.parametrize("chosen", FILTERS.values(), ids=FILTERS.keys())
async def test_rankings_are_equal_up_to_ties(both, chosen):
    """With terms and without, over every filter."""
    asked = [
        question(text, limit=limit, **extra, **chosen)
        for text, limit, extra in itertools.product(TEXTS[::12], (5, 20), ({}, {"terms": ""}))
    ]
    embedded, other = await asyncio.gather(*(index.search(asked) for index in both))
    for query, expected, found in zip(asked, embedded, other, strict=True):
        assert_same_union(expected, found, limit=query.limit)


def assert_same_union(expected: list[Hit], found: list[Hit], *, limit: int) -> None:
    """Equal hits, save documents that tie for the last place of a side."""
    known = {hit.document_id: hit for hit in expected}
    shared = [hit for hit in found if hit.document_id in known]
    for hit in shared:
        assert_same_hit(known[hit.document_id], hit)
    last_near = _last([hit.similarity for hit in expected], limit)
    last_terms = _last([hit.score for hit in expected], limit)
    for one in {*expected, *found} - {*shared, *(known[hit.document_id] for hit in shared)}:
        assert (
            one.similarity == pytest.approx(last_near, abs=SIMILARITY_TOLERANCE)
            or one.score == pytest.approx(last_terms, abs=SCORE_TOLERANCE)
        )  # fmt: skip
    similarities = [hit.similarity for hit in found]
    assert similarities == sorted(similarities, reverse=True)


def assert_same_hit(expected: Hit, found: Hit) -> None:
    assert found.similarity == pytest.approx(expected.similarity, abs=SIMILARITY_TOLERANCE)
    assert found.score == pytest.approx(expected.score, abs=SCORE_TOLERANCE)
    assert (found.workspace, found.tool_name, found.server_name, found.version) == (
        expected.workspace,
        expected.tool_name,
        expected.server_name,
        expected.version,
    )


def _last(scores: Sequence[float], limit: int) -> float:
    return sorted(scores, reverse=True)[:limit][-1]
