"""The part of a tool's schema that is about one place inside a call's parameters. Never raises."""

from collections.abc import Iterator

from aftercall.json_values import JsonObject, JsonValue
from retrieval.parameters import ToolView, view_of_schema
from retrieval.paths import Path

MAX_DEPTH = 12
_MAX_REFS = 20
_MAX_ALTERNATIVES = 20
_DEFINITIONS = ("$defs", "definitions")


def object_view(schema: JsonObject, path: Path, value: JsonObject) -> ToolView | None:
    """The view of the object that a path leads to; None when the schema says nothing of it.

    Of several forms that it may have, the one counts that shares the most keys with `value`.
    """
    forms = [form for form in _forms_at(schema, path) if isinstance(form.get("properties"), dict)]
    if not forms:
        return None
    best = max(forms, key=lambda form: len(value.keys() & _properties(form).keys()))
    return view_of_schema(_rooted(best, schema))


def element_view(schema: JsonObject, path: Path) -> ToolView | None:
    """A view with one parameter, named for the last step: an element of an array."""
    forms = list(_forms_at(schema, path))
    if not forms or not path:
        return None
    pseudo: JsonObject = {"properties": {str(path[-1]): forms[0]}}
    return view_of_schema(_rooted(pseudo, schema))


def _forms_at(schema: JsonObject, path: Path) -> Iterator[JsonObject]:
    forms = [schema]
    for step in path[: MAX_DEPTH + 1]:
        inner = (part for form in forms for part in _members(form, step))
        forms = [each for part in inner for each in _forms(part, schema)][:_MAX_ALTERNATIVES]
    yield from forms if len(path) <= MAX_DEPTH else ()


def _members(form: JsonObject, step: str | int) -> Iterator[JsonValue]:
    if isinstance(step, str):
        properties = _properties(form)
        yield properties[step] if step in properties else form.get("additionalProperties")
    else:
        first = form.get("prefixItems")
        if isinstance(first, list) and 0 <= step < len(first):
            yield first[step]
        else:
            yield form.get("items")


def _forms(part: JsonValue, root: JsonObject) -> Iterator[JsonObject]:
    """The schema itself and its alternatives, references followed."""
    schema = _resolved(part, root)
    if schema is None:
        return
    yield schema
    for key in ("anyOf", "oneOf", "allOf"):
        options = schema.get(key)
        for option in options[:_MAX_ALTERNATIVES] if isinstance(options, list) else ():
            if (form := _resolved(option, root)) is not None:
                yield form


def _resolved(part: JsonValue, root: JsonObject) -> JsonObject | None:
    for _ in range(_MAX_REFS):
        if not isinstance(part, dict):
            return None
        ref = part.get("$ref")
        if not isinstance(ref, str):
            return part
        target: JsonValue = root
        for step in ref.removeprefix("#").strip("/").split("/"):
            target = target.get(step) if isinstance(target, dict) else None
        part = target
    return None


def _properties(form: JsonObject) -> JsonObject:
    properties = form.get("properties")
    return properties if isinstance(properties, dict) else {}


def _rooted(part: JsonObject, root: JsonObject) -> JsonObject:
    """The part with the definitions that its references lead to."""
    return {key: root[key] for key in _DEFINITIONS if key in root} | part
