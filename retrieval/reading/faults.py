"""What an error says is wrong with a parameter."""

from dataclasses import dataclass
from typing import Literal

from aftercall.json_values import JsonValue
from retrieval.paths import Path

FaultKind = Literal[
    "missing",  # a required parameter is not there
    "unexpected",  # a parameter that the tool does not have
    "wrong_type",  # the value is of another type than expected
    "out_of_range",  # a number, length or count beyond a bound
    "not_allowed",  # a value outside a closed list
    "bad_format",  # text that is not in the expected form
    "not_found",  # the value names something that does not exist
    "invalid",  # refused, without a reason that could be read
]

JsonType = Literal["string", "integer", "number", "boolean", "array", "object", "null"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong. `path` leads to the parameter; it is empty when not said.

    `minimum` and `maximum` are inclusive bounds of a number, or of a length when `of_length`.
    """

    kind: FaultKind
    path: Path = ()
    expected_types: tuple[JsonType, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    of_length: bool = False
    allowed: tuple[JsonValue, ...] = ()
    suggested: str | None = None
    expected_format: str | None = None
    value_text: str | None = None
    shown_input: str | None = None
    """The input as the message shows it (Python's `repr`, perhaps cut); for "missing" the whole."""
    exclusive: bool = False
    """The bound itself is not allowed: exact for whole numbers only, which it was moved by one."""
    from_schema: bool = False
    stated: JsonValue = None
    """The one right value, where the message says it; `value_text` is the wrong one then."""
    multiple_of: float | None = None
    """The number must be a multiple of it."""
    guessed_place: bool = False
    """The name or its place is inferred: one inside the call has that name, or a key was shown."""
    given_types: tuple[JsonType, ...] = ()
    """What the value was, for messages that tell types and no name."""

    @property
    def parameter(self) -> str | None:
        """The top-level parameter concerned, when it is known."""
        return str(self.path[0]) if self.path else None
