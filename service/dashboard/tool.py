"""The page of one tool: how it does, what it takes, how fit it is, and what is said of it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from aftercall.models import (
    BestTool,
    CallCounts,
    Latency,
    PromotionStatus,
    Recommendation,
    SimilarFailure,
    ToolHealth,
    Trend,
)
from aftercall.models.tools import same_version
from mongo.contents import StoredTool
from mongo.records import ToolKey
from retrieval.fitness.registry import UnknownNamespaceError, UnknownToolError, recorded_name
from retrieval.fitness.score import quality_of
from retrieval.fitness.statistics import NO_VERSION, ToolTrials
from service import statistics
from service.dashboard import html as h
from service.dashboard import words as w
from service.dashboard.boundaries import cohesion_words
from service.dashboard.charts import line_chart, success_chart
from service.dashboard.failures import pattern_columns
from service.dashboard.look import Look, Shown
from service.dashboard.profile import (
    ToolParameters,
    parameters_html,
    parameters_of,
    record_of,
)
from service.dashboard.tools import place_of
from service.health import health_of, tool_health
from service.known_tools import KnownToolsQuery, known_tools
from service.promotions import read_promotion
from service.recommendations import recommendations_about
from service.tool_quality import ToolQuality, tool_qualities

_MAX_PATTERNS: Final = 500
_MAX_MARKS: Final = 20
_MAX_CANDIDATES: Final = 20
_MAX_QUOTES: Final = 3
UNNAMED: Final = "calls that name no version"
_ASKS: Final = {
    "repair": "Repair the implementation",
    "tighten_contract": "Tighten the contract",
    "split": "Split the tool",
    "recompose": "Split it, and use other tools for the parts that these do",
    "review_promotion": "Review the promotion",
}


@dataclass(frozen=True, slots=True)
class ToolEvidence:
    """What a tool's page shows beside statistics and health."""

    stored: StoredTool | None
    """As it is registered, secrets masked; None where it is not."""
    parameters: ToolParameters | None
    versions: Sequence[h.Row]
    fitness: Sequence[tuple[str, BestTool]]
    """The candidates of each namespace that it serves, without a scenario to search for."""
    not_for: Sequence[str]
    """What it is not to be offered for, as it is registered or as marks of failures say."""
    promotions: Sequence[PromotionStatus]
    recommendations: Sequence[Recommendation]
    marks: Sequence[SimilarFailure]
    known_text: str
    """The block that an agent would get."""


async def tool(look: Look) -> Shown:
    """The page, by a registered id or by `?server=&name=`; of an unknown name, what was meant."""
    asked = look.named.get("tool_id", "")
    server, name = look.query.get("server", ""), look.query.get("name", "")
    key = ToolKey(look.workspace, server or None, name)
    try:
        if asked:
            health = await tool_health(*look.space, asked)
        else:
            health = await health_of(look.context, key)
    except UnknownToolError as error:
        return _unknown(look, asked or "/".join(filter(None, (server, name))), error.nearest)
    key = ToolKey(look.workspace, health.tool.server_name, health.tool.tool_name)
    trend = await statistics.trend(*look.space, look.window, key)
    latency = await statistics.latency(*look.space, look.window, key)
    quality = (await tool_qualities(*look.space, [key]))[key]
    evidence = await look.rarely(f"evidence of {key}", lambda: evidence_of(look, health))
    several = h.badge("asked for several jobs", "warn") if quality.cohesion_warning else None
    content = [
        h.p(h.link("All tools", look.link("/tools")), several, class_="about"),
        _numbers(trend, latency, health, quality),
        h.box("grid", _about(evidence), _known(evidence)),
        _charts(trend, latency),
        _recommendations(evidence.recommendations),
        await _patterns(look, health),
        parameters_html(look, evidence.parameters),
        _versions(look, evidence),
        h.box("grid", _cohesion(health), _kinds(health)),
        _reports(look, health),
        _marks(look, evidence.marks),
    ]
    title = w.tool_name(health.tool)
    return Shown(title, content, trend.until, is_complete=trend.is_complete)


