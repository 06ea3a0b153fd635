"""*Try it*: ask about a failed call, see the suggestion and its evidence; nothing is recorded."""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from aftercall.explain import faults_of
from aftercall.json_values import JsonValue
from aftercall.models import (
    Evidence,
    Execution,
    FailedCall,
    FailurePattern,
    Suggestion,
    SuggestRequest,
    SuggestResponse,
)
from embeddings.protocol import EmbeddingError
from mongo.errors import StoreError
from mongo.records import ToolKey
from retrieval.index.protocol import VectorIndexError
from retrieval.log import executions
from service.bodies import parse_json
from service.dashboard import html as h
from service.dashboard import words as w
from service.dashboard.look import Look, Shown
from service.errors import ProblemError, safe_message
from service.patterns import PatternsQuery, listed

logger = logging.getLogger(__name__)
MAX_CHARS: Final = 50_000
"""Characters of one field: enough for a whole call."""
ASKER: Final = "dashboard"
"""The agent of a question that names none."""
SURE: Final = 0.80
"""Above it a gateway retries by itself, where that is safe (`sdk/aftercall`, 4-rules.md)."""
_PASTED: Final = "pasted"
"""The one field of a call that is pasted whole."""


class _Field(NamedTuple):
    name: str
    """In the form, and in a link that fills it in."""
    path: str
    """Where what it holds stands in a call."""
    label: str
    rows: int = 0
    """Of one for several lines; 0: it has one line."""


_FIELDS: Final = (
    _Field("tool", "toolName", "Tool"),
    _Field("server", "serverName", "Server (optional)"),
    _Field("agent", "agent", f"Agent ({ASKER} when left out)"),
    _Field("error", "error.message", "Error message", rows=2),
    _Field("type", "error.type", "Error type (optional)"),
    _Field("code", "error.code", "Error code (optional)"),
    _Field("parameters", "parameters", "Parameters, a JSON object", rows=5),
    _Field("context", "context", "What the agent was trying to do (optional)", rows=2),
)
_PASTE: Final = _Field(
    _PASTED, "", "A recorded execution, a failed call, or a body of POST /suggest, as JSON", rows=8
)
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
_MAX_TOOLS: Final = 500
_MAX_PATTERNS: Final = 1_000
_MAX_EXAMPLES: Final = 3
_MAX_VALUE: Final = 300
Texts = dict[str, str]
"""What fields hold, by name."""


class FaultyFormError(Exception):
    """What is wrong with the form, by field, in words that name the cure."""

    def __init__(self, faults: Texts) -> None:
        super().__init__()
        self.faults = faults


async def try_it(look: Look, typed: Texts | None = None) -> Shown:
    """The page; with an answer, when the form was sent with `typed` in its fields."""
    answer, faults = h.Html(), Texts()
    if typed is not None:
        try:
            answer = await _answer(look, request_of(typed))
        except FaultyFormError as error:
            faults = error.faults
            answer = h.render("answer", said="Nothing was asked: the form says what is wrong.")
    tools, servers = _known(await look.context.memory.called(look.workspace, _MAX_TOOLS))
    page = look.shows(
        "Try it",
        "try_it",
        fields=_FIELDS,
        paste=_PASTE,
        texts=typed or await _filled_in(look),
        faults=faults,
        options={"tool": tools, "server": dict.fromkeys(servers)},
        is_pasted=_PASTED in (typed or ()),
        examples=await _examples(look),
        most=MAX_CHARS,
        answer=answer,
    )
    return replace(page, is_live=False)


async def _answer(look: Look, request: SuggestRequest) -> h.Html:
    try:
        context, principal = look.context, look.context.caller.principal
        response = await context.suggester.preview(look.workspace, request, principal=principal)
        patterns = await _patterns(look, request.execution)
    except (StoreError, EmbeddingError, VectorIndexError) as error:
        logger.warning("nothing could be tried out: %s", error)
        said = "The service cannot answer at this moment; its log says why."
        return h.render("answer", said=said)
    found, by_example = response.pattern, {e: each for each in patterns for e in each.examples}
    alike = (each for each in patterns if found.signature in (each.signature, *each.wordings))
    return h.render(
        "answer",
        said=answer_words(response),
        look=look,
        response=response,
        pattern=next(alike, None),
        suggestions=[
            (each, headline(each), confidence_words(each),
             evidence_pairs(look, each.evidence, by_example))
            for each in response.suggestions
        ],
        sure=SURE,
        changes=_CHANGES,
        body=_body_of(look, request),
    )  # fmt: skip


