"""What leaves the room: without secrets, and what others said bounded."""

from dataclasses import dataclass

from aftercall.models import ExcludedTool, Promotion, RankedTool, SimilarFailure
from aftercall.redaction import Redactor

_MAX_SHOWN = 500
"""Characters of a past scenario, a message or a reason in an answer."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Makes answers of what is known; each method returns a copy."""

    redactor: Redactor

    def ranked(self, ranked: RankedTool) -> RankedTool:
        """A candidate with its factors."""
        factors = ranked.factors
        failures = [self.failure(each) for each in factors.similar_failures]
        return ranked.model_copy(
            update={
                "tool": self.redactor.tool(ranked.tool),
                "factors": factors.model_copy(update={"similar_failures": failures}),
            }
        )

    def excluded(self, excluded: ExcludedTool) -> ExcludedTool:
        """What was not offered, and why."""
        return excluded.model_copy(update={"reason": self._bounded(excluded.reason)})

    def failure(self, failure: SimilarFailure) -> SimilarFailure:
        """A past failure; its words are some caller's."""
        message = failure.error_message
        return failure.model_copy(
            update={
                "scenario": self._bounded(failure.scenario),
                "error_message": None if message is None else self._bounded(message),
            }
        )

    def promotion(self, promotion: Promotion) -> Promotion:
        """A promotion whole: its file is exchanged as it is."""
        return promotion.model_copy(
            update={
                "reason": self.redactor.text(promotion.reason),
                "mutation": self.redactor.text(promotion.mutation),
            }
        )

    def _bounded(self, text: str) -> str:
        text = self.redactor.text(text)
        return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"
