"""*Try it*: ask about a failed call, see the suggestion and its evidence; nothing is recorded."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Final

from aftercall.models import FailedCall, FailurePattern, SuggestRequest
from embeddings.protocol import EmbeddingError
from mongo.errors import StoreError
from retrieval.index.protocol import VectorIndexError
from service.dashboard.look import Look
from service.dashboard.page import Page
from service.dashboard.parts.text_form import TextForm
from service.dashboard.parts.try_answer import TryAnswer
from service.dashboard.parts.try_examples import examples_of
from service.dashboard.parts.try_form import PASTE_FIELDS, by_field, fields_for
from service.dashboard.shown.asking import (
    MAX_CHARS,
    PASTED,
    Faults,
    Form,
    body_of,
    from_form,
    from_pasted,
)
from service.dashboard.widgets import box, section, text
from service.health import PatternsQuery, failure_patterns

logger = logging.getLogger(__name__)

_MAX_TOOLS: Final = 500

_MAX_PATTERNS: Final = 1_000
"""Patterns of one tool in which the executions of an answer's evidence are looked for."""

_TOP_PATTERNS: Final = 10

_PREFILLED: Final = {
    "tool": "tool",
    "server": "server",
    "parameters": "parameters",
    "error": "message",
    "type": "error_type",
    "code": "error_code",
    "context": "context",
    "agent": "agent",
}
"""Query parameters by which a link fills fields in; it never asks."""

_WRONG: Final = "Nothing was asked: the form says what is wrong."

_AWAY: Final = "The service cannot answer at this moment; its log says why."

FillIn = Callable[[Form], None]


async def build(look: Look) -> None:
    """Fill the page."""
    known = await look.services.store.tools_with_health(look.workspace, _MAX_TOOLS)

    async def ask_form(texts: Mapping[str, str]) -> None:
        await ask(form, from_form(Form(**texts)))

    async def ask_pasted(texts: Mapping[str, str]) -> None:
        await ask(pasted, from_pasted(texts[PASTED]))

    async def ask(asked_by: TextForm, asked: SuggestRequest | Faults) -> None:
        if isinstance(asked, SuggestRequest):
            asked_by.tell({})
            await _answer(look, asked, place)
        else:
            asked_by.tell(by_field(asked))
            place.say(_WRONG)

    def fill(filled: Form) -> None:
        form.fill(asdict(filled))

    text(
        "Ask about a failed call as a gateway would. Nothing is recorded: neither the call nor "
        "the answer counts or teaches."
    )
    with section("A failed call", note="Ctrl+Enter asks from any field."):
        await _examples(look, fill)
        form = TextForm(fields_for(known), "Ask", ask_form)
        fill(_from_link(look))
        with box("details"):
            text("Or paste a whole call", "summary")
            pasted = TextForm(PASTE_FIELDS, "Ask about what is pasted", ask_pasted)
    place = TryAnswer(look)


async def _answer(look: Look, request: SuggestRequest, place: TryAnswer) -> None:
    services = look.services
    try:
        response = await services.suggester.rehearse(look.workspace, request)
        patterns = await _patterns(look, request.execution, _MAX_PATTERNS)
    except (StoreError, EmbeddingError, VectorIndexError) as error:
        logger.warning("nothing could be tried out: %s", error)
        place.say(_AWAY)
        return
    place.show(response, body_of(request, services.redactor), patterns)


async def _patterns(look: Look, tool: FailedCall | None, limit: int) -> Sequence[FailurePattern]:
    """Those of a call's tool, or of all; most failures first."""
    query = PatternsQuery(
        tool_name=None if tool is None else tool.tool_name,
        server_name=None if tool is None else tool.server_name,
        limit=limit,
    )
    found = await failure_patterns(look.services, look.workspace, query)
    return found.patterns


async def _examples(look: Look, fill: FillIn) -> None:
    """Buttons that fill in failures of this workspace."""
    patterns = await _patterns(look, tool=None, limit=_TOP_PATTERNS)
    examples = await examples_of(look.services, look.workspace, patterns)
    if not examples:
        return
    text("Fill in the latest failure of a frequent pattern:", "p", "note", id="examples")
    with box("div", "examples", role="group", aria_labelledby="examples"):
        for example in examples:
            button = text(example.label, "button", type="button")
            button.on("click", lambda form=example.form: fill(form), args=[])


def _from_link(look: Look) -> Form:
    """Texts that the address gives to fields; one that is too long is refused when it is asked."""
    given = {
        field: look.params[name][: MAX_CHARS + 1]
        for name, field in _PREFILLED.items()
        if look.params.get(name)
    }
    return Form(**given)


PAGE = Page(path="/try", title="Try it", nav="Try it", build=build)
