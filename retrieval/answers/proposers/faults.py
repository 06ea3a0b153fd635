"""The faults of a call: what its error names, and what schema and successes show next to it.

Where nothing is named, the one value that stands out is taken for the fault. Pure.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import FailedCall
from aftercall.redaction import is_redacted
from retrieval import WORDS
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.reading.reader import ErrorReading, tells_of_work
from retrieval.knowledge.tool.profile import ParameterProfile, ToolProfile
from retrieval.knowledge.values.forms import in_form, meets_form, told_forms
from retrieval.knowledge.values.likeness import words_of
from retrieval.knowledge.values.parameters import (
    ParameterView,
    Path,
    ToolView,
    element_view,
    general_path,
    leaves_like,
    object_view,
    unknown_inside,
    value_at,
    view_of_schema,
)
from retrieval.knowledge.values.scalars import fits_types, is_marked, plain_value, says_nothing


def inner_faults(schema: JsonObject, parameters: JsonObject) -> list[Fault]:
    """Faults that the live schema shows inside nested objects and lists; the outer ones first."""
    faults: list[Fault] = []
    for path, value in islice(objects_in(parameters), _MAX_OBJECTS):
        view = object_view(schema, path, value)
        if view is not None and view.parameters:
            faults += [replace(each, path=(*path, *each.path)) for each in shown_by(view, value)]
        if len(faults) >= _MAX_FAULTS:
            break
    items = (each for each in leaves_like(parameters, ()) if isinstance(each[0][-1], int))
    for path, item in islice(items, _MAX_OBJECTS):
        view = element_view(schema, path)
        for known in view.parameters.values() if view is not None else ():
            if not is_redacted(item) and (fault := _find_unfit(known, item)):
                faults.append(replace(fault, path=path))
    return faults[:_MAX_FAULTS]


_MAX_OBJECTS = 20
"""Nested objects of a call, and plain items of its lists, that are held against the schema; the
others of a list are alike."""
_MAX_FAULTS = 16
_MAX_DEPTH = 6


def objects_in(parameters: JsonObject) -> Iterator[tuple[Path, JsonObject]]:
    """Yield the objects inside of parameters, each with its place, the outer ones first."""
    level: list[tuple[Path, JsonValue]] = [
        ((name,), value) for name, value in islice(parameters.items(), 1_000)
    ]
    for _ in range(_MAX_DEPTH):
        below: list[tuple[Path, JsonValue]] = []
        for at, value in level:
            if isinstance(value, dict):
                yield at, value
                below += [((*at, key), each) for key, each in islice(value.items(), 100)]
            elif isinstance(value, list):
                below += [((*at, number), each) for number, each in enumerate(value[:20])]
        level = below[:1_000]


def stated_schema(faults: Sequence[Fault], parameters: JsonObject) -> JsonObject | None:
    """Return what the text of an error states, as a schema; None where it states nothing.

    What the call has and the error does not refuse by name exists, in any form.
    """
    stated = [fault for fault in faults if fault.path and not fault.from_schema]
    if not any(map(_states_limit, stated)):
        return None
    schema = _open_schema(parameters)
    for fault in stated:
        _state_fault(schema, fault)
    return schema


def _states_limit(fault: Fault) -> bool:
    has_bounds = fault.minimum is not None or fault.maximum is not None
    has_values = bool(fault.known or fault.allowed or fault.expected_types)
    return has_bounds or has_values or fault.expected_format is not None


def _open_schema(value: JsonValue) -> JsonObject:
    """Return a schema that states which names a value has, and nothing else."""
    if isinstance(value, dict):
        properties: JsonObject = {
            key: _open_schema(each) for key, each in islice(value.items(), _MAX_NAMES)
        }
        return {"properties": properties}
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        merged: JsonObject = {}
        for each in value[:_MAX_OBJECTS]:
            merged |= each if isinstance(each, dict) else {}
        return {"items": _open_schema(merged)}
    return {}


def _state_fault(schema: JsonObject, fault: Fault) -> None:
    """Put into a schema what a fault states of its place and of the object around it."""
    around: JsonObject = schema
    for step in fault.path[:-1]:
        key = "items" if isinstance(step, int) else "properties"
        part = around.setdefault(key, {})
        if key == "properties" and isinstance(part, dict):
            part = part.setdefault(str(step), {})
        around = part if isinstance(part, dict) else {}
    name = fault.path[-1]
    if isinstance(name, int):
        around["items"] = _stated_part(fault)
        return
    properties = around.setdefault("properties", {})
    if not isinstance(properties, dict):
        return
    if fault.kind == "unexpected":
        properties.pop(name, None)
    elif fault.kind == "missing":
        required = around.setdefault("required", [])
        if isinstance(required, list):
            required.append(name)
    known = (*fault.known, *([fault.suggested] if fault.kind == "unexpected" else []))
    for each in filter(None, known):
        properties.setdefault(each, {})
    if fault.known:
        around["additionalProperties"] = False
    if fault.kind != "unexpected":
        properties[name] = _stated_part(fault)


def _stated_part(fault: Fault) -> JsonObject:
    part: JsonObject = {}
    if fault.expected_types:
        part["type"] = list(fault.expected_types)
    if fault.allowed:
        part["enum"] = list(fault.allowed)
    if not fault.of_length:
        bounds = {"minimum": fault.minimum, "maximum": fault.maximum}
        part |= {key: limit for key, limit in bounds.items() if limit is not None}
    return part


NOT_ABOUT_PARAMETERS = frozenset(
    {"timeout", "rate_limited", "unavailable", "permission_denied", "user_rejected",
     "wrong_tool_boundary", "low_utility"}
)  # fmt: skip
_OF_THE_VALUE = frozenset({"not_found", "not_allowed", "bad_format", "invalid"})
_BLAMES_A_VALUE = frozenset({"invalid_parameters", "not_found"})
_MAX_SHOWN = 20
"""Faults of a kind: more than the proposals deal with (see `compose`)."""
_MAX_NAMES = 1_000
_MANY = 5
"""Successes from which on what none of them had is taken as wrong next to what the error states."""
_ITEM = 2
"""Steps of a path to a parameter, or to an item of its list."""
_SHORT = 100
_ENOUGH = 3
"""Successes from which on their types are taken as the parameter's."""


