"""What events and rows hold, as fields that people and their tools can query.

The content of an event is JSON. In TOOL_EXECUTION_LOG an execution is the fields of the wire
contract, `timestamp` as a date, and the content of any other event is the field `content`. From
these fields the content is made again, byte for byte; where that cannot be, as of what BSON does
not hold, it stands next to them as it came, in `data`, and what cannot be held is no field.

Not held are integers beyond 64 bits, what is nested deeper than `MAX_DEPTH`, and what some servers
refuse: names that are empty, hold NUL or a dot, or begin with `$`, and lists within lists.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic_core import from_json, to_json

from mongo.mongodb.database import Record, tool_fields
from mongo.records import EPOCH, Event, EventKind, Row, ToolKey

MAX_DEPTH = 60
"""MongoDB takes 100 levels."""
LARGE_BYTES = 1 << 20
"""Of an event: above it only what is small becomes fields. As BSON a list takes up to six times as
many bytes as in JSON, and a record has at most 16 MiB."""
_SMALL_BYTES = 4 << 10
_EXECUTION = "execution"
_WEIGHT = "stands_for"
_OF_THE_LOG = frozenset(
    (
        "_id", "workspace", "kind", "id", "session", "principal", "content_hash", "schema_hash",
        "position", "receivedAt", "receivedUs", "timestampUs", "standsFor", "content", "data",
    )
)  # fmt: skip
"""Fields of a record that are not the execution's own."""
MICROSECOND = timedelta(microseconds=1)
PATTERN_FIELDS = (
    "errorType", "commonMistake", "correction", "example", "frequency", "agentsAffected", "lesson",
    "category", "mended", "followed", "firstSeen", "lastSeen",
)  # fmt: skip
"""Of a row of REFLECTION_PATTERNS: the first seven as the document of seed 004 has them."""


def event_fields(event: Event) -> Record:
    """Return the fields of an event's record that say its id, its tool and its content."""
    named = {name: value for name, value in tool_fields(event.tool).items() if value is not None}
    fields = _content_fields(event.kind, event.data)
    if any(fields.get(name, value) != value for name, value in named.items()):
        fields = {"data": event.data}
    if fields.get("executionId") != event.id:
        fields["id"] = event.id
    for name, value in named.items():
        fields.setdefault(name, value)
    if "data" not in fields and event_content(event.kind, fields) != event.data:
        fields["data"] = event.data
    return fields


def event_id(record: Mapping[str, Any]) -> str:
    """Return the id of the event in a record."""
    found = record["id"] if "id" in record else record["executionId"]
    return str(found)


def event_content(kind: EventKind, record: Mapping[str, Any]) -> bytes:
    """Return the content of the event in a record, as it came."""
    if "data" in record:
        return bytes(record["data"])
    if kind != _EXECUTION:
        return to_json(record["content"])
    called = {name: value for name, value in record.items() if name not in _OF_THE_LOG}
    if not called.get("serverName"):
        called.pop("serverName", None)  # of a tool without a server, for the index
    moment = called.get("timestamp")
    if isinstance(moment, datetime):
        called["timestamp"] = _moment_text(join_moment(moment, record.get("timestampUs", 0)))
    content: Record = {_EXECUTION: called}
    if "standsFor" in record:
        content[_WEIGHT] = record["standsFor"]
    return to_json(content)


def _content_fields(kind: EventKind, data: bytes) -> Record:
    unread: Record = {"data": data}
    if (content := _read_object(data)) is None:
        return unread
    if kind != _EXECUTION:
        is_held = len(data) <= LARGE_BYTES and _is_held(content)
        if is_held:
            return {"content": content}
        return unread
    called = content.get(_EXECUTION)
    if not isinstance(called, dict) or not content.keys() <= {_EXECUTION, _WEIGHT}:
        return unread
    if called.keys() & _OF_THE_LOG:
        return unread
    held = {name: value for name, value in called.items() if _is_name(name) and _is_held(value)}
    if len(data) > LARGE_BYTES:
        held = {name: value for name, value in held.items() if len(to_json(value)) <= _SMALL_BYTES}
    _add_date(held)
    if _WEIGHT in content:
        held["standsFor"] = content[_WEIGHT]
    if len(held) < len(called):  # something is missing, so it cannot be made again
        held["data"] = data
    return held


def _read_object(data: bytes) -> Record | None:
    """Return the object that a JSON text is; None of any other text."""
    try:
        found = from_json(data)
    except ValueError:
        return None
    if isinstance(found, dict):
        return found
    return None


def _is_held(value: Any, depth: int = 0) -> bool:
    if isinstance(value, dict):
        return depth < MAX_DEPTH and all(
            _is_name(name) and _is_held(each, depth + 1) for name, each in value.items()
        )
    if isinstance(value, list):
        return depth < MAX_DEPTH and all(
            not isinstance(each, list) and _is_held(each, depth + 1) for each in value
        )
    return not isinstance(value, int) or -(1 << 63) <= value < 1 << 63


def _is_name(name: str) -> bool:
    return bool(name) and "\x00" not in name and "." not in name and not name.startswith("$")


# Moments: BSON's dates have milliseconds, what is below them stands next to.


def split_moment(moment: datetime) -> tuple[datetime, int]:
    """Return a moment as a date of BSON, and the microseconds, 0 to 999, that it leaves out."""
    rest = moment.microsecond % 1000
    return moment - rest * MICROSECOND, rest


def join_moment(date: datetime, rest: int) -> datetime:
    """Return the moment that was `parted`."""
    return date.astimezone(UTC) + rest * MICROSECOND


def to_micros(moment: datetime) -> int:
    """Return the microseconds since 1970."""
    return (moment - EPOCH) // MICROSECOND


def received_fields(at_us: int) -> Record:
    """Return the fields that say when an event arrived, in microseconds since 1970."""
    date, rest = split_moment(EPOCH + at_us * MICROSECOND)
    return {"receivedAt": date, "receivedUs": rest}


def received_at(record: Mapping[str, Any]) -> datetime:
    """Return when the event of a record arrived."""
    return join_moment(record["receivedAt"], record["receivedUs"])


def _add_date(fields: Record) -> None:
    """Make a date of the time of a call, where its text states one."""
    try:
        date, rest = split_moment(datetime.fromisoformat(fields["timestamp"]).astimezone(UTC))
    except (KeyError, TypeError, ValueError, OverflowError):
        return
    fields["timestamp"] = date
    if rest:
        fields["timestampUs"] = rest


def _moment_text(moment: datetime) -> str:
    """Return a moment as pydantic writes it."""
    form = "%Y-%m-%dT%H:%M:%S.%fZ" if moment.microsecond else "%Y-%m-%dT%H:%M:%SZ"
    return moment.strftime(form)


# Rows of knowledge


def pattern_fields(row: Row) -> Record:
    """Return the fields of a pattern's record next to its content; None is a field that is gone."""
    content = _read_object(row.data) or {}
    found = {name: content.get(name) for name in PATTERN_FIELDS}
    fields = {name: value if _is_held(value) else None for name, value in found.items()}
    for name in ("firstSeen", "lastSeen"):
        if isinstance(text := fields[name], str):
            fields[name], _ = split_moment(datetime.fromisoformat(text))
    return fields


def counter_fields(hour: int, tool: ToolKey | None) -> Record:
    """Return what a counter's record shows readers: the hour as a date, and the tool's names."""
    named = {name: value for name, value in tool_fields(tool).items() if value is not None}
    return {"at": EPOCH + timedelta(hours=hour), **named}
