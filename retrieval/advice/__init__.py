"""Actions other than changing parameters, and honest words where there is none."""

from retrieval.advice.abstaining import abstention_reason, loop_note
from retrieval.advice.advise import advise, needs_like_calls, needs_other_tools
from retrieval.advice.refusals import Refusal, refusal_of
from retrieval.advice.retrying import retry_advice
from retrieval.advice.situation import PLAIN, Advice, Candidate, NoAdvice, Situation

__all__ = [
    "PLAIN", "Advice", "Candidate", "NoAdvice", "Refusal", "Situation", "abstention_reason",
    "advise", "loop_note", "needs_like_calls", "needs_other_tools", "refusal_of", "retry_advice",
]  # fmt: skip
