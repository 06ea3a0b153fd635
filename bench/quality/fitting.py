"""Fitting what is shipped: priors and weights of confidence, and the classifier's head.

Priors by kind of edit are Beta counts, drawn towards 0.7 as if `_SHRINK` trials had been seen there
(empirical Bayes), and no surer than `_MOST` trials, so that a workspace's own evidence can move
them. The weights are those of a logistic regression (scikit-learn, L2).
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import chi2
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import normalize

from aftercall.models import ErrorCategory
from retrieval.answers.judge.model import Model
from retrieval.answers.judge.signals import FALLING, RISING, SIGNALS
from retrieval.knowledge.reading.classifier import CategoryHead, terms_of

_SHRINK = 4.0
_MOST = 60.0
_FEW = 8
"""Trials of a kind below which its prior stays the judged one."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A proposal's signals, and whether it was right; `weight` is its share of its case."""

    signals: tuple[float, ...]
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


def text_of_priors(text: str, measured: Mapping[str, tuple[float, float]]) -> str:
    """Return the text of `priors.toml` with newly measured counts; judged kinds stay."""
    head, rest = text.split("[measured]\n", 1)
    _, judged = rest.split("[judged]\n", 1)
    lines = [f'"{kind}" = [{right:g}, {wrong:g}]' for kind, (right, wrong) in measured.items()]
    kept = [line for line in judged.splitlines() if line and line.split('"')[1] not in measured]
    return "\n".join([f"{head}[measured]", *lines, "", "[judged]", *kept]) + "\n"


_DIGITS = 4


def fit_trees(rows: Sequence[Labelled]) -> HistGradientBoostingClassifier:
    """Small trees (scikit-learn) that only rise with evidence and fall with what is strange."""
    model = HistGradientBoostingClassifier(
        max_depth=3, max_iter=60, learning_rate=0.12, min_samples_leaf=60, l2_regularization=5.0,
        monotonic_cst=[int(name in RISING) - int(name in FALLING) for name in SIGNALS],
        random_state=0, early_stopping=False,
    )  # fmt: skip
    vectors, right = np.array([row.signals for row in rows]), [row.right for row in rows]
    return model.fit(vectors, right, sample_weight=[row.weight for row in rows])


@dataclass(frozen=True, slots=True)
class Combined:
    """What fits that never saw a proposal's family say of it, and whether it was right."""

    odds: list[float]
    right: bool
    weight: float = 1.0


_CAUTIONS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)


def fit_combination(rows: Sequence[Combined]) -> Model:
    """Platt's regression over the fits' mean less their spread; how much less, by log loss."""
    right, weight = [row.right for row in rows], [row.weight for row in rows]
    best = None
    for caution in _CAUTIONS:
        bare = Model((), caution=caution)
        odds = [[bare.combine(row.odds)] for row in rows]
        fitted = LogisticRegression(C=100.0, max_iter=1000).fit(odds, right, sample_weight=weight)
        loss = log_loss(right, fitted.predict_proba(odds)[:, 1], sample_weight=weight)
        print(f"  caution {caution}: log loss {loss:.4f}")
        if best is None or loss < best[0]:
            best = loss, caution, float(fitted.intercept_[0]), float(fitted.coef_[0][0])
    assert best is not None
    _, caution, shift, slope = best
    return Model((), round(shift, _DIGITS), round(slope, _DIGITS), caution)


def json_of_model(fits: Sequence[HistGradientBoostingClassifier], model: Model) -> str:
    """The text of the model's file: a node is feature, threshold, both ways on, and value."""
    scaling: dict[str, object] = {"shift": model.shift, "slope": model.slope}
    scaling |= {"caution": model.caution, "bars": model.bars}
    head = json.dumps({"features": SIGNALS, **scaling})[1:-1]
    joined = ",\n".join(map(_json_of_fit, fits))
    return f'{{{head},\n"fits": [\n{joined}\n]}}\n'


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

    `vector` is the embedding of `text` (`reading.classifier.text_of`), shape (dimension,), unit
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