def faults_of(
    parameters: JsonObject,
    reading: ErrorReading,
    view: ToolView | None,
    profile: ToolProfile | None,
    schema: JsonObject | None,
) -> tuple[Fault, ...]:
    """Return all that is known to be wrong with a call; what the error states comes first.

    What a broken contract names are places of the result, and no parameters.
    """
    if reading.category == "contract_violation":
        return ()
    if reading.category in NOT_ABOUT_PARAMETERS:
        return reading.faults
    said = tuple(map(_of_form, reading.faults))
    if schema is not None:
        said = tuple(_of_name(fault, parameters, schema) for fault in _without_alternatives(said))
    if view is not None:
        said = _keep_plausible(said, parameters, view)
        blamed = reading.category in ("invalid_parameters", "unknown")
        shown = _shown_beside(said, parameters, view, schema, blamed=blamed)
        enough = profile is not None and profile.successes >= _MANY
        if enough and profile is not None and view.source == "profile":
            shown += _odd_types(profile, view, parameters, {f.path for f in (*said, *shown)})
        # What the message states without a name, the schema shows with one.
        kinds = {fault.kind for fault in shown}
        clearer = {fault.path for fault in shown}
        said = (
            *(
                f
                for f in said
                if (f.path or f.kind not in kinds) and not (f.path in clearer and _says_no_more(f))
            ),
            *shown,
        )
        if reading.category in _BLAMES_A_VALUE or reading.category == "unknown":
            said = _with_forms(said, out_of_form(view, parameters))
    if said and all(fault.path for fault in said):
        return said
    told = told_forms(reading.signature)
    if not said and len(told) == 1 and reading.category in _BLAMES_A_VALUE:
        # Which value is meant the error does not say: those that are written in another form.
        said = tuple(
            Fault("bad_format", (name,), expected_format=told[0])
            for name, value in islice(parameters.items(), _MAX_NAMES)
            if isinstance(value, str) and in_form(value, told[0])
        )
        if said:
            return said
    suspects = _find_suspects(parameters, reading, view, profile)
    if len(suspects) == 1:
        return _with_suspect(said, suspects[0])
    return said


