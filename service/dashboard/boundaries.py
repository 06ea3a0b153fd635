"""*Boundaries*: which jobs tools refer elsewhere, which come together, and which tools mix them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from aftercall.models import (
    AxisCluster,
    AxisShare,
    Boundaries,
    Cohesion,
    CoOccurrence,
    ToolBoundary,
)
from service.dashboard.html import (
    Column,
    Html,
    badge,
    code,
    empty,
    facts,
    link,
    markup,
    note,
    p,
    section,
    tag,
)
from service.dashboard.look import Look, Shown
from service.dashboard.tools import ToolId, place_of
from service.dashboard.words import (
    MAX_SENTENCE,
    count,
    counted,
    moment,
    one_line,
    percent,
    score,
    tool_name,
    visible,
)
from service.health import boundaries as boundary_report
from service.recommendations import RecommendationQuery, recommendations

MAX_LISTED: Final = 200
"""Clusters, co-occurrences and tools, of each at most so many."""
MAX_NODES: Final = 24
"""Clusters of the map, the weightiest: more names than that cover each other on a circle."""
_MAX_WARNED: Final = 50
_MAX_RECOMMENDATIONS: Final = 500
_SMALLEST, _LARGEST = 6.0, 22.0  # radius of a disc in pixels
_THINNEST, _THICKEST = 1.0, 9.0  # pixels

_REFERRAL: Final = """{
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


async def boundaries(look: Look) -> Shown:
    """The page."""
    report = await boundary_report(*look.space, MAX_LISTED)
    if not (report.clusters or report.tools):
        return Shown("Boundaries", _no_referral())
    content = [
        note(clustered_words(report)),
        _map(report) if report.clusters else None,
        await _warnings(look, report),
        _tables(look, report),
    ]
    return Shown("Boundaries", content)


def _map(report: Boundaries) -> Html:
    lighter = len(report.clusters) - MAX_NODES
    return section(
        "Map of boundary axes",
        drawn_map(report),
        note(f"{count(lighter)} lighter clusters are in the table only." if lighter > 0 else None),
        remark="A disc is a cluster of wordings that mean one capability; its area is the "
        "recency-weighted count of referrals that name it; the number is the plain count. A line "
        "joins clusters that are named in the same referrals; the wider, the more often.",
    )


async def _warnings(look: Look, report: Boundaries) -> Html | None:
    found = [each for each in report.tools if each.cohesion.warning][:_MAX_WARNED]
    if not found:
        return None
    advice = await look.rarely("advice on boundaries", lambda: _advice(look))
    shown = [_warning(look, each, advice.get(place_of(each.tool), ())) for each in found]
    return section("Tools that are asked for several jobs", shown)


def _warning(look: Look, each: ToolBoundary, advice: Sequence[str]) -> list[Html]:
    return [
        tag("h3", tool_name(each.tool)),
        badge("asked for several jobs", "warn"),
        p(visible(each.cohesion.message, MAX_SENTENCE)),
        facts(
            ("How sure", cohesion_words(each.cohesion)),
            ("Axes", _shares(each.cohesion.axes)),
            *(("Recommended", message) for message in advice),
        ),
        link("Its page, with recommendations and referrals", look.tool(each.tool)),
    ]


async def _advice(look: Look) -> dict[ToolId, list[str]]:
    asked = RecommendationQuery(limit=_MAX_RECOMMENDATIONS)
    queue = await recommendations(*look.space, asked)
    found: dict[ToolId, list[str]] = {}
    for each in queue.recommendations:
        if each.tool is not None and each.kind in ("split", "recompose"):
            found.setdefault(place_of(each.tool), []).append(visible(each.message, MAX_SENTENCE))
    return found


def _tables(look: Look, report: Boundaries) -> list[Html]:
    tools = look.table(
        "Tools with boundary failures",
        [
            look.whole_tool_column(),
            Column("warning", "Warning",
                   of=lambda each: "warning" if each.cohesion.warning else ""),
            Column("score", "Cohesion", "number", "1: all on one axis",
                   lambda each: each.cohesion.score),
            Column("failures", "Boundary failures", "number",
                   of=lambda each: each.cohesion.failures),
            Column("axes", "Axes with their shares", of=lambda each: _shares(each.cohesion.axes)),
        ],
        report.tools,
    )  # fmt: skip
    weight = Column("weight", "Weight", "number", "halves every 7 days")
    last = Column("last_seen", "Last seen", "time")
    clusters = look.table(
        "Clusters of axes",
        [
            Column("name", "Cluster"),
            Column("members", "Wordings, with how often", of=lambda each: ", ".join(
                f"{member.axis} ({count(member.count)})" for member in each.members)),
            Column("tools", "Tools", of=lambda each: ", ".join(map(tool_name, each.tools))),
            Column("count", "Named", "number"),
            weight,
            Column("first_seen", "First seen", "time"),
            last,
        ],
        report.clusters,
    )  # fmt: skip
    pairs = look.table(
        "Clusters that co-occur",
        [
            Column("one", "Cluster", of=lambda each: each.names[0]),
            Column("other", "Named with", of=lambda each: each.names[1]),
            Column("count", "Referrals", "number"),
            weight,
            last,
        ],
        report.co_occurrences,
        missing="No two clusters are named in one referral.",
    )
    return [
        section("Tools with boundary failures", tools),
        section("Clusters of axes", clusters),
        section("Clusters that co-occur", pairs),
    ]


def _no_referral() -> Html:
    missing = empty(
        "No tool has referred a request elsewhere yet.",
        "A referral is a tool's own word that a request is not its job: a failure of the type "
        "wrong_tool_boundary which names the capabilities that the request mixes. Record one "
        "with POST /executions, or raise Outcome.wrong_tool_boundary of the SDK in the tool.",
    )
    example = section(
        "What a referral looks like", code(_REFERRAL), remark="Beside what every execution has."
    )
    return markup([missing, example])


def cohesion_words(cohesion: Cohesion) -> str:
    """How sure a warning is, and what it is made from."""
    value = "unknown" if cohesion.score is None else score(cohesion.score)
    without = cohesion.without_evidence
    missing = f", {count(without)} of them without evidence" if without else ""
    return (
        f"Cohesion {value} (1 is all on one axis), from {count(cohesion.failures)} boundary "
        f"failures{missing}. It is more than chance with a probability of "
        f"{percent(cohesion.confidence)}."
    )


def clustered_words(report: Boundaries) -> str:
    """When wordings were last gathered into clusters, and what has come since."""
    if report.clustered_at is None:
        return "Wordings are not gathered into clusters yet; each stands for itself."
    rest = "No wording has come since."
    if report.unclustered:
        rest = f"Come since, each standing for itself: {counted(report.unclustered, 'wording')}."
    return f"Wordings were last gathered into clusters at {moment(report.clustered_at)}. {rest}"


def _shares(axes: Iterable[AxisShare]) -> str:
    return ", ".join(f"{one_line(each.name)} {percent(each.share)}" for each in axes)


def drawn_map(report: Boundaries) -> Html:
    """The weightiest clusters on a circle, next to those they co-occur with.

    Places follow from counts and ids alone, so a map that is drawn again lies as it lay.
    """
    shown = {each.cluster_id: each for each in report.clusters[:MAX_NODES]}
    pairs = [each for each in report.co_occurrences if shown.keys() >= set(each.cluster_ids)]
    heaviest = max((each.weight for each in shown.values()), default=0.0) or 1.0
    widest = max((each.weight for each in pairs), default=0.0) or 1.0
    at: dict[str, tuple[float, float]] = {}
    for place, key in enumerate(circle_order(list(shown.values()), pairs)):
        turn = 2 * math.pi * place / len(shown)
        at[key] = (0.0, 0.0) if len(shown) == 1 else (math.sin(turn), -math.cos(turn))
    ties = [
        tag("line", x1=_across(at[one][0]), y1=_across(at[one][1]), x2=_across(at[other][0]),
            y2=_across(at[other][1]), class_="tie",
            stroke_width=f"{_THINNEST + (_THICKEST - _THINNEST) * each.weight / widest:.1f}")
        for each in pairs
        for one, other in (each.cluster_ids,)
    ]  # fmt: skip
    discs, names = list[Html](), list[Html]()
    for key, (x, y) in at.items():
        each, left, top = shown[key], _across(x), _across(y)
        # The eye compares areas, so the root of the weight is the radius.
        radius = _SMALLEST + (_LARGEST - _SMALLEST) * math.sqrt(each.weight / heaviest)
        name, often = one_line(each.name), count(each.count)
        title = tag("title", f"{name}: {often}")
        discs.append(tag("circle", title, cx=left, cy=top, r=f"{radius:.1f}", class_="disc"))
        names.append(
            tag("div", tag("span", name, class_="name"), tag("span", often),
                class_=f"node {_outward(x, y)}", style=f"left:{left};top:{top};--r:{radius:.0f}px")
        )  # fmt: skip
    label = (
        f"Map of {count(len(shown))} clusters of boundary axes and "
        f"{count(len(pairs))} pairs that co-occur; the tables below say the same."
    )
    area = tag("div", tag("svg", ties, discs), names, role="img", aria_label=label)
    return tag("figure", area, class_="chart map")


def circle_order(clusters: Sequence[AxisCluster], pairs: Sequence[CoOccurrence]) -> list[str]:
    """Ids in the order of the circle: after each the one that co-occurs most with it.

    By counts and ids, for weights fade by the hour and the order must not.
    """
    ties: dict[str, dict[str, int]] = {each.cluster_id: {} for each in clusters}
    for pair in pairs:
        one, other = pair.cluster_ids
        ties[one][other] = ties[other][one] = pair.count
    left, order = set(ties), list[str]()
    while left:
        near: Mapping[str, int] = ties[order[-1]] if order else {}
        order.append(max(left, key=lambda id_: (near.get(id_, 0), sum(ties[id_].values()), id_)))
        left.remove(order[-1])
    return order


def _across(place: float) -> str:
    return f"{50 + 50 * place:.2f}%"


def _outward(x: float, y: float) -> str:
    """The side of a disc on which its name covers nothing."""
    if abs(x) < 0.2:
        return "below" if y >= 0 else "above"
    return "right" if x > 0 else "left"
