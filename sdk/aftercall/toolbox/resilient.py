"""The I/O of a resilient call; what to do next is decided in `aftercall.toolbox.rules`."""

import logging
import time
from copy import deepcopy
from dataclasses import dataclass, replace

from pydantic import TypeAdapter

from aftercall.bounded import bounded_text
from aftercall.errors import AftercallError
from aftercall.evolution import EvolutionResult, PastFailure
from aftercall.executors.failures import ToolFailedError
from aftercall.json_values import JsonValue
from aftercall.models import ExecutionError, FailedCall, Severity, Tool
from aftercall.models.tools import Scenario
from aftercall.toolbox.calls import parameters_of
from aftercall.toolbox.parts import Parts
from aftercall.toolbox.resolver import AWAY, original_id, rank_by_words
from aftercall.toolbox.rules import (
    Attempted,
    CallResult,
    Candidate,
    ResilientResult,
    ResilientRules,
    outcome_of,
    severity_of,
)

_LOGGER = logging.getLogger("aftercall")

MOST_ATTEMPTS = 25
"""Most tools that one call may run; twice as many are asked for, as not all may run here."""

_MAX_MESSAGE = 2_000
_SCENARIO: TypeAdapter[str] = TypeAdapter(Scenario)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is to be done, and within which limits.

    Raises:
        ValueError: the scenario is blank or too long, or `max_attempts` is out of range.
    """

    scenario: str
    input_data: JsonValue
    tags: tuple[str, ...]
    max_attempts: int
    may_repeat: bool
    timeout_s: float | None

    def __post_init__(self) -> None:
        _SCENARIO.validate_python(self.scenario)
        if not 1 <= self.max_attempts <= MOST_ATTEMPTS:
            raise ValueError(f"max_attempts must be 1 to {MOST_ATTEMPTS}, not {self.max_attempts}")


async def call_resiliently(toolbox: Parts, question: Question) -> ResilientResult:
    """Try candidates until one succeeds, then evolve; see `AsyncToolbox.resilient_tool_call`.

    Raises:
        AftercallError: the service refused the question, or the promotions file is malformed.
    """
    candidates, from_service = await _candidates(toolbox, question)
    rules = ResilientRules(
        candidates,
        max_attempts=question.max_attempts,
        may_repeat=question.may_repeat,
        trust_annotations=toolbox.trust_annotations,
    )
    attempts: list[Attempted] = []
    succeeded: CallResult | None = None
    while (candidate := rules.next()) is not None:
        succeeded = await _attempt(toolbox, question, candidate, rules, attempts)
    why, evolution = rules.why(), None
    to_evolve = rules.to_evolve() if toolbox.can_evolve else None
    if to_evolve is not None:
        evolution, problem = await _evolve(toolbox, question, to_evolve, attempts)
        if evolution is not None and evolution.status == "evolved":
            succeeded = await _attempt_evolved(toolbox, question, to_evolve, rules, attempts)
            problem = "; so did its evolved version"
        why = "the evolved version succeeded" if succeeded else why + problem
    return ResilientResult(
        success=succeeded is not None,
        result=None if succeeded is None else succeeded.value,
        tool=None if succeeded is None else succeeded.tool,
        why=why,
        attempts=tuple(attempts),
        skipped=tuple(rules.skipped),
        evolution_tried=to_evolve is not None,
        evolution=evolution,
        from_service=from_service,
    )


async def _candidates(toolbox: Parts, question: Question) -> tuple[list[Candidate], bool]:
    """Who may be tried, best first, and whether the service said so."""
    try:
        found = await toolbox.resolver.find(
            question.scenario, question.tags, limit=2 * question.max_attempts
        )
    except AWAY as error:
        _LOGGER.warning("tools are chosen by words, as the service is away: %s", error)
        ranked = rank_by_words(question.scenario, toolbox.local.all(), question.tags)
        local = [(await toolbox.resolver.in_force(tool.tool_id), score) for tool, score in ranked]
        return [Candidate(t, score, toolbox.executors.fits(t)) for t, score in local], False
    return [
        Candidate(
            each.tool,
            each.score,
            runs_here=toolbox.executors.fits(each.tool),
            # Its base alone: of a tool that fits and has failed a successor can be made.
            suits=each.factors.base >= found.threshold,
        )
        for each in found.candidates
    ], True


async def _attempt(
    toolbox: Parts,
    question: Question,
    candidate: Candidate,
    rules: ResilientRules,
    attempts: list[Attempted],
) -> CallResult | None:
    """Run one candidate, mark it when it failed, and note it all; the result of a success."""
    tool = candidate.tool
    started = time.perf_counter()
    result: CallResult | None = None
    failure: ToolFailedError | None = None
    execution_id = None
    try:
        result = await toolbox.run(
            tool,
            deepcopy(question.input_data),  # a tool that fails may have changed what it got
            scenario=question.scenario,
            timeout_s=question.timeout_s,
        )
        execution_id = result.execution_id
    except ToolFailedError as error:
        failure, execution_id = error, error.execution_id
    duration_ms = (time.perf_counter() - started) * 1000
    rules.ended(candidate, failure)
    severity, problem = None, None
    if failure is not None and failure.ran:
        severity, problem = await _mark(toolbox, question, candidate, failure)
    attempts.append(
        Attempted(
            tool_id=tool.tool_id,
            version=tool.version,
            outcome=outcome_of(failure),
            duration_ms=duration_ms,
            score=candidate.score,
            error=None if failure is None else failure.error,
            execution_id=execution_id,
            severity=severity,
            mark_problem=problem,
        )
    )
    return result


async def _mark(
    toolbox: Parts, question: Question, candidate: Candidate, failure: ToolFailedError
) -> tuple[Severity | None, str | None]:
    """Mark a failure. What goes wrong with that is told, and changes nothing about the call."""
    told = _told(toolbox, question, candidate.tool, failure.error)
    severity = severity_of(failure.error)
    try:
        await toolbox.mark_tool_failure(
            candidate.tool.tool_id,
            told.scenario,
            told.error_message or "",
            severity,
            version=candidate.tool.version,
            execution_id=failure.execution_id,
        )
    except (AftercallError, ValueError) as error:
        _LOGGER.warning("a failure of %s could not be marked: %s", candidate.tool.tool_id, error)
        return None, bounded_text(str(error), _MAX_MESSAGE)
    return severity, None


def _told(toolbox: Parts, question: Question, tool: Tool, error: ExecutionError) -> PastFailure:
    """A failure as it is told to the service and the evolver.

    Tools repeat what they are given: masked are the secrets of this very call too, as they are in
    its recorded execution.
    """
    scenario, message = question.scenario, error.message
    if toolbox.link.redactor is not None:
        # Not validated: an input that cannot be recorded can fail all the same.
        masked = toolbox.link.redactor.call(
            FailedCall.model_construct(
                agent="",
                tool_name=tool.name,
                parameters=parameters_of(question.input_data),
                context=scenario,
                error=error,
            )
        )
        scenario, message = masked.context or scenario, masked.error.message
    return PastFailure(scenario=scenario, error_message=bounded_text(message, _MAX_MESSAGE))


async def _evolve(
    toolbox: Parts, question: Question, candidate: Candidate, attempts: list[Attempted]
) -> tuple[EvolutionResult | None, str]:
    """What came of evolving a candidate, and what to say when nothing did."""
    tool = candidate.tool
    failures = [
        replace(_told(toolbox, question, tool, each.error), severity=each.severity)
        for each in attempts
        if each.tool_id == tool.tool_id and each.error is not None
    ]
    said = failures[0].error_message if failures else None
    reason = f"Evolved to fix: {bounded_text(said or 'it failed', 500)}"  # seed 002's words
    scenario = failures[0].scenario if failures else None
    try:
        evolution = await toolbox.evolve_tool(
            original_id(tool), reason, scenario=scenario, failures=failures
        )
    except (AftercallError, ValueError) as error:
        return None, f"; it was not evolved: {bounded_text(str(error), _MAX_MESSAGE)}"
    if evolution.status == "evolved":
        return evolution, ""
    return evolution, f"; it was not evolved: {evolution.why}"


async def _attempt_evolved(
    toolbox: Parts,
    question: Question,
    candidate: Candidate,
    rules: ResilientRules,
    attempts: list[Attempted],
) -> CallResult | None:
    evolved = await toolbox.resolver.in_force(original_id(candidate.tool))
    again = Candidate(evolved, None, runs_here=True)
    return await _attempt(toolbox, question, again, rules, attempts)
