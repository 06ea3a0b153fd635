"""A workspace's own head is fitted where a code told what words do not, and only if better."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

import ingest.nightly.classifier as step
from aftercall.models import ErrorCategory
from embeddings.hashing import HashingEmbedder
from ingest.nightly.classifier import refit_classifiers
from mongo.protocol import LogStore
from mongo.records import DocumentRow, IndexCommit, NewExecution
from mongo.sqlite import open_sqlite_store
from retrieval.classifier import (
    MAX_LABELS,
    MIN_LABELS,
    CategoryHead,
    Label,
    OwnHead,
    classifier_fact,
    shipped_head,
    split,
)
from retrieval.fitting import labelled_messages
from retrieval.knowledge.documents import Document
from retrieval.memory import Memory
from tests.ingest.nightly_world import NOW, WORKSPACE, a_night, execution

_WORDS = ("marl", "quern", "sprag", "tuyere", "gudgeon", "kibble", "leat", "sough", "adit", "winze")


def reflection(number: int, category: ErrorCategory, signature: str) -> DocumentRow:
    document = Document(
        document_id=str(UUID(int=number)), kind="reflection", server_name=None, tool_name="mill",
        text=signature, count=1, signature=signature, category=category,
        last_seen=NOW - timedelta(minutes=number),
    )  # fmt: skip
    return DocumentRow(WORKSPACE, document.document_id, document.model_dump_json().encode())


def messages(count: int, *, told: bool = True) -> list[DocumentRow]:
    """Words that no grammar knows; those with a quern in them are conflicts, if they tell it."""
    rows = []
    for number in range(count):
        category: ErrorCategory = "conflict" if number % 2 else "timeout"
        key = ("quern" if number % 2 else "sprag") if told else "marl"
        words = [_WORDS[(number // 10**place) % 10] for place in range(3)]
        rows.append(reflection(number, category, " ".join([key, *words, "a" * (number % 7 + 1)])))
    return rows


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[LogStore]:
    opened = await open_sqlite_store(tmp_path)
    made = execution(0)
    await opened.append(WORKSPACE, [NewExecution(made, made.execution_id)])
    yield opened
    await opened.close()


@pytest.fixture(autouse=True)
def a_head_that_knows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped one is of another model's vectors."""
    width = HashingEmbedder().dimension
    shipped = shipped_head()
    blank = replace(
        shipped,
        embedder=HashingEmbedder().name,
        weights=np.zeros((len(shipped.categories), width), dtype=np.float32),
        bias=np.zeros_like(shipped.bias),
        terms={},
        readings={},
    )
    monkeypatch.setattr(
        CategoryHead, "load", lambda name: blank if name == blank.embedder else None
    )
    few = [each for each in labelled_messages() if each.category == "permission_denied"][:20]
    monkeypatch.setattr(step, "labelled_messages", lambda: few)


async def learn(store: LogStore, rows: list[DocumentRow]) -> None:
    await store.commit_index(
        IndexCommit(workspace=WORKSPACE, generation=await store.generation(), documents=rows)
    )


async def kept(store: LogStore) -> OwnHead:
    fact = await store.get_fact(classifier_fact(WORKSPACE))
    return OwnHead() if fact is None else OwnHead.model_validate_json(fact)


async def test_a_head_that_reads_more_rightly_is_taken(store: LogStore) -> None:
    """It is used by the workspace's next questions, and not fitted again on the same labels."""
    await learn(store, messages(400))
    memory = Memory(store)
    assert (await refit_classifiers(a_night(store)))["taken"] == 1
    own = await memory.category_head(WORKSPACE, HashingEmbedder().name)
    assert own is not None
    text = "quern adit sough"
    [vector] = await HashingEmbedder().embed([text], "query")
    assert own.classify(vector, text).category == "conflict"
    assert (await refit_classifiers(a_night(store)))["fitted"] == 0
    assert await memory.category_head("elsewhere", HashingEmbedder().name) is not own
    assert await memory.category_head(WORKSPACE, "another model") is None


async def test_a_head_that_is_no_better_is_not_taken(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the labels are not tried again before there are others."""
    await learn(store, messages(400))
    monkeypatch.setattr(step, "is_better", lambda *_: False)
    done = await refit_classifiers(a_night(store))
    assert (done["fitted"], done["taken"]) == (1, 0)
    assert (await kept(store)).head is None
    assert (await refit_classifiers(a_night(store)))["fitted"] == 0


async def test_few_labels_are_left_alone(store: LogStore) -> None:
    await learn(store, messages(MIN_LABELS - 1))
    assert (await refit_classifiers(a_night(store)))["fitted"] == 0


async def test_what_words_tell_is_no_label(store: LogStore) -> None:
    """The head is not asked about it; nor is what nobody knows one."""
    rows = [reflection(1, "timeout", "Timed out after <n> seconds"), reflection(2, "unknown", "eh")]
    await learn(store, rows)
    assert (await refit_classifiers(a_night(store)))["labels"] == 0


def test_the_newest_labels_judge() -> None:
    """And are not fitted on."""
    labels = [Label(float(number), f"text {number}", "timeout") for number in range(10)]
    older, newest = split(labels[::-1])
    assert [each.seen for each in newest] == [8.0, 9.0]
    assert not set(older) & set(newest)
    assert MAX_LABELS > MIN_LABELS
