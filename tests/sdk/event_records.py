"""A sink that keeps what it is given, and what of it the sinks' contract promises."""

from dataclasses import dataclass, field

from aftercall.events import ToolCallEvent, ToolCallPlanned, ToolCallResult, ToolCalls
from aftercall.json_values import JsonObject
from aftercall.models import Execution
from aftercall.redaction import Redactor


@dataclass
class Events:
    """Keeps events only."""

    events: list[ToolCallEvent] = field(default_factory=list)

    def emit(self, event: ToolCallEvent) -> None:
        self.events.append(event)

    @property
    def planned(self) -> list[ToolCallPlanned]:
        return [event for event in self.events if isinstance(event, ToolCallPlanned)]

    @property
    def results(self) -> list[ToolCallResult]:
        return [event for event in self.events if isinstance(event, ToolCallResult)]


@dataclass
class Kept(Events):
    """Keeps events and whole calls."""

    calls: list[Execution] = field(default_factory=list)

    def record(self, execution: Execution) -> None:
        self.calls.append(execution)


def args_preview_hash(
    arguments: JsonObject, tool: str = "unknown", redactor: Redactor | None = None
) -> str:
    """That of a call's planned event."""
    kept = Kept()
    ToolCalls("r", [kept], redactor=redactor).planned(tool, arguments)
    return kept.planned[0].args_preview_hash


def check_order(events: list[ToolCallEvent]) -> None:
    """The promise of `ToolCalls`, for the events of one request."""
    planned = [event.seq for event in events if isinstance(event, ToolCallPlanned)]
    assert planned == list(range(len(planned)))
    open_calls: dict[int, str] = {}
    ended: set[int] = set()
    for event in events:
        if isinstance(event, ToolCallPlanned):
            open_calls[event.seq] = event.tool
        else:
            assert event.seq not in ended
            assert open_calls.pop(event.seq) == event.tool
            ended.add(event.seq)
