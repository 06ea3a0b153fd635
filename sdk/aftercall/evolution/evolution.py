"""Evolving a tool from its failures to a new version in force: the whole transaction (seed 002).

All that is known of the tool becomes one task without secrets. The evolver's answers are judged as
text and by the tool's own checks in a temporary folder, and only what is accepted there comes near
the tools. Nothing of it is run but by the checks (see `aftercall.evolution.checks`).
"""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from pydantic import TypeAdapter

from aftercall.background import to_the_end
from aftercall.errors import AftercallError, NotFoundError
from aftercall.evolution.chat import MAX_FAILURES, MAX_PAST_EVOLUTIONS
from aftercall.evolution.checks import (
    PYTHON,
    CheckReport,
    Checks,
    HiddenValues,
    RejectedCodeError,
    accept,
    language_of,
    run_checks,
)
from aftercall.evolution.files import (
    AcceptedCode,
    ScriptError,
    commit,
    read_source,
    resolve_script,
    version_in,
    versioned_name,
)
from aftercall.evolution.tasks import (
    Attempt,
    EvolutionResult,
    EvolutionTask,
    EvolvedCode,
    Evolver,
    EvolverError,
    PastEvolution,
    PastFailure,
    RejectedCode,
    UnusableAnswerError,
)
from aftercall.json_values import JsonObject, clean_text
from aftercall.models import (
    MAX_SCENARIO,
    Evolution,
    Promotion,
    PromotionHistory,
    PromotionStatus,
    SimilarFailure,
    ToolSpec,
)
from aftercall.models.base import Name
from aftercall.models.tools import VersionNumber, parse_version
from aftercall.promotions_file import (
    MissingFileError,
    UnsafePathError,
    read_promotions,
    resolve_file,
)
from aftercall.redaction import DEFAULT_REDACTOR, Redactor

T = TypeVar("T")

_MAX_REASON = 2_000
"""Characters of a reason and a mutation that are kept: they are read in lists, and embedded."""

_MAX_NOTE = 1_000
_MAX_WHY = 500

_NAME: TypeAdapter[str] = TypeAdapter(Name)