async def _patterns(look: Look, call: FailedCall | None) -> Sequence[FailurePattern]:
    named = {} if call is None else {"tool_name": call.tool_name, "server_name": call.server_name}
    query = PatternsQuery(**named, limit=_MAX_PATTERNS)
    return (await listed(*look.space, query)).patterns


# The form


def request_of(typed: Texts) -> SuggestRequest:
    """The question that a form asks."""
    too_long = {name: each for name, each in typed.items() if len(each) > MAX_CHARS}
    if too_long:
        words = (
            f"is longer than {w.count(MAX_CHARS)} characters, more than a page takes; send it to "
            "POST /suggest instead"
        )
        raise FaultyFormError(dict.fromkeys(too_long, words))
    return _from_pasted(typed[_PASTED]) if _PASTED in typed else _from_fields(typed)


def _from_fields(typed: Texts) -> SuggestRequest:
    call: dict[str, Any] = {"agent": ASKER, "parameters": {}, "error": {}}
    faults: dict[str, str] = {}
    for field in _FIELDS:
        text = typed.get(field.name, "").strip()
        if field.name == "parameters" and text:
            try:
                call["parameters"] = _parsed(field.name, text)
            except FaultyFormError as error:
                faults |= error.faults
        elif text:
            within, _, last = field.path.rpartition(".")
            (call[within] if within else call)[last] = text
    names = {field.path: field.name for field in _FIELDS}
    try:
        asked = SuggestRequest(execution=FailedCall.model_validate(call))
    except ValidationError as error:
        for each in faults_of(error, FailedCall):
            name = names.get(each.path) or names.get(each.path.split(".")[0]) or "error"
            before = f"{faults[name]}; " if name in faults else ""
            faults[name] = before + safe_message(each.problem)
    if faults:
        raise FaultyFormError(faults)
    return asked


def _from_pasted(text: str) -> SuggestRequest:
    value = _parsed(_PASTED, text)
    if not isinstance(value, dict):
        raise FaultyFormError({_PASTED: "must be one JSON object: a call, or a body of `/suggest`"})
    is_body = "execution" in value
    try:
        if is_body:
            return SuggestRequest.model_validate(value)
        return SuggestRequest(execution=FailedCall.model_validate(value))
    except ValidationError as error:
        found = faults_of(error, SuggestRequest if is_body else FailedCall)
        sentences = "; ".join(safe_message(each.sentence) for each in found)
        raise FaultyFormError({_PASTED: sentences}) from error


def _parsed(name: str, text: str) -> object:
    try:
        return parse_json(text.encode("utf-8", "surrogatepass"))
    except ProblemError as error:
        raise FaultyFormError({name: safe_message(error.message)}) from error


async def _filled_in(look: Look) -> Texts:
    """What a link fills in: a failed call by its id, or fields one by one. It never asks."""
    if example := look.query.get("example"):
        for each in await executions(look.context.store.events, look.workspace, [example]):
            return texts_of(look.context.redactor.call(each.execution))
    return dict(look.query)


def texts_of(call: Execution | FailedCall) -> Texts:
    """A failed call in the form's fields."""
    error = call.error
    return {
        "tool": call.tool_name,
        "server": call.server_name or "",
        "agent": call.agent,
        "error": error.message if error else "",
        "type": error.type if error else "",
        "code": (error.code if error else None) or "",
        "parameters": json.dumps(call.parameters, indent=2, ensure_ascii=False),
        "context": call.context or "",
    }


async def _examples(look: Look) -> list[h.Link]:
    """Links that fill in the latest stored failure of the most frequent patterns."""
    patterns = (await _patterns(look, None))[: 2 * _MAX_EXAMPLES]  # some have expired altogether
    ids = [each for pattern in patterns for each in pattern.examples]
    found = await executions(look.context.store.events, look.workspace, ids)
    calls = [each.execution for each in found]
    stored = {each.execution_id for each in calls if each.error and each.parameters_known}
    links = []
    for pattern in patterns:
        latest = next((each for each in reversed(pattern.examples) if each in stored), None)
        if latest is not None:
            label = w.one_line(f"{w.tool_name(pattern.tool)}: {pattern.signature}", 60)
            links.append(h.Link(label, look.link("/try", example=latest)))
    return links[:_MAX_EXAMPLES]


