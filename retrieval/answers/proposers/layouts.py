"""Values without their names, and lists and maps in each other's place: other layouts of a call.

What `shape` tries next to the places of names; each step is an option for the whole call.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import EvidenceSource
from aftercall.redaction import is_redacted
from retrieval import WORDS
from retrieval.answers.proposers.case import Case, Option, prior_trials, put
from retrieval.knowledge.beta import Trials
from retrieval.knowledge.rewrites.edits import Add, Edit, Flatten, Rename, Replace
from retrieval.knowledge.values.likeness import name_similarity, words_of
from retrieval.knowledge.values.notations import MAX_KEYS, name_value_pair, object_in
from retrieval.knowledge.values.parameters import (
    ParameterView,
    ToolView,
    object_view,
    resolve_schema,
)
from retrieval.knowledge.values.scalars import CastError, cast_to_one, cast_value, fits_types
from retrieval.knowledge.values.texts import is_number

_PAIRED = prior_trials("shape.paired")  # {"a": 1} -> [{"key": "a", "value": 1}]
_BY_POSITION = prior_trials("shape.position")  # {"args": [1, 2]} -> {"a": 1, "b": 2}
_PARTED = prior_trials("shape.parted")  # {"range": "1..2"} -> {"from": 1, "to": 2}
_LIKE = 0.7
"""Likeness of names (see `name_similarity`) from which on one shows the other."""
_LATITUDE = frozenset(("lat", "latitude"))
"""In a list some have it first and some last."""
_KEYS = frozenset(("key", "name", "path", "id", "field"))
"""Words of the names of fields that say which of several things it is."""
_NUMBERED = re.compile(r"(?:arg|argument|param|parameter|p)?_?(\d{1,2})", re.IGNORECASE)
_BETWEEN = ("...", "..", " to ", " until ", " - ", "\u2013", "/", ",", ";", " ", "x", "\u00d7")
"""What stands between two ends or parts, as far as it is written."""
_IN_MARKS = frozenset("{}[]()<>\"'`")
_ENDS = (
    ("start", "end"),
    ("begin", "end"),
    ("from", "to"),
    ("since", "until"),
    ("min", "max"),
    ("minimum", "maximum"),
    ("first", "last"),
)


def names_of_tool(case: Case) -> frozenset[str]:
    """Return the tool's parameters.

    Those of the schema, or else those seen and those that are missed.
    """
    known = frozenset(case.view.parameters if case.view else ())
    if is_stated(case):
        return known
    missing = (fault.parameter for fault in case.reading.faults if fault.kind == "missing")
    return known.union(name for name in missing if name)


def is_stated(case: Case) -> bool:
    """Return whether a schema states which parameters the tool has."""
    return case.view is not None and case.view.source == "schema"


def unknown_parameters(case: Case) -> list[tuple[str, JsonValue]]:
    """Parameters that the tool does not have, or not with such a value."""
    names = names_of_tool(case)
    return [
        (name, value)
        for name, value in islice(case.parameters.items(), MAX_KEYS)
        if name not in names
        or ((known := case.view_parameter(name)) and not fits_types(value, known.types))
    ]


def as_option(case: Case, edits: Sequence[Edit], reason: str, trials: Trials) -> Option:
    """Return the edits that lay a call out otherwise, as one option."""
    source: EvidenceSource = "error" if case.view is None else case.view.source
    return Option(tuple(edits), reason, trials, (source, "parameters"))


def is_like_one(name: str, names: frozenset[str]) -> bool:
    """Return whether a name is one of these, or like one."""
    return name in names or any(name_similarity(name, each) >= _LIKE for each in names)


def is_its_own(case: Case, name: str, inner: JsonObject) -> bool:
    """Return whether this parameter, or an item of it, has all names of an object."""
    for path in ((name,), (name, 0)) if case.schema is not None and inner else ():
        view = object_view(case.schema or {}, path, inner)
        if view is not None and view.parameters and not view.unknown_parameters(inner):
            return True
    return False


def by_position(case: Case) -> Iterator[Option]:
    """Yield values in a list without their names, as many as the call lacks."""
    if case.view is None:
        return
    if case.view.source != "schema":
        return
    lacks = set(case.view.missing_parameters(case.parameters))
    # The schema has them in the order of the tool's maker; the view sorts them.
    missing = [each for each in object_in((case.schema or {}).get("properties")) if each in lacks]
    for name, value in unknown_parameters(case):
        if name in case.view.parameters:
            continue
        if not isinstance(value, list):
            continue
        fit = (
            len(value) == len(missing) > 1
            and not _LATITUDE.intersection(missing)
            and all(
                fits_types(each, case.view.parameters[place].types)
                for each, place in zip(value, missing, strict=True)
            )
        )
        if fit:
            edit = Flatten(name=name, fields=tuple(missing))
            yield as_option(case, [edit], f"the values of `{name}` have no names", _BY_POSITION)
    yield from _by_number(case, lacks)


def _by_number(case: Case, lacks: set[str]) -> Iterator[Option]:
    """Yield values under numbers (`arg0`, `arg1`) by the order of the schema's names."""
    strange = [name for name, _ in unknown_parameters(case) if name not in names_of_tool(case)]
    numbers = [int(found[1]) for name in strange if (found := _NUMBERED.fullmatch(name))]
    absent = [
        each
        for each in object_in((case.schema or {}).get("properties"))
        if each not in case.parameters
    ]
    places = absent[: len(numbers)]
    if len(numbers) != len(strange):
        return
    if not numbers:
        return
    if not lacks <= {*places}:
        return
    if numbers in (list(range(len(numbers))), list(range(1, len(numbers) + 1))):
        edits = [Rename(name=name, to=to) for name, to in zip(strange, places, strict=False)]
        yield as_option(case, edits, "the values have numbers for names", _BY_POSITION)


