"""Evolution: a tool that fails gets its next version, written by an evolver (seed 002).

An `Evolver` is anything that writes code for an `EvolutionTask`; `ChatEvolver` asks a chat model.
All that is known of the tool becomes one task without secrets. The answers are judged as text and
by the tool's own checks in a temporary folder (see `aftercall.evolution.checks`), and only what is
accepted there comes near the tools.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from aftercall.background import to_the_end
from aftercall.client import AsyncClient
from aftercall.errors import AftercallError, ConfigurationError, NotFoundError
from aftercall.evolution.chat import MAX_FAILURES, MAX_PAST_EVOLUTIONS, ChatEvolver
from aftercall.evolution.checks import (
    CheckReport,
    Checks,
    HiddenValues,
    RejectedCodeError,
    accept_code,
    checks_beside,
    run_checks,
)
from aftercall.evolution.files import (
    CHANGELOG_FILE,
    commit,
    read_source,
    resolve_script,
    version_in,
    versioned_name,
)
from aftercall.evolution.tasks import (
    EvolutionResult,
    EvolutionStatus,
    EvolutionTask,
    EvolvedCode,
    Evolver,
    EvolverError,
    EvolvingTool,
    JudgedAnswer,
    PastEvolution,
    PastFailure,
    RejectedCode,
    UnusableAnswerError,
)
from aftercall.json_values import clean_text
from aftercall.models import MAX_SCENARIO, Evolution, Promotion, SimilarFailure, ToolSpec
from aftercall.models.base import Name
from aftercall.models.tools import parse_version
from aftercall.promotions_file import FilePathError, read_promotions, resolve_file
from aftercall.redaction import DEFAULT_REDACTOR, Redactor

__all__ = [
    "CHANGELOG_FILE", "ChatEvolver", "Checks", "EvolutionResult",
    "EvolutionStatus", "EvolutionTask", "EvolvedCode", "Evolver",
    "EvolverError", "EvolvingTool", "JudgedAnswer", "PastEvolution", "PastFailure", "RejectedCode",
    "UnusableAnswerError", "checks_beside", "evolve",
]  # fmt: skip
T = TypeVar("T")
_MAX_REASON = 2_000
"""Characters of a reason and a mutation that are kept: they are read in lists, and embedded."""
_MAX_NOTE = 1_000
_NAME: TypeAdapter[str] = TypeAdapter(Name)


async def evolve(
    tool: EvolvingTool,
    evolver: Evolver,
    *,
    promotions_file: Path,
    reason: str,
    mutation_hint: str = "",
    scenario: str | None = None,
    failures: Sequence[PastFailure] = (),
    lessons: Sequence[str] = (),
    service: AsyncClient | None = None,
    redactor: Redactor | None = DEFAULT_REDACTOR,
) -> EvolutionResult:
    """Make the next minor version of a tool, and put it in force.

    The version in force is the one that is changed: the promoted one where its file is next to the
    script, else the original. Whatever goes wrong is stated in the result, and has changed nothing.

    - The promotions file is made when missing; the changelog is next to it. Kept with the promotion
      are the reason and the `mutation_hint` (the wanted change), or else the evolver's own summary.
    - The scenario is what the tool was to do when it failed. Failures stand most telling first;
      those that the service knows come after them. Lessons have one sentence or two each.
    - The service is asked for failures and like evolutions, and informed of the promotion. While it
      is away the tool is evolved all the same.
    - Secrets are masked in all that the evolver sees and that is kept. Those in the source are put
      back into the new version.
    - The evolver is asked twice at most, the second time with what was wrong.

    Raises:
        ValueError: the version is invalid, or tool id or namespace is no name of the contract.
    """
    _NAME.validate_python(tool.tool_id)
    _NAME.validate_python(tool.namespace)
    parse_version(tool.version)
    try:
        work = await asyncio.to_thread(_Work, tool, promotions_file, service, redactor)
        task = await work.make_task(reason, mutation_hint, scenario, failures, lessons)
        changes = await work.ask_evolver(evolver, task)
        if work.accepted is not None:
            changes = await work.keep_version(task, work.accepted)
        # Paths and messages in the notes may hold what no JSON can.
        changes["attempts"], changes["notes"] = work.attempts, list(map(clean_text, work.notes))
    except (AftercallError, OSError) as error:
        why = str(error) if redactor is None else redactor.text(str(error))
        changes = {"status": "failed", "why": clean_text(why)[:_MAX_NOTE]}
    return EvolutionResult(tool_id=tool.tool_id, namespace=tool.namespace, **changes)


@dataclass(eq=False)
class _Work:
    """One evolution: what is evolved, what was answered, and `notes` on what went otherwise.

    `source` is of `version`, the one in force; `original` is the first.
    """

    tool: EvolvingTool
    promotions_file: Path
    service: AsyncClient | None
    redactor: Redactor | None
    attempts: list[JudgedAnswer] = field(default_factory=list)
    accepted: EvolvedCode | None = None
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        tool, promotions_file, redactor = self.tool, self.promotions_file, self.redactor
        self._known_versions = [parse_version(tool.version)]
        root = promotions_file.parent
        self._script = resolve_script(tool.script, root)
        # Better now than after the work.
        versioned_name(self._script.name, parse_version(tool.version))
        if self._script.suffix.lower() != ".py":
            raise ConfigurationError(
                f"{self._script.name} is no Python, and only that can be evolved"
            )
        self._original = self._source = read_source(self._script)
        self._version = tool.version
        promotion = read_promotions(promotions_file, missing_ok=True).get(tool.namespace)
        if promotion is not None:
            try:
                self._source = read_source(_promoted_file(promotion, self._script, root))
                self._version = promotion.evolved_version
            except (ConfigurationError, FilePathError) as error:
                self.notes.append(
                    f"the promoted version {promotion.evolved_version} is not evolved further, but "
                    f"the original: {error}"
                )
        self._hidden = HiddenValues(self._source, redactor)

    async def make_task(
        self,
        reason: str,
        mutation_hint: str,
        scenario: str | None,
        failures: Sequence[PastFailure],
        lessons: Sequence[str],
    ) -> EvolutionTask:
        hide = self._hidden.hide_secrets
        seen: list[PastFailure | SimilarFailure] = [*failures]
        evolutions: Sequence[Evolution] = ()
        if (service := self.service) is not None:
            question = hide(scenario or reason).strip()[:MAX_SCENARIO]
            failed = service.tool_failures(
                self.tool.tool_id, scenario=question or None, limit=MAX_FAILURES
            )
            seen += await self._await_answer("past failures", failed) or ()
            if question:
                found = service.find_evolutions(question, limit=MAX_PAST_EVOLUTIONS)
                evolutions = await self._await_answer("past evolutions", found) or ()
            history = await self._await_answer(
                "versions", service.promotion_history(self.tool.namespace)
            )
            self._known_versions += [
                parse_version(change.promotion.evolved_version)
                for change in (history.changes if history else [])
                if change.promotion is not None
            ]
        past: dict[tuple[str, str | None], PastFailure] = {}
        for each in seen:
            failure = PastFailure(
                scenario=hide(each.scenario),
                error_message=each.error_message and hide(each.error_message),
                severity=each.severity,
                at=each.at,
            )
            # What the caller saw may be what the service has received of already.
            past.setdefault((failure.scenario, failure.error_message), failure)
        if (schema := self.tool.input_schema) is not None and self.redactor is not None:
            schema = self.redactor.tool(ToolSpec(name="schema", input_schema=schema)).input_schema
        return EvolutionTask(
            tool_id=hide(self.tool.tool_id),
            namespace=hide(self.tool.namespace),
            version=self._version,
            source=self._hidden.source,
            reason=hide(reason),
            mutation_hint=hide(mutation_hint),
            scenario=scenario and hide(scenario),
            description=hide(self.tool.description),
            input_schema=schema,
            failures=list(past.values()),
            lessons=[hide(lesson) for lesson in lessons],
            past_evolutions=[
                PastEvolution(
                    namespace=hide(like.namespace),
                    reason=hide(like.promotion.reason),
                    mutation=hide(like.promotion.mutation),
                )
                for like in evolutions
            ],
        )

    async def _await_answer(self, what: str, answer: Awaitable[T]) -> T | None:
        try:
            return await answer
        except NotFoundError:
            return None  # a tool or a namespace that the service has not received of
        except (AftercallError, ValueError) as error:
            self.notes.append(f"the service was not asked for {what}: {error}"[:500])
            return None

    async def ask_evolver(self, evolver: Evolver, task: EvolutionTask) -> dict[str, Any]:
        hide, why = self._hidden.hide_secrets, ""
        for number in (1, 2):
            shown: str | None = None
            try:
                answer = await evolver.evolve(task)
                shown = hide(answer.code)
                code, report = await self._check_code(answer.code)
            except (UnusableAnswerError, RejectedCodeError) as error:
                report = CheckReport(passed=False, why=str(error), output="")
            except EvolverError as error:
                return {"status": "failed", "why": hide(str(error))[:_MAX_NOTE]}
            except AftercallError:
                raise
            except Exception as error:  # noqa: BLE001  # evolvers are plugins
                failed = f"the evolver failed ({type(error).__name__}: {error})"
                return {"status": "failed", "why": hide(failed)[:_MAX_NOTE]}
            why, output = hide(report.why)[:500], hide(report.output)
            self.attempts.append(
                JudgedAnswer(number=number, accepted=report.passed, why=why, output=output)
            )
            if report.passed:
                self.accepted = EvolvedCode(code, hide(answer.summary))
                return {}
            reason = f"{why}\nThe checks printed:\n{output}" if output else why
            task = replace(task, rejected=(*task.rejected, RejectedCode(code=shown, why=reason)))
        why = f"the evolver was asked twice, and no answer was accepted; of the last: {why}"
        return {"status": "rejected", "why": why}

    async def _check_code(self, code: str) -> tuple[str, CheckReport]:
        restored = self._hidden.restore_values(code)
        # In a thread: parsing a quarter of a megabyte takes longer than an event loop should wait.
        whole = await asyncio.to_thread(accept_code, restored, known=(self._source, self._original))
        if self.tool.checks is None:
            why = "it is whole and another than before; the tool has no checks"
            return whole, CheckReport(passed=True, why=why, output="")
        return whole, await run_checks(self.tool.checks, file_name=self._script.name, code=whole)

    async def keep_version(self, task: EvolutionTask, accepted: EvolvedCode) -> dict[str, Any]:
        keeping = asyncio.to_thread(
            commit,
            self.tool,
            self._script,
            self.promotions_file,
            code=accepted.code,
            made_from=self._version,
            reason=task.reason.strip()[:_MAX_REASON],
            mutation=(task.mutation_hint.strip() or accepted.summary)[:_MAX_REASON],
            known_versions=[*self._known_versions, parse_version(self._version)],
        )
        # It is done to the end, also when the caller is cancelled meanwhile.
        file, promotion, notes = await to_the_end(asyncio.ensure_future(keeping))
        self.notes += notes
        if knows := self.service is not None:
            try:
                await self.service.promote(self.tool.namespace, promotion)
            except (AftercallError, ValueError) as error:
                knows = False
                problem = f"the service does not know of the promotion: {error}"[:_MAX_NOTE]
                self.notes.append(f"{problem}; import the promotions file there when it is back")
        return {
            "status": "evolved",
            "why": f"version {promotion.evolved_version} is in force",
            "version": promotion.evolved_version,
            "file": file,
            "promotion": promotion,
            "told_service": knows,
        }


def _promoted_file(promotion: Promotion, script: Path, root: Path) -> Path:
    """Return the promoted file, when it is a version of this very script.

    What the file names goes to the evolver: it must not become a way to read other files.
    """
    if promotion.evolved_file is None:
        raise FilePathError("it has no file here")
    file = resolve_file(root, promotion.evolved_file)
    if file.parent != script.parent or version_in(file.name, script.name) is None:
        raise FilePathError(f"{promotion.evolved_file!r} is no version of {script.name}")
    return file
