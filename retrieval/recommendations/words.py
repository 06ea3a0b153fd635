"""Words of tools and users in recommendations: without secrets, bounded, and told as quotations."""

from collections.abc import Iterable
from dataclasses import dataclass

from aftercall.models import Recommendation, RecommendationEvidence
from aftercall.redaction import Redactor

MAX_QUOTES = 5
MAX_QUOTE = 300
"""Characters of one quotation; a sentence or two, with what is around them in the log."""

MAX_PHRASE = 80
"""Characters of a name or a few words inside a message."""

MAX_MESSAGE = 1_000
MAX_REASON = 2_000
"""As many as the wire takes of a reason."""

MAX_SPLITS = 5
MAX_PARTS = 10
MAX_AXES_SHOWN = 10
MAX_OTHER_TOOLS = 5
MAX_EXECUTIONS = 10


@dataclass(frozen=True, slots=True)
class Words:
    """Makes words fit to be told. Redacted first and cut then, so that no secret is cut in two."""

    redactor: Redactor

    def bounded(self, text: str, limit: int = MAX_QUOTE) -> str:
        """At most `limit` characters."""
        clean = self.redactor.text(text)
        return clean if len(clean) <= limit else f"{clean[: limit - 1]}…"

    def quoted(self, text: str, limit: int = MAX_PHRASE) -> str:
        """On one line, in double quotes that cannot be closed from inside."""
        line = " ".join(self.redactor.text(text).split()).replace('"', "'")
        shown = "".join(char if char.isprintable() else "\ufffd" for char in line)
        return f'"{self.bounded(shown, limit)}"'

    def distinct(self, texts: Iterable[str]) -> list[str]:
        """The first few different ones that say anything, bounded."""
        found: dict[str, None] = {}
        for text in texts:
            if text.strip():
                found.setdefault(self.bounded(text.strip()), None)
            if len(found) == MAX_QUOTES:
                break
        return list(found)

    def shown(self, recommendation: Recommendation) -> Recommendation:
        """A copy fit to be stored and answered, whatever it was made from."""
        reason = recommendation.state_reason
        return recommendation.model_copy(
            update={
                "message": self.bounded(recommendation.message, MAX_MESSAGE),
                "evidence": self._evidence(recommendation.evidence),
                "state_reason": None if reason is None else self.bounded(reason, MAX_REASON),
            }
        )

    def _evidence(self, evidence: RecommendationEvidence) -> RecommendationEvidence:
        promotion = evidence.promotion
        if promotion is not None:
            clean = {"reason": promotion.reason, "mutation": promotion.mutation}
            promotion = promotion.model_copy(
                update={name: self.redactor.text(text) for name, text in clean.items()}
            )
        return evidence.model_copy(
            update={
                "counts": [
                    each.model_copy(update={"what": self.bounded(each.what)})
                    for each in evidence.counts
                ],
                "axes": [
                    each.model_copy(
                        update={
                            "name": self.bounded(each.name),
                            "axes": [self.bounded(axis) for axis in each.axes[:MAX_AXES_SHOWN]],
                        }
                    )
                    for each in evidence.axes[:MAX_AXES_SHOWN]
                ],
                "suggested_splits": [
                    [self.bounded(part) for part in split[:MAX_PARTS]]
                    for split in evidence.suggested_splits[:MAX_SPLITS]
                ],
                "other_tools": evidence.other_tools[:MAX_OTHER_TOOLS],
                "quotes": [self.bounded(each) for each in evidence.quotes[:MAX_QUOTES]],
                "execution_ids": evidence.execution_ids[:MAX_EXECUTIONS],
                "promotion": promotion,
            }
        )
