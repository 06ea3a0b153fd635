"""The methods of `Client` for corrections, health, boundaries and known tools."""

from collections.abc import Sequence
from typing import TypeVar

from aftercall.client import boundary_endpoints as endpoints
from aftercall.client.requests import Request
from aftercall.models import (
    Boundaries,
    KnownCorrection,
    Recommendation,
    RecommendationKind,
    RecommendationState,
    RecordedCorrection,
    ReferralKind,
    ToolHealth,
)
from aftercall.redaction import Redactor

T = TypeVar("T")


class BoundaryMethods:
    """Base of `Client`: one method per endpoint of `boundary_endpoints`."""

    _redactor: Redactor | None

    def send(self, request: Request[T]) -> T:
        """Send a request; the clients say how."""
        raise NotImplementedError

    def correct(
        self,
        text: str,
        *,
        execution_id: str | None = None,
        session_id: str | None = None,
        server_name: str | None = None,
        tool_name: str | None = None,
        kind: ReferralKind = "low_utility",
        boundary_axes: str | Sequence[str] = (),
        agent: str | None = None,
        correction_id: str | None = None,
    ) -> RecordedCorrection:
        """Tell that a user corrected an answer; durable when this returns.

        Args:
            text: what the user said, at most 2,000 characters.
            execution_id: the call that was corrected; it may be recorded later than this.
            session_id: the session whose latest recorded call it was, when no call is named.
            server_name: narrows the session's calls down to those of a server.
            tool_name: narrows the session's calls down to those of a tool.
            kind: of little use, or not this tool's job.
            boundary_axes: the capabilities that were mixed, at most 20.
            agent: who passes the correction on.
            correction_id: a UUID. The same correction twice counts once; a new one when None.

        Raises:
            ValueError: neither or both of `execution_id` and `session_id` are given, or there are
                no words in the text.
            NotFoundError: no such call of the session is recorded yet; flush the recorder first.
            ConflictError: the id is taken by another correction.
        """
        request = endpoints.correct(
            text,
            execution_id=execution_id,
            session_id=session_id,
            server_name=server_name,
            tool_name=tool_name,
            kind=kind,
            boundary_axes=boundary_axes,
            agent=agent,
            correction_id=correction_id,
            redactor=self._redactor,
        )
        return self.send(request)

    def corrections(
        self,
        *,
        tool_name: str | None = None,
        server_name: str | None = None,
        limit: int | None = None,
    ) -> list[KnownCorrection]:
        """What users said, newest first.

        Args:
            tool_name: only what counts for this tool, by the name of its calls.
            server_name: its server; None for a tool without one.
            limit: most corrections to return, 1 to 100; the service's own number when None.
        """
        return self.send(endpoints.corrections(tool_name, server_name, limit))

    def tool_health(self, tool_id: str) -> ToolHealth:
        """How a tool fares: failures, repairs, utility, cohesion, what it refers elsewhere.

        A tool that is not registered goes by the name of its calls, or `serverName/toolName`.

        Raises:
            NotFoundError: nothing is known of such a tool; the nearest ids stand in the details.
        """
        return self.send(endpoints.tool_health(tool_id))

    def boundaries(self) -> Boundaries:
        """Boundary axes over all tools: which belong together, which co-occur, who has them."""
        return self.send(endpoints.boundaries())

    def recommendations(
        self,
        *,
        state: endpoints.AskedState | None = None,
        tool_id: str | None = None,
        kind: RecommendationKind | None = None,
        limit: int | None = None,
    ) -> list[Recommendation]:
        """What the evidence suggests to tool builders, greatest priority first.

        Args:
            state: only those in this state; the open and the taken ones when None.
            tool_id: only those about a tool (its id, or the name of its calls) or a namespace.
            kind: only those of this kind.
            limit: most recommendations to return, 1 to 1,000; the service's own number when None.

        Raises:
            NotFoundError: nothing is known of such a tool or namespace.
        """
        return self.send(endpoints.recommendations(state, tool_id, kind, limit))

    def change_recommendation(
        self,
        recommendation_id: str,
        state: RecommendationState,
        *,
        reason: str | None = None,
        changed_by: str | None = None,
    ) -> Recommendation:
        """Say what is done about a recommendation; a reason is needed to dismiss it.

        Raises:
            NotFoundError: there is none of this id.
        """
        request = endpoints.change_recommendation(
            recommendation_id, state, reason, changed_by, self._redactor
        )
        return self.send(request)

    def known_tools(
        self,
        tools: str | Sequence[str] | None = None,
        *,
        namespace: str | None = None,
        max_tokens: int | None = None,
        format: endpoints.KnownToolsFormat = "prompt",  # noqa: A002  # as the endpoint calls it
    ) -> str:
        """What is known of tools, most useful first: how to call them, and what goes wrong.

        What tools and users said stands in it as data, escaped.

        Args:
            tools: their ids, or names as recorded calls have them; all when None, if no namespace
                is named either.
            namespace: also the tools that serve it.
            max_tokens: of the text, by an estimate from above; the service's own number when None.
            format: a block for a prompt, or Markdown for documentation.

        Raises:
            NotFoundError: nothing is known of one of them; the nearest names stand in the details.
        """
        request = endpoints.known_tools(
            tools, namespace=namespace, max_tokens=max_tokens, form=format
        )
        return self.send(request)
