"""Calls by the GenAI conventions: spans of the operation `execute_tool`, and those before it.

Arguments and results are read from `gen_ai.tool.call.arguments` and `.result`, as structured
values or as JSON text. Where these are missing, from what instrumentations wrote before they were
agreed on: Pydantic AI `tool_arguments`, `tool_response`; Google ADK `gcp.vertex.agent.*`; Strands
the span events `gen_ai.tool.message` and `gen_ai.choice`.
"""

from ingest.formats.otlp import keys
from ingest.formats.otlp.call import ToolCall
from ingest.formats.otlp.span import NONE, Attributes, Span
from ingest.formats.otlp.values import loose_text, text_of

_ARGUMENTS = (keys.TOOL_ARGUMENTS, keys.PYDANTIC_AI_ARGUMENTS, keys.GOOGLE_ADK_ARGUMENTS)
_RESULTS = (keys.TOOL_RESULT, keys.PYDANTIC_AI_RESULT, keys.GOOGLE_ADK_RESULT)

_PREFIXES = ("execute_tool ", "running tool: ")
"""How the names of spans begin that hold the tool's name: the convention, and Pydantic AI's."""

_SIGNS = frozenset({keys.OPERATION, keys.MCP_METHOD, keys.TOOL_NAME})

_MERGED = "(merged tools)"
"""Google ADK tells parallel calls once more together, under this name."""


def tool_call(span: Span) -> ToolCall | None:
    """The call, when the span is one of a tool.

    `gen_ai.tool.name` alone makes it one, unless the span names another operation or MCP method.

    Raises:
        BadSpanError: it is one, and what it says of it is of wrong types.
    """
    attributes = span.attributes
    operation = attributes.get(keys.OPERATION, keys.EXECUTE_TOOL)
    method = attributes.get(keys.MCP_METHOD, keys.TOOLS_CALL)
    if operation != keys.EXECUTE_TOOL or method != keys.TOOLS_CALL:
        return None
    if attributes.keys().isdisjoint(_SIGNS):
        return None
    name = text_of(attributes.get(keys.TOOL_NAME), keys.TOOL_NAME) or _name_in(span.name)
    if name == _MERGED:
        return None
    return ToolCall(
        name=name,
        call_id=loose_text(attributes.get(keys.TOOL_CALL_ID)),
        arguments=_first(attributes, _ARGUMENTS, _event_input(span)),
        result=_first(
            attributes, _RESULTS, _event(span, keys.STRANDS_OUTPUT_EVENT).get(keys.STRANDS_OUTPUT)
        ),
        failed=True if attributes.get(keys.STRANDS_STATUS) == "error" else None,
    )


def _first(attributes: Attributes, names: tuple[str, ...], otherwise: object) -> object:
    for name in names:
        if (value := attributes.get(name)) is not None:
            return value
    return otherwise


def _name_in(span_name: str) -> str | None:
    for prefix in _PREFIXES:
        if span_name.startswith(prefix):
            return span_name.removeprefix(prefix).strip() or None
    return None


def _event(span: Span, name: str) -> Attributes:
    return span.events.get(name, NONE)


def _event_input(span: Span) -> object:
    # Others used an event of this name for a tool's answer; arguments are an object.
    said = _event(span, keys.STRANDS_INPUT_EVENT).get(keys.STRANDS_INPUT)
    return said if isinstance(said, str) and said.lstrip().startswith("{") else None
