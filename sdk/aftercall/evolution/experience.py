"""What the service knows that helps to evolve a tool: its failures, like evolutions, versions."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from aftercall.errors import AftercallError, NotFoundError
from aftercall.evolution.prompt import MAX_FAILURES, MAX_PAST_EVOLUTIONS
from aftercall.evolution.tasks import PastEvolution, PastFailure
from aftercall.models import Evolution, Promotion, PromotionHistory, PromotionStatus, SimilarFailure
from aftercall.versions import VersionNumber, parse_version

T = TypeVar("T")


class EvolutionService(Protocol):
    """What is asked of the service; `aftercall.AsyncClient` has it."""

    async def tool_failures(
        self, tool_id: str, *, scenario: str | None = None, limit: int | None = None
    ) -> list[SimilarFailure]:
        """Past failures, those in scenarios like this one first."""
        ...

    async def find_evolutions(self, scenario: str, *, limit: int = 5) -> list[Evolution]:
        """Past evolutions, nearest to the scenario first."""
        ...

    async def promotion_history(self, namespace: str) -> PromotionHistory:
        """All that was ever promoted in a namespace."""
        ...

    async def promote(self, namespace: str, promotion: Promotion) -> PromotionStatus:
        """Tell of a promotion; the service keeps its reason and mutation as a pattern."""
        ...


@dataclass(slots=True)
class Experience:
    """What was found. `notes` tell what could not be asked."""

    failures: list[PastFailure] = field(default_factory=list)
    evolutions: list[PastEvolution] = field(default_factory=list)
    versions: list[VersionNumber] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


async def gather(
    service: EvolutionService, *, tool_id: str, namespace: str, question: str
) -> Experience:
    """Ask the service. What it does not answer is left out: a tool can be evolved without it.

    Args:
        service: whom to ask.
        tool_id: whose failures are asked for.
        namespace: whose versions are asked for.
        question: the scenario or the reason, in words; blank asks for the latest failures only.
    """
    found = Experience()
    failures = await _asked(
        found,
        "past failures",
        lambda: service.tool_failures(tool_id, scenario=question or None, limit=MAX_FAILURES),
    )
    found.failures = [
        PastFailure(
            scenario=failure.scenario,
            error_message=failure.error_message,
            severity=failure.severity,
            at=failure.at,
        )
        for failure in failures or []
    ]
    if question:
        evolutions = await _asked(
            found,
            "past evolutions",
            lambda: service.find_evolutions(question, limit=MAX_PAST_EVOLUTIONS),
        )
        found.evolutions = [
            PastEvolution(
                namespace=evolution.namespace,
                reason=evolution.promotion.reason,
                mutation=evolution.promotion.mutation,
            )
            for evolution in evolutions or []
        ]
    history = await _asked(found, "versions", lambda: service.promotion_history(namespace))
    found.versions = [
        parse_version(change.promotion.evolved_version)
        for change in (history.changes if history else [])
        if change.promotion is not None
    ]
    return found


async def _asked(found: Experience, what: str, ask: Callable[[], Awaitable[T]]) -> T | None:
    try:
        return await ask()
    except NotFoundError:
        return None  # a tool or a namespace that the service has not heard of
    except (AftercallError, ValueError) as error:
        found.notes.append(f"the service was not asked for {what}: {error}"[:500])
        return None
