"""Typed referrals: a tool says that a request is not its job, or that its answer is of little use.

On the wire a referral is a failed execution whose `error.type` is the kind and whose
`error.details` holds these fields (seed 000).
"""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from aftercall.wire.base import Text, WireModel

ReferralKind = Literal["wrong_tool_boundary", "low_utility"]
"""`wrong_tool_boundary`: what was asked for crosses a boundary of the tool. `low_utility`: the
output is valid and of little use to the caller."""

MAX_AXES = 20
"""Boundary axes of one referral; of more, the first are kept."""

MAX_AXIS_CHARS = 80
MAX_SPLIT = 10
"""Parts of one suggested split; of more, the first are kept."""

MAX_WORDS_CHARS = 1_000
"""Characters of a task's shape, a part of a split, or evidence; of more, the first are kept."""

Axis = Annotated[Text, StringConstraints(min_length=1, max_length=MAX_AXIS_CHARS)]
"""One capability, in the tool's own words: `transport`, `HTML parsing`."""

Words = Annotated[Text, StringConstraints(min_length=1, max_length=MAX_WORDS_CHARS)]


class Referral(WireModel):
    """What a referral says beside its message; see `aftercall.outcomes` for reading tolerantly."""

    boundary_axes: list[Axis] = Field(
        default_factory=list,
        max_length=MAX_AXES,
        description="The capabilities that the request mixes, each once, in the tool's own words.",
    )
    observed_task_shape: Words | None = Field(
        default=None, description="What kind of task the tool saw, such as `fetch + extract`."
    )
    suggested_split: list[Words] = Field(
        default_factory=list,
        max_length=MAX_SPLIT,
        description="The parts that the tool would split the task into, in order.",
    )
    evidence: Words | None = Field(
        default=None, description="Why, in short. Without it the referral counts, marked as such."
    )
