"""What is known of a tool's parameters, and paths into the parameters of a call.

A view comes from the schema, or from calls that succeeded, so that proposals need not ask where a
fact came from, only how sure it is. A *path* leads to one value: keys of objects and positions of
arrays, where -1 is the last one and `*` stands for every element. A *place*, such as
`flights[].date`, is a text that forgets the positions.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Literal, TypeVar, get_args

import jsonschema_rs

from aftercall.json_patch import same_json
from aftercall.json_schemas import plain_schema
from aftercall.json_values import JsonObject, JsonValue, canonical_json, exceeds_size
from aftercall.models import Call, ExecutionError
from retrieval import WORDS

JsonType = Literal["string", "integer", "number", "boolean", "array", "object", "null"]
Path = tuple[str | int, ...]
EVERY: Literal["*"] = "*"
"""In a path: every element of an array."""
MAX_ELEMENTS = 100
"""Elements of an array that are looked at; a longer one is data."""
MAX_LEAVES = 500
"""Plain values of a call that are looked at; real calls have a few dozen."""
_DEEPEST_LEAF = 12
MAX_DEPTH = 3
"""Objects or lists that a profile looks into below a parameter, one in the other."""
MAX_ITEMS = 20
"""Items of one list that a profile looks at: the others are like them."""
MAX_KEYS = 40
"""Keys of one object; one with more is a map from ids, not a record of named fields."""
MAX_NODES = 200
"""Values inside the parameters of one call that a profile looks at, so that none is slow."""


MAX_VALUES = 10_000
MAX_CHARS = 256 * 1024
"""Values and characters of text in the parameters of a call, or in a schema, beyond which these are
not looked at, so that no one keeps the others waiting."""
MAX_MESSAGE = 64 * 1024
"""Characters that are kept of a message, a stack, a context."""
_LARGE = (500, 16 * 1024)
CallT = TypeVar("CallT", bound=Call)


def bound_call(call: CallT) -> CallT:
    """Return a call as it is kept: its texts cut, without an oversized schema."""
    changes: dict[str, object] = {}
    if exceeds_size(call.input_schema, MAX_VALUES, MAX_CHARS):
        changes["input_schema"] = None
    if call.context is not None and len(call.context) > MAX_MESSAGE:
        changes["context"] = call.context[:MAX_MESSAGE]
    error: ExecutionError | None = getattr(call, "error", None)
    if error is not None:
        texts = {"message": error.message, "code": error.code, "stack": error.stack}
        long = {name: text for name, text in texts.items() if text and len(text) > MAX_MESSAGE}
        cut = {name: text[:MAX_MESSAGE] for name, text in long.items()}
        if cut:
            changes["error"] = error.model_copy(update=cut)
    if changes:
        return call.model_copy(update=changes)
    return call


def considered_part(call: CallT) -> CallT:
    """Return what is looked at of a call that is asked about.

    As kept, without what is too large.
    """
    changes: dict[str, object] = {"result": None}
    if exceeds_size(call.parameters, MAX_VALUES, MAX_CHARS):
        changes |= {"parameters": {}, "parameters_known": False}
    error: ExecutionError | None = getattr(call, "error", None)
    if error is not None and exceeds_size(error.details, MAX_VALUES, MAX_CHARS):
        changes["error"] = error.model_copy(update={"details": {}})
    return bound_call(call.model_copy(update=changes))


def is_large(call: Call) -> bool:
    """Return whether masking a call takes longer than a few milliseconds."""
    parts: list[JsonValue] = [call.parameters, call.result, call.input_schema, call.context]
    error: ExecutionError | None = getattr(call, "error", None)
    if error is not None:
        parts += [error.message, error.stack, error.details]
    return exceeds_size(parts, *_LARGE)


def value_at(parameters: JsonObject, path: Path) -> JsonValue:
    """Return the value that a path without `*` leads to; None when it leads nowhere."""
    value: JsonValue = parameters
    for step in path:
        if isinstance(value, dict):
            value = value.get(str(step))
        elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def leaves_like(parameters: JsonObject, path: Path) -> list[tuple[Path, JsonValue]]:
    """Return the plain values of a call at paths like this one (empty.

    All), whatever the positions.
    """
    found: list[tuple[Path, JsonValue]] = []
    _add_leaves(found, parameters, ())
    wanted = general_path(path)
    if path:
        return [each for each in found if general_path(each[0]) == wanted]
    return found


def _add_leaves(found: list[tuple[Path, JsonValue]], value: JsonValue, path: Path) -> None:
    if len(path) >= _DEEPEST_LEAF:
        return
    items: Iterable[tuple[str | int, JsonValue]]
    if isinstance(value, dict):
        items = value.items()
    else:
        items = enumerate(value[:MAX_ELEMENTS] if isinstance(value, list) else ())
    for key, item in items:
        if len(found) >= MAX_LEAVES:
            return
        if isinstance(item, dict | list):
            _add_leaves(found, item, (*path, key))
        else:
            found.append(((*path, key), item))


def general_path(path: Path) -> Path:
    """Return the path with every position in an array as `*`."""
    return tuple(EVERY if isinstance(step, int) else step for step in path)


def first_path(path: Path) -> Path:
    """Return the path with the first position for every `*`: one value that it stands for."""
    return tuple(0 if step == EVERY else step for step in path)


def written_place(path: Path) -> str:
    """Return the place of a path, such as `flights[].date`."""
    if len(path) == 1:
        return str(path[0])
    steps = ("[]" if isinstance(step, int) else f".{step}" for step in path[1:])
    if path:
        return f"{path[0]}{''.join(steps)}"
    return ""


def inner_values(parameters: Iterable[tuple[str, JsonValue]]) -> Iterator[tuple[str, JsonValue]]:
    """Yield the values below the parameters themselves, each with its place.

    The outer ones first.
    """
    level: list[tuple[str, JsonValue]] = [
        each for each in parameters if isinstance(each[1], dict | list)
    ]
    left = MAX_NODES
    for _ in range(MAX_DEPTH):
        below: list[tuple[str, JsonValue]] = []
        for place, value in level:
            for each in _walk_members(place, value):
                if left == 0:
                    return
                left -= 1
                yield each
                if isinstance(each[1], dict | list):
                    below.append(each)
        level = below


def _walk_members(place: str, value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    if isinstance(value, list):
        yield from ((f"{place}[]", item) for item in value[:MAX_ITEMS])
    elif isinstance(value, dict) and len(value) <= MAX_KEYS:
        yield from ((f"{place}.{key}", item) for key, item in value.items())


MAX_SCHEMA = 16_000
"""Characters of a schema's canonical JSON beyond which it is not looked into, so that no caller can
fill the caches or keep the others waiting; the 117 of GitHub's MCP server take up to 7,012."""
_MAX_REFS = 20
_MAX_PARAMETERS = 1_000
_MAX_ALTERNATIVES = 100
_MAX_ROOT = 3
"""Levels of unions and parts at a schema's root that are read, of 60 forms in all at most."""
_MAX_ROOT_FORMS = 60
_MAX_STATED = 20
"""Ways in which alternatives state one parameter."""
_ALL_TYPES: tuple[JsonType, ...] = get_args(JsonType)


