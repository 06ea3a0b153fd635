"""A made-up history of tool calls, the same for the same seed.

200 tools of 20 servers, 24 agents, sessions of a few calls each. About one call in five fails, as
calls do: a limit beyond the maximum, a wrong type, a renamed or missing parameter, a value outside
an enumeration, a date in another form, an unknown time zone, a timeout, a rate limit. Two thirds of
the mistakes are mended later in the same session. Executions are plain dicts in the wire's form.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

Json = dict[str, Any]

AGENTS = tuple(
    f"{role}-{number}"
    for role in ("librarian", "planner", "analyst", "coder", "support", "researcher")
    for number in range(1, 5)
)

_SOME_DAY = datetime(2026, 1, 5, tzinfo=UTC)
_DAYS = 28

_VERBS = (
    "search",
    "list",
    "get",
    "create",
    "update",
    "delete",
    "export",
    "summarise",
    "move",
    "tag",
)
_NOUNS = (
    "documents", "issues", "commits", "tickets", "invoices", "events", "contacts", "files", "rooms",
    "flights", "orders", "alerts", "metrics", "notes", "tasks", "messages", "branches", "reports",
    "customers", "photos",
)  # fmt: skip
_WORDS = (
    "quarterly", "reflection", "retry", "budget", "onboarding", "latency", "harbour", "contract",
    "migration", "calendar", "regional", "warehouse", "payment", "seasonal", "archive", "customer",
    "gateway", "draft", "holiday", "incident", "renewal", "catalogue", "northern", "shipping",
    "training", "forecast", "summary", "vendor", "planning", "security", "release", "backlog",
)  # fmt: skip
_ZONES = ("Europe/Berlin", "America/New_York", "Asia/Tokyo", "UTC", "Africa/Nairobi")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a tool: how it is right, and the ways in which agents get it wrong."""

    name: str
    schema: Json
    right: Callable[[random.Random], Any]
    wrong: Callable[[random.Random], tuple[Any, str]] | None
    """A wrong value and what the tool says of it."""


@dataclass(frozen=True)
class HistoryTool:
    """A tool of the history."""

    server: str
    name: str
    parameters: tuple[Parameter, ...]
    renamed: tuple[str, str]
    """The required parameter, and what agents call it instead."""

    @property
    def input_schema(self) -> Json:
        """Its JSON Schema; the first parameter is required."""
        return {
            "type": "object",
            "properties": {parameter.name: parameter.schema for parameter in self.parameters},
            "required": [self.parameters[0].name],
            "additionalProperties": False,
        }


def tools(count: int = 200, seed: int = 7) -> list[HistoryTool]:
    """The tools of the history; at most 200, one per verb and noun."""
    dice = random.Random(seed)  # a repeatable history, no secret
    names = [f"{verb}_{noun}" for noun in _NOUNS for verb in _VERBS]
    return [_tool(f"{name.split('_')[1]}-server", name, dice) for name in names[:count]]


