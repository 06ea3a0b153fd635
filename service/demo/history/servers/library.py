"""The server `library`: two more search tools, and notes."""

from random import Random

from aftercall.json_values import JsonObject, JsonValue
from service.demo.history.dialects import JsonSchema
from service.demo.history.faults import ToolFault
from service.demo.history.schemas import DAY, choice, form, schema, text, texts, whole
from service.demo.history.slips import (
    against_a_rule,
    as_one,
    as_text,
    beyond,
    called,
    day_forms,
    formed,
    invented,
    left_out,
    mistaken,
    renamed,
)
from service.demo.history.subjects import day, subject
from service.demo.history.tools import WRITES, Moment, SimTool, Wish

_COLLECTIONS = ("handbook", "decisions", "minutes", "policies")


def _docs_search(call: JsonObject, moment: Moment) -> JsonValue:
    collection = str(call["collection"])
    if collection not in _COLLECTIONS:
        nearest = min(_COLLECTIONS, key=lambda each: (each[0] != collection[:1].lower(), each))
        raise ToolFault(
            "not_found", f"collection {collection!r} not found, did you mean {nearest!r}?",
            type="LookupError",
        )  # fmt: skip
    if int(str(call["topK"])) > 10:  # the schema says 50
        raise ToolFault(
            "hidden_rule", "Invalid parameter: topK must be <= 10 for semantic collections",
            type="McpError", code="-32602",
        )  # fmt: skip
    return {"passages": 1 + int(moment.dice.random() * 9)}


def _wish_docs(dice: Random) -> Wish:
    about = subject(dice)
    parameters: JsonObject = {
        "query": about, "collection": dice.choice(_COLLECTIONS), "topK": dice.choice((3, 5, 8)),
    }  # fmt: skip
    return Wish(parameters, f"Look up what our documents say about {about}")


def _archive_search(call: JsonObject, moment: Moment) -> JsonValue:
    if str(call["before"]) < "2026-02-01" and moment.dice.random() < 0.5:
        raise ToolFault(
            "little_use", "what was found is older than five years and superseded",
            type="low_utility", details={"evidence": "all hits carry the mark 'superseded'"},
        )  # fmt: skip
    return {"records": int(moment.dice.random() * 40)}


def _wish_archive(dice: Random) -> Wish:
    about = subject(dice)
    parameters: JsonObject = {"terms": [*about.split()], "before": day(dice)}
    if dice.random() < 0.3:
        parameters["limit"] = dice.choice((10, 25))
    return Wish(parameters, f"Search the archive for old papers about {about}")


def _add_note(call: JsonObject, moment: Moment) -> JsonValue:
    title = str(call["title"])
    if title != title.strip() or title.endswith("."):
        raise ToolFault(
            "hidden_rule", "title must not end with a full stop", type="McpError", code="-32602"
        )
    if moment.dice.random() < 0.03:
        raise ToolFault(
            "conflict", f"409 Conflict: a note {title!r} exists already", type="Conflict",
            code="409",
        )  # fmt: skip
    return {"note": f"n-{int(moment.dice.random() * 9000) + 1000}"}


def _wish_note(dice: Random) -> Wish:
    about = subject(dice)
    parameters: JsonObject = {
        "title": f"On {about}", "body": f"What we know of {about}", "tags": [*about.split()[:2]],
    }  # fmt: skip
    if dice.random() < 0.4:
        parameters["visibility"] = dice.choice(("private", "team", "team"))
    return Wish(parameters, f"Keep a note about {about}")


TOOLS = (
    SimTool(
        server="library",
        name="docs_search",
        namespace="search",
        run=_docs_search,
        wish=_wish_docs,
        dialect=JsonSchema(),
        input_schema=schema(
            "query", "collection",
            query=text(), collection=text("name of a collection"), topK=whole(1, 50, default=5),
        ),
        slips=(
            renamed("topK", "top_k", "limit", weight=2),
            beyond("topK", 10, 20, 50, weight=2, is_hidden=True),
            left_out("collection"),
            as_text("topK"),
            mistaken("collection", lambda name, _: name.removesuffix("s").capitalize()),
        ),
        description="Search the company's own documents by meaning.",
        tags=("search", "documents"),
        latency_ms=180,
        popularity=1.8,
    ),
    SimTool(
        server="library",
        name="archive_search",
        namespace="search",
        run=_archive_search,
        wish=_wish_archive,
        dialect=JsonSchema(),
        input_schema=schema(
            "terms", "before",
            terms=texts("words that must occur"), before=form(DAY), limit=whole(1, 100, default=25),
        ),
        slips=(
            as_one("terms", weight=2),
            formed("before", day_forms, weight=2),
            renamed("before", "until", "date"),
            invented("fuzzy", True),  # noqa: FBT003  # a value, not an option
        ),
        description="Search the archive of superseded papers by words.",
        tags=("search", "archive"),
        latency_ms=900,
        popularity=0.8,
    ),
    SimTool(
        server="library",
        name="add_note",
        namespace="notes",
        run=_add_note,
        wish=_wish_note,
        dialect=JsonSchema(),
        input_schema=schema(
            "title", "body", title=text(), body=text(), tags=texts(),
            visibility=choice("private", "team", default="team"),
        ),
        slips=(
            as_one("tags"),
            against_a_rule("title", lambda title, _: f"{title}."),
            renamed("body", "content", "text"),
            called("visibility", {"team": ("public", "shared")}),
        ),
        description="Keep a note.",
        annotations=WRITES,
        latency_ms=70,
        popularity=0.7,
    ),
)  # fmt: skip
