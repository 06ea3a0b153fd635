"""The endpoints for choosing tools and for promotions as plain data, as in `endpoints`."""

from collections.abc import Mapping, Sequence

from aftercall.client.requests import Request, body, query, reads, reads_nothing, segment
from aftercall.errors import ProtocolError
from aftercall.models import (
    BestTool,
    Evolution,
    EvolutionList,
    EvolutionRequest,
    FailureMark,
    FindRequest,
    FoundTools,
    MarkedFailure,
    Namespace,
    NamespaceList,
    Promotion,
    PromotionHistory,
    PromotionsReceipt,
    PromotionStatus,
    RankingMode,
    SimilarFailure,
    ToolFailures,
)
from aftercall.promotions_format import (
    PromotionsFileError,
    parse_promotions,
    render_promotions,
)
from aftercall.redaction import Redactor


def namespaces() -> Request[list[Namespace]]:
    """`GET /namespaces`."""
    read = reads(NamespaceList)
    return Request("GET", "/namespaces", lambda content: read(content).namespaces)


def best_tool(
    namespace: str,
    scenario: str,
    *,
    use_rag: bool,
    mode: RankingMode | None,
    limit: int | None,
    redactor: Redactor | None,
) -> Request[BestTool]:
    """`GET /namespaces/{namespace}/best`."""
    asked = query(
        {
            "scenario": _masked(scenario, redactor),
            "useRag": use_rag,
            "mode": mode,
            "limit": limit,
        }
    )
    return Request("GET", f"/namespaces/{segment(namespace)}/best{asked}", reads(BestTool))


def find_tools(question: FindRequest, redactor: Redactor | None) -> Request[FoundTools]:
    """`POST /tools/find`."""
    scenario = _masked(question.scenario, redactor)
    clean = question.model_copy(update={"scenario": scenario})
    return Request("POST", "/tools/find", reads(FoundTools), body(clean))


def mark_failure(
    tool_id: str, mark: FailureMark, redactor: Redactor | None
) -> Request[MarkedFailure]:
    """`POST /tools/{toolId}/failures`; retried, for a `mark_id` counts once."""
    clean = mark.model_copy(
        update={
            "scenario": _masked(mark.scenario, redactor),
            "error_message": _masked(mark.error_message, redactor),
        }
    )
    path = f"/tools/{segment(tool_id)}/failures"
    return Request("POST", path, reads(MarkedFailure), body(clean), mark.mark_id is not None)


def tool_failures(
    tool_id: str, scenario: str | None, limit: int | None, redactor: Redactor | None
) -> Request[list[SimilarFailure]]:
    """`GET /tools/{toolId}/failures`."""
    near = None if scenario is None else _masked(scenario, redactor)
    asked = query({"scenario": near, "limit": limit})
    read = reads(ToolFailures)
    path = f"/tools/{segment(tool_id)}/failures{asked}"
    return Request("GET", path, lambda content: read(content).failures)


def promote(
    namespace: str, promotion: Promotion, redactor: Redactor | None
) -> Request[PromotionStatus]:
    """`PUT /namespaces/{namespace}/promotion`."""
    clean = body(masked_promotion(promotion, redactor))
    return Request("PUT", _promotion_path(namespace), reads(PromotionStatus), clean)


def get_promotion(namespace: str) -> Request[PromotionStatus]:
    """`GET /namespaces/{namespace}/promotion`."""
    return Request("GET", _promotion_path(namespace), reads(PromotionStatus))


def remove_promotion(namespace: str) -> Request[None]:
    """`DELETE /namespaces/{namespace}/promotion`."""
    return Request("DELETE", _promotion_path(namespace), reads_nothing)


def rollback_promotion(namespace: str) -> Request[PromotionHistory]:
    """`POST /namespaces/{namespace}/promotion/rollback`; never retried, two go back twice."""
    path = f"{_promotion_path(namespace)}/rollback"
    return Request("POST", path, reads(PromotionHistory), retried=False)


def promotion_history(namespace: str) -> Request[PromotionHistory]:
    """`GET /namespaces/{namespace}/promotion/history`."""
    return Request("GET", f"{_promotion_path(namespace)}/history", reads(PromotionHistory))


def export_promotions() -> Request[dict[str, Promotion]]:
    """`GET /promotions`."""

    def read(content: bytes) -> dict[str, Promotion]:
        try:
            return parse_promotions(content.decode())
        except (PromotionsFileError, UnicodeDecodeError) as error:
            raise ProtocolError(
                f"the answer holds no promotions of the contract ({error}); does base_url name an "
                "Aftercall service of this version?"
            ) from error

    return Request("GET", "/promotions", read)


def import_promotions(
    promotions: Mapping[str, Promotion], redactor: Redactor | None
) -> Request[PromotionsReceipt]:
    """`PUT /promotions`."""
    clean = {name: masked_promotion(promotion, redactor) for name, promotion in promotions.items()}
    text = render_promotions(clean)
    return Request("PUT", "/promotions", reads(PromotionsReceipt), text.encode())


def find_evolutions(
    question: EvolutionRequest, redactor: Redactor | None
) -> Request[list[Evolution]]:
    """`POST /evolutions/find`."""
    scenario = _masked(question.scenario, redactor)
    clean = question.model_copy(update={"scenario": scenario})
    read = reads(EvolutionList)
    return Request(
        "POST", "/evolutions/find", lambda content: read(content).evolutions, body(clean)
    )


def find_question(
    scenario: str, tags: Sequence[str] | None, limit: int, mode: RankingMode
) -> FindRequest:
    """The body of `find_tools`.

    Raises:
        ValueError: the scenario is blank or too long, or `limit` is not 1 to 50.
    """
    return FindRequest(scenario=scenario, tags=list(tags or ()), limit=limit, mode=mode)


def _promotion_path(namespace: str) -> str:
    return f"/namespaces/{segment(namespace)}/promotion"


def _masked(text: str, redactor: Redactor | None) -> str:
    return text if redactor is None else redactor.text(text)


def masked_promotion(promotion: Promotion, redactor: Redactor | None) -> Promotion:
    """A promotion as it is sent: without secrets in reason and mutation."""
    return promotion.model_copy(
        update={
            "reason": _masked(promotion.reason, redactor),
            "mutation": _masked(promotion.mutation, redactor),
        }
    )