def part_options(case: Case) -> Iterator[Option]:
    """Two values that stand in one: both ends of a range, or the only two that are missing."""
    if case.view is None:
        return
    if case.view.source != "schema":
        return
    names = names_of_tool(case)
    strange = [
        (name, value)
        for name, value in unknown_parameters(case)
        if name not in names
        and not (isinstance(value, dict) and any(is_like_one(each, names) for each in value))
    ]
    missing = case.view.missing_parameters(case.parameters)
    absent = [name for name in case.view.parameters if name not in case.parameters]
    for name, value in strange:
        pairs = _ends_of(name, absent)
        if not pairs and len(strange) == 1 and _are_parts(case.view, name, missing):
            has = object_in((case.schema or {}).get("properties"))
            pairs = [tuple(sorted(missing, key=list(has).index))]
        for pair in pairs if len(pairs) == 1 else ():
            views = [case.view.parameters[each] for each in pair]
            if ("array" in views[0].types) != ("array" in views[1].types):
                continue
            if isinstance(value, list) and _LATITUDE.intersection(pair):
                continue
            marks = ("-",) if re.fullmatch(r"\d+-\d+", str(value)) else _BETWEEN
            parts = next(filter(None, (_as_two(value, mark) for mark in marks)), ())
            try:
                held = {
                    view.name: part
                    if fits_types(part, view.types)
                    else cast_value(part, view.types[0])
                    for view, part in zip(views, parts, strict=False)
                }
            except CastError:
                continue
            if held:
                edits: list[Edit] = [
                    Replace(name=name, before=value, value=held),
                    Flatten(name=name),
                ]
                yield as_option(case, edits, f"`{name}` holds `{pair[0]}` and `{pair[1]}`", _PARTED)


def _are_parts(view: ToolView, name: str, missing: Sequence[str]) -> bool:
    """Return whether the only two missing may stand in one: `owner` and `repo` in `repository`."""
    if len(missing) != 2:
        return False
    if all(view.parameters[each].types in (("integer",), ("number",)) for each in missing):
        return True
    one, other = (set(words_of(each)) for each in missing)
    shown = is_like_one(name, frozenset(missing)) or not one.isdisjoint(other)
    return shown and WORDS["free_text"].isdisjoint(one | other)


def _ends_of(name: str, absent: Sequence[str]) -> list[tuple[str, ...]]:
    about = {each for word in words_of(name) for each in (word, word.rstrip("s"))}
    return [
        (one, other)
        for low, high in _ENDS
        for one in absent
        for other in absent
        if low in words_of(one)
        and [high if word == low else word for word in words_of(one)] == list(words_of(other))
        and not about.isdisjoint({*words_of(one), "range", "between", "period", "interval"})
    ]


