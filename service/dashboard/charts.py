"""Charts as SVG, each with a table that says the same.

What a chart is as wide as is the page's to say: so all that lies along x is in per cent, and sizes
of marks and letters are in pixels. Colours are the page's own variables and follow its theme.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from aftercall.models import Trend
from service.dashboard import html as h
from service.dashboard import words as w

Point = tuple[float, float]
Series = Mapping[str, Sequence[float | None]]
"""Values by name over the same x; None leaves a gap."""
_MARKS: Final = (
    h.tag("circle", r="2.5"),
    h.tag("rect", x="-2.5", y="-2.5", width=5, height=5),
    h.tag("path", d="M0-3.5 3.2 2.5H-3.2Z"),
    h.tag("path", d="M0-3.5 3.5 0 0 3.5-3.5 0Z"),
)
"""Series differ by marks and dashes as well as by colour."""
_DASHES: Final = (None, "6 4", "2 3")
_MOST_LABELS: Final = 8
_MOST_STEPS: Final = 6
"""From the lowest tick of an axis to the highest."""


def line_chart(
    title: str, labels: Sequence[str], series: Series, unit: str = "", height: int = 260
) -> h.Html:
    """Lines over time; those of percentages begin near the lowest one.

    `unit` is `%` or `ms`; the height is in pixels.
    """
    low, step, high = shares_axis(series) if unit == "%" else counts_axis(_highest(series))
    drawn: list[h.Content] = []
    for place, values in enumerate(series.values()):
        points = [
            None if value is None else (_middle(at, len(labels)), _height(value, low, high))
            for at, value in enumerate(values)
        ]
        style = {"style": f"--c:var(--series-{place + 1})"}
        dash = _DASHES[place % len(_DASHES)]
        drawn += [
            h.tag("line", x1=_pc(one[0]), y1=_pc(one[1]), x2=_pc(other[0]), y2=_pc(other[1]),
                class_="line", stroke_dasharray=dash, **style)
            for one, other in pairwise(points)
            if one is not None and other is not None
        ]  # fmt: skip
        drawn += [_mark(place, *each) for each in points if each is not None]
    return _over_time(title, labels, series, (low, step, high), drawn, unit, height)


def success_chart(title: str, trend: Trend, height: int = 260) -> h.Html:
    """The share of calls that succeeded, over time."""
    rates = [w.success_rate(each) for each in trend.points]
    return line_chart(
        title,
        w.axis((each.at for each in trend.points), trend.window),
        {"Succeeded": [None if each is None else 100 * each for each in rates]},
        "%",
        height,
    )


def bar_chart(title: str, labels: Sequence[str], series: Series, height: int = 260) -> h.Html:
    """Bars of counts; several series stand on one another."""
    totals = [sum(each or 0 for each in column) for column in zip(*series.values(), strict=True)]
    low, step, high = counts_axis(max(totals, default=0.0))
    width, drawn = 70 / max(1, len(labels)), list[h.Content]()
    for at in range(len(labels)):
        top = 100.0
        for place, values in enumerate(series.values()):
            size = 100 * (values[at] or 0) / high
            top -= size
            if size:
                drawn.append(
                    h.tag("rect", x=_pc(_middle(at, len(labels)) - width / 2), y=_pc(top),
                        width=_pc(width), height=_pc(size), class_="column",
                        style=f"--c:var(--series-{place + 1})")
                )  # fmt: skip
    return _over_time(title, labels, series, (low, step, high), drawn, "", height)


def scatter_chart(title: str, x: str, y: str, points: Mapping[str, Sequence[Point]]) -> h.Html:
    """Points of the unit square by series, with the diagonal on which x is y."""
    drawn: list[h.Content] = [
        h.tag("line", x1="0%", y1="100%", x2="100%", y2="0%", class_="diagonal"),
        _y_axis((0.0, 0.2, 1.0), ""),
        [_x_label(100 * each / 5, f"{each / 5:g}") for each in range(6)],
        [
            h.tag("g", h.tag("title", f"{name}: {w.score(at)}, {w.score(value)}"),
                _mark(place, 100 * at, 100 * (1 - value)), class_="large")
            for place, (name, each) in enumerate(points.items())
            for at, value in each
        ],
    ]  # fmt: skip
    table = h.plain_table(
        title,
        [h.Column("k", "Series"), h.Column("x", x, "number"), h.Column("y", y, "number")],
        [{"k": name, "x": at, "y": value} for name, each in points.items() for at, value in each],
    )
    axes = h.tag("p", f"Across: {x}. Upward: {y}.", class_="note")
    return _figure(title, drawn, list(points), table, 380, axes)


def shares_axis(series: Series) -> tuple[float, float, float]:
    """Lowest tick, step and highest tick of percentages: up to 100, from below the lowest one."""
    low = min((each for values in series.values() for each in values if each is not None),
              default=0.0)  # fmt: skip
    below = max(0.0, low - 1)
    step = next(step for step in (2.0, 5.0, 10.0, 20.0) if 100 - _MOST_STEPS * step <= below)
    return min(below // step * step, 90.0), step, 100.0


def counts_axis(highest: float) -> tuple[float, float, float]:
    """The same from 0, with steps of 1, 2 or 5 and their tens; bars from elsewhere would lie."""
    size = 10.0 ** math.floor(math.log10(max(highest, 1.0) / _MOST_STEPS))
    step = next(each * size for each in (1, 2, 5, 10) if each * size * _MOST_STEPS >= highest)
    step = max(1.0, step)  # no half a call
    return 0.0, step, max(step, math.ceil(highest / step) * step)


def _over_time(
    title: str,
    labels: Sequence[str],
    series: Series,
    scale: tuple[float, float, float],
    drawn: h.Content,
    unit: str,
    height: int,
) -> h.Html:
    every = math.ceil(len(labels) / _MOST_LABELS) or 1
    words = f" {unit}" if unit else ""
    axes: list[h.Content] = [
        _y_axis(scale, words),
        [
            _x_label(_middle(at, len(labels)), label, is_spare=at // every % 2 == 1)
            for at, label in enumerate(labels)
            if at % every == 0
        ],
    ]
    width = 100 / max(1, len(labels))
    hints = [
        h.tag("rect", h.tag("title", _hint(label, at, series, words)),
            x=_pc(width * at), y="0%", width=_pc(width), height="100%", class_="hint")
        for at, label in enumerate(labels)
    ]  # fmt: skip
    columns = [
        h.Column("x", "Time (UTC)"),
        *(h.Column(name, f"{name}{words}", "number") for name in series),
    ]
    rows = [
        {"x": label, **{name: values[at] for name, values in series.items()}}
        for at, label in enumerate(labels)
    ]
    table = h.plain_table(title, columns, rows)
    return _figure(title, [axes, drawn, hints], list(series), table, height)


def _figure(
    title: str,
    drawn: h.Content,
    names: Sequence[str],
    table: h.Html,
    height: int,
    below: h.Content = None,
) -> h.Html:
    legend = [
        h.tag(
            "span",
            h.tag("svg", _mark(place, 50, 50), aria_hidden="true", class_="key"),
            name,
        )
        for place, name in enumerate(names)
    ]
    plot = h.tag("div", h.tag("svg", drawn), class_="plot", role="img", aria_label=title,
               style=f"height:{height}px")  # fmt: skip
    return h.tag(
        "figure",
        h.tag("p", legend, class_="legend") if len(names) > 1 else None,
        plot,
        below,
        h.details("Show as table", table),
        class_="chart",
    )


def _y_axis(scale: tuple[float, float, float], unit: str) -> list[h.Html]:
    low, step, high = scale
    ticks = [low + step * each for each in range(round((high - low) / step) + 1)]
    return [
        h.markup([
            h.tag("line", x1="0%", x2="100%", y1=_pc(at), y2=_pc(at), class_="rule"),
            h.tag("text", f"{tick:,.10g}{unit}", x=-8, y=_pc(at), dy=4, text_anchor="end"),
        ])
        for tick in ticks
        for at in (_height(tick, low, high),)
    ]  # fmt: skip


def _x_label(at: float, label: str, *, is_spare: bool = False) -> h.Html:
    spare = "spare" if is_spare else None
    return h.tag("text", label, x=_pc(at), y="100%", dy=18, text_anchor="middle", class_=spare)


def _hint(label: str, at: int, series: Series, unit: str) -> str:
    values_of = (f"{name}: {w.score(values[at], 1)}{unit}" if unit else f"{name}: {values[at]:,.0f}"
            for name, values in series.items() if values[at] is not None)  # fmt: skip
    return "\n".join([label, *values_of])


def _mark(place: int, x: float, y: float) -> h.Html:
    return h.tag(
        "svg",
        _MARKS[place % len(_MARKS)],
        x=_pc(x),
        y=_pc(y),
        class_="mark",
        style=f"--c:var(--series-{place + 1})",
    )


def _highest(series: Series) -> float:
    return max((each or 0.0 for values in series.values() for each in values), default=0.0)


def _middle(at: int, count: int) -> float:
    return 100 * (at + 0.5) / max(1, count)


def _height(value: float, low: float, high: float) -> float:
    return 100 * (1 - (value - low) / (high - low))


def _pc(value: float) -> str:
    return f"{value:.2f}%"
