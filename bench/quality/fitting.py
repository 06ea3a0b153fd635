"""Fitting what is shipped: priors and weights of confidence, and the classifier's head.

Priors by kind of edit are Beta counts, drawn towards 0.7 as if `_SHRINK` trials had been seen there
(empirical Bayes), and no surer than `_MOST` trials, so that a workspace's own evidence can move
them. The weights are those of a logistic regression (scikit-learn, L2).
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import chi2
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from aftercall.models import ErrorCategory
from retrieval.classifier import CategoryHead, terms_of
from retrieval.confidence import FEATURES, JUDGED, Blend, Calibration, log_odds

_SHRINK = 4.0
_MOST = 60.0
_FEW = 8
"""Trials of a kind below which its prior stays the judged one."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A proposal's features, and whether it was right; `weight` is its share of its case."""

    features: tuple[float, ...]
    right: bool
    weight: float = 1.0


def fit_priors(
    seen: Iterable[tuple[str, bool]], judged: float = 0.7
) -> dict[str, tuple[float, float]]:
    """Beta counts by kind, from options and whether each was right."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for kind, was_right in seen:
        counts[kind][not was_right] += 1
    fitted = {}
    for kind, (right, wrong) in sorted(counts.items()):
        total = right + wrong
        if total < _FEW:
            continue
        size = min(1.0, _MOST / (total + _SHRINK))
        fitted[kind] = (
            round((right + judged * _SHRINK) * size, 2),
            round((wrong + (1 - judged) * _SHRINK) * size, 2),
        )
    return fitted


_DOUBTS = frozenset(
    ("uncovered", "strange", "blind", "new_value_in_write", "of_others", "lost", "unusual")
)
"""Features that may only take from a confidence, whatever a benchmark says of them."""

_RISING = frozenset(("rivals", "unlikely"))
"""Features that rise with a proposal's own evidence."""


def fit_weights(rows: Sequence[Labelled]) -> Calibration:
    """The weights of a logistic regression; the likelihood's is kept positive.

    A feature whose weight would have the wrong sign is left out, and the others are fitted anew.

    Raises:
        ValueError: when all rows are right, or none is.
    """
    right = np.array([row.right for row in rows])
    weight = np.array([row.weight for row in rows])
    used = list(range(len(FEATURES)))
    while True:
        features = np.array([[row.features[at] for at in used] for row in rows])
        model = LogisticRegression(C=1.0, max_iter=1000).fit(features, right, sample_weight=weight)
        found = {
            FEATURES[at]: round(float(w), 4) for at, w in zip(used, model.coef_[0], strict=True)
        }
        wrong = {name for name in _DOUBTS if found.get(name, 0) > 0}
        wrong |= {name for name in _RISING if found.get(name, 0) < 0}
        if not wrong:
            break
        used = [at for at in used if FEATURES[at] not in wrong]
    weights = {name: found.get(name, 0.0) for name in FEATURES}
    weights["likelihood"] = max(0.05, weights["likelihood"])
    return Calibration(intercept=round(float(model.intercept_[0]), 4), weights=weights)


_EVIDENCE = frozenset(("likelihood", "rivals", "bound", "least_likely"))
"""Numbers of which more never makes a proposal less likely."""
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Judged:
    """A proposal's vector, in the order of `JUDGED`, and whether it was right."""

    vector: tuple[float, ...]
    right: bool
    weight: float = 1.0


def fit_trees(rows: Sequence[Judged]) -> HistGradientBoostingClassifier:
    """Sixty small trees (scikit-learn) whose word only rises with a proposal's own evidence."""
    model = HistGradientBoostingClassifier(
        max_depth=3, max_iter=60, learning_rate=0.12, min_samples_leaf=60, l2_regularization=5.0,
        monotonic_cst=[int(name in _EVIDENCE) for name in JUDGED], random_state=0,
        early_stopping=False,
    )  # fmt: skip
    vectors, right = np.array([row.vector for row in rows]), [row.right for row in rows]
    return model.fit(vectors, right, sample_weight=[row.weight for row in rows])


@dataclass(frozen=True, slots=True)
class Told:
    """What trees that never saw a proposal's kind say of it, and what else is known of it."""

    odds: float
    left: float
    estimate: float
    right: bool
    weight: float = 1.0


def fit_blend(rows: Sequence[Told]) -> Blend:
    """Platt's regression over the trees' log-odds, the doubts' share and the estimate."""
    features = [(each.odds, log(each.left), log_odds(each.estimate)) for each in rows]
    model = LogisticRegression(C=1.0, max_iter=1000)
    model.fit(features, [e.right for e in rows], sample_weight=[e.weight for e in rows])
    trees, left, estimate = (round(max(0.0, float(each)), 4) for each in model.coef_[0])
    intercept = round(float(model.intercept_[0]), 4)
    return Blend(intercept=intercept, trees=trees, left=left, estimate=estimate)


def json_of_trees(models: Sequence[HistGradientBoostingClassifier]) -> str:
    """The text of the trees' file: a node is feature, threshold, both ways on, and value."""
    fits = ",\n".join(map(_json_of_fit, models))
    return f'{{"features": {json.dumps(JUDGED)},\n"fits": [\n{fits}\n]}}\n'


