"""The model: the probability of right of a vector of signals.

Each signal gives points, a step function of its value; log-odds are their sum (an additive model by
boosted stumps, Friedman 2001; Lou et al. 2012). Points only rise with evidence and only fall with
doubts (`signals.RISING`, `signals.FALLING`). The points were fitted so that each source of cases
was left out once, and scaled to what was right in the source that was left out.

What may be followed has to be right more often than a probability of `SURE` is: of what is sure,
one in fifty may be wrong. So each *stratum* (how much the account proves, whether the schema
refused the call as sent, whether a doubt is left, whether other callers repaired it so) has a bar,
the probability from which on no more than that was wrong in sources that were left out (risk
control, Angelopoulos et al. 2021). Probabilities above .75 are moved in proportion so that the bar
comes to lie at `SURE`; those below stay as they are. A stratum without a bar is never sure, and
what leaves a question open is never likelier than not.
"""

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from math import log
from typing import Any, NamedTuple

from retrieval import read_word_table
from retrieval.answers.judge.signals import DOUBTS, OPEN, SIGNALS
from retrieval.knowledge.confidence import apply_logistic
from retrieval.knowledge.rows.principals import SURE

FILE = "answers/judge/points.json"
_EVEN, _MOST = 0.5, 0.995
_KEPT = 0.75
"""The probability up to which no bar moves it: those between it and the bar come below `SURE`."""
LEAN = 0.06
"""What the evidence adds next to the steps: more of it is always surer."""
_FAILED = log(0.25)
"""Points of one reported failure. A wrong repair fails again; a right one fails about as often as
any call does, which is a quarter of the time (`docs/figures/repair.md`)."""
_LEAST = 0.05
"""Points below which a signal is no reason."""
_CLASSES = ("lossless", "plausible", "lossy", "semantic")
_PLACES = {name: place for place, name in enumerate(SIGNALS)}
_REASONS: dict[str, dict[str, Any]] = read_word_table("answers/judge/reasons.toml")
OPEN_QUESTION = "open question"
"""The stratum of what no one states, what several places would take, and what stays refused."""


def stratum_of(vector: Sequence[float]) -> str:
    """Return the stratum of a vector of `SIGNALS`."""
    if any(vector[_PLACES[name]] for name in OPEN):
        return OPEN_QUESTION
    kind = _CLASSES[int(vector[_PLACES["class"]])]
    schema = ("taken", "refused", "unknown")[int(vector[_PLACES["refused"]])]
    # What means something else is not proven by a schema that refused the call as sent.
    words = [kind if kind == "semantic" else f"{kind}, {schema}"]
    if vector[_PLACES["bounds"]] and kind == "lossy":
        words = ["moved to a stated bound"]
    if any(vector[_PLACES[name]] for name in DOUBTS):
        words.append("doubted")
    if vector[_PLACES["repaired"]]:
        words.append("learned")
    return ", ".join(words)


class Steps(NamedTuple):
    """The points of one signal: `points[i]` above `above[i - 1]` and up to `above[i]`."""

    above: tuple[float, ...] = ()
    points: tuple[float, ...] = (0.0,)

    def at(self, value: float) -> float:
        """Return the points of a value."""
        return self.points[bisect_left(self.above, value)]


class Model(NamedTuple):
    """The points of each signal in the order of `SIGNALS`, and the bars of the strata."""

    base: float
    steps: tuple[Steps, ...]
    bars: Mapping[str, float] = {}
    """Probabilities from which on a stratum is sure; one without a bar never is."""

    def sum_points(self, vector: Sequence[float]) -> float:
        """Return the log-odds of right of a vector, before its stratum's bar."""
        given = sum(steps.at(value) for steps, value in zip(self.steps, vector, strict=True))
        lean = LEAN * vector[_PLACES["odds"]]
        return self.base + given + lean + _FAILED * vector[_PLACES["failed"]]

    def log_odds(self, vector: Sequence[float]) -> float:
        """Return the log-odds of right of a vector of `SIGNALS`."""
        held = self.hold(apply_logistic(self.sum_points(vector)), stratum_of(vector))
        return log(held / (1 - held))

    def hold(self, probability: float, stratum: str) -> float:
        """Return a probability with the bar of its stratum moved to `SURE`, in (0, 1)."""
        if stratum == OPEN_QUESTION:
            return _EVEN * probability
        bar = max(SURE, self.bars.get(stratum, 1.0))
        if probability <= _KEPT:
            return probability
        if probability <= bar:
            return _KEPT + (probability - _KEPT) * (SURE - _KEPT) / (bar - _KEPT)
        return min(_MOST, SURE + (probability - bar) * (1 - SURE) / (1 - bar))

    def reasons(self, vector: Sequence[float], most: int = 3) -> list[str]:
        """Return the signals with most points in words; at most so many reasons."""
        moved: dict[str, float] = defaultdict(float)
        for signal, steps, value in zip(SIGNALS, self.steps, vector, strict=True):
            moved[_REASONS[signal].get("with", signal)] += steps.at(value)
        moved["failed"] += _FAILED * vector[_PLACES["failed"]]
        order = sorted(moved.items(), key=lambda each: (-abs(each[1]), each[0]))
        words = (
            _words_of(signal, vector, points) for signal, points in order if abs(points) >= _LEAST
        )
        return [reason for reason in words if reason][:most]


def _words_of(signal: str, vector: Sequence[float], points: float) -> str | None:
    """Return the words of a signal that gave so many points, if it has any."""
    row = _REASONS[signal]
    if "is" in row:
        words: str | None = row["is"].get(str(int(vector[_PLACES[signal]])))
    else:
        words = row.get("speaks" if points > 0 else "warns")
    return words


def model_of_text(text: str) -> Model:
    """Return the model of a file's text, as `bench.quality.fitting` writes it.

    Raises:
        ValueError: it was fitted on other signals.
    """
    fitted = json.loads(text)
    if tuple(fitted["points"]) != SIGNALS:
        raise ValueError("the model was fitted on other signals; run `python -m bench.quality.fit`")
    steps = (Steps(tuple(row["above"]), tuple(row["points"])) for row in fitted["points"].values())
    return Model(fitted["base"], tuple(steps), fitted["bars"])


@cache
def shipped_model() -> Model:
    """Return the model that was fitted on the project's own benchmark."""
    return model_of_text(files("retrieval").joinpath(FILE).read_text(encoding="utf-8"))