class EvolutionService(Protocol):
    """What is asked of the service; `aftercall.AsyncClient` has it."""

    async def tool_failures(
        self, tool_id: str, *, scenario: str | None = None, limit: int | None = None
    ) -> list[SimilarFailure]:
        """Past failures, those in scenarios like this one first."""

    async def find_evolutions(self, scenario: str, *, limit: int = 5) -> list[Evolution]:
        """Past evolutions, nearest to the scenario first."""

    async def promotion_history(self, namespace: str) -> PromotionHistory:
        """All that was ever promoted in a namespace."""

    async def promote(self, namespace: str, promotion: Promotion) -> PromotionStatus:
        """Tell of a promotion; the service keeps its reason and mutation as a pattern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolvingTool:
    """A tool that is a script on this machine.

    Args:
        tool_id: its id; only data, never a part of a path.
        namespace: the capability that the new version is promoted in.
        script: its original script, below the folder of the promotions file.
        version: the original's version.
        description: what it does.
        input_schema: of its parameters.
        checks: what a new version must pass. Scripts that are no Python must have some, for nothing
            else would show that they are whole.
    """

    tool_id: str
    namespace: str
    script: Path
    version: str = "1.0.0"
    description: str = ""
    input_schema: JsonObject | None = None
    checks: Checks | None = None


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
    service: EvolutionService | None = None,
    redactor: Redactor | None = DEFAULT_REDACTOR,
    max_rounds: int = 2,
) -> EvolutionResult:
    """Make the next minor version of a tool, and put it in force.

    The version in force is the one that is changed: the promoted one where its file is beside the
    script, else the original. Whatever goes wrong is said in the result, and has changed nothing.

    Args:
        tool: what to evolve.
        evolver: who writes the new version.
        promotions_file: `.tool_promotions.json`; made when missing. The changelog is beside it.
        reason: why, in words; kept with the promotion.
        mutation_hint: the wanted change, in words. Kept with the promotion; without one the
            evolver's own summary is.
        scenario: what the tool was to do when it failed.
        failures: most telling first; those that the service knows come after them.
        lessons: what else is known, one sentence or two each.
        service: asked for failures and like evolutions, and informed of the promotion. While it is
            away the tool is evolved all the same.
        redactor: masks secrets in all that the evolver sees and that is kept. Those in the source
            are put back into the new version. None masks nothing.
        max_rounds: how often the evolver is asked; from the second time on it gets what was wrong.

    Raises:
        ValueError: `max_rounds` is less than 1, the version is none, or tool id or namespace is no
            name of the contract.
    """
    if max_rounds < 1:
        raise ValueError(f"max_rounds must be 1 or more, not {max_rounds}")
    _NAME.validate_python(tool.tool_id)
    _NAME.validate_python(tool.namespace)
    parse_version(tool.version)
    occasion = EvolutionTask(
        tool_id=tool.tool_id,
        namespace=tool.namespace,
        version=tool.version,
        language="",
        source="",
        reason=reason,
        mutation_hint=mutation_hint,
        scenario=scenario,
        description=tool.description,
        input_schema=tool.input_schema,
        failures=failures,
        lessons=lessons,
    )
    result = EvolutionResult(
        status="failed", tool_id=tool.tool_id, namespace=tool.namespace, why="not begun"
    )
    try:
        changes = await _evolve(
            tool, evolver, promotions_file, occasion, service, redactor, max_rounds
        )
    except (AftercallError, OSError) as error:
        why = str(error) if redactor is None else redactor.text(str(error))
        changes = {"why": clean_text(why)[:_MAX_NOTE]}
    return result.model_copy(update=changes)


async def _evolve(
    tool: EvolvingTool,
    evolver: Evolver,
    promotions_file: Path,
    occasion: EvolutionTask,
    service: EvolutionService | None,
    redactor: Redactor | None,
    max_rounds: int,
) -> dict[str, object]:
    """The fields of the result."""
    present = await asyncio.to_thread(_look_up, tool, promotions_file)
    hidden = HiddenValues(present.source, language=present.language, redactor=redactor)
    experience = _Experience(list(present.notes))
    if service is not None:
        question = hidden.hide(occasion.scenario or occasion.reason).strip()[:MAX_SCENARIO]
        await experience.gather(service, tool.tool_id, tool.namespace, question)
    task = _briefed(occasion, present, experience, hidden, redactor)
    rounds = await _ask(evolver, task, present, hidden, tool.checks, max_rounds)
    notes = experience.notes
    changes: dict[str, object] = {"attempts": rounds.attempts, "notes": _clean(notes)}
    if rounds.accepted is None:
        return changes | rounds.refusal()
    candidate = AcceptedCode(
        tool_id=tool.tool_id,
        namespace=tool.namespace,
        code=rounds.accepted.code,
        original_version=tool.version,
        made_from=present.version,
        reason=task.reason.strip()[:_MAX_REASON],
        mutation=(task.mutation_hint.strip() or rounds.accepted.summary)[:_MAX_REASON],
    )
    keep = partial(
        commit,
        candidate,
        script=present.script,
        promotions_file=promotions_file,
        known_versions=[
            parse_version(tool.version), parse_version(present.version), *experience.versions,
        ],
    )  # fmt: skip
    # It is done to the end, also when the caller is cancelled meanwhile.
    committed = await to_the_end(asyncio.ensure_future(asyncio.to_thread(keep)))
    notes += committed.notes
    knows = service is not None
    if service is not None:
        try:
            await service.promote(tool.namespace, committed.promotion)
        except (AftercallError, ValueError) as error:
            knows = False
            problem = f"the service does not know of the promotion: {error}"[:_MAX_NOTE]
            notes.append(f"{problem}; import the promotions file there when it is back")
    return changes | {
        "status": "evolved",
        "why": f"version {committed.promotion.evolved_version} is in force",
        "version": committed.promotion.evolved_version,
        "file": committed.file,
        "promotion": committed.promotion,
        "told_service": knows,
        "notes": _clean(notes),
    }


def _clean(notes: list[str]) -> list[str]:
    """Paths and messages in them may hold what no JSON can."""
    return [clean_text(note) for note in notes]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Present:
    """What is to be evolved: `source` is of `version`, the one in force; `original` the first.

    `notes` say why the promoted version is not the one in `source`, if it is not.
    """

    script: Path
    original: str
    source: str
    version: str
    language: str
    notes: tuple[str, ...] = ()


def _look_up(tool: EvolvingTool, promotions_file: Path) -> _Present:
    """Read what is there; ConfigurationError when script, folder or promotions cannot be used."""
    root = promotions_file.parent
    script = resolve_script(tool.script, root)
    versioned_name(script.name, parse_version(tool.version))  # better now than after the work
    language = language_of(script.suffix)
    if language != PYTHON and tool.checks is None:
        raise ScriptError(
            f"{script.name} is no Python, so nothing would show that a new version is whole; "
            "configure checks for this tool"
        )
    source = read_source(script)
    present = _Present(
        script=script, original=source, source=source, version=tool.version, language=language
    )
    promotion = read_promotions(promotions_file, missing_ok=True).get(tool.namespace)
    if promotion is None:
        return present
    try:
        promoted = read_source(_promoted_file(promotion, script, root))
    except (ScriptError, MissingFileError, UnsafePathError) as error:
        note = (
            f"the promoted version {promotion.evolved_version} is not evolved further, but "
            f"the original: {error}"
        )
        return replace(present, notes=(note,))
    return replace(present, source=promoted, version=promotion.evolved_version)


def _promoted_file(promotion: Promotion, script: Path, root: Path) -> Path:
    """The promoted file, when it is a version of this very script.

    The promotions file may come from elsewhere, and what it names goes to the evolver: it must not
    become a way to read other files.
    """
    if promotion.evolved_file is None:
        raise MissingFileError("it has no file here")
    file = resolve_file(root, promotion.evolved_file)
    if file.parent != script.parent or version_in(file.name, script.name) is None:
        raise UnsafePathError(f"{promotion.evolved_file!r} is no version of {script.name}")
    return file


@dataclass(slots=True)
class _Experience:
    """What the service knows that helps. `notes` say what could not be asked."""

    notes: list[str]
    failures: Sequence[SimilarFailure] = ()
    evolutions: Sequence[Evolution] = ()
    versions: list[VersionNumber] = field(default_factory=list)

    async def gather(
        self, service: EvolutionService, tool_id: str, namespace: str, question: str
    ) -> None:
        """Ask. What is not answered is left out: a tool can be evolved without it."""
        self.failures = (
            await self._asked(
                "past failures",
                service.tool_failures(tool_id, scenario=question or None, limit=MAX_FAILURES),
            )
            or ()
        )
        if question:
            asking = service.find_evolutions(question, limit=MAX_PAST_EVOLUTIONS)
            self.evolutions = await self._asked("past evolutions", asking) or ()
        history = await self._asked("versions", service.promotion_history(namespace))
        self.versions = [
            parse_version(change.promotion.evolved_version)
            for change in (history.changes if history else [])
            if change.promotion is not None
        ]

    async def _asked(self, what: str, answer: Awaitable[T]) -> T | None:
        try:
            return await answer
        except NotFoundError:
            return None  # a tool or a namespace that the service has not heard of
        except (AftercallError, ValueError) as error:
            self.notes.append(f"the service was not asked for {what}: {error}"[:500])
            return None


def _briefed(
    occasion: EvolutionTask,
    present: _Present,
    experience: _Experience,
    hidden: HiddenValues,
    redactor: Redactor | None,
) -> EvolutionTask:
    """All that is known, without secrets; the caller's failures come first."""
    failures: dict[tuple[str, str | None], PastFailure] = {}
    seen: list[PastFailure | SimilarFailure] = [*occasion.failures, *experience.failures]
    for each in seen:
        failure = PastFailure(
            scenario=_hidden(each.scenario, hidden),
            error_message=each.error_message and _hidden(each.error_message, hidden),
            severity=each.severity,
            at=each.at,
        )
        # What the caller saw may be what the service has heard of already.
        failures.setdefault((failure.scenario, failure.error_message), failure)
    schema = occasion.input_schema
    if schema is not None and redactor is not None:
        schema = redactor.tool(ToolSpec(name="schema", input_schema=schema)).input_schema
    return replace(
        occasion,
        tool_id=_hidden(occasion.tool_id, hidden),
        namespace=_hidden(occasion.namespace, hidden),
        version=present.version,
        language=present.language,
        source=hidden.source,
        reason=_hidden(occasion.reason, hidden),
        mutation_hint=_hidden(occasion.mutation_hint, hidden),
        scenario=occasion.scenario and _hidden(occasion.scenario, hidden),
        description=_hidden(occasion.description, hidden),
        input_schema=schema,
        failures=list(failures.values()),
        lessons=[_hidden(lesson, hidden) for lesson in occasion.lessons],
        past_evolutions=[
            PastEvolution(
                namespace=_hidden(past.namespace, hidden),
                reason=_hidden(past.promotion.reason, hidden),
                mutation=_hidden(past.promotion.mutation, hidden),
            )
            for past in experience.evolutions
        ],
    )


