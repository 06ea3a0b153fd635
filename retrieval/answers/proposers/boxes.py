"""Texts where an object is due, objects where a text is due, and fields that a free object holds.

What `shape` tries next to the places of names, as in calendars: `"start": "2026-05-04T10:00:00"`
for `"start": {"dateTime": "2026-05-04T10:00:00"}`, with the zone next to it or in it.
"""

from collections.abc import Collection, Iterator

from aftercall.json_values import JsonObject
from retrieval.answers.proposers.case import Case, Option, prior_trials
from retrieval.answers.proposers.faults import objects_in
from retrieval.answers.proposers.layouts import (
    as_option,
    is_stated,
    names_of_tool,
    unknown_parameters,
)
from retrieval.knowledge.rewrites.edits import Add, Edit, Nest, Remove, Replace
from retrieval.knowledge.values.forms import meets_form
from retrieval.knowledge.values.likeness import best_matches
from retrieval.knowledge.values.notations import object_in
from retrieval.knowledge.values.parameters import ParameterView, ToolView
from retrieval.knowledge.values.scalars import fits_types

_BOXED = prior_trials("shape.boxed")
_UNBOXED = prior_trials("shape.unboxed")
_INTO_FREE = prior_trials("shape.free")
_SEVERAL = 2


def box_options(case: Case) -> Iterator[Option]:
    """Objects for all texts where objects are due, with what stands next to them and is theirs."""
    held: dict[str, JsonObject] = {}
    found = unknown_parameters(case)
    beside = {name: value for name, value in found if case.view_parameter(name) is None}
    for name, value in found:
        known = case.view_parameter(name)
        inner = case.view_object((name,)) if known else None
        is_text = isinstance(value, str) and not object_in(value)
        field = _field_for(inner, str(value), beside) if inner and is_text else None
        if known is not None and known.types == ("object",) and field is not None:
            held[name] = {field: value}
    taken = {
        name: value
        for name, value in beside.items()
        if all(name in _object_fields(case, each) for each in held)
    }
    if held:
        edits: list[Edit] = [
            Replace(name=name, before=case.parameters[name], value={**inner, **taken})
            for name, inner in held.items()
        ]
        edits += [Remove(name=name) for name in taken]
        yield as_option(case, edits, f"`{next(iter(held))}` is an object", _BOXED)


def _object_fields(case: Case, name: str) -> dict[str, ParameterView]:
    view = case.view_object((name,))
    if view:
        return view.parameters
    return {}


def _field_for(view: ToolView, text: str, beside: Collection[str]) -> str | None:
    """Return the field that a text is for: the only needed one, or the only one whose form it has.

    What stands next to the text is needed no longer.
    """
    texts = [each for each in view.parameters.values() if fits_types("", each.types)]
    needed = [each.name for each in view.parameters.values() if each.required]
    needed = [name for name in needed if name not in beside]
    formed = [each.name for each in texts if each.form and meets_form(text, each.form)]
    if len(needed) == 1 and any(each.name == needed[0] for each in texts):
        return needed[0]
    if len(formed) == 1 and set(needed) <= {*formed}:
        return formed[0]
    return None


def unbox_options(case: Case) -> Iterator[Option]:
    """Yield plain values for all objects with one due member, whose others have places."""
    edits: list[Edit] = []
    others: JsonObject = {}
    for name, value in unknown_parameters(case):
        known = case.view_parameter(name)
        if known is None:
            continue
        if not isinstance(value, dict):
            continue
        if len(value) < 2:
            continue
        rest = {key: each for key, each in value.items() if key in names_of_tool(case)}
        own = [
            each for key, each in value.items() if key not in rest and fits_types(each, known.types)
        ]
        if len(own) != 1:
            return
        if len(rest) != len(value) - 1:
            return
        if not is_stated(case):
            return
        if any(
            key in {**others, **case.parameters} and {**others, **case.parameters}[key] != each
            for key, each in rest.items()
        ):
            return  # two zones, and a place for one
        others |= rest
        edits.append(Replace(name=name, before=value, value=own[0]))
    edits += [
        Add(name=key, value=each) for key, each in others.items() if key not in case.parameters
    ]
    if others:
        yield as_option(case, edits, "one member is the value, the others have places", _UNBOXED)


def into_free(case: Case) -> Iterator[Option]:
    """Fields inside of objects that belong into an object which takes any, and is missing."""
    edits: list[Edit] = []
    whole = ((), case.parameters)
    for path, inner in (whole, *objects_in(case.parameters)) if case.schema is not None else ():
        view = case.view_object(path, inner) if path else case.view
        missing = view.missing_parameters(inner) if view else []
        unknown = view.unknown_parameters(inner) if view else []
        if not path and (len(unknown) < _SEVERAL or best_matches(unknown, missing)):
            continue  # one may be the object itself, under another name
        if (
            view
            and len(missing) == 1
            and unknown
            and view.parameters[missing[0]].types == ("object",)
            and not case.view_object((*path, missing[0]))
        ):
            edits.append(Nest(name=missing[0], fields=tuple(unknown)).under_prefix(path))
    if edits:
        yield as_option(case, edits, "the fields belong into an object of theirs", _INTO_FREE)
