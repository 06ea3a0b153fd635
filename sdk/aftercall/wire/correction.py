"""User corrections: a user says that an answer was not what was asked for."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from aftercall.wire.base import Id, Name, Text, Timestamp, WireModel
from aftercall.wire.referral import MAX_AXES, Axis, ReferralKind

MAX_CORRECTION = 2_000
"""Characters of a user's words."""


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must say something; give the user's own words")
    return text


class Correction(WireModel):
    """Body of `POST /corrections`; about one execution, or about the latest of a session."""

    correction_id: Id | None = Field(
        default=None, description="Made by the client: sending it twice counts once."
    )
    execution_id: Id | None = Field(
        default=None, description="The call that was corrected; it may be recorded later than this."
    )
    session_id: Name | None = Field(
        default=None, description="Its latest recorded call, when no execution is named."
    )
    server_name: Name | None = Field(
        default=None, description="Narrows the session's calls down to those of a server."
    )
    tool_name: Name | None = Field(
        default=None, description="Narrows the session's calls down to those of a tool."
    )
    text: Annotated[
        Text, StringConstraints(max_length=MAX_CORRECTION), AfterValidator(_not_blank)
    ] = Field(description="What the user said.", examples=["that doesn't look like a movie list"])
    kind: ReferralKind = Field(
        default="low_utility",
        description="What is wrong: of little use, or not this tool's job.",
    )
    boundary_axes: list[Axis] = Field(
        default_factory=list,
        max_length=MAX_AXES,
        description="The capabilities that were mixed, where somebody can tell.",
    )
    agent: Name | None = None
    timestamp: Timestamp | None = Field(default=None, description="Now, when left out.")

    @model_validator(mode="after")
    def _about_one_call(self) -> Self:
        if (self.execution_id is None) == (self.session_id is None):
            raise ValueError(
                "name either the executionId that was corrected, or the sessionId whose latest "
                "call it was"
            )
        if self.execution_id is not None and (self.server_name or self.tool_name):
            raise ValueError("serverName and toolName narrow a sessionId down; leave them out here")
        return self


class RecordedCorrection(WireModel):
    """Answer of `POST /corrections`: durable now."""

    correction_id: Id
    execution_id: Id
    server_name: Name | None = None
    tool_name: Name | None = Field(
        default=None, description="The corrected tool; None while the execution is not recorded."
    )
    tied: bool = Field(
        description="Whether the execution is recorded. If not yet, it counts once it is."
    )
    duplicate: bool = Field(description="Whether this correction was known already.")


class KnownCorrection(WireModel):
    """One correction as it is kept."""

    correction_id: Id
    execution_id: Id
    server_name: Name | None = None
    tool_name: Name | None = Field(
        default=None, description="The tool that it counts for; None until it does."
    )
    at: Timestamp
    kind: ReferralKind
    text: Text
    boundary_axes: list[Text] = Field(default_factory=list)
    agent: Name | None = None


class CorrectionList(WireModel):
    """Answer of `GET /corrections`, newest first."""

    corrections: list[KnownCorrection]