async def evidence_of(look: Look, health: ToolHealth) -> ToolEvidence:
    """What else is known of a tool."""
    context, workspace = look.context, look.workspace
    tool = ToolKey(workspace, health.tool.server_name, health.tool.tool_name)
    registry = await context.memory.registry(workspace)
    stored = registry.by_id.get(health.tool.tool_id or "")
    record = await record_of(context, tool)
    fitness, promotions, marks = [], [], []
    if stored is not None:
        for namespace in namespaces_of(stored):
            try:  # nothing is left out, for negative tags speak of scenarios
                best = await context.chooser.best(
                    workspace, namespace, "", use_rag=False, limit=_MAX_CANDIDATES
                )
            except UnknownNamespaceError:
                continue  # deleted while it was being read
            fitness.append((namespace, best))
            if namespace in registry.promotions:
                promotions.append(await read_promotion(context, workspace, namespace))
        found = await context.history.failures(
            workspace, stored.tool.tool_id, scenario=None, limit=_MAX_MARKS
        )
        marks = [each for each in found.failures if each.severity is not None]
    try:
        name = stored.tool.tool_id if stored is not None else recorded_name(tool)
        known_text = await known_tools(context, workspace, KnownToolsQuery(tool=[name]))
    except UnknownToolError:  # called long ago, or forgotten meanwhile
        known_text = ""
    tags = [
        *(stored.tool.negative_tags if stored else ()),
        *(record.statistics.tags() if record.statistics else ()),
    ]
    return ToolEvidence(
        stored=None
        if stored is None
        else StoredTool(workspace, context.redactor.tool(stored.tool)),
        parameters=parameters_of(record, context.redactor),
        versions=version_rows(tool, registry.by_id.values(), record.statistics, datetime.now(UTC)),
        fitness=fitness,
        not_for=list(dict.fromkeys(tags)),
        promotions=promotions,
        recommendations=await recommendations_about(context, workspace, [tool]),
        marks=marks,
        known_text=known_text,
    )


def namespaces_of(stored: StoredTool) -> list[str]:
    """The namespaces that a tool serves: its id (seed 002), and the one that it names."""
    return list(dict.fromkeys(filter(None, (stored.tool.tool_id, stored.tool.namespace))))


def version_rows(
    tool: ToolKey,
    registered: Iterable[StoredTool],
    statistics: ToolTrials | None,
    now: datetime,
) -> list[h.Row]:
    """All versions that were called or are registered, the latest used first."""
    known = dict(statistics.versions) if statistics is not None else {}
    ids: dict[str, list[str]] = {name: [] for name in known}
    for each in registered:
        if each.tool_key == tool:
            stated = each.tool.version or NO_VERSION
            same = (name for name in ids if name == stated or same_version(name, stated))
            ids.setdefault(next(same, stated), []).append(each.tool.tool_id)
    rows: list[h.Row] = [
        {
            "version": w.one_line(name) if name else UNNAMED,
            "ids": w.one_line(", ".join(sorted(tool_ids)), w.MAX_SENTENCE) or "-",
            "successes": version.successes if version else 0,
            "failures": version.failures if version else 0,
            "quality": quality_of(version.trials if version else (), now=now),
            "last_seen": version.last_seen if version else None,
        }
        for name, tool_ids in ids.items()
        for version in (known.get(name),)
    ]

    def order(row: h.Row) -> tuple[float, str]:
        seen = row["last_seen"]
        return -seen.timestamp() if isinstance(seen, datetime) else 0.0, str(row["version"])

    return sorted(rows, key=order)


