"""The page of one tool: its calls, its parameters, its fitness, and remarks about it."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from aftercall.models import RankedTool, ToolHealth
from aftercall.models.tools import same_version
from mongo.contents import StoredTool
from mongo.records import ToolKey
from retrieval.answers.fitness.score import quality_of
from retrieval.knowledge.rows.registry import UnknownNamespaceError, UnknownToolError, recorded_name
from retrieval.knowledge.rows.statistics import NO_VERSION, ToolTrials, VersionStatistics
from service.api.health import read_health, read_qualities, read_recorded_health
from service.api.known_tools import KnownToolsQuery, write_known_tools
from service.api.patterns import read_pattern_statistics
from service.api.promotions import read_promotion
from service.api.recommendations import find_recommendations
from service.api.statistics import ToolWindow, add_pairs, read_latency, read_trend
from service.dashboard import html as h
from service.dashboard import words as w
from service.dashboard.boundaries import cohesion_words
from service.dashboard.charts import line_chart, rates_chart
from service.dashboard.failures import pattern_columns
from service.dashboard.look import Look, Shown
from service.dashboard.profile import columns_of, parameters_of, record_of
from service.dashboard.recommendations import ASKS
from service.dashboard.tools import tool_place
from service.errors import NotPromotedError
from service.requests import WindowList

_MAX_LINES: Final = 4
"""Versions in a chart."""
UNNAMED: Final = "calls that name no version"


async def show_tool(look: Look) -> Shown:
    """Return the page, by a registered id or by `?server=&name=`.

    For an unknown name it shows the nearest names.
    """
    asked = look.named.get("tool_id", "")
    server, name = look.query.get("server", ""), look.query.get("name", "")
    key = ToolKey(look.workspace, server or None, name)
    try:
        if asked:
            health = await read_health(look.space, asked)
        else:
            health = await read_recorded_health(look.context, key)
    except UnknownToolError as error:
        recorded = f"{server}/{name}" if server else name
        return _show_unknown(look, asked or recorded, error.nearest)
    key = ToolKey(look.workspace, health.tool.server_name, health.tool.tool_name)
    now = ToolWindow(window=look.window, tool_name=key.tool_name, server_name=key.server_name)
    former = now.model_copy(update={"window": look.before})
    trend = await read_trend(look.space, now)
    latency = await read_latency(look.space, now)
    evidence = await look.read_rarely(f"evidence of {key}", lambda: read_evidence(look, health))
    met = await read_pattern_statistics(look.space, WindowList(window=look.window, limit=500))
    earlier = await read_trend(look.space, former)
    qualities = await read_qualities(look.space, [key])
    took = [each.duration_ms for each in latency.points]
    at = w.label_axis([each.at for each in latency.points])
    lines: dict[str, list[float | None]] = {}
    for quantile in ("p50", "p95", "p99"):
        lines[quantile] = [getattr(each, quantile, None) for each in took]
    parameters = evidence["parameters"]
    rows = parameters.rows if parameters else []
    rates = {}
    for version in reversed(trend.versions[:_MAX_LINES]):
        rates[w.format_line(version.version)] = version.points
    place = tool_place(health.tool)
    patterns = [each for each in met.patterns if tool_place(each.pattern.tool) == place]
    candidates: list[tuple[str, RankedTool]] = []
    for namespace, best in evidence["fitness"]:
        candidates += [(namespace, each) for each in best.candidates]
    reports = sorted(report_rows(health), key=lambda row: str(row["at"]), reverse=True)
    return look.show_page(
        w.format_tool(health.tool),
        "tool",
        of=trend,
        health=health,
        quality=qualities[key],
        evidence=evidence,
        counts=add_pairs((each.successes, each.failures) for each in trend.points),
        earlier=add_pairs((each.successes, each.failures) for each in earlier.points),
        took=latency.overall,
        success=rates_chart("Success rate of this tool", trend, {"Succeeded": trend.points}),
        by_version=rates_chart("Success rate by version", trend, rates) if rates else None,
        latency=line_chart("Latency of this tool", at, lines, "ms"),
        asks=ASKS,
        patterns=patterns,
        pattern_columns=[e for e in pattern_columns(look) if e.key not in ("server", "agents")],
        parameter_columns=columns_of(rows),
        candidates=candidates,
        fitness_columns=[
            h.Column("namespace", "Namespace", of=lambda row: row[0]),
            h.Column("tool_id", "Tool", of=lambda row: h.Anchor(
                row[1].tool.tool_id, look.link_path(f"/tools/{row[1].tool.tool_id}"))),
            h.Column("version", "Version", of=lambda row: row[1].tool.version or UNNAMED),
            h.Column("source", "Source", of=lambda row: row[1].source),
            h.Column("base", "Base", "number", of=lambda row: row[1].factors.base),
            h.Column("similarity", "Similarity", of=lambda _: "n/a"),
            h.Column("quality", "Quality", "number", of=lambda row: row[1].factors.quality),
            h.Column("demotion", "Failure demotion", "number",
                     of=lambda row: row[1].factors.failure_demotion),
            h.Column("score", "Score", "number", of=lambda row: row[1].score),
        ],
        columns=_COLUMNS,
        cohesion=cohesion_words(health.cohesion),
        reports=reports,
    )  # fmt: skip


async def read_evidence(look: Look, health: ToolHealth) -> dict[str, Any]:
    """Return what a tool's page shows next to statistics and health, such as fitness."""
    context, workspace = look.context, look.workspace
    tool = ToolKey(workspace, health.tool.server_name, health.tool.tool_name)
    registry = await context.memory.read_registry(workspace)
    stored = registry.by_id.get(health.tool.tool_id or "")
    record = await record_of(context, tool)
    fitness, promotions, marks = [], [], []
    if stored is not None:
        # A tool serves the namespace of its id, too (seed 002).
        for namespace in dict.fromkeys(filter(None, (stored.tool.tool_id, stored.tool.namespace))):
            try:  # nothing is left out, for negative tags speak of scenarios
                best = await context.chooser.find_best(
                    workspace, namespace, "", use_rag=False, limit=20
                )
            except UnknownNamespaceError:
                continue  # deleted while it was being read
            fitness.append((namespace, best))
            if namespace in registry.promotions:
                with suppress(NotPromotedError):  # removed meanwhile
                    promotions.append(await read_promotion(look.space, namespace))
        found = await context.history.list_failures(
            workspace, stored.tool.tool_id, scenario=None, limit=20
        )
        marks = [each for each in found.failures if each.severity is not None]
    try:
        name = stored.tool.tool_id if stored is not None else recorded_name(tool)
        known_text = await write_known_tools(look.space, KnownToolsQuery(tool=[name]))
    except UnknownToolError:  # called long ago, or forgotten meanwhile
        known_text = ""
    tags = [
        *(stored.tool.negative_tags if stored else ()),
        *(record.statistics.list_negative_tags() if record.statistics else ()),
    ]
    now = datetime.now(UTC)
    return {
        "tool": context.redactor.tool(stored.tool) if stored else None,
        "parameters": parameters_of(record, context.redactor),
        "versions": version_rows(tool, registry.by_id.values(), record.statistics, now),
        "fitness": fitness,
        "not_for": list(dict.fromkeys(tags)),
        "promotions": promotions,
        "recommendations": await find_recommendations(look.space, [tool]),
        "marks": marks,
        "known_text": known_text,
    }