@dataclass(frozen=True, slots=True)
class ParameterView:
    """One parameter. `types` empty means any; bounds are inclusive.

    `stated_values` are texts that the schema states: its enum, that of a list's items, or words
    quoted in its description.
    """

    name: str
    types: tuple[JsonType, ...] = ()
    required: bool = False
    has_default: bool = False
    default: JsonValue = None
    allowed: tuple[JsonValue, ...] = ()
    stated_values: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    item_types: tuple[JsonType, ...] = ()
    described_by: frozenset[str] = frozenset()
    """Words of its description, lower case and without a final s, that may name what it is."""
    pattern: str | None = None
    form: str | None = None
    description: str = ""

    def states_value(self, value: JsonValue) -> bool:
        """Return whether the schema names this value."""
        stated = (*self.allowed, *self.stated_values, *([self.default] * self.has_default))
        return any(same_json(value, each) for each in stated)


@dataclass(frozen=True, slots=True)
class ToolView:
    """The parameters of a tool. `closed`: there are no others than these."""

    source: Literal["schema", "profile", "error"]
    parameters: dict[str, ParameterView] = field(default_factory=dict)
    closed: bool = False
    patterns: tuple[str, ...] = ()
    """Regular expressions of further names that it takes."""

    def unknown_parameters(self, call: JsonObject) -> list[str]:
        """Parameters of a call that the tool does not have, as far as is known."""
        return [
            name
            for name in call
            if name not in self.parameters
            and not (self.patterns and _names_of(self.patterns).is_valid(name))
        ]

    def missing_parameters(self, call: JsonObject) -> list[str]:
        """Required parameters that a call does not have."""
        return [
            name for name, view in self.parameters.items() if view.required and name not in call
        ]