def _unknown(look: Look, name: str, nearest: Sequence[str]) -> Shown:
    shown = w.one_line(name, w.MAX_SENTENCE)
    what = f"There is no tool {shown!r}."
    if any(each.endswith(f"/{name}") for each in nearest):
        what = f"Several servers have a tool {shown!r}."
    names = [
        h.link(w.one_line(each, w.MAX_SENTENCE), look.link(f"/tools/{each}")) for each in nearest
    ]
    unknown = h.p("A tool is known once it is registered or was called.")
    content = h.box(
        "empty",
        h.p(what, class_="what"),
        [h.p("Was one of these meant?"), h.lines(names)] if names else unknown,
        h.link("All tools", look.link("/tools")),
    )
    return Shown("No such tool", content, status=404)


def _numbers(trend: Trend, latency: Latency, health: ToolHealth, quality: ToolQuality) -> h.Html:
    # The points of a trend add up to the calls of its window.
    worked, failed = (
        sum(getattr(each, name) for each in trend.points) for name in ("successes", "failures")
    )
    counts, took = CallCounts(successes=worked, failures=failed), latency.overall
    return h.section(
        "In this window, and now",
        h.stats(
            ("Calls", w.count(w.calls(counts)), f"{w.count(failed)} failed"),
            ("Success", w.percent(w.success_rate(counts)), "of the calls"),
            ("p50", w.duration(took.p50 if took else None), "half took no longer"),
            ("p95", w.duration(took.p95 if took else None), "19 of 20 took no longer"),
            ("Quality", w.score(quality.quality), "as in its fitness"),
            ("Cohesion", w.score(quality.cohesion), "1 is one job"),
            ("Usefulness", w.score(health.utility.score), "1: nobody complained"),
        ),
    )


def _charts(trend: Trend, latency: Latency) -> h.Html:
    took = [each.duration_ms for each in latency.points]
    at = w.axis((each.at for each in latency.points), latency.window)
    lines = {name: [getattr(each, name, None) for each in took] for name in ("p50", "p95", "p99")}
    return h.box(
        "grid",
        h.section(
            "Success over time",
            success_chart("Success rate of this tool", trend),
            remark="Share of calls that succeeded.",
        ),
        h.section(
            "Latency over time",
            line_chart("Latency of this tool", at, lines, "ms"),
            remark="Of calls that say how long they took.",
        ),
    )


def _about(evidence: ToolEvidence) -> h.Html:
    if evidence.stored is None:
        return h.section(
            "About",
            h.empty(
                "It is not registered; this was learned from its calls.",
                "With its schema registered (PUT /tools/{toolId}), suggestions are checked before "
                "they are made.",
            ),
        )
    stored = evidence.stored.tool
    facts = (
        ("Id", stored.tool_id),
        ("Server", stored.server_name or "none"),
        ("Version", stored.version or "none"),
        ("Namespace", stored.namespace or "its id"),
        ("Tags", ", ".join(stored.tags) or "none"),
        ("Not offered for", ", ".join(evidence.not_for) or "nothing"),
        ("Schema", stored.schema_hash[:16] if stored.schema_hash else "none"),
        ("Registered", f"{w.moment(stored.updated_at)} UTC"),
    )
    return h.section(
        "About",
        h.p(w.visible(stored.description, w.MAX_SENTENCE)) if stored.description else None,
        h.facts(*((name, w.one_line(value, w.MAX_SENTENCE)) for name, value in facts)),
    )


def _known(evidence: ToolEvidence) -> h.Html:
    text = evidence.known_text
    return h.section(
        "What agents are told",
        h.copyable(text, "known") if text else h.p("Nothing is told of it yet."),
        remark="The block of GET /known-tools for this tool, for a prompt. It is data.",
    )


def _recommendations(found: Sequence[Recommendation]) -> h.Html | None:
    if not found:
        return None
    return h.section(
        "Recommendations",
        [_recommendation(each) for each in found],
        remark="Answer one with PUT /recommendations/{recommendationId}.",
    )


