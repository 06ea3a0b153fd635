"""*Try it*: ask about a failed call, see the suggestion and its evidence; nothing is recorded."""

import json
import logging
from dataclasses import replace
from typing import Final

from pydantic import ValidationError

from aftercall.explain import explain_error
from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import Evidence, Suggestion, SuggestRequest, SuggestResponse
from embeddings.protocol import EmbeddingError
from mongo.errors import StoreError
from retrieval.index.protocol import VectorIndexError
from service.dashboard import html as h
from service.dashboard import words as w
from service.dashboard.look import Look, Shown
from service.errors import InvalidProblemError, ProblemError, safe_message
from service.requests import parse_json

logger = logging.getLogger(__name__)
_EMPTY: Final[JsonObject] = {"toolName": "", "parameters": {}, "error": ""}
"""An example for a reader who has no call to paste."""
SURE: Final = 0.80
"""Above it a gateway retries by itself, where that is safe (`sdk/aftercall`, 4-rules.md)."""
_SOURCES: Final = {
    "schema": "the tool's schema",
    "error": "the error's own words",
    "context": "the context",
    "repairs": "repairs seen here",
    "profile": "the tool's parameters in past calls",
    "similar": "similar calls that succeeded",
    "parameters": "the call's own parameters",
    "seed": "the shipped corpus",
}
_MAX_VALUE: Final = 300


async def show_try_it(look: Look, typed: str | None = None) -> Shown:
    """Return the page, with an answer if the form was sent (`?call=` only fills it in)."""
    answer, fault = h.Html(), ""
    if typed is not None:
        context, principal = look.context, look.context.caller.principal
        try:
            response = await context.suggester.preview(
                look.workspace, request_of(typed), principal=principal
            )
        except ProblemError as error:
            fault = safe_message(error.message)
            answer = h.render_template(
                "answer", said="Nothing was asked: the form says what is wrong."
            )
        except (StoreError, EmbeddingError, VectorIndexError) as error:
            logger.warning("nothing could be tried out: %s", error)
            answer = h.render_template(
                "answer", said="The service cannot answer at this moment; its log says why."
            )
        else:
            answer = h.render_template(
                "answer",
                said=answer_words(response),
                response=response,
                suggestions=[
                    (
                        each,
                        write_headline(each),
                        confidence_words(each),
                        evidence_pairs(each.evidence),
                    )
                    for each in response.suggestions
                ],
                sure=SURE,
                changes=_CHANGES,
            )
    page = look.show_page(
        "Try it",
        "try_it",
        text=look.query.get("call", w.as_json(_EMPTY)) if typed is None else typed,
        fault=fault,
        answer=answer,
    )
    return replace(page, is_live=False)


# The form


def request_of(text: str) -> SuggestRequest:
    """Return the question of an execution, a failed call or a body of `/suggest`.

    Raises:
        ProblemError: the text is something else.
    """
    value = parse_json(text.encode("utf-8", "surrogatepass"))
    if not isinstance(value, dict):
        raise InvalidProblemError("must be one JSON object: a call, or a body of `/suggest`")
    try:
        return SuggestRequest.model_validate(value)
    except ValidationError as error:
        raise InvalidProblemError(explain_error(error, SuggestRequest)) from None


# The answer


def answer_words(response: SuggestResponse) -> str:
    """Return the answer in one sentence, for a reader who listens instead of looking."""
    took = f"answered in {w.format_duration(response.took_ms)}"
    if response.abstained:
        reason = w.format_line(response.reason or "nothing is known of this failure", 2_000)
        return f"No suggestion: {reason} ({took})."
    best, many = response.suggestions[0], len(response.suggestions)
    others = f", and {w.format_count(many - 1)} more" if many > 1 else ""
    return (
        f"{write_headline(best)}, confidence {w.format_percent(best.confidence)}{others} ({took})."
    )


def write_headline(suggestion: Suggestion) -> str:
    """Return the action of a suggestion, in one line."""
    tool = w.format_line(suggestion.tool or "none is named", _MAX_VALUE)
    changes = w.format_noun(len(suggestion.changes), "change")
    after = suggestion.retry_after_ms
    wait = f" after {w.format_duration(after)}" if after else ""
    return {
        "change_parameters": f"Change the parameters: {changes}",
        "retry_unchanged": f"Call again unchanged{wait}",
        "switch_tool": f"Call another tool: {tool}",
        "call_first": f"Call first: {tool}",
        "escalate": "Hand it over to somebody who can decide",
    }[suggestion.action]


def confidence_words(suggestion: Suggestion) -> str:
    """Return the confidence with its interval, and its meaning for a gateway."""
    words = w.format_percent(suggestion.confidence)
    if suggestion.confidence_interval is not None:
        low, high = suggestion.confidence_interval
        words += f", 90 % interval {w.format_percent(low)} to {w.format_percent(high)}"
    sure = w.format_percent(SURE)
    if suggestion.confidence > SURE:
        return f"{words}; above {sure}, where a gateway retries by itself if that is safe"
    return f"{words}; not above {sure}, so that a gateway leaves the decision to the agent"


def _show_value(value: JsonValue) -> str:
    return w.format_line(json.dumps(value, ensure_ascii=False), _MAX_VALUE)


_CHANGES: Final = (
    h.Column("op", "Operation"),
    h.Column("path", "Parameter", of=lambda each: each.path or "(everything)"),
    h.Column("from", "From",
             of=lambda each: "(absent)" if each.op == "add" else _show_value(each.from_)),
    h.Column("value", "To",
             of=lambda each: "(absent)" if each.op == "remove" else _show_value(each.value)),
    h.Column("reason", "Why"),
)  # fmt: skip


def evidence_pairs(evidence: Evidence) -> list[tuple[str, str]]:
    """Return the evidence of a suggestion, as names with values."""
    sources = ", ".join(_SOURCES[each] for each in evidence.sources)
    return [
        ("Repairs with the same edit", w.format_count(evidence.repairs)),
        ("Successes that agree", w.format_count(evidence.successes)),
        ("Failures after the same edit", w.format_count(evidence.failures)),
        ("Drawn from", sources or "nothing that was recorded"),
        *(("Execution", each) for each in evidence.execution_ids),
    ]
