"""*Recommendations*: actions for makers of tools, as issues to file, and docs to repair."""

import re
from typing import Final, NamedTuple, get_args

from aftercall.models import Recommendation, RecommendationState, ToolName
from service.api.corrections import CorrectionsQuery, list_corrections
from service.api.patterns import read_pattern_statistics
from service.api.recommendations import RecommendationQuery, list_recommendations
from service.dashboard import html as h
from service.dashboard import words as w
from service.dashboard.look import Look, Shown
from service.requests import WindowList

MAX_LISTED: Final = 200
_DOCUMENTED: Final = ("invalid_parameters", "unknown")
"""Kinds of failure against which a sentence in the tool's description helps."""
ASKS: Final = {
    "repair": "Repair the implementation",
    "tighten_contract": "Tighten the contract",
    "split": "Split the tool",
    "recompose": "Split it, and use other tools for the parts that these do",
    "review_promotion": "Review the promotion",
}
_BACKTICKS: Final = re.compile("`+")


class _Doc(NamedTuple):
    tool: ToolName
    say: str
    why: str
    times: int


async def show_recommendations(look: Look) -> Shown:
    """Return the page: open and taken ones, or those of one state."""
    state = look.query.get("state", "")
    asked = RecommendationQuery(state="all", limit=1_000)
    answer = await look.read_rarely(
        "recommendations", lambda: list_recommendations(look.space, asked)
    )
    found = answer.recommendations
    shown = ("open", "taken") if state not in get_args(RecommendationState) else (state,)
    listed = [each for each in found if each.state in shown][:MAX_LISTED]
    return look.show_page(
        "Recommendations",
        "recommendations",
        listed=[(each, issue_text(each)) for each in listed],
        counts=[(each, sum(one.state == each for one in found))
                for each in get_args(RecommendationState)],
        state=state,
        asks=ASKS,
        states=get_args(RecommendationState),
        docs=await _list_docs(look),
        columns=[
            look.whole_tool_column(),
            h.Column("say", "What its description should say"),
            h.Column("why", "Why"),
            h.Column("times", "Times", "number"),
        ],
    )  # fmt: skip


async def _list_docs(look: Look) -> list[_Doc]:
    """Return sentences that descriptions of tools lack: lessons of failures, and corrections."""
    rows = [
        _Doc(each.pattern.tool, each.pattern.lesson, each.pattern.title, each.failures)
        for each in (
            await read_pattern_statistics(look.space, WindowList(window=look.window, limit=500))
        ).patterns
        if each.pattern.lesson and each.pattern.category in _DOCUMENTED
    ]
    for one in (await list_corrections(look.space, CorrectionsQuery(limit=100))).corrections:
        if one.tool_name is not None:
            tool = ToolName(server_name=one.server_name, tool_name=one.tool_name)
            text = look.context.redactor.text(one.text)
            rows.append(_Doc(tool, text, f"a user's correction ({one.kind})", 1))
    return rows


def issue_text(each: Recommendation) -> str:
    """Return an issue for the tool's maker, in Markdown.

    The words of others stand in code, as they are.
    """
    evidence, tool = each.evidence, each.tool
    subject = w.format_tool(tool) if tool else each.namespace or ""
    calls = f", of {w.format_noun(evidence.calls, 'call')}" if evidence.calls else ""
    counted = [
        f"- {code_span(one.what)}: {w.format_count(one.count)}{calls}" for one in evidence.counts
    ]
    proposed = [map(code_span, split) for split in evidence.suggested_splits[:3]]
    splits = [f"- {', then '.join(parts)}" for parts in proposed]
    first, last = w.format_moment(each.first_seen), w.format_moment(each.last_seen)
    parts = [
        f"# {ASKS[each.kind]}: {code_span(subject)}",
        _fence_text(each.message),
        f"Sure: {w.format_percent(each.confidence)}. First seen {first}, last seen {last} (UTC).",
    ]
    if counted:
        parts.append("\n".join(["## What was counted", "", *counted]))
    if splits:
        parts.append("\n".join(["## Splits that the tool proposed", "", *splits]))
    if evidence.quotes:
        parts += ["## What was said", *map(_fence_text, evidence.quotes)]
    parts.append(
        "Counted by Aftercall from recorded calls; quotes are what the tool or its users said."
    )
    return "\n\n".join(filter(None, parts)) + "\n"


def code_span(text: str) -> str:
    """Return a text as a code span, in which Markdown means nothing: no markup, link or mention."""
    text = w.format_line(text, w.MAX_SENTENCE)
    ticks = _lengthen_fence(text, 1)
    return f"{ticks} {text} {ticks}" if "`" in text else f"{ticks}{text}{ticks}"


def _fence_text(text: str) -> str:
    text = w.escape_hidden(text, w.MAX_SENTENCE)
    ticks = _lengthen_fence(text, 3)
    return f"{ticks}text\n{text}\n{ticks}"


def _lengthen_fence(text: str, least: int) -> str:
    """Return more backticks than stand in a row in the text."""
    return "`" * max([least, *(len(each) + 1 for each in _BACKTICKS.findall(text))])
