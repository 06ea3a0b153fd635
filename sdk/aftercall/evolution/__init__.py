"""Evolution: a tool that fails gets its next version, written by an evolver (seed 002).

`evolve` is the whole transaction. An `Evolver` is anything that writes code for an `EvolutionTask`;
`ChatEvolver` asks a chat model.
"""

from aftercall.evolution.chat import ChatEvolver
from aftercall.evolution.checks import Checks, checks_beside
from aftercall.evolution.evolution import EvolutionService, EvolvingTool, evolve
from aftercall.evolution.files import CHANGELOG_FILE, ChangelogEntry, read_changelog
from aftercall.evolution.tasks import (
    Attempt,
    EvolutionResult,
    EvolutionStatus,
    EvolutionTask,
    EvolvedCode,
    Evolver,
    EvolverError,
    PastEvolution,
    PastFailure,
    RejectedCode,
    UnusableAnswerError,
)

__all__ = [
    "CHANGELOG_FILE", "Attempt", "ChangelogEntry", "ChatEvolver", "Checks", "EvolutionResult",
    "EvolutionService", "EvolutionStatus", "EvolutionTask", "EvolvedCode", "Evolver",
    "EvolverError", "EvolvingTool", "PastEvolution", "PastFailure", "RejectedCode",
    "UnusableAnswerError", "checks_beside", "evolve", "read_changelog",
]  # fmt: skip
