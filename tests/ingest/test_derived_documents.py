"""Tools and promotions get their documents and vectors, and lose them: real store, real index."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from embeddings.protocol import EmbeddingError, Role
from embeddings.text import terms_text
from ingest.derived import evolution_document, tool_document
from ingest.indexer import REGISTERED_BATCH
from mongo.errors import StoreUnavailableError
from mongo.records import IndexCommit, StoredTool, ToolKey
from retrieval.fitness.registry import tool_document_id
from retrieval.fitness.relevance import tool_terms, tool_text
from retrieval.index.protocol import IndexQuery, Kind
from retrieval.knowledge.documents import Document, document_id
from tests.ingest.conftest import WORKSPACE, Brain
from tests.ingest.fitness_samples import a_call, a_promotion, a_tool, documents_of
from tests.retrieval.cases import object_schema


class Counting:
    """Counts the texts that are embedded as documents."""

    def __init__(self, brain: Brain, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: list[str] = []
        embed = brain.embedder.embed

        async def counted(texts: Sequence[str], role: Role) -> Any:
            self.texts.extend(texts)
            return await embed(texts, role)

        monkeypatch.setattr(brain.embedder, "embed", counted)


@pytest.fixture
def embedded(brain: Brain, monkeypatch: pytest.MonkeyPatch) -> Counting:
    """The texts that were embedded since the test began."""
    return Counting(brain, monkeypatch)


async def put(brain: Brain, *tools: StoredTool) -> None:
    """Register tools and wait until they are usable."""
    for each in tools:
        await brain.store.put_tool(each)
    await brain.indexer.run_until_empty()


def id_of_tool(stored: StoredTool) -> str:
    return tool_document_id(stored.tool_key, stored.tool.tool_id)


async def known(brain: Brain, *tools: StoredTool) -> list[Document]:
    """Documents of the tools, as stored."""
    return await documents_of(brain.store, [id_of_tool(each) for each in tools])


async def found(brain: Brain, text: str, kind: Kind, workspace: str = WORKSPACE) -> list[str]:
    """Ids of the documents that the index finds for a text, best first."""
    [vector] = await brain.embedder.embed([text], "query")
    query = IndexQuery((workspace,), kind, np.asarray(vector), terms_text(text), 10)
    [hits] = await brain.index.search([query])
    return [hit.document_id for hit in hits]


async def test_a_registered_tool_is_found_by_what_it_says(brain: Brain) -> None:
    """By its text and by its terms; its document stands under the agreed id."""
    schema = object_schema(targetLanguage="string")
    tool = a_tool(description="Renders prose in another tongue", inputSchema=schema)
    await put(brain, tool, a_tool("u", name="send_mail", description="Sends a letter"))
    [document] = await known(brain, tool)
    assert document.document_id == document_id(WORKSPACE, "tool", "srv", "translate", "t")
    assert document == tool_document(tool)
    assert document.text == tool_text(tool.tool)
    assert document.terms == tool_terms(tool.tool)
    assert (document.server_name, document.tool_name) == ("srv", "translate")
    assert (await found(brain, "prose in another tongue", "tool"))[0] == document.document_id
    assert (await found(brain, "target language", "tool"))[0] == document.document_id
    assert (await brain.store.counts()).documents == 2


async def test_the_same_text_is_not_embedded_again(brain: Brain, embedded: Counting) -> None:
    """What does not speak of the tool's use may change; a new description is embedded."""
    tool = a_tool(description="first")
    await put(brain, tool)
    await put(brain, tool, a_tool(description="first", version="2.0", implementation={"a": 1}))
    assert len(embedded.texts) == 1
    await put(brain, a_tool(description="second"))
    assert embedded.texts == [tool_text(tool.tool), tool_text(a_tool(description="second").tool)]
    assert [each.text for each in await known(brain, tool)] == embedded.texts[1:]
    assert await brain.index.count() == 1


async def test_new_terms_are_indexed(brain: Brain, embedded: Counting) -> None:
    """Also when the text that is embedded is the same: a parameter is described anew."""
    schema = object_schema(q="string")
    described = object_schema(q="string")
    described["properties"]["q"]["description"] = "a hippopotamus"
    tool = a_tool(inputSchema=schema)
    await put(brain, tool, a_tool("u", name="translation_of_hippo"))
    await put(brain, a_tool(inputSchema=described))
    assert len(embedded.texts) == 3
    assert (await found(brain, "hippopotamus", "tool"))[0] == id_of_tool(tool)


