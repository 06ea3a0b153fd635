"""Builders for what is known of a tool, shared by the tests of known tools."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from aftercall.json_values import content_hash
from aftercall.models import ErrorCategory, Tool
from aftercall.redaction import Redactor
from mongo.records import ToolKey
from retrieval.answers.known_tools.facts import ToolFacts, facts_of
from retrieval.knowledge.patterns.clusters import AxisClusters
from retrieval.knowledge.rewrites.edits import Edit
from retrieval.knowledge.rows.health import KnownHealth, Referred, Tally
from retrieval.knowledge.tool.profile import ToolProfile
from retrieval.knowledge.tool.record import ToolRecord
from retrieval.knowledge.tool.rules import ToolKnowledge

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
CLEAN = Redactor().text


def tool(
    name: str = "git_log",
    *,
    server: str | None = "git",
    schema: dict[str, Any] | None = None,
    description: str = "",
) -> Tool:
    """A registered tool whose id is its server and name."""
    return Tool(
        tool_id=f"{server}.{name}"[:256],
        name=name,
        server_name=server,
        description=description,
        input_schema=schema,
        schema_hash=None if schema is None else content_hash(schema),
        updated_at=NOW,
    )


def record(registered: Tool | None = None, name: str = "git_log", **known: Any) -> ToolRecord:
    """What is known of a tool, which may be registered."""
    if registered is None:
        return ToolRecord(ToolKey("default", "git", name), None, **known)
    key = ToolKey("default", registered.server_name, registered.name)
    return ToolRecord(key, registered, **known)


def tally(count: int, days_ago: float = 0.0) -> Tally:
    """So many events at one moment."""
    made = Tally()
    for _ in range(count):
        made.add(NOW - timedelta(days=days_ago))
    return made


def health(successes: int = 0, failures: int = 0, **fields: Any) -> KnownHealth:
    """How a tool fared, today."""
    return KnownHealth(successes=tally(successes), failures=tally(failures), used_at=NOW, **fields)


def referred(kind: str = "wrong_tool_boundary", **fields: Any) -> Referred:
    """One referral of today."""
    return Referred.model_validate(
        {
            "at": NOW, "execution_id": "e", "kind": kind, "session": "s",
            "message": "not my job", **fields,
        }
    )  # fmt: skip


def knowledge(profile: ToolProfile | None = None, schema_hash: str = "") -> ToolKnowledge:
    """What calls showed, with nothing failed yet."""
    return ToolKnowledge(profiles={} if profile is None else {schema_hash: profile})


def mended(
    known: ToolKnowledge,
    signature: str,
    edits: list[Edit],
    *,
    count: int = 4,
    sessions: Sequence[str] = ("s1", "s2"),
    agents: Sequence[str] = ("ada", "bob"),
    category: ErrorCategory = "invalid_parameters",
) -> ToolKnowledge:
    """The same with a kind of failure that was mended by these edits, once in each session."""
    failed = known.signature_to_update(signature, category)
    failed.count = count
    failed.first_seen = failed.last_seen = NOW
    rule = failed.rule_to_update(edits)
    for number, session in enumerate(sessions):
        rule.add_repair(agents[number % len(agents)], session)
    return known


def told(known: ToolRecord, clusters: AxisClusters | None = None, **options: Any) -> ToolFacts:
    """The facts of a tool."""
    return facts_of(known, clusters=clusters or AxisClusters(), now=NOW, clean=CLEAN, **options)
