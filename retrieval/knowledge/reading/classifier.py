"""The category of a message that no grammar knows well: a linear head over embedding and words.

Multinomial logistic regression over the message and its reading by the grammar. The shipped head is
fitted by `python -m bench.quality.classifier --write` on the `train` split of
`bench/quality/labelled_messages.jsonl`; `classifier_head.json` holds its weights, the embedder's
name and the digest of what it was fitted on.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray

from aftercall.models import ErrorCategory
from retrieval.knowledge.reading.category import CategoryReading, plain_words


def terms_of(text: str) -> set[str]:
    """Words, pairs of neighbours, and beginnings and ends of longer words."""
    words = text.split()
    found = {*words, *map(" ".join, pairwise(words))}
    found |= {f"{word[:4]}-" for word in words if len(word) > 4}
    found |= {f"-{word[-4:]}" for word in words if len(word) > 5}
    return found | {f"{word[:6]}-" for word in words if len(word) > 6}


HEAD = "classifier_head.json"
_EMBEDDED = 600
"""Characters of a message that are embedded: what is wrong stands first."""
Weights = NDArray[np.float32]


def embedded_words(message: str) -> str:
    """Return what of a message is embedded: its plain words, without frames and marks."""
    return plain_words(message).strip()[:_EMBEDDED] or "-"


@dataclass(frozen=True, slots=True)
class CategoryHead:
    """Categories by the embedding, the terms and the grammar's reading of a message's words.

    The words are those that `embedded_words` returns.

    All weights are float32: `weights` has shape (categories, dimension) and `bias` (categories,);
    `terms` holds a row of shape (categories,) for each term, which are added up and divided by
    the root of their number; `readings` one for each category that the grammar may have read.
    Logits are divided by `temperature` before the softmax, so that probabilities are calibrated
    (temperature scaling, Guo et al. 2017). Below `threshold` the category is `unknown`.
    """

    embedder: str
    training_digest: str
    categories: tuple[ErrorCategory, ...]
    weights: Weights
    bias: Weights
    terms: dict[str, Weights]
    readings: dict[str, Weights]
    temperature: float
    threshold: float

    @classmethod
    def load(cls, embedder_name: str) -> "CategoryHead | None":
        """Return the shipped head; None when it was fitted on another embedder's vectors."""
        head = shipped_head()
        if head.embedder == embedder_name:
            return head
        return None

    @classmethod
    def of_json(cls, text: str) -> "CategoryHead":
        """Return a head from the text of its file."""
        raw = json.loads(text)
        return cls(
            embedder=raw["embedder"],
            training_digest=raw["training_digest"],
            categories=tuple(raw["categories"]),
            weights=np.asarray(raw["weights"], dtype=np.float32),
            bias=np.asarray(raw["bias"], dtype=np.float32),
            terms=_read_rows(raw["terms"]),
            readings=_read_rows(raw["readings"]),
            temperature=float(raw["temperature"]),
            threshold=float(raw["threshold"]),
        )

    def category_probabilities(
        self, vector: Weights, text: str = "", read_as: ErrorCategory = "unknown"
    ) -> Weights:
        """Return the calibrated probability of each category, shape (categories,)."""
        logits = self.weights @ vector + self.bias
        known = [row for term in terms_of(text) if (row := self.terms.get(term)) is not None]
        if known:
            logits = logits + np.sum(known, axis=0) / np.sqrt(len(known))
        if (row := self.readings.get(read_as)) is not None:
            logits = logits + row
        powers = np.exp((logits - logits.max()) / self.temperature)
        return cast("Weights", powers / powers.sum())

    def classify_error(
        self, vector: Weights, text: str = "", read_as: ErrorCategory = "unknown"
    ) -> CategoryReading:
        """Return the likeliest category with its probability; `unknown` below the threshold.

        `text` is what `embedded_words` returns for the message, and `vector` its embedding, of unit
        length. `read_as` is what the grammar took the message for; `unknown` is no evidence.
        """
        probabilities = self.category_probabilities(vector, text, read_as)
        best = int(probabilities.argmax())
        probability = float(probabilities[best])
        likely = probability >= self.threshold
        return CategoryReading(self.categories[best] if likely else "unknown", probability)


def _read_rows(raw: dict[str, list[float]]) -> dict[str, Weights]:
    return {name: np.asarray(row, dtype=np.float32) for name, row in raw.items()}


@cache
def shipped_head() -> CategoryHead:
    """Return the head that comes with this package."""
    return CategoryHead.of_json(
        files("retrieval.knowledge.reading").joinpath(HEAD).read_text(encoding="utf-8")
    )
