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
from retrieval.knowledge.values.parameters import ParameterView, ToolView, resolve_schema
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
    """Return the parameters that the tool does not have, or not with such a value."""
    names = names_of_tool(case)
    found = []
    for name, value in islice(case.parameters.items(), MAX_KEYS):
        known = case.view_parameter(name)
        if name not in names or (known and not fits_types(value, known.types)):
            found.append((name, value))
    return found


def as_option(case: Case, edits: Sequence[Edit], reason: str, trials: Trials) -> Option:
    """Return the edits that lay a call out otherwise, as one option."""
    source: EvidenceSource = "error" if case.view is None else case.view.source
    return Option(tuple(edits), reason, trials, (source, "parameters"))


def is_like_one(name: str, names: frozenset[str]) -> bool:
    """Return whether a name is one of these, or like one."""
    return name in names or any(name_similarity(name, each) >= _LIKE for each in names)


def is_its_own(case: Case, name: str, inner: JsonObject) -> bool:
    """Return whether this parameter, or an item of it, has all names of an object."""
    if not inner:
        return False
    views = (case.view_object((name,), inner), case.view_object((name, 0), inner))
    return any(view and view.parameters and not view.unknown_parameters(inner) for view in views)


def by_position(case: Case) -> Iterator[Option]:
    """Yield values in a list without their names, as many as the call lacks."""
    if case.view is None or case.view.source != "schema":
        return
    known = case.view.parameters
    lacks = set(case.view.missing_parameters(case.parameters))
    missing = [each for each in _names_in_order(case) if each in lacks]
    for name, value in unknown_parameters(case):
        if name in known:
            continue
        if not isinstance(value, list):
            continue
        if not len(value) == len(missing) > 1:
            continue
        if not _LATITUDE.isdisjoint(missing):
            continue
        pairs = zip(value, missing, strict=True)
        if all(fits_types(each, known[place].types) for each, place in pairs):
            edit = Flatten(name=name, fields=tuple(missing))
            yield as_option(case, [edit], f"the values of `{name}` have no names", _BY_POSITION)
    yield from _by_number(case, lacks)


def _names_in_order(case: Case) -> JsonObject:
    """Return the schema's properties in the order of the tool's maker; the view sorts them."""
    return object_in((case.schema or {}).get("properties"))


def _by_number(case: Case, lacks: set[str]) -> Iterator[Option]:
    """Yield values under numbers (`arg0`, `arg1`) by the order of the schema's names."""
    strange = [name for name, _ in unknown_parameters(case) if name not in names_of_tool(case)]
    numbers = [int(found[1]) for name in strange if (found := _NUMBERED.fullmatch(name))]
    count = len(numbers)
    absent = [each for each in _names_in_order(case) if each not in case.parameters]
    places = absent[:count]
    if not numbers:
        return
    if count != len(strange):
        return
    if not lacks.issubset(places):
        return
    from_zero = list(range(count))
    from_one = list(range(1, count + 1))
    if numbers in (from_zero, from_one):
        pairs = zip(strange, places, strict=False)
        edits = [Rename(name=name, to=to) for name, to in pairs]
        yield as_option(case, edits, "the values have numbers for names", _BY_POSITION)


def part_options(case: Case) -> Iterator[Option]:
    """Yield the two values that stand in one: a range's ends, or the only two that are missing."""
    if case.view is None:
        return
    if case.view.source != "schema":
        return
    names = names_of_tool(case)
    strange = []
    for name, value in unknown_parameters(case):
        is_object = isinstance(value, dict) and any(is_like_one(each, names) for each in value)
        if name not in names and not is_object:
            strange.append((name, value))
    missing = case.view.missing_parameters(case.parameters)
    absent = [name for name in case.view.parameters if name not in case.parameters]
    for name, value in strange:
        pairs = _ends_of(name, absent)
        if not pairs and len(strange) == 1 and _are_parts(case.view, name, missing):
            order = list(_names_in_order(case))
            one, other = sorted(missing, key=order.index)
            pairs = [(one, other)]
        if len(pairs) != 1:
            continue
        [(one, other)] = pairs
        held = _part_value(value, case.view.parameters[one], case.view.parameters[other])
        if held:
            edits: list[Edit] = [Replace(name=name, before=value, value=held), Flatten(name=name)]
            yield as_option(case, edits, f"`{name}` holds `{one}` and `{other}`", _PARTED)


_NUMBERS = re.compile(r"\d+-\d+")


