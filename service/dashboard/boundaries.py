"""*Boundaries*: which jobs tools refer elsewhere, which come together, and which tools mix them."""

from collections.abc import Iterable
from typing import Final

from aftercall.models import AxisShare, Boundaries, Cohesion
from aftercall.tables import gather_values
from service.api.health import BoundariesQuery, read_boundaries
from service.dashboard import html as h
from service.dashboard import words as w
from service.dashboard.look import Look, Shown
from service.dashboard.tools import open_recommendations, tool_place

MAX_LISTED: Final = 200
"""Clusters, co-occurrences and tools, of each at most so many."""
MAX_MAPPED: Final = 24
"""Clusters of the map, the weightiest."""


async def show_boundaries(look: Look) -> Shown:
    """Return the page."""
    report = await read_boundaries(look.space, BoundariesQuery(limit=MAX_LISTED))
    warned = [each for each in report.tools if each.cohesion.warning][:50]
    advice = await open_recommendations(look) if warned else {}
    weight = h.Column("weight", "Weight", "number", "halves every 7 days")
    last = h.Column("last_seen", "Last seen", "time")
    tools = [
        look.whole_tool_column(),
        h.Column("warning", "Warning",
                 of=lambda each: "warning" if each.cohesion.warning else ""),
        h.Column("score", "Cohesion", "number", "1: all on one axis",
                 lambda each: each.cohesion.score),
        h.Column("failures", "Boundary failures", "number",
                 of=lambda each: each.cohesion.failures),
        h.Column("axes", "Axes with their shares",
                 of=lambda each: _list_shares(each.cohesion.axes)),
    ]  # fmt: skip
    clusters = [
        h.Column("name", "Cluster"),
        h.Column("members", "Wordings, with how often", of=lambda each: ", ".join(
            f"{member.axis} ({w.format_count(member.count)})" for member in each.members)),
        h.Column("tools", "Tools", of=lambda each: ", ".join(map(w.format_tool, each.tools))),
        h.Column("count", "Named", "number"),
        weight,
        h.Column("first_seen", "First seen", "time"),
        last,
    ]  # fmt: skip
    pairs = [
        h.Column("one", "Cluster", of=lambda each: each.names[0]),
        h.Column("other", "Named with", of=lambda each: each.names[1]),
        h.Column("count", "Referrals", "number"),
        weight,
        last,
    ]
    warnings = []
    for each in warned:
        shown = [
            ("How sure", cohesion_words(each.cohesion)),
            ("Axes", _list_shares(each.cohesion.axes)),
        ]
        messages = (
            one.message
            for one in advice.get(tool_place(each.tool), ())
            if one.kind in ("split", "recompose")
        )
        shown += [("Recommended", w.escape_hidden(text, w.MAX_SENTENCE)) for text in messages]
        warnings.append((each, shown))
    return look.show_page(
        "Boundaries",
        "boundaries",
        report=report,
        clustered=clustered_words(report),
        mapped=map_axes(report),
        lighter=len(report.clusters) - MAX_MAPPED,
        warnings=warnings,
        tables=[
            ("Tools with boundary failures", tools, report.tools),
            ("Clusters of axes", clusters, report.clusters),
            ("Clusters that co-occur", pairs, report.co_occurrences),
        ],
    )


def map_axes(report: Boundaries) -> list[tuple[str, str, float]]:
    """Return the weightiest clusters with those they co-occur with, as bars.

    A bar has a name, a count and a length.
    """
    beside = gather_values(
        (cluster_id, w.format_line(other))
        for pair in report.co_occurrences
        for cluster_id, other in zip(pair.cluster_ids, pair.names[::-1], strict=True)
    )
    shown = report.clusters[:MAX_MAPPED]
    heaviest = max((each.weight for each in shown), default=0.0) or 1.0
    found = []
    for each in shown:
        names = " and ".join(beside.get(each.cluster_id, [])[:3])
        name = f"{w.format_line(each.name)}{', with ' if names else ''}{names}"
        found.append((name, w.format_count(each.count), each.weight / heaviest))
    return found


def cohesion_words(cohesion: Cohesion) -> str:
    """Return how sure a warning is, and the figures it is made from."""
    value = "unknown" if cohesion.score is None else w.format_score(cohesion.score)
    without = cohesion.without_evidence
    missing = f", {w.format_count(without)} of them without evidence" if without else ""
    return (
        f"Cohesion {value} (1 is all on one axis), from {w.format_count(cohesion.failures)} "
        f"boundary failures{missing}. It is more than chance with a probability of "
        f"{w.format_percent(cohesion.confidence)}."
    )


def clustered_words(report: Boundaries) -> str:
    """Return when wordings were last gathered into clusters, and what has come since."""
    if report.clustered_at is None:
        return "Wordings are not gathered into clusters yet; each stands for itself."
    come = f"Come since, each standing for itself: {w.format_noun(report.unclustered, 'wording')}."
    rest = come if report.unclustered else "No wording has come since."
    at = w.format_moment(report.clustered_at)
    return f"Wordings were last gathered into clusters at {at}. {rest}"


def _list_shares(axes: Iterable[AxisShare]) -> str:
    return ", ".join(f"{w.format_line(each.name)} {w.format_percent(each.share)}" for each in axes)
