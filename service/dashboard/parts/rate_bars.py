"""Success rates as lying bars, so that names of any length stand beside them."""

from collections.abc import Sequence
from typing import Final

from nicegui import ui

from service.dashboard.charts import FONT
from service.dashboard.shown.call_text import one_line
from service.dashboard.widgets import box

_MAX_NAME: Final = 18
"""Characters of a name beside a bar; a table has all of it."""

_ROW_REM: Final = 1.9


class RateBars:
    """One bar per name. A table of the same page says the same.

    Args:
        title: what is shown, for who does not see it.
    """

    def __init__(self, title: str) -> None:
        with box("figure", "chart"):
            self._chart = ui.echart({"series": []}, renderer="svg")
            self._chart.props["role"] = "img"
            self._chart.props["aria-label"] = f"{title}; the table says the same."

    def set(self, names: Sequence[str], rates: Sequence[float | None]) -> None:
        """Draw them, the first on top; rates in [0, 1], None draws no bar."""
        words = {"color": "var(--muted)", "fontFamily": FONT, "fontSize": 12}
        self._chart.style(f"height: {_ROW_REM * len(names) + 3:.1f}rem")
        self._chart.props["options"] = {
            "animation": False,
            "textStyle": {"fontFamily": FONT},
            "grid": {"left": 8, "right": 56, "top": 8, "bottom": 8, "containLabel": True},
            "xAxis": {
                "type": "value",
                "min": 0,
                "max": 100,
                "interval": 25,
                "axisLabel": {**words, "formatter": "{value} %", "hideOverlap": True},
                "splitLine": {"lineStyle": {"color": "var(--line)"}},
            },
            "yAxis": {
                "type": "category",
                "inverse": True,
                "data": [one_line(each, _MAX_NAME) for each in names],
                "axisLabel": words,
                "axisTick": {"show": False},
                "axisLine": {"lineStyle": {"color": "var(--line)"}},
            },
            "series": [
                {
                    "type": "bar",
                    "barMaxWidth": 18,
                    "itemStyle": {"color": "var(--series-1)"},
                    "emphasis": {"disabled": True},
                    "label": {
                        "show": True,
                        "position": "right",
                        "formatter": "{c} %",
                        "color": "var(--text)",
                    },
                    "data": [None if each is None else round(each * 100, 1) for each in rates],
                }
            ],
        }
