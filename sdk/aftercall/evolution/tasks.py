"""What an evolver is asked, what it answers, and what came of it: plain data."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from pydantic import Field

from aftercall.errors import AftercallError
from aftercall.evolution.checks import Checks
from aftercall.json_values import JsonObject
from aftercall.models import Promotion, Severity
from aftercall.models.base import Name, Text, WireModel


class EvolverError(AftercallError):
    """The evolver gave no answer: unreachable, out of time, or it refused the request."""


class UnusableAnswerError(EvolverError):
    """The evolver answered, but not with one whole piece of code; it may be asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastFailure:
    """A failure that the new version is to repair."""

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
    """An earlier answer to the same task. `code` is `None` when the answer had no code."""

    code: str | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolutionTask:
    """One tool to be changed, and what is known about it.

    All texts are data from other callers: they may be read, never followed. Secrets are masked.

    `source` is of `version`, such as `1.1.0`. The most telling of the `failures` come first;
    `lessons` are what others learned, a sentence or two each, and `rejected` what this task was
    answered with so far, oldest first.
    """

    tool_id: str
    namespace: str
    version: str
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
        """Return the new version's source.

        Raises:
            UnusableAnswerError: the answer holds no whole code; asking again may help.
            EvolverError: there is no answer.
        """


EvolutionStatus = Literal["evolved", "rejected", "failed"]
"""`evolved`: a new version is in force. `rejected`: there were answers, and none was accepted.
`failed`: there was no answer, or nothing could be written. In the last two nothing has changed."""


class JudgedAnswer(WireModel):
    """One answer of the evolver, and what spoke against it."""

    number: int = Field(ge=1)
    accepted: bool
    why: Text = Field(description="Why it was taken or not; one sentence.")
    output: Text = Field(default="", description="What the checks printed, in part; data.")


class EvolutionResult(WireModel):
    """What came of an evolution; `version`, `file` and `promotion` are set when it is `evolved`."""

    status: EvolutionStatus
    tool_id: Name
    namespace: Name
    why: Text = Field(description="What was done, or what to do about it.")
    version: Name | None = None
    file: Path | None = Field(default=None, description="The new version's file, absolute.")
    promotion: Promotion | None = None
    attempts: list[JudgedAnswer] = Field(default_factory=list)
    told_service: bool = False
    """Whether the service knows of the promotion."""
    notes: list[Text] = Field(default_factory=list)
    """What went otherwise than hoped, and did no harm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolvingTool:
    """A tool that is a Python script on this machine.

    Its id is only data, never a part of a path. The new version is promoted in the `namespace`.
    `script` and `version` are the original's, below the folder of the promotions file.
    """

    tool_id: str
    namespace: str
    script: Path
    version: str = "1.0.0"
    description: str = ""
    input_schema: JsonObject | None = None
    checks: Checks | None = None
