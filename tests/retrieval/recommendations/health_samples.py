"""Health of tools for the tests of recommendations, built event by event."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from aftercall.models import Recommendation
from aftercall.redaction import Redactor
from mongo.contents import StoredTool
from mongo.records import ToolKey
from retrieval.answers.recommendations.evidence import Quotes
from retrieval.answers.recommendations.queue import (
    Reviews,
    Workspace,
    queue_of,
    recommendations_about,
)
from retrieval.knowledge.patterns.clusters import AxisClusters, normalise_axis
from retrieval.knowledge.rows.health import (
    MAX_OWN_FAILURES,
    MAX_REFERRALS,
    MAX_WEAK,
    Corrected,
    KnownHealth,
    OwnFailure,
    Referred,
    Tally,
    Weak,
)
from retrieval.knowledge.rows.registry import Registry

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TOOL = ToolKey("w", "web", "read_page")
WORDS = Quotes(Redactor())


@dataclass
class Story:
    """What happened to a tool; each method adds events of `days_ago` days before `now`."""

    known: KnownHealth = field(default_factory=KnownHealth)
    events: int = 0
    now: datetime = NOW

    def successes(self, count: int, days_ago: float = 0.0) -> "Story":
        for _ in range(count):
            self.known.successes.add(self._at(days_ago))
        return self

    def own_failure(
        self, message: str = "KeyError: 'title'", category: Any = "execution", days_ago: float = 0.0
    ) -> "Story":
        self._failed(category, days_ago)
        self.known.own_failures.append(
            OwnFailure(
                at=self._at(days_ago), execution_id=self._id(), category=category, message=message
            )
        )
        del self.known.own_failures[:-MAX_OWN_FAILURES]
        return self

    def refuses(
        self,
        axes: Sequence[str],
        days_ago: float = 0.0,
        split: Sequence[str] = (),
        evidence: str | None = "asked for both",
    ) -> "Story":
        self._failed("wrong_tool_boundary", days_ago)
        return self._referred(
            "wrong_tool_boundary", days_ago, evidence=evidence, split=list(split),
            axes=[normalise_axis(each) for each in axes], spelled=list(axes),
        )  # fmt: skip

    def low_utility(self, days_ago: float = 0.0, evidence: str = "only a menu") -> "Story":
        self._failed("low_utility", days_ago)
        return self._referred("low_utility", days_ago, evidence=evidence)

    def weak(self, days_ago: float = 0.0, why: str = "the result is an empty list") -> "Story":
        self.known.successes.add(self._at(days_ago))
        self.known.weak.add(self._at(days_ago))
        self.known.recent_weak.append(Weak(at=self._at(days_ago), execution_id=self._id(), why=why))
        del self.known.recent_weak[:-MAX_WEAK]
        return self

    def correction(
        self,
        text: str = "this is a menu, not titles",
        days_ago: float = 0.0,
        kind: Any = "low_utility",
    ) -> "Story":
        self.known.corrections.add(self._at(days_ago))
        self.known.recent_corrections.append(
            Corrected(
                at=self._at(days_ago), correction_id=self._id(), execution_id=self._id(), kind=kind,
                text=text,
            )
        )  # fmt: skip
        return self

    def copy(self) -> "Story":
        return Story(self.known.model_copy(deep=True), self.events, self.now)

    def _failed(self, category: Any, days_ago: float) -> None:
        self.known.failures.add(self._at(days_ago))
        self.known.categories.setdefault(category, Tally()).add(self._at(days_ago))

    def _referred(self, kind: Any, days_ago: float, **fields: Any) -> "Story":
        self.known.referrals.append(
            Referred(
                at=self._at(days_ago), execution_id=self._id(), kind=kind, session="s", **fields
            )
        )
        del self.known.referrals[:-MAX_REFERRALS]
        return self

    def _at(self, days_ago: float) -> datetime:
        return self.now - timedelta(days=days_ago)

    def _id(self) -> str:
        self.events += 1
        return str(UUID(int=self.events))


def around(
    tools: Sequence[StoredTool] = (), reviews: Reviews | None = None, now: datetime = NOW
) -> Workspace:
    """What there is besides the health; every axis is a cluster of its own."""
    return Workspace(
        registry=Registry(tools),
        clusters=AxisClusters(),
        reviews=reviews or {},
        words=WORDS,
        now=now,
    )


def about(
    story: Story, *, tools: Sequence[StoredTool] = (), now: datetime = NOW
) -> dict[str, Recommendation]:
    """What is recommended about a tool, by kind."""
    workspace = around(tools, now=now)
    subject = workspace.make_subject(TOOL, story.known)
    return {each.kind: each for each in recommendations_about(subject, workspace.registry)}


def priority(story: Story, *, now: datetime = NOW) -> float:
    """All that is recommended about a tool; 0 when nothing is."""
    return sum(each.priority for each in about(story, now=now).values())


def queue(workspace: Workspace, *stories: tuple[ToolKey, Story]) -> list[Recommendation]:
    """The queue of tools with these stories, as it is shown."""
    found = queue_of(workspace, [(tool, story.known) for tool, story in stories], [])
    return [workspace.words.show_recommendation(each) for each in found]
