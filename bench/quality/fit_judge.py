"""From what was asked to the judge's model: sources left out, bars, and a page of figures. Pure."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.stats import beta

from bench.figures import made_by
from bench.quality.fitting import Labelled, fit_scale, fit_stumps, points_of
from bench.quality.scores import SURE
from retrieval.answers.judge.model import LEAN, OPEN_QUESTION, Model, stratum_of
from retrieval.answers.judge.signals import SIGNALS
from retrieval.knowledge.confidence import MIN_CONFIDENCE, apply_logistic


@dataclass(frozen=True, slots=True)
class Seen:
    """A proposal with its signals, and whether it was right."""

    signals: tuple[float, ...]
    right: bool


@dataclass(frozen=True, slots=True)
class Row:
    """The first proposals of a call that was asked about, of a set of cases, its source."""

    source: str
    kind: str
    seen: tuple[Seen, ...]


def text_of_rows(rows: Iterable[Row]) -> str:
    """Return a JSON line for each row; the first line has the names of the signals."""
    lines = [json.dumps(SIGNALS)]
    for row in rows:
        seen = [[*each.signals, each.right] for each in row.seen]
        lines.append(json.dumps([row.source, row.kind, seen]))
    return "\n".join(lines) + "\n"


def rows_of_text(text: str) -> list[Row]:
    """Return the rows of a text.

    Raises:
        ValueError: they were asked with other signals.
    """
    names, *lines = text.splitlines()
    if tuple(json.loads(names)) != SIGNALS:
        raise ValueError("the rows have other signals: ask again with --ask")
    rows = []
    for line in lines:
        source, kind, seen = json.loads(line)
        rows.append(Row(source, kind, tuple(Seen(tuple(each[:-1]), each[-1]) for each in seen)))
    return rows


_LATER = 0.3
"""Weight of a proposal that is not the first: it is shown, and seldom followed."""
_OF_WORLDS = 0.25
"""Weight of a case of the worlds of kinds: their mistakes are invented, often several at once."""
_WORLDS = ("BFCL", "GitHub", "Seal-Tools", "Retail")


def _weight(row: Row, sizes: Counter[str]) -> float:
    return (_OF_WORLDS if row.source in _WORLDS else 1.0) / sqrt(sizes[row.source])


def labelled(rows: Sequence[Row]) -> list[Labelled]:
    """Return the first proposals of every case; a large source counts by the root of its size."""
    sizes = Counter(row.source for row in rows)
    return [
        Labelled(seen.signals, seen.right, (_LATER if place else 1.0) * _weight(row, sizes))
        for row in rows
        for place, seen in enumerate(row.seen)
    ]


def unseen(rows: Sequence[Row]) -> list[tuple[Row, float]]:
    """Return the first proposals with the log-odds of a fit that never saw their source."""
    found = []
    for source in sorted({row.source for row in rows}):
        of = [row for row in rows if row.source == source and row.seen]
        if not of:
            continue
        stumps = fit_stumps(labelled([row for row in rows if row.source != source]))
        odds = stumps.decision_function(np.array([row.seen[0].signals for row in of]))
        found += zip(of, odds.tolist(), strict=True)
    return found


_HARM = 0.025
"""The share of sure repairs that may be wrong, as Jeffreys' prior estimates it: half a wrong one is
added to those that were seen. About the .02 of 4-rules.md where there are many, stricter with few.
"""
_ENOUGH = 15
"""Sure repairs that are enough for a small stratum."""


def bars_of(judged: Sequence[tuple[Row, float]]) -> dict[str, float]:
    """Return for each stratum the least probability from which on at most `_HARM` was wrong.

    A change that means something else, and one that leaves a doubt, get none unless they were
    learned. What others did as well is never held to more than what stands alone.
    """
    strata: dict[str, list[tuple[float, bool, float]]] = defaultdict(list)
    for row, probability in judged:
        weight = _OF_WORLDS if row.source in _WORLDS else 1.0
        first = row.seen[0]
        strata[stratum_of(first.signals)].append((probability, first.right, weight))
    bars = {}
    for stratum, of in sorted(strata.items()):
        is_open = stratum == OPEN_QUESTION
        if not is_open and ("learned" in stratum or not _HELD_BACK.search(stratum)):
            bar = _bar_of(of)
            if bar is not None:
                bars[stratum] = bar
    for stratum, bar in list(bars.items()):
        bars[f"{stratum}, learned"] = min(bar, bars.get(f"{stratum}, learned", 1.0))
    return {name: bar for name, bar in sorted(bars.items()) if "learned, learned" not in name}


_HELD_BACK = re.compile("semantic|doubted")


def _bar_of(of: Sequence[tuple[float, bool, float]]) -> float | None:
    for bar in np.arange(SURE, 0.99, 0.005):
        above = [(right, weight) for probability, right, weight in of if probability > bar]
        total = sum(weight for _, weight in above)
        wrong = sum(weight for right, weight in above if not right)
        if total >= _ENOUGH and (wrong + 0.5) / (total + 1) <= _HARM:
            return round(float(bar), 3)
    return None


def page(judged: Sequence[tuple[Row, float]], model: Model) -> str:
    """Return the page of figures: how sure and how wrong a model is of a source it never saw."""
    batches: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for row, probability in judged:
        first = row.seen[0]
        held = model.hold(probability, stratum_of(first.signals))
        schema = "no schema" if first.signals[SIGNALS.index("refused")] < 0 else "schema"
        for name in (f"{row.source}, {schema}", f"**all, {schema}**"):
            batches[name].append((held, first.right))
    lines = [
        "# The judge, on sources that were left out", "",
        made_by("python -m bench.quality.fit --rows FOLDER"), "", " ".join(PAGE.split()), "",
        "| source | n | right | sure | wrong of the sure | at most | ECE |",
        "|---|---:|---:|---:|---:|---:|---:|",
        *(f"| {name} | {_shares(of)} |" for name, of in sorted(batches.items())), "",
        "| stratum | sure from |", "|---|---:|",
        *(f"| {name} | {bar} |" for name, bar in model.bars.items()),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


PAGE = """
First proposals of every source, judged by a fit that never saw that source. *Right* is the share
that was right, *sure* the share above .8, *at most* the upper end of the 95 % interval of how many
of the sure are wrong (Clopper and Pearson), *ECE* the expected calibration error in tenths. Below,
what each stratum has to reach to be sure.
"""


def _shares(first: Sequence[tuple[float, bool]]) -> str:
    shown = [(confidence, right) for confidence, right in first if confidence >= MIN_CONFIDENCE]
    sure = [right for confidence, right in shown if confidence > SURE]
    gaps = 0.0
    for tenth in range(10):
        inside = [each for each in shown if min(9, int(10 * each[0])) == tenth]
        gaps += abs(sum(confidence - right for confidence, right in inside))
    wrong = len(sure) - sum(sure)
    upper = float(beta.ppf(0.95, wrong + 1, len(sure) - wrong)) if wrong < len(sure) else 1.0
    cells = (
        f"{sum(right for _, right in first) / len(first):.2f}", f"{len(sure) / len(first):.2f}",
        f"{wrong} ({wrong / max(1, len(sure)):.3f})", f"{upper:.3f}",
        f"{gaps / max(1, len(shown)):.2f}",
    )  # fmt: skip
    return " | ".join((str(len(first)), *cells))


def fit_judge(rows: Sequence[Row]) -> tuple[Model, str]:
    """Return the model of all rows, and the page of what fits without a source say of it."""
    left_out = unseen(rows)
    sizes = Counter(row.source for row in rows)
    firsts = [
        Labelled(row.seen[0].signals, row.seen[0].right, _weight(row, sizes)) for row, _ in left_out
    ]
    shift, slope = fit_scale([odds for _, odds in left_out], firsts)
    leans = [LEAN * row.seen[0].signals[SIGNALS.index("odds")] for row, _ in left_out]
    shift -= float(np.average(leans, weights=[first.weight for first in firsts]))
    judged = [
        (row, apply_logistic(shift + slope * odds + lean))
        for (row, odds), lean in zip(left_out, leans, strict=True)
    ]
    every = labelled(rows)
    model = points_of(fit_stumps(every), every, shift, slope)._replace(bars=bars_of(judged))
    return model, page(judged, model)