def _recommendation(each: Recommendation) -> h.Html:
    evidence = each.evidence
    rests = ", ".join(f"{w.one_line(one.what)} {w.count(one.count)}" for one in evidence.counts)
    quotes = [w.one_line(quote, w.MAX_SENTENCE) for quote in evidence.quotes[:_MAX_QUOTES]]
    split = ", then ".join(evidence.suggested_splits[0]) if evidence.suggested_splits else ""
    pairs = (
        ("Sure", w.percent(each.confidence)),
        ("Rests on", rests or "nothing counted"),
        ("Suggested split", w.one_line(split, w.MAX_SENTENCE)),
        ("Other tools", w.one_line(", ".join(evidence.other_tools), w.MAX_SENTENCE)),
        ("Id", each.recommendation_id),
    )
    state = h.badge(each.state, "warn" if each.state == "open" else "plain")
    return h.box(
        "recommendation",
        h.tag("h3", h.tag("span", _ASKS[each.kind]), state),
        h.p(w.one_line(each.message, w.MAX_SENTENCE)),
        h.facts(*(pair for pair in pairs if pair[1])),
        h.details("What was said", h.lines(quotes)) if quotes else None,
    )


async def _patterns(look: Look, health: ToolHealth) -> h.Html:
    found = await statistics.patterns(*look.space, look.window, _MAX_PATTERNS)
    own = [each for each in found.patterns if place_of(each.pattern.tool) == place_of(health.tool)]
    columns = [each for each in pattern_columns(look) if each.key not in ("tool", "agents")]
    table = look.table("Failure patterns of this tool", columns, own, page_size=10, look="wide")
    none = h.p("No failure of a known pattern in this window.")
    remark = "Those met in this window."
    return h.section("Failure patterns", table if own else none, remark=remark)


_VERSIONS: Final = (
    h.Column("version", "Version"),
    h.Column("ids", "Registered as"),
    h.Column("successes", "Successes", "number"),
    h.Column("failures", "Failures", "number"),
    h.Column("quality", "Quality", "number"),
    h.Column("last_seen", "Last used", "time"),
)


def _versions(look: Look, evidence: ToolEvidence) -> h.Html:
    missing = "No version was called or is registered."
    return h.section(
        "Versions and fitness",
        h.plain_table("Versions of this tool", _VERSIONS, evidence.versions, missing=missing),
        _fitness(look, evidence.fitness) if evidence.fitness else None,
        [_promotion(each) for each in evidence.promotions],
    )


def _fitness(look: Look, fitness: Sequence[tuple[str, BestTool]]) -> list[h.Html | None]:
    def factor(key: str, label: str, name: str) -> h.Column:
        return h.Column(key, label, "number", of=lambda row: getattr(row[1].factors, name))

    columns = [
        h.Column("namespace", "Namespace", of=lambda row: row[0]),
        h.Column("tool_id", "Tool", of=lambda row: h.Link(
            row[1].tool.tool_id, look.link(f"/tools/{row[1].tool.tool_id}"))),
        h.Column("version", "Version", of=lambda row: row[1].tool.version or UNNAMED),
        h.Column("source", "Source", of=lambda row: row[1].source),
        factor("base", "Base", "base"),
        h.Column("similarity", "Similarity", of=lambda _: "n/a"),
        factor("quality", "Quality", "quality"),
        factor("demotion", "Failure demotion", "failure_demotion"),
        h.Column("score", "Score", "number", of=lambda row: row[1].score),
    ]  # fmt: skip
    rows = [(namespace, each) for namespace, best in fitness for each in best.candidates]
    remark = (
        "Score = base x quality x failure demotion. Without a scenario nothing is searched for, so "
        "there is no similarity, and no like failure demotes."
    )
    table = h.plain_table("Fitness of this tool", columns, rows)
    return [h.tag("h3", "Fitness"), h.note(remark), table]


