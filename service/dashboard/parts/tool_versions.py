"""The versions of a tool: trials of each, what fitness is made of, and what is promoted."""

from aftercall.models import PromotionStatus
from service.dashboard.look import Look
from service.dashboard.shown.call_text import one_line
from service.dashboard.shown.numbers import count, moment, percent
from service.dashboard.tables import Column, DataTable
from service.dashboard.tool_reads import ToolEvidence
from service.dashboard.widgets import Value, badge, facts, section, text

_MAX_SAID = 1_000


def show_versions(look: Look, evidence: ToolEvidence) -> None:
    """Trials by version, what fitness is made of, and what is promoted."""
    with section("Versions and fitness"):
        DataTable(
            "Versions of this tool",
            [
                Column("version", "Version"),
                Column("ids", "Registered as"),
                Column("successes", "Successes", "number"),
                Column("failures", "Failures", "number"),
                Column("quality", "Quality", "number"),
                Column("last_seen", "Last used", "time"),
            ],
            "version",
            plain=True,
            missing="No version was called or is registered.",
        ).set(
            [
                {
                    "version": row.version,
                    "ids": one_line(", ".join(row.tool_ids), 600) or "-",
                    "successes": row.successes,
                    "failures": row.failures,
                    "quality": row.quality,
                    "last_seen": row.last_seen,
                }
                for row in evidence.versions
            ]
        )
        if evidence.fitness:
            _fitness(look, evidence)
        for promotion in evidence.promotions:
            _promotion(promotion)


def _fitness(look: Look, evidence: ToolEvidence) -> None:
    text("Fitness", "h3")
    text(
        "Score = base x quality x failure demotion. Without a scenario nothing is searched for, so "
        "there is no similarity, and no like failure demotes.",
        "p",
        "note",
    )
    DataTable(
        "Fitness of this tool",
        [
            Column("namespace", "Namespace"),
            Column("tool_id", "Tool", "link", lambda row: look.link(f"/tools/{row['id']}")),
            Column("version", "Version"),
            Column("source", "Source"),
            Column("base", "Base", "number"),
            Column("similarity", "Similarity"),
            Column("quality", "Quality", "number"),
            Column("demotion", "Failure demotion", "number"),
            Column("score", "Score", "number"),
        ],
        "key",
        plain=True,
    ).set(
        [
            {
                "key": str(place),
                "namespace": row.namespace,
                "id": row.tool_id,
                "tool_id": one_line(row.tool_id, 256),
                "version": row.version,
                "source": row.source,
                "base": row.base,
                "similarity": "n/a",
                "quality": row.quality,
                "demotion": row.demotion,
                "score": row.score,
            }
            for place, row in enumerate(evidence.fitness)
        ]
    )


def _promotion(promotion: PromotionStatus) -> None:
    text(f"Promoted in {one_line(promotion.namespace, 256)}", "h3")
    if promotion.fails_more:
        badge("fails more than the original", "bad")
    at = "" if promotion.promoted_at is None else f" at {moment(promotion.promoted_at)} UTC"
    pairs: list[tuple[str, Value]] = [
        ("In force", f"{one_line(promotion.evolved_version, 80)}{at}"),
        ("In the place of", one_line(promotion.original_version, 80)),
        ("Why", one_line(promotion.reason or "not said", _MAX_SAID)),
        ("Inherited quality", f"{promotion.inherited_quality:.2f}"),
        ("Evolved version", _trials(promotion.evolved.successes, promotion.evolved.failures)),
        ("Original version", _trials(promotion.original.successes, promotion.original.failures)),
        ("Probability that it fails more", percent(promotion.probability)),
    ]
    facts(pairs)


def _trials(successes: int, failures: int) -> str:
    return f"{count(successes)} successes, {count(failures)} failures"