@lru_cache(maxsize=512)
def _names_of(patterns: tuple[str, ...]) -> jsonschema_rs.Validator:
    """Takes the names that one of the patterns does; on an engine that cannot backtrack."""
    schema = {"anyOf": [{"pattern": pattern} for pattern in patterns]}
    options = jsonschema_rs.RegexOptions(size_limit=100_000)
    try:
        return jsonschema_rs.validator_for(schema, pattern_options=options)
    except ValueError:  # what it cannot read takes no name
        return jsonschema_rs.validator_for({"not": {}})


def view_of_schema(schema: JsonObject) -> ToolView:
    """Return the view of a JSON Schema for arguments. Never raises.

    What cannot be read is left out.
    """
    canonical = canonical_json(schema)
    if len(canonical) > MAX_SCHEMA:
        return ToolView("schema")
    return _view_of_schema(canonical)


@lru_cache(maxsize=512)
def _view_of_schema(canonical: str) -> ToolView:
    schema = plain_schema(json.loads(canonical))
    form = _root_form(schema, schema, _MAX_ROOT, [_MAX_ROOT_FORMS])
    views = {
        name: _view_parameter(
            name, resolve_schema(part, schema), required=name in form.required, root=schema
        )
        for name, part in islice(form.properties.items(), _MAX_PARAMETERS)
    }
    return ToolView("schema", views, form.is_closed, tuple(form.patterns))


@dataclass(slots=True)
class _RootForm:
    """What a schema, its references, all of its parts and its alternatives say of an object."""

    properties: JsonObject
    required: set[str]
    is_closed: bool
    patterns: list[str]


def _root_form(part: JsonValue, root: JsonObject, depth: int, left: list[int]) -> _RootForm:
    """`left` is how many forms may be read yet."""
    left[0] -= 1
    form = resolve_schema(part, root)
    required = form.get("required")
    patterns = form.get("patternProperties")
    names = required if isinstance(required, list) else []
    found = _RootForm(
        dict(_form_properties(form)),
        {each for each in names if isinstance(each, str)},
        form.get("additionalProperties") is False,
        list(patterns) if isinstance(patterns, dict) else [],
    )
    ways: dict[str, list[JsonValue]] = {name: [each] for name, each in found.properties.items()}
    for key in ("allOf", "oneOf", "anyOf") if depth else ():
        parts = form.get(key)
        if not isinstance(parts, list):
            continue
        inner = [_root_form(each, root, depth - 1, left) for each in parts if left[0] > 0]
        is_whole = len(inner) == len(parts)
        for each in inner:
            found.patterns += each.patterns
            for name, stated in each.properties.items():
                # What the forms that are not read say of it is not known.
                ways.setdefault(name, []).append(stated if is_whole else {})
        needed = [each.required for each in inner]
        if key == "allOf":
            found.required = found.required.union(*needed)
        elif needed and is_whole:
            found.required |= set.intersection(*needed)
            found.is_closed = found.is_closed or all(each.is_closed for each in inner)
    found.properties = {name: _one_of(stated) for name, stated in ways.items()}
    return found


