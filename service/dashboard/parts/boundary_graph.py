"""The map of boundary axes, drawn by ECharts at places that are fixed beforehand."""

from typing import Any

from nicegui import ui

from service.dashboard.charts import FONT
from service.dashboard.shown.boundary_map import BoundaryMap, Node
from service.dashboard.shown.numbers import count
from service.dashboard.widgets import box


class BoundaryGraph:
    """Clusters as discs, what co-occurs as lines. The page's tables say the same."""

    def __init__(self) -> None:
        with box("figure", "chart"):
            self._chart = ui.echart({"series": []}, renderer="svg")
            self._chart.props["role"] = "img"
            self._chart.style("height: 26rem")

    def set(self, drawn: BoundaryMap) -> None:
        """Draw it; told in words to who does not see it."""
        self._chart.props["aria-label"] = (
            f"Map of {count(len(drawn.nodes))} clusters of boundary axes and "
            f"{count(len(drawn.edges))} pairs that co-occur; the tables below say the same."
        )
        self._chart.props["options"] = _options(drawn)


def _options(drawn: BoundaryMap) -> dict[str, Any]:
    # On two axes rather than on a plane of its own, which would stretch the discs with the chart.
    axis = {"type": "value", "min": -1, "max": 1, "show": False}
    return {
        "animation": False,
        "textStyle": {"fontFamily": FONT},
        "tooltip": {
            "renderMode": "richText",  # never HTML
            "formatter": "{b}",
            "confine": True,
            "backgroundColor": "var(--card)",
            "borderColor": "var(--line)",
            "textStyle": {"color": "var(--text)", "fontSize": 12},
        },
        "xAxis": axis,
        "yAxis": {**axis, "inverse": True},
        "grid": {"left": "24%", "right": "24%", "top": 68, "bottom": 68},
        "series": [
            {
                "type": "graph",
                "coordinateSystem": "cartesian2d",
                "emphasis": {"focus": "adjacency"},
                "itemStyle": {
                    "color": "var(--series-1)", "borderColor": "var(--card)", "borderWidth": 1,
                },
                "label": {
                    "show": True, "color": "var(--text)", "fontSize": 12,
                    "lineHeight": 14, "width": 128,
                    "overflow": "truncate",
                    "ellipsis": "…",
                },
                "lineStyle": {"color": "var(--muted)", "opacity": 0.55, "curveness": 0.12},
                "data": [_node(each) for each in drawn.nodes],
                "links": [
                    {
                        "source": each.source,
                        "target": each.target,
                        "value": each.count,
                        "lineStyle": {"width": each.width},
                    }
                    for each in drawn.edges
                ],
            }
        ],
        "media": [
            {
                "query": {"maxWidth": 520},
                "option": {
                    "grid": {"left": "30%", "right": "30%"},
                    "series": [{"label": {"width": 78, "fontSize": 11}}],
                },
            }
        ],
    }  # fmt: skip


def _node(node: Node) -> dict[str, Any]:
    return {
        "id": node.cluster_id,
        "name": f"{node.label}\n{count(node.count)}",
        "value": [node.x, node.y],
        "symbolSize": node.size,
        "label": {"position": _outward(node)},
    }


def _outward(node: Node) -> str:
    """The side of a disc on which its name covers nothing."""
    if abs(node.x) < 0.2:
        return "bottom" if node.y >= 0 else "top"
    return "right" if node.x > 0 else "left"
