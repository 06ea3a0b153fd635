"""Quality: how well a version of a tool has done lately, as one number from 0 to 1.

One fold over the version's trials in the order of time, with two numbers: the quality q and how
many marks are still held against the tool, m. Between two trials, and since the last one, what is
held against the tool (the debt 1 - q, and m) halves every `HALF_LIFE`. Then, with h = `HEALING`:

    a success                   q <- q + h (1 - q)           m <- (1 - h) m
    a referral                  nothing
    a failure nobody marked     q <- q - h q
    a marked failure            q <- q - p - extra(m)        m <- m + 1

The first two lines are the exponentially weighted moving average of the outcomes (Roberts 1959,
"Control chart tests based on geometric moving averages"): an estimate of the success rate that
forgets. The third is seed 002: p is 0.01, 0.05 or 0.10 by severity; the 6th mark and later ones
take 0.05 more, from the 11th on 0.10 more instead. Seed 002 only punishes; here successes and time
heal, so that a tool that works again comes back. Marks alone, with no time between them, give the
numbers of seed 002 exactly.

A referral (`wrong_tool_boundary`) is no flaw of the tool and no proof that it works.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from aftercall.models import Severity
from retrieval.fitness.trials import Trial, TrialKind

HEALING = 0.1
"""h: the share of the debt that a success takes away, and of the quality that a failure takes away.

Of debt 1, 22 successes leave 0.1. An unmarked failure takes as much as a grave mark from a flawless
tool, and never more."""

HALF_LIFE = timedelta(days=14)
"""In which half of what is held against an idle tool wears off. Chosen on the development seeds of
`bench/quality/regret.py`: in 7 days a tool that is still bad is tried again too often."""

PENALTIES: dict[Severity, float] = {"low": 0.01, "medium": 0.05, "high": 0.10}
"""What a mark takes by its severity (seed 002)."""

_MANY, _EXTRA_MANY = 5, 0.05
_MORE, _EXTRA_MORE = 10, 0.10
"""Marks from which on a further one takes more (seed 002)."""

_HALF_LIFE_SECONDS = HALF_LIFE.total_seconds()


def quality_of(
    trials: Iterable[Trial],
    *,
    now: datetime,
    start: float = 1.0,
    since: datetime | None = None,
) -> float:
    """The quality after these trials, in [0, 1]; higher is better. Their order does not matter.

    A further success never lowers it and a further failure never raises it; nor does it raise it
    to mark a failure more gravely. A mark speaks for itself: a failure that nobody marked takes
    h q, which is more than a low or medium mark takes from a good tool.

    `merged` keeps the latest 64 trials beside referrals. Of a set that is full, a further trial
    pushes out the oldest, so there all this holds up to 0.02.

    Args:
        trials: what became of the version's calls, each once (see `merged`).
        now: to when idleness counts; trials of a later time count as of now.
        start: the quality before the first trial, in [0, 1]: 1.0, or what a promoted version
            inherited.
        since: from when that held; it wears off from then, and what trials before it left counts
            too. None stands for the first trial: a start below 1 wears off from that one, so that
            one still earlier may raise the quality, whatever it was.
    """
    end = now.timestamp()
    held = _Held(1.0 - start) if since is None else _Held()
    inherits_at = None if since is None else min(since.timestamp(), end)
    for trial in sorted(trials):
        at = min(trial.at, end)
        if inherits_at is not None and inherits_at <= at:
            held.inherit(start, inherits_at)
            inherits_at = None
        held.count(trial.kind, at)
    if inherits_at is not None:
        held.inherit(start, inherits_at)
    held.rest_until(end)
    return min(1.0, max(0.0, 1.0 - held.debt))


@dataclass(slots=True)
class _Held:
    """What is held against a tool at a moment."""

    debt: float = 0.0
    marks: float = 0.0
    moment: float | None = None
    """Seconds since 1970; None before anything happened."""

    def rest_until(self, moment: float) -> None:
        if self.moment is not None:
            left = wear(moment - self.moment)
            self.debt *= left
            self.marks *= left

    def inherit(self, quality: float, moment: float) -> None:
        self.rest_until(moment)
        self.moment = moment
        self.debt = 1 - (1 - self.debt) * quality

    def count(self, kind: TrialKind, moment: float) -> None:
        self.rest_until(moment)
        self.moment = moment
        if kind == "success":
            self.debt *= 1 - HEALING
            self.marks *= 1 - HEALING
        elif kind == "referral":
            return
        elif kind == "failure":
            self.debt += HEALING * (1 - self.debt)
        else:
            self.debt = min(1.0, self.debt + PENALTIES[kind] + _extra(self.marks))
            self.marks += 1


def wear(seconds: float) -> float:
    """What is left of an old failure after some time, in (0, 1]; time before now takes nothing."""
    return float(0.5 ** (max(0.0, seconds) / _HALF_LIFE_SECONDS))


def _extra(marks: float) -> float:
    """What a further mark takes beside its severity, when so many are held already.

    A worn count is no whole number: between two of them it rises in a straight line, so that no
    rounding makes a jump.
    """
    many = _EXTRA_MANY * _between(marks - (_MANY - 1))
    return many + (_EXTRA_MORE - _EXTRA_MANY) * _between(marks - (_MORE - 1))


def _between(number: float) -> float:
    return min(1.0, max(0.0, number))
