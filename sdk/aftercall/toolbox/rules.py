"""What to do after a tool failed: which one next, how bad it was, when to evolve. No I/O.

A candidate that hardly fits the scenario is never run.

The next candidate is tried only when the failure cannot have left an effect behind, or two tools
might do one thing twice: the tool did not run; or its maker claims that it only reads
(`readOnlyHint` without `destructiveHint`) or is idempotent; or the caller vouches (`may_repeat`).

A failure is marked when the tool ran. It is `low` when it may pass by itself, or when the tool
states that this is not its job; `high` when the tool is broken whatever the input; else `medium`. A
tool that refers the caller elsewhere is not evolved for that (seed 000).
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal

from aftercall.evolution import EvolutionResult
from aftercall.executors.protocol import ToolRefusedError
from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import ExecutionError, Severity, Tool, ToolAnnotations
from aftercall.models.tools import RankedTool, same_version
from aftercall.outcomes import ToolFailedError, is_referral

AttemptOutcome = Literal["success", "failed", "rejected", "refused"]
"""How an attempt ended.

`failed`: the tool ran, or may have. `rejected`: the input did not fit it, and it did not run.
`refused`: this machine did not run it, which states nothing about the tool.
"""


@dataclass(frozen=True, slots=True)
class CallResult:
    """What a tool returned, and which version of it that was.

    `execution_id` is the recorded execution's; None when nothing was recorded. `status` is the
    tool's own word for its success. `fallback` states why the original ran in place of a promoted
    version.
    """

    value: JsonValue
    tool: Tool
    execution_id: str | None
    duration_ms: float
    details: JsonObject
    status: str | None = None
    fallback: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempted:
    """One tool that was tried.

    `score` is its rank's, 0 to 1; None when there was none, as for an evolved version. Without an
    `execution_id` nothing was recorded, without a `severity` it was not marked; `mark_problem`
    states why it could not be.
    """

    tool_id: str
    version: str | None
    outcome: AttemptOutcome
    duration_ms: float
    score: float | None = None
    error: ExecutionError | None = None
    execution_id: str | None = None
    severity: Severity | None = None
    mark_problem: str | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """One tool that was not tried, and why."""

    tool_id: str
    version: str | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResilientResult:
    """How a resilient call ended.

    `result` is `None` also when none succeeded, and `evolution` when it could not be begun, which
    `why` shows. An evolved version is the last of the `attempts`; `skipped` are in rank order.
    """

    success: bool
    result: JsonValue
    tool: Tool | None
    why: str
    attempts: tuple[Attempted, ...]
    skipped: tuple[Skipped, ...]
    evolution_tried: bool = False
    evolution: EvolutionResult | None = None


_PASSING = frozenset(
    {
        "Timeout", "TimeoutError", "ConnectionError", "ConnectionRefusedError",
        "ConnectionResetError", "ConnectTimeout", "ReadTimeout", "ConnectError", "ReadError",
        "RateLimitError", "BrokenPipeError", "TemporaryError", "TooManyRequests",
        "wrong_tool_boundary",
    }
)  # fmt: skip
_PASSING_CODES = frozenset({"408", "425", "429", "502", "503", "504", "ETIMEDOUT", "ECONNREFUSED"})
_BROKEN = frozenset(
    {
        "SyntaxError", "IndentationError", "ImportError", "ModuleNotFoundError", "NameError",
        "UnboundLocalError", "NotImplementedError", "RecursionError", "MemoryError", "Killed",
        "OutputTooLarge",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LocalCandidate:
    """A tool that may be tried.

    `score` is its rank's, 0 to 1, None without one; `runs_here` whether an executor fits it;
    `suits` whether it is near enough to the scenario, however often it failed, to be run at all.
    """

    tool: Tool
    score: float | None
    runs_here: bool
    suits: bool = True


NEARNESS = 0.6
"""Share of the best candidate's similarity to the scenario that another one needs to be of the same
job: 0.32 after 0.7 was a counter of words in place of a tool that reverses them."""


def are_near(ranked: Sequence[RankedTool], threshold: float) -> list[bool]:
    """Return of each candidate whether it is near enough to the scenario to be run for it.

    Tools of the first one's namespace are of its job, however they are described.
    """
    known = [each.factors.similarity for each in ranked]
    least = NEARNESS * max((each for each in known if each is not None), default=0.0)
    job = ranked[0].tool.namespace if ranked else None
    near = []
    for each in ranked:
        similarity = each.factors.similarity
        is_of_job = job is not None and each.tool.namespace == job
        is_alike = is_of_job or similarity is None or similarity >= least
        near.append(is_alike and each.factors.base >= threshold)
    return near


@dataclass(eq=False)
class ResilientRules:
    """Decides about one resilient call, attempt by attempt.

    The candidates stand best first. Anything that did not run does not count towards
    `max_attempts`.
    """

    candidates: Sequence[LocalCandidate]
    _: KW_ONLY
    max_attempts: int
    may_repeat: bool
    trust_annotations: bool

    def __post_init__(self) -> None:
        self._left = list(self.candidates)
        self.tried: list[tuple[LocalCandidate, ToolFailedError | None]] = []
        """How each ended, with its failure or None."""
        self.skipped: list[Skipped] = []
        self.stop_reason: str | None = None
        """Why no further tool may be tried, though there may be some."""

    def next_candidate(self) -> LocalCandidate | None:
        """Whom to try next; None ends it, and all that are left are skipped."""
        while self._left:
            candidate = self._left.pop(0)
            if (why := self.stop_reason or self._why_not(candidate)) is None:
                return candidate
            self.skipped.append(Skipped(candidate.tool.tool_id, candidate.tool.version, why))
        return None

    def _why_not(self, candidate: LocalCandidate) -> str | None:
        for before, _ in self.tried:
            versions = (before.tool.version or "", candidate.tool.version or "")
            if before.tool.tool_id == candidate.tool.tool_id and same_version(*versions):
                return "it was tried already"
        if not candidate.suits:
            return "it hardly fits the scenario"
        if not candidate.runs_here:
            return "no executor here runs it"
        if sum(failure is None or failure.ran for _, failure in self.tried) >= self.max_attempts:
            return f"the limit of {self.max_attempts} attempts was reached"
        return None

    def end_attempt(self, candidate: LocalCandidate, failure: ToolFailedError | None) -> None:
        """Note how the attempt with a candidate ended."""
        self.tried.append((candidate, failure))
        if failure is None:
            self.stop_reason = "a tool succeeded"
        elif not self.may_repeat and may_have_had_effect(
            candidate.tool, failure, trust_annotations=self.trust_annotations
        ):
            self.stop_reason = (
                f"{candidate.tool.tool_id!r} failed and may have had an effect by then, which "
                "another tool could repeat; pass may_repeat=True when that does no harm"
            )

    def to_evolve(self) -> LocalCandidate | None:
        """Return the best candidate that ran and failed and may get a successor.

        None when a tool succeeded, when none ran or all that did are typed referrals, and when a
        failure may have had an effect.
        """
        if self.stop_reason is not None:
            return None
        ran = (
            each
            for each, failed in self.tried
            if failed is not None and failed.ran and not is_referral(failed.error)
        )
        return next(ran, None)

    def explain_end(self) -> str:
        """Return how it ended, in a sentence."""
        count = len(self.tried)
        if any(failure is None for _, failure in self.tried):
            after = f"succeeded after {count - 1} others"
            return "the first tool succeeded" if count == 1 else after
        if count == 0:
            reasons = "; ".join(dict.fromkeys(each.why for each in self.skipped))
            return f"no tool could be tried: {reasons or 'none fits the scenario'}"
        alone = "the only tool failed" if count == 1 else ""
        return self.stop_reason or alone or f"all {count} tools that were tried failed"


def may_have_had_effect(
    tool: Tool, failure: ToolFailedError, *, trust_annotations: bool = True
) -> bool:
    """Return whether a failed call may have changed something that must not repeat."""
    claims = tool.annotations if trust_annotations else ToolAnnotations()
    only_reads = claims.read_only_hint and not claims.destructive_hint
    return failure.ran and not (only_reads or claims.idempotent_hint)


def outcome_of(failure: ToolFailedError | None) -> AttemptOutcome:
    """Return how an attempt ended."""
    if failure is None:
        return "success"
    if isinstance(failure, ToolRefusedError):
        return "refused"
    return "failed" if failure.ran else "rejected"


def severity_of(error: ExecutionError) -> Severity:
    """Return how bad a failure was."""
    if error.type in _PASSING or (error.code or "") in _PASSING_CODES:
        return "low"
    return "high" if error.type in _BROKEN else "medium"
