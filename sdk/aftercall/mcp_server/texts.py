"""Answers as text for a model: short, the most useful first, others' words in quotes.

What tools, users and agents said is data. It stands on one line, between quotation marks, without
control characters, so that it cannot pass for a line of ours.
"""

import json
from collections.abc import Iterator

from aftercall.bounded import bounded_text
from aftercall.json_values import JsonValue
from aftercall.models import (
    BestTool,
    Change,
    Count,
    RankedTool,
    Suggestion,
    SuggestResponse,
    Tool,
    ToolHealth,
)

MAX_PARAMETERS = 8_000
"""Characters of the parameters to call again with; longer ones stand in the structured answer."""

_MAX_VALUE = 200
_MAX_WORDS = 500
_SHOWN = 5
"""Of a list that the structured answer has in full."""


def suggested(answer: SuggestResponse) -> str:
    """What to do about a failed call."""
    return "\n".join(_suggested_lines(answer))


def chosen(answer: BestTool) -> str:
    """Which tool to call."""
    return "\n".join(_chosen_lines(answer))


def health(answer: ToolHealth) -> str:
    """How a tool fares."""
    return "\n".join(_health_lines(answer))


def _suggested_lines(answer: SuggestResponse) -> Iterator[str]:
    if not answer.suggestions:
        yield f"No suggestion: {_quoted(answer.reason or 'nothing is known that helps')}."
    for place, suggestion in enumerate(answer.suggestions, start=1):
        first, *more = _suggestion_lines(suggestion)
        yield f"{place}. {first}"
        yield from (f"   {line}" for line in more)
    safe = "is safe" if answer.retry.safe else "may repeat a side effect"
    yield f"Calling again {safe}: {_quoted(answer.retry.reason)}."
    yield f"The error was read as {answer.pattern.category}."


def _chosen_lines(answer: BestTool) -> Iterator[str]:
    yield f"Call {_tool(answer.tool)}: {_score(answer)}."
    if answer.below_threshold:
        yield f"It is hardly fit: its score is below {answer.threshold:.2f}."
    for failure in answer.factors.similar_failures[:_SHOWN]:
        said = "" if failure.error_message is None else f": {_quoted(failure.error_message)}"
        yield f"It failed before in a scenario like this, {_quoted(failure.scenario)}{said}."
    for other in answer.candidates[1:_SHOWN]:
        yield f"Else {_tool(other.tool)}: {_score(other)}."
    for left in answer.excluded[:_SHOWN]:
        yield f"Not offered: {_quoted(left.tool_id)}, {_quoted(left.reason)}."


def _health_lines(answer: ToolHealth) -> Iterator[str]:
    name = "/".join(part for part in (answer.tool.server_name, answer.tool.tool_name) if part)
    failures = answer.failures.count
    calls = answer.successes.count + failures
    share = f" ({failures / calls:.0%})" if calls else ""
    yield f"{_quoted(name)}: {failures} of {calls} remembered calls failed{share}."
    if answer.cohesion.warning:
        yield f"Warning: {_quoted(answer.cohesion.message)}."
    for seen in answer.signatures[:_SHOWN]:
        yield f"{seen.count} times {seen.category}: {_quoted(seen.signature)}."
    if answer.repairs.attempts:
        repairs = answer.repairs
        yield f"{repairs.succeeded} of {repairs.attempts} attempts to repair a call worked."
    yield from _utility_lines(answer)
    for referral in answer.recent_referrals[:_SHOWN]:
        axes = ", ".join(map(_quoted, referral.boundary_axes))
        yield f"It said of a call ({referral.kind}){': ' if axes else ''}{axes}."
    if answer.recommendation_ids:
        yield f"{len(answer.recommendation_ids)} recommendations about it are open."


def _suggestion_lines(suggestion: Suggestion) -> Iterator[str]:
    sure = f"confidence {suggestion.confidence:.2f}"
    if suggestion.confidence_interval is not None:
        low, high = suggestion.confidence_interval
        sure += f", {low:.2f} to {high:.2f}"
    yield f"{suggestion.action} ({sure}){_aim(suggestion)}"
    if suggestion.corrected_parameters is not None:
        text = _json(suggestion.corrected_parameters)
        if len(text) > MAX_PARAMETERS:
            text = "`correctedParameters` of the structured answer"
        yield f"call with {text}"
    for change in suggestion.changes:
        yield _change(change)
    if suggestion.split:
        yield f"split into {', '.join(map(_quoted, suggestion.split))}"
    yield f"lesson: {_quoted(suggestion.lesson)}"
    yield f"suggestionId {suggestion.suggestion_id}"


def _aim(suggestion: Suggestion) -> str:
    if suggestion.tool is not None:
        return f" to {_quoted(suggestion.tool)}"
    if suggestion.retry_after_ms:
        return f" after {suggestion.retry_after_ms:.0f} ms"
    return ""


def _change(change: Change) -> str:
    value = "" if change.op == "remove" else f" {_cut_json(change.value)}"
    before = f" {_cut_json(change.from_)} by" if change.op == "replace" else ""
    return f"{change.op} {_quoted(change.path)}{before}{value}: {_quoted(change.reason)}"


def _tool(tool: Tool) -> str:
    server = f" of server {_quoted(tool.server_name)}" if tool.server_name else ""
    version = f", version {_quoted(tool.version)}" if tool.version else ""
    return f"{_quoted(tool.name)}{server} (toolId {_quoted(tool.tool_id)}{version})"


def _score(ranked: RankedTool) -> str:
    factors = ranked.factors
    return (
        f"{ranked.source}, score {ranked.score:.2f} with base {factors.base:.2f}, "
        f"quality {factors.quality:.2f}, demotion {factors.failure_demotion:.2f}"
    )


def _utility_lines(answer: ToolHealth) -> Iterator[str]:
    utility = answer.utility
    counted: tuple[tuple[str, Count], ...] = (
        ("answers of little use by its own word", utility.low_utility),
        ("weak successes", utility.weak_successes),
        ("corrections by users", utility.corrections),
    )
    told = [f"{count.count} {what}" for what, count in counted if count.count]
    if told:
        yield f"Utility {utility.score:.2f}: {', '.join(told)}."
    for correction in utility.recent_corrections[:_SHOWN]:
        yield f"A user said {_quoted(correction.text)}."


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    clean = "".join(char if char.isprintable() else "\ufffd" for char in line)
    return json.dumps(bounded_text(clean, _MAX_WORDS), ensure_ascii=False)


def _cut_json(value: JsonValue) -> str:
    return bounded_text(_json(value), _MAX_VALUE)


def _json(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # As JSON escapes them, so that what is copied from here is the same value.
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)
