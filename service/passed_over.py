"""What spans are passed over at the OTLP door: counted by instrumentation, said once an hour each.

Exporters warn of each answer that says something, and most requests hold spans of models, agents
and HTTP besides those of tools.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ingest.formats.calls import passed_over

_EVERY_S = 3600.0
_MAX_NAMES = 1000
"""Names are a sender's to choose: those beyond are counted together, a workspace each."""
_OTHERS = "others"


@dataclass(slots=True)
class PassedOverSpans:
    """Counts spans that are no calls of tools, and says of each instrumentation how many."""

    clock: Callable[[], float] = time.monotonic
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    _said_at: dict[tuple[str, str], float] = field(default_factory=dict)

    def take(self, workspace: str, counts: Mapping[str, int]) -> str | None:
        """Count more spans of a workspace, and return what there is to say; None for nothing.

        All that was counted since an instrumentation was said last is in its figure.
        """
        now = self.clock()
        due: set[tuple[str, str]] = set()
        for name, number in counts.items():
            key = (workspace, name)
            if key not in self._said_at and len(self._said_at) >= _MAX_NAMES:
                key = (workspace, _OTHERS)
            self._counts[key] += number
            if now - self._said_at.get(key, -_EVERY_S) >= _EVERY_S:
                due.add(key)
        self._said_at |= dict.fromkeys(due, now)
        said = {key[1]: self._counts.pop(key) for key in due}
        return passed_over(said).message if said else None
