"""Finding tools by scenario, through the real index."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embeddings.embedders import HashingEmbedder
from embeddings.text import terms_text
from retrieval.answers.fitness.relevance import (
    PAST_HALF,
    Weights,
    past_evidence,
    rank_relevant,
    scenario_parts,
    shipped_weights,
    successes_of,
    tool_queries,
)
from retrieval.index.edge import EdgeIndex
from retrieval.index.protocol import Hit, IndexPoint
from retrieval.knowledge.rows.documents import Document, Kind, document_id
from retrieval.knowledge.rows.statistics import Trial

TOOLS = {
    "gitLog": "Shows the commits of a repository, the latest first",
    "gitDiff": "Shows what changed between two commits of a repository",
    "bookTable": "Books a table in a restaurant",
    "findFlight": "Finds flights between two airports",
    "sendMail": "Sends a mail to somebody",
}


@pytest.fixture
async def embedder():
    made = HashingEmbedder()
    yield made
    await made.close()


@pytest.fixture
async def index(embedder, tmp_path):
    opened = await EdgeIndex.open(
        tmp_path / "vectors", dimension=embedder.dimension, fingerprint=embedder.fingerprint
    )
    points = [await _point(embedder, name, text) for name, text in TOOLS.items()]
    await opened.upsert_points(points)
    await opened.upsert_points([await _point(embedder, "gitLog", "Elsewhere", workspace="other")])
    yield opened
    await opened.close()


async def _point(embedder, name, text, *, workspace="default", kind: Kind = "tool"):
    said = f"{name}: {text}"
    [vector] = await embedder.embed([said], "document")
    made = document_id(workspace, kind, None, name, "")
    return IndexPoint(made, workspace, kind, None, name, vector, terms_text(said))


async def _found(index, embedder, scenario, *, limit=30, past=None):
    texts = scenario_parts(scenario)
    vectors = await embedder.embed(texts, "query")
    queries = tool_queries("default", vectors, texts, limit=limit)
    return rank_relevant(await index.search_points(queries), past, parts=len(texts))


async def test_the_tool_that_is_described_comes_first(index, embedder):
    """Each tool once, the most relevant first, and none of another workspace."""
    found = await _found(index, embedder, "which flights are there between Oslo and Rome")
    assert found[0].tool_name == "findFlight"
    assert sorted(each.tool_name for each in found) == sorted(TOOLS)
    assert all(0 <= each.similarity <= 1 for each in found)
    scores = [each.similarity for each in found]
    assert scores == sorted(scores, reverse=True)


async def test_each_of_several_requests_finds_its_tool(index, embedder):
    """As near as the nearest part: what asks for two things finds both."""
    scenario = "Book a table in a restaurant. Then send a mail to somebody."
    assert len(scenario_parts(scenario)) == 3
    found = await _found(index, embedder, scenario)
    assert {each.tool_name for each in found[:2]} == {"bookTable", "sendMail"}
    vectors = await embedder.embed([scenario], "query")
    whole = rank_relevant(
        await index.search_points(tool_queries("default", vectors, [scenario], limit=30))
    )
    cosines = {each.document_id: each.cosine for each in whole}
    assert all(each.cosine >= cosines[each.document_id] for each in found)


async def test_past_successes_bring_a_tool_forward(index, embedder):
    """By its server and name; nothing else changes."""
    scenario = "show me the history of the repository"
    before = await _found(index, embedder, scenario)
    after = await _found(index, embedder, scenario, past={(None, "sendMail"): 0.9})
    [risen] = [each for each in after if each.tool_name == "sendMail"]
    [known] = [each for each in before if each.tool_name == "sendMail"]
    assert risen.evidence == pytest.approx(known.evidence + 0.9 * shipped_weights().past)
    assert risen.similarity > known.similarity
    assert after.index(risen) < before.index(known)
    assert [each for each in after if each is not risen] == [
        each for each in before if each.tool_name != "sendMail"
    ]
    assert await _found(index, embedder, scenario, past={("web", "sendMail"): 0.9}) == before


def _hit(name: str, similarity: float, *, server: str | None = None, score: float = 0.0) -> Hit:
    made = document_id("w", "scenario", server, name, str(similarity))
    return Hit(made, score, similarity, name, server)


def test_a_weakly_matched_part_gets_its_tool_among_the_first():
    """Before the fourth tool for what words match better, never before the first one."""
    near = {
        "whole": {"a": 0.6, "b": 0.58, "c": 0.56, "d": 0.54, "e": 0.5, "x": 0.4},
        "first": {"a": 0.8, "b": 0.75, "c": 0.7, "d": 0.65, "e": 0.6},
        "second": {"x": 0.5, "y": 0.1},
    }
    whole, first, second = (
        [replace(_hit(name, 0.0), similarity=cosine) for name, cosine in part.items()]
        for part in near.values()
    )
    weights = Weights(12.0, terms=0.0125, parts=0.7, past=0.4, best_terms=0.1, intercept=-4.0)
    found = rank_relevant([whole, first, second], parts=3, weights=weights)
    assert [each.tool_name for each in found] == ["a", "b", "c", "x", "d", "e", "y"]
    assert rank_relevant([first], parts=1, weights=weights) == rank_relevant(
        [first], weights=replace(weights, parts=0.0)
    )


def _document(hit: Hit, *kinds: str) -> Document:
    trials = [Trial(float(n), f"k{n}", kind) for n, kind in enumerate(kinds)]  # type: ignore[arg-type]
    return Document(
        document_id=hit.document_id, kind="scenario", server_name=hit.server_name,
        tool_name=hit.tool_name, text="x", trials=trials,
    )  # fmt: skip


def test_past_evidence_is_of_the_tool_of_the_server_and_of_successes_only():
    """The share of a scenario's trials that succeeded counts; unknown documents do not."""
    same, elsewhere, half, lost = (
        _hit("a", 0.9), _hit("a", 0.9, server="web"), _hit("b", 0.9), _hit("c", 0.9)
    )  # fmt: skip
    documents = {
        same.document_id: _document(same, "success"),
        elsewhere.document_id: _document(elsewhere, "failure", "high"),
        half.document_id: _document(half, "success", "failure"),
    }
    found = successes_of([same, elsewhere, half, lost], documents)
    assert found[None, "a"] > found[None, "b"] > found["web", "a"] == 0.0
    assert (None, "c") not in found


@given(
    st.lists(st.tuples(st.sampled_from("abcde"), st.floats(-1, 1), st.floats(0, 60)), max_size=12),
    st.randoms(),
)
def test_the_order_of_answers_and_hits_does_not_matter(found, random):
    """A tool is as near as its nearest hit, and ties go by id."""
    hits = [
        replace(_hit(name, 0.0), similarity=cosine, score=terms) for name, cosine, terms in found
    ]
    shuffled = random.sample(hits, len(hits))
    one = rank_relevant([hits])
    assert rank_relevant([shuffled[:3], shuffled[3:]]) == one
    assert len({each.document_id for each in one}) == len(one)
    for each in one:
        assert each.cosine == max(c for name, c, _ in found if name == each.tool_name)


def test_one_success_at_the_half_point_says_one_half():
    """And one in the very same scenario nearly all, in an unlike one nearly nothing."""
    assert past_evidence([]) == 0.0
    assert past_evidence([(PAST_HALF, 1.0)]) == pytest.approx(0.5)
    assert past_evidence([(1.0, 1.0)]) > 0.95
    assert past_evidence([(0.3, 1.0)]) < 0.02
    assert past_evidence([(1.0, 0.0)]) == 0.0
