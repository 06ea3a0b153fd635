"""Fitting what is shipped: priors, the judge's points, and the classifier's head.

Priors by kind of edit are Beta counts, drawn towards 0.7 as if `_SHRINK` trials had been seen there
(empirical Bayes), and no surer than `_MOST` trials, so that a workspace's own evidence can move
them. The points are sums of boosted stumps (scikit-learn), scaled by a logistic regression.
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
from sklearn.preprocessing import normalize

from aftercall.models import ErrorCategory
from retrieval.answers.judge.model import Model, Steps
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


def fit_stumps(rows: Sequence[Labelled]) -> HistGradientBoostingClassifier:
    """Return boosted stumps (scikit-learn): each signal has a say of its own, and goes one way."""
    model = HistGradientBoostingClassifier(
        max_depth=1, max_iter=1000, learning_rate=0.1, min_samples_leaf=20, l2_regularization=1.0,
        monotonic_cst=[int(name in RISING) - int(name in FALLING) for name in SIGNALS],
        random_state=0, early_stopping=False,
    )  # fmt: skip
    vectors, right = np.array([row.signals for row in rows]), [row.right for row in rows]
    return model.fit(vectors, right, sample_weight=[row.weight for row in rows])


def fit_scale(odds: Sequence[float], rows: Sequence[Labelled]) -> tuple[float, float]:
    """Return shift and slope (Platt 1999) of the log-odds of rows that no fit had seen."""
    fitted = LogisticRegression(C=100.0, max_iter=1000).fit(
        np.array(odds)[:, None],
        [row.right for row in rows],
        sample_weight=[row.weight for row in rows],
    )
    return float(fitted.intercept_[0]), float(fitted.coef_[0][0])


def points_of(
    stumps: HistGradientBoostingClassifier, rows: Sequence[Labelled], shift: float, slope: float
) -> Model:
    """Return the model of fitted stumps without bars; a usual value of a signal has no points."""
    jumps: list[dict[float, float]] = [defaultdict(float) for _ in SIGNALS]
    lows = [0.0 for _ in SIGNALS]
    base = float(stumps._baseline_prediction.item())  # noqa: SLF001 - the library has no other way
    for [predictor] in stumps._predictors:  # noqa: SLF001 - to its trees
        root = predictor.nodes[0]
        if root["is_leaf"]:
            base += float(root["value"])
            continue
        low, high = (float(predictor.nodes[root[side]]["value"]) for side in ("left", "right"))
        lows[root["feature_idx"]] += low
        jumps[root["feature_idx"]][float(root["num_threshold"])] += high - low
    weights = np.array([row.weight for row in rows])
    steps = []
    for place, jump in enumerate(jumps):
        above = sorted(jump)
        points = lows[place] + np.cumsum([0.0, *(jump[each] for each in above)])
        values = np.searchsorted(above, [row.signals[place] for row in rows], side="left")
        usual = float(np.average(points[values], weights=weights))
        base += usual
        rounded = (round(slope * (float(each) - usual), _DIGITS) for each in points)
        steps.append(Steps(tuple(round(each, _DIGITS) for each in above), tuple(rounded)))
    return Model(round(shift + slope * base, _DIGITS), tuple(steps))


def json_of_model(model: Model) -> str:
    """Return the text of the model's file: for each signal its steps and their points."""
    rows = (
        f"{json.dumps(name)}: {json.dumps(steps._asdict(), separators=(',', ':'))}"
        for name, steps in zip(SIGNALS, model.steps, strict=True)
    )
    bars = json.dumps(model.bars, indent=1)
    points = ",\n".join(rows)
    return f'{{"base": {model.base},\n"bars": {bars},\n"points": {{\n{points}\n}}}}\n'


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