def _as_two(value: JsonValue, mark: str) -> tuple[JsonValue, ...]:
    """Return the two values that a text, a list or an object of two holds.

    None where it holds others.
    """
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, str) and (
        not _IN_MARKS.isdisjoint(value) or (mark == " " and not any(map(str.isdigit, value)))
    ):
        return ()  # two words are mostly one value
    parts = value.split(mark) if isinstance(value, str) else value
    if not isinstance(parts, list):
        return ()
    if len(parts) != 2:
        return ()
    found = tuple(part.strip() if isinstance(part, str) else part for part in parts)
    if any(isinstance(each, dict | list) or each in ("", None) for each in found):
        return ()
    return found


def split_off(case: Case) -> Iterator[Option]:
    """Yield a missing text that stands before another one: `owner` in `"repo": "acme/api"`."""
    missing = case.view.missing_parameters(case.parameters) if case.view and is_stated(case) else []
    of = [
        (name, value)
        for name, value in case.parameters.items()
        if not WORDS["held"].isdisjoint(words_of(name))
        and isinstance(value, str)
        and not is_redacted(value)
    ]
    if len(missing) != 1 or len(of) != 1:
        return
    [holder] = missing
    [(name, value)] = of
    if WORDS["holders"].isdisjoint(words_of(holder)):
        return
    found = _ONE_IN_ANOTHER.fullmatch(str(value))
    if found:
        edits: list[Edit] = [
            put(case, holder, found[1]),
            Replace(name=name, before=value, value=found[2]),
        ]
        yield as_option(case, edits, f"`{name}` holds `{holder}` before it", _PARTED)


_ONE_IN_ANOTHER = re.compile(r"(?:https?://[\w.-]+/)?([\w.-]{1,80})/([\w.-]{1,80}?)(?:\.git)?/?")


def pair_options(case: Case) -> Iterator[Option]:
    """Yield a map instead of a list of pairs, or the reverse."""
    for name, value in case.parameters.items():
        known = case.view_parameter(name)
        made: JsonValue = None
        if known is None or is_redacted(value):
            continue  # a mask is no value
        if isinstance(value, list) and len(value) <= MAX_KEYS:
            if "array" in known.types and known.item_types[:1] == ("object",):
                items = [_as_object(case, name, each) for each in value]
                made = items if all(items) else None
            elif "array" in known.types and known.item_types[:1] == ("array",):
                made = [value] if value and not any(isinstance(e, list) for e in value) else None
            elif "object" in known.types and "array" not in known.types:
                made = _map_of(value) or _flags_of(case, name, value)
        elif "array" in known.types and isinstance(value, dict):
            made = _pairs_of(case, name, value)
        elif known.types == ("object",) and isinstance(value, str):
            made = _of_numbers(case, name, value) or _of_money(case, name, value)
        elif isinstance(value, str) and known.item_types[:1] == ("object",):
            made = [_as_item(case, name, each.strip()) for each in value.split(",")]
            made = made if all(made) and value.lstrip()[:1] not in ("[", "{") else None
        if made is not None and made != value:
            edit = Replace(name=name, before=value, value=made)
            what = "an object" if isinstance(made, dict) else "a list of objects"
            yield as_option(case, [edit], f"`{name}` is {what}", _PAIRED)


def _as_object(case: Case, name: str, item: JsonValue) -> JsonValue:
    """Return an item of a list of objects as an object; None where none is meant."""
    inner = object_in(item)
    if is_its_own(case, name, inner):
        return inner
    return _as_item(case, name, item) or inner or _map_of(item)


_IS_ORDER = re.compile(r"\w+ (?:asc|desc)\w*", re.IGNORECASE)


