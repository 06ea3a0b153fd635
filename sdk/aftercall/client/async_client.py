"""The client for asyncio code, with a method for each endpoint of the service.

The source of the synchronous client too, which `make generate` writes.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias
from uuid import uuid4

from aftercall import models
from aftercall.client.async_base import AsyncBaseClient
from aftercall.client.transport import (
    Request,
    model_reader,
    path_segment,
    query_string,
    reads_nothing,
)
from aftercall.errors import ProtocolError
from aftercall.promotions_file import PromotionsFileError, parse_promotions, render_promotions

AskedState: TypeAlias = models.RecommendationState | Literal["all"]
"""Which recommendations are asked for by their state."""
KnownToolsFormat: TypeAlias = Literal["prompt", "markdown"]
"""`prompt`: a `<known_tools>` block. `markdown`: a page for the documentation of tools."""
PROMOTION_TEXTS = ("reason", "mutation")
"""The fields of a promotion in which secrets are masked."""


class AsyncClient(AsyncBaseClient):
    """Talks to the service from asyncio code; an async context manager.

    Secrets are masked before anything leaves the process. Anything that can pass by itself is
    retried, as every endpoint may be called twice without harm: executions count by their id,
    outcomes by suggestion and execution.

    Arguments that many methods have: `tool_name` and `server_name` name a tool as its calls do
    (without a server that of the tool without one), `window` is the last 24 hours, 7 days or 30
    days up to now, and `limit` the most to return; the service's own number when None. What there
    is not one of, or nothing is known of, is a `NotFoundError`; where there are like names, its
    details hold them.

    Args:
        api_key: the key of the service, `ac_...`; None takes that of `AFTERCALL_API_KEY`, and an
            empty text sends none.
        timeout_s: seconds to wait for an answer once connected; longest silence, not longest
            download.
        retries: how often a request is sent again (see `aftercall.client.transport.retry_wait_s`).
        redactor: masks secrets before they leave the process; None sends everything as it is.
        transport: another way to send: a proxy, a unix socket, an application in this process.
            Without one the environment's proxy variables are not read, or a call to the service on
            this machine would leave it.
    """

    async def namespaces(self) -> list[models.Namespace]:
        """Return the capabilities that tools are registered for, and who serves each."""
        return (await self._get_model("/namespaces", models.NamespaceList)).namespaces

    async def best_tool(
        self,
        namespace: str,
        scenario: str,
        *,
        use_rag: bool = True,
        mode: models.RankingMode | None = None,
        limit: int | None = None,
        explore: bool | None = None,
    ) -> models.BestTool:
        """Return the fittest tool of a namespace for a scenario, with all that were compared.

        With `use_rag` tools like it are compared too, and calls in scenarios like this one count.
        `mode` is how they are ranked; the service's own way when None. With `explore` tools may be
        tried out that may change something.
        """
        return await self._get_model(
            f"/namespaces/{path_segment(namespace)}/best",
            models.BestTool,
            scenario=self._mask_text(scenario),
            use_rag=use_rag,
            mode=mode,
            limit=limit,
            explore=explore,
        )

    async def find_tools(
        self,
        scenario: str,
        *,
        tags: Sequence[str] | None = None,
        limit: int = 5,
        mode: models.RankingMode = "fitness",
    ) -> models.FoundTools:
        """Return the tools of all namespaces that fit a scenario, best first; there may be none.

        Only tools with at least one of the `tags`; `limit` is 1 to 50.
        """
        question = models.FindRequest(
            scenario=scenario, tags=list(tags or ()), limit=limit, mode=mode
        )
        return await self._send_body(
            "POST", "/tools/find", question, models.FoundTools, masked=("scenario",)
        )

    async def mark_failure(
        self,
        tool_id: str,
        scenario: str,
        error_message: str,
        *,
        severity: models.Severity = "medium",
        version: str | None = None,
        execution_id: str | None = None,
        negative_tags: Sequence[str] = (),
        mark_id: str | None = None,
    ) -> models.MarkedFailure:
        """Report that a tool failed in a scenario; durable when this returns.

        `version` is the one that failed, the one in force when None. `execution_id` names the
        recorded call that failed so; it and the mark count once. `negative_tags` are what the tool
        is not to be offered for any more. `mark_id` is a UUID: the same mark twice counts once.
        """
        return await self._send_body(
            "POST",
            f"/tools/{path_segment(tool_id)}/failures",
            models.FailureMark(
                mark_id=mark_id or str(uuid4()),
                scenario=scenario,
                error_message=error_message,
                severity=severity,
                version=version,
                execution_id=execution_id,
                negative_tags=list(negative_tags),
            ),
            models.MarkedFailure,
            masked=("scenario", "error_message"),
        )

    async def tool_failures(
        self, tool_id: str, *, scenario: str | None = None, limit: int | None = None
    ) -> list[models.SimilarFailure]:
        """Failures of a tool: nearest to the scenario first, without one the latest."""
        near = None if scenario is None else self._mask_text(scenario)
        path = f"/tools/{path_segment(tool_id)}/failures"
        return (
            await self._get_model(path, models.ToolFailures, scenario=near, limit=limit)
        ).failures

    async def promote(self, namespace: str, promotion: models.Promotion) -> models.PromotionStatus:
        """Let an evolved version stand in for the original of a namespace."""
        return await self._send_body(
            "PUT",
            _promotion_path(namespace),
            promotion,
            models.PromotionStatus,
            masked=PROMOTION_TEXTS,
        )

    async def get_promotion(self, namespace: str) -> models.PromotionStatus:
        """Return the promotion that holds, and how both versions did."""
        return await self._get_model(_promotion_path(namespace), models.PromotionStatus)

    async def remove_promotion(self, namespace: str) -> None:
        """Let the original stand for itself again."""
        await self.send(Request("DELETE", _promotion_path(namespace), reads_nothing))

    async def rollback_promotion(self, namespace: str) -> models.PromotionHistory:
        """Go back to what held before the latest change. Not repeated by itself."""
        path = f"{_promotion_path(namespace)}/rollback"
        return await self.send(
            Request("POST", path, model_reader(models.PromotionHistory), retried=False)
        )

    async def promotion_history(self, namespace: str) -> models.PromotionHistory:
        """Return what was promoted and taken back in a namespace, latest first."""
        return await self._get_model(
            f"{_promotion_path(namespace)}/history", models.PromotionHistory
        )

    async def export_promotions(self) -> dict[str, models.Promotion]:
        """Return all promotions that hold, by namespace.

        `render_promotions` makes a file of them.
        """
        return await self.send(Request("GET", "/promotions", _read_promotions))

    async def import_promotions(
        self, promotions: Mapping[str, models.Promotion]
    ) -> models.PromotionsReceipt:
        """Let exactly these promotions hold: those that are not among them are removed."""
        if self.redactor is not None:
            promotions = {
                name: self.redactor.fields(each, PROMOTION_TEXTS)
                for name, each in promotions.items()
            }
        content = render_promotions(promotions).encode()
        return await self.send(
            Request("PUT", "/promotions", model_reader(models.PromotionsReceipt), content)
        )

    async def find_evolutions(self, scenario: str, *, limit: int = 5) -> list[models.Evolution]:
        """Promotions of the past for scenarios like this one, nearest first; `limit` 1 to 50."""
        question = models.EvolutionRequest(scenario=scenario, limit=limit)
        found = await self._send_body(
            "POST", "/evolutions/find", question, models.EvolutionList, masked=("scenario",)
        )
        return found.evolutions

    async def correct(
        self,
        text: str,
        *,
        execution_id: str | None = None,
        session_id: str | None = None,
        server_name: str | None = None,
        tool_name: str | None = None,
        kind: models.ReferralKind = "low_utility",
        boundary_axes: str | Sequence[str] = (),
        agent: str | None = None,
        correction_id: str | None = None,
    ) -> models.RecordedCorrection:
        """Report that a user corrected an answer; durable when this returns.

        `text` has at most 2,000 characters. The corrected call is `execution_id`, which may be
        recorded later than this, or else the latest recorded one of `session_id`, where server and
        tool narrow its calls down. `boundary_axes` are the capabilities that were mixed, at most
        20. `correction_id` is a UUID: the same correction twice counts once.

        Raises:
            ValueError: neither or both of `execution_id` and `session_id` are given, or there are
                no words in the text.
            NotFoundError: no such call of the session is recorded yet; flush the recorder first.
            ConflictError: the id is taken by another correction.
        """
        if session_id is not None and self.redactor is not None:
            session_id = self.redactor.session_id(session_id)
        return await self._send_body(
            "POST",
            "/corrections",
            models.Correction(
                correction_id=correction_id or str(uuid4()),
                execution_id=execution_id,
                session_id=session_id,
                server_name=server_name,
                tool_name=tool_name,
                text=text,
                kind=kind,
                boundary_axes=_list_texts(boundary_axes),
                agent=agent,
            ),
            models.RecordedCorrection,
            masked=("text", "boundary_axes"),
        )

    async def corrections(
        self,
        *,
        tool_name: str | None = None,
        server_name: str | None = None,
        limit: int | None = None,
    ) -> list[models.KnownCorrection]:
        """Return what users stated, newest first; only what counts for a tool, where one is named.

        `limit` is 1 to 100.
        """
        found = await self._get_model(
            "/corrections",
            models.CorrectionList,
            tool_name=tool_name,
            server_name=server_name,
            limit=limit,
        )
        return found.corrections

    async def tool_health(self, tool_id: str) -> models.ToolHealth:
        """Return how a tool fares: failures, repairs, utility, cohesion, what it refers elsewhere.

        A tool that is not registered goes by the name of its calls, or `serverName/toolName`.
        """
        return await self._get_model(f"/tools/{path_segment(tool_id)}/health", models.ToolHealth)

    async def boundaries(self) -> models.Boundaries:
        """Boundary axes over all tools: which belong together, which co-occur, who has them."""
        return await self._get_model("/boundaries", models.Boundaries)

    async def recommendations(
        self,
        *,
        state: AskedState | None = None,
        tool_id: str | None = None,
        kind: models.RecommendationKind | None = None,
        limit: int | None = None,
    ) -> list[models.Recommendation]:
        """Return what the evidence suggests to tool builders, greatest priority first.

        `state` None: the open and the taken ones. `tool_id` is a tool's id, or the name of its
        calls, or a namespace. `limit` is 1 to 1,000.
        """
        found = await self._get_model(
            "/recommendations",
            models.RecommendationList,
            state=state,
            tool_id=tool_id,
            kind=kind,
            limit=limit,
        )
        return found.recommendations

    async def change_recommendation(
        self,
        recommendation_id: str,
        state: models.RecommendationState,
        *,
        reason: str | None = None,
        changed_by: str | None = None,
    ) -> models.Recommendation:
        """Say what is done about a recommendation; a reason is needed to dismiss it."""
        change = models.RecommendationChange(state=state, reason=reason, changed_by=changed_by)
        path = f"/recommendations/{path_segment(recommendation_id)}"
        return await self._send_body("PUT", path, change, models.Recommendation, masked=("reason",))

    async def known_tools(
        self,
        tools: str | Sequence[str] | None = None,
        *,
        namespace: str | None = None,
        max_tokens: int | None = None,
        format: KnownToolsFormat = "prompt",  # noqa: A002  # as the endpoint calls it
    ) -> str:
        """Return what is known of tools, most useful first: how to call them, and what goes wrong.

        What tools and users stated stands in it as data, escaped. `tools` are ids, or names as
        recorded calls have them, with those that serve the `namespace`; all when neither is named.
        `max_tokens` is of the text, by an estimate from above; the service's own number when None.
        """
        asked = query_string(
            {
                "tool": None if tools is None else _list_texts(tools),
                "namespace": namespace,
                "max_tokens": max_tokens,
                "format": format,
            }
        )
        return await self.send(Request("GET", f"/known-tools{asked}", _read_text))

    async def learned_contracts(self, tools: Sequence[str]) -> list[models.LearnedContract]:
        """Return what calls of tools keep getting wrong, as sentences.

        Tools without any are left out.

        `tools` are ids, or names as recorded calls have them; 100 are asked about at a time.
        """
        found: list[models.LearnedContract] = []
        for start in range(0, len(tools), 100):
            asked = query_string({"tool": list(tools[start : start + 100])})
            path = f"/known-tools/contracts{asked}"
            found += (await self._get_model(path, models.LearnedContracts)).contracts
        return found

    async def totals(self) -> models.Totals:
        """Return how many calls there were in 24 hours, 7 and 30 days, and before."""
        return await self._get_model("/stats/totals", models.Totals)

    async def usage(
        self, window: models.UsageWindow = "24h", *, limit: int | None = None
    ) -> models.Usage:
        """Return how often tools were called, by whom, and how that went.

        `limit` 1 to 500 of each.
        """
        return await self._get_model("/stats/usage", models.Usage, window=window, limit=limit)

    async def trend(
        self,
        window: models.UsageWindow = "24h",
        *,
        tool_name: str | None = None,
        server_name: str | None = None,
    ) -> models.Trend:
        """Return how calls went over time: 24 hours by the hour, 7 or 30 days by the day (UTC)."""
        tool = {"tool_name": tool_name, "server_name": server_name}
        return await self._get_model("/stats/trend", models.Trend, window=window, **tool)

    async def latency(
        self,
        window: models.UsageWindow = "24h",
        *,
        tool_name: str | None = None,
        server_name: str | None = None,
    ) -> models.Latency:
        """Return how long calls took over time, in milliseconds; arguments as for `trend`."""
        tool = {"tool_name": tool_name, "server_name": server_name}
        return await self._get_model("/stats/latency", models.Latency, window=window, **tool)

    async def tool_statistics(
        self, window: models.UsageWindow = "24h", *, limit: int | None = None
    ) -> models.ToolStatisticsList:
        """Tools that were called in a window, and how good they are now; `limit` 1 to 500."""
        return await self._get_model(
            "/stats/tools", models.ToolStatisticsList, window=window, limit=limit
        )

    async def agent_statistics(
        self, agent: str, window: models.UsageWindow = "24h"
    ) -> models.AgentStatistics:
        """Return what one agent called, and how that went."""
        return await self._get_model(
            f"/stats/agents/{path_segment(agent)}", models.AgentStatistics, window=window
        )

    async def reflection(self, window: models.UsageWindow = "24h") -> models.ReflectionStatistics:
        """Return what asking about failures did.

        Success before and after it, answers, times to repair.
        """
        return await self._get_model(
            "/stats/reflection", models.ReflectionStatistics, window=window
        )

    async def criteria(self, window: models.UsageWindow = "24h") -> models.Criteria:
        """Return what the calls of a window meet of seed 004's success criteria."""
        return await self._get_model("/stats/criteria", models.Criteria, window=window)

    async def pattern_statistics(
        self, window: models.UsageWindow = "24h", *, limit: int | None = None
    ) -> models.PatternStatistics:
        """Failure patterns by how often they were met in a window; `limit` 1 to 500."""
        return await self._get_model(
            "/stats/patterns", models.PatternStatistics, window=window, limit=limit
        )

    async def fix_first(
        self, window: models.UsageWindow = "24h", *, limit: int | None = None
    ) -> models.FixFirst:
        """Open failure patterns by what they cost now; `limit` 1 to 500."""
        return await self._get_model(
            "/stats/fix-first", models.FixFirst, window=window, limit=limit
        )

    async def pattern_history(
        self, pattern_id: str, window: models.UsageWindow = "30d"
    ) -> models.PatternHistory:
        """Return how often a pattern was met over time; ids are those of `patterns`."""
        return await self._get_model(
            f"/stats/patterns/{path_segment(pattern_id)}", models.PatternHistory, window=window
        )

    async def confidence(self) -> models.ConfidenceStatistics:
        """Return what suggestions promised and what came of it, of the latest 2,000 outcomes."""
        return await self._get_model("/stats/confidence", models.ConfidenceStatistics)

    async def patterns(
        self,
        *,
        tool_name: str | None = None,
        server_name: str | None = None,
        category: models.ErrorCategory | None = None,
        limit: int | None = None,
    ) -> list[models.FailurePattern]:
        """Ways in which tools fail, most failures first; as of the latest nightly run.

        A server alone names all its tools; `limit` is 1 to 1,000.
        """
        found = await self._get_model(
            "/patterns",
            models.FailurePatternList,
            tool_name=tool_name,
            server_name=server_name,
            category=category,
            limit=limit,
        )
        return found.patterns

    async def create_key(self, spec: models.KeySpec) -> models.IssuedKey:
        """Make a key; its secret is in this answer only. This wants a key with `admin`."""
        return await self._send_body("POST", "/keys", spec, models.IssuedKey)

    async def list_keys(self) -> list[models.KnownKey]:
        """Return all keys of the workspace, without their secrets; of all for an operator's key."""
        return (await self._get_model("/keys", models.KeyList)).keys

    async def rotate_key(self, key_id: str, *, overlap_s: int = 3600) -> models.IssuedKey:
        """Give a key a new secret; the former one holds on for `overlap_s` seconds."""
        body = models.KeyRotation(overlap_s=overlap_s).model_dump_json().encode()
        path = f"/keys/{path_segment(key_id)}/rotation"
        # Done twice, the first new secret would be one that no one has seen.
        return await self.send(
            Request("POST", path, model_reader(models.IssuedKey), body, retried=False)
        )

    async def revoke_key(self, key_id: str) -> None:
        """End a key; what it reported stays."""
        await self.send(Request("DELETE", f"/keys/{path_segment(key_id)}", reads_nothing))

    async def audit(
        self, *, limit: int | None = None, before: int | None = None
    ) -> list[models.AuditRecord]:
        """Return the audit, latest first, `before` a position; `limit` is 1 to 1,000."""
        return (
            await self._get_model("/audit", models.AuditList, limit=limit, before=before)
        ).entries

    async def forget(self, whose: models.ForgetRequest) -> models.ForgetReceipt:
        """Erase what an agent, a session, a key or a time has stated, and learn all again."""
        return await self._send_body("POST", "/forget", whose, models.ForgetReceipt)


def _promotion_path(namespace: str) -> str:
    return f"/namespaces/{path_segment(namespace)}/promotion"


def _list_texts(texts: str | Sequence[str]) -> list[str]:
    """Take a single text as one, not as its characters."""
    return [texts] if isinstance(texts, str) else list(texts)


def _read_text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ProtocolError(
            "the answer is no text in UTF-8; does base_url name an Aftercall service of this "
            "version?"
        ) from error


def _read_promotions(content: bytes) -> dict[str, models.Promotion]:
    try:
        return parse_promotions(_read_text(content))
    except PromotionsFileError as error:
        raise ProtocolError(
            f"the answer holds no promotions of the contract ({error}); does base_url name an "
            "Aftercall service of this version?"
        ) from error
