"""Grounds: what error, schema, task, session and earlier repairs say of a value or a key.

The account (`calls.account`) asks these of a failed call's case. Who proposed a value is
not asked: a value is stated if someone states it, any caller that put it in.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Literal

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue
from retrieval.answers.proposers.case import Case, value_sources_of
from retrieval.answers.proposers.paths import is_own_path
from retrieval.answers.proposers.session import session_texts
from retrieval.answers.proposers.subjects import is_setting
from retrieval.knowledge.calls.account import CallAccount, Grounds, StatedValue
from retrieval.knowledge.calls.matching import account_of
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.rewrites import edits as ed
from retrieval.knowledge.rewrites.edit_effects import try_edits
from retrieval.knowledge.rewrites.edits import EditDoesNotApplyError, Site, ValueEdit, number_of
from retrieval.knowledge.values.parameters import (
    ParameterView,
    Path,
    general_path,
    object_view,
    value_at,
)
from retrieval.knowledge.values.scalars import is_about_zones, read_catalogue, same_value
from retrieval.knowledge.values.texts import is_number, written_in

_SHORTEST = 2
"""Characters from which on a text of a message is a value, and no letter of a word."""


def account_in(case: Case, repaired: JsonObject) -> CallAccount:
    """Return the account of a repair of the case's call."""
    return account_of(case.parameters, repaired, grounds_of(case))


def grounds_of(case: Case) -> Grounds:
    """Return what the case's error, schema, task, session and memory say."""

    @cache
    def views_at(path: Path) -> Mapping[str, ParameterView]:
        return _views_at(case, path)

    def state_value(path: Path, value: JsonValue, former: JsonValue) -> StatedValue | None:
        view = views_at(path[:-1]).get(str(path[-1])) if path else None
        return next(_find_statements(case, path, value, former, view), None)

    return Grounds(
        places=views_at,
        listed=lambda path: _listed_values(case, path),
        state=state_value,
        renamed=lambda old, name: any(
            fault.suggested == name and fault.path[-1:] in ((), (old,)) for fault in case.faults
        ),
    )


def _views_at(case: Case, path: Path) -> Mapping[str, ParameterView]:
    if path:
        around = value_at(case.parameters, path)
        view = object_view(
            case.schema or case.stated or {}, path, around if isinstance(around, dict) else {}
        )
        if view is not None:
            return view.parameters
        return {}
    known = dict(case.view.parameters) if case.view is not None else {}
    for fault in case.faults:
        name = fault.parameter
        if fault.kind == "missing" and len(fault.path) == 1 and name and name not in known:
            known[name] = ParameterView(name, fault.expected_types, required=True)
    return known


def view_at(case: Case, path: Path) -> ParameterView | None:
    """Return what is known of the place at a path, at any depth; an element is its list's."""
    names = path if path and isinstance(path[-1], str) else path[:-1]
    if names:
        return _views_at(case, names[:-1]).get(str(names[-1]))
    return None


def _listed_values(case: Case, path: Path) -> tuple[JsonValue, ...]:
    keys = path if path and isinstance(path[-1], str) else path[:-1]
    name = ""
    found: list[JsonValue] = []
    if keys:
        name = str(keys[-1])
        view = _views_at(case, keys[:-1]).get(name)
        if view:
            found += view.allowed
            found += view.stated_values
    for fault in case.faults:
        if not fault.path or general_path(fault.path) == general_path(path):
            found += fault.allowed
    for seed in case.seeds:
        if seed.catalogue and is_about_zones(name, case.reading.signature):
            found += read_catalogue(seed.catalogue)
    return tuple(found)


def _find_statements(
    case: Case, path: Path, value: JsonValue, former: JsonValue, view: ParameterView | None
) -> Iterator[StatedValue]:
    """Yield who states a value for a place, the one that states most first."""
    yield from _state_bound(case, path, value, former, view)
    yield from _of_schema(value, view, is_new=former is None)
    for fault in case.faults:
        if not fault.path or general_path(fault.path) == general_path(path):
            yield from _of_fault(fault, value, former)
    text = str(value)
    is_text = isinstance(value, str | int | float) and not isinstance(value, bool)
    if is_text and len(text) >= _SHORTEST:
        if written_in(case.reading.signature, text) == text:
            yield StatedValue("stated", "the error's words have it")
        if case.context and written_in(case.context, text) is not None:
            yield StatedValue("stated", "the task states it")
    yield from _state_learned(case, path, value, former)
    yield from _state_usual(case, path, value, view)
    if is_text and text in session_texts(case):
        yield StatedValue("own", "an earlier call of the session has it")
    elif isinstance(value, str) and is_own_path(case, former, value):
        yield StatedValue("own", "the session names the path")


