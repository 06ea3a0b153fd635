"""Failure patterns, and statistics of calls over time, up to what has been counted."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from aftercall.models.base import Name, Share, Text, Timestamp, WireModel
from aftercall.models.calls import Action, ErrorCategory, Example
from aftercall.models.health import ToolName

PatternState = Literal["open", "ignored", "resolved"]


class PatternChange(WireModel):
    """Body of `PUT /patterns/{patternId}`."""

    state: PatternState
    reason: Text | None = Field(default=None, max_length=2000)
    changed_by: Name | None = None


class PatternReview(PatternChange):
    """What was last stated of a pattern, and whether it has come back since."""

    changed_at: Timestamp
    version: Name | None = Field(default=None, description="The tool's latest version then.")
    reopened: bool = False
    """It was resolved, and has failed so again since."""
    version_now: Name | None = Field(default=None, description="The tool's latest version.")


class FailurePattern(WireModel):
    """One way in which calls of a tool fail, whatever its wording. Its id lasts over time."""

    pattern_id: Name
    tool: ToolName
    title: Text = Field(default="", description="Tool, parameters and what is wrong with them.")
    state: PatternState = Field(default="open", description="As it is now: open if it came back.")
    review: PatternReview | None = Field(default=None, description="None: nobody said anything.")
    category: ErrorCategory
    signature: Text = Field(description="Its most frequent wording, variable parts masked.")
    wordings: list[Text] = Field(default_factory=list)
    """Its most frequent wordings, most frequent first."""
    count: int = Field(ge=0, description="Failures.")
    mended: int = Field(default=0, ge=0, description="Of them, those that were repaired.")
    """By agents alone, or by a suggestion."""
    mended_by_suggestion: int = Field(default=0, ge=0, description="Of these, by a suggestion.")
    error_type: Text = Field(default="", description="As the tool names it, else the category.")
    common_mistake: Text = Field(default="", description="What is wrong with such calls.")
    correction: Text = Field(default="", description="What repaired them; empty if nothing did.")
    frequency: int = Field(default=0, ge=0, description="The same as `count`.")
    agents_affected: list[Name] = Field(default_factory=list, description="As `agents`.")
    agents: list[Name] = Field(default_factory=list, description="Some of those it happened to.")
    examples: list[Name] = Field(default_factory=list)
    """Executions, the latest last; they may have expired."""
    lesson: Text = Field(default="", description="What helps, in words; empty if nothing is known.")
    example: Example | None = None
    """The parameters that the lesson is about, as they failed and as they worked."""
    first_seen: Timestamp | None = None
    last_seen: Timestamp | None = None


class FailurePatternList(WireModel):
    """Answer of `GET /patterns`."""

    patterns: list[FailurePattern] = Field(description="Most failures first.")
    consolidated_at: Timestamp | None = None
    """When the latest nightly run did so; None before the first."""


LATEST_WINDOWS: Final = ("24h", "7d", "30d")
MAX_DAYS: Final = 366
"""Days of the longest window."""
_DATES: Final = r"\d{4}-\d\d-\d\d(T\d\d)?\.\.\d{4}-\d\d-\d\d(T\d\d)?"
WINDOW_PATTERN: Final = f"^({'|'.join(LATEST_WINDOWS)}|{_DATES})$"


def window_dates(window: str) -> tuple[datetime, datetime] | None:
    """Return the beginning and the (excluded) end of a window that names dates.

    None of one of the latest windows; a `ValueError` of what is no window.
    """
    if window in LATEST_WINDOWS:
        return None
    wrong = f"choose {', '.join(LATEST_WINDOWS)} or two days as 2026-11-01..2026-11-07 (UTC)"
    if not re.fullmatch(_DATES, window, re.ASCII):
        raise ValueError(wrong)
    first, last = window.split("..")
    try:
        since, until = (datetime.fromisoformat(each).replace(tzinfo=UTC) for each in (first, last))
        until += timedelta(hours=1) if "T" in last else timedelta(days=1)
    except (ValueError, OverflowError) as error:
        raise ValueError(wrong) from error
    if not timedelta(0) < until - since <= timedelta(days=MAX_DAYS):
        raise ValueError(f"the first day comes before the last, at most {MAX_DAYS} days before it")
    return since, until


def _checked_window(window: str) -> str:
    window_dates(window)
    return window


UsageWindow = Annotated[
    str,
    AfterValidator(_checked_window),
    WithJsonSchema({"type": "string", "pattern": WINDOW_PATTERN, "examples": ["24h"]}),
]
"""`24h`, `7d` or `30d` up to now, or days (or hours, `2026-11-01T08`) from the first to the last;
see `aftercall.models.statistics` for where each begins."""


class CallCounts(WireModel):
    """Calls and how they went; a success counts for those that sampling left out next to it."""

    successes: int = Field(default=0, ge=0)
    failures: int = Field(default=0, ge=0)


class DurationQuantiles(WireModel):
    """How long calls took, in milliseconds, within 5 % of themselves; of those that say so."""

    p50: float = Field(ge=0)
    p95: float = Field(ge=0)
    p99: float = Field(ge=0)


class CallUsage(CallCounts):
    """Calls with what was done about failures and how long they took."""

    retries: CallCounts = Field(default_factory=CallCounts)
    """Second and later attempts."""
    suggested: CallCounts = Field(default_factory=CallCounts)
    """Calls that followed a suggestion."""
    duration_ms: DurationQuantiles | None = None
    """None where no call states how long it took."""


class ToolUsage(CallUsage):
    """Calls of one tool."""

    tool: ToolName


class AgentUsage(CallCounts):
    """Calls by one agent."""

    agent: Name
    repaired: int = Field(default=0, ge=0)
    """Successes that needed a second attempt or a suggestion."""


class CategoryUsage(WireModel):
    """Failures of one kind."""

    category: ErrorCategory
    failures: int = Field(ge=0)


class Usage(WireModel):
    """Answer of `GET /stats/usage`: a window up to now."""

    window: UsageWindow
    computed_at: Timestamp | None = Field(default=None, description="As `until`.")
    since: Timestamp | None = None
    """The beginning of an hour for 24h, else of a day (UTC)."""
    until: Timestamp | None = None
    is_complete: bool = True
    """False while what arrived lately is still being counted."""
    totals: CallUsage = Field(default_factory=CallUsage)
    with_context: int = Field(default=0, ge=0)
    """Calls that stated what the agent was trying to do; of all, 80 % are asked for."""
    by_tool: list[ToolUsage] = Field(default_factory=list, description="Most calls first.")
    by_agent: list[AgentUsage] = Field(default_factory=list, description="Most calls first.")
    by_category: list[CategoryUsage] = Field(default_factory=list)
    """Most failures first."""
    other_tools: CallCounts = Field(default_factory=CallCounts)
    """Calls of tools beyond those of the list."""
    other_agents: CallCounts = Field(default_factory=CallCounts)
    """Calls by agents beyond those of the list."""


Step = Literal["hour", "day"]
"""Between two points of a series: hours within 24 h, else days (UTC)."""


class Statistics(WireModel):
    """What every answer about a window states of it."""

    window: UsageWindow
    since: Timestamp = Field(description="The beginning of an hour for 24h, else of a day (UTC).")
    until: Timestamp
    is_complete: bool = True
    """False while what arrived lately is still being counted."""


class WindowTotals(Statistics):
    """All calls within a window."""

    totals: CallUsage
    before: CallCounts | None = None
    """The same span before it; None where that is not known as far back."""


class Totals(WireModel):
    """Answer of `GET /stats/totals`."""

    windows: list[WindowTotals] = Field(description="24h, 7d and 30d.")


class TrendPoint(CallCounts):
    """One hour or day."""

    at: Timestamp = Field(description="Its beginning.")
    retries: CallCounts = Field(default_factory=CallCounts)
    suggested: CallCounts = Field(default_factory=CallCounts)


class VersionTrend(WireModel):
    """How the calls of one version of a tool went over time."""

    version: Name
    points: list[CallCounts] = Field(description="As those of all its calls.")


class Trend(Statistics):
    """Answer of `GET /stats/trend`: hour by hour or day by day, those without calls too."""

    step: Step
    tool: ToolName | None = Field(default=None, description="Of one tool; None: of all.")
    points: list[TrendPoint] = Field(description="Oldest first.")
    versions: list[VersionTrend] = Field(default_factory=list)
    """Of one tool: the calls that name a version, most calls first."""


class LatencyPoint(WireModel):
    """How long the calls of one hour or day took."""

    at: Timestamp = Field(description="Its beginning.")
    calls: int = Field(ge=0, description="Those that say how long they took.")
    duration_ms: DurationQuantiles | None = None


class Latency(Statistics):
    """Answer of `GET /stats/latency`."""

    step: Step
    tool: ToolName | None = Field(default=None, description="Of one tool; None: of all.")
    overall: DurationQuantiles | None = None
    points: list[LatencyPoint] = Field(description="Oldest first.")


class ActionCount(WireModel):
    """Answers whose best suggestion was of one kind."""

    action: Action
    answers: int = Field(ge=0)


class CategoryAbstentions(WireModel):
    """Answers without a suggestion, about errors of one kind."""

    category: ErrorCategory
    answers: int = Field(ge=0)


class AnswerCounts(WireModel):
    """What `/suggest` answered within the window, over HTTP and MCP."""

    asked: int = Field(default=0, ge=0)
    abstained: int = Field(default=0, ge=0, description="Of them, those without a suggestion.")
    confident: int = Field(default=0, ge=0)
    """Of them, those whose best suggestion is above 0.80."""
    by_action: list[ActionCount] = Field(default_factory=list, description="Most answers first.")
    abstentions: list[CategoryAbstentions] = Field(default_factory=list)
    """Most answers first."""


class RepairTimes(WireModel):
    """How long failures waited for the success that repaired them."""

    repairs: int = Field(default=0, ge=0, description="Of the latest ones, those in the window.")
    p50_ms: float | None = Field(default=None, ge=0)
    p95_ms: float | None = Field(default=None, ge=0)


class ShadowCounts(WireModel):
    """Calls that were only watched: what would have been done, and how what was done went."""

    watched: CallCounts = Field(default_factory=CallCounts)
    repaired_before: CallCounts = Field(default_factory=CallCounts)
    """Would have been changed before they were made; a success needed no change."""
    blocked: CallCounts = Field(default_factory=CallCounts)
    """Would not have been made; a success was worth making."""
    repaired_after: int = Field(default=0, ge=0)
    """Failures that would have been repaired and made again."""
    same: CallCounts = Field(default_factory=CallCounts)
    """Next calls of the agent that were just what would have been sent."""
    other: CallCounts = Field(default_factory=CallCounts)
    """Next calls of the agent that were something else."""


class ReflectionStatistics(Statistics):
    """Answer of `GET /stats/reflection`: what asking about failures did.

    A task is a call as its caller sent it, with its repair before it was made and the retries that
    followed.
    """

    first_attempts: CallCounts
    """Before reflection: how calls went as they were sent. One that was repaired before it was made
    counts as a failure."""
    tasks: CallCounts
    """After it: what worked by a repair, before the call or after it, are successes."""
    repaired_before: CallCounts = Field(default_factory=CallCounts)
    """Calls that were repaired before they were made."""
    retries: CallCounts = Field(description="Second and later attempts.")
    suggested: CallCounts = Field(description="Calls that followed a suggestion.")
    answers: AnswerCounts = Field(default_factory=AnswerCounts)
    with_suggestion: RepairTimes = Field(default_factory=RepairTimes)
    without_suggestion: RepairTimes = Field(default_factory=RepairTimes)
    shadow: ShadowCounts | None = Field(default=None, exclude_if=lambda counts: counts is None)
    """None where no call was watched."""


CriterionName = Literal[
    "context", "right_fix", "repaired", "repaired_of_not_refused", "lift", "lessons"
]


class Criterion(WireModel):
    """One of seed 004's success criteria: how many of how many meet it."""

    name: CriterionName
    """`context`: calls that say what they are for. `right_fix`: calls as a suggestion wants them
    that worked. `repaired`: failed calls that worked by a repair, before the call or after it;
    `repaired_of_not_refused`: the same of those that no permission refused. `lift`: such calls, of
    all calls that callers sent. `lessons`: of the ten most frequent patterns those with a lesson,
    which known tools show."""
    met: int = Field(ge=0)
    of: int = Field(ge=0)
    asked: float | None = Field(default=None, ge=0, le=1)
    """The share that was asked for; None where any is better."""

    @property
    def share(self) -> float | None:
        """Share that meets it, in [0, 1]; None of none."""
        return self.met / self.of if self.of else None