def _one_of(stated: list[JsonValue]) -> JsonValue:
    """Return the schema of a parameter that is stated in one of these ways; of too many nothing."""
    different: list[JsonValue] = []
    for each in stated:
        if each not in different:
            different.append(each)
        if len(different) > _MAX_STATED:
            return {}
    if len(different) == 1:
        return different[0]
    return {"anyOf": different}


def says_something(schema: JsonObject) -> bool:
    """Return whether a schema shows parameters.

    An open one without any does not mean that none is.
    """
    return any(
        value not in ({}, [], None)
        for key, value in schema.items()
        if key not in ("type", "title", "description", "$schema", "$id", "required")
    )


def _view_parameter(
    name: str, part: JsonObject, *, required: bool, root: JsonObject
) -> ParameterView:
    options = [part, *_schema_alternatives(part, root)]
    types = tuple(dict.fromkeys(kind for option in options for kind in _read_types(option)))
    allowed = tuple(value for option in options for value in _read_enum(option))
    items = next((option["items"] for option in options if "items" in option), None)
    item_forms = list(_schema_forms(items, root))
    of_items = (kind for form in item_forms for kind in _read_types(form))
    description = part.get("description")
    description = description if isinstance(description, str) else ""
    found = re.findall(r"[a-z]{4,20}", description[:300].lower())
    words = (word.rstrip("s") for word in found)
    listed = allowed or tuple(value for form in item_forms for value in _read_enum(form))
    stated = tuple(each for each in listed if isinstance(each, str))
    quoted = dict.fromkeys(re.findall(r"""['"`]([\w./:+-]{1,60})['"`]""", description[:2000]))
    return ParameterView(
        name=name,
        types=types,
        required=required,
        has_default="default" in part,
        default=part.get("default"),
        allowed=allowed,
        stated_values=stated or tuple(quoted),
        minimum=_read_limit(options, "minimum", "exclusiveMinimum", 1),
        maximum=_read_limit(options, "maximum", "exclusiveMaximum", -1),
        item_types=tuple(dict.fromkeys(of_items)),
        described_by=frozenset(
            islice((each for each in words if each not in WORDS["of_descriptions"]), _MAX_WORDS)
        ),
        pattern=_only_text(options, "pattern"),
        form=_only_text(options, "format"),
        description=description[:_MAX_DESCRIPTION],
    )


def resolve_schema(part: JsonValue, root: JsonObject) -> JsonObject:
    """Follow local `$ref`s; a loop or a foreign reference ends in an empty schema."""
    for _ in range(_MAX_REFS):
        if not isinstance(part, dict):
            return {}
        ref = part.get("$ref")
        if not isinstance(ref, str):
            return part
        target: JsonValue = root
        for step in ref.removeprefix("#").strip("/").split("/"):
            target = target.get(step) if isinstance(target, dict) else None
        part = target
    return {}


def _schema_alternatives(part: JsonObject, root: JsonObject) -> list[JsonObject]:
    groups = [part.get(key) for key in ("anyOf", "oneOf", "allOf")]
    options = [option for group in groups if isinstance(group, list) for option in group]
    return [resolve_schema(option, root) for option in options[:_MAX_ALTERNATIVES]]


def _read_types(part: JsonObject) -> list[JsonType]:
    kind = part.get("type")
    names = kind if isinstance(kind, list) else [kind]
    return [known for name in names for known in _ALL_TYPES if known == name]


def _read_enum(part: JsonObject) -> list[JsonValue]:
    values = part.get("enum")
    if isinstance(values, list):
        return [value for value in values if not isinstance(value, dict | list)]
    if "const" in part:
        return [part["const"]]
    return []


def _only_text(options: list[JsonObject], key: str) -> str | None:
    texts = [each for each in options if "string" in _read_types(each)] or options[:1]
    value = texts[0].get(key) if len(texts) == 1 else None
    if isinstance(value, str):
        return value
    return None


