"""An answer of *Try it*: what it reads in the error, what it suggests, and what that rests on."""

from collections.abc import Sequence

from nicegui import ui
from nicegui.element import Element

from aftercall.models import FailurePattern, Suggestion, SuggestResponse
from service.dashboard.look import Look
from service.dashboard.shown.answered import (
    MAX_WORDS,
    SURE,
    answer_words,
    change_rows,
    confidence_words,
    evidence_links,
    evidence_pairs,
    headline,
    pattern_of,
)
from service.dashboard.shown.boundary_rows import MAX_NAME
from service.dashboard.shown.call_text import as_json, one_line, visible
from service.dashboard.shown.numbers import count, duration, percent
from service.dashboard.tables import Column, DataTable
from service.dashboard.widgets import (
    Value,
    badge,
    box,
    code,
    facts,
    heading,
    section,
    text,
)

_MAX_JSON = 20_000
"""Characters of corrected parameters, or of a body to copy."""


class TryAnswer:
    """The place of the answer; empty until something was asked.

    The sentence that sums it up is read out by screen readers when it comes.
    """

    def __init__(self, look: Look) -> None:
        self._look = look
        with box():
            self._said = text("", "p", "said-first", role="status")
            self._details = box("div", "page")

    def say(self, words: str) -> None:
        """One sentence instead of an answer."""
        self._said.set_text(words)
        self._details.clear()

    def show(
        self, response: SuggestResponse, body: str, patterns: Sequence[FailurePattern]
    ) -> None:
        """Show an answer.

        Args:
            response: the answer.
            body: the body of `POST /suggest` that asks the same.
            patterns: those of the tool, for links.
        """
        self.say(answer_words(response))
        with self._details:
            self._reading(response, patterns)
            for place, suggestion in enumerate(response.suggestions, 1):
                _suggestion(self._look, place, suggestion, patterns)
            with section(
                "The same question to the service", note="Body of POST /suggest, secrets masked."
            ):
                code(visible(body, _MAX_JSON))
        # On a phone it would come below the edge; the name is NiceGUI's own.
        ui.run_javascript(
            f"document.getElementById('{self._said.html_id}')?.scrollIntoView({{block: 'center'}})"
        )

    def _reading(self, response: SuggestResponse, patterns: Sequence[FailurePattern]) -> None:
        pattern = response.pattern
        known = pattern_of(response, patterns)
        pairs: list[tuple[str, Value]] = [
            ("Kind of error", f"{pattern.category}, {percent(pattern.confidence)} sure"),
            ("Signature", one_line(pattern.signature, MAX_WORDS)),
            ("Pattern", self._pattern(known)),
            ("Retry", _retry(response)),
            ("Took", duration(response.took_ms)),
        ]
        with section("How the error is read"):
            facts(pairs)
        if response.abstained:
            with section("No suggestion"):
                badge("abstained", "warn")
                text(one_line(response.reason or "Nothing is known of this failure.", MAX_WORDS))
                text(
                    "It learns from calls that are recorded: above all from the success that "
                    "follows such a failure in the same session."
                )

    def _pattern(self, known: FailurePattern | None) -> Value:
        if known is None:
            return "none that the nightly run has made"
        words = f"failed so {count(known.count)} times, mended {count(known.mended)} times"
        return words, self._look.link(f"/patterns/{known.pattern_id}")


def _retry(response: SuggestResponse) -> str:
    safe = "safe" if response.retry.safe else "not safe"
    return f"{safe}: {one_line(response.retry.reason, MAX_WORDS)}"


def _suggestion(
    look: Look, place: int, suggestion: Suggestion, patterns: Sequence[FailurePattern]
) -> None:
    with section(f"Suggestion {place}: {headline(suggestion)}"):
        is_sure = suggestion.confidence > SURE
        badge(f"confidence {percent(suggestion.confidence)}", "good" if is_sure else "plain")
        text(confidence_words(suggestion), "p", "note")
        text(visible(suggestion.lesson, MAX_WORDS))
        if suggestion.changes:
            _changes(suggestion)
        if suggestion.split:
            facts(
                [("Split into", ", ".join(one_line(each, MAX_NAME) for each in suggestion.split))]
            )
        if suggestion.corrected_parameters is not None:
            heading("Corrected parameters", level=3)
            code(as_json(suggestion.corrected_parameters, _MAX_JSON))
        heading("What it rests on", level=3)
        pairs: list[tuple[str, Value]] = list(evidence_pairs(suggestion.evidence))
        for each in evidence_links(suggestion.evidence, patterns):
            # An execution has no page of its own; the pattern that it exemplifies has.
            href = each.pattern and look.link(f"/patterns/{each.pattern.pattern_id}")
            pairs.append(("Execution", (each.execution_id, href or None)))
        facts(pairs)


def _changes(suggestion: Suggestion) -> Element:
    table = DataTable(
        "Changes",
        [
            Column("op", "Operation"),
            Column("path", "Parameter"),
            Column("from", "From"),
            Column("value", "To"),
            Column("reason", "Why"),
        ],
        "path",
        plain=True,
    )
    table.set(change_rows(suggestion))
    return table.element
