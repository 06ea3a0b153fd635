"""How often each tool fails, counted in this process."""

from threading import Lock

ToolKey = tuple[str | None, str]
"""Server name and tool name."""


class FailureRates:
    """Counts calls and failures per tool; safe to share between threads.

    Args:
        min_calls: a rate is only stated from this many calls of a tool on.
        max_tools: most tools counted. Names come from agents, so they must not grow without end;
            past this the tool that was first seen longest ago is forgotten.
    """

    def __init__(self, *, min_calls: int = 20, max_tools: int = 10_000) -> None:
        self._min_calls = min_calls
        self._max_tools = max_tools
        self._counts: dict[ToolKey, tuple[int, int]] = {}
        self._lock = Lock()

    def count(self, tool: ToolKey, *, failed: bool) -> None:
        """Count one call of `tool`."""
        with self._lock:
            calls, failures = self._counts.get(tool, (0, 0))
            if calls == 0 and len(self._counts) >= self._max_tools:
                del self._counts[next(iter(self._counts))]
            self._counts[tool] = (calls + 1, failures + failed)

    def rate(self, tool: ToolKey) -> float | None:
        """Share of failed calls, 0 to 1; None while there are fewer than `min_calls`."""
        calls, failures = self._counts.get(tool, (0, 0))
        return failures / calls if calls >= self._min_calls else None
