"""The endpoints for corrections, health, boundaries, recommendations and known tools, as data."""

from collections.abc import Sequence
from typing import Literal, TypeAlias
from uuid import uuid4

from aftercall.client.requests import Request, body, query, reads, segment
from aftercall.errors import ProtocolError
from aftercall.models import (
    Boundaries,
    Correction,
    CorrectionList,
    KnownCorrection,
    Recommendation,
    RecommendationChange,
    RecommendationKind,
    RecommendationList,
    RecommendationState,
    RecordedCorrection,
    ReferralKind,
    ToolHealth,
)
from aftercall.redaction import Redactor

AskedState: TypeAlias = RecommendationState | Literal["all"]
"""Which recommendations are asked for by their state."""

KnownToolsFormat: TypeAlias = Literal["prompt", "markdown"]
"""`prompt`: a `<known_tools>` block. `markdown`: a page for the documentation of tools."""


def correct(
    text: str,
    *,
    execution_id: str | None,
    session_id: str | None,
    server_name: str | None,
    tool_name: str | None,
    kind: ReferralKind,
    boundary_axes: str | Sequence[str],
    agent: str | None,
    correction_id: str | None,
    redactor: Redactor | None,
) -> Request[RecordedCorrection]:
    """`POST /corrections`; may be retried, for it has an id and counts once.

    Raises:
        ValueError: it is not a correction of the contract, such as one of no call.
    """
    correction = Correction(
        correction_id=correction_id or str(uuid4()),
        execution_id=execution_id,
        session_id=session_id,
        server_name=server_name,
        tool_name=tool_name,
        text=text,
        kind=kind,
        boundary_axes=_texts(boundary_axes),
        agent=agent,
    )
    clean = correction if redactor is None else _masked(correction, redactor)
    return Request("POST", "/corrections", reads(RecordedCorrection), body(clean))


def corrections(
    tool_name: str | None, server_name: str | None, limit: int | None
) -> Request[list[KnownCorrection]]:
    """`GET /corrections`."""
    asked = query({"toolName": tool_name, "serverName": server_name, "limit": limit})
    read = reads(CorrectionList)
    return Request("GET", f"/corrections{asked}", lambda content: read(content).corrections)


def tool_health(tool_id: str) -> Request[ToolHealth]:
    """`GET /tools/{toolId}/health`."""
    return Request("GET", f"/tools/{segment(tool_id)}/health", reads(ToolHealth))


def boundaries() -> Request[Boundaries]:
    """`GET /boundaries`."""
    return Request("GET", "/boundaries", reads(Boundaries))


def recommendations(
    state: AskedState | None,
    tool_id: str | None,
    kind: RecommendationKind | None,
    limit: int | None,
) -> Request[list[Recommendation]]:
    """`GET /recommendations`."""
    asked = query({"state": state, "toolId": tool_id, "kind": kind, "limit": limit})
    read = reads(RecommendationList)
    return Request("GET", f"/recommendations{asked}", lambda content: read(content).recommendations)


def change_recommendation(
    recommendation_id: str,
    state: RecommendationState,
    reason: str | None,
    changed_by: str | None,
    redactor: Redactor | None,
) -> Request[Recommendation]:
    """`PUT /recommendations/{recommendationId}`."""
    if reason is not None and redactor is not None:
        reason = redactor.text(reason)
    change = RecommendationChange(state=state, reason=reason, changed_by=changed_by)
    path = f"/recommendations/{segment(recommendation_id)}"
    return Request("PUT", path, reads(Recommendation), body(change))


def known_tools(
    tools: str | Sequence[str] | None,
    *,
    namespace: str | None,
    max_tokens: int | None,
    form: KnownToolsFormat,
) -> Request[str]:
    """`GET /known-tools`."""
    asked = query(
        {
            "tool": None if tools is None else _texts(tools),
            "namespace": namespace,
            "maxTokens": max_tokens,
            "format": form,
        }
    )
    return Request("GET", f"/known-tools{asked}", _read_text)


def _texts(texts: str | Sequence[str]) -> list[str]:
    """A single text is meant as one, not as its characters."""
    return [texts] if isinstance(texts, str) else list(texts)


def _masked(correction: Correction, redactor: Redactor) -> Correction:
    session_id = correction.session_id
    return correction.model_copy(
        update={
            "text": redactor.text(correction.text),
            "boundary_axes": [redactor.text(axis) for axis in correction.boundary_axes],
            "session_id": None if session_id is None else redactor.session_id(session_id),
        }
    )


def _read_text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ProtocolError(
            "the answer is no text in UTF-8; does base_url name an Aftercall service of this "
            "version?"
        ) from error
