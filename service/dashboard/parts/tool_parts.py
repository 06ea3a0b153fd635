"""The parts of a tool's page that stand as they were when it was opened."""

from aftercall.models import Recommendation, ToolHealth
from service.dashboard.parts.copyable import Copyable
from service.dashboard.shown.boundary_rows import cohesion_words
from service.dashboard.shown.call_text import one_line, visible
from service.dashboard.shown.numbers import count, moment, percent
from service.dashboard.tables import Column, DataTable
from service.dashboard.tool_reads import ToolEvidence
from service.dashboard.widgets import (
    Lines,
    Value,
    badge,
    box,
    empty,
    facts,
    section,
    text,
)

_MAX_SAID = 1_000
_MAX_QUOTES = 3

_ASKS = {
    "repair": "Repair the implementation",
    "tighten_contract": "Tighten the contract",
    "split": "Split the tool",
    "recompose": "Split it, and use other tools for the parts that these do",
    "review_promotion": "Review the promotion",
}


def show_about(evidence: ToolEvidence) -> None:
    """As it is registered, or how to register it."""
    with section("About"):
        if evidence.stored is None:
            empty(
                "It is not registered; this was learned from its calls.",
                "With its schema registered (PUT /tools/{toolId}), suggestions are checked before "
                "they are made.",
            )
            return
        tool = evidence.stored.tool
        if tool.description:
            text(visible(tool.description, _MAX_SAID))
        pairs: list[tuple[str, Value]] = [
            ("Id", one_line(tool.tool_id, 256)),
            ("Server", one_line(tool.server_name or "none", 256)),
            ("Version", one_line(tool.version or "none", 256)),
            ("Namespace", one_line(tool.namespace or "its id", 256)),
            ("Tags", one_line(", ".join(tool.tags) or "none", _MAX_SAID)),
            ("Not offered for", one_line(", ".join(evidence.not_for) or "nothing", _MAX_SAID)),
            ("Schema", tool.schema_hash[:16] if tool.schema_hash else "none"),
            ("Registered", f"{moment(tool.updated_at)} UTC"),
        ]
        facts(pairs)


def show_recommendations(evidence: ToolEvidence) -> None:
    """What the evidence asks of the tool's builders."""
    if not evidence.recommendations:
        return
    with section(
        "Recommendations", note="Answer one with PUT /recommendations/{recommendationId}."
    ):
        for each in evidence.recommendations:
            _recommendation(each)


def _recommendation(each: Recommendation) -> None:
    with box("div", "recommendation"):
        with box("h3"):
            text(_ASKS[each.kind], "span")
            badge(each.state, "warn" if each.state == "open" else "plain")
        text(one_line(each.message, _MAX_SAID))
        rests = ", ".join(f"{one_line(c.what, 80)} {count(c.count)}" for c in each.evidence.counts)
        pairs: list[tuple[str, Value]] = [
            ("Sure", percent(each.confidence)),
            ("Rests on", rests or "nothing counted"),
        ]
        if each.evidence.suggested_splits:
            first = each.evidence.suggested_splits[0]
            pairs.append(("Suggested split", one_line(", then ".join(first), _MAX_SAID)))
        if each.evidence.other_tools:
            pairs.append(("Other tools", one_line(", ".join(each.evidence.other_tools), _MAX_SAID)))
        pairs.append(("Id", each.recommendation_id))
        facts(pairs)
        if each.evidence.quotes:
            with box("details"):
                text("What was said", "summary")
                Lines().set([one_line(q, 500) for q in each.evidence.quotes[:_MAX_QUOTES]])


def show_cohesion(health: ToolHealth) -> None:
    """How far its boundary failures stay on one axis."""
    cohesion = health.cohesion
    with section("Cohesion"):
        if cohesion.score is None:
            text("It never referred a request elsewhere, so nothing is known of its boundaries.")
            return
        if cohesion.warning:
            badge("asked for several jobs", "warn")
            text(one_line(cohesion.message, _MAX_SAID), "p", "lesson")
        text(cohesion_words(cohesion))
        DataTable(
            "Axes of this tool's boundary failures",
            [
                Column("name", "Axis"),
                Column("share", "Share", "percent", note="Lately; a failure may name several."),
                Column("count", "Failures", "number"),
                Column("words", "In the tool's words"),
            ],
            "key",
            plain=True,
        ).set(
            [
                {
                    "key": each.cluster_id,
                    "name": one_line(each.name, 120),
                    "share": each.share,
                    "count": each.count,
                    "words": one_line(", ".join(each.axes), 500),
                }
                for each in cohesion.axes
            ]
        )


def show_marks(evidence: ToolEvidence) -> None:
    """Failures that somebody marked."""
    if not evidence.marks:
        return
    with section("Marked failures", note="Latest first; weight is how much each still counts."):
        DataTable(
            "Marked failures of this tool",
            [
                Column("at", "When", "time"),
                Column("severity", "Severity"),
                Column("weight", "Weight", "number"),
                Column("scenario", "Scenario"),
                Column("message", "Error"),
            ],
            "key",
            page_size=10,
        ).set(
            [
                {
                    "key": str(place),
                    "at": each.at,
                    "severity": each.severity,
                    "weight": each.weight,
                    "scenario": one_line(each.scenario, 500),
                    "message": one_line(each.error_message or "", 500),
                }
                for place, each in enumerate(evidence.marks)
            ]
        )


def show_known(evidence: ToolEvidence) -> None:
    """What an agent would be told."""
    with section(
        "What agents are told",
        note="The block of GET /known-tools for this tool, for a prompt. It is data.",
    ):
        if not evidence.known_text:
            text("Nothing is told of it yet.")
            return
        Copyable("Copy").set(evidence.known_text)
