"""A span as both encodings of OTLP give it: plain values, and only those that somebody reads."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Final, TypeAlias

from ingest.formats.otlp import keys

MAX_SPANS: Final = 120_000
"""Spans of one request. Exporters send 512, collectors 8,192; what is known of each span while a
request is read takes some 500 bytes."""

ERROR_STATUS: Final = 2
OK_STATUS: Final = 1
SERVER_KIND: Final = 2


class OtlpError(ValueError):
    """The whole is no OTLP trace request. The message says what to send instead."""


class TooManySpansError(OtlpError):
    """More in one request than is read at a time; nothing of it was."""


@dataclass(frozen=True, slots=True)
class Unusable:
    """Stands for the value of an attribute that cannot be held."""

    problem: str


Attributes: TypeAlias = Mapping[str, object]
"""Text, numbers, booleans, bytes, None, lists and dicts of these; or `Unusable`."""

NONE: Final[Attributes] = {}

Place: TypeAlias = tuple[int, ...]
"""Positions in `resourceSpans`, `scopeSpans` and `spans`, as far as it goes."""


@dataclass(slots=True)
class Span:
    """One span. Ids are lower-case hexadecimal; an id that is none is empty."""

    place: Place
    resource: Attributes
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str = ""
    name: str = ""
    kind: int = 0
    start_ns: int | None = None
    """Nanoseconds since 1970; None when it was sent and is no such number."""
    end_ns: int | None = None
    status: int = 0
    status_message: str = ""
    attributes: Attributes = field(default_factory=dict)
    events: Mapping[str, Attributes] = field(default_factory=dict)
    """The last event of each name that is read."""


@dataclass(frozen=True, slots=True)
class NoSpan:
    """What stands where a span, or a list of them, should stand."""

    place: Place
    message: str


Spans: TypeAlias = Callable[[], Iterator[Span | NoSpan]]
"""The spans of one request, from the first on, each time it is called."""

_PARTS = ("resourceSpans", "scopeSpans", "spans")


def where(place: Place) -> str:
    """For people: `resourceSpans[0].scopeSpans[0].spans[3]`."""
    return ".".join(f"{part}[{number}]" for part, number in zip(_PARTS, place, strict=False))


def may_be_call(attributes: Attributes) -> bool:
    """Whether any convention could see a call of a tool here."""
    return not keys.MARKS.isdisjoint(attributes)


def count_span(number: int) -> None:
    """Refuse the first span too many."""
    if number > MAX_SPANS:
        raise TooManySpansError(
            f"more than {MAX_SPANS:,} spans in one request; nothing was stored, send fewer at a "
            "time (exporters: OTEL_BSP_MAX_EXPORT_BATCH_SIZE)"
        )


@dataclass(slots=True)
class ToolCall:
    """What a span says of the call. None where it says nothing."""

    name: str | None = None
    call_id: str | None = None
    arguments: object = None
    named_arguments: bool = False
    """Whether arguments are always an object."""
    result: object = None
    server_name: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    failed: bool | None = None
    """Where the convention has a word of its own for it."""
    input_schema: object = None

    def completed_by(self, other: "ToolCall") -> "ToolCall":
        """This, with what only `other` says."""
        for each in fields(self):
            if getattr(self, each.name) is None:
                setattr(self, each.name, getattr(other, each.name))
        return self
