"""A trial: a call that failed, what its caller meant, and a way to see what a correction does."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from aftercall.models import ToolAnnotations

Json = dict[str, Any]

Verdict = Literal["right", "wrong success", "fails"]
"""What a call does: the same as the undamaged one; something else; nothing, for it fails too."""

TWO = "two mistakes"

KINDS = (
    "missing required", "renamed key", "wrong type", "wrong value", "changed case",
    "unexpected parameter",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Damage:
    """One way to get a call wrong; the same damage can be done to other calls of the tool."""

    kind: str
    parameter: str
    how: str = ""
    value: Any = None
    also: "Damage | None" = None
    """A second mistake in the same call."""

    @property
    def name(self) -> str:
        """The damage in words, such as `renamed key: folder -> dir`."""
        words = f"{self.kind}: {self.parameter} {self.how}".strip()
        return f"{words}, {self.also.name}" if self.also else words


@dataclass(frozen=True, slots=True)
class Trial:
    """A failed call of a session; `judge` says what any parameters do instead of its own."""

    session: str
    tool: str
    server: str
    damaged: Json
    gold: Json
    error: Json
    context: str
    schema: Json | None
    damage: Damage
    judge: Callable[[Json], Awaitable[Verdict]] = field(repr=False)
    sequence: int = 0
    earlier: tuple[Any, ...] = field(default=(), repr=False)
    """The session's calls before it, as `sessions.GoldCall`."""
    answer: Callable[[Json], Awaitable[Json | None]] | None = field(default=None, repr=False)
    """The error that parameters meet in the place of its own; None where they do something."""
    hints: ToolAnnotations | None = None
    """What the tool's maker claims."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One suggestion of a method: parameters to send instead, and how sure it is (0 to 1)."""

    parameters: Json
    confidence: float
    safe: bool = False
    """Whether a client may follow it without asking."""


@dataclass(frozen=True, slots=True)
class Result:
    """A trial with a method's attempts, best first, and what each of them does."""

    trial: Trial
    attempts: tuple[Attempt, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def is_right(self) -> bool:
        """Whether the first attempt does what the caller meant."""
        return self.verdicts[:1] == ("right",)

    @property
    def confidence(self) -> float:
        """Of the first attempt; 0 where there is none."""
        return self.attempts[0].confidence if self.attempts else 0.0
