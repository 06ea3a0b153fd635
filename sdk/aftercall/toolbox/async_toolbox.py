"""The toolbox for asyncio code: the fittest tool of a capability, called and recorded.

    toolbox = AsyncToolbox(client, recorder, executors, agent="librarian", promotions=path)
    result = await toolbox.call_tool("translator", {"text": "hola"}, scenario="say it in English")

Without the service `get_tool`, `call_tool` and `evolve_tool` work on for definitions of this
program (`tools`) and entries of the promotions file. Choosing tools and marking failures need it.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from uuid import uuid4

from pydantic import TypeAdapter

from aftercall import models
from aftercall.client import AsyncClient
from aftercall.errors import AftercallError, ConfigurationError
from aftercall.evolution import (
    Checks,
    EvolutionResult,
    Evolver,
    EvolvingTool,
    PastFailure,
    checks_beside,
    evolve,
)
from aftercall.executors import protocol
from aftercall.json_values import JsonObject, JsonValue, bounded_json, bounded_text, make_json_value
from aftercall.models.calls import make_execution
from aftercall.models.tools import Scenario
from aftercall.outcomes import ToolFailedError
from aftercall.redaction import DEFAULT_REDACTOR, Redactor
from aftercall.reflection.reflected_call import ExecutionSink
from aftercall.toolbox.resolver import Resolver, entry_for, original_id
from aftercall.toolbox.rules import (
    Attempted,
    CallResult,
    LocalCandidate,
    ResilientResult,
    ResilientRules,
    are_near,
    outcome_of,
    severity_of,
)

_LOGGER = logging.getLogger("aftercall")
FIRST_VERSION = "1.0.0"
"""Of a tool that was registered without one (seed 002)."""
MOST_ATTEMPTS = 25
"""Most tools that one call may run; twice as many are asked for, as not all may run here."""
_MAX_MESSAGE = 2_000
_SCENARIO: TypeAdapter[str] = TypeAdapter(Scenario)


class AsyncToolbox:
    """Calls tools by capability (seed 002).

    What is not there is a `NotFoundError`, what needs a service that is away a
    `ServiceUnreachableError`, and what is wrong with the promotions file a `ConfigurationError`.

    Args:
        client: asks the service; stays open. None does without a service.
        recorder: takes every run over; None records nothing.
        executors: how tools are run here; `Executors(...)` for several ways.
        agent: who calls, as the executions have it.
        session_id: the session that they belong to.
        promotions: the file `.tool_promotions.json` of this machine, which need not be there yet.
            Its entries go before the service's promotions, as their files lie here.
        tools: definitions of this program by tool id; they go before registered ones.
        evolver: writes new versions of tools that fail; None never evolves. It needs `promotions`.
        checks: what a new version of a script must pass; the test next to the script when left out.
        trust_annotations: whether claims of a tool's maker (read-only, idempotent) may make it safe
            to go on to another tool.
        timeout_s: longest run of a tool, in seconds.
    """

    def __init__(
        self,
        client: AsyncClient | None,
        recorder: ExecutionSink | None,
        executors: protocol.Executor,
        *,
        agent: str,
        session_id: str | None = None,
        promotions: Path | str | None = None,
        tools: Mapping[str, models.ToolSpec] | None = None,
        evolver: Evolver | None = None,
        checks: Callable[[Path], Checks | None] = checks_beside,
        trust_annotations: bool = True,
        timeout_s: float = protocol.DEFAULT_TIMEOUT_S,
    ) -> None:
        self._promotions = None if promotions is None else Path(promotions)
        if evolver is not None and self._promotions is None:
            raise ConfigurationError(
                "an evolver needs a promotions file: new versions are written beside the tools and "
                "promoted in it; pass promotions"
            )
        self.executors = executors
        self.resolver = Resolver(client, tools or {}, self._promotions)
        self._client = client
        self._recorder = recorder
        self._agent = agent
        self._session_id = session_id or None
        self._sequence = count()
        self._timeout_s = timeout_s
        self._trust_annotations = trust_annotations
        self._evolver = evolver
        self._checks = checks

    async def register_tool(self, tool_id: str, spec: models.ToolSpec) -> models.Tool:
        """Define a tool in this program and, which may fail by itself, at the service."""
        return await self.resolver.add(tool_id, spec)

    async def get_tool(
        self,
        tool_id: str,
        use_evolved: bool = True,  # noqa: FBT001, FBT002  # by place, as seed 002 has it
    ) -> models.Tool:
        """Return a tool: the promoted version, or with `use_evolved=False` the original."""
        find = self.resolver.in_force if use_evolved else self.resolver.find_original
        return await find(tool_id)

    async def get_best_tool_in_namespace(
        self,
        tool_id: str,
        scenario: str,
        use_rag: bool = True,  # noqa: FBT001, FBT002  # seed 002
    ) -> models.BestTool:
        """Return the fittest tool of a namespace, in the version that is in force here.

        The id of a tool is a namespace too. With `use_rag` tools like it are compared too, and
        failures in scenarios like this one count.
        """
        return await self.resolver.find_best(tool_id, scenario, use_rag=use_rag)

    async def find_tools_for_scenario(
        self, scenario: str, tags: Sequence[str] | None = None, limit: int = 5
    ) -> list[models.RankedTool]:
        """Tools for a scenario, best first, in the versions that are in force here."""
        return (await self.resolver.find_tools(scenario, tags, limit)).candidates

    async def call_tool(
        self,
        tool_id: str,
        input_data: JsonValue = None,
        *,
        use_evolved: bool = True,
        scenario: str | None = None,
        timeout_s: float | None = None,
    ) -> CallResult:
        """Call a tool in its promoted version; the run is recorded, with its version and scenario.

        `input_data` is an object of parameters, or any other JSON value as the only input. With
        `use_evolved=False` the original is called. Raises as `Executor.execute`; the `execution_id`
        of a `ToolFailedError` is the recorded run's, and a refused tool is not recorded.

        A version that was promoted on another machine, whose file is not on this one, gives way to
        the original; `fallback` of the result and the log say so.
        """
        tool = await self.get_tool(tool_id, use_evolved)
        given = deepcopy(input_data)
        try:
            return await self.run(tool, input_data, scenario=scenario, timeout_s=timeout_s)
        except protocol.EvolvedFileMissingError as error:
            original = await self.resolver.find_original(original_id(tool))
            if entry_for(original, self.resolver.current_promotions()) is not None:
                raise  # promoted here
            why = f"the original ran, for {error.error.message}"
        _LOGGER.warning("%s", why)
        result = await self.run(original, given, scenario=scenario, timeout_s=timeout_s)
        return replace(result, fallback=why)

    async def run(
        self,
        tool: models.Tool,
        input_data: JsonValue = None,
        *,
        scenario: str | None = None,
        timeout_s: float | None = None,
    ) -> CallResult:
        """Run this very version of a tool, and record it; raises as `call_tool`."""
        parameters = _parameters_of(input_data)  # a copy, as a tool may change its input
        timestamp, started = datetime.now(UTC), time.perf_counter()
        result, failure = None, None
        try:
            limit_s = self._timeout_s if timeout_s is None else timeout_s
            result = await self.executors.execute(tool, input_data, timeout_s=limit_s)
        except protocol.ToolRefusedError:
            raise
        except ToolFailedError as error:
            failure = error
        except Exception as error:  # noqa: BLE001  # an executor of somebody's own lets it through
            failure = protocol.failure_of(error)
            failure.__cause__ = error
        duration_ms = (time.perf_counter() - started) * 1000
        execution = make_execution(
            execution_id=str(uuid4()),
            timestamp=timestamp,
            duration_ms=duration_ms,
            parameters=parameters,
            outcome="success" if failure is None else "failure",
            error=None if failure is None else failure.error,
            result=None if result is None else bounded_json(result.value),
            result_status=None if result is None else result.status,
            agent=self._agent,
            server_name=tool.server_name,
            tool_name=tool.name,
            tool_version=tool.version,
            context=scenario,
            session_id=self._session_id,
            sequence=next(self._sequence) if self._session_id else None,
        )
        execution_id = None
        if self._recorder is not None and execution is not None:
            self._recorder.record(execution)
            execution_id = execution.execution_id
        if failure is not None:
            failure.execution_id = execution_id
            raise failure
        assert result is not None  # noqa: S101  # one of them is there
        return CallResult(
            result.value, tool, execution_id, duration_ms, result.details, result.status
        )

    async def mark_tool_failure(
        self,
        tool_id: str,
        scenario: str,
        error_message: str,
        severity: models.Severity = "medium",
        *,
        version: str | None = None,
        execution_id: str | None = None,
        negative_tags: Sequence[str] = (),
    ) -> models.MarkedFailure:
        """Report to the service that a tool failed in a scenario; see `AsyncClient.mark_failure`.

        Without a version and without an execution, which has one, it is the version in force here.
        """
        if version is None and execution_id is None:
            entry = self.resolver.current_promotions().get(tool_id)
            version = entry.evolved_version if entry and entry.evolved_file is not None else None
        return await self.resolver.service.mark_failure(
            tool_id,
            scenario,
            error_message,
            severity=severity,
            version=version,
            execution_id=execution_id,
            negative_tags=negative_tags,
        )

    async def resilient_tool_call(
        self,
        scenario: str,
        input_data: JsonValue = None,
        tags: Sequence[str] | None = None,
        max_attempts: int = 5,
        *,
        may_repeat: bool = False,
        timeout_s: float | None = None,
    ) -> ResilientResult:
        """Try the tools that fit a scenario, best first, until one succeeds.

        After a failure that may have left an effect behind no other tool is tried, unless
        `may_repeat` states that this does no harm (see `aftercall.toolbox.rules`). Failures are
        marked. When all fail and there is an evolver, the best tool is evolved and its new version
        tried once. How it ended is shown in the result; a tool's failure raises nothing.

        Only tools with at least one of the `tags` are tried, and at most `max_attempts` (1 to 25)
        of them, an evolved version not counted, each for `timeout_s` seconds. A scenario has 1 to
        10,000 characters.

        Raises:
            ValueError: the scenario is blank or too long, or `max_attempts` out of range.
        """
        _SCENARIO.validate_python(scenario)
        if not 1 <= max_attempts <= MOST_ATTEMPTS:
            raise ValueError(f"max_attempts must be 1 to {MOST_ATTEMPTS}, not {max_attempts}")
        found = await self.resolver.find_tools(scenario, tags, 2 * max_attempts)
        fits = self.executors.fits
        rules = ResilientRules(
            [
                # Of a tool that suits and has failed a successor can be made.
                LocalCandidate(each.tool, each.score, fits(each.tool), is_near)
                for each, is_near in zip(
                    found.candidates, are_near(found.candidates, found.threshold), strict=True
                )
            ],
            max_attempts=max_attempts,
            may_repeat=may_repeat,
            trust_annotations=self._trust_annotations,
        )
        attempts: list[Attempted] = []

        async def attempt_candidate(candidate: LocalCandidate) -> CallResult | None:
            tool, started = candidate.tool, time.perf_counter()
            result, failure = None, None
            try:
                # A tool that fails may have changed what it got.
                given = deepcopy(input_data)
                result = await self.run(tool, given, scenario=scenario, timeout_s=timeout_s)
            except ToolFailedError as error:
                failure = error
            duration_ms = (time.perf_counter() - started) * 1000
            rules.end_attempt(candidate, failure)
            severity, problem = None, None
            if failure is not None and failure.ran:
                severity, problem = await self._mark_failure(tool, failure, scenario, input_data)
            ended = failure or result
            attempts.append(
                Attempted(
                    tool_id=tool.tool_id,
                    version=tool.version,
                    outcome=outcome_of(failure),
                    duration_ms=duration_ms,
                    score=candidate.score,
                    error=None if failure is None else failure.error,
                    execution_id=None if ended is None else ended.execution_id,
                    severity=severity,
                    mark_problem=problem,
                )
            )
            return result

        succeeded = None
        while (candidate := rules.next_candidate()) is not None:
            succeeded = await attempt_candidate(candidate)
        why, evolution = rules.explain_end(), None
        worst = rules.to_evolve() if self._evolver is not None else None
        if worst is not None:
            evolution, problem = await self._evolve_candidate(
                worst.tool, scenario, input_data, attempts
            )
            if evolution is not None and evolution.status == "evolved":
                evolved = await self.resolver.in_force(original_id(worst.tool))
                succeeded = await attempt_candidate(LocalCandidate(evolved, None, runs_here=True))
                problem = "; so did its evolved version"
            why = "the evolved version succeeded" if succeeded else why + problem
        return ResilientResult(
            success=succeeded is not None,
            result=None if succeeded is None else succeeded.value,
            tool=None if succeeded is None else succeeded.tool,
            why=why,
            attempts=tuple(attempts),
            skipped=tuple(rules.skipped),
            evolution_tried=worst is not None,
            evolution=evolution,
        )

    async def evolve_tool(
        self,
        tool_id: str,
        reason: str,
        mutation_hint: str = "",
        scenario: str | None = None,
        *,
        failures: Sequence[PastFailure] = (),
    ) -> EvolutionResult:
        """Make a tool's next minor version and promote it; see `aftercall.evolution.evolve`."""
        if self._evolver is None or self._promotions is None:
            raise ConfigurationError("this toolbox has no evolver; pass evolver and promotions")
        tool = await self.resolver.find_original(tool_id)
        if (script := protocol.script_of(self.executors, tool)) is None:
            raise ConfigurationError(
                f"the tool {protocol.tool_title(tool)} is no script of this machine, so it cannot "
                "be evolved; its implementation must name one as {tool_dir}/name.py, for a "
                "CommandExecutor"
            )
        return await evolve(
            EvolvingTool(
                tool_id=tool.tool_id,
                namespace=self._promoted_in(tool),
                script=script,
                version=tool.version or FIRST_VERSION,
                description=tool.description,
                input_schema=tool.input_schema,
                checks=self._checks(script),
            ),
            self._evolver,
            promotions_file=self._promotions,
            reason=reason,
            mutation_hint=mutation_hint,
            scenario=scenario,
            failures=failures,
            lessons=await self._read_lessons(tool),
            service=self._client,
            redactor=self._redactor,
        )

    async def _read_lessons(self, tool: models.Tool) -> list[str]:
        """Return what helps against the ways in which a tool fails.

        None while the service is away.
        """
        if self._client is None:
            return []
        try:
            known = await self._client.patterns(
                tool_name=tool.name, server_name=tool.server_name, limit=20
            )
        except AftercallError:
            return []
        return [each.lesson for each in known if each.lesson]

    @property
    def _redactor(self) -> Redactor | None:
        return DEFAULT_REDACTOR if self._client is None else self._client.redactor

    async def _mark_failure(
        self, tool: models.Tool, failure: ToolFailedError, scenario: str, input_data: JsonValue
    ) -> tuple[models.Severity | None, str | None]:
        reported = self._make_reported(tool, failure.error, scenario, input_data)
        severity = severity_of(failure.error)
        try:
            await self.mark_tool_failure(
                tool.tool_id,
                reported.scenario,
                reported.error_message or "",
                severity,
                version=tool.version,
                execution_id=failure.execution_id,
            )
        except (AftercallError, ValueError) as error:
            _LOGGER.warning("a failure of %s could not be marked: %s", tool.tool_id, error)
            return None, bounded_text(str(error), _MAX_MESSAGE)
        return severity, None

    async def _evolve_candidate(
        self, tool: models.Tool, scenario: str, input_data: JsonValue, attempts: Sequence[Attempted]
    ) -> tuple[EvolutionResult | None, str]:
        failures = [
            replace(
                self._make_reported(tool, each.error, scenario, input_data), severity=each.severity
            )
            for each in attempts
            if each.tool_id == tool.tool_id and each.error is not None
        ]
        message = failures[0].error_message if failures else None
        reason = f"Evolved to fix: {bounded_text(message or 'it failed', 500)}"  # seed 002's words
        try:
            evolution = await self.evolve_tool(
                original_id(tool),
                reason,
                scenario=failures[0].scenario if failures else None,
                failures=failures,
            )
        except (AftercallError, ValueError) as error:
            return None, f"; it was not evolved: {bounded_text(str(error), _MAX_MESSAGE)}"
        return evolution, f"; it was not evolved: {evolution.why}"

    def _make_reported(
        self, tool: models.Tool, error: models.ExecutionError, scenario: str, input_data: JsonValue
    ) -> PastFailure:
        """Return a failure as it is reported to the service and the evolver.

        Tools repeat what they are given: masked are the secrets of this very call too.
        """
        message = error.message
        if self._redactor is not None:
            # Not validated: an input that cannot be recorded can fail all the same.
            masked = self._redactor.call(
                models.FailedCall.model_construct(
                    agent="",
                    tool_name=tool.name,
                    parameters=_parameters_of(input_data),
                    context=scenario,
                    error=error,
                )
            )
            scenario, message = masked.context or scenario, masked.error.message
        return PastFailure(scenario=scenario, error_message=bounded_text(message, _MAX_MESSAGE))

    def _promoted_in(self, tool: models.Tool) -> str:
        """Return the namespace in which this machine promoted it; else its id."""
        promotions = self.resolver.current_promotions()
        is_in_namespace = tool.tool_id not in promotions and entry_for(tool, promotions) is not None
        return tool.namespace or tool.tool_id if is_in_namespace else tool.tool_id


def _parameters_of(input_data: JsonValue) -> JsonObject:
    if input_data is None:
        return {}
    made = make_json_value(input_data)
    return made if isinstance(made, dict) else {"input": made}
