"""What became of a file: counts, and what could not be read, in full at first and then counted."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TextIO

from aftercall.models import Execution
from service.errors import safe_message

_IN_FULL = 20
_MAX_REASONS = 100
_MAX_TOOLS = 1000
_SHOWN_TOOLS = 50
_OTHERS = "(others)"


@dataclass(slots=True)
class ImportReport:
    """What became of the calls, and by tool and outcome what they were."""

    accepted: int = 0
    duplicates: int = 0
    rejected: int = 0
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    _tools: set[str] = field(default_factory=set)

    @property
    def calls(self) -> int:
        """Calls, or pieces that were none, that were looked at."""
        return self.accepted + self.duplicates + self.rejected

    def count(self, execution: Execution) -> None:
        """Count a call by its tool and outcome; from the thousandth tool on, as one of others."""
        tool = execution.tool_name
        if tool not in self._tools:
            if len(self._tools) < _MAX_TOOLS:
                self._tools.add(tool)
            else:
                tool = _OTHERS
        self.outcomes[tool, execution.outcome] += 1

    def by_tool(self) -> Iterator[str]:
        """A line per tool, those with most calls first."""
        calls = Counter[str]()
        for (tool, _), count in self.outcomes.items():
            calls[tool] += count
        for tool, _ in sorted(calls.items(), key=lambda item: (-item[1], item[0]))[:_SHOWN_TOOLS]:
            told = [self.outcomes[tool, outcome] for outcome in ("success", "failure")]
            yield _shown(f"{tool}: {told[0]:,} succeeded, {told[1]:,} failed")
        if len(calls) > _SHOWN_TOOLS:
            yield f"and {len(calls) - _SHOWN_TOOLS:,} more tools"


@dataclass(slots=True)
class Rejections:
    """Tells of what could not be taken.

    Args:
        say: told one line at a time.
        file: gets each, whatever their number, as a line `{"where": ..., "reason": ...}`.
    """

    say: Callable[[str], None]
    file: TextIO | None = None
    _told: int = 0
    _counted: Counter[str] = field(default_factory=Counter)
    _noted: set[str] = field(default_factory=set)

    def reject(self, where: str, message: str) -> None:
        """Tell of one."""
        place, reason = _shown(where), _shown(message)
        if self.file is not None:
            line = {"where": place, "reason": reason}
            self.file.write(json.dumps(line, ensure_ascii=False) + "\n")
        if self._told < _IN_FULL:
            self._told += 1
            self.say(f"{place}: {reason}")
            return
        kind = _kind(reason)
        room = kind in self._counted or len(self._counted) < _MAX_REASONS
        self._counted[kind if room else "other reasons"] += 1

    def note(self, message: str) -> None:
        """Tell a remark once, whatever its figures."""
        if (kind := _kind(message)) not in self._noted and len(self._noted) < _IN_FULL:
            self._noted.add(kind)
            self.say(f"note: {_shown(message)}")

    def finish(self) -> None:
        """Tell how many there were beyond those that were told in full."""
        if self._counted:
            self.say(f"and {self._counted.total():,} more:")
        for kind, count in self._counted.most_common(_IN_FULL):
            self.say(f"  {count:,} x {kind}")
        hidden = self._counted.total() - sum(n for _, n in self._counted.most_common(_IN_FULL))
        if hidden:
            self.say(f"  {hidden:,} for other reasons")


def _shown(text: str) -> str:
    """Text of a file as a terminal may get it: no secrets, one line, nothing that steers it."""
    return "".join(
        char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in safe_message(text)
    )


def _kind(reason: str) -> str:
    """A reason without its figures, by which like ones are counted."""
    return re.sub(r"\d[\d,.]*", "N", reason[:200])
