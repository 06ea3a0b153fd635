"""Charts, each with a table that says the same.

ECharts draws them as SVG, so that the colours are the page's own variables and follow its theme.
NiceGUI evaluates options whose name begins with a colon: so what tools said is only ever a value
here, never the name of an option, and nothing is formatted by a function made from data.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from nicegui import ui

from service.dashboard.tables import Column, DataTable
from service.dashboard.widgets import box, text

Point = tuple[float, float]

FONT: Final = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif'
"""That of the page, by name: ECharts measures texts on a canvas, which inherits nothing."""

_TEXT: Final = {"color": "var(--muted)", "fontFamily": FONT, "fontSize": 12}

_LINE: Final = {"lineStyle": {"color": "var(--line)"}}

_COLOURS: Final = [f"var(--series-{number})" for number in range(1, 7)]

_GRID: Final = {"left": 8, "right": 28, "top": 36, "bottom": 8, "containLabel": True}

_DASHES: Final = ("solid", "dashed", "dotted")

_SYMBOLS: Final = ("circle", "rect", "triangle", "diamond")

_STEPS: Final = (2.0, 5.0, 10.0, 20.0)

_MOST_STEPS: Final = 6
"""From the lowest tick of an axis of percentages to the highest."""


class _Chart:
    """What all kinds share."""

    def __init__(self, title: str, unit: str, *, height: str = "") -> None:
        self._title, self._unit = title, unit
        self._names: list[str] | None = None
        self._drawn: dict[str, Any] | None = None
        self._table: DataTable | None = None
        with box("figure", "chart"):
            self._chart = ui.echart({"series": []}, renderer="svg")
            self._chart.props["role"] = "img"
            self._chart.props["aria-label"] = title
            if height:
                self._chart.style(f"height: {height}")
            with box("details"):
                text("Show as table", "summary")
                self._below = box()

    def _draw(self, options: dict[str, Any]) -> None:
        if options != self._drawn:
            self._drawn = options
            self._chart.props["options"] = {
                "animation": False,
                "color": _COLOURS,
                "textStyle": {"fontFamily": FONT},
                "grid": _GRID,
                **options,
            }

    def _tell(self, columns: Sequence[Column], rows: Sequence[Mapping[str, object]]) -> None:
        names = [each.label for each in columns]
        if self._table is None or names != self._names:
            self._names = names
            self._below.clear()
            with self._below:
                self._table = DataTable(self._title, columns, columns[0].key, plain=True)
        self._table.set(rows)


class _SeriesChart(_Chart):
    _type = ""

    def __init__(
        self,
        title: str,
        unit: str = "",
        *,
        height: str = "",
        stacked: bool = False,
        x: str = "Time (UTC)",
    ) -> None:
        """Make an empty one.

        Args:
            title: what is shown.
            unit: `%`, `ms`, or nothing for a count.
            height: in CSS, where it is not the usual one.
            stacked: series stand on one another.
            x: what the x axis is, for the table.
        """
        super().__init__(title, unit, height=height)
        self._stacked, self._x = stacked, x
        # An axis of shares begins near the lowest one; that of bars at 0, or they would lie.
        self._scaled = unit == "%" and self._type == "line"

    def set(self, x: Sequence[str], series: Mapping[str, Sequence[float | None]]) -> None:
        """Draw series by name over the same x; None leaves a gap."""
        unit = f" {self._unit}" if self._unit else ""
        self._draw(
            {
                "tooltip": _tooltip("axis"),
                **({"grid": _GRID | {"top": 14}} if len(series) == 1 else {}),
                "legend": {"show": len(series) > 1, "top": 0, "left": 0, "textStyle": _TEXT},
                "xAxis": {
                    "type": "category",
                    "data": list(x),
                    "axisLabel": {**_TEXT, "hideOverlap": True},
                    "axisLine": _LINE,
                    "axisTick": {"show": False},
                },
                "yAxis": {
                    "type": "value",
                    **self._range(series.values()),
                    "axisLabel": {**_TEXT, "formatter": f"{{value}}{unit}"},
                    "splitLine": _LINE,
                },
                "series": [
                    self._one(place, name, values)
                    for place, (name, values) in enumerate(series.items())
                ],
            }
        )
        columns = [
            Column("x", self._x),
            *(Column(f"s{place}", f"{name}{unit}", "number") for place, name in enumerate(series)),
        ]
        rows = [
            {
                "x": label,
                **{f"s{place}": values[at] for place, values in enumerate(series.values())},
            }
            for at, label in enumerate(x)
        ]
        self._tell(columns, rows)

    def _range(self, series: Iterable[Sequence[float | None]]) -> dict[str, float]:
        if self._scaled:
            return shares_axis(series)
        return {"min": 0} if self._unit else {"min": 0, "minInterval": 1}  # no half a call

    def _one(self, place: int, name: str, values: Sequence[float | None]) -> dict[str, Any]:
        return {
            "type": self._type,
            "itemStyle": {"color": _COLOURS[place % len(_COLOURS)]},
            "name": name,
            "data": [None if each is None else round(each, 2) for each in values],
            "emphasis": {"disabled": True},
            **({"stack": "all"} if self._stacked else {}),
        }


def shares_axis(series: Iterable[Sequence[float | None]]) -> dict[str, float]:
    """An axis of percentages up to 100, from below the lowest one, with round steps."""
    low = min((each for values in series for each in values if each is not None), default=0.0)
    below = max(0.0, low - 1)
    step = next(step for step in _STEPS if 100 - _MOST_STEPS * step <= below)
    return {"min": min(below // step * step, 90.0), "max": 100.0, "interval": step}


class LineChart(_SeriesChart):
    """Lines over time, told apart by dashes and marks as well as by colour."""

    _type = "line"

    def _one(self, place: int, name: str, values: Sequence[float | None]) -> dict[str, Any]:
        return {
            **super()._one(place, name, values),
            "symbol": _SYMBOLS[place % len(_SYMBOLS)],
            "symbolSize": 5,
            "lineStyle": {"width": 2, "type": _DASHES[place % len(_DASHES)]},
        }


class BarChart(_SeriesChart):
    """Bars beside one another, or on one another when `stacked`."""

    _type = "bar"

    def _one(self, place: int, name: str, values: Sequence[float | None]) -> dict[str, Any]:
        return {**super()._one(place, name, values), "barMaxWidth": 28}


class ScatterChart(_Chart):
    """Points in the unit square or beyond it."""

    def __init__(self, title: str, x: str, y: str, *, height: str = "") -> None:
        """`x` and `y` name the axes."""
        super().__init__(title, "", height=height)
        self._x, self._y = x, y

    def set(
        self,
        points: Mapping[str, Sequence[Point]],
        *,
        diagonal: bool = False,
        limits: Point | None = (0.0, 1.0),
    ) -> None:
        """Draw points by series.

        Args:
            points: x and y of each, by the name of their series.
            diagonal: also draw the line on which x is y.
            limits: of both axes; None lets the points decide.
        """
        bounds = {} if limits is None else {"min": limits[0], "max": limits[1]}
        axis = {"type": "value", **bounds, "axisLabel": _TEXT, "splitLine": _LINE}
        name = {"nameLocation": "middle", "nameTextStyle": _TEXT}
        lines = [] if not diagonal or limits is None else [_diagonal(limits)]
        self._draw(
            {
                "tooltip": _tooltip("item"),
                "legend": {"show": len(points) > 1, "top": 0, "left": 0, "textStyle": _TEXT},
                "xAxis": {**axis, **name, "name": self._x, "nameGap": 28},
                "yAxis": {**axis, **name, "name": self._y, "nameGap": 36},
                "grid": {"left": 24, "right": 16, "top": 36, "bottom": 24, "containLabel": True},
                "series": [
                    *(
                        {
                            "type": "scatter",
                            "name": name_,
                            "symbol": _SYMBOLS[place % len(_SYMBOLS)],
                            "symbolSize": 11,
                            "emphasis": {"disabled": True},
                            "data": [[round(x, 4), round(y, 4)] for x, y in each],
                        }
                        for place, (name_, each) in enumerate(points.items())
                    ),
                    *lines,
                ],
            }
        )
        columns = [
            Column("k", "Series"),
            Column("x", self._x, "number"),
            Column("y", self._y, "number"),
        ]
        self._tell(
            columns,
            [{"k": name_, "x": x, "y": y} for name_, each in points.items() for x, y in each],
        )


def _diagonal(limits: Point) -> dict[str, Any]:
    low, high = limits
    return {
        "type": "line",
        "name": "as promised",
        "data": [[low, low], [high, high]],
        "symbol": "none",
        "silent": True,
        "lineStyle": {"type": "dashed", "width": 1, "color": "var(--muted)"},
        "tooltip": {"show": False},
    }


def _tooltip(trigger: str) -> dict[str, Any]:
    return {
        "trigger": trigger,
        "renderMode": "richText",  # never HTML
        "confine": True,
        "backgroundColor": "var(--card)",
        "borderColor": "var(--line)",
        "textStyle": {"color": "var(--text)", "fontSize": 12},
        "axisPointer": {"type": "line", **_LINE},
    }
