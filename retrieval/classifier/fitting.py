"""Fitting a head: multinomial logistic regression over embedding, terms and reading. Pure.

It needs scikit-learn, which answering does without: import it where something is fitted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import chi2
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from aftercall.models import ErrorCategory
from retrieval.classifier.head import CategoryHead
from retrieval.classifier.terms import terms_of

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
