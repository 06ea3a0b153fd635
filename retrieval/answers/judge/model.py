"""The model: the probability of right of a vector of signals.

Gradient boosted trees (Friedman 2001) whose word only rises with evidence and only falls with what
is strange (`signals.RISING`, `signals.FALLING`). Several fits have each never seen a part of the
kinds of mistakes. Where they disagree, a repair is like a kind that only some have seen, and is
less sure: the log-odds are the fits' mean less their spread (a lower confidence bound, as in
bagging), scaled by Platt's regression on kinds that were left out.

What may be followed has to be right more often than a probability of `SURE` says: of what is sure,
one in fifty may be wrong. So each *stratum* (how much the account proves, and whether the schema
refused the call as sent) has a bar, the probability from which on no more than that was wrong among
kinds that were left out (risk control, Angelopoulos et al. 2021). Probabilities above even are
moved in proportion so that the bar comes to lie at `SURE`; those below stay as they are. A change
that means something else, and one that leaves a doubt, have no bar: without anyone who taught
them, they are never sure.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from math import exp, log, sqrt
from typing import Any, NamedTuple

from retrieval import read_word_table
from retrieval.answers.judge.signals import DOUBTS, SIGNALS
from retrieval.knowledge.rows.principals import SURE


class Node(NamedTuple):
    """A place in a tree: smaller or equal goes `low`, else `high`; a leaf has neither."""

    feature: int
    threshold: float
    low: int
    high: int
    value: float


class Trees(NamedTuple):
    """Boosted trees: the log-odds are `base` and the value of one leaf of each tree."""

    features: tuple[str, ...]
    base: float
    trees: tuple[tuple[Node, ...], ...]

    def log_odds(self, vector: Sequence[float]) -> float:
        """Return the log-odds of right of a vector in the order of `features`."""
        return self.base + sum(_leaf(tree, vector) for tree in self.trees)


def _leaf(tree: Sequence[Node], vector: Sequence[float]) -> float:
    node = tree[0]
    while node.low:
        node = tree[node.low if vector[node.feature] <= node.threshold else node.high]
    return node.value


_CLASS, _REFUSED, _BOUNDS = map(SIGNALS.index, ("class", "refused", "bounds"))


def stratum_of(vector: Sequence[float]) -> str:
    """Return the stratum of a vector of `SIGNALS`: class, schema, and whether a doubt is left."""
    kind = _CLASSES[int(vector[_CLASS])]
    schema = ("taken", "refused", "unknown")[int(vector[_REFUSED])]
    is_bounded = vector[_BOUNDS] and kind == "lossy"
    about = "moved to a stated bound" if is_bounded else f"{kind}, {schema}"
    is_doubted = any(vector[place] for place in _DOUBTS)
    return f"{about}, doubted" if is_doubted else about


_CLASSES = ("lossless", "plausible", "lossy", "semantic")
_REASONS: dict[str, dict[str, Any]] = read_word_table("answers/judge/reasons.toml")
_RATE = 0.12
"""Learning rate of the fits (`bench.quality.fitting`): the means of inner nodes are unscaled."""
_LEAST = 0.05
"""Log-odds below which a signal is no reason."""
_DOUBTS = tuple(map(SIGNALS.index, DOUBTS))


def _words(signal: str, vector: Sequence[float], change: float) -> str | None:
    """Return the words of a signal that moved the judge so much, if it has any."""
    row = _REASONS[signal]
    if "is" in row:
        words: str | None = row["is"].get(str(int(vector[SIGNALS.index(signal)])))
    else:
        words = row.get("speaks" if change > 0 else "warns")
    return words


class Model(NamedTuple):
    """Fits of trees, the scaling of what they say together, and the bars of the strata."""

    fits: tuple[Trees, ...]
    shift: float = 0.0
    slope: float = 1.0
    caution: float = 1.0
    """Standard deviations of the fits that are taken off their mean."""
    bars: Mapping[str, float] = {}
    """Probabilities from which on a stratum is sure; one without a bar never is."""

    def log_odds(self, vector: Sequence[float]) -> float:
        """Return the log-odds of right of a vector of `SIGNALS`."""
        odds = self.combine([fit.log_odds(vector) for fit in self.fits])
        return self.held(odds + _LEAN * vector[0], stratum_of(vector))

    def reasons(self, vector: Sequence[float], most: int = 3) -> list[str]:
        """Return what moved the first fit most, in words; at most so many reasons.

        A step from a node to the next moves the mean of what the training had there: the change is
        its feature's (path attribution, Saabas 2014).
        """
        moved: dict[str, float] = defaultdict(float)
        for tree in self.fits[0].trees:
            node, mean = tree[0], 0.0
            while node.low:
                signal = SIGNALS[node.feature]
                node = tree[node.low if vector[node.feature] <= node.threshold else node.high]
                value = node.value * _RATE if node.low else node.value
                moved[_REASONS[signal].get("with", signal)] += value - mean
                mean = value
        order = sorted(moved.items(), key=lambda each: (-abs(each[1]), each[0]))
        told = (_words(signal, vector, change) for signal, change in order if abs(change) >= _LEAST)
        return [words for words in told if words][:most]

    def combine(self, odds: Sequence[float]) -> float:
        """Return the log-odds of right of what the fits say."""
        mean = sum(odds) / len(odds)
        spread = sqrt(sum((each - mean) ** 2 for each in odds) / len(odds))
        return self.shift + self.slope * (mean - self.caution * spread)

    def held(self, odds: float, stratum: str) -> float:
        """Return log-odds with the bar of the stratum moved to `SURE`, even and certain kept."""
        probability, bar = 1 / (1 + exp(-odds)), max(SURE, self.bars.get(stratum, 1.0))
        if probability <= _EVEN:
            return odds
        if probability <= bar:
            held = _EVEN + (probability - _EVEN) * (SURE - _EVEN) / (bar - _EVEN)
        else:
            held = SURE + (probability - bar) * (1 - SURE) / (1 - bar)
        held = min(held, _MOST)
        return log(held / (1 - held))


_EVEN, _MOST = 0.5, 0.995
_LEAN = 0.02
"""What the evidence adds next to the trees, which have steps: more of it is always surer."""


def model_of_text(text: str) -> Model:
    """Return the model of a file's text, as `bench.quality.fitting` writes it."""
    fitted = json.loads(text)
    if tuple(fitted["features"]) != SIGNALS:
        raise ValueError("the model was fitted on other signals; run `python -m bench.quality.fit`")
    fits = tuple(
        Trees(
            tuple(fitted["features"]),
            each["base"],
            tuple(tuple(Node(*node) for node in tree) for tree in each["trees"]),
        )
        for each in fitted["fits"]
    )
    return Model(fits, fitted["shift"], fitted["slope"], fitted["caution"], fitted["bars"])


@cache
def shipped_model() -> Model:
    """Return the model that was fitted on the project's own benchmark."""
    return model_of_text(
        files("retrieval").joinpath("answers/judge/trees.json").read_text(encoding="utf-8")
    )
