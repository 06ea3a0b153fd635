"""The step `classifier`: a workspace's own head, fitted anew where there are enough labels."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from heapq import heappush, heappushpop
from typing import TYPE_CHECKING

import numpy as np

from aftercall.models import ErrorCategory, ExecutionError
from embeddings.protocol import Embedder
from ingest.nightly.job import NightlyJob
from ingest.nightly.patterns import is_of
from mongo.records import Row, decoded, encoded
from retrieval.classifier import (
    MAX_LABELS,
    MIN_LABELS,
    CategoryHead,
    Label,
    OwnHead,
    as_shipped,
    digest_of,
    is_better,
    label_of,
    split,
    text_of,
)
from retrieval.knowledge.documents import Document
from retrieval.memory import CLASSIFIER, DOCUMENT
from retrieval.patterns import Vector
from retrieval.reading.reader import read_error

if TYPE_CHECKING:
    from retrieval.fitting import LabelledMessage

_EMBEDDED_AT_ONCE = 64

log = logging.getLogger("aftercall.classifier")


async def refit_classifiers(job: NightlyJob) -> dict[str, int]:
    """Fit the head of every workspace whose labels have changed.

    Raises:
        NightlyLostError, StoreError, EmbeddingError: what stopped it; it can be run again.
    """
    done = {"labels": 0, "fitted": 0, "taken": 0}
    for workspace in await job.knowledge.cursors():
        labels = await _labels(job, workspace)
        done["labels"] += len(labels)
        job.on_progress("classifier", done["labels"])
        if len(labels) < MIN_LABELS or len({each.category for each in labels}) < 2:
            continue
        await _refit(job, workspace, labels, done)
    return done


async def _refit(
    job: NightlyJob, workspace: str, labels: Sequence[Label], done: dict[str, int]
) -> None:
    embedder = await job.embedder()
    shipped = CategoryHead.load(embedder.name)
    if shipped is None:
        return  # there is nothing to go by with another model's vectors
    known = await job.knowledge.get(workspace, CLASSIFIER, [""])
    own = decoded(OwnHead, known[0].data) if known else OwnHead()
    digest = digest_of(labels, shipped)
    if own.tried == digest:
        return
    current = CategoryHead.of_json(own.head) if own.head is not None else shipped
    if current.embedder != embedder.name:
        current = shipped
    from retrieval.fitting import labelled_messages  # noqa: PLC0415 - as in `_fit`

    older, newest = split(labels)
    messages = [each for each in labelled_messages() if each.split == "train"]
    texts = [*(text_of(each.message) for each in messages), *(each.text for each in labels)]
    vectors = await _embedded(embedder, texts)
    fitted = await asyncio.to_thread(_fit, messages, older, vectors, embedder.name, digest, shipped)
    done["fitted"] += 1

    def classify(head: CategoryHead, label: Label) -> ErrorCategory:
        return head.classify(vectors[label.text], label.text).category

    taken = await asyncio.to_thread(is_better, fitted, current, newest, classify)
    if taken:
        done["taken"] += 1
        log.info("workspace %s reads errors with a head of %d labels", workspace, len(older))
    head = fitted.to_json() if taken else own.head
    await job.commit(workspace, [Row(CLASSIFIER, "", encoded(OwnHead(tried=digest, head=head)))])


async def _labels(job: NightlyJob, workspace: str) -> list[Label]:
    """The latest of a workspace, each text once."""
    latest: list[Label] = []
    async for row in job.rows(workspace, DOCUMENT.name):
        label = label_of(decoded(Document, row.data)) if is_of(row, "reflection") else None
        if label is None:
            continue
        if len(latest) < MAX_LABELS:
            heappush(latest, label)
        else:
            heappushpop(latest, label)
    return sorted({each.text: each for each in sorted(latest)}.values())


async def _embedded(embedder: Embedder, texts: Sequence[str]) -> dict[str, Vector]:
    distinct = list(dict.fromkeys(texts))
    vectors: dict[str, Vector] = {}
    for start in range(0, len(distinct), _EMBEDDED_AT_ONCE):
        chunk = distinct[start : start + _EMBEDDED_AT_ONCE]
        made = (await embedder.embed(chunk, "query")).astype(np.float32, copy=False)
        vectors.update(zip(chunk, made, strict=True))
    return vectors


def _fit(
    messages: "Sequence[LabelledMessage]",
    labels: Sequence[Label],
    vectors: Mapping[str, Vector],
    embedder: str,
    digest: str,
    shipped: CategoryHead,
) -> CategoryHead:
    from retrieval.fitting import (  # noqa: PLC0415 - scikit-learn, for this step alone
        LabelledText,
        fit_head,
    )

    examples = []
    for each in messages:
        text = text_of(each.message)
        # The grammar was written on the first families: it is no evidence there.
        read = read_error(ExecutionError(message=each.message), {}).category
        read_as = read if each.is_later else "unknown"
        examples.append(LabelledText(vectors[text], text, each.category, read_as))
    examples += [LabelledText(vectors[each.text], each.text, each.category) for each in labels]
    return as_shipped(fit_head(examples, embedder, digest), shipped)