def _hidden(text: str, hidden: HiddenValues) -> str:
    return clean_text(hidden.hide(text))


@dataclass(slots=True)
class _Rounds:
    """All answers, and the accepted one, if any; `trouble` is why there was no answer at all."""

    attempts: list[Attempt] = field(default_factory=list)
    accepted: EvolvedCode | None = None
    trouble: str | None = None

    def refusal(self) -> dict[str, object]:
        """The fields of the result when nothing was accepted."""
        if self.trouble is not None:
            return {"status": "failed", "why": self.trouble[:_MAX_NOTE]}
        last = self.attempts[-1]
        times = "once" if last.number == 1 else f"{last.number} times"
        why = f"the evolver was asked {times}, and no answer was accepted; of the last: {last.why}"
        return {"status": "rejected", "why": why}


async def _ask(
    evolver: Evolver,
    task: EvolutionTask,
    present: _Present,
    hidden: HiddenValues,
    checks: Checks | None,
    max_rounds: int,
) -> _Rounds:
    """Ask up to `max_rounds` times; each time with what was wrong before."""
    rounds = _Rounds()
    for number in range(1, max_rounds + 1):
        shown: str | None = None
        try:
            answer = await evolver.evolve(task)
            shown = _hidden(answer.code, hidden)
            code, report = await _judge(answer.code, present, hidden, checks)
        except (UnusableAnswerError, RejectedCodeError) as error:
            report = CheckReport(passed=False, why=str(error), output="")
        except AftercallError as error:
            if not isinstance(error, EvolverError):
                raise
            rounds.trouble = _hidden(str(error), hidden)
            return rounds
        except Exception as error:  # noqa: BLE001  # evolvers are plugins
            failed = f"the evolver failed ({type(error).__name__}: {error})"
            rounds.trouble = _hidden(failed, hidden)
            return rounds
        why, output = _hidden(report.why, hidden)[:_MAX_WHY], _hidden(report.output, hidden)
        rounds.attempts.append(
            Attempt(number=number, accepted=report.passed, why=why, output=output)
        )
        if report.passed:
            rounds.accepted = EvolvedCode(code, _hidden(answer.summary, hidden))
            return rounds
        reason = f"{why}\nThe checks printed:\n{output}" if output else why
        rejected = RejectedCode(code=shown, why=reason)
        task = replace(task, rejected=(*task.rejected, rejected))
    return rounds


async def _judge(
    code: str, present: _Present, hidden: HiddenValues, checks: Checks | None
) -> tuple[str, CheckReport]:
    """The code as it is to be written, and what became of its checks.

    Raises:
        RejectedCodeError: it is not whole, or the same as before.
        ConfigurationError: the checks cannot be run.
    """
    restored = hidden.restore(code)
    known = (present.source, present.original)
    # In a thread: parsing a quarter of a megabyte takes longer than an event loop should wait.
    whole = await asyncio.to_thread(accept, restored, known=known, language=present.language)
    if checks is None:
        why = "it is whole and another than before; the tool has no checks"
        return whole, CheckReport(passed=True, why=why, output="")
    return whole, await run_checks(checks, file_name=present.script.name, code=whole)
