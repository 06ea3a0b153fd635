"""Calls by OpenInference: spans of the kind TOOL.

`tool.parameters` is a schema there. Some write arguments into it; what is no JSON schema of an
object is left alone, and arguments are never taken from it.
"""

from ingest.formats.otlp import keys
from ingest.formats.otlp.call import ToolCall
from ingest.formats.otlp.span import Span
from ingest.formats.otlp.values import loose_text, schema_of, text_of

_TOOL = "TOOL"


def tool_call(span: Span) -> ToolCall | None:
    """The call, when the span is one of a tool.

    Raises:
        BadSpanError: it is one, and its tool's name is no text.
    """
    attributes = span.attributes
    kind = attributes.get(keys.SPAN_KIND)
    if not isinstance(kind, str) or kind.upper() != _TOOL:
        return None
    return ToolCall(
        name=text_of(attributes.get(keys.OI_TOOL_NAME), keys.OI_TOOL_NAME) or span.name or None,
        call_id=loose_text(attributes.get(keys.OI_TOOL_ID)),
        arguments=attributes.get(keys.OI_INPUT),
        result=attributes.get(keys.OI_OUTPUT),
        input_schema=schema_of(attributes.get(keys.OI_SCHEMA))
        or schema_of(attributes.get(keys.OI_JSON_SCHEMA)),
    )
