"""Generated tools: schemas of depth 1 to 5 with right calls, from a small vocabulary."""

import random
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.quality.trial import Json

_TEXTS = (
    "title", "summary", "subject", "author", "city", "street", "room", "owner_name", "headline",
    "branch_name", "file_path", "folder_name", "customer_name", "message_text", "old_text",
    "new_text", "search_query", "product_name", "invoice_number", "team_name",
)  # fmt: skip
_WORDS = (
    "harbour", "walnut", "glacier", "lantern", "meadow", "copper", "violin", "pepper", "canyon",
    "saddle", "orchid", "timber", "raven", "marble", "willow", "amber", "falcon", "ginger",
)  # fmt: skip
_LISTED = {
    "priority": ("low", "normal", "high", "urgent"), "status": ("open", "in_progress", "closed"),
    "sort_order": ("ascending", "descending"), "visibility": ("public", "internal", "private"),
    "currency": ("EUR", "USD", "GBP"), "severity": ("minor", "major", "critical"),
}  # fmt: skip
_FORMATS = {"due_date": "date", "starts_at": "date-time", "contact_email": "email",
            "callback_url": "uri", "request_uuid": "uuid"}  # fmt: skip
_COUNTS = {"page_size": (1, 100), "max_retries": (0, 10), "floor_number": (0, 40),
           "guest_count": (1, 12), "timeout_seconds": (1, 600)}  # fmt: skip
_AMOUNTS = ("latitude", "weight_kg", "unit_price", "temperature", "distance_km")
_FLAGS = ("archived", "notify_team", "is_draft", "include_totals")
_LISTS = ("tags", "reviewers", "label_names", "attendee_names")
_OBJECTS = ("address", "options", "source_ref", "window", "billing", "layout")
_OBJECT_LISTS = ("items", "steps", "files", "recipients", "line_items", "edits")
_VERBS = ("get", "list", "create", "update", "book", "send", "delete", "search", "render")
_NOUNS = ("order", "report", "ticket", "booking", "document", "shipment", "layout", "campaign")


@dataclass(frozen=True, slots=True)
class Tool:
    """A generated tool."""

    name: str
    server: str
    schema: Json


def make_tool(rng: random.Random, depth: int) -> Tool:
    """Return a tool whose schema holds objects or lists of objects down to a depth from 1."""
    style = rng.choice((_snake, _camel))
    is_closed = rng.random() < 0.75
    schema = _object(rng, depth, style, is_closed=is_closed)
    name = style(f"{rng.choice(_VERBS)}_{rng.choice(_NOUNS)}")
    return Tool(name, f"{rng.choice(_WORDS)}-{rng.choice(_NOUNS)}s", schema)


def make_call(rng: random.Random, schema: Json) -> Json:
    """Return a call that fits a schema of `make_tool`."""
    made: Json = _value(rng, schema)
    return made


def _snake(name: str) -> str:
    return name


def _camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


def _object(
    rng: random.Random, depth: int, style: Callable[[str], str], *, is_closed: bool
) -> Json:
    names = rng.sample(_TEXTS, rng.randint(1, 3))
    properties: Json = {style(name): {"type": "string"} for name in names}
    scalars: list[tuple[str, Json]] = [
        *((name, {"type": "string", "enum": list(of)}) for name, of in _LISTED.items()),
        *((name, {"type": "string", "format": of}) for name, of in _FORMATS.items()),
        *((name, {"type": "integer", "minimum": low, "maximum": high})
          for name, (low, high) in _COUNTS.items()),
        *((name, {"type": "number"}) for name in _AMOUNTS),
        *((name, {"type": "boolean"}) for name in _FLAGS),
        *((name, {"type": "array", "items": {"type": "string"}}) for name in _LISTS),
    ]  # fmt: skip
    for name, of in rng.sample(scalars, rng.randint(1, 4)):
        properties[style(name)] = dict(of)
    if depth > 1:
        below = _object(rng, depth - 1, style, is_closed=is_closed)
        if rng.random() < 0.5:
            properties[style(rng.choice(_OBJECTS))] = below
        else:
            properties[style(rng.choice(_OBJECT_LISTS))] = {"type": "array", "items": below}
    names = list(properties)
    rng.shuffle(names)
    deep = [name for name in names if properties[name]["type"] in ("object", "array")]
    required = [name for name in names if name in deep or rng.random() < 0.5]
    schema: Json = {"type": "object", "properties": {name: properties[name] for name in names},
                    "required": required}  # fmt: skip
    return {**schema, "additionalProperties": False} if is_closed else schema


def _value(rng: random.Random, schema: Json) -> Any:
    kind = schema["type"]
    if kind == "object":
        required = schema["required"]
        return {
            name: _value(rng, of)
            for name, of in schema["properties"].items()
            if name in required or rng.random() < 0.6
        }
    if kind == "array":
        return [_value(rng, schema["items"]) for _ in range(rng.randint(1, 3))]
    if kind == "integer":
        return rng.randint(schema["minimum"], schema["maximum"])
    if kind == "number":
        return round(rng.uniform(-80, 80), 2)
    if kind == "boolean":
        return rng.random() < 0.5
    if "enum" in schema:
        return rng.choice(schema["enum"])
    return _FORMED[schema["format"]](rng) if "format" in schema else words(rng)


def words(rng: random.Random) -> str:
    """Return two or three plain words."""
    return " ".join(rng.sample(_WORDS, rng.randint(2, 3)))


def _date(rng: random.Random) -> str:
    return f"2026-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


_FORMED: dict[str, Callable[[random.Random], str]] = {
    "date": _date,
    "date-time": lambda rng: f"{_date(rng)}T{rng.randint(0, 23):02}:30:00Z",
    "email": lambda rng: f"{rng.choice(_WORDS)}@example.org",
    "uri": lambda rng: f"https://example.org/{rng.choice(_WORDS)}/{rng.choice(_WORDS)}",
    "uuid": lambda rng: str(uuid.UUID(int=rng.getrandbits(128), version=4)),
}
