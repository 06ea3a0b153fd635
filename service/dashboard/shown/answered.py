"""An answer of `/suggest` in words and rows. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from aftercall.json_values import JsonValue
from aftercall.models import Evidence, FailurePattern, Suggestion, SuggestResponse
from service.dashboard.shown.call_text import one_line
from service.dashboard.shown.numbers import count, duration, percent

MAX_VALUE_CHARS: Final = 300
"""Characters of one value in the table of changes; the corrected parameters show it whole."""

MAX_WORDS: Final = 2_000
"""Characters of a reason or a lesson."""

SURE: Final = 0.80
"""Above it a gateway retries by itself, where that is safe (`sdk/aftercall`, 4-rules.md)."""

ABSENT: Final = "(absent)"
"""No value at all, other than JSON's `null`."""

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


def headline(suggestion: Suggestion) -> str:
    """What is to be done, in one line."""
    if suggestion.action == "change_parameters":
        many = len(suggestion.changes)
        return f"Change the parameters: {count(many)} change{'s' if many != 1 else ''}"
    if suggestion.action == "retry_unchanged":
        if suggestion.retry_after_ms:
            return f"Call again unchanged after {duration(suggestion.retry_after_ms)}"
        return "Call again unchanged"
    if suggestion.action == "switch_tool":
        return f"Call another tool: {one_line(suggestion.tool or 'none is named', MAX_VALUE_CHARS)}"
    return "Hand it over to somebody who can decide"


def confidence_words(suggestion: Suggestion) -> str:
    """The confidence with its interval, and what it means for a gateway."""
    told = percent(suggestion.confidence)
    if suggestion.confidence_interval is not None:
        low, high = suggestion.confidence_interval
        told += f", 90 % interval {percent(low)} to {percent(high)}"
    if suggestion.confidence > SURE:
        return f"{told}; above {percent(SURE)}, where a gateway retries by itself if that is safe"
    return f"{told}; not above {percent(SURE)}, so that a gateway leaves the decision to the agent"


def evidence_pairs(evidence: Evidence) -> list[tuple[str, str]]:
    """What a suggestion rests on: labels with counts in words."""
    sources = [_SOURCES[each] for each in evidence.sources]
    return [
        ("Repairs with the same edit", count(evidence.repairs)),
        ("Successes that agree", count(evidence.successes)),
        ("Failures after the same edit", count(evidence.failures)),
        ("Drawn from", ", ".join(sources) or "nothing that was recorded"),
    ]


def change_rows(suggestion: Suggestion) -> list[dict[str, str]]:
    """One row per change: op, path, from, value, reason, all as text."""
    return [
        {
            "op": change.op,
            "path": one_line(change.path, MAX_VALUE_CHARS) or "(everything)",
            "from": ABSENT if change.op == "add" else value_text(change.from_),
            "value": ABSENT if change.op == "remove" else value_text(change.value),
            "reason": one_line(change.reason, MAX_WORDS),
        }
        for change in suggestion.changes
    ]


def value_text(value: JsonValue, limit: int = MAX_VALUE_CHARS) -> str:
    """A JSON value as text, cut at `limit` characters."""
    return one_line(json.dumps(value, ensure_ascii=False), limit)


def answer_words(response: SuggestResponse) -> str:
    """The answer in one sentence, for whoever listens instead of looking."""
    took = f"answered in {duration(response.took_ms)}"
    if response.abstained:
        reason = one_line(response.reason or "nothing is known of this failure", MAX_WORDS)
        return f"No suggestion: {reason} ({took})."
    best = response.suggestions[0]
    many = len(response.suggestions)
    others = f", and {count(many - 1)} more" if many > 1 else ""
    return f"{headline(best)}, confidence {percent(best.confidence)}{others} ({took})."


@dataclass(frozen=True, slots=True)
class EvidenceLink:
    """One execution of the evidence, and the pattern it is an example of, where it is one."""

    execution_id: str
    pattern: FailurePattern | None


def evidence_links(
    evidence: Evidence, patterns: Iterable[FailurePattern]
) -> Sequence[EvidenceLink]:
    """The executions of the evidence, each with its pattern where that is known."""
    by_example: Mapping[str, FailurePattern] = {
        example: pattern for pattern in patterns for example in pattern.examples
    }
    return [EvidenceLink(each, by_example.get(each)) for each in evidence.execution_ids]


def pattern_of(
    response: SuggestResponse, patterns: Iterable[FailurePattern]
) -> FailurePattern | None:
    """The pattern of the tool that the error belongs to, by its wording."""
    signature = response.pattern.signature
    for pattern in patterns:
        if signature == pattern.signature or signature in pattern.wordings:
            return pattern
    return None
