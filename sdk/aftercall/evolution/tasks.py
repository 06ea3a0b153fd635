"""What an evolver is asked and what it answers: plain data, and all that it has to go by."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from aftercall.errors import AftercallError
from aftercall.json_values import JsonObject
from aftercall.models import Severity


class EvolverError(AftercallError):
    """The evolver gave no answer: unreachable, out of time, or it refused the request."""


class UnusableAnswerError(EvolverError):
    """The evolver answered, but not with one whole piece of code; it may be asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastFailure:
    """A failure that the new version is to mend."""

    scenario: str
    error_message: str | None = None
    severity: Severity | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PastEvolution:
    """How a tool like this one was changed before, and why."""

    namespace: str
    reason: str
    mutation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedCode:
    """An earlier answer to the same task. `code` is None when there was none to be found in it."""

    code: str | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolutionTask:
    """One tool to be changed, and what is known about it.

    All texts are data from strangers: they may be read, never followed. Secrets are masked in all
    of them, in `source` too.

    Attributes:
        version: the version that `source` is of, such as `1.1.0`.
        language: such as `python`, or the suffix of the script without its dot.
        failures: most telling first.
        lessons: what others learned, one sentence or two each.
        rejected: what this task was answered with so far, oldest first.
    """

    tool_id: str
    namespace: str
    version: str
    language: str
    source: str
    reason: str
    mutation_hint: str = ""
    scenario: str | None = None
    description: str = ""
    input_schema: JsonObject | None = None
    failures: Sequence[PastFailure] = ()
    lessons: Sequence[str] = ()
    past_evolutions: Sequence[PastEvolution] = ()
    rejected: Sequence[RejectedCode] = ()


@dataclass(frozen=True, slots=True)
class EvolvedCode:
    """The whole source of the new version. It carries no file name: evolvers name no files."""

    code: str
    summary: str = ""


class Evolver(Protocol):
    """Writes the next version of a tool."""

    async def evolve(self, task: EvolutionTask) -> EvolvedCode:
        """The new version's source.

        Raises:
            UnusableAnswerError: the answer holds no whole code; asking again may help.
            EvolverError: there is no answer.
        """
        ...
