"""Failed calls whose right form is known, since simulated agents and tools made them.

They are new ones: made as those of the history that `aftercall demo --history` plays, with another
seed, and never recorded. Each could be repaired by other parameters; what needs patience or rights
is left out.
"""

from dataclasses import dataclass
from random import Random
from typing import Literal
from uuid import UUID

from aftercall.json_values import JsonObject
from aftercall.models import FailedCall
from service.demo.simulated_tools import (
    PASSING,
    PHASES,
    CallMoment,
    SimTool,
    SlipKind,
    ToolFault,
    tools_on,
)

Verdict = Literal["right", "something else", "fails"]
"""Of a corrected call: it does what its caller meant; it succeeds and does something else, which
no one is shown; or it fails again."""

_DAY = PHASES - 1
_TRIES = 100
"""Draws of a call, or of an hour in which the tool's server is well, before it is given up."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One failed call and the truth about it.

    Args:
        tool: the tool as it is on the last day of the history.
        question: as the service is asked.
        meant: the parameters that the caller meant.
        slip: what the caller got wrong.
    """

    tool: SimTool
    question: FailedCall
    meant: JsonObject
    slip: SlipKind


def trial_tools() -> set[str]:
    """Return the ids of the tools that trials are about; a service should know them to be asked."""
    return {tool.tool_id for tool in tools_on(_DAY) if tool.slips}


def make_trials(count: int, *, seed: int = 1) -> list[Trial]:
    """Return some failed calls, the same for the same seed."""
    dice = Random(f"trials {seed}")  # noqa: S311  # repeatable, keeps no secret
    tools = [tool for tool in tools_on(_DAY) if tool.slips]
    weights = [tool.popularity for tool in tools]
    found: list[Trial] = []
    for _ in range(_TRIES * count):
        if len(found) == count:
            break
        trial = _trial(dice.choices(tools, weights)[0], dice, f"trial-{seed}-{len(found)}")
        if trial is not None:
            found.append(trial)
    return found


def verdict(trial: Trial, parameters: JsonObject) -> Verdict:
    """Return what becomes of a corrected call."""
    if _fault(trial.tool, parameters, trial.question.session_id or "") is not None:
        return "fails"
    return "right" if trial.tool.is_same_call(parameters, trial.meant) else "something else"


def _trial(tool: SimTool, dice: Random, name: str) -> Trial | None:
    wish = tool.draw_wish(dice)
    slip = dice.choices(tool.slips, [each.weight for each in tool.slips])[0]
    made = slip.make_slip(wish.parameters, dice)
    if made is None:
        return None
    sent, meant = made
    fault = _fault(tool, sent, name)
    if fault is None or _fault(tool, meant, name) is not None:
        return None
    question = FailedCall(
        execution_id=str(UUID(int=dice.getrandbits(128), version=4)),
        agent="researcher",
        server_name=tool.spec.server_name,
        tool_name=tool.spec.name,
        tool_version=tool.spec.version,
        parameters=sent,
        context=wish.context,
        error=fault.error,
        session_id=name,
    )
    return Trial(tool, question, meant, slip.kind)


def _fault(tool: SimTool, parameters: JsonObject, name: str) -> ToolFault | None:
    """Return how the tool refuses a call in an hour in which its server is well.

    None if it does not.
    """
    dice = Random(name)  # noqa: S311  # as above
    for _ in range(_TRIES):
        moment = CallMoment(day=_DAY, load=0.0, may_write=True, dice=dice)
        try:
            tool.answer_call(parameters, moment)
        except ToolFault as fault:
            if fault.kind not in PASSING:
                return fault
        else:
            return None
    raise RuntimeError(f"{tool.tool_id} is never well on day {_DAY}; take another day")
