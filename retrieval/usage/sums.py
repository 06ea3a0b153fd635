"""Sums over spans of hours, of parts whose names have the same numbers. Pure."""

from collections.abc import Callable, Sequence

import numpy as np

from retrieval.usage.counts import CATEGORIES, Counts, TableName
from retrieval.usage.durations import BUCKETS, FIRST_BUCKET
from retrieval.usage.spans import Span
from retrieval.usage.table import Ints, Table


class Sums:
    """Adds up parts; the last one knows all names."""

    def __init__(self, parts: Sequence[Counts]) -> None:
        self._parts = parts
        names = parts[-1]
        self._tools = len(names.tools)
        self._agents = len(names.agents)
        self._marks = len(names.marks)

    def calls(self, span: Span) -> Ints:
        """All calls, shape (6,)."""
        return self._of("totals", span, lambda table: table.total())

    def calls_by_step(self, span: Span, tool: int | None) -> Ints:
        """Calls of all tools or of one, shape (steps, 6)."""
        return self._of("totals" if tool is None else "tools", span, _steps(span, tool))

    def durations(self, span: Span) -> Ints:
        """Timed calls by bucket, shape (BUCKETS,)."""
        return self._of("durations", span, lambda table: table.by(1, BUCKETS, FIRST_BUCKET)[:, 0])

    def durations_by_step(self, span: Span, tool: int | None) -> Ints:
        """Timed calls of all tools or of one, shape (steps, BUCKETS)."""

        def by_step(table: Table) -> Ints:
            if tool is not None:
                table = table.having(1, tool)
            stepped = table.stepped(span.first, span.step)
            bucket = len(stepped.keys) - 1
            return stepped.by_both(0, len(span.steps), bucket, BUCKETS, FIRST_BUCKET)

        return self._of("durations" if tool is None else "tool_durations", span, by_step)

    def tools(self, span: Span) -> Ints:
        """Calls by tool, shape (tools, 6)."""
        return self._of("tools", span, lambda table: table.by(1, self._tools))

    def tool_durations(self, span: Span) -> Ints:
        """Timed calls by tool and bucket, shape (tools, BUCKETS)."""
        return self._of(
            "tool_durations",
            span,
            lambda table: table.by_both(1, self._tools, 2, BUCKETS, FIRST_BUCKET),
        )

    def agents(self, span: Span) -> Ints:
        """Calls by agent, shape (agents, 2)."""
        return self._of("agents", span, lambda table: table.by(1, self._agents))

    def tools_of_agent(self, span: Span, agent: int) -> Ints:
        """Calls by one agent, by tool, shape (tools, 2)."""
        return self._of(
            "agent_tools", span, lambda table: table.having(1, agent).by(2, self._tools)
        )

    def categories(self, span: Span) -> Ints:
        """Failures by category, shape (categories,)."""
        return self._of("categories", span, lambda table: table.by(1, len(CATEGORIES))[:, 0])

    def marks(self, span: Span) -> Ints:
        """Failures by mark, shape (marks,)."""
        return self._of("marks", span, lambda table: table.by(1, self._marks)[:, 0])

    def failures_by_step(self, span: Span, marks: Sequence[int]) -> Ints:
        """Failures of some marks, shape (steps,)."""

        def by_step(table: Table) -> Ints:
            chosen = table.rows(np.isin(table.keys[1], marks))
            return chosen.by_step(span.first, span.step, len(span.steps))[:, 0]

        return self._of("marks", span, by_step)

    def _of(self, name: TableName, span: Span, summed: Callable[[Table], Ints]) -> Ints:
        first, *others = (
            summed(part.tables[name].within(span.first, span.last)) for part in self._parts
        )
        for each in others:
            first = first + each
        return first


def _steps(span: Span, tool: int | None) -> Callable[[Table], Ints]:
    def by_step(table: Table) -> Ints:
        chosen = table if tool is None else table.having(1, tool)
        return chosen.by_step(span.first, span.step, len(span.steps))

    return by_step
