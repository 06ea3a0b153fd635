"""What recommendations are made of: one tool's evidence, the rules, the words and the ids."""

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from aftercall import models as m
from aftercall.redaction import Redactor
from mongo.records import ToolKey
from retrieval.knowledge.rows.health import KnownHealth, Tally
from retrieval.knowledge.rows.registry import name_tool

MAX_QUOTES = 5
MAX_QUOTE = 300
"""Characters of one quotation; a sentence or two, with what is around them in the log."""
MAX_PHRASE = 80
MAX_MESSAGE = 1_000
MAX_EXECUTIONS = 10
_IDS = uuid.UUID("7d0b7a4e-5f3c-5b7e-8a55-0f6a1c2d9b31")
Matter = Literal["repair", "tighten_contract", "boundaries", "review_promotion"]
"""What a recommendation is about. `split` and `recompose` are one matter, `boundaries`: the tool
does several jobs. Which of the two is suggested changes as other tools come and go; what a builder
did about it stays."""
MATTERS: dict[m.RecommendationKind, Matter] = {
    "repair": "repair",
    "tighten_contract": "tighten_contract",
    "split": "boundaries",
    "recompose": "boundaries",
    "review_promotion": "review_promotion",
}


@dataclass(frozen=True, slots=True)
class Quotes:
    """Makes words fit to be shown. Redacted first and cut then, so that no secret is cut in two."""

    redactor: Redactor

    def bound_text(self, text: str, limit: int = MAX_QUOTE) -> str:
        """At most `limit` characters."""
        clean = self.redactor.text(text)
        return clean if len(clean) <= limit else f"{clean[: limit - 1]}…"

    def quote_text(self, text: str, limit: int = MAX_PHRASE) -> str:
        """On one line, in double quotes that cannot be closed from inside."""
        line = " ".join(self.redactor.text(text).split()).replace('"', "'")
        shown = "".join(char if char.isprintable() else "\ufffd" for char in line)
        return f'"{self.bound_text(shown, limit)}"'

    def distinct_texts(self, texts: Iterable[str]) -> list[str]:
        """Return the first few different ones that say anything, bounded."""
        found: dict[str, None] = {}
        for text in texts:
            if text.strip():
                found.setdefault(self.bound_text(text.strip()), None)
            if len(found) == MAX_QUOTES:
                break
        return list(found)

    def show_recommendation(self, recommendation: m.Recommendation) -> m.Recommendation:
        """Return a copy fit to be stored and answered, whatever it was made from."""
        masked = self.redactor.value(recommendation.model_dump(mode="json"))
        return m.Recommendation.model_validate(masked)


@dataclass(frozen=True, slots=True)
class Subject:
    """A tool with its health, at one moment."""

    tool: ToolKey
    tool_id: str | None
    known: KnownHealth
    cohesion: m.Cohesion
    now: datetime
    words: Quotes

    @property
    def name(self) -> str:
        """Its name, as messages quote it."""
        return self.words.quote_text(self.tool_id or self.tool.tool_name)

    @property
    def calls(self) -> int:
        """Return all calls that are known."""
        return self.known.successes.count + self.known.failures.count


@dataclass(frozen=True, slots=True)
class ScoredPart:
    """One kind of evidence."""

    what: str
    tally: Tally
    points: float = 1.0

    def weight_now(self, now: datetime) -> float:
        """Return what it weighs now, in points."""
        return self.tally.weight_at(now) * self.points


def id_of_matter(matter: Matter, workspace: str, *names: str | None) -> str:
    """Return the id of a matter of a tool, by its server and name, or of a namespace."""
    return str(uuid.uuid5(_IDS, json.dumps((matter, workspace, *names))))


def make_recommendation(
    subject: Subject,
    kind: m.RecommendationKind,
    message: str,
    *,
    parts: Sequence[ScoredPart],
    confidence: float,
    events: Iterable[tuple[datetime, str]],
    quotes: Iterable[str],
) -> m.Recommendation:
    """Return a recommendation about the subject.

    Its priority is the weight of the evidence in points (`Part.points`), halving every 7 days,
    times the confidence: so it grows with how often, how lately and how surely.
    """
    latest = sorted(events, reverse=True)
    seen = [part.tally.at for part in parts if part.tally.at is not None]
    seen += [at for at, _ in latest]
    weighed = sorted(
        (part for part in parts if part.tally.count),
        key=lambda part: (-part.weight_now(subject.now), part.what),
    )
    points = sum(part.weight_now(subject.now) for part in parts)
    return m.Recommendation(
        recommendation_id=id_of_matter(MATTERS[kind], *subject.tool),
        kind=kind,
        tool=name_tool(subject.tool, subject.tool_id),
        message=subject.words.bound_text(message, MAX_MESSAGE),
        confidence=round(confidence, 4),
        priority=round(points * confidence, 4),
        evidence=m.RecommendationEvidence(
            counts=[
                m.EvidenceCount(
                    what=part.what,
                    count=part.tally.count,
                    weight=round(part.tally.weight_at(subject.now), 4),
                )
                for part in weighed
            ],
            calls=subject.calls,
            quotes=subject.words.distinct_texts(quotes),
            execution_ids=list(dict.fromkeys(each for _, each in latest))[:MAX_EXECUTIONS],
        ),
        first_seen=min(seen, default=None),
        last_seen=max(seen, default=None),
    )


def count_things(count: int, thing: str) -> str:
    """`1 thing`, `2 things`."""
    if count == 1:
        return f"1 {thing}"
    return f"{count:,} {thing}es" if thing.endswith("ss") else f"{count:,} {thing}s"