def _part_value(value: JsonValue, *views: ParameterView) -> JsonObject:
    """Return the two values in one by the names of two parameters; {} where they do not fit."""
    one, other = views
    if ("array" in one.types) != ("array" in other.types):
        return {}
    if isinstance(value, list) and not _LATITUDE.isdisjoint((one.name, other.name)):
        return {}
    marks = ("-",) if _NUMBERS.fullmatch(str(value)) else _BETWEEN
    parts = next(filter(None, (_as_two(value, mark) for mark in marks)), ())
    held: JsonObject = {}
    for view, part in zip(views, parts, strict=False):
        try:
            fits = fits_types(part, view.types)
            held[view.name] = part if fits else cast_value(part, view.types[0])
        except CastError:
            return {}
    return held


def _are_parts(view: ToolView, name: str, missing: Sequence[str]) -> bool:
    """Return whether the only two missing may stand in one: `owner` and `repo` in `repository`."""
    if len(missing) != 2:
        return False
    if all(view.parameters[each].types in _NUMERIC for each in missing):
        return True
    one, other = map(words_of, missing)
    if not WORDS["free_text"].isdisjoint([*one, *other]):
        return False
    return is_like_one(name, frozenset(missing)) or not set(one).isdisjoint(other)


_NUMERIC = (("integer",), ("number",))


_RANGES = frozenset(("range", "between", "period", "interval"))


