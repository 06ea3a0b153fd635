"""A workspace's own head: the shipped messages and what its tools said, where a code told the kind.

A label is a message whose words no grammar knows and whose category came from the type or the code
beside it: from like words without a code the head is asked. It is taken only where it reads more of
the newest labels, which it has not seen, rightly than the head in use.
"""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel

from aftercall.models import ErrorCategory, ExecutionError
from retrieval.classifier.head import CategoryHead, text_of
from retrieval.knowledge.documents import Document
from retrieval.reading.reader import read_error

MIN_LABELS = 300
"""Below it a workspace has too few to be fitted on and judged by."""

MAX_LABELS = 5_000
"""Those seen last: older ones speak of tools that have changed since."""

HELD_OUT = 0.2
"""Share of the labels, the newest, that judge."""


_MASK = re.compile(r"<(?:v|n|url|email|id|date|path|hex)>")


@dataclass(frozen=True, slots=True, order=True)
class Label:
    """A message of the workspace, masked, with its category; ordered by when it was seen last."""

    seen: float
    text: str
    category: ErrorCategory


class OwnHead(BaseModel):
    """The fact: which labels were tried last, and the head of those that were taken, if any."""

    tried: str = ""
    head: str | None = None


def classifier_fact(workspace: str) -> str:
    """The name of the store's fact that holds a workspace's `OwnHead`."""
    return f"classifier:{workspace}"


def label_of(document: Document) -> Label | None:
    """The label that a reflection document is, if it is one."""
    if document.signature is None or document.category in (None, "unknown"):
        return None
    message = _MASK.sub("…", document.signature)
    if not read_error(ExecutionError(message=message), {}).is_unread:
        return None
    text = text_of(message)
    seen = document.last_seen.timestamp() if document.last_seen is not None else 0.0
    return None if text == "-" else Label(seen, text, document.category)


def digest_of(labels: Sequence[Label], shipped: CategoryHead) -> str:
    """Says which labels, on top of which shipped head."""
    said = [shipped.training_digest, *((each.text, each.category) for each in sorted(labels))]
    return hashlib.sha256(json.dumps(said, ensure_ascii=False).encode()).hexdigest()


def split(labels: Sequence[Label]) -> tuple[list[Label], list[Label]]:
    """Those to fit on, and the newest, to judge by."""
    ordered = sorted(labels)
    held_out = max(1, round(len(ordered) * HELD_OUT))
    return ordered[:-held_out], ordered[-held_out:]


def as_shipped(head: CategoryHead, shipped: CategoryHead) -> CategoryHead:
    """A fitted head with the shipped temperature and threshold, rounded as it is kept."""
    tuned = replace(head, temperature=shipped.temperature, threshold=shipped.threshold)
    return CategoryHead.of_json(tuned.to_json())


def is_better(
    new: CategoryHead,
    current: CategoryHead,
    judges: Sequence[Label],
    classify: Callable[[CategoryHead, Label], ErrorCategory],
) -> bool:
    """Whether the new head reads more of the judges rightly."""

    def right(head: CategoryHead) -> int:
        return sum(classify(head, each) == each.category for each in judges)

    return right(new) > right(current)