async def test_a_deleted_tool_is_found_no_more(brain: Brain) -> None:
    """Neither its document nor its vector stays; what was learned of its calls does."""
    tool, other = a_tool(), a_tool("u", name="other")
    await put(brain, tool, other)
    await brain.learn(a_call(1))
    before = await brain.store.counts()
    await brain.store.delete_tool(WORKSPACE, "t")
    assert (await brain.store.counts()).pending == 1
    await brain.indexer.run_until_empty()
    after = await brain.store.counts()
    assert (after.pending, after.documents) == (0, before.documents - 1)
    assert await brain.index.count() == after.documents
    assert await known(brain, tool) == []
    assert await found(brain, "translate", "tool") == [id_of_tool(other)]
    assert await brain.store.get_statistics([tool.tool_key])


async def test_a_renamed_tool_leaves_nothing_behind(brain: Brain) -> None:
    """The document under the old name goes, also when the tool is deleted before it was seen."""
    first, second, third = (a_tool(name=name) for name in ("translate", "render", "convert"))
    await put(brain, first)
    await put(brain, second)
    assert await known(brain, first) == []
    assert len(await known(brain, second)) == 1
    await brain.store.put_tool(third)
    await brain.store.delete_tool(WORKSPACE, "t")
    await brain.indexer.run_until_empty()
    assert await known(brain, first, second, third) == []
    assert await brain.index.count() == 0
    assert (await brain.store.counts()).pending == 0


async def test_a_tool_that_comes_back_is_found_again(brain: Brain) -> None:
    """Deleted and put within one batch, or before its vector was removed."""
    tool = a_tool()
    await put(brain, tool)
    await brain.store.delete_tool(WORKSPACE, "t")
    await put(brain, tool)
    assert await brain.index.count() == 1
    await brain.store.delete_tool(WORKSPACE, "t")
    await brain.indexer.learn_step()
    await put(brain, tool)
    assert await found(brain, "translate", "tool") == [id_of_tool(tool)]
    assert (await brain.store.counts()).pending == 0


