"""Examples of boundaries, shown in OpenAPI. The tests read each as its model."""

from typing import Any

_TRANSPORT = "27e0c8d3-6e0f-5a6d-8f53-2b9b3b1d6c10"
_EXTRACTION = "6c1f4a0b-57a9-5a0b-8d7e-6a0f4c9d2e31"
_LATEST = "2026-02-20T14:30:00Z"
_FIRST = "2026-02-16T08:00:00Z"
_TOOL: dict[str, Any] = {"toolId": "page_reader", "serverName": "web", "toolName": "read_page"}


def _count(count: int, weight: float) -> dict[str, Any]:
    return {"count": count, "weight": weight, "lastSeen": _LATEST}


def _share(cluster_id: str, name: str, axes: list[str], count: int) -> dict[str, Any]:
    return {"clusterId": cluster_id, "name": name, "axes": axes, "count": count, "share": 1.0}


BOUNDARIES: dict[str, Any] = {
    "clusters": [
        {
            "clusterId": _EXTRACTION,
            "name": "extraction",
            **_count(6, 4.9),
            "members": [{"axis": "extraction", **_count(6, 4.9)}],
            "tools": [_TOOL],
            "firstSeen": _FIRST,
        },
        {
            "clusterId": _TRANSPORT,
            "name": "transport",
            **_count(6, 4.9),
            "members": [
                {"axis": "transport", **_count(4, 3.2)},
                {"axis": "HTTP transport", **_count(2, 1.7)},
            ],
            "tools": [_TOOL],
            "firstSeen": _FIRST,
        },
    ],
    "coOccurrences": [
        {
            "clusterIds": [_TRANSPORT, _EXTRACTION],
            "names": ["transport", "extraction"],
            **_count(6, 4.9),
        }
    ],
    "tools": [
        {
            "tool": _TOOL,
            "cohesion": {
                "score": 0.5,
                "warning": True,
                "confidence": 0.9991,
                "failures": 6,
                "weight": 4.9,
                "withoutEvidence": 1,
                "axes": [
                    _share(_TRANSPORT, "transport", ["transport", "HTTP transport"], 6),
                    _share(_EXTRACTION, "extraction", ["extraction"], 6),
                ],
                "message": "6 boundary failures are about more than one job: transport (100%) and "
                "extraction (100%). Consider splitting the tool, or describing which of these it "
                "does not do.",
            },
        }
    ],
    "clusteredAt": "2026-02-20T14:30:02Z",
    "unclustered": 0,
}
