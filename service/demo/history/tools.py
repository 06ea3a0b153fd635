"""A simulated tool: a Python function behind a schema that it checks, on a server with bad days."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from random import Random

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import ToolAnnotations, ToolSpec
from service.demo.history.dialects import Dialect
from service.demo.history.drift import WELL, Drift, Weather
from service.demo.history.faults import ToolFault
from service.demo.history.schemas import check, properties_of
from service.demo.history.slips import Slip

READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False)
DELETES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True)


@dataclass(frozen=True, slots=True)
class Moment:
    """When and by whom a tool is called.

    Args:
        at: UTC.
        day: of the history, from 0.
        load: how busy the hour is, 0 to 1.
        may_write: whether the caller has the rights that some tools ask for.
        dice: of this session; decides what a tool cannot know.
    """

    at: datetime
    day: int
    load: float
    may_write: bool
    dice: Random


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Another tool that does the job a tool referred elsewhere."""

    tool: str
    parameters: JsonObject


@dataclass(frozen=True, slots=True)
class Wish:
    """What an agent wants of a tool.

    Args:
        parameters: the right call, as far as there is one.
        context: what the agent is trying to do.
        instead: who does it, where the tool will refer it elsewhere.
    """

    parameters: JsonObject
    context: str
    instead: Elsewhere | None = None


Run = Callable[[JsonObject, Moment], JsonValue]
"""What a tool does with parameters that its schema allows; raises `ToolFault`."""


@dataclass(frozen=True, slots=True)
class SimTool:
    """One version of one tool.

    Args:
        server: its server.
        name: as it is called.
        run: what it does.
        wish: what agents want of it.
        input_schema: what it checks first, and what is registered.
        dialect: how it words a refusal.
        slips: how agents get it wrong.
        old_habit: how agents still call it who knew the version before; wears off.
        description: what is registered.
        namespace: the capability it serves.
        version: of this tool.
        annotations: what its maker claims.
        tags: what is registered.
        since: the first day of the history on which this version answers.
        until: the day from which on it does no more; None for ever.
        evolved_from: the tool id of the version before, in whose place it is promoted.
        reason: why it was promoted.
        latency_ms: the median of a call's duration on a calm day.
        drift: its bad days.
        popularity: how often agents take it beside the others of its server.
        tool_id: under which it is registered.
    """

    server: str
    name: str
    run: Run
    wish: Callable[[Random], Wish]
    input_schema: JsonObject
    dialect: Dialect
    slips: tuple[Slip, ...] = ()
    old_habit: Slip | None = None
    description: str = ""
    namespace: str | None = None
    version: str = "1.0.0"
    annotations: ToolAnnotations = READS
    tags: tuple[str, ...] = ()
    since: int = 0
    until: int | None = None
    evolved_from: str | None = None
    reason: str = ""
    latency_ms: float = 120.0
    drift: tuple[Drift, ...] = ()
    popularity: float = 1.0
    tool_id: str = ""
    _defaults: JsonObject = field(init=False)

    def __post_init__(self) -> None:
        known = properties_of(self.input_schema)
        defaults: JsonObject = {
            name: each["default"] for name, each in known.items() if "default" in each
        }
        object.__setattr__(self, "_defaults", defaults)
        if not self.tool_id:
            object.__setattr__(self, "tool_id", f"{self.server}.{self.name}")

    def weather(self, day: int) -> Weather:
        """How its server fares on a day."""
        return next((each.weather for each in self.drift if each.covers(day)), WELL)

    def call(self, parameters: JsonObject, moment: Moment) -> JsonValue:
        """Call it as it is on that day.

        Raises:
            ToolFault: it refuses, or breaks down.
        """
        if (fault := self.weather(moment.day).breakdown(self.name, moment)) is not None:
            raise fault
        check(self.input_schema, parameters, self.name, self.dialect)
        return self.run({**self._defaults, **parameters}, moment)

    def duration_ms(self, moment: Moment, fault: ToolFault | None) -> float:
        """How long the call took: lognormal around the day's median, longer in busy hours."""
        weather = self.weather(moment.day)
        median = self.latency_ms * weather.slowness * (0.8 + 0.6 * moment.load)
        if fault is not None and fault.kind == "timeout":
            return round(5_000 + moment.dice.random() * 200, 1)
        if fault is not None and fault.kind != "little_use":
            median *= 0.25  # refused before anything was done
        return round(median * moment.dice.lognormvariate(0.0, 0.45), 1)

    def same(self, left: JsonObject, right: JsonObject) -> bool:
        """Whether two calls ask for the same, defaults filled in."""
        return same_json({**self._defaults, **left}, {**self._defaults, **right})

    def spec(self) -> ToolSpec:
        """As it is registered."""
        return ToolSpec(
            namespace=self.namespace,
            name=self.name,
            server_name=self.server,
            version=self.version,
            description=self.description,
            input_schema=self.input_schema,
            annotations=self.annotations,
            tags=list(self.tags),
            evolved_from=self.evolved_from,
        )
