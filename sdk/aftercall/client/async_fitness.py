"""The methods of `AsyncClient` for choosing tools and for promotions."""

from collections.abc import Mapping, Sequence
from typing import TypeVar
from uuid import uuid4

from aftercall.client import fitness_endpoints as endpoints
from aftercall.client.requests import Request
from aftercall.models import (
    BestTool,
    Evolution,
    EvolutionRequest,
    FailureMark,
    FoundTools,
    MarkedFailure,
    Namespace,
    Promotion,
    PromotionHistory,
    PromotionsReceipt,
    PromotionStatus,
    RankingMode,
    Severity,
    SimilarFailure,
)
from aftercall.redaction import Redactor

T = TypeVar("T")


class AsyncFitnessMethods:
    """Base of `AsyncClient`: one method per endpoint of `fitness_endpoints`."""

    _redactor: Redactor | None

    async def send(self, request: Request[T]) -> T:
        """Send a request; the clients say how."""
        raise NotImplementedError

    async def namespaces(self) -> list[Namespace]:
        """The capabilities that tools are registered for, and who serves each."""
        return await self.send(endpoints.namespaces())

    async def best_tool(
        self,
        namespace: str,
        scenario: str,
        *,
        use_rag: bool = True,
        mode: RankingMode | None = None,
        limit: int | None = None,
    ) -> BestTool:
        """The fittest tool of a namespace for a scenario, with all that were compared.

        Args:
            namespace: the capability.
            scenario: what is to be done, in words.
            use_rag: also compare tools like it, and count failures in scenarios like this one.
            mode: how they are ranked; the service's own way when None.
            limit: most candidates to return; the service's own number when None.

        Raises:
            NotFoundError: there is no such namespace, or nothing in it fits; the nearest names
                stand in the details.
        """
        request = endpoints.best_tool(
            namespace, scenario, use_rag=use_rag, mode=mode, limit=limit, redactor=self._redactor
        )
        return await self.send(request)

    async def find_tools(
        self,
        scenario: str,
        *,
        tags: Sequence[str] | None = None,
        limit: int = 5,
        mode: RankingMode = "fitness",
    ) -> FoundTools:
        """The tools of all namespaces that fit a scenario, best first; there may be none.

        Args:
            scenario: what is to be done, in words.
            tags: only tools with at least one of them.
            limit: most candidates to return, 1 to 50.
            mode: how they are ranked.
        """
        question = endpoints.find_question(scenario, tags, limit, mode)
        return await self.send(endpoints.find_tools(question, self._redactor))

    async def mark_failure(
        self,
        tool_id: str,
        scenario: str,
        error_message: str,
        *,
        severity: Severity = "medium",
        version: str | None = None,
        execution_id: str | None = None,
        negative_tags: Sequence[str] = (),
        mark_id: str | None = None,
    ) -> MarkedFailure:
        """Tell that a tool failed in a scenario; durable when this returns.

        Args:
            tool_id: the tool.
            scenario: what was to be done, in words.
            error_message: what the tool said.
            severity: how bad it was.
            version: the version that failed; the one in force when None.
            execution_id: the recorded call that failed so; it and the mark count once.
            negative_tags: what the tool is not to be offered for any more.
            mark_id: a UUID. The same mark twice counts once; a new one when None.

        Raises:
            NotFoundError: there is no tool of this id.
        """
        mark = FailureMark(
            mark_id=mark_id or str(uuid4()),
            scenario=scenario,
            error_message=error_message,
            severity=severity,
            version=version,
            execution_id=execution_id,
            negative_tags=list(negative_tags),
        )
        return await self.send(endpoints.mark_failure(tool_id, mark, self._redactor))

    async def tool_failures(
        self, tool_id: str, *, scenario: str | None = None, limit: int | None = None
    ) -> list[SimilarFailure]:
        """Failures of a tool: nearest to the scenario first, without one the latest."""
        request = endpoints.tool_failures(tool_id, scenario, limit, self._redactor)
        return await self.send(request)

    async def promote(self, namespace: str, promotion: Promotion) -> PromotionStatus:
        """Let an evolved version stand in for the original of a namespace."""
        return await self.send(endpoints.promote(namespace, promotion, self._redactor))

    async def get_promotion(self, namespace: str) -> PromotionStatus:
        """The promotion that holds, and how both versions fared.

        Raises:
            NotFoundError: nothing is promoted there.
        """
        return await self.send(endpoints.get_promotion(namespace))

    async def remove_promotion(self, namespace: str) -> None:
        """Let the original stand for itself again.

        Raises:
            NotFoundError: nothing is promoted there.
        """
        await self.send(endpoints.remove_promotion(namespace))

    async def rollback_promotion(self, namespace: str) -> PromotionHistory:
        """Go back to what held before the latest change. Not repeated by itself."""
        return await self.send(endpoints.rollback_promotion(namespace))

    async def promotion_history(self, namespace: str) -> PromotionHistory:
        """What was promoted and taken back in a namespace, latest first."""
        return await self.send(endpoints.promotion_history(namespace))

    async def export_promotions(self) -> dict[str, Promotion]:
        """All promotions that hold, by namespace; `render_promotions` makes a file of them."""
        return await self.send(endpoints.export_promotions())

    async def import_promotions(self, promotions: Mapping[str, Promotion]) -> PromotionsReceipt:
        """Let exactly these promotions hold: those that are not among them are removed."""
        return await self.send(endpoints.import_promotions(promotions, self._redactor))

    async def find_evolutions(self, scenario: str, *, limit: int = 5) -> list[Evolution]:
        """Promotions of the past for scenarios like this one, nearest first; `limit` 1 to 50."""
        question = EvolutionRequest(scenario=scenario, limit=limit)
        return await self.send(endpoints.find_evolutions(question, self._redactor))
