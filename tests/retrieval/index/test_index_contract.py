"""What every vector index promises (`retrieval.index.protocol.VectorIndex`).

A Qdrant server takes part where `AFTERCALL_TEST_QDRANT_URL` is set, and `AFTERCALL_TEST_QDRANT_KEY`
and `AFTERCALL_TEST_QDRANT_GRPC_PORT` where it needs them.
"""

import asyncio
import itertools
from dataclasses import replace

import numpy as np
import pytest

from embeddings.embedders import hashed_vector
from retrieval.index.opening import FIRST_INDEX, open_index
from retrieval.index.protocol import IndexModelMismatchError, VectorIndex, VectorIndexError
from tests.embeddings.tool_errors import GROUPS
from tests.retrieval.index.documents import DIMENSION, document_id, nearly, point, question, uses

TEXTS = [text for group in GROUPS for text in group]


@pytest.fixture
def opens(place):
    """Opens the place's index, by a model's name."""

    async def open_it(fingerprint: str = "hashing-1@96") -> VectorIndex:
        return await open_index(place, FIRST_INDEX, dimension=DIMENSION, fingerprint=fingerprint)

    return open_it


@pytest.fixture
async def index(opens):
    opened = await opens()
    yield opened
    await opened.close()


async def _names(index: VectorIndex, query) -> list[str]:
    (hits,) = await index.search_points([query])
    return [hit.document_id for hit in hits]


async def test_near_documents_come_first(index):
    """Of a few dozen real tool errors, each finds itself first, and its like right behind it."""
    await index.upsert_points([point(text) for text in TEXTS])
    answers = await index.search_points([question(text, limit=3) for text in TEXTS])
    groups = {document_id(text): number for number, group in enumerate(GROUPS) for text in group}
    for text, hits in zip(TEXTS, answers, strict=True):
        assert hits[0].document_id == document_id(text)
    seconds = [groups[hits[1].document_id] == groups[hits[0].document_id] for hits in answers]
    assert sum(seconds) / len(seconds) >= 0.9


async def test_questions_without_terms_or_with_unknown_ones_are_dense_only(index):
    """No terms, only stop words, or terms no document has: the nearest vectors answer."""
    await index.upsert_points([point(text, terms="") for text in TEXTS])
    for terms in ("", "the of is", "?!", "zebra"):
        hits = await _names(index, question(TEXTS[0], terms=terms, limit=1))
        assert hits == [document_id(TEXTS[0])]


async def test_nothing_of_another_workspace_kind_or_tool_is_ever_found(index):
    """Over every combination of filters, hits are of exactly what was asked, and all of it."""
    kinds = ("success", "reflection")
    owners = {}
    for owner in itertools.product(
        ("default", "other"), kinds, ("search", "fetch", None), ("web", None), range(3)
    ):
        workspace, kind, tool, server, _ = owner
        made = point(
            str(owner), "one text for all",
            workspace=workspace, kind=kind, tool_name=tool, server_name=server,
        )  # fmt: skip
        owners[made.document_id] = owner
        await index.upsert_points([made])
    asked = list(
        itertools.product(
            (("default",), ("default", "other"), ("nobody",), ()),
            kinds, ("search", None), ("web", None),
        )
    )  # fmt: skip
    answers = await index.search_points(
        [
            question(
                "one text for all", workspaces=chosen, kind=kind,
                tool_name=tool, server_name=server, limit=100,
            )
            for chosen, kind, tool, server in asked
        ]
    )  # fmt: skip
    for (chosen, kind, tool, server), hits in zip(asked, answers, strict=True):
        assert {hit.document_id for hit in hits} == {
            made
            for made, owner in owners.items()
            if owner[0] in chosen
            and owner[1] == kind
            and tool in (None, owner[2])
            and server in (None, owner[3])
        }


async def test_only_the_documents_asked_for_are_found(index):
    """How near are these? Far ones too; unknown ids, other workspaces' and no ids find nothing."""
    await index.upsert_points([point(text) for text in TEXTS])
    await index.upsert_points([point("elsewhere", workspace="other")])
    ids = tuple(document_id(text) for text in TEXTS[-3:])
    for terms in (None, ""):
        query = question(TEXTS[0], document_ids=ids, terms=terms)
        assert set(await _names(index, query)) == set(ids)
    for none in ((), (document_id("never"),), (document_id("elsewhere"),)):
        assert await _names(index, question(TEXTS[0], document_ids=none)) == []