Refused = Callable[[], list[Fault]]
"""What `refused_by` states of the call, found out when it is asked for."""


def read_by_schema(reading: ErrorReading, refused: Refused) -> ErrorReading:
    """Return the reading; by the live schema where the message's words are unknown."""
    if reading.is_unsure and reading.category in _UNREAD and refused():
        return replace(reading, category="invalid_parameters", confidence=_BY_SCHEMA)
    return reading


_UNREAD = frozenset({"unknown", "invalid_parameters", "contract_violation"})
_BY_SCHEMA = 0.8
"""A judgement: that a call does not fit is mostly why it failed. The classifier is not asked."""


def refused_by(call: FailedCall) -> list[Fault]:
    """Return what the caller's live schema shows to be wrong with the call."""
    schema = call.input_schema
    parameters = call.parameters
    if schema is None or not call.parameters_known:
        return []
    return [*shown_by(view_of_schema(schema), parameters), *inner_faults(schema, parameters)]


def held_against_schema(call: FailedCall, reading: ErrorReading, refused: Refused) -> ErrorReading:
    """Return the reading, where the caller's live schema refuses the call.

    So did its server, unrun.

    4-rules.md, Retrying. It does not count where the error shows anything else.
    """
    if reading.rejected_before_run or reading.category in _TELLS_OF_MORE:
        return reading
    if tells_of_work(call.error):
        return reading
    names = {fault.parameter for fault in refused() if fault.parameter}
    told = {fault.parameter for fault in reading.faults if fault.path}
    is_of_call = reading.category in _UNREAD or bool(told)
    rejected = bool(names) and is_of_call and told <= names
    return replace(reading, rejected_before_run=rejected)


def _without_alternatives(said: tuple[Fault, ...]) -> tuple[Fault, ...]:
    """Return the faults of the one alternative of a union that the schema shows."""
    unions = [fault.path for fault in said if fault.of_union]
    return tuple(
        fault
        for fault in said
        if fault.of_union or not any(fault.path[: len(at)] == at for at in unions)
    )


_TELLS_OF_MORE = NOT_ABOUT_PARAMETERS | {"conflict", "timeout", "contract_violation"}
"""What is stated of a call that ran, or that was not let run for other reasons."""


def _of_name(fault: Fault, parameters: JsonObject, schema: JsonObject) -> Fault:
    """Return the fault as one of a name, where the live schema shows that the name is at fault.

    A name that was sent and that the schema does not have is unexpected, whatever words are used;
    one that was not sent and that it has is missing: some validators say that it has a wrong type.
    """
    if not fault.path or not isinstance(fault.path[-1], str) or fault.kind in _OF_NAMES:
        return fault
    *above, name = fault.path
    around = value_at(parameters, tuple(above)) if above else parameters
    if not isinstance(around, dict) or fault.guessed_place:
        return fault
    view = object_view(schema, tuple(above), around) if above else view_of_schema(schema)
    if view is None or not view.parameters:
        return fault
    is_vague = fault.kind in _VAGUE
    if name not in around:
        is_known = name in view.parameters
        if is_known and not is_vague:
            return replace(fault, kind="missing", value_text=None)
        return fault
    if is_vague and _is_unknown(fault.path, around, view, parameters, schema):
        return replace(fault, kind="unexpected", value_text=None)
    return fault