async def test_a_crash_at_any_point_of_a_removal_is_harmless(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the commit, between vector and queue, or before either: the end is the same."""
    tool = a_tool()
    await put(brain, tool)
    await brain.store.delete_tool(WORKSPACE, "t")

    async def refuse(*_: object) -> None:
        raise StoreUnavailableError("gone")

    for method, step in (("commit_index", "learn_step"), ("mark_removed", "embed_step")):
        with monkeypatch.context() as patch:
            patch.setattr(brain.store, method, refuse)
            with pytest.raises(StoreUnavailableError):
                await getattr(brain.indexer, step)()
        await brain.restart()
        assert (await brain.store.counts()).pending == 1
        if step == "learn_step":
            assert await brain.index.count() == 1
            await brain.indexer.learn_step()
    await brain.indexer.run_until_empty()
    assert await brain.index.count() == 0
    assert (await brain.store.counts()).pending == 0


async def test_a_text_that_changes_while_it_is_embedded_is_not_lost(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old text's vector may land; the new one's follows."""
    await brain.store.put_tool(a_tool(description="first"))
    await brain.indexer.learn_step()
    embed = brain.embedder.embed

    async def slow(texts: Sequence[str], role: Role) -> Any:
        await brain.store.put_tool(a_tool(description="zebra"))
        await brain.indexer.learn_step()
        return await embed(texts, role)

    with monkeypatch.context() as patch:
        patch.setattr(brain.embedder, "embed", slow)
        await brain.indexer.embed_step()
    assert (await brain.store.counts()).pending == 1
    await brain.indexer.run_until_empty()
    await put(brain, a_tool("u", name="translate_first"))
    assert (await found(brain, "zebra", "tool"))[0] == id_of_tool(a_tool())


async def test_tools_do_not_wait_for_the_model(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their documents are stored while the embedder is stuck; only the vectors wait."""

    async def stuck(*_: object) -> None:
        raise EmbeddingError("no model")

    await brain.store.put_tool(a_tool())
    with monkeypatch.context() as patch:
        patch.setattr(brain.embedder, "embed", stuck)
        assert await brain.indexer.learn_step() == 1
        with pytest.raises(EmbeddingError):
            await brain.indexer.embed_step()
    assert len(await known(brain, a_tool())) == 1
    assert (await brain.store.counts()).pending == 1


async def test_many_tools_are_worked_off_in_batches(brain: Brain, embedded: Counting) -> None:
    """More than one batch of them; registered again unchanged, none is embedded."""
    tools = [a_tool(f"t{n}", name=f"tool_{n}") for n in range(REGISTERED_BATCH + 20)]
    await put(brain, *tools)
    assert len(await known(brain, *tools)) == len(tools)
    embedded.texts.clear()
    await put(brain, *tools)
    assert embedded.texts == []
    counts = await brain.store.counts()
    assert (counts.pending, counts.documents) == (0, len(tools))


async def test_a_tool_of_another_workspace_is_another(brain: Brain) -> None:
    """The same id and name elsewhere has a document of its own, seen there only."""
    tool = a_tool()
    await put(brain, tool, StoredTool("elsewhere", tool.tool))
    await brain.store.delete_tool(WORKSPACE, "t")
    await brain.indexer.run_until_empty()
    assert await found(brain, "translate", "tool") == []
    there = tool_document_id(ToolKey("elsewhere", "srv", "translate"), "t")
    assert await found(brain, "translate", "tool", "elsewhere") == [there]


async def test_a_promotion_is_found_by_what_it_was_for(brain: Brain) -> None:
    """Each version's, the past ones too; a promotion without words has a document as well."""
    events = [
        a_promotion(reason="Evolved to fix: timeout on large files"),
        a_promotion(version="1.2.0", reason="Evolved to fix: wrong handling of code blocks"),
        a_promotion("codeGenerator", reason=""),
    ]
    await brain.store.change_promotions(events)
    assert (await brain.store.counts()).pending == 3
    await brain.indexer.run_until_empty()
    documents = [evolution_document(event.promoted) for event in events if event.promoted]
    ids = [each.document_id for each in documents]
    assert await documents_of(brain.store, ids) == documents
    assert (await found(brain, "timeout on large files", "evolution"))[0] == ids[0]
    assert (await found(brain, "handling of code blocks", "evolution"))[0] == ids[1]
    assert [(each.tool_name, each.version) for each in documents[:2]] == [
        ("translate", "1.1.0"), ("translate", "1.2.0"),
    ]  # fmt: skip
    assert "timeout" in documents[0].text
    assert "streaming output" in documents[0].text
    assert documents[2].text.startswith("code generator")
    assert (await brain.store.counts()).pending == 0


async def test_a_promotion_said_again_is_not_embedded_again(
    brain: Brain, embedded: Counting
) -> None:
    """A rollback brings back what has a document; another reason is embedded."""
    for event in (a_promotion(), a_promotion(version="1.2.0"), a_promotion()):
        await brain.store.change_promotions([event])
        await brain.indexer.run_until_empty()
    assert len(embedded.texts) == 2
    await brain.store.change_promotions([a_promotion(reason="another")])
    await brain.indexer.run_until_empty()
    assert len(embedded.texts) == 3
    assert await brain.index.count() == 2


async def test_nothing_is_lost_when_the_commit_fails(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tools and promotions stay in their queues until their documents are stored."""
    await brain.store.put_tool(a_tool())
    await brain.store.change_promotions([a_promotion()])

    async def refuse(_: IndexCommit) -> None:
        raise StoreUnavailableError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(brain.store, "commit_index", refuse)
        with pytest.raises(StoreUnavailableError):
            await brain.indexer.learn_step()
    assert (await brain.store.counts()).pending == 2
    await brain.indexer.run_until_empty()
    counts = await brain.store.counts()
    assert (counts.pending, counts.documents) == (0, 2)


async def test_a_rebuild_makes_the_same_documents(brain: Brain) -> None:
    """Of the tools that are registered, and of every promotion of the history."""
    tools = [a_tool(f"t{n}", name=f"tool_{n}", description=f"does {n}") for n in range(5)]
    events = [a_promotion(), a_promotion(version="1.2.0"), a_promotion("other")]
    await put(brain, *tools)
    await brain.store.change_promotions(events)
    await brain.store.delete_tool(WORKSPACE, "t3")
    await brain.indexer.run_until_empty()
    ids = [id_of_tool(each) for each in tools]
    ids += [evolution_document(each.promoted).document_id for each in events if each.promoted]
    before, counts = await documents_of(brain.store, ids), await brain.store.counts()
    assert counts.documents == 4 + 3
    await brain.rebuild()
    assert await documents_of(brain.store, ids) == before
    assert await brain.store.counts() == counts
