"""Options: one way to mend one fault, with what speaks for it.

`retrieval/calibration.json` has how often each kind of edit was right in the benchmark (see
`docs/adr`); a kind that was not seen there keeps the judgement beside its name in the code.
"""

import json
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files

from aftercall.models import EvidenceSource
from retrieval.edits.kinds import Edit, edit_key

_OLD_SCHEMA = 0.5
"""Weight of what was seen under another schema of the tool (4-rules.md, Suggesting)."""


@dataclass(frozen=True, slots=True)
class Trials:
    """Beta counts: how often such an edit was right and wrong; priors count as trials too.

    `kind` names what the counts are of, so that outcomes of such edits can be counted for it.
    """

    right: float
    wrong: float
    kind: str = ""

    @property
    def mean(self) -> float:
        """The share that was right, in [0, 1]."""
        return self.right / (self.right + self.wrong)

    def plus(self, other: "Trials") -> "Trials":
        """Both evidences together; of this one's kind."""
        return replace(self, right=self.right + other.right, wrong=self.wrong + other.wrong)

    def under_old_schema(self) -> "Trials":
        """The same seen under another schema: half of what spoke for it, and one more doubt."""
        return replace(self, right=self.right * _OLD_SCHEMA, wrong=self.wrong + 1)


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
    failed: float = 0.0
    """Pseudo-wrongs of reported failures, beside `trials`."""
    execution_ids: tuple[str, ...] = ()
    lesson: str | None = None
    covers: frozenset[int] = field(default_factory=frozenset)
    """Indexes of the faults it mends."""

    @property
    def key(self) -> str:
        """Equal for options that do the same."""
        return edit_key(self.edits)

    @property
    def evidence(self) -> Trials:
        """What speaks for it and against it in all."""
        return replace(self.trials, wrong=self.trials.wrong + self.failed)

    def merged(self, other: "Option") -> "Option":
        """One option for two that do the same: they agree, and the surer one's words stay.

        Agreement never weakens: the other adds half of what speaks for it (the two are not
        independent). That the edits were followed and failed counts against them on any ground.
        """
        surer = self.trials.mean >= other.trials.mean
        first, second = (self, other) if surer else (other, self)
        return replace(
            first,
            trials=max(
                first.trials.plus(Trials(0.5 * second.trials.right, 0)),
                second.trials.plus(Trials(0.5 * first.trials.right, 0)),
                key=lambda both: both.mean,  # the better of the two, so that more never counts less
            ),
            failed=max(first.failed, second.failed),
            sources=tuple(dict.fromkeys((*first.sources, *second.sources))),
            repairs=max(first.repairs, second.repairs),
            successes=max(first.successes, second.successes),
            failures=max(first.failures, second.failures),
            execution_ids=tuple(dict.fromkeys((*first.execution_ids, *second.execution_ids)))[:5],
            lesson=first.lesson or second.lesson,
            covers=first.covers | second.covers,
        )


def prior(kind: str, right: float, wrong: float) -> Trials:
    """The counts to begin with: those that were measured, else the given ones.

    Args:
        kind: a stable name, such as `rename.like`; outcomes are counted under it.
        right: judged pseudo-count of right ones.
        wrong: judged pseudo-count of wrong ones.
    """
    counted = _measured().get(kind)
    return Trials(*counted, kind=kind) if counted else Trials(right, wrong, kind=kind)


@cache
def _measured() -> dict[str, tuple[float, float]]:
    text = files("retrieval").joinpath("calibration.json").read_text(encoding="utf-8")
    return {kind: (counts[0], counts[1]) for kind, counts in json.loads(text)["priors"].items()}