def _is_unknown(
    path: Path, around: JsonObject, view: ToolView, parameters: JsonObject, schema: JsonObject
) -> bool:
    """Return whether the schema has no such name at a place, and takes no others there."""
    if len(path) > 1:
        return general_path(path) in unknown_inside(schema, parameters)
    return path[0] in view.unknown_parameters(around) and not schema.get("additionalProperties")


_OF_NAMES = frozenset({"missing", "unexpected"})
_VAGUE = frozenset({"invalid", "not_found"})
"""Kinds of fault that may be about a name as well; what is not found may also be a thing."""


def _of_form(fault: Fault) -> Fault:
    """Return the fault as one of form, where what it lists are forms such as `YYYY-MM-DD`."""
    sent = fault.value_text or ""
    if len(fault.allowed) > 1 and sent not in fault.allowed and (
        all(str(each) in sent for each in fault.allowed)
    ):  # fmt: skip
        return replace(fault, kind="bad_format", allowed=(), stated=None)  # parts of what was sent
    if fault.allowed and all(isinstance(each, str) and told_forms(each) for each in fault.allowed):
        form = None if len(fault.allowed) > 1 else str(fault.allowed[0])
        return replace(fault, kind="bad_format", allowed=(), stated=None, expected_format=form)
    return fault


def _keep_plausible(
    said: tuple[Fault, ...], parameters: JsonObject, view: ToolView
) -> tuple[Fault, ...]:
    """Return the faults that the schema does not contradict.

    What a tool misses without having it is a key of its own data; a value of the wrong type is not
    found, or not allowed, because of its type; a name that neither the call nor the tool has is a
    word of the message; and what stands under a name in another style is only named wrongly.
    """
    has = view.parameters if view.source == "schema" else {}
    absent = {words_of(name) for name in has if name not in parameters}
    mistyped = {
        (name,)
        for name, value in islice(parameters.items(), _MAX_NAMES)
        if (known := view.parameters.get(name)) and not is_redacted(value)
        and not fits_types(value, known.types)
    }  # fmt: skip
    kept = []
    for fault in said:
        name = fault.parameter
        if fault.kind in _OF_THE_VALUE and fault.path in mistyped:
            continue
        if fault.kind == "wrong_type" and words_of(name or "") in absent:
            continue
        is_known = not has or name in has
        if fault.kind == "missing" and len(fault.path) == 1 and not is_known:
            continue
        if has and name not in parameters:
            is_unexpected = fault.kind == "unexpected"
            if is_unexpected or (not is_known and _says_no_more(fault)):
                continue
        kept.append(fault)
    return tuple(kept)


def _says_no_more(fault: Fault) -> bool:
    return (
        fault.kind == "invalid"
        and bool(fault.path)
        and not (fault.suggested or fault.multiple_of or fault.stated or fault.rival)
    )


def _shown_beside(
    said: tuple[Fault, ...],
    parameters: JsonObject,
    view: ToolView,
    schema: JsonObject | None,
    *,
    blamed: bool,
) -> list[Fault]:
    known = {(fault.kind, fault.path) for fault in said}
    named = {fault.path for fault in said if fault.kind != "invalid"}
    shown = shown_by(view, parameters)
    if not view.closed and view.source == "schema":
        blamed = blamed and not (schema or {}).get("additionalProperties")
        shown += _find_unknown(said, parameters, view, blamed=blamed)
    if schema is not None:
        shown += inner_faults(schema, parameters)
    return [
        fault
        for fault in shown
        if (fault.kind, fault.path) not in known
        and (fault.kind in ("missing", "unexpected") or fault.path not in named)
    ]


