"""Causes of failures: what repairs of a failure changed, and which failures have one cause.

Two wordings have one cause where the same places are at fault, or where the same change repaired
them: a server that was rewritten states the same in another validator's words, and "Bad request"
states nothing at all. Only forms of values are compared, never the values.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import ErrorCategory
from retrieval.knowledge.reading.faults import FaultKind
from retrieval.knowledge.tool.examples import RepairExample
from retrieval.knowledge.values.scalars import same_value, type_of

_ALWAYS_ONE = frozenset({"timeout", "rate_limited"})
"""Categories that are a cause by themselves: a tool is too slow, or is called too often."""
_OF_PARAMETERS = frozenset({"invalid_parameters", "unknown", "execution"})
"""Categories that are one where the same change repaired: vague words are read as any of them."""
_MASKS = ((re.compile(r"\d+"), "9"), (re.compile(r"[^\W\d_]+"), "a"))
_MAX_FORM = 24
_MAX_PLACES = 40
_MAX_DEPTH = 6


class PlaceChange(NamedTuple):
    """What repairs did at one place: types of the value, '' where there was none."""

    before: str
    after: str
    form: str = ""
    """Of new texts: runs of digits as 9, of letters as a; empty where they differ."""

    @property
    def is_structural(self) -> bool:
        """Return whether the place or its type changed, not only the value."""
        return self.before != self.after


Changes = Mapping[str, PlaceChange]
"""By place, such as `filter.date` or `rows[].id`."""
NO_CHANGES: Changes = {}


def find_place_changes(examples: Sequence[RepairExample]) -> Changes:
    """Return the changes that more than half of the examples have in common."""
    found = [_find_changes(each.failed, each.mended) for each in examples]
    numbers = Counter(
        (place, each.before, each.after) for changes in found for place, each in changes.items()
    )
    return {
        place: PlaceChange(before, after, _common_form(found, place))
        for (place, before, after), number in sorted(numbers.items())
        if 2 * number > len(found)
    }


def _common_form(found: Sequence[Changes], place: str) -> str:
    forms = {changes[place].form for changes in found if place in changes}
    if len(forms) == 1:
        return forms.pop()
    return ""


def _find_changes(failed: JsonObject, worked: JsonObject) -> Changes:
    found = islice(_walk_differences(failed, worked, "", 0), _MAX_PLACES)
    return dict(found)


def _walk_differences(
    failed: JsonValue, worked: JsonValue, place: str, depth: int
) -> Iterator[tuple[str, PlaceChange]]:
    """Yield the places that differ; of lists the first item stands for all."""
    if depth < _MAX_DEPTH and isinstance(failed, dict) and isinstance(worked, dict):
        for name in dict.fromkeys([*failed, *worked]):
            inside = f"{place}.{name}" if place else name
            if name not in worked:
                yield inside, PlaceChange(type_of(failed[name]), "")
            elif name not in failed:
                yield inside, PlaceChange("", type_of(worked[name]), _form_of(worked[name]))
            else:
                yield from _walk_differences(failed[name], worked[name], inside, depth + 1)
    elif depth < _MAX_DEPTH and isinstance(failed, list) and isinstance(worked, list):
        if failed and worked:
            yield from _walk_differences(failed[0], worked[0], f"{place}[]", depth + 1)
    elif not same_value(failed, worked):
        yield place, PlaceChange(type_of(failed), type_of(worked), _form_of(worked))


def _form_of(value: JsonValue) -> str:
    if not isinstance(value, str):
        return ""
    for pattern, mask in _MASKS:
        value = pattern.sub(mask, value)
    if len(value) <= _MAX_FORM:
        return value
    return ""


class Cause(NamedTuple):
    """What shows the cause of a failure: category, places at fault, and what repaired it."""

    category: ErrorCategory
    places: Mapping[str, FaultKind]
    changes: Changes = NO_CHANGES

    @property
    def is_told(self) -> bool:
        """Return whether anything but the words shows it."""
        return bool(self.places or self.changes) or self.category in _ALWAYS_ONE


def is_one_cause(one: Cause, other: Cause) -> bool:
    """Return whether two failures of a tool have one cause, whatever their words are."""
    if not are_one_category(one.category, other.category) or are_repaired_otherwise(one, other):
        return False
    same_category = one.category == other.category
    if same_category and one.category in _ALWAYS_ONE:
        return not contradict_errors(one.places, other.places)
    if (
        same_category
        and one.places
        and other.places
        and not contradict_errors(one.places, other.places)
    ):
        return True
    common = _common_changes(one.changes, other.changes)
    if not common or len(common) < min(len(one.changes), len(other.changes)):
        return False
    is_structural = any(one.changes[place].is_structural for place in common)
    return is_structural or not contradict_errors(one.places, other.places)


def are_one_category(one: ErrorCategory, other: ErrorCategory) -> bool:
    """Return whether failures of two categories may have one cause."""
    return one == other or {one, other} <= _OF_PARAMETERS


def contradict_errors(one: Mapping[str, FaultKind], other: Mapping[str, FaultKind]) -> bool:
    """Return whether two errors say of other places, or otherwise, what is wrong."""
    if not one or not other:
        return False
    return one.keys() != other.keys() or any(
        kind != other[place] and "invalid" not in (kind, other[place])
        for place, kind in one.items()
    )


def are_repaired_otherwise(one: Cause, other: Cause) -> bool:
    """Return whether both were repaired, with nothing in common."""
    return bool(one.changes and other.changes) and not _common_changes(one.changes, other.changes)


def _common_changes(one: Changes, other: Changes) -> list[str]:
    common = []
    for place, change in one.items():
        its = other.get(place)
        if its is None or change.before != its.before or change.after != its.after:
            continue
        if change.form == its.form or "" in (change.form, its.form):
            common.append(place)
    return common


def correction_of(changes: Changes, places: Mapping[str, FaultKind]) -> str:
    """Return in a sentence for each change what repaired a failure; no value is in it."""
    gone = [place for place, each in changes.items() if not each.after]
    new = [place for place, each in changes.items() if not each.before]
    said = []
    if len(gone) == len(new) == 1:
        said.append(_describe_move(gone[0], new[0]))
    elif gone and new:
        said.append(f"Send {_join_places(new)} instead of {_join_places(gone)}.")
    elif gone:
        is_unknown = all(places.get(place) == "unexpected" for place in gone)
        said.append(
            f"Leave out {_join_places(gone)}."
            if is_unknown
            else f"Without {_join_places(gone)} it worked."
        )
    elif new:
        said.append(f"{_join_places(new)} must be given.")
    for place, change in changes.items():
        if change.before and change.after:
            said.append(_value_change(place, change, places.get(place)))
    return " ".join(dict.fromkeys(said))


def _describe_move(before: str, after: str) -> str:
    around, _, name = before.rpartition(".")
    if around == after.rpartition(".")[0]:
        inside = f" in `{around}`" if around else ""
        new = after.rpartition(".")[2]
        return f"The parameter{inside} is called `{new}`, not `{name}`."
    return f"Send {_join_places([after])} instead of {_join_places([before])}."


def _value_change(place: str, change: PlaceChange, fault: FaultKind | None) -> str:
    if change.is_structural:
        return f"`{place}` must be of type {change.after}."
    if fault == "out_of_range":
        return f"`{place}` must be within the stated bounds."
    if fault == "not_allowed":
        return f"`{place}` must be one of the allowed values."
    if fault == "bad_format":
        return f"`{place}` must be written in the form that the tool states."
    return f"Another value of `{place}` worked."


def _join_places(places: Sequence[str]) -> str:
    return ", ".join(f"`{place}`" for place in places)