def executions(
    count: int, seed: int = 7, tool_count: int = 200, start: datetime | None = None
) -> Iterator[Json]:
    """`count` executions in the order in which they happened, in the four weeks from `start`.

    Without a start, in those that end today at midnight: what is old is refused.
    """
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    begins = midnight - timedelta(days=_DAYS) if start is None else start
    dice = random.Random(seed)  # as above
    catalogue = tools(tool_count, seed)
    step = timedelta(days=_DAYS) / count
    made = 0
    while made < count:
        for execution in _session(dice, catalogue, made // 6):
            if made == count:
                return
            execution["timestamp"] = (begins + made * step).isoformat()
            made += 1
            yield execution


def new_failures(count: int, seed: int = 11, tool_count: int = 200) -> Iterator[Json]:
    """Failures of the history's tools in words and with values that the history does not have.

    Every error text and context is distinct, also after its numbers and quotes are masked, so that
    no cache of texts or signatures can answer.
    """
    dice = random.Random(seed)  # as above
    catalogue = tools(tool_count)
    for number in range(count):
        tool = dice.choice(catalogue)
        said = " ".join(dice.sample(_WORDS, 4))
        parameter = dice.choice(tool.parameters)
        yield {
            "agent": dice.choice(AGENTS),
            "serverName": tool.server,
            "toolName": tool.name,
            "parameters": _right(tool, dice),
            "context": f"Prepare the {said} overview before the {dice.choice(_WORDS)} review",
            "outcome": "failure",
            "durationMs": 12.0,
            "error": {
                "type": "ValidationError",
                "message": f"{parameter.name} was refused while handling {said} {_letters(number)}",
            },
            "sessionId": f"ask-{number}",
        }


def repeated_failures(count: int, seed: int = 7, tool_count: int = 200) -> Iterator[Json]:
    """The commonest mistake, made again and again by different sessions."""
    dice = random.Random(seed)  # as above
    tool = tools(tool_count)[0]
    failed = next(
        execution
        for execution in executions(5000, seed, tool_count)
        if execution["toolName"] == tool.name
        and (execution["error"] or {}).get("type") == "ValidationError"
    )
    for number in range(count):
        again = {k: v for k, v in failed.items() if k not in {"executionId", "timestamp"}}
        yield again | {"agent": dice.choice(AGENTS), "sessionId": f"again-{number}"}


def _session(dice: random.Random, catalogue: list[HistoryTool], number: int) -> Iterator[Json]:
    agent = dice.choice(AGENTS)
    errand = dice.choice(("Find", "Prepare", "Check"))
    context = f"{errand} the {dice.choice(_WORDS)} {dice.choice(_NOUNS)}"
    sequence = 0
    for tool in dice.choices(catalogue, _popularity(len(catalogue)), k=dice.randint(3, 8)):
        common = {
            "agent": agent,
            "serverName": tool.server,
            "toolName": tool.name,
            "context": context,
            "sessionId": f"s-{number}-{agent}",
        }
        parameters = _right(tool, dice)
        if dice.random() < 0.2:
            mistaken, error = _mistake(tool, parameters, dice)
            yield _execution(dice, common, mistaken, sequence, error)
            sequence += 1
            if dice.random() > 0.66:  # given up
                continue
        yield _execution(dice, common, parameters, sequence, None)
        sequence += 1


@lru_cache
def _popularity(count: int) -> tuple[float, ...]:
    """A few tools get most of the calls, as everywhere; Zipf's law, flattened at the top."""
    return tuple(1 / (rank + 10) for rank in range(count))


def _execution(
    dice: random.Random, common: Json, parameters: Json, sequence: int, error: Json | None
) -> Json:
    return {
        "executionId": str(UUID(int=dice.getrandbits(128), version=4)),
        **common,
        "parameters": parameters,
        "outcome": "success" if error is None else "failure",
        "durationMs": round(dice.lognormvariate(4.5, 0.8), 1),
        "error": error,
        "result": {"count": dice.randint(0, 40)} if error is None else None,
        "sequence": sequence,
    }


def _right(tool: HistoryTool, dice: random.Random) -> Json:
    first, *others = tool.parameters
    chosen = [first, *(parameter for parameter in others if dice.random() < 0.6)]
    return {parameter.name: parameter.right(dice) for parameter in chosen}


def _mistake(tool: HistoryTool, right: Json, dice: random.Random) -> tuple[Json, Json]:
    """What an agent sends instead of `right`, and what the tool says of it."""
    kind = dice.random()
    if kind < 0.12:
        seconds = dice.randint(5, 60)
        return right, _error("TimeoutError", f"Timed out after {seconds} seconds", None)
    if kind < 0.2:
        return right, _error("RateLimitError", "Too many requests, slow down", "429")
    known, called = tool.renamed
    if kind < 0.4:
        mistaken = {called if name == known else name: value for name, value in right.items()}
        said = f"Additional properties are not allowed ('{called}' was unexpected)"
        return mistaken, _error("ValidationError", said, "-32602")
    if kind < 0.5:
        mistaken = {name: value for name, value in right.items() if name != known}
        return mistaken, _error("ValidationError", f"'{known}' is a required property", "-32602")
    name, wrong = dice.choice([(p.name, p.wrong) for p in tool.parameters if p.wrong])
    value, message = wrong(dice)
    return right | {name: value}, _error("ValidationError", message, "-32602")


def _error(kind: str, message: str, code: str | None) -> Json:
    return {"type": kind, "message": message, "code": code}


def _tool(server: str, name: str, dice: random.Random) -> HistoryTool:
    first = _text_parameter(dice.choice(("query", "path", "title", "subject")))
    pool = [
        _limit(
            dice.choice(("limit", "topK", "max_results", "pageSize")),
            dice.choice((10, 20, 50, 100)),
        ),
        _choice("order", ("asc", "desc"), "ascending"),
        _choice("format", ("json", "csv", "markdown"), "JSON file"),
        _date(dice.choice(("since", "start_date", "from_date"))),
        _zone(dice.choice(("timezone", "tz"))),
        _identifier(dice.choice(("project_id", "owner_id", "folder_id"))),
    ]
    others = dice.sample(pool, dice.randint(2, 5))
    renamed = (
        first.name,
        {"query": "q", "path": "file", "title": "name", "subject": "topic"}[first.name],
    )
    return HistoryTool(server, name, (first, *others), renamed)


def _text_parameter(name: str) -> Parameter:
    def right(dice: random.Random) -> str:
        words = " ".join(dice.sample(_WORDS, dice.randint(1, 4)))
        return f"/srv/{words.replace(' ', '/')}.md" if name == "path" else words

    return Parameter(name, {"type": "string"}, right, None)


def _limit(name: str, most: int) -> Parameter:
    def wrong(dice: random.Random) -> tuple[int, str]:
        value = most * dice.choice((2, 5, 10))
        return value, f"Invalid parameter: {name} must be <= {most}, got {value}"

    return Parameter(
        name,
        {"type": "integer", "minimum": 1, "maximum": most},
        lambda dice: dice.randint(1, most),
        wrong,
    )


def _choice(name: str, values: tuple[str, ...], mistaken: str) -> Parameter:
    return Parameter(
        name,
        {"enum": list(values)},
        lambda dice: dice.choice(values),
        lambda _: (mistaken, f"'{mistaken}' is not one of {list(values)}"),
    )


def _date(name: str) -> Parameter:
    def day(dice: random.Random) -> datetime:
        return _SOME_DAY + timedelta(days=dice.randint(0, 300))

    def wrong(dice: random.Random) -> tuple[str, str]:
        value = day(dice).strftime("%d/%m/%Y")
        return value, f"{name}: time data '{value}' does not match format '%Y-%m-%d'"

    return Parameter(
        name,
        {"type": "string", "format": "date"},
        lambda dice: day(dice).strftime("%Y-%m-%d"),
        wrong,
    )


def _zone(name: str) -> Parameter:
    def wrong(dice: random.Random) -> tuple[str, str]:
        value = dice.choice(("EST", "Berlin", "GMT+9", "New York"))
        return value, f"Invalid timezone: '{value}' is no IANA name"

    return Parameter(name, {"type": "string"}, lambda dice: dice.choice(_ZONES), wrong)


def _identifier(name: str) -> Parameter:
    def wrong(dice: random.Random) -> tuple[str, str]:
        value = str(dice.randint(1, 9999))
        return value, f"'{value}' is not of type 'integer'"

    return Parameter(name, {"type": "integer"}, lambda dice: dice.randint(1, 9999), wrong)


def _letters(number: int) -> str:
    """A number as a made-up word, since digits are masked in signatures."""
    word = ""
    while True:
        number, digit = divmod(number, 20)
        word += "bdfgklmnprstvzchjwxq"[digit] + "aeiou"[digit % 5]
        if number == 0:
            return word
