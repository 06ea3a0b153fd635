"""Options: one way to mend one fault, with what speaks for it."""

from dataclasses import dataclass, field, replace

from aftercall.wire import EvidenceSource
from retrieval.edits import Edit, edit_key

_OLD_SCHEMA = 0.5
"""Weight of what was seen under another schema of the tool (4-rules.md, Suggesting)."""


@dataclass(frozen=True, slots=True)
class Trials:
    """Beta counts: how often such an edit was right and wrong; priors count as trials too."""

    right: float
    wrong: float

    def plus(self, other: "Trials") -> "Trials":
        """Both evidences together."""
        return Trials(self.right + other.right, self.wrong + other.wrong)

    def scaled(self, factor: float) -> "Trials":
        """Weaker (factor below 1) evidence of the same proportion."""
        return Trials(self.right * factor, self.wrong * max(factor, 0.5))

    def under_old_schema(self) -> "Trials":
        """The same seen under another schema: half of what spoke for it, and one more doubt."""
        return Trials(self.right * _OLD_SCHEMA, self.wrong + 1)


@dataclass(frozen=True, slots=True)
class Option:
    """One way to mend one fault (or several at once)."""

    edits: tuple[Edit, ...]
    reason: str
    trials: Trials
    sources: tuple[EvidenceSource, ...]
    repairs: int = 0
    successes: int = 0
    failures: int = 0
    execution_ids: tuple[str, ...] = ()
    lesson: str | None = None
    covers: frozenset[int] = field(default_factory=frozenset)
    """Indexes of the faults it mends."""

    @property
    def key(self) -> str:
        """Equal for options that do the same."""
        return edit_key(self.edits)

    def merged(self, other: "Option") -> "Option":
        """One option for two that do the same: they agree, and the stronger one's words stay.

        Agreement never weakens: the weaker one adds half of what speaks for it (the two are not
        independent), and nothing of what speaks against it by itself.
        """
        stronger = self.trials.right >= other.trials.right
        first, second = (self, other) if stronger else (other, self)
        return replace(
            first,
            trials=first.trials.plus(Trials(0.5 * second.trials.right, 0)),
            sources=tuple(dict.fromkeys((*first.sources, *second.sources))),
            repairs=max(first.repairs, second.repairs),
            successes=max(first.successes, second.successes),
            failures=max(first.failures, second.failures),
            execution_ids=tuple(dict.fromkeys((*first.execution_ids, *second.execution_ids)))[:5],
            lesson=first.lesson or second.lesson,
            covers=first.covers | second.covers,
        )
