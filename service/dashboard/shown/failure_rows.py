"""Failure patterns as rows and words: which are asked for, and what is said of each. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

from aftercall.models import FailurePattern, PatternFailures, ToolName
from service.dashboard.shown.call_text import one_line

MAX_SIGNATURE = 300
"""Characters of a wording in a table or a heading; the page of the pattern shows it whole."""

_MAX_FILTER = 256


class PatternRow(TypedDict):
    """One line of the table. Shares lie in 0..1; None where something is not known."""

    id: str
    tool: str
    category: str
    signature: str
    failures: int
    before: int | None
    mended: float | None
    agents: int
    last_seen: datetime | None
    lesson: str


@dataclass(frozen=True, slots=True)
class PatternFilter:
    """Which patterns are asked for; empty texts ask for all.

    Args:
        tool: a part of the tool's name or of its server's, whatever its letter case.
        category: the category, exactly.
    """

    tool: str = ""
    category: str = ""

    @classmethod
    def asked(cls, params: Mapping[str, str]) -> "PatternFilter":
        """The filter that a page's query states."""
        return cls(
            params.get("tool", "").strip()[:_MAX_FILTER],
            params.get("category", "").strip()[:_MAX_FILTER],
        )

    def takes(self, pattern: FailurePattern) -> bool:
        """Whether a pattern is asked for."""
        name = name_of(pattern.tool).casefold()
        return self.tool.casefold() in name and self.category in ("", pattern.category)

    def query(self) -> dict[str, str]:
        """The query that states it, without what it leaves open."""
        stated = {"tool": self.tool, "category": self.category}
        return {key: value for key, value in stated.items() if value}


def name_of(tool: ToolName) -> str:
    """The name under which the calls of a tool are recorded: `server/tool`, or `tool`."""
    name = tool.tool_name if tool.server_name is None else f"{tool.server_name}/{tool.tool_name}"
    return one_line(name, 600)


def pattern_rows(patterns: Iterable[PatternFailures], asked: PatternFilter) -> list[PatternRow]:
    """Those that are asked for, in their order."""
    return [
        PatternRow(
            id=each.pattern.pattern_id,
            tool=name_of(each.pattern.tool),
            category=each.pattern.category,
            signature=one_line(each.pattern.signature, MAX_SIGNATURE),
            failures=each.failures,
            before=each.before,
            mended=mended_share(each.pattern),
            agents=len(each.pattern.agents),
            last_seen=each.pattern.last_seen,
            lesson=one_line(each.pattern.lesson, MAX_SIGNATURE),
        )
        for each in patterns
        if asked.takes(each.pattern)
    ]


def mended_share(pattern: FailurePattern) -> float | None:
    """The share of a pattern's failures, of all times, that agents mended; None without any."""
    return min(1.0, pattern.mended / pattern.count) if pattern.count else None


def compared(failures: int, before: int | None) -> str:
    """How the count of a window compares with the span before it, in words; "" where unknown."""
    if before is None:
        return ""
    if failures == before:
        return f"as many as before ({before:,})"
    word = "more" if failures > before else "fewer"
    return f"{abs(failures - before):,} {word} than before ({before:,})"
