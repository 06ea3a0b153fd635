"""What resilient calls and evolution need of a toolbox."""

from collections.abc import Sequence
from typing import Protocol

from aftercall.evolution import EvolutionResult, PastFailure
from aftercall.executors.protocol import Executor
from aftercall.json_values import JsonValue
from aftercall.models import MarkedFailure, Severity, Tool
from aftercall.toolbox.resolver import LocalTools, Resolver, ServiceLink
from aftercall.toolbox.rules import CallResult


class Parts(Protocol):
    """A toolbox, as far as it is needed here; `AsyncToolbox` is one."""

    executors: Executor
    link: ServiceLink
    local: LocalTools
    resolver: Resolver
    trust_annotations: bool

    @property
    def can_evolve(self) -> bool:
        """Whether there is an evolver."""

    async def run(
        self,
        tool: Tool,
        input_data: JsonValue = None,
        *,
        scenario: str | None = None,
        timeout_s: float | None = None,
    ) -> CallResult:
        """Run a version of a tool, and record it."""

    async def mark_tool_failure(
        self,
        tool_id: str,
        scenario: str,
        error_message: str,
        severity: Severity = "medium",
        *,
        version: str | None = None,
        execution_id: str | None = None,
        negative_tags: Sequence[str] = (),
    ) -> MarkedFailure:
        """Tell the service of a failure."""

    async def evolve_tool(
        self,
        tool_id: str,
        reason: str,
        mutation_hint: str = "",
        scenario: str | None = None,
        *,
        failures: Sequence[PastFailure] = (),
    ) -> EvolutionResult:
        """Make and promote the next version of a tool."""