async def test_a_hit_names_the_tool_it_is_about(index):
    """Server, tool and version, so that nothing need be read to know whose document it is."""
    await index.upsert_points([point("a", tool_name="fetch", server_name="web", version="2.0.0")])
    await index.upsert_points([point("b", tool_name=None)])
    (hits,) = await index.search_points([question("a")])
    found = {hit.document_id: (hit.server_name, hit.tool_name, hit.version) for hit in hits}
    assert found == {
        document_id("a"): ("web", "fetch", "2.0.0"),
        document_id("b"): (None, None, ""),
    }


async def test_answers_hold_the_best_of_each_side_with_both_scores(index):
    """Exactly the union, by cosine, and a document's scores are the same whoever found it."""
    await index.upsert_points([point(text) for text in TEXTS])
    everything = question(TEXTS[0], limit=len(TEXTS))
    (known,) = await index.search_points([everything])
    assert len(known) == len(TEXTS)
    vectors = {document_id(text): hashed_vector(text, DIMENSION) for text in TEXTS}
    for hit in known:
        cosine = float(everything.vector @ vectors[hit.document_id])
        assert hit.similarity == pytest.approx(cosine, abs=1e-3)
    terms = {hit.document_id: hit.score for hit in known}
    assert min(terms.values()) == 0.0  # a document that shares no term is found all the same
    assert max(terms, key=terms.__getitem__) == document_id(TEXTS[0])
    for limit in (1, 3, 7):
        (hits,) = await index.search_points([question(TEXTS[0], limit=limit)])
        nearest = {hit.document_id for hit in known[:limit]}
        by_terms = sorted(known, key=lambda hit: (-hit.score, hit.document_id))[:limit]
        assert nearest <= {hit.document_id for hit in hits}
        assert {hit.document_id for hit in by_terms if hit.score} <= {
            hit.document_id for hit in hits
        }
        assert len(hits) <= 2 * limit
        assert [hit.similarity for hit in hits] == sorted(
            (hit.similarity for hit in hits), reverse=True
        )
        assert all(hit.score == pytest.approx(terms[hit.document_id]) for hit in hits)


async def test_only_documents_of_the_least_similarity_are_found(index):
    """With terms or without: the same answer, less what is farther."""
    await index.upsert_points([point(text) for text in TEXTS])
    for terms in (None, ""):
        asked = question(TEXTS[0], limit=20, terms=terms)
        (found,) = await index.search_points([asked])
        least = sorted(hit.similarity for hit in found)[10] - 1e-4
        (near,) = await index.search_points([replace(asked, least_similarity=least)])
        assert near == nearly([hit for hit in found if hit.similarity >= least])
        assert 0 < len(near) < len(found)


async def test_what_a_tool_scores_depends_on_the_workspaces_tools_alone(index):
    """Scenarios outnumber tools, and other workspaces are nobody's business: no IDF is theirs."""
    tools = ("git log", "git diff", "read file")
    await index.upsert_points([point(name, kind="tool", tool_name=name) for name in tools])
    asked = question("show the git log", kind="tool")
    (before,) = await index.search_points([asked])
    await index.upsert_points([point(f"git log of {n}", kind="scenario") for n in range(30)])
    await index.upsert_points(
        [point(f"log {n}", kind="tool", workspace="other") for n in range(30)]
    )
    (after,) = await index.search_points([asked])
    assert after == nearly(before)
    one = question("show the git log", kind="tool", tool_name="git log")
    ids = replace(asked, document_ids=(document_id("git log"),))
    for few in await index.search_points([one, ids]):
        assert few == nearly([hit for hit in before if hit.document_id == document_id("git log")])


async def test_upsert_is_idempotent_and_replaces(index):
    """Doing it twice changes nothing; a new content takes the old one's place altogether."""
    await index.upsert_points([point("a", "old text", workspace="old"), point("b")])
    await index.upsert_points([point("a", "old text", workspace="old")])
    assert await index.count_points() == 2
    await index.upsert_points([point("a", "new text", terms="")])
    assert await index.count_points() == 2
    assert await _names(index, question("old text", workspaces=("old",))) == []
    (hits,) = await index.search_points([question("new text", limit=1)])
    assert hits[0].document_id == document_id("a")
    assert hits[0].similarity == pytest.approx(1.0, abs=1e-3)


async def test_deleted_documents_are_gone_and_unknown_ids_do_nothing(index):
    """Delete is idempotent too."""
    await index.upsert_points([point("a"), point("b")])
    await index.delete([document_id("a"), document_id("never")])
    await index.delete([document_id("a")])
    await index.delete([])
    assert await index.count_points() == 1
    assert await _names(index, question("a")) == [document_id("b")]


async def test_several_questions_are_answered_as_if_asked_alone(index):
    """One batch, same answers, in the order of the questions."""
    await index.upsert_points([point(text) for text in TEXTS])
    asked = [question(text, limit=5) for text in TEXTS[:10]]
    asked.insert(3, question("x", workspaces=()))
    together = await index.search_points(asked)
    alone = [(await index.search_points([query]))[0] for query in asked]
    assert together == [nearly(hits) for hits in alone]
    assert await index.search_points([]) == []


