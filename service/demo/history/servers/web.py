"""The server `web`: searching, reading pages, taking lists and tables out of pages."""

from random import Random

from aftercall.json_values import JsonObject, JsonValue
from service.demo.history.dialects import Pydantic
from service.demo.history.drift import Drift, Weather
from service.demo.history.faults import ToolFault
from service.demo.history.schemas import choice, flag, schema, text, whole
from service.demo.history.slips import against_a_rule, as_text, beyond, called, invented, renamed
from service.demo.history.subjects import subject
from service.demo.history.tools import Elsewhere, Moment, SimTool, Wish

_SITES = ("intranet.example", "wiki.example", "status.example")
_EXTRACTIONS = {
    "list the prices on it": ("page reading", "price extraction"),
    "extract the table on it": ("page reading", "table extraction"),
    "say which trains leave": ("HTML parsing", "timetable extraction"),
}


def _web_search(call: JsonObject, moment: Moment) -> JsonValue:
    query = str(call["query"])
    if len(query) > 80:
        raise ToolFault(
            "hidden_rule", "query is too long for this index: 80 characters are searched",
            type="ValueError",
        )  # fmt: skip
    hits = min(int(str(call["max_results"])), 3 + int(moment.dice.random() * 20))
    return {"hits": hits, "first": f"https://{moment.dice.choice(_SITES)}/{query[:12]}"}


def _wish_search(dice: Random) -> Wish:
    about = subject(dice)
    parameters: JsonObject = {"query": about, "max_results": dice.choice((3, 5, 10))}
    if dice.random() < 0.4:
        parameters["recency"] = dice.choice(("day", "week", "month"))
    return Wish(parameters, f"Find what was written about {about}")


def _longer(query: str, dice: Random) -> str:
    return f"{query}, everything that was said, decided or changed, with dates and names" + (
        " please" if dice.random() < 0.5 else ""
    )


def _page_reader(call: JsonObject, moment: Moment) -> JsonValue:
    url, task = str(call["url"]), str(call["task"])
    if not url.startswith("https://"):
        raise ToolFault(
            "hidden_rule", f"cannot fetch {url!r}: only https addresses are read", type="FetchError"
        )
    axes = _EXTRACTIONS.get(task)
    if axes is not None:
        raise ToolFault(
            "wrong_tool", "reading a page is my job, taking things out of it is not",
            type="wrong_tool_boundary",
            details={
                "boundaryAxes": list(axes),
                "observedTaskShape": f"{axes[0]} + {axes[1]}",
                "suggestedSplit": ["page_reader", "table_extractor"],
                "evidence": f"the task says {task!r}",
            },
        )  # fmt: skip
    if "/old/" in url:
        raise ToolFault("not_found", f"404 Not Found: {url}", type="FetchError", code="404")
    return {"words": 120 + int(moment.dice.random() * 900)}


def _wish_reader(dice: Random) -> Wish:
    about = subject(dice)
    url = f"https://{dice.choice(_SITES)}/{about.replace(' ', '-')}"
    if dice.random() < 0.22:
        task = dice.choice(sorted(_EXTRACTIONS))
        instead = Elsewhere("web.table_extractor", {"url": url, "kind": "table"})
        return Wish({"url": url, "task": task}, f"Open the page about {about} and {task}", instead)
    return Wish({"url": url, "task": "read"}, f"Read the page about {about}")


def _insecure(url: str, dice: Random) -> str:
    return url.removeprefix("https://") if dice.random() < 0.6 else url.replace("https", "http")


def _table_extractor(call: JsonObject, moment: Moment) -> JsonValue:
    rows = int(moment.dice.random() * 12)
    if rows == 0 and call["kind"] == "list":
        raise ToolFault(
            "little_use", "there is no list on this page; what came out is its menu",
            type="low_utility", details={"evidence": "7 entries, all of them links to pages"},
        )  # fmt: skip
    return {"rows": rows + 1}


def _wish_extractor(dice: Random) -> Wish:
    about = subject(dice)
    parameters: JsonObject = {
        "url": f"https://{dice.choice(_SITES)}/{about.replace(' ', '-')}",
        "kind": dice.choice(("table", "table", "list")),
    }
    return Wish(parameters, f"Take the figures out of the page about {about}")


TOOLS = (
    SimTool(
        server="web",
        name="web_search",
        namespace="search",
        run=_web_search,
        wish=_wish_search,
        dialect=Pydantic(),
        input_schema=schema(
            "query",
            query=text("what to look for"),
            max_results=whole(1, 20, default=10),
            recency=choice("day", "week", "month", "any", default="any"),
        ),
        slips=(
            renamed("query", "q", "search_query", weight=2),
            renamed("max_results", "limit", "top_k", "count", weight=2),
            beyond("max_results", 20, 50, 100),
            as_text("max_results"),
            called("recency", {"day": ("today", "24h"), "week": ("7d", "weekly")}),
            against_a_rule("query", _longer),
            invented("language", "en", "de"),
        ),
        description="Search the web for pages about something.",
        tags=("search", "web"),
        latency_ms=420,
        drift=(Drift(20, 29, None, Weather(slowness=2.2, timeouts=0.03)),),
        popularity=2.0,
    ),
    SimTool(
        server="web",
        name="page_reader",
        namespace="pages",
        run=_page_reader,
        wish=_wish_reader,
        dialect=Pydantic(),
        input_schema=schema(
            "url",
            url=text("address of the page"),
            task=text("what to do with it", default="read"),
            render=flag(default=False),
        ),
        slips=(
            renamed("url", "link", "page_url"),
            against_a_rule("url", _insecure),
            invented("format", "markdown"),
        ),
        description="Open a web page and read its text.",
        tags=("web", "reading"),
        latency_ms=650,
        popularity=1.6,
    ),
    SimTool(
        server="web",
        name="table_extractor",
        namespace="extraction",
        run=_table_extractor,
        wish=_wish_extractor,
        dialect=Pydantic(),
        input_schema=schema(
            "url", "kind", url=text("address of the page"), kind=choice("table", "list")
        ),
        slips=(
            renamed("kind", "type", "what"),
            called("kind", {"table": ("tables", "grid"), "list": ("bullets",)}),
        ),
        description="Take the rows of a table or a list out of a web page.",
        tags=("web", "extraction"),
        latency_ms=310,
    ),
)
