"""Asking an evolver until an answer is accepted, or it has been asked often enough."""

import asyncio
from dataclasses import dataclass, field, replace

from aftercall.evolution.acceptance import RejectedCodeError, accept
from aftercall.evolution.checks import Checks, run_checks
from aftercall.evolution.hidden_values import HiddenValues
from aftercall.evolution.present import Present
from aftercall.evolution.results import Attempt
from aftercall.evolution.tasks import (
    EvolutionTask,
    EvolvedCode,
    Evolver,
    EvolverError,
    RejectedCode,
    UnusableAnswerError,
)
from aftercall.json_values import clean_text

_MAX_WHY = 500


@dataclass(frozen=True, slots=True)
class Judged:
    """What was found about one answer. `code` is the code to keep, None when it is rejected."""

    code: str | None
    why: str
    output: str = ""


@dataclass(slots=True)
class Rounds:
    """All answers, and the accepted one, if any; `trouble` is why there was no answer at all."""

    attempts: list[Attempt] = field(default_factory=list)
    accepted: EvolvedCode | None = None
    trouble: str | None = None


async def ask(
    evolver: Evolver,
    task: EvolutionTask,
    *,
    present: Present,
    hidden: HiddenValues,
    checks: Checks | None,
    max_rounds: int,
) -> Rounds:
    """Ask up to `max_rounds` times; each time with what was wrong before.

    Raises:
        ConfigurationError: the checks cannot be run.
    """
    rounds = Rounds()
    for number in range(1, max_rounds + 1):
        code: str | None = None
        summary = ""
        try:
            answer = await evolver.evolve(task)
        except UnusableAnswerError as error:
            judged = Judged(None, str(error))
        except Exception as error:  # noqa: BLE001  # evolvers are plugins
            known = isinstance(error, EvolverError)
            said = str(error) if known else f"the evolver failed ({type(error).__name__}: {error})"
            rounds.trouble = clean_text(hidden.hide(said))
            return rounds
        else:
            code, summary = answer.code, answer.summary
            judged = await judge(code, present=present, hidden=hidden, checks=checks)
        why = clean_text(hidden.hide(judged.why))[:_MAX_WHY]
        output = clean_text(hidden.hide(judged.output))
        rounds.attempts.append(
            Attempt(number=number, accepted=judged.code is not None, why=why, output=output)
        )
        if judged.code is not None:
            rounds.accepted = EvolvedCode(judged.code, clean_text(hidden.hide(summary)))
            return rounds
        told = f"{why}\nThe checks printed:\n{output}" if output else why
        shown = None if code is None else clean_text(hidden.hide(code))
        task = replace(task, rejected=(*task.rejected, RejectedCode(code=shown, why=told)))
    return rounds


async def judge(
    code: str, *, present: Present, hidden: HiddenValues, checks: Checks | None
) -> Judged:
    """Whether code is accepted: it is whole, is another than before, and passes the checks.

    Raises:
        ConfigurationError: the checks cannot be run.
    """
    try:
        # In a thread: parsing a quarter of a megabyte takes longer than an event loop should wait.
        whole = await asyncio.to_thread(
            accept,
            hidden.restore(code),
            known=(present.source, present.original),
            language=present.language,
        )
    except RejectedCodeError as error:
        return Judged(None, str(error))
    if checks is None:
        return Judged(whole, "it is whole and another than before; the tool has no checks")
    report = await run_checks(checks, file_name=present.script.name, code=whole)
    return Judged(whole if report.passed else None, report.why, report.output)