async def test_ties_are_in_the_order_of_the_ids(index):
    """Equal documents always come in the same order, so an answer can be repeated."""
    await index.upsert_points([point(f"copy {number}", "the same text") for number in range(20)])
    expected = sorted(document_id(f"copy {number}") for number in range(20))
    assert await _names(index, question("the same text", limit=20)) == expected
    assert await _names(index, question("the same text", limit=20, terms="")) == expected


async def test_the_limit_is_kept(index):
    """Never more than asked for; none for none."""
    await index.upsert_points([point(text) for text in TEXTS])
    for limit in (0, 1, 7, 1_000):
        asked = question(TEXTS[0], limit=limit, terms="")
        assert len(await _names(index, asked)) == min(limit, len(TEXTS))


async def test_an_empty_index_answers(index):
    """Day one: nothing there, nothing found, no error."""
    assert await index.count_points() == 0
    assert await index.search_points([question("anything")]) == [[]]
    await index.upsert_points([])


async def test_documents_are_there_after_reopening(opens):
    """What was upserted and deleted is durable, and answers stay the same.

    Save the last digits of scores: BM25's statistics may count a deleted document until then.
    """
    index = await opens()
    await index.upsert_points([point(text) for text in TEXTS])
    await index.delete([document_id(TEXTS[0])])
    (before,) = await index.search_points([question(TEXTS[1])])
    await index.close()
    index = await opens()
    assert await index.count_points() == len(TEXTS) - 1
    (after,) = await index.search_points([question(TEXTS[1])])
    assert [replace(hit, score=0.0) for hit in after] == nearly(
        [replace(hit, score=0.0) for hit in before]
    )
    await index.close()


async def test_vectors_of_another_model_are_refused_and_left_alone(opens):
    """The error names both models and the cure, and the right model still opens the index."""
    index = await opens()
    await index.upsert_points([point("a")])
    await index.close()
    with pytest.raises(IndexModelMismatchError, match=r"hashing-1@96.*other@1.*aftercall rebuild"):
        await opens("other@1")
    index = await opens()
    assert await index.count_points() == 1
    await index.close()


@pytest.mark.parametrize(
    "bad",
    [
        replace(point("a"), vector=np.ones(3, dtype=np.float32)),
        replace(point("a"), vector=np.full(DIMENSION, np.nan, dtype=np.float32)),
        replace(point("a"), vector=np.zeros(DIMENSION, dtype=np.float32)),
        replace(point("a"), vector=np.full(DIMENSION, 1.0, dtype=np.float32)),
    ],
    ids=["dimension", "nan", "zero", "long"],
)
async def test_a_bad_point_is_refused_and_harms_nothing(opens, bad):
    """Refused with `VectorIndexError`; the index goes on and opens again."""
    index = await opens()
    with pytest.raises(VectorIndexError):
        await index.upsert_points([point("good"), bad])
    await index.upsert_points([point("good")])
    await index.close()
    index = await opens()
    assert await index.count_points() == 1
    await index.close()


async def test_a_bad_question_is_refused(index):
    """A vector of another model's dimension is an error, not an empty answer."""
    with pytest.raises(VectorIndexError, match="embed with the model of the index"):
        await index.search_points([replace(question("a"), vector=np.ones(3, dtype=np.float32))])


async def test_updates_and_searches_may_run_at_once(index):
    """Concurrent callers need no lock of their own, and no update is lost."""

    async def write(worker: int) -> None:
        for number in range(5):
            await index.upsert_points([point(f"{worker} {number} {row}") for row in range(10)])

    async def read() -> None:
        for _ in range(8):
            await index.search_points([question("3 3 3")])

    await asyncio.gather(*(write(worker) for worker in range(4)), *(read() for _ in range(4)))
    assert await index.count_points() == 200


async def test_the_event_loop_goes_on_during_a_large_upsert(index):
    """A heartbeat keeps beating while hundreds of points go in."""
    points = [point(f"document {number}") for number in range(600)]
    bulk = asyncio.create_task(index.upsert_points(points))
    beats = 0
    while not bulk.done():
        await asyncio.sleep(0)
        beats += 1
    await bulk
    assert beats > 5  # an index that blocks lets it beat twice


async def test_a_closed_index_says_so(opens):
    """Use after close is a `VectorIndexError`; closing twice does nothing."""
    index = await opens()
    await index.close()
    await index.close()
    for use in uses(index):
        with pytest.raises(VectorIndexError, match="closed"):
            await use()