def _ends_of(name: str, absent: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of parameters that a name of a range may stand for."""
    about = set(words_of(name))
    about |= {word.rstrip("s") for word in about}
    is_range = not about.isdisjoint(_RANGES)
    ends = []
    for low, high in _ENDS:
        for one in absent:
            words = words_of(one)
            if low not in words or not (is_range or not about.isdisjoint(words)):
                continue
            of_high = [high if word == low else word for word in words]
            ends += [(one, other) for other in absent if list(words_of(other)) == of_high]
    return ends


def _as_two(value: JsonValue, mark: str) -> tuple[JsonValue, ...]:
    """Return the two values that a text, a list or an object of two holds.

    None where it holds others.
    """
    parts = value
    if isinstance(value, dict):
        parts = list(value.values())
    elif isinstance(value, str):
        is_words = mark == " " and not any(map(str.isdigit, value))
        if is_words or not _IN_MARKS.isdisjoint(value):
            return ()  # two words are mostly one value
        parts = [*value.split(mark)]
    if not isinstance(parts, list) or len(parts) != 2:
        return ()
    found = tuple(part.strip() if isinstance(part, str) else part for part in parts)
    if any(isinstance(each, dict | list) or each in ("", None) for each in found):
        return ()
    return found


def split_off(case: Case) -> Iterator[Option]:
    """Yield a missing text that stands before another one: `owner` in `"repo": "acme/api"`."""
    missing = case.view.missing_parameters(case.parameters) if case.view and is_stated(case) else []
    held = []
    for name, value in case.parameters.items():
        is_text = isinstance(value, str) and not is_redacted(value)
        if is_text and not WORDS["held"].isdisjoint(words_of(name)):
            held.append((name, value))
    if len(missing) != 1:
        return
    if len(held) != 1:
        return
    [holder] = missing
    [(name, value)] = held
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
        if known is None or is_redacted(value):
            continue  # a mask is no value
        made = _lay_out(case, known, value)
        if made is not None and made != value:
            edit = Replace(name=name, before=value, value=made)
            what = "an object" if isinstance(made, dict) else "a list of objects"
            yield as_option(case, [edit], f"`{name}` is {what}", _PAIRED)


def _lay_out(case: Case, known: ParameterView, value: JsonValue) -> JsonValue:
    """Return a value as the list or map that its parameter takes; None where none is meant."""
    name = known.name
    is_list = "array" in known.types
    item_type = known.item_types[:1]
    if isinstance(value, list):
        if len(value) > MAX_KEYS:
            return None
        if not is_list:
            is_object = "object" in known.types
            return _map_of(value) or _flags_of(case, name, value) if is_object else None
        if item_type == ("object",):
            items = [_as_object(case, name, each) for each in value]
            return items if all(items) else None
        if item_type == ("array",):
            has_list = any(isinstance(each, list) for each in value)
            return [value] if value and not has_list else None
    elif isinstance(value, dict) and is_list:
        return _pairs_of(case, name, value)
    elif isinstance(value, str) and known.types == ("object",):
        return _of_numbers(case, name, value) or _of_money(case, name, value)
    elif isinstance(value, str) and item_type == ("object",) and not _IS_JSON.match(value):
        texts = map(str.strip, value.split(","))
        parts = [_as_item(case, name, each) for each in texts]
        return [*parts] if all(parts) else None
    return None


_IS_JSON = re.compile(r"\s*[\[{]")


def _as_object(case: Case, name: str, item: JsonValue) -> JsonValue:
    """Return an item of a list of objects as an object; None where none is meant."""
    inner = object_in(item)
    if is_its_own(case, name, inner):
        return inner
    return _as_item(case, name, item) or inner or _map_of(item)


_IS_ORDER = re.compile(r"\w+ (?:asc|desc)\w*", re.IGNORECASE)


def _as_item(case: Case, name: str, item: JsonValue) -> JsonObject | None:
    """Return an object for a text, of its only needed field or of two (`team=payments`)."""
    view = case.view_object((name, 0))
    fields = list(view.parameters.values()) if view else []
    needed = [each for each in fields if each.required]
    if not isinstance(item, str) or not all(fits_types("", each.types) for each in needed):
        return None
    if {each.name for each in needed} == {"role", "content"}:
        return {"role": "user", "content": item}
    single = needed or fields
    is_order = needed and _IS_ORDER.fullmatch(item)
    if len(single) == 1 and not is_order:
        return {single[0].name: item}
    mark = "=" if "=" in item else ":"
    key, mark, held = item.partition(mark)
    if mark:
        return _as_pair(needed, key.strip(), held.strip())
    return _as_order(fields, *item.partition(" "))


def _as_pair(needed: Sequence[ParameterView], key: str, held: str) -> JsonObject | None:
    if len(needed) != 2 or not key or not held:
        return None
    first = [each.name for each in needed if _is_key(each)]
    rest = [each.name for each in needed if not _is_key(each)]
    if len(first) == 1:
        return {first[0]: key, rest[0]: held}
    return None


def _as_order(fields: Sequence[ParameterView], key: str, mark: str, held: str) -> JsonObject | None:
    """Return the two fields of `Due desc`, where `desc` is listed."""
    listing = [each for each in fields if each.stated_values]
    free = [each for each in fields if not each.stated_values]
    if not mark or len(listing) != 1 or len(free) != 1:
        return None
    [name] = free
    [order] = listing
    return {name.name: key, order.name: held} if held in order.stated_values else None


def _is_key(field: ParameterView) -> bool:
    """Return whether a field names one of several things."""
    return not _KEYS.isdisjoint(words_of(field.name))


def _of_numbers(case: Case, name: str, text: str) -> JsonObject | None:
    """Return an object of two numbers for a text of two, in the schema's order: `47.37,8.54`."""
    schema = case.schema or {}
    properties = object_in(schema.get("properties"))
    part = resolve_schema(properties.get(name), schema)
    needed = list(object_in(part.get("properties")))  # the view sorts them
    view = case.view_object((name,))
    numbers = re.findall(r"-?\d{1,15}(?:\.\d{1,15})?", text)
    if not view or not len(needed) == len(numbers) == 2 or not _PLAIN.fullmatch(text):
        return None
    made: JsonObject = {}
    for field, number in zip(needed, numbers, strict=True):
        known = view.parameters.get(field)
        held = cast_to_one(number, known.types) if known else None
        if held is None or not is_number(held[1]):
            return None
        made[field] = held[1]
    return made


_PLAIN = re.compile(r"[-\d.\s,;x]{3,80}")


def _of_money(case: Case, name: str, text: str) -> JsonObject | None:
    """Return an object of an amount and its currency or unit for `12.90 EUR`, `5 mM`."""
    view = case.view_object((name,))
    found = _MONEY.fullmatch(text.strip())
    if view is None or found is None:
        return None
    amount = found["amount"] or found["after"]
    unit = found["code"] or found["before"]
    of_unit = []
    of_amount = []
    for field in view.parameters.values():
        words = words_of(field.name)
        if unit in field.allowed or "currency" in words:
            of_unit.append(field.name)
        if not _AMOUNTS.isdisjoint(words):
            of_amount.append(field.name)
    if len(of_unit) != 1:
        return None
    if len(of_amount) != 1:
        return None
    if of_unit == of_amount:
        return None
    name = of_amount[0]
    held = cast_to_one(amount, view.parameters[name].types)
    if held is None:
        return None
    return {name: held[1], of_unit[0]: unit}


_AMOUNTS = frozenset(("amount", "value"))


_MONEY = re.compile(
    r"(?P<amount>\d{1,15}(?:\.\d{1,6})?)\s?(?P<code>[A-Z]{3}|[^\s\d.,][^\s\d,]{0,9})"
    r"|(?P<before>[A-Z]{3})\s?(?P<after>\d{1,15}(?:\.\d{1,6})?)"
)


def _flags_of(case: Case, name: str, value: list[JsonValue]) -> JsonObject | None:
    """Return an object of flags for a list of the names of those that are on."""
    view = case.view_object((name,))
    fields = view.parameters if view else {}
    made: JsonObject = {}
    for each in value:
        if not isinstance(each, str) or each not in fields:
            return None
        if fields[each].types != ("boolean",):
            return None
        made[each] = True
    return made or None


def list_options(case: Case) -> Iterator[Option]:
    """Yield a list for a list whose only item is the text of several values."""
    for name, value in case.parameters.items():
        known = case.view_parameter(name)
        one = value[0] if isinstance(value, list) and len(value) == 1 else None
        if known is None:
            continue
        if not isinstance(one, str):
            continue
        if "array" not in known.types:
            continue
        cast = cast_to_one(one, ["array"], known.item_types)
        if cast is None:
            continue
        items = cast[1]
        if isinstance(items, list) and len(items) > 1:
            edit = put(case, name, items)
            yield as_option(case, [edit], f"`{name}` holds a list in one item", _PAIRED)


def _map_of(pairs: JsonValue) -> JsonObject | None:
    if not isinstance(pairs, list) or not pairs:
        return None
    found: JsonObject = {}
    for each in pairs[:MAX_KEYS]:
        parts = each
        if isinstance(each, dict):
            parts = list(each.values())
        elif isinstance(each, str) and "=" in each:
            parts = list(each.partition("=")[::2])
        pair = name_value_pair(parts)
        if pair:
            name, value = pair
            found[name] = value
    if len(found) == len(pairs):
        return found
    return None


def _pairs_of(case: Case, name: str, value: JsonObject) -> list[JsonValue] | None:
    """Return objects of two fields for the entries of a map, if it is clear which is which."""
    inner = case.view_object((name, 0))
    if not inner:
        return None
    if not 0 < len(value) <= MAX_KEYS:
        return None
    if is_its_own(case, name, value):
        return None
    fields = [view for view in inner.parameters.values() if view.required]
    entries = list(value.values())
    key_name = _key_of_entries(inner, fields, entries)
    if key_name is not None:
        return [{key_name: one, **object_in(other)} for one, other in value.items()]
    if len(fields) == 1 and len(inner.parameters) == 2:
        fields = list(inner.parameters.values())  # {"Due": "desc"}, where `desc` is listed
        texts = set(map(str, entries))
        if not any(texts.issubset(each.stated_values) for each in fields):
            return None
    if len(fields) != 2:
        return None
    one, other = fields
    ways = [way for way in ((one, other), (other, one)) if _may_hold(*way, entries)]
    if len(ways) > 1:
        ways = [way for way in ways if _is_key(way[0])]
    if len(ways) != 1:
        return None
    [(key, held)] = ways
    if held.types == ("array",) and not isinstance(entries[0], list):
        entries = [[each] for each in entries]
    pairs = zip(value, entries, strict=True)
    return [{key.name: one, held.name: other} for one, other in pairs]


def _key_of_entries(
    inner: ToolView, fields: Sequence[ParameterView], entries: Sequence[JsonValue]
) -> str | None:
    """Return the only field that a map's entries, all objects, lack: that of the map's keys."""
    for each in entries:
        if not isinstance(each, dict) or inner.unknown_parameters(each):
            return None
    lacks = [field for field in fields if field.name not in object_in(entries[0])]
    if len(lacks) == 1 and _is_key(lacks[0]):
        return lacks[0].name
    return None


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
        if not isinstance(value, str):
            continue
        own, *rest = LEAKED.split(value)
        names = rest[::2]
        if names and names_of_tool(case) - case.parameters.keys() >= set(names):
            edits: list[Edit] = [Replace(name=name, before=value, value=own)]
            texts = dict(zip(names, rest[1::2], strict=True))
            for key, text in texts.items():
                held = _read_leaked(case, key, text)
                edits.append(Add(name=key, value=held))
            yield as_option(case, edits, f"in `{name}` stand other parameters", _LEAKED)


def _read_leaked(case: Case, name: str, text: str) -> JsonValue:
    view = case.view_parameter(name)
    if view is None or fits_types(text, view.types):
        return text
    found = cast_to_one(text, view.types, view.item_types)
    return text if found is None else found[1]
