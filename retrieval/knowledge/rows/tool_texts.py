"""Tool texts: what of a registered tool is embedded, and what BM25 reads."""

from collections.abc import Iterator
from itertools import islice

from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import Tool
from embeddings.text import name_words, terms_text

MAX_TEXT = 1_000
"""Characters embedded: about the 256 tokens that all-MiniLM-L6-v2 reads."""
MAX_TERMS_TEXT = 4_000
"""Characters that BM25 reads. It weighs a term against the length of its document, so a schema that
is longer than this would only bury the name."""
_MAX_DESCRIPTION = 700
_MAX_PARAMETERS = 50
_MAX_DEPTH = 3
_MAX_VALUES = 10
"""Of an enum."""


def tool_text(tool: Tool) -> str:
    """Return the text to embed: at most 1,000 characters, what states most about the tool first."""
    sentences = [f"{name_words(tool.name)}: {tool.description.strip()[:_MAX_DESCRIPTION]}"]
    about = [name_words(each) for each in (tool.namespace or "", *tool.tags)]
    if named := ", ".join(dict.fromkeys(each for each in about if each)):
        sentences.append(f"For {named}.")
    names = (name for name, _ in _walk_properties(tool.input_schema, 1))
    if parameters := ", ".join(name_words(name) for name in islice(names, _MAX_PARAMETERS)):
        sentences.append(f"Takes {parameters}.")
    return " ".join(sentences)[:MAX_TEXT]


def tool_terms(tool: Tool) -> str:
    """Return a tool's terms for BM25.

    What is embedded, and its schema to the depth of three objects.
    """
    parts = [tool.name, tool.namespace or "", *tool.tags, tool.description]
    for name, property_ in islice(_walk_properties(tool.input_schema, _MAX_DEPTH), _MAX_PARAMETERS):
        values = property_.get("enum")
        listed = values[:_MAX_VALUES] if isinstance(values, list) else []
        stated = (name, property_.get("description"), *listed)
        parts += [each for each in stated if isinstance(each, str)]
    return terms_text(" ".join(parts)[:MAX_TERMS_TEXT])


def _walk_properties(schema: JsonValue, depth: int) -> Iterator[tuple[str, JsonObject]]:
    """Yield the properties of a schema, and of objects and arrays in it.

    What is no object is skipped.
    """
    if not isinstance(schema, dict) or depth == 0:
        return
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for name, property_ in properties.items():
            if isinstance(property_, dict):
                yield name, property_
                yield from _walk_properties(property_, depth - 1)
    yield from _walk_properties(schema.get("items"), depth - 1)