class Criteria(Statistics):
    """Answer of `GET /stats/criteria`."""

    criteria: list[Criterion]


class PatternFailures(WireModel):
    """A pattern with how often it was met within a window."""

    pattern: FailurePattern
    failures: int = Field(ge=0, description="Within the window.")
    before: int | None = Field(default=None, ge=0)
    """In the same span before it; None where that is not known."""


class PatternStatistics(Statistics):
    """Answer of `GET /stats/patterns`."""

    patterns: list[PatternFailures] = Field(description="Most failures in the window first.")
    other_failures: int = Field(default=0, ge=0)
    """Failures in the window that are of no pattern of the list."""


class PatternCost(PatternFailures):
    """A pattern by what it costs now."""

    mended_by_suggestion: int = Field(ge=0, description="Of the failures in the window.")
    mended_by_agents: int = Field(ge=0, description="The same, without a suggestion.")
    """By their number in the window, or by their share of all times where that is more."""
    unmended: int = Field(ge=0, description="Failures in the window that nobody mended.")
    cost: float = Field(ge=0)
    """`unmended`, times 0 to 2 by the trend: 1 where it is met as often as in the span before."""


class FixFirst(Statistics):
    """Answer of `GET /stats/fix-first`."""

    patterns: list[PatternCost] = Field(description="Open ones, the greatest cost first.")
    ignored: int = Field(default=0, ge=0, description="Patterns met in the window, left out.")
    resolved: int = Field(default=0, ge=0, description="The same.")


