"""What came of an evolution."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from aftercall.models.base import Name, Text, WireModel
from aftercall.models.tools import Promotion

EvolutionStatus = Literal["evolved", "rejected", "failed"]
"""`evolved`: a new version is in force. `rejected`: there were answers, and none was accepted.
`failed`: there was no answer, or nothing could be written. In the last two nothing has changed."""


class Attempt(WireModel):
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
    attempts: list[Attempt] = Field(default_factory=list)
    told_service: bool = Field(
        default=False, description="Whether the service knows of the promotion."
    )
    notes: list[Text] = Field(
        default_factory=list, description="What went otherwise than hoped, and did no harm."
    )
