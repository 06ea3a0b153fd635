"""The last part of the demo: a tool that is asked to do two jobs, and one whose answers are empty.

Two real tools work on the pages of a small site: one reads pages, one lists the films on a page.
Agents ask the reader for films, which it says is not its job; they take an empty list of films for
an answer, until a user says what it is, and a contract makes it fail at once. What becomes of that
comes from the service.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from aftercall import AsyncClient, Outcome, Recorder, ToolSpec, call_with_reflection
from aftercall.contracts import Deliverable, checked
from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import Recommendation, ToolHealth
from service.demo.stage import Stage, StageError

READER = "page_reader"
LISTER = "film_lister"
MOST_REFERRALS = 10
"""The warning must have come by then."""

_LEARNED_S = 30.0
_PAGES = {
    "cinema.html": "<h1>Tonight</h1><li class=film>Alien</li><li class=film>Solaris</li>",
    "menu.html": "<h1>The Regal</h1><nav><a>Start</a><a>Tickets</a><a>Contact</a></nav>",
}
_QUESTION = "which films are on tonight?"


@dataclass(frozen=True, slots=True)
class BoundaryCall:
    """One call and how it ended, in the tool's own word; `lane` is what became of it."""

    tool: str
    asked: str
    said: str
    lane: str


@dataclass(frozen=True, slots=True)
class BoundaryScene:
    """What was called, and what a tool builder and the next agent are told."""

    calls: list[BoundaryCall]
    reader: ToolHealth
    recommendations: list[Recommendation]
    known_tools: str


async def play_boundaries(stage: Stage, on_call: Callable[[BoundaryCall], None]) -> BoundaryScene:
    """Play the scene on a stage.

    Raises:
        StageError: something does not happen that must, such as the warning.
    """
    pages = stage.data_dir.parent / "pages"
    pages.mkdir(exist_ok=True)
    for name, content in _PAGES.items():
        (pages / name).write_text(content, encoding="utf-8")
    calls: list[BoundaryCall] = []

    def note(call: BoundaryCall) -> None:
        calls.append(call)
        on_call(call)

    async with AsyncClient(stage.service_url) as client:
        with Recorder(base_url=stage.service_url, spool_dir=None) as recorder:
            place = _Place(pages, client, recorder)
            await _register(place)
            for _ in range(3):
                note(await _call(place, READER, {"page": "cinema.html", "want": "page"}))
            for _ in range(MOST_REFERRALS):
                note(await _call(place, READER, {"page": "cinema.html", "want": "films"}))
                health = await client.tool_health(READER)
                if health.cohesion.warning:
                    break
            else:
                raise StageError("a tool that was asked to do two jobs was never warned of")
            note(await _call(place, LISTER, {"page": "cinema.html"}))
            for words in ("that doesn't look like a movie list", "this is a menu, not titles"):
                note(await _call(place, LISTER, {"page": "menu.html"}))
                await client.correct(words, session_id="demo-films", tool_name=LISTER)
            note(await _call(place, LISTER, {"page": "menu.html"}, with_contract=True))
            return BoundaryScene(
                calls,
                health,
                await client.recommendations(),
                await client.known_tools([READER, LISTER], max_tokens=600),
            )


@dataclass(frozen=True, slots=True)
class _Place:
    pages: Path
    client: AsyncClient
    recorder: Recorder

    async def read_page(self, parameters: JsonObject) -> Outcome[JsonValue]:
        """Reads pages, and says so when it is asked for what is on them."""
        text = (self.pages / str(parameters["page"])).read_text(encoding="utf-8")
        if parameters["want"] == "page":
            return Outcome.ok(text)
        return Outcome.wrong_tool_boundary(
            "I read pages; what is on them is for a tool that knows films",
            boundary_axes=["page reading", "film extraction"],
            observed_task_shape="read a page and list the films on it",
            suggested_split=[READER, LISTER],
            evidence=f"asked for {parameters['want']} on a page of {len(text)} characters",
        )

    async def list_films(self, parameters: JsonObject) -> JsonValue:
        """Lists what a page marks as films, and calls it a success when there is none."""
        found = _Films()
        found.feed((self.pages / str(parameters["page"])).read_text(encoding="utf-8"))
        titles: list[JsonValue] = [*found.titles]
        return {"status": "success" if titles else "success_no_parse", "titles": titles}


class _Films(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.titles: list[str] = []
        self._in_film = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_film = tag == "li" and ("class", "film") in attrs

    def handle_data(self, data: str) -> None:
        if self._in_film:
            self.titles.append(data)


_FILMS = Deliverable.from_dict(
    {"type": "object", "required": ["titles"], "fields": {"titles": {"min_items": 1}}}
)


async def _call(
    place: _Place, tool: str, parameters: JsonObject, *, with_contract: bool = False
) -> BoundaryCall:
    run = place.read_page if tool == READER else place.list_films
    reflected = await call_with_reflection(
        checked(run, _FILMS) if with_contract else run,
        tool_name=tool,
        parameters=parameters,
        agent="fay",
        session_id="demo-films",
        context=_QUESTION,
        client=place.client,
        recorder=place.recorder,
    )
    await _until_learned(place)
    error = reflected.error
    asked = " ".join(str(value) for value in parameters.values())
    if error is None:
        return BoundaryCall(tool, asked, "success", "")
    first = next(iter(reflected.suggestions), None)
    lane = f"{first.action}: {', then '.join(first.split)}" if first and first.split else ""
    return BoundaryCall(tool, asked, error.type, lane or "the caller is told at once")


async def _register(place: _Place) -> None:
    page: JsonObject = {"type": "string", "description": "a page of the site"}
    want: JsonObject = {"type": "string", "enum": ["page", "films"]}
    for name, description, properties in (
        (READER, "Reads a page of the site.", {"page": page, "want": want}),
        (LISTER, "Lists the films on a page of the site.", {"page": page}),
    ):
        schema: JsonObject = {
            "type": "object",
            "properties": dict(properties),
            "required": list(properties),
        }
        await place.client.put_tool(
            name, ToolSpec(name=name, description=description, input_schema=schema)
        )
    await _until_learned(place)


async def _until_learned(place: _Place) -> None:
    deadline = time.monotonic() + _LEARNED_S
    await asyncio.to_thread(place.recorder.flush)
    while time.monotonic() < deadline:
        if (await place.client.status()).pending_indexing == 0:
            return
        await asyncio.sleep(0.05)
    raise StageError("the service did not learn from the last call in time; see its log")
