"""OTLP traces read into executions: every span that is a call of a tool, in three conventions.

    bytes ─ from_protobuf ─┐
    JSON ─ from_json ──────┴─> Span ─ conventions ─> ToolCall ─ building, family ─> Execution

One request is read as one thing: what a span does not say itself (its agent, its session, whether
it is the inner half of a call that is told twice) is looked up in the spans around it.
"""

from ingest.formats.otlp.reading import (
    Located,
    located_json,
    located_protobuf,
    read_json,
    read_protobuf,
)
from ingest.formats.otlp.span import MAX_SPANS, OtlpError, TooManySpansError

__all__ = [
    "MAX_SPANS",
    "Located",
    "OtlpError",
    "TooManySpansError",
    "located_json",
    "located_protobuf",
    "read_json",
    "read_protobuf",
]