def _known(called: Iterable[ToolKey]) -> tuple[dict[str, str | None], list[str]]:
    """Names of tools, each with its server where one alone has it, and names of servers."""
    tools: dict[str, set[str | None]] = {}
    for each in called:
        tools.setdefault(each.tool_name, set()).add(each.server_name)
    servers = {each or "" for found in tools.values() for each in found} - {""}
    fills = {name: next(iter(tools[name])) for name in sorted(tools) if len(tools[name]) == 1}
    return {name: fills.get(name) for name in sorted(tools)}, sorted(servers)


# The answer


def answer_words(response: SuggestResponse) -> str:
    """The answer in one sentence, for who listens instead of looking."""
    took = f"answered in {w.duration(response.took_ms)}"
    if response.abstained:
        reason = w.one_line(response.reason or "nothing is known of this failure", 2_000)
        return f"No suggestion: {reason} ({took})."
    best, many = response.suggestions[0], len(response.suggestions)
    others = f", and {w.count(many - 1)} more" if many > 1 else ""
    return f"{headline(best)}, confidence {w.percent(best.confidence)}{others} ({took})."


def headline(suggestion: Suggestion) -> str:
    """What is to be done, in one line."""
    tool = w.one_line(suggestion.tool or "none is named", _MAX_VALUE)
    changes = w.counted(len(suggestion.changes), "change")
    after = suggestion.retry_after_ms
    return {
        "change_parameters": f"Change the parameters: {changes}",
        "retry_unchanged": f"Call again unchanged{f' after {w.duration(after)}' if after else ''}",
        "switch_tool": f"Call another tool: {tool}",
        "call_first": f"Call first: {tool}",
        "escalate": "Hand it over to somebody who can decide",
    }[suggestion.action]


def confidence_words(suggestion: Suggestion) -> str:
    """The confidence with its interval, and what it means for a gateway."""
    words = w.percent(suggestion.confidence)
    if suggestion.confidence_interval is not None:
        low, high = suggestion.confidence_interval
        words += f", 90 % interval {w.percent(low)} to {w.percent(high)}"
    if suggestion.confidence > SURE:
        return (
            f"{words}; above {w.percent(SURE)}, where a gateway retries by itself if that is safe"
        )
    return (
        f"{words}; not above {w.percent(SURE)}, so that a gateway leaves the decision to the agent"
    )


def _value(value: JsonValue) -> str:
    return w.one_line(json.dumps(value, ensure_ascii=False), _MAX_VALUE)


_CHANGES: Final = (
    h.Column("op", "Operation"),
    h.Column("path", "Parameter", of=lambda each: each.path or "(everything)"),
    h.Column("from", "From",
             of=lambda each: "(absent)" if each.op == "add" else _value(each.from_)),
    h.Column("value", "To",
             of=lambda each: "(absent)" if each.op == "remove" else _value(each.value)),
    h.Column("reason", "Why"),
)  # fmt: skip


def evidence_pairs(
    look: Look, evidence: Evidence, by_example: Mapping[str, FailurePattern]
) -> list[tuple[str, h.Value]]:
    """What a suggestion rests on. An execution leads to the pattern that it is an example of."""
    sources = ", ".join(_SOURCES[each] for each in evidence.sources)
    shown: list[tuple[str, h.Value]] = [
        ("Execution", h.Link(each, look.pattern(by_example[each].pattern_id)))
        if each in by_example
        else ("Execution", each)
        for each in evidence.execution_ids
    ]
    return [
        ("Repairs with the same edit", w.count(evidence.repairs)),
        ("Successes that agree", w.count(evidence.successes)),
        ("Failures after the same edit", w.count(evidence.failures)),
        ("Drawn from", sources or "nothing that was recorded"),
        *shown,
    ]


def _body_of(look: Look, request: SuggestRequest) -> str:
    masked = look.context.redactor.call(request.execution)
    shown = request.model_copy(update={"execution": masked})
    return w.as_json(shown.model_dump(mode="json", by_alias=True, exclude_defaults=True))
