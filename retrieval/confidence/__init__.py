"""Confidence: how likely a proposal does what the caller meant, as a calibrated probability."""

from retrieval.confidence.calibration import (
    ENOUGH_OUTCOMES,
    Calibration,
    Estimate,
    Scaling,
    shipped,
)
from retrieval.confidence.consent import MOST_WITHOUT_CONSENT, needs_consent
from retrieval.confidence.features import FEATURES, features_of, likelihood, lower_bound

MIN_CONFIDENCE = 0.15
"""Below this nothing is proposed (4-rules.md, Suggesting)."""

__all__ = [
    "ENOUGH_OUTCOMES", "FEATURES", "MIN_CONFIDENCE", "MOST_WITHOUT_CONSENT", "Calibration",
    "Estimate", "Scaling", "features_of", "likelihood", "lower_bound", "needs_consent", "shipped",
]  # fmt: skip
