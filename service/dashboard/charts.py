"""Charts, each with a table of the same figures; `templates/chart.html` draws them as SVG."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from aftercall.models import CallCounts, Trend
from service.dashboard import html as h
from service.dashboard import words as w

Point = tuple[float, float]
Series = Mapping[str, Sequence[float | None]]
"""Values by name over the same x; None leaves a gap."""
_MOST_LABELS: Final = 8
_MOST_STEPS: Final = 6
"""From the lowest tick of an axis to the highest."""


@dataclass
class _Chart:
    """The marks of a chart, in per cent of width and height from the upper left."""

    title: str
    names: Sequence[str]
    height: int
    table: h.Html
    ticks: Sequence[tuple[float, str]]
    """Place from above, and words."""
    labels: Sequence[tuple[float, str, bool]]
    """Place from the left, words, and whether a narrow page does without."""
    segments: list[tuple[int, float, float, float, float]] = field(default_factory=list)
    """Place, x1, y1, x2, y2."""
    columns: list[tuple[int, float, float, float, float]] = field(default_factory=list)
    """Place, x, y, width, height."""
    marks: list[tuple[int, float, float, str]] = field(default_factory=list)
    """Place, x, y, and words."""
    hints: Sequence[tuple[float, float, str]] = ()
    """Place from the left, width, and words."""
    diagonal: bool = False
    below: str = ""


def line_chart(
    title: str, labels: Sequence[str], series: Series, unit: str = "", height: int = 260
) -> h.Html:
    """Return lines over time; percentages begin near the lowest.

    `unit` is `%` or `ms`, the height is in pixels.
    """
    highest = max((each or 0.0 for values in series.values() for each in values), default=0.0)
    scale = shares_axis(series) if unit == "%" else counts_axis(highest)
    chart = _over_time(title, labels, series, scale, unit, height)
    for place, values in enumerate(series.values()):
        points = [
            None if value is None else (_find_middle(at, len(labels)), _find_height(value, scale))
            for at, value in enumerate(values)
        ]
        chart.segments += [
            (place, *one, *other) for one, other in pairwise(points) if one and other
        ]
        chart.marks += [(place, *each, "") for each in points if each]
    return h.render_template("chart", chart=chart)


def rates_chart(
    title: str, trend: Trend, counts: Mapping[str, Sequence[CallCounts]], height: int = 260
) -> h.Html:
    """Return the shares of calls that succeeded, at the points of a trend."""
    rates = {name: [w.success_rate(each) for each in points] for name, points in counts.items()}
    series = {
        name: [None if each is None else 100 * each for each in values]
        for name, values in rates.items()
    }
    return line_chart(title, w.label_axis([each.at for each in trend.points]), series, "%", height)


def bar_chart(title: str, labels: Sequence[str], series: Series, height: int = 260) -> h.Html:
    """Return bars of counts; several series stand on one another."""
    totals = [sum(each or 0 for each in column) for column in zip(*series.values(), strict=True)]
    scale = counts_axis(max(totals, default=0.0))
    chart = _over_time(title, labels, series, scale, "", height)
    width = 70 / max(1, len(labels))
    for at in range(len(labels)):
        top = 100.0
        for place, values in enumerate(series.values()):
            size = 100 * (values[at] or 0) / scale[2]
            top -= size
            if size:
                left = _find_middle(at, len(labels)) - width / 2
                chart.columns.append((place, left, top, width, size))
    return h.render_template("chart", chart=chart)


def scatter_chart(title: str, x: str, y: str, points: Mapping[str, Sequence[Point]]) -> h.Html:
    """Return points of the unit square by series, with the diagonal on which x is y."""
    found = [(place, name, *each) for place, name in enumerate(points) for each in points[name]]
    columns = [h.Column("k", "Series"), h.Column("x", x, "number"), h.Column("y", y, "number")]
    rows = [{"k": name, "x": at, "y": value} for _, name, at, value in found]
    chart = _Chart(
        title,
        list(points),
        380,
        h.plain_table(title, columns, rows),
        _list_ticks((0.0, 0.2, 1.0), ""),
        [(20 * each, f"{each / 5:g}", False) for each in range(6)],
        marks=[
            (
                place,
                100 * at,
                100 * (1 - value),
                f"{name}: {w.format_score(at)}, {w.format_score(value)}",
            )
            for place, name, at, value in found
        ],
        diagonal=True,
        below=f"Across: {x}. Upward: {y}.",
    )
    return h.render_template("chart", chart=chart)


def shares_axis(series: Series) -> tuple[float, float, float]:
    """Return lowest tick, step and highest tick of percentages, from below the lowest to 100."""
    low = min((each for values in series.values() for each in values if each is not None),
              default=0.0)  # fmt: skip
    below = max(0.0, low - 1)
    step = next(step for step in (2.0, 5.0, 10.0, 20.0) if 100 - _MOST_STEPS * step <= below)
    return min(below // step * step, 90.0), step, 100.0


def counts_axis(highest: float) -> tuple[float, float, float]:
    """Return the same from 0, with steps of 1, 2 or 5 and their tens.

    Bars that begin elsewhere would mislead.
    """
    size = 10.0 ** math.floor(math.log10(max(highest, 1.0) / _MOST_STEPS))
    step = next(each * size for each in (1, 2, 5, 10) if each * size * _MOST_STEPS >= highest)
    step = max(1.0, step)  # no half a call
    return 0.0, step, max(step, math.ceil(highest / step) * step)


def _over_time(
    title: str,
    labels: Sequence[str],
    series: Series,
    scale: tuple[float, float, float],
    unit: str,
    height: int,
) -> _Chart:
    every = math.ceil(len(labels) / _MOST_LABELS) or 1
    words, width = f" {unit}" if unit else "", 100 / max(1, len(labels))
    columns = [
        h.Column("x", "Time (UTC)"),
        *(h.Column(name, f"{name}{words}", "number") for name in series),
    ]
    rows = [
        {"x": label, **{name: values[at] for name, values in series.items()}}
        for at, label in enumerate(labels)
    ]

    def write_hint(at: int) -> str:
        said = ((name, values[at]) for name, values in series.items())
        digits = 1 if unit else 0
        return "\n".join(
            f"{k}: {w.format_score(each, digits)}{words}" for k, each in said if each is not None
        )

    return _Chart(
        title,
        list(series),
        height,
        h.plain_table(title, columns, rows),
        _list_ticks(scale, words),
        [
            (_find_middle(at, len(labels)), label, at // every % 2 == 1)
            for at, label in enumerate(labels)
            if at % every == 0
        ],
        hints=[
            (width * at, width, f"{label}\n{write_hint(at)}") for at, label in enumerate(labels)
        ],
    )


def _list_ticks(scale: tuple[float, float, float], unit: str) -> list[tuple[float, str]]:
    low, step, high = scale
    ticks = [low + step * each for each in range(round((high - low) / step) + 1)]
    return [(_find_height(tick, scale), f"{tick:,.10g}{unit}") for tick in ticks]


def _find_middle(at: int, count: int) -> float:
    return 100 * (at + 0.5) / max(1, count)


def _find_height(value: float, scale: tuple[float, float, float]) -> float:
    low, _, high = scale
    return 100 * (1 - (value - low) / (high - low))
