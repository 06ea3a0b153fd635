"""What of the laws is measured."""

from collections.abc import Sequence
from dataclasses import dataclass

CASES = 2_000
SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Options:
    """Laws by name (all of them for none), comparisons of each, and seconds that each may take.

    `show` cases that break a law are printed for each way in which cases are changed.
    """

    laws: Sequence[str] = ()
    cases: int = CASES
    show: int = 0
    seconds: float = SECONDS

    @property
    def command(self) -> str:
        """The command that measures this."""
        cases = "" if self.cases == CASES else f" --cases {self.cases}"
        return f"python -m bench.quality --only laws{cases}"