class FailurePoint(WireModel):
    """Failures of one hour or day."""

    at: Timestamp = Field(description="Its beginning.")
    failures: int = Field(ge=0)


class PatternHistory(Statistics):
    """Answer of `GET /stats/patterns/{patternId}`: day by day."""

    pattern: FailurePattern
    points: list[FailurePoint] = Field(description="Oldest first.")


class ToolStatistics(ToolUsage):
    """One tool: calls within a window, and how good it is now."""

    quality: Share | None = None
    """As in its fitness; None before anything is known."""
    cohesion: Share | None = None
    """1: all boundary failures on one axis; None: none."""
    cohesion_warning: bool = False


class ToolStatisticsList(Statistics):
    """Answer of `GET /stats/tools`."""

    tools: list[ToolStatistics] = Field(description="Most calls first.")
    other_tools: CallCounts = Field(default_factory=CallCounts)


class AgentTool(CallCounts):
    """Calls of one tool by one agent."""

    tool: ToolName


class AgentStatistics(Statistics):
    """Answer of `GET /stats/agents/{agent}`."""

    agent: Name
    usage: AgentUsage
    tools: list[AgentTool] = Field(default_factory=list)
    """Most failures first, then most calls; some of them."""


class ConfidenceBin(WireModel):
    """Suggestions whose confidence lies in one tenth."""

    at_least: Share
    below: Share = Field(description="The last one includes 1.")
    judged: int = Field(ge=0, description="Outcomes.")
    mean_confidence: Share | None = None
    succeeded: Share | None = Field(default=None, description="Share of successes.")


class ConfidenceStatistics(WireModel):
    """Answer of `GET /stats/confidence`: what was promised and what came of it.

    A success is a call that succeeded; whether it did what was meant is not known from outcomes.
    """

    judged: int = Field(ge=0, description="The latest outcomes, at most 2,000.")
    bins: list[ConfidenceBin] = Field(description="Ten, from 0 to 1.")
    expected_calibration_error: Share | None = None
    """0 is best: mean of |confidence - share|, by bin."""
    brier: Share | None = Field(default=None, description="0 is best: mean squared error.")