def _find_unknown(
    said: tuple[Fault, ...], parameters: JsonObject, view: ToolView, *, blamed: bool
) -> Iterator[Fault]:
    """Yield names that an open schema lacks: where the call is `blamed`, or in another style."""
    refuses = any(fault.kind == "unexpected" and len(fault.path) == 1 for fault in said)
    absent = {words_of(name) for name in view.parameters if name not in parameters}
    for name in view.unknown_parameters(parameters)[:_MAX_SHOWN]:
        if blamed or refuses or words_of(name) in absent:
            yield Fault("unexpected", (name,), from_schema=True)


def _odd_types(
    profile: ToolProfile, view: ToolView, parameters: JsonObject, named: set[Path]
) -> list[Fault]:
    return [
        Fault("wrong_type", (name,), expected_types=known.types, from_schema=True)
        for name, value in islice(parameters.items(), _MAX_NAMES)
        if (known := view.parameters.get(name)) and (name,) not in named
        and value is not None and not is_redacted(value) and not fits_types(value, known.types)
        and profile.parameters[name].successes >= _MANY
    ]  # fmt: skip


def shown_by(view: ToolView, parameters: JsonObject) -> list[Fault]:
    """Return the places where an object does not fit what is known of its parameters."""
    missing = view.missing_parameters(parameters)[:_MAX_SHOWN]
    faults = [Fault("missing", (name,), from_schema=True) for name in missing]
    if view.closed:
        unknown = view.unknown_parameters(parameters)[:_MAX_SHOWN]
        faults += [Fault("unexpected", (name,), from_schema=True) for name in unknown]
    if view.source == "profile":
        return faults
    for name, value in islice(parameters.items(), _MAX_NAMES):
        known = view.parameters.get(name)
        # The caller's own value may fit where the mask states nothing.
        if known is not None and not is_redacted(value) and (fault := _find_unfit(known, value)):
            others = parameters.keys() - {name}
            is_meant = len(known.allowed) == 1 and others and others <= view.parameters.keys()
            faults.append(replace(fault, stated=known.allowed[0]) if is_meant else fault)
    return faults


def _find_unfit(known: ParameterView, value: JsonValue) -> Fault | None:
    path = (known.name,)
    if not fits_types(value, known.types):
        return Fault("wrong_type", path, expected_types=known.types, from_schema=True)
    if known.allowed and value not in known.allowed:
        return Fault("not_allowed", path, allowed=known.allowed, from_schema=True)
    if known.pattern and isinstance(value, str) and meets_form(value, known.pattern) is False:
        return Fault("bad_format", path, expected_format=known.pattern, from_schema=True)
    low = known.minimum
    high = known.maximum
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if (low is not None and value < low) or (high is not None and value > high):
        return Fault("out_of_range", path, minimum=low, maximum=high, from_schema=True)
    return None


def stated_forms(known: ParameterView) -> list[str]:
    """Return the forms that the schema states of a text, those that it asserts first."""
    asserted = [form for form in (known.pattern, known.form) if form]
    return [*asserted, *(() if asserted else told_forms(known.description))]


def misses_form(known: ParameterView, text: str) -> bool:
    """Return whether a text has not the form that the schema states.

    One of several shown ones will do.
    """
    asserted = [form for form in (known.pattern, known.form) if form]
    if asserted:
        return any(meets_form(text, form) is False for form in asserted)
    told = told_forms(known.description)
    return bool(told) and all(meets_form(text, form) is False for form in told)


def _with_forms(said: tuple[Fault, ...], found: list[Fault]) -> tuple[Fault, ...]:
    """Return the faults with those of missed forms, where nothing else explains the error."""
    places = {fault.path for fault in said if fault.path}
    missed = {fault.path for fault in found}
    of_form = all(not f.path or f.kind in ("bad_format", "invalid") for f in said)
    if not found or not of_form or (places and places.isdisjoint(missed)):
        return said
    kept = [f for f in said if f.path and (f.kind == "bad_format" or f.path not in missed)]
    named = {fault.path for fault in kept}
    return (*kept, *(fault for fault in found if fault.path not in named))


