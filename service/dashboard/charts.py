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
Scale = tuple[float, float, float]
"""Lowest tick, step and highest tick of an axis."""
Box = tuple[int, float, float, float, float]
"""Place of a series, and four lengths."""
Mark = tuple[int, float, float, str]
"""Place of a series, x, y, and words."""
Hint = tuple[float, float, str]
"""Place from the left, width, and words."""
Tick = tuple[float, str]
"""Place from above, and words."""
Label = tuple[float, str, bool]
"""Place from the left, words, and whether a narrow page does without."""
_UNIT: Final = (0.0, 0.2, 1.0)
_UNIT_LABELS: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
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
    ticks: Sequence[Tick]
    labels: Sequence[Label]
    segments: list[Box] = field(default_factory=list)
    """Lines by x1, y1, x2, y2."""
    columns: list[Box] = field(default_factory=list)
    """Bars by x, y, width, height."""
    marks: list[Mark] = field(default_factory=list)
    hints: Sequence[Hint] = ()
    diagonal: bool = False
    below: str = ""


def line_chart(
    title: str, labels: Sequence[str], series: Series, unit: str = "", height: int = 260
) -> h.Html:
    """Return lines over time; percentages begin near the lowest.

    `unit` is `%` or `ms`, the height is in pixels.
    """
    if unit == "%":
        scale = shares_axis(series)
    else:
        scale = counts_axis(max(_list_values(series), default=0.0))
    chart = _over_time(title, labels, series, scale, unit, height)
    for place, values in enumerate(series.values()):
        points = _place_points(values, scale)
        for one, other in pairwise(points):
            if one is not None and other is not None:
                chart.segments.append((place, *one, *other))
        for point in points:
            if point is not None:
                chart.marks.append((place, *point, ""))
    return h.render_template("chart", chart=chart)


def _list_values(series: Series) -> list[float]:
    found: list[float] = []
    for values in series.values():
        found += [value for value in values if value is not None]
    return found


def _place_points(values: Sequence[float | None], scale: Scale) -> list[Point | None]:
    points: list[Point | None] = []
    for at, value in enumerate(values):
        if value is None:
            points.append(None)
        else:
            left = _find_middle(at, len(values))
            points.append((left, _find_height(value, scale)))
    return points


def rates_chart(
    title: str, trend: Trend, counts: Mapping[str, Sequence[CallCounts]], height: int = 260
) -> h.Html:
    """Return the shares of calls that succeeded, at the points of a trend."""
    series: dict[str, list[float | None]] = {}
    for name, points in counts.items():
        rates = [w.success_rate(each) for each in points]
        series[name] = [None if rate is None else 100 * rate for rate in rates]
    moments = [each.at for each in trend.points]
    return line_chart(title, w.label_axis(moments), series, "%", height)


def bar_chart(title: str, labels: Sequence[str], series: Series, height: int = 260) -> h.Html:
    """Return bars of counts; several series stand on one another."""
    columns = list(zip(*series.values(), strict=True))
    most = 0.0
    for column in columns:
        total = sum(value or 0 for value in column)
        most = max(most, total)
    scale = counts_axis(most)
    highest = scale[2]
    chart = _over_time(title, labels, series, scale, "", height)
    width = 70 / max(1, len(labels))
    for at, column in enumerate(columns):
        left = _find_middle(at, len(labels)) - width / 2
        top = 100.0
        for place, value in enumerate(column):
            size = 100 * (value or 0) / highest
            top -= size
            if size:
                chart.columns.append((place, left, top, width, size))
    return h.render_template("chart", chart=chart)


def scatter_chart(title: str, x: str, y: str, points: Mapping[str, Sequence[Point]]) -> h.Html:
    """Return points of the unit square by series, with the diagonal on which x is y."""
    series_column = h.Column("k", "Series")
    across = h.Column("x", x, "number")
    upward = h.Column("y", y, "number")
    rows: list[h.Row] = []
    marks: list[Mark] = []
    for place, name in enumerate(points):
        for at, value in points[name]:
            rows.append({"k": name, "x": at, "y": value})
            words = f"{name}: {w.format_score(at)}, {w.format_score(value)}"
            left, top = 100 * at, 100 * (1 - value)
            marks.append((place, left, top, words))
    chart = _Chart(
        title,
        list(points),
        380,
        h.plain_table(title, [series_column, across, upward], rows),
        _list_ticks(_UNIT, ""),
        [(100 * each, f"{each:g}", False) for each in _UNIT_LABELS],
        marks=marks,
        diagonal=True,
        below=f"Across: {x}. Upward: {y}.",
    )
    return h.render_template("chart", chart=chart)


def shares_axis(series: Series) -> Scale:
    """Return lowest tick, step and highest tick of percentages, from below the lowest to 100."""
    low = min(_list_values(series), default=0.0)
    below = max(0.0, low - 1)
    step = 20.0
    for possible in (10.0, 5.0, 2.0):
        if 100 - _MOST_STEPS * possible <= below:
            step = possible
    lowest = below // step * step
    return min(lowest, 90.0), step, 100.0


def counts_axis(highest: float) -> Scale:
    """Return the same from 0, with steps of 1, 2 or 5 and their tens.

    Bars that begin elsewhere would mislead.
    """
    least = max(highest, 1.0) / _MOST_STEPS
    size = 10.0 ** math.floor(math.log10(least))
    steps = [factor * size for factor in (1, 2, 5, 10)]
    step = next(each for each in steps if each * _MOST_STEPS >= highest)
    step = max(1.0, step)  # no half a call
    end = math.ceil(highest / step) * step
    return 0.0, step, max(step, end)


def _over_time(
    title: str, labels: Sequence[str], series: Series, scale: Scale, unit: str, height: int
) -> _Chart:
    every = math.ceil(len(labels) / _MOST_LABELS) or 1
    words = f" {unit}" if unit else ""
    digits = 1 if unit else 0
    width = 100 / max(1, len(labels))
    columns = [h.Column("x", "Time (UTC)")]
    columns += [h.Column(name, f"{name}{words}", "number") for name in series]
    rows: list[h.Row] = []
    hints: list[Hint] = []
    shown: list[Label] = []
    for at, label in enumerate(labels):
        row: dict[str, object] = {"x": label}
        lines = [label]
        for name, values in series.items():
            value = row[name] = values[at]
            if value is not None:
                lines.append(f"{name}: {w.format_score(value, digits)}{words}")
        rows.append(row)
        hints.append((width * at, width, "\n".join(lines)))
        if at % every == 0:
            is_optional = at // every % 2 == 1
            shown.append((_find_middle(at, len(labels)), label, is_optional))
    return _Chart(
        title,
        list(series),
        height,
        h.plain_table(title, columns, rows),
        _list_ticks(scale, words),
        shown,
        hints=hints,
    )


def _list_ticks(scale: Scale, unit: str) -> list[Tick]:
    low, step, high = scale
    count = round((high - low) / step) + 1
    ticks: list[Tick] = []
    for number in range(count):
        tick = low + step * number
        top = _find_height(tick, scale)
        ticks.append((top, f"{tick:,.10g}{unit}"))
    return ticks


def _find_middle(at: int, count: int) -> float:
    width = 100 / max(1, count)
    return (at + 0.5) * width


def _find_height(value: float, scale: Scale) -> float:
    low, _, high = scale
    share = (value - low) / (high - low)
    return 100 * (1 - share)
