"""Counts the verdicts of an entry, and writes the table of all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.repairs.cases import Case
from bench.repairs.judge import Kind, Verdict

_COLUMNS = ("right", "wrong", "silently wrong", "left alone", "changed", "silently wrong",
            "good calls changed")  # fmt: skip
Judged = Sequence[tuple[Case, Verdict]]


@dataclass(frozen=True, slots=True)
class Counts:
    """The verdicts of an entry on one set, counted."""

    repairable: int
    right: int
    wrong: int
    silently_wrong: int
    beyond: int
    """Cases without a right call."""
    beyond_changed: int
    beyond_silently_wrong: int
    good: int
    good_changed: int

    @property
    def row(self) -> tuple[int, ...]:
        """The figures in the order of the table's columns."""
        left = self.repairable - self.right - self.wrong
        return (self.right, self.wrong, self.silently_wrong, left, self.beyond_changed,
                self.beyond_silently_wrong, self.good_changed)  # fmt: skip


def count(judged: Judged) -> Counts:
    """Return how often each verdict was given."""
    good = [verdict for case, verdict in judged if case.is_good]
    failed = [(case, verdict) for case, verdict in judged if not case.is_good]
    repairable = [verdict for case, verdict in failed if case.gold]
    beyond = [verdict for case, verdict in failed if not case.gold]
    return Counts(
        len(repairable), _of_kind(repairable, "right"), _of_kind(repairable, "wrong"),
        _silent(repairable), len(beyond), _of_kind(beyond, "wrong"), _silent(beyond),
        len(good), sum(each.kind != "left alone" for each in good),
    )  # fmt: skip


def table(counts: Mapping[str, Counts]) -> str:
    """Return the table of one set, a row for each entry."""
    first = next(iter(counts.values()))
    of = (f"of {first.repairable} that can be repaired", "", "", "",
          f"of {first.beyond} that cannot", "", f"of {first.good}")  # fmt: skip
    columns = [f"{name}, {size}" if size else name
               for name, size in zip(_COLUMNS, of, strict=True)]  # fmt: skip
    lines = [f"| entry | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    lines += [f"| {name} | {' | '.join(map(str, each.row))} |" for name, each in counts.items()]
    return "\n".join(lines)


def _of_kind(verdicts: Sequence[Verdict], kind: Kind) -> int:
    return sum(each.kind == kind for each in verdicts)


def _silent(verdicts: Sequence[Verdict]) -> int:
    return sum(each.is_silent for each in verdicts)
