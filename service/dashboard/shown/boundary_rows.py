"""Boundaries in rows and sentences. Pure."""

from collections.abc import Iterable
from typing import Final

from aftercall.models import (
    AxisCluster,
    AxisShare,
    Boundaries,
    Cohesion,
    CoOccurrence,
    ToolBoundary,
    ToolName,
)
from service.dashboard.shown.call_text import one_line
from service.dashboard.shown.numbers import count, moment, percent

MAX_NAME: Final = 200
"""Characters of a tool's or an axis' name that are shown."""

REFERRAL: Final = """{
  "outcome": "failure",
  "error": {
    "type": "wrong_tool_boundary",
    "message": "I fetch pages; I do not know what is on them",
    "details": {
      "boundaryAxes": ["transport", "extraction"],
      "observedTaskShape": "fetch a page and list the films on it",
      "suggestedSplit": ["page_fetcher", "film_lister"],
      "evidence": "the request asks for titles, the page is HTML"
    }
  }
}"""
"""What a tool that refers a request elsewhere sends, beside what every execution has."""


def tool_text(tool: ToolName) -> str:
    """A tool's name as calls write it, with its server."""
    name = f"{tool.server_name}/{tool.tool_name}" if tool.server_name else tool.tool_name
    return one_line(name, MAX_NAME)


def cluster_rows(clusters: Iterable[AxisCluster]) -> list[dict[str, object]]:
    """A row per cluster."""
    return [
        {
            "id": each.cluster_id,
            "name": _words(each.name),
            "members": ", ".join(
                f"{_words(member.axis)} ({count(member.count)})" for member in each.members
            ),
            "tools": ", ".join(tool_text(tool) for tool in each.tools),
            "count": each.count,
            "weight": each.weight,
            "first": each.first_seen,
            "last": each.last_seen,
        }
        for each in clusters
    ]


def pair_rows(pairs: Iterable[CoOccurrence]) -> list[dict[str, object]]:
    """A row per pair of clusters that are named in the same referrals."""
    return [
        {
            "id": " ".join(each.cluster_ids),
            "one": _words(each.names[0]),
            "other": _words(each.names[1]),
            "count": each.count,
            "weight": each.weight,
            "last": each.last_seen,
        }
        for each in pairs
    ]


def tool_rows(tools: Iterable[ToolBoundary]) -> list[dict[str, object]]:
    """A row per tool with boundary failures, with its place in the list as key."""
    return [
        {
            "key": str(place),
            "tool": tool_text(each.tool),
            "warning": "warning" if each.cohesion.warning else "",
            "score": each.cohesion.score,
            "failures": each.cohesion.failures,
            "axes": shares_text(each.cohesion.axes),
        }
        for place, each in enumerate(tools)
    ]


def shares_text(axes: Iterable[AxisShare]) -> str:
    """The axes of a tool's boundary failures with their shares."""
    return ", ".join(f"{_words(each.name)} {percent(each.share)}" for each in axes)


def warned(boundaries: Boundaries) -> list[ToolBoundary]:
    """The tools with a cohesion warning."""
    return [each for each in boundaries.tools if each.cohesion.warning]


def cohesion_words(cohesion: Cohesion) -> str:
    """How sure a warning is, and what it is made from."""
    score = "unknown" if cohesion.score is None else f"{cohesion.score:.2f}"
    missing = (
        f", {count(cohesion.without_evidence)} of them without evidence"
        if cohesion.without_evidence
        else ""
    )
    return (
        f"Cohesion {score} (1 is all on one axis), from {count(cohesion.failures)} boundary "
        f"failures{missing}. It is more than chance with a probability of "
        f"{percent(cohesion.confidence)}."
    )


def clustered_words(boundaries: Boundaries) -> str:
    """When wordings were last gathered into clusters, and what has come since."""
    if boundaries.clustered_at is None:
        return "Wordings are not gathered into clusters yet; each stands for itself."
    waiting = boundaries.unclustered
    if not waiting:
        rest = "No wording has come since."
    elif waiting == 1:
        rest = "1 wording has come since and stands for itself."
    else:
        rest = f"{count(waiting)} wordings have come since; each stands for itself."
    return f"Wordings were last gathered into clusters at {moment(boundaries.clustered_at)}. {rest}"


def _words(axis: str) -> str:
    return one_line(axis, MAX_NAME)
