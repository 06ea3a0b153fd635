"""Simulated tools: schemas that refuse, rules that no schema shows, servers with bad days.

The tools are tables in `data/`, one file a server. A table states what a tool takes (`properties`,
`required`), what agents want of it (`wishes`), how they get it wrong (`slips`), what it refuses
beyond its schema (`rules`), and when it is slow or away (`drift`). `data/dialects.toml` states how
servers word a refusal. The error comes out of the tool, not out of the script.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, time
from functools import cache
from importlib.resources import files
from random import Random
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import ExecutionError, ToolAnnotations, ToolSpec

PHASES = 30
"""Days in which the tools' stories are shown; a shorter or longer history stretches them."""
FaultKind = Literal[
    "unknown_parameter", "missing_parameter", "wrong_type", "out_of_range", "not_a_choice",
    "wrong_form", "hidden_rule", "not_found", "conflict", "timeout", "rate_limited", "unavailable",
    "permission", "wrong_tool", "little_use",
]  # fmt: skip
"""Why a call failed: the hidden truth, never sent. `hidden_rule`: one that no schema shows."""
PASSING: frozenset[FaultKind] = frozenset({"timeout", "rate_limited", "unavailable"})
"""Failures that the same call may not meet again."""
HOPELESS: frozenset[FaultKind] = frozenset({"permission", "wrong_tool", "little_use"})
"""Failures that no other parameters of the same tool would repair."""
SlipKind = Literal["name", "missing", "type", "range", "choice", "form", "invented", "hidden", "id"]
"""Kinds of mistakes; agents differ in which of these they are prone to."""
_SERVERS = ("web", "library", "words", "calendar", "tickets", "commerce", "metrics", "files")
_MAYBE = 0.4
"""Share of calls with a parameter whose name ends with `?`."""
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,),
    "array": (list,),
}  # fmt: skip
_EFFECTS = {
    "reads": ToolAnnotations(read_only_hint=True, idempotent_hint=True),
    "writes": ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False),
    "deletes": ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True),
}