def _read_limit(options: list[JsonObject], key: str, exclusive: str, step: int) -> float | None:
    for option in options:
        value = option.get(key)
        beyond = option.get(exclusive)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value) + (step if beyond is True else 0)
        if isinstance(beyond, int | float) and not isinstance(beyond, bool):
            whole = "integer" in _read_types(option)
            return float(beyond) + (step if whole else step * 1e-9 * max(1.0, abs(beyond)))
    return None


_MAX_WORDS = 20
_MAX_DESCRIPTION = 300


_MAX_DEPTH = 12
_MAX_FORMS = 20
_DEFINITIONS = ("$defs", "definitions")


def object_view(schema: JsonObject, path: Path, value: JsonObject) -> ToolView | None:
    """Return the view of the object at a path, of several the most like `value`.

    None if unknown.
    """
    forms = [form for form in _forms_at(schema, path) if isinstance(form.get("properties"), dict)]
    if not forms:
        return None
    best = max(forms, key=lambda form: _form_likeness(form, value, schema))
    return view_of_schema(_with_definitions(best, schema))


def _form_likeness(form: JsonObject, value: JsonObject, root: JsonObject) -> tuple[int, int, int]:
    """Return how many members of an object have the values, the names and the words of a form."""
    properties = {name: resolve_schema(part, root) for name, part in _form_properties(form).items()}
    listed = {name: values for name, part in properties.items() if (values := _read_enum(part))}
    meant = sum(value.get(name) in values for name, values in listed.items())
    starts = [name[:_START].lower() for name in properties]
    alike = sum(key[:_START].lower() in starts for key in islice(value, _MAX_PARAMETERS))
    return meant, len(value.keys() & properties.keys()), alike


_START = 3
"""Letters that two names of the same thing mostly share: `lat` and `latitude`."""


def element_view(schema: JsonObject, path: Path) -> ToolView | None:
    """Return a view with one parameter, named for the last step: an element of an array."""
    forms = list(_forms_at(schema, path))
    if not forms or not path:
        return None
    name = str(path[-1])  # an item cannot be left out
    pseudo: JsonObject = {"properties": {name: forms[0]}, "required": [name]}
    return view_of_schema(_with_definitions(pseudo, schema))


def unknown_inside(schema: JsonObject, parameters: JsonObject) -> set[Path]:
    """Return the general paths below the parameters that the schema does not know."""
    paths = {general_path(path): path for path, _ in leaves_like(parameters, ())}
    below = (path[:end] for path in paths.values() for end in range(2, len(path) + 1))
    found = set()
    for each, path in {general_path(one): one for one in below if isinstance(one[-1], str)}.items():
        around = list(_forms_at(schema, path[:-1]))
        is_open = any(form.get("additionalProperties") for form in around)
        if any(map(_form_properties, around)) and not is_open and not any(_forms_at(schema, path)):
            found.add(each)
    return found


def _forms_at(schema: JsonObject, path: Path) -> Iterator[JsonObject]:
    forms = [schema]
    for step in path[: _MAX_DEPTH + 1]:
        inner = (part for form in forms for part in _schema_members(form, step))
        forms = [each for part in inner for each in _schema_forms(part, schema)][:_MAX_FORMS]
    yield from forms if len(path) <= _MAX_DEPTH else ()


def _schema_members(form: JsonObject, step: str | int) -> Iterator[JsonValue]:
    if isinstance(step, str):
        properties = _form_properties(form)
        yield properties[step] if step in properties else form.get("additionalProperties")
    else:
        first = form.get("prefixItems")
        is_first = isinstance(first, list) and 0 <= step < len(first)
        yield first[step] if isinstance(first, list) and is_first else form.get("items")


def _schema_forms(part: JsonValue, root: JsonObject) -> Iterator[JsonObject]:
    schema = resolve_schema(part, root)
    yield from (form for form in (schema, *_schema_alternatives(schema, root)) if form)


def _form_properties(form: JsonObject) -> JsonObject:
    properties = form.get("properties")
    if isinstance(properties, dict):
        return properties
    return {}


def _with_definitions(part: JsonObject, root: JsonObject) -> JsonObject:
    return {key: root[key] for key in _DEFINITIONS if key in root} | part
