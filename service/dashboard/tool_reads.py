"""Reading what a tool's page shows, from the service's own answers."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from aftercall.json_values import JsonValue
from aftercall.models import (
    PromotionStatus,
    Recommendation,
    SimilarFailure,
    ToolHealth,
)
from aftercall.redaction import Redactor
from mongo.records import StoredTool, ToolKey
from retrieval.fitness.registry import UnknownNamespaceError, UnknownToolError, recorded_name
from service import health as tools_health
from service.context import Context
from service.dashboard.repair_reads import record_of
from service.dashboard.shown.profile_rows import ShownProfile, shown_profile
from service.dashboard.shown.version_rows import FitnessRow, VersionRow, fitness_rows, version_rows
from service.known_tools import KnownToolsQuery, known_tools
from service.recommendations import recommendations_about

MAX_MARKS: Final = 20

KNOWN_TOOLS_TOKENS: Final = 2_000
"""As `/known-tools` answers by default."""

_MAX_CANDIDATES: Final = 20


@dataclass(frozen=True, slots=True)
class ToolEvidence:
    """All that a tool's page shows beside statistics and health."""

    stored: StoredTool | None
    """As it is registered, secrets masked; None where it is not."""
    profile: ShownProfile | None
    versions: tuple[VersionRow, ...]
    fitness: tuple[FitnessRow, ...]
    not_for: tuple[str, ...]
    """What it is not to be offered for, as it is registered or as marks of failures say."""
    promotions: tuple[PromotionStatus, ...]
    recommendations: tuple[Recommendation, ...]
    marks: tuple[SimilarFailure, ...]
    known_text: str
    """The block that an agent would get."""


async def health_of(
    services: Context, workspace: str, *, tool_id: str, server: str, name: str
) -> ToolHealth:
    """The health of the tool that an address names.

    Args:
        services: the open services.
        workspace: whose.
        tool_id: a registered id, or a name that calls were recorded under; empty: by the others.
        server: the tool's server, or empty.
        name: the tool as calls name it.

    Raises:
        UnknownToolError: nothing is known of such a tool, or several servers have one.
        StoreError: when the store cannot say.
    """
    if tool_id:
        return await tools_health.tool_health(services, workspace, tool_id)
    return await tools_health.health_of(services, ToolKey(workspace, server or None, name))


async def tool_evidence(services: Context, workspace: str, health: ToolHealth) -> ToolEvidence:
    """What else is known of a tool.

    Raises:
        StoreError: when the store cannot say.
    """
    tool = ToolKey(workspace, health.tool.server_name, health.tool.tool_name)
    registry = await services.memory.registry(workspace)
    stored = registry.by_id.get(health.tool.tool_id or "")
    record = await record_of(services, tool)
    versions = version_rows(tool, registry.by_id.values(), record.statistics, datetime.now(UTC))
    tags = (
        stored.tool.negative_tags if stored else (),
        record.statistics.negative_tags if record.statistics else (),
    )
    return ToolEvidence(
        stored=None
        if stored is None
        else StoredTool(workspace, services.redactor.tool(stored.tool)),
        profile=shown_profile(
            record,
            services.redactor.text,
            lambda parameter, value: _masked(services.redactor, tool, parameter, value),
        ),
        versions=tuple(versions),
        fitness=tuple(await _fitness(services, stored)),
        not_for=tuple(dict.fromkeys(tag for each in tags for tag in each)),
        promotions=tuple(await _promotions(services, stored)),
        recommendations=tuple(await recommendations_about(services, workspace, [tool])),
        marks=tuple(await _marks(services, stored)),
        known_text=await _known_text(services, tool, stored),
    )


def _masked(redactor: Redactor, tool: ToolKey, parameter: str, value: JsonValue) -> JsonValue:
    [masked] = redactor.parameters(tool.tool_name, {parameter: value}).values()
    return masked


def namespaces_of(stored: StoredTool) -> list[str]:
    """The namespaces that a tool serves: its id (seed 002), and the one that it names."""
    return list(dict.fromkeys(filter(None, (stored.tool.tool_id, stored.tool.namespace))))


async def _fitness(services: Context, stored: StoredTool | None) -> list[FitnessRow]:
    """Factors without a scenario: nothing is searched for, so no similarity and no demotion.

    Nor is anything left out: negative tags speak of scenarios.
    """
    rows: list[FitnessRow] = []
    if stored is None:
        return rows
    for namespace in namespaces_of(stored):
        try:
            best = await services.chooser.best(
                stored.workspace, namespace, "", use_rag=False, limit=_MAX_CANDIDATES
            )
        except UnknownNamespaceError:
            continue  # deleted while it was being read
        rows.extend(fitness_rows(namespace, best))
    return rows


async def _promotions(services: Context, stored: StoredTool | None) -> list[PromotionStatus]:
    if stored is None:
        return []
    registry = await services.memory.registry(stored.workspace)
    held = [name for name in namespaces_of(stored) if name in registry.promotions]
    return [await services.promotions.read(stored.workspace, name) for name in held]


async def _marks(services: Context, stored: StoredTool | None) -> list[SimilarFailure]:
    if stored is None:
        return []
    found = await services.history.failures(
        stored.workspace, stored.tool.tool_id, scenario=None, limit=MAX_MARKS
    )
    return [each for each in found.failures if each.severity is not None]


async def _known_text(services: Context, tool: ToolKey, stored: StoredTool | None) -> str:
    name = stored.tool.tool_id if stored is not None else recorded_name(tool)
    try:
        return await known_tools(
            services,
            tool.workspace,
            KnownToolsQuery(tool=[name], max_tokens=KNOWN_TOOLS_TOKENS),
        )
    except UnknownToolError:  # called long ago, or forgotten meanwhile
        return ""