class ToolFault(Exception):  # noqa: N818  # a simulated tool's answer, not an error of ours
    """A refusal or a breakdown, in the tool's own words; `kind` is for the simulator alone."""

    def __init__(self, kind: FaultKind, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.kind = kind
        self.error = ExecutionError(message=message, **fields)


class DemoTable(BaseModel):
    """A row of a data file: checked, immutable."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True, slots=True)
class CallMoment:
    """When a tool is called: the day, how busy its server is (0 to 1), with which rights."""

    day: int
    load: float
    may_write: bool
    dice: Random


class Slip(NamedTuple):
    """One way to get a call of one tool wrong.

    `how` has other names or values, texts by the pattern that they replace, or the name of a
    change. If it is about a bound of a tool, the first value is the bound.
    """

    kind: SlipKind
    name: str
    how: Any = None
    weight: float = 1.0

    def make_slip(self, means: JsonObject, dice: Random) -> tuple[JsonObject, JsonObject] | None:
        """Return the sent call and the meant call; None if the slip does not apply."""
        sends = dict(means)
        if self.kind == "invented":
            sends[self.name] = dice.choice(self.how)
            return sends, means
        if self.kind in ("range", "hidden") and isinstance(self.how, list):
            most, *wrong = self.how
            sends[self.name] = dice.choice(wrong)
            return sends, {**means, self.name: most}
        if self.name not in means:
            return None
        value = means[self.name]
        if self.kind in ("missing", "name"):
            del sends[self.name]
            if self.kind == "name":
                sends[dice.choice(self.how)] = value
            return sends, means
        sends[self.name] = _change_value(value, self.how, dice)
        return None if sends[self.name] == value else (sends, means)


def _change_value(value: Any, how: Any, dice: Random) -> JsonValue:
    match how:
        case "list":
            return [value]
        case "one" if isinstance(value, list):
            return ", ".join(map(str, value))
        case "one":
            return str(value)
        case "day":
            form = dice.choice(("%d.%m.%Y", "%Y/%m/%d", "%Y-%m-%dT00:00Z"))
            return date.fromisoformat(value).strftime(form)
        case "time":
            form = dice.choice(("%I:%M %p", "%Hh%M"))
            return time.fromisoformat(value).strftime(form)
        case str():  # as text
            return str(value).lower()
    text = str(value)
    for pattern, texts in how.items():
        if re.search(pattern, text):
            other = str(dice.choice(texts))
            return re.sub(pattern, other, text)
    return value  # type: ignore[no-any-return]  # as it came out of a table


class Wish(DemoTable):
    """What an agent wants from a tool: the right call, and its words.

    In a table, texts hold `{words}` of `data/agents.toml` and parameters that stand before.
    `instead` is the call of another `tool`, if this one will refer to it.
    """

    context: str = ""
    parameters: JsonObject
    instead: "Wish | None" = None
    tool: str | None = None
    share: float = 1.0

    def fill_texts(self, words: "_Words") -> "Wish":
        """Return the wish with these words in its texts."""
        parameters: JsonObject = {}
        for key, table in self.parameters.items():
            name = key.removesuffix("?")
            if name == key or words.dice.random() < _MAYBE:
                parameters[name] = words[name] = words.draw_value(table)
        return Wish.model_construct(
            context=self.context.format_map(words), parameters=parameters, tool=self.tool,
            instead=self.instead and self.instead.fill_texts(words),
        )  # fmt: skip


class _Words(dict[str, Any]):
    """The words of one wish, each drawn when it is first needed."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice

    def __missing__(self, name: str) -> str:
        if name == "slug":
            return str(self["subject"]).replace(" ", "-")
        base = name.rstrip("2")
        options = [
            each for each in read_demo_table("agents")["words"][base] if each != self.get(base)
        ]
        text = self.dice.choice(options).format_map(self)
        self[name] = re.sub("#", lambda _: str(self.dice.randrange(10)), text)
        return str(self[name])

    def draw_value(self, table: Any) -> JsonValue:
        match table:
            case str():
                return table.format_map(self)
            case list():
                return self.draw_value(self.dice.choice(table))
            case {"some": number, "of": name}:
                return [*self.dice.sample(read_demo_table("agents")["words"][name], number)]
            case {"words": text}:
                return [*str(text).format_map(self).split()]
            case {"from": least, "to": most}:
                return round(self.dice.uniform(least, most), 2)
        return table  # type: ignore[no-any-return]  # a number or a flag out of TOML


class HiddenRule(DemoTable):
    """A refusal of a tool that its schema does not show.

    It applies if each pattern of `if` is found in its parameter and not each of `unless`, by chance
    if one is given; refusals for lack of rights only apply to callers without them.
    """

    kind: FaultKind
    says: str
    type: str
    code: str | None = None
    details: JsonObject = {}
    when: dict[str, str] = Field(default={}, alias="if")
    unless: dict[str, str] = {}
    chance: float = 1.0

    def applies_to(self, call: JsonObject, moment: CallMoment) -> bool:
        """Return whether the call is refused."""
        if not _match_all(self.when, call):
            return False
        if self.unless and _match_all(self.unless, call):
            return False
        if self.kind == "permission" and moment.may_write:
            return False
        return self.chance == 1 or moment.dice.random() < self.chance

    def make_fault(self, words: JsonObject) -> ToolFault:
        """Return the refusal."""
        fields = {"type": self.type, "code": self.code, "details": _fill_texts(self.details, words)}
        return ToolFault(self.kind, self.says.format_map(words), **fields)


def _match_all(patterns: dict[str, str], call: JsonObject) -> bool:
    for name, pattern in patterns.items():
        value = call.get(name)
        if value is None or not re.search(pattern, str(value)):
            return False
    return True


def _fill_texts(table: JsonObject, words: JsonObject) -> JsonObject:
    filled = dict(table)
    for name, value in table.items():
        if isinstance(value, str):
            filled[name] = value.format_map(words)
    return filled


class SimTool(DemoTable):
    """One version of one tool, as its table states it.

    `drift` is how its server is from a first to a last day, as `calm` in `data/dialects.toml`;
    numbers of `result` are bounds of a count, its texts hold parameters. This version answers from
    the day `since` of the story on, up to that of `until`; who knew the version before still calls
    it by its `old_habit`, which wears off. `latency_ms` is the median on a calm day, `popularity`
    how often agents take it next to the others of its server, and `corrected` the share of its
    answers that users correct, in the words of `corrections`.
    """

    server: str
    tool_id: str
    spec: ToolSpec
    dialect: str
    properties: dict[str, JsonObject]
    required: list[str] = []
    wishes: list[Wish]
    slips: list[Slip] = []
    rules: list[HiddenRule] = []
    drift: list[dict[str, Any]] = []
    result: JsonObject
    old_habit: Slip | None = None
    since: int = 0
    until: int = PHASES
    reason: str = ""
    latency_ms: float
    popularity: float = 1.0
    corrected: float = 0.0
    corrections: list[str] = []

    @property
    def place(self) -> str:
        """`server.name`: the name under which any version is called."""
        return f"{self.server}.{self.spec.name}"

    def draw_wish(self, dice: Random) -> Wish:
        """Return a wish of an agent for this tool."""
        kind = dice.choices(self.wishes, [each.share for each in self.wishes])[0]
        return kind.fill_texts(_Words(dice))

    def answer_call(self, parameters: JsonObject, moment: CallMoment) -> JsonValue:
        """Return the tool's answer as it is on that day."""
        dice = moment.dice
        now = self._read_weather(moment.day)
        drawn = dice.random() / (0.5 + moment.load)  # more breakdowns in busy hours
        wait = 1 + dice.randrange(5)
        for table in read_demo_table("dialects")["breakdowns"]:
            drawn -= now[table["share"]]
            if drawn < 0:
                fields = {key: value for key, value in table.items() if key != "share"}
                words = {**now, "tool": self.spec.name, "wait": wait}
                raise HiddenRule(**fields).make_fault(words)
        self.check_schema(parameters)
        call = self._add_defaults(parameters)
        for rule in self.rules:
            if rule.applies_to(call, moment):
                raise rule.make_fault(call)
        result = _fill_texts(self.result, call)
        for name, most in self.result.items():
            if type(most) is int:
                result[name] = dice.randrange(most)
        return result

    def _read_weather(self, day: int) -> dict[str, Any]:
        weather = dict(read_demo_table("dialects")["calm"])
        for spell in self.drift:
            first, last = spell["days"]
            if first <= day <= last:
                return weather | spell
        return weather

    def check_schema(self, parameters: JsonObject) -> None:
        """Refuse what the schema refuses; the first fault is shown, in the server's dialect."""
        dialect = read_demo_table("dialects")[self.dialect]
        types, codes = dialect.get("types", {}), dialect.get("codes", {})
        for kind, name, words in self._find_faults(parameters):
            value = parameters.get(name)
            message = dialect[kind].format(
                value=value, tool=self.spec.name, name=name, given=type(value).__name__, **words
            )
            raise ToolFault(
                kind,
                message,
                type=types.get(kind, dialect["type"]),
                code=codes.get(kind, dialect.get("code")),
            )

    def _find_faults(self, call: JsonObject) -> Iterator[tuple[FaultKind, str, dict[str, Any]]]:
        for name in call:
            if name not in self.properties:
                yield "unknown_parameter", name, {}
        for name in self.required:
            if name not in call:
                yield "missing_parameter", name, {}
        for name, value in call.items():
            yield from self._find_value_faults(name, value)

    def _find_value_faults(
        self, name: str, value: Any
    ) -> Iterator[tuple[FaultKind, str, dict[str, Any]]]:
        words = read_demo_table("dialects")
        wanted: dict[str, Any] = self.properties[name]
        kind = wanted["type"]
        if type(value) not in _TYPES[kind]:
            yield "wrong_type", name, {"wanted": kind, **words["types"][kind]}
        choices = wanted.get("enum", [value])
        if value not in choices:
            quoted = [repr(each) for each in choices]
            listed = f"{', '.join(quoted[:-1])} or {quoted[-1]}"
            shown = {"choices": choices, "piped": " | ".join(quoted), "listed": listed}
            yield "not_a_choice", name, shown
        pattern = wanted.get("pattern", "")
        if not re.search(pattern, str(value), re.ASCII):
            yield "wrong_form", name, {"form": words["forms"][pattern]}
        highest, lowest = wanted.get("maximum"), wanted.get("minimum")
        if highest is not None and value > highest:
            yield "out_of_range", name, {"bound": highest, **words["upper"]}
        if lowest is not None and value < lowest:
            yield "out_of_range", name, {"bound": lowest, **words["lower"]}

    def _add_defaults(self, parameters: JsonObject) -> JsonObject:
        call: JsonObject = {}
        for name, schema in self.properties.items():
            if "default" in schema:
                call[name] = schema["default"]
        return call | parameters

    def is_same_call(self, left: JsonObject, right: JsonObject) -> bool:
        """Return whether two calls ask for the same, defaults filled in."""
        return same_json(self._add_defaults(left), self._add_defaults(right))

    def duration_ms(self, moment: CallMoment, fault: FaultKind | None) -> float:
        """Return how long the call took.

        It is lognormal around the day's median, and longer in busy hours.
        """
        if fault == "timeout":
            return round(5_000 + moment.dice.random() * 200, 1)
        slowness = float(self._read_weather(moment.day)["slowness"])
        median = self.latency_ms * slowness * (0.8 + 0.6 * moment.load)
        if fault not in (None, "little_use"):
            median *= 0.25  # refused before anything was done
        return round(median * moment.dice.lognormvariate(0.0, 0.45), 1)


@cache
def all_tools() -> tuple[SimTool, ...]:
    """Return all versions of all tools.

    `like` takes over the fields of an earlier table of the file.
    """
    found = []
    for server in _SERVERS:
        content = read_demo_table(server)
        earlier: dict[str, Any] = {}
        for table in content["tools"]:
            whole = earlier.get(table.get("like"), {}) | table
            earlier[whole["name"]] = whole
            found.append(_make_tool(server, content["dialect"], dict(whole)))
    return tuple(found)


def _make_tool(server: str, dialect: str, table: dict[str, Any]) -> SimTool:
    table.pop("like", None)
    schema = {
        "type": "object", "properties": table["properties"],
        "required": table.get("required", []), "additionalProperties": False,
    }  # fmt: skip
    effect = _EFFECTS[table.pop("effect", "reads")]
    fields = {name: table.pop(name) for name in ToolSpec.model_fields if name in table}
    spec = {"version": "1.0.0", "server_name": server, "input_schema": schema} | fields
    whole = {"server": server, "tool_id": f"{server}.{fields['name']}", "dialect": dialect, **table}
    return SimTool(spec=ToolSpec(**spec, annotations=effect), **whole)


@cache
def tools_on(day: int) -> tuple[SimTool, ...]:
    """Return the tools that answer on a day of the story, 0 to 29."""
    return tuple(tool for tool in all_tools() if tool.since <= day < tool.until)


@cache
def read_demo_table(name: str) -> dict[str, Any]:
    """Return a file of `data/`."""
    return tomllib.loads((files(__package__) / "data" / f"{name}.toml").read_text("utf-8"))