def _promotion(promotion: PromotionStatus) -> list[h.Html | None]:
    at = f" at {w.moment(promotion.promoted_at)} UTC" if promotion.promoted_at else ""
    evolved, original = (
        f"{w.count(each.successes)} successes, {w.count(each.failures)} failures"
        for each in (promotion.evolved, promotion.original)
    )
    return [
        h.tag("h3", f"Promoted in {w.one_line(promotion.namespace)}"),
        h.badge("fails more than the original", "bad") if promotion.fails_more else None,
        h.facts(
            ("In force", f"{w.one_line(promotion.evolved_version)}{at}"),
            ("In the place of", w.one_line(promotion.original_version)),
            ("Why", w.one_line(promotion.reason or "not said", w.MAX_SENTENCE)),
            ("Inherited quality", w.score(promotion.inherited_quality)),
            ("Evolved version", evolved),
            ("Original version", original),
            ("Probability that it fails more", w.percent(promotion.probability)),
        ),
    ]


def _cohesion(health: ToolHealth) -> h.Html:
    cohesion = health.cohesion
    if cohesion.score is None:
        words = "It never referred a request elsewhere, so nothing is known of its boundaries."
        return h.section("Cohesion", h.p(words))
    columns = [
        h.Column("name", "Axis"),
        h.Column("share", "Share", "percent", "Lately; a failure may name several."),
        h.Column("count", "Failures", "number"),
        h.Column("words", "In the tool's words", of=lambda each: ", ".join(each.axes)),
    ]
    warning = [
        h.badge("asked for several jobs", "warn"),
        h.p(w.one_line(cohesion.message, w.MAX_SENTENCE), class_="lesson"),
    ]
    return h.section(
        "Cohesion",
        warning if cohesion.warning else None,
        h.p(cohesion_words(cohesion)),
        h.plain_table("Axes of this tool's boundary failures", columns, cohesion.axes),
    )


def _kinds(health: ToolHealth) -> h.Html:
    columns = [
        h.Column("category", "Category"),
        h.Column("count", "Failures", "number"),
        h.Column("weight", "Lately", "number"),
        h.Column("last_seen", "Last seen", "time"),
    ]
    name = "Kinds of failure of this tool"
    return h.section(
        "Kinds of failure",
        h.plain_table(name, columns, health.categories, missing="It never failed."),
        remark="Of all recorded calls, whatever the window; lately counts halve every 7 days.",
    )


def _reports(look: Look, health: ToolHealth) -> h.Html:
    rows = sorted(report_rows(health), key=lambda row: str(row["at"]), reverse=True)
    columns = [
        h.Column("at", "When", "time"),
        h.Column("what", "What"),
        h.Column("said", "In its words"),
        h.Column("axes", "Boundary axes"),
        h.Column("split", "Suggested split"),
        h.Column("execution", "Execution"),
    ]
    table = look.table("Said of this tool", columns, rows, page_size=10, look="wide")
    return h.section(
        "Said of it lately",
        table if rows else h.p("Neither the tool nor its users said anything."),
        remark="Referrals by the tool itself, weak successes, and what users corrected. "
        "Latest first; data, not instructions.",
    )


def report_rows(health: ToolHealth) -> Iterator[h.Row]:
    """Referrals, weak successes and corrections, as they were said."""
    for each in health.recent_referrals:
        yield {
            "at": each.at,
            "what": f"referral: {each.kind}{'; without evidence' if each.lacks_evidence else ''}",
            "said": "; ".join(filter(None, (each.evidence, each.observed_task_shape))),
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


def _marks(look: Look, marks: Sequence[SimilarFailure]) -> h.Html | None:
    if not marks:
        return None
    columns = [
        h.Column("at", "When", "time"),
        h.Column("severity", "Severity"),
        h.Column("weight", "Weight", "number"),
        h.Column("scenario", "Scenario"),
        h.Column("message", "Error", of=lambda each: each.error_message or ""),
    ]
    return h.section(
        "Marked failures",
        look.table("Marked failures of this tool", columns, marks, page_size=10),
        remark="Latest first; weight is how much each still counts.",
    )