def _as_item(case: Case, name: str, item: JsonValue) -> JsonObject | None:
    """Return an object for a text, of its only needed field or of two (`team=payments`)."""
    view = object_view(case.schema, (name, 0), {}) if case.schema is not None else None
    needed = [each for each in view.parameters.values() if each.required] if view else []
    if not isinstance(item, str) or not all(fits_types("", each.types) for each in needed):
        return None
    if {each.name for each in needed} == {"role", "content"}:
        return {"role": "user", "content": item}
    fields = list(view.parameters.values()) if view else []
    single = needed or fields
    is_order = needed and _IS_ORDER.fullmatch(item)
    if len(single) == 1 and not is_order:
        return {single[0].name: item}
    listing = [each.name for each in fields if each.stated_values]
    mark = next((each for each in "=:" if each in item), " ")
    key, mark, held = item.partition(mark)
    if mark == " ":  # `Due desc`, where `desc` is listed
        key_of = [each.name for each in fields if not each.stated_values]
        fit = len(listing) == len(key_of) == 1 and any(held in e.stated_values for e in fields)
        if fit:
            return {key_of[0]: key, listing[0]: held}
        return None
    if len(needed) != 2 or not (mark and key.strip() and held.strip()):
        return None
    first = [each.name for each in needed if not _KEYS.isdisjoint(words_of(each.name))]
    rest = [each.name for each in needed if each.name not in first]
    if len(first) == 1:
        return {first[0]: key.strip(), rest[0]: held.strip()}
    return None


def _of_numbers(case: Case, name: str, text: str) -> JsonObject | None:
    """Return an object of two numbers for a text of two, in the schema's order: `47.37,8.54`."""
    schema = case.schema or {}
    properties = object_in(schema.get("properties"))
    part = resolve_schema(properties.get(name), schema)
    needed = list(object_in(part.get("properties")))  # the view sorts them
    view = object_view(case.schema, (name,), {}) if case.schema is not None else None
    numbers = re.findall(r"-?\d{1,15}(?:\.\d{1,15})?", text)
    if not view:
        return None
    if len(needed) != 2:
        return None
    if len(numbers) != 2:
        return None
    if not _PLAIN.fullmatch(text):
        return None
    held = {
        each: cast_to_one(one, view.parameters[each].types)
        for each, one in zip(needed, numbers, strict=True)
        if each in view.parameters
    }
    made: JsonObject = {each: one[1] for each, one in held.items() if one is not None}
    are_numbers = all(is_number(each) for each in made.values())
    if len(made) == len(needed) and are_numbers:
        return made
    return None


_PLAIN = re.compile(r"[-\d.\s,;x]{3,80}")


def _of_money(case: Case, name: str, text: str) -> JsonObject | None:
    """Return an object of an amount and its currency or unit for `12.90 EUR`, `5 mM`."""
    view = object_view(case.schema, (name,), {}) if case.schema is not None else None
    found = _MONEY.fullmatch(text.strip())
    if view is None:
        return None
    if found is None:
        return None
    amount = found["amount"] or found["after"]
    unit = found["code"] or found["before"]
    fields = view.parameters.values()
    of_unit = [each for each in fields if unit in each.allowed or "currency" in words_of(each.name)]
    of_amount = [each for each in fields if not {"amount", "value"}.isdisjoint(words_of(each.name))]
    if len(of_unit) != 1:
        return None
    if len(of_amount) != 1:
        return None
    if of_unit == of_amount:
        return None
    held = cast_to_one(amount, of_amount[0].types)
    if held is None:
        return None
    return {of_amount[0].name: held[1], of_unit[0].name: unit}


_MONEY = re.compile(
    r"(?P<amount>\d{1,15}(?:\.\d{1,6})?)\s?(?P<code>[A-Z]{3}|[^\s\d.,][^\s\d,]{0,9})"
    r"|(?P<before>[A-Z]{3})\s?(?P<after>\d{1,15}(?:\.\d{1,6})?)"
)


def _flags_of(case: Case, name: str, value: list[JsonValue]) -> JsonObject | None:
    """Return an object of flags for a list of the names of those that are on."""
    view = object_view(case.schema, (name,), {}) if case.schema is not None else None
    fields = view.parameters if view else {}
    on = [each for each in value if isinstance(each, str) and each in fields]
    is_flags = all(fields[each].types == ("boolean",) for each in on)
    if on and len(on) == len(value) and is_flags:
        return dict.fromkeys(on, True)
    return None