def _state_bound(
    case: Case, path: Path, value: JsonValue, former: JsonValue, view: ParameterView | None
) -> Iterator[StatedValue]:
    """Yield the bound that a number was moved to: only a setting may be moved there."""
    if not is_number(value):
        return
    if not is_number(former):
        return
    name = str(path[-1])
    of_error = [f for f in case.faults if f.kind == "out_of_range" and not f.of_length]
    of_error = [f for f in of_error if not f.path or general_path(f.path) == general_path(path)]
    stated = [("the error", f.minimum, f.maximum) for f in of_error if not f.from_schema]
    if view is not None:
        stated.append(("the schema", view.minimum, view.maximum))
    stated += [("the schema", f.minimum, f.maximum) for f in of_error if f.from_schema]
    observed = case.observed_values(name) if len(path) == 1 else None
    of_setting = is_setting(name, view, observed) and value != 0  # 0 is not less of the same
    kind: Literal["bound", "value"] = "bound" if of_setting else "value"
    for who, low, high in stated:
        if low is not None and former < low and same_value(value, low):
            yield StatedValue("stated", f"{who} states at least {value}", kind)
        elif high is not None and former > high and same_value(value, high):
            yield StatedValue("stated", f"{who} states at most {value}", kind)


def _of_schema(
    value: JsonValue, view: ParameterView | None, *, is_new: bool
) -> Iterator[StatedValue]:
    if view is None:
        return
    # What the caller stated is not filled in.
    fills: Literal["default", "value"] = "default" if is_new else "value"
    if view.has_default and same_json(view.default, value):
        yield StatedValue("stated", "the schema's default", fills)
    elif len(view.allowed) == 1 and same_json(view.allowed[0], value):
        yield StatedValue("stated", "the only value that the schema allows", fills)
    elif view.states_value(value):
        yield StatedValue("stated", "the schema lists it")


def _of_fault(fault: Fault, value: JsonValue, former: JsonValue) -> Iterator[StatedValue]:
    named = (fault.suggested, fault.stated)
    if any(each is not None and same_value(each, value) for each in named) or any(
        each is not None and str(each) == str(value) for each in named
    ):
        yield StatedValue("stated", "the error names it")
    elif any(same_json(each, value) for each in fault.allowed):
        yield StatedValue("stated", "the error lists it")
    elif fault.suggested and isinstance(value, str) and isinstance(former, str):
        is_word = fault.suggested in value and fault.suggested not in former
        if is_word:
            yield StatedValue("stated", "the error names the word")
    elif isinstance(former, str) and fault.value_text:
        made = [former.replace(fault.value_text, str(each)) for each in fault.allowed]
        if value in made:
            yield StatedValue("stated", "the error lists the word")
    total = number_of(fault.stated)
    wrong = number_of(fault.value_text)
    if total is None:
        return
    if wrong is None:
        return
    if not (is_number(value) and is_number(former)):
        return
    if round(former + total - wrong, 6) == round(value, 6):
        yield StatedValue("stated", "so that the sum is the total that the error states")


def _state_learned(
    case: Case, path: Path, value: JsonValue, former: JsonValue
) -> Iterator[StatedValue]:
    """Yield what earlier repairs of this error made of such a value."""
    known = [case.signature] if case.signature is not None else []
    for signature in (*known, *case.like_signatures):
        edits = [change.edit for change in signature.find_common_changes()]
        edits += [edit for rule in signature.rules.values() for edit in rule.edits]
        for edit in edits:
            if _is_at(edit, path) and _gives_value(case, edit, path, value, former):
                yield StatedValue("setting", "what mended such calls before")
                return


def _state_usual(
    case: Case, path: Path, value: JsonValue, view: ParameterView | None
) -> Iterator[StatedValue]:
    """Yield how many successes have a value, for a setting: a subject's is no one else's to say."""
    seen = case.observed_values(str(path[0])) if len(path) == 1 else None
    if seen is None:
        return
    if not is_setting(str(path[0]), view, seen):
        return
    if count := seen.count_common(value):
        yield StatedValue("setting", f"{count} of {seen.successes} successes have it")


def _is_at(edit: ed.Edit, path: Path) -> bool:
    """Return whether an edit is of a place, or puts in what the place is inside of."""
    place = general_path(edit.path)
    if isinstance(edit, ed.Add | ed.Put):
        return general_path(path)[: len(place)] == place
    return general_path(path) == place


def _gives_value(
    case: Case, edit: ed.Edit, path: Path, value: JsonValue, former: JsonValue
) -> bool:
    if isinstance(edit, ed.Add | ed.Put):
        return same_json(value_at({"": edit.value}, ("", *path[len(edit.path) :])), value)
    if isinstance(edit, ed.Take | ed.Fill):
        call = try_edits(case.parameters, [edit])
        return call is not None and same_json(value_at(call, path), value)
    if not isinstance(edit, ValueEdit):
        return False
    try:
        made = edit.change_value(former, Site(path, case.parameters, value_sources_of(case)))
    except EditDoesNotApplyError:
        return False
    return same_json(made, value)