def out_of_form(view: ToolView, parameters: JsonObject) -> list[Fault]:
    """Return where a text has not the form that the schema asserts, or shows in words."""
    return [
        Fault("bad_format", (name,), expected_format=stated_forms(known)[0], from_schema=True)
        for name, value in islice(parameters.items(), _MAX_NAMES)
        if (known := view.parameters.get(name)) and isinstance(value, str)
        and not is_redacted(value) and misses_form(known, value)
    ]  # fmt: skip


def _has_marks(name: str, value: JsonValue) -> bool:
    """Return whether a value stands in marks, a fence or a notation, and is no free text."""
    if not isinstance(value, str):
        return False
    if not value.lstrip().startswith("```"):
        if len(value) > _SHORT or "\n" in value.strip():
            return False
        if not WORDS["free_text"].isdisjoint(words_of(name)):
            return False
    return is_marked(value) or plain_value(value) != value


def _find_suspects(
    parameters: JsonObject,
    reading: ErrorReading,
    view: ToolView | None,
    profile: ToolProfile | None,
) -> list[Fault]:
    """Return the values that stand out; of a call with one parameter, that one."""
    blamed = reading.category in _BLAMES_A_VALUE or reading.category == "unknown"
    for name, value in islice(parameters.items(), _MAX_NAMES) if blamed and view else ():
        known = view.parameters.get(name) if view else None
        if known and not known.required and isinstance(value, str) and says_nothing(value):
            return [Fault("invalid", (name,))]
    items = islice(parameters.items(), _MAX_NAMES)
    marked = [name for name, value in items if _has_marks(name, value)]
    if len(marked) == 1 and reading.category in _BLAMES_A_VALUE:
        return [Fault("invalid", (marked[0],))]
    found: list[Fault] = []
    for name, value in islice(parameters.items(), _MAX_NAMES):
        known = view.parameters.get(name) if view else None
        seen = profile.parameters.get(name) if profile else None
        if value is not None and not is_redacted(value):
            fault = _find_unusual(name, value, known, seen)
            found += [fault] if fault else []
    if not found and view is not None and reading.category == "invalid_parameters":
        unknown = view.unknown_parameters(parameters)
        enough = view.source == "schema" or (profile is not None and profile.successes >= _ENOUGH)
        found = [Fault("unexpected", (name,), from_schema=True) for name in unknown if enough]
    if not found and len(parameters) == 1 and reading.category in _BLAMES_A_VALUE:
        return [Fault("invalid", (next(iter(parameters)),))]
    return found


def _find_unusual(
    name: str, value: JsonValue, view: ParameterView | None, seen: ParameterProfile | None
) -> Fault | None:
    """Return the fault of a value that differs from all successes in type or words."""
    if seen and seen.successes >= _ENOUGH:
        types = view.types if view and view.types else tuple(seen.types)
        if not fits_types(value, types):
            return Fault("wrong_type", (name,), expected_types=types, from_schema=True)
    stated = view.stated_values if view and WORDS["free_text"].isdisjoint(words_of(name)) else ()
    for path, text in leaves_like({name: value}, ()) if len(stated) > 1 else ():
        if isinstance(text, str) and len(path) <= _ITEM and text not in stated:
            return Fault("not_allowed", path, allowed=tuple(stated), from_schema=True)
    return None


def _with_suspect(faults: tuple[Fault, ...], only: Fault) -> tuple[Fault, ...]:
    """Return the faults, with the single suspect instead of those that name no parameter."""
    if not faults:
        return (only,)
    found = []
    for fault in faults:
        if fault.path or fault.kind in ("missing", "unexpected"):
            found.append(fault)
        elif fault.kind in ("invalid", "wrong_type"):
            found.append(only)
        else:
            found.append(replace(fault, path=only.path))
    return tuple(found)
