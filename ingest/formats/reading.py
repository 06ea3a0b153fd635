"""What a reader gives, whichever format it reads."""

from dataclasses import dataclass
from typing import TypeAlias

from aftercall.models import Execution


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A call, or a piece of a file, that could not be read. Nothing else is lost with it."""

    where: str
    """For people: `line 7`, `resourceSpans[0].scopeSpans[0].spans[3]`; bounded, clean."""
    message: str
    """What is wrong and, where there is one, the cure. Never a value of the call."""


@dataclass(frozen=True, slots=True)
class Noted:
    """Something to tell once: all was read, and yet less can be learned than there could be."""

    message: str


Read: TypeAlias = Execution | Unreadable | Noted
