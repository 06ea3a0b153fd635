"""Evolving a tool from its failures to a new version in force: the whole transaction (seed 002).

The new code goes to a temporary folder first, and only what is accepted there comes near the tools.
Nothing of it is run but by the tool's own checks (see `aftercall.evolution.checks`).
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter

from aftercall.errors import AftercallError
from aftercall.evolution.briefing import Occasion, task_for
from aftercall.evolution.commit import Candidate, commit
from aftercall.evolution.experience import EvolutionService, Experience, gather
from aftercall.evolution.hidden_values import HiddenValues
from aftercall.evolution.present import EvolvingTool, look_up
from aftercall.evolution.results import EvolutionResult
from aftercall.evolution.rounds import Rounds, ask
from aftercall.evolution.tasks import Evolver, PastFailure
from aftercall.json_values import clean_text
from aftercall.models import MAX_SCENARIO, Promotion
from aftercall.models.base import Name
from aftercall.redaction import DEFAULT_REDACTOR, Redactor
from aftercall.versions import parse_version

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
    service: EvolutionService | None = None,
    redactor: Redactor | None = DEFAULT_REDACTOR,
    max_rounds: int = 2,
) -> EvolutionResult:
    """Make the next minor version of a tool, and put it in force.

    The version in force is the one that is changed: the promoted one where its file is beside the
    script, else the original. Whatever goes wrong is told in the result, and has changed nothing.

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
        service: asked for failures and like evolutions, and told of the promotion. While it is away
            the tool is evolved all the same.
        redactor: masks secrets in all that the evolver sees and that is kept. Those in the source
            are put back into the new version. None masks nothing.
        max_rounds: how often the evolver is asked; from the second time on it is told what was
            wrong.

    Raises:
        ValueError: `max_rounds` is less than 1, the version is none, or tool id or namespace is no
            name of the contract.
    """
    if max_rounds < 1:
        raise ValueError(f"max_rounds must be 1 or more, not {max_rounds}")
    _NAME.validate_python(tool.tool_id)
    _NAME.validate_python(tool.namespace)
    parse_version(tool.version)
    occasion = Occasion(
        reason=reason,
        mutation_hint=mutation_hint,
        scenario=scenario,
        failures=failures,
        lessons=lessons,
    )
    result = EvolutionResult(
        status="failed", tool_id=tool.tool_id, namespace=tool.namespace, why="not begun"
    )
    try:
        return await _evolve(
            tool, evolver, promotions_file, occasion, service, redactor, max_rounds, result
        )
    except (AftercallError, OSError) as error:
        why = str(error) if redactor is None else redactor.text(str(error))
        return result.model_copy(update={"why": clean_text(why)[:_MAX_NOTE]})


async def _evolve(
    tool: EvolvingTool,
    evolver: Evolver,
    promotions_file: Path,
    occasion: Occasion,
    service: EvolutionService | None,
    redactor: Redactor | None,
    max_rounds: int,
    result: EvolutionResult,
) -> EvolutionResult:
    present = await asyncio.to_thread(look_up, tool, promotions_file)
    hidden = HiddenValues(present.source, language=present.language, redactor=redactor)
    experience = Experience()
    if service is not None:
        question = hidden.hide(occasion.scenario or occasion.reason).strip()[:MAX_SCENARIO]
        experience = await gather(
            service, tool_id=tool.tool_id, namespace=tool.namespace, question=question
        )
    task = task_for(tool, present, occasion, experience, hidden=hidden, redactor=redactor)
    rounds = await ask(
        evolver,
        task,
        present=present,
        hidden=hidden,
        checks=tool.checks,
        max_rounds=max_rounds,
    )
    notes = [*present.notes, *experience.notes]
    result = result.model_copy(update={"attempts": rounds.attempts, "notes": _clean(notes)})
    if rounds.accepted is None:
        return result.model_copy(update=_refused(rounds))
    candidate = Candidate(
        tool_id=tool.tool_id,
        namespace=tool.namespace,
        code=rounds.accepted.code,
        original_version=tool.version,
        made_from=present.version,
        reason=task.reason.strip()[:_MAX_REASON],
        mutation=(task.mutation_hint.strip() or rounds.accepted.summary)[:_MAX_REASON],
    )
    known = [parse_version(tool.version), parse_version(present.version), *experience.versions]
    committed = await _to_the_end(
        lambda: commit(
            candidate,
            script=present.script,
            promotions_file=promotions_file,
            known_versions=known,
        )
    )
    refusal = await _tell(service, tool.namespace, committed.promotion)
    return result.model_copy(
        update={
            "status": "evolved",
            "why": f"version {committed.promotion.evolved_version} is in force",
            "version": committed.promotion.evolved_version,
            "file": committed.file,
            "promotion": committed.promotion,
            "told_service": service is not None and refusal is None,
            "notes": _clean([*notes, *committed.notes, *([refusal] if refusal else [])]),
        }
    )


def _refused(rounds: Rounds) -> dict[str, object]:
    if rounds.trouble is not None:
        return {"status": "failed", "why": rounds.trouble[:_MAX_NOTE]}
    last = rounds.attempts[-1]
    times = "once" if last.number == 1 else f"{last.number} times"
    why = f"the evolver was asked {times}, and no answer was accepted; of the last: {last.why}"
    return {"status": "rejected", "why": why}


def _clean(notes: list[str]) -> list[str]:
    """Paths and messages in them may hold what no JSON can."""
    return [clean_text(note) for note in notes]


async def _to_the_end(work: Callable[[], T]) -> T:
    """Run in a thread, and be done when it is done, also when the caller is cancelled meanwhile."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


async def _tell(
    service: EvolutionService | None, namespace: str, promotion: Promotion
) -> str | None:
    """Tell the service; the reason why it does not know of the promotion, if it does not."""
    if service is None:
        return None
    try:
        await service.promote(namespace, promotion)
    except (AftercallError, ValueError) as error:
        said = f"the service was not told of the promotion: {error}"
        return f"{said[:_MAX_NOTE]}; import the promotions file there when it is back"
    return None