def _json_of_fit(model: HistGradientBoostingClassifier) -> str:
    trees = [
        [
            [
                int(node["feature_idx"]),
                0 if node["is_leaf"] else round(float(node["num_threshold"]), _DIGITS),
                int(node["left"]),
                int(node["right"]),
                round(float(node["value"]), _DIGITS),
            ]
            for node in predictor.nodes
        ]
        for [predictor] in model._predictors  # noqa: SLF001 - the library has no other way to them
    ]
    base = round(float(model._baseline_prediction.item()), _DIGITS)  # noqa: SLF001
    lines = ",\n".join(json.dumps(tree, separators=(",", ":")) for tree in trees)
    return f'{{"base": {base}, "trees": [\n{lines}\n]}}'


INVERSE_REGULARISATION = 3.0
"""C of scikit-learn: best of 3, 5 and 8 by cross-validation over families, like what follows."""
TERMS = 4_000
"""Terms kept, by chi-squared; 2,500 lose 0.015 of macro F1, more gain nothing."""
TERM_SCALE = 1.5
READING_SCALE = 0.5
"""Length of the terms' part and of the grammar's in the input; that of the embedding is 1."""


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A message as the head sees it, and its category.

    `vector` is the embedding of `text` (`retrieval.classifier.text_of`), shape (dimension,), unit
    length; `read_as` what the grammar says, `unknown` where that is no evidence.
    """

    vector: NDArray[np.float32]
    text: str
    category: ErrorCategory
    read_as: ErrorCategory = "unknown"


def fit_head(examples: Sequence[LabelledText], embedder: str, digest: str) -> CategoryHead:
    """The head of the examples, with a temperature of 1 and no threshold.

    Args:
        examples: of at least three categories, as the shipped messages are.
        embedder: name of what made the vectors.
        digest: says what the head was fitted on.
    """
    labels = [each.category for each in examples]
    counter = CountVectorizer(analyzer=terms_of, binary=True, min_df=2)
    counts = counter.fit_transform([each.text for each in examples]).astype(np.float64)
    best = np.sort(np.argsort(-chi2(counts, labels)[0], kind="stable")[:TERMS])
    terms = counter.get_feature_names_out()[best]
    read_as = sorted(set(labels) - {"unknown"})
    readings = np.array([[each.read_as == name for name in read_as] for each in examples])
    features = hstack(
        [
            csr_matrix(np.stack([each.vector for each in examples])),
            TERM_SCALE * normalize(counts[:, best]),
            READING_SCALE * csr_matrix(readings, dtype=np.float64),
        ]
    )
    model = LogisticRegression(
        C=INVERSE_REGULARISATION, class_weight="balanced", max_iter=2_000, tol=1e-3
    ).fit(features.tocsr(), labels)
    found = model.coef_.astype(np.float32)
    width = len(examples[0].vector)
    of_terms = TERM_SCALE * found[:, width : width + len(terms)]
    of_readings = READING_SCALE * found[:, width + len(terms) :]
    return CategoryHead(
        embedder=embedder,
        training_digest=digest,
        categories=cast("tuple[ErrorCategory, ...]", tuple(map(str, model.classes_))),
        weights=found[:, :width],
        bias=model.intercept_.astype(np.float32),
        terms=dict(zip(map(str, terms), of_terms.T, strict=True)),
        readings=dict(zip(read_as, of_readings.T, strict=True)),
        temperature=1.0,
        threshold=0.0,
    )


def json_of(head: CategoryHead) -> str:
    """The text of a head's file; weights are rounded, those of terms to two decimals."""

    def rounded(row: NDArray[np.float32], decimals: int) -> list[float]:
        return [round(float(each), decimals) for each in row]

    return json.dumps(
        {
            "embedder": head.embedder,
            "training_digest": head.training_digest,
            "categories": head.categories,
            "temperature": round(head.temperature, 4),
            "threshold": round(head.threshold, 4),
            "bias": rounded(head.bias, 4),
            "weights": [rounded(row, 4) for row in head.weights],
            "readings": {name: rounded(row, 4) for name, row in head.readings.items()},
            "terms": {term: rounded(row, 2) for term, row in head.terms.items()},
        },
        separators=(",", ":"),
        ensure_ascii=False,
    )


Split = Literal["train", "test"]


@dataclass(frozen=True, slots=True)
class LabelledMessage:
    """A message, its category, the family of systems that writes it, and its split.

    Whole families are in the test split, which was frozen with the first ones: those added since
    are of the train split only, and no message like one of the test split was added. `conflict`
    means that the present state of the thing refuses a well-formed request, `execution` that the
    tool broke while it ran, `unknown` that the message tells neither.
    """

    message: str
    category: ErrorCategory
    source: str
    split: Split
    is_later: bool = False
    """Written after the grammar, which therefore is no better on it than on any message."""


def labelled_messages() -> list[LabelledMessage]:
    """All labelled messages, in the order of the file."""
    text = Path(__file__).with_name("labelled_messages.jsonl").read_text(encoding="utf-8")
    return [LabelledMessage(**json.loads(line)) for line in text.split("\n") if line]


def training_digest(messages: list[LabelledMessage]) -> str:
    """SHA-256 of the messages of the train split and their categories, in order."""
    train = [(each.message, each.category) for each in messages if each.split == "train"]
    return hashlib.sha256(json.dumps(train, ensure_ascii=False).encode()).hexdigest()