def list_options(case: Case) -> Iterator[Option]:
    """Yield a list for a list whose only item is the text of several values."""
    for name, value in case.parameters.items():
        known = case.view_parameter(name)
        one = value[0] if isinstance(value, list) and len(value) == 1 else None
        if known is None:
            continue
        if "array" not in known.types:
            continue
        if not isinstance(one, str):
            continue
        _, items = cast_to_one(one, ["array"], known.item_types) or (None, None)
        if isinstance(items, list) and len(items) > 1:
            edit = put(case, name, items)
            yield as_option(case, [edit], f"`{name}` holds a list in one item", _PAIRED)


def _map_of(pairs: JsonValue) -> JsonObject | None:
    if not isinstance(pairs, list):
        return None
    if not pairs:
        return None
    split: list[JsonValue] = [
        list(each.partition("=")[::2]) if isinstance(each, str) and "=" in each else each
        for each in pairs[:MAX_KEYS]
    ]
    found = dict(
        pair
        for each in split
        if (pair := name_value_pair(list(each.values()) if isinstance(each, dict) else each))
    )
    if len(found) == len(pairs):
        return found
    return None


def _pairs_of(case: Case, name: str, value: JsonObject) -> list[JsonValue] | None:
    """Objects of two fields for the entries of a map, where it is clear which is which."""
    inner = object_view(case.schema, (name, 0), {}) if case.schema is not None else None
    fields = [view for view in inner.parameters.values() if view.required] if inner else []
    if not inner:
        return None
    if not 0 < len(value) <= MAX_KEYS:
        return None
    if is_its_own(case, name, value):
        return None
    entries = list(value.values())
    if all(isinstance(each, dict) for each in entries):
        lacks = {each.name for each in fields if each.name not in object_in(entries[0])}
        keys = [each for each in lacks if not _KEYS.isdisjoint(words_of(each))]
        if len(lacks) == len(keys) == 1 and not any(
            inner.unknown_parameters(object_in(e)) for e in entries
        ):
            return [{keys[0]: one, **object_in(other)} for one, other in value.items()]
    if len(fields) == 1 and len(inner.parameters) == 2:
        fields = list(inner.parameters.values())  # {"Due": "desc"}, where `desc` is listed
        if not any(set(map(str, entries)) <= set(each.stated_values) for each in fields):
            return None
    if len(fields) != 2:
        return None
    one, other = fields
    ways = [way for way in ((one, other), (other, one)) if _may_hold(*way, entries)]
    if len(ways) > 1:
        ways = [way for way in ways if not _KEYS.isdisjoint(words_of(way[0].name))]
    if len(ways) != 1:
        return None
    [(key, held)] = ways
    if held.types == ("array",) and not isinstance(entries[0], list):
        entries = [[each] for each in entries]
    return [{key.name: one, held.name: other} for one, other in zip(value, entries, strict=True)]


def _may_hold(key: ParameterView, held: ParameterView, entries: Sequence[JsonValue]) -> bool:
    """Return whether one field may hold the keys of a map, and another one its values."""
    if key.allowed or not fits_types("", key.types):
        return False
    if all(fits_types(each, held.types) for each in entries):
        return True
    return held.types == ("array",) and all(fits_types(each, held.item_types) for each in entries)


LEAKED = re.compile(r"</(?:\w{1,20}:)?parameter>\s*<(?:\w{1,20}:)?parameter name=\"(\w{1,64})\">")
_LEAKED = prior_trials("shape.leaked")


def leak_options(case: Case) -> Iterator[Option]:
    """Yield the parameters that stand in another's text, with the marks of models."""
    for name, value in case.parameters.items():
        own, *rest = LEAKED.split(value) if isinstance(value, str) else [""]
        found = dict(zip(rest[::2], rest[1::2], strict=True))
        if found and names_of_tool(case) - case.parameters.keys() >= found.keys():
            edits: list[Edit] = [Replace(name=name, before=value, value=own)]
            edits += [Add(name=key, value=_as_told(case, key, text)) for key, text in found.items()]
            yield as_option(case, edits, f"in `{name}` stand other parameters", _LEAKED)


def _as_told(case: Case, name: str, text: str) -> JsonValue:
    view = case.view_parameter(name)
    found = cast_to_one(text, view.types, view.item_types) if view else None
    if found is None:
        return text
    if view and fits_types(text, view.types):
        return text
    return found[1]