def version_rows(
    tool: ToolKey, registered: Iterable[StoredTool], statistics: ToolTrials | None, now: datetime
) -> list[h.Row]:
    """Return all versions that were called or are registered, the latest used first."""
    known = dict(statistics.versions) if statistics is not None else {}
    ids: dict[str, list[str]] = {name: [] for name in known}
    for each in registered:
        if each.tool_key == tool:
            stated = each.tool.version or NO_VERSION
            same = (name for name in ids if name == stated or same_version(name, stated))
            ids.setdefault(next(same, stated), []).append(each.tool.tool_id)
    rows: list[h.Row] = []
    for name, tool_ids in ids.items():
        version = known.get(name) or VersionStatistics()
        row = {
            "version": w.format_line(name) if name else UNNAMED,
            "ids": w.format_line(", ".join(sorted(tool_ids)), w.MAX_SENTENCE) or "-",
            "successes": version.successes,
            "failures": version.failures,
            "quality": quality_of(version.trials, now=now),
            "last_seen": version.last_seen,
        }
        rows.append(row)

    def sort_key(row: h.Row) -> tuple[float, str]:
        seen = row["last_seen"]
        return -seen.timestamp() if isinstance(seen, datetime) else 0.0, str(row["version"])

    return sorted(rows, key=sort_key)


def _show_unknown(look: Look, name: str, nearest: Sequence[str]) -> Shown:
    shown = w.format_line(name, w.MAX_SENTENCE)
    page = look.show_page(
        "No such tool",
        "no_tool",
        name=repr(shown),
        several=any(each.endswith(f"/{name}") for each in nearest),
        names=[
            h.Anchor(w.format_line(each, w.MAX_SENTENCE), look.link_path(f"/tools/{each}"))
            for each in nearest
        ],
    )
    return replace(page, status=404)


_COLUMNS: Final = {
    "versions": (
        h.Column("version", "Version"),
        h.Column("ids", "Registered as"),
        h.Column("successes", "Successes", "number"),
        h.Column("failures", "Failures", "number"),
        h.Column("quality", "Quality", "number"),
        h.Column("last_seen", "Last used", "time"),
    ),
    "axes": (
        h.Column("name", "Axis"),
        h.Column("share", "Share", "percent", "Lately; a failure may name several."),
        h.Column("count", "Failures", "number"),
        h.Column("words", "In the tool's words", of=lambda each: ", ".join(each.axes)),
    ),
    "kinds": (
        h.Column("category", "Category"),
        h.Column("count", "Failures", "number"),
        h.Column("weight", "Lately", "number"),
        h.Column("last_seen", "Last seen", "time"),
    ),
    "reports": (
        h.Column("at", "When", "time"),
        h.Column("what", "What"),
        h.Column("said", "In its words"),
        h.Column("axes", "Boundary axes"),
        h.Column("split", "Suggested split"),
        h.Column("execution", "Execution"),
    ),
    "marks": (
        h.Column("at", "When", "time"),
        h.Column("severity", "Severity"),
        h.Column("weight", "Weight", "number"),
        h.Column("scenario", "Scenario"),
        h.Column("message", "Error", of=lambda each: each.error_message or ""),
    ),
}


def report_rows(health: ToolHealth) -> Iterator[h.Row]:
    """Return referrals, weak successes and corrections, as they were reported."""
    for each in health.recent_referrals:
        remark = "; without evidence" if each.lacks_evidence else ""
        words = filter(None, (each.evidence, each.observed_task_shape))
        yield {
            "at": each.at,
            "what": f"referral: {each.kind}{remark}",
            "said": "; ".join(words),
            "axes": ", ".join(each.boundary_axes),
            "split": ", then ".join(each.suggested_split),
            "execution": each.execution_id,
        }
    nothing = {"axes": None, "split": None}
    for weak in health.utility.recent_weak:
        said = {"said": weak.why, "execution": weak.execution_id}
        yield {"at": weak.at, "what": "weak success", **said, **nothing}
    for one in health.utility.recent_corrections:
        said = {"said": one.text, "execution": one.execution_id}
        yield {"at": one.at, "what": f"user's correction: {one.kind}", **said, **nothing}
