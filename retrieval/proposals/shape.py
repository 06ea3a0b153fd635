"""The shape of a call, read before its names: fields too deep, too high, or without names.

A whole call under one key, or as JSON text there; a value inside of an object; fields that belong
into an object or a list of one; values in a list without names. In another shape the call is a case
of its own, whose names and values are mended as those of any call. A shape counts only if less is
wrong with it than before, as far as schema, profile or error say.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice

from aftercall.change_classes import qualifiers_of
from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import EvidenceSource
from retrieval import WORDS
from retrieval.edit_effects import apply_edits
from retrieval.edits import (
    Add,
    Cast,
    Edit,
    EditDoesNotApplyError,
    Flatten,
    Nest,
    Remove,
    Rename,
    Replace,
    Unwrap,
)
from retrieval.likeness import name_similarity, words_of
from retrieval.notations import MAX_KEYS, MAX_TEXT, cells_in, object_in, pair_of, plain_value
from retrieval.parameters import ToolView, object_view
from retrieval.proposals.case import Case, Option, Trials, prior
from retrieval.proposals.faults import inner_faults, objects_in, shown_by
from retrieval.reading.faults import Fault
from retrieval.values import CastError, cast, fits, says_nothing

_UNPACKED = prior("shape.unpacked", 30, 1)  # {"params": {"a": 1}} -> {"a": 1}
_BARED = prior("shape.bared", 24, 1)  # {"body[a]": 1} -> {"a": 1}
_VALUE = prior("shape.value", 24, 1)  # {"a": {"value": 1}} -> {"a": 1}
_UNKNOWN_KEY = prior("shape.value.unknown", 4, 3)  # {"a": {"foo": 1}} -> {"a": 1}
_NESTED = prior("shape.nested", 20, 1)  # {"old": 1} -> {"edits": [{"old": 1}]}
_PAIRED = prior("shape.paired", 8, 1.5)  # {"a": 1} -> [{"key": "a", "value": 1}]
_BY_POSITION = prior("shape.position", 10, 2)  # {"args": [1, 2]} -> {"a": 1, "b": 2}
_PARTED = prior("shape.parted", 8, 2.5)  # {"range": "1..2"} -> {"from": 1, "to": 2}
_ENVELOPE = frozenset(WORDS["of_envelopes"])
_SAYS_A_VALUE = frozenset(WORDS["of_values"])
_COMPARES = frozenset(WORDS["compares"])
_PLACE = re.compile(r"\]?[\[./:]|__")
"""What stands between the steps of a path."""
_MAX_PLACE = 200
"""Characters of a name that is read as a path."""
_Inner = tuple[tuple[str, ...], JsonObject, list[tuple[str, JsonValue]]]
_LIKE = 0.7
"""Likeness of names (see `name_similarity`) from which on one shows the other."""
_SOMEWHAT, _CLEARLY = 0.45, 0.2
"""Likeness of the likest name, and what it is ahead of the next one."""
_MENDED = 1.5
"""What a like name takes off the two faults that it mends."""
_KEYS = frozenset(("key", "name", "path", "id", "field"))
"""Words of the names of fields that say which of several things it is."""
_ASSIGNED = re.compile(r"(\w+)[\"'\\]*\s*[=:>]")
_IDENTIFIER = re.compile(r"[A-Za-z_][\w-]*")
_NUMBERED = re.compile(r"(?:arg|argument|param|parameter|p)?_?(\d{1,2})", re.IGNORECASE)
_BETWEEN = ("...", "..", " to ", " until ", " - ", "\u2013", "/", ",", ";", " ")
"""What stands between two ends or parts, as far as it is written."""
_IN_MARKS = frozenset("{}[]()<>\"'`")
_ENDS = (("start", "end"), ("begin", "end"), ("from", "to"), ("since", "until"), ("min", "max"),
         ("minimum", "maximum"), ("first", "last"))  # fmt: skip
_TWO = 2
_MAX_STEPS = 3
_MAX_TRIED = 20
_NOT_ABOUT_SHAPE = frozenset(
    ("timeout", "rate_limited", "unavailable", "permission_denied", "user_rejected",
     "contract_violation", "wrong_tool_boundary", "low_utility")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reshaped:
    """The call in another shape, with what the schema shows to be wrong with it there."""

    option: Option
    case: Case


def reshaped(case: Case) -> Reshaped | None:
    """The call in the shape that the tool states; None where its own is as good as any known."""
    if not case.parameters_known or case.reading.category in _NOT_ABOUT_SHAPE:
        return None
    if len(case.parameters) > MAX_KEYS:
        return None
    now, steps = case, list[Option]()
    for _ in range(_MAX_STEPS):
        better = min(_better(now), key=lambda each: _wrong(each.case), default=None)
        if better is None:
            break
        now, steps = better.case, [*steps, better.option]
    if not steps:
        return None
    weakest = min(steps, key=lambda step: step.trials.mean)
    edits = tuple(edit for step in steps for edit in step.edits)
    return Reshaped(replace(weakest, edits=edits, reason=steps[0].reason), now)


def holds_parameters(case: Case, value: JsonValue) -> bool:
    """Whether a value holds names of the tool's own parameters, and so is no single value.

    Nor is the text of an object that was cut off, or of names with values.
    """
    names, inner = _names(case), object_in(value)
    if isinstance(value, str) and not inner:
        is_written = value.lstrip().startswith(("{", "<", "```", '"{'))
        cells = cells_in(value[:MAX_TEXT])
        is_table = len(cells) > 1 and any(each in names for each in cells[0])
        return (
            is_written
            or is_table
            or any(each in names for each in _ASSIGNED.findall(value[:MAX_TEXT]))
        )
    return not names.isdisjoint(inner)


def _better(case: Case) -> Iterator[Reshaped]:
    """What one step makes of a call, where less is wrong with it then."""
    before = _wrong(case)
    steps = (
        _bared,
        _restyled,
        _indexed,
        _unpacked,
        _unwrapped,
        _nested,
        _raised,
        _swapped,
        _by_position,
        _parted,
        _paired,
        _several,
    )
    for option in islice((each for step in steps for each in step(case)), _MAX_TRIED):
        try:
            parameters = apply_edits(case.parameters, option.edits)
        except EditDoesNotApplyError:
            continue
        # What the error says is said of the call as it was sent; a schema shows the rest.
        said = () if case.view else _missing_still(case, parameters)
        reading = replace(case.reading, faults=said)
        after = replace(case, parameters=parameters, reading=reading, signature=None)
        if _wrong(after) < before:
            yield Reshaped(option, after)


def _missing_still(case: Case, parameters: JsonObject) -> tuple[Fault, ...]:
    faults = case.reading.faults
    return tuple(f for f in faults if f.kind == "missing" and f.parameter not in parameters)


def _wrong(case: Case) -> float:
    """How much is wrong with a call's names and types; what a like name would mend is less."""
    if case.view is None:
        return len(_missing_still(case, case.parameters))
    inner = inner_faults(case.schema, case.parameters) if case.schema is not None else []
    missing, unknown = case.view.missing(case.parameters), case.view.unknown(case.parameters)
    values = [
        fault
        for fault in shown_by(case.view, case.parameters)
        if fault.kind not in ("missing", "unexpected")
    ]
    names = len(missing) + len(unknown) - _MENDED * len(best_matches(unknown, missing))
    items = sum(
        not fits(item, known.item_types)
        for name, value in case.parameters.items()
        if (known := case.parameter(name)) and isinstance(value, list)
        for item in value[:MAX_KEYS]
    )
    items += sum(
        isinstance(value, list) and len(value) == 1 and str(value[0])[:1] == "[" for value in
        case.parameters.values()
    )  # fmt: skip
    return names + len(inner) + items + _MENDED / 2 * len(values)


def _names(case: Case) -> frozenset[str]:
    """The tool's parameters, or those that the error misses where nothing else is known."""
    if case.view is not None:
        return frozenset(case.view.parameters)
    missing = (fault.parameter for fault in case.reading.faults if fault.kind == "missing")
    return frozenset(name for name in missing if name)


def _strangers(case: Case) -> list[tuple[str, JsonValue]]:
    """Parameters that the tool does not have, or not with such a value."""
    names = _names(case)
    return [
        (name, value)
        for name, value in islice(case.parameters.items(), MAX_KEYS)
        if name not in names or ((known := case.parameter(name)) and not fits(value, known.types))
    ]


def _bared(case: Case) -> Iterator[Option]:
    """Names of the tool with marks, paths or types around them: `owner?`, `body[owner]`."""
    names = _names(case)
    strange = [name for name, _ in _strangers(case) if name not in names]
    parts = {name: _IDENTIFIER.findall(name) for name in strange}
    around = set.intersection(*map(set, parts.values())) if len(parts) > 1 else set()
    edits: list[Edit] = []
    for name, inside in parts.items():
        bare = [each for each in inside if each in names and each not in case.parameters]
        bare = [each for each in bare if each not in around] or bare
        if len(bare) == 1:
            edits.append(Rename(name=name, to=bare[0]))
    if edits and len({edit.to for edit in edits if isinstance(edit, Rename)}) == len(edits):
        yield _step(case, edits, "the names have marks around them", _BARED)


def _restyled(case: Case) -> Iterator[Option]:
    """Fields of objects inside whose names are in another style, all at once."""
    edits = [
        Rename(name=name, to=to).under(path)
        for path, inner in objects_in(case.parameters) if path and case.schema is not None
        if (view := object_view(case.schema, path, inner)) is not None
        for name in view.unknown(inner)
        for to in view.parameters
        if to not in inner and "".join(words_of(name)) == "".join(words_of(to))
    ]  # fmt: skip
    if edits:
        yield _step(case, edits, "the names inside are in another style", _BARED)


def _indexed(case: Case) -> Iterator[Option]:
    """Fields under the paths of their places: `labels[0][name]`, `labels__0__name`, `labels/1`."""
    for name in _names(case) - case.parameters.keys():
        parts = {
            key: steps
            for key in case.parameters
            if len(key) <= _MAX_PLACE
            and (steps := _PLACE.split(key.rstrip("]")))[0] == name
            and len(steps) > 1
        }
        numbered = any(each.isdecimal() for steps in parts.values() for each in steps)
        if len(parts) > 1 and numbered:
            made = _placed({tuple(steps[1:]): case.parameters[key] for key, steps in parts.items()})
            edits: list[Edit] = [Add(name=name, value=made), *(Remove(name=key) for key in parts)]
            yield _step(case, edits, f"the parts of `{name}` stand beside one another", _NESTED)


def _placed(parts: Mapping[tuple[str, ...], JsonValue]) -> JsonValue:
    """A value from its parts and their places; numbers from 0 or 1 on make a list."""
    if () in parts:
        return parts[()]
    heads = dict.fromkeys(place[0] for place in parts)
    inside = {
        head: _placed({place[1:]: held for place, held in parts.items() if place[0] == head})
        for head in heads
    }
    numbers = sorted(int(head) for head in heads if head.isdecimal())
    is_list = len(numbers) == len(heads) and numbers[0] in (0, 1) and (
        numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    )  # fmt: skip
    return [inside[key] for key in sorted(heads, key=int)] if is_list else inside


def _unpacked(case: Case) -> Iterator[Option]:
    """A whole call, or a part of it, under one key, in text, or in what a protocol puts around."""
    names = _names(case)
    for name, outer in _strangers(case):
        for path, inner, beside in islice(_within(outer, ()), _MAX_TRIED):
            if (
                not any(_is_like_one(each, names) for each in inner)
                or _is_its_own(case, name, inner)
                or not all(_is_of_envelope(case, names, *each) for each in beside)
            ):
                continue
            # What says nothing beside it gives way to what stands inside.
            edits: list[Edit] = [
                Remove(name=each)
                for each, held in case.parameters.items()
                if each != name
                and ((each in inner and says_nothing(held))
                     or _is_of_envelope(case, names, each, held))
            ]  # fmt: skip
            if not beside and _object_at(outer, path) == inner:
                edits += [Flatten(name=each) for each in (name, *path)]
            else:
                text = str(outer) if isinstance(outer, str) and not path else ""
                is_json = text.lstrip()[:1] == "{" and plain_value(text) == inner
                edits += [Cast(name=name, to="object") if is_json
                          else Replace(name=name, before=outer, value=inner),
                          Flatten(name=name)]  # fmt: skip
            reason = f"parameters of the tool stand inside of `{name}`"
            yield _step(case, edits, reason, _UNPACKED)


def _object_at(value: JsonValue, path: tuple[str, ...]) -> JsonValue:
    """What stands in objects, and lists of one, under these keys; None where anything else does."""
    for key in (*path, None):
        one = value[0] if isinstance(value, list) and len(value) == 1 else value
        value = one.get(key) if key is not None and isinstance(one, dict) else one
    return value


def _within(value: JsonValue, path: tuple[str, ...]) -> Iterator[_Inner]:
    """The objects in a value, the outer ones first, each with its keys and what stands around."""
    held = object_in(value)
    yield path, held, []
    for key, each in held.items() if len(path) <= _MAX_STEPS else ():
        beside = [(other, value) for other, value in held.items() if other != key]
        for keys, inner, more in _within(each, (*path, key)):
            yield keys, inner, [*beside, *more]


def _is_of_envelope(case: Case, names: frozenset[str], key: str, value: JsonValue) -> bool:
    """Whether a member says which call it is, and nothing of what is called for."""
    if _is_like_one(key, names) or qualifiers_of(key):
        return False
    is_mark = isinstance(value, str | int) and not isinstance(value, bool)
    is_short = len(str(value)) <= MAX_KEYS and " " not in str(value)
    says_which = is_mark and is_short and not _ENVELOPE.isdisjoint(words_of(key))
    return value == case.tool or says_nothing(value) or says_which


def _is_its_own(case: Case, name: str, inner: JsonObject) -> bool:
    """Whether all names in an object are fields that this parameter, or an item of it, has."""
    for path in ((name,), (name, 0)) if case.schema is not None and inner else ():
        view = object_view(case.schema or {}, path, inner)
        if view is not None and view.parameters and not view.unknown(inner):
            return True
    return False


def _unwrapped(case: Case) -> Iterator[Option]:
    """A plain value that stands in an object of its own."""
    for name, value in _strangers(case):
        known = case.parameter(name)
        if known is not None and isinstance(value, dict):
            keys = {word for key in value for word in words_of(key)}
            if not any(map(qualifiers_of, value)) and keys.isdisjoint(_COMPARES):
                shown = not keys.isdisjoint({*_SAYS_A_VALUE, *words_of(name)})
                reason = f"`{name}` is a plain value, no object"
                yield _step(case, [Unwrap(name=name)], reason, _VALUE if shown else _UNKNOWN_KEY)


def _nested(case: Case) -> Iterator[Option]:
    """Fields that belong into an object, or into a list of one, that the call does not have."""
    strange = {name: value for name, value in _strangers(case) if name not in _names(case)}
    if case.schema is None or case.view is None or not strange:
        return
    for name, known in case.view.parameters.items():
        listed = "array" in known.types
        if not (listed or "object" in known.types):
            continue
        there = object_in(case.parameters.get(name))
        inner = object_view(case.schema, (name, 0) if listed else (name,), there or strange)
        fields = _matching(strange, inner) if inner else {}
        if len(fields) == 1 and not known.required and not fields.keys() & {*fields.values()}:
            continue  # one field of a like name alone asks for nothing that was left out
        if fields and inner and not inner.missing({**there, **dict.fromkeys(fields.values())}):
            edits: list[Edit] = [Nest(name=name, fields=tuple(fields), listed=listed)]
            prefix = (name, 0) if listed else (name,)
            edits += [
                Rename(name=one, to=other).under(prefix)
                for one, other in fields.items()
                if one != other
            ]
            what = "a list of objects" if listed else "an object"
            reason = f"`{name}` is {what}, and its fields stand beside it"
            yield _step(case, edits, reason, _NESTED)


def _matching(strange: Mapping[str, JsonValue], inner: ToolView) -> dict[str, str]:
    """The strange names that are fields of an object, each with the field that it is."""
    return {
        **{name: name for name in strange if name in inner.parameters},
        **best_matches(
            [name for name in strange if name not in inner.parameters],
            [name for name in inner.parameters if name not in strange],
        ),
    }


def best_matches(names: Sequence[str], others: Sequence[str]) -> dict[str, str]:
    """Names that are more alike to one another than either is to any third; of a few of each."""
    found: dict[str, str] = {}
    if max(len(names), len(others)) > MAX_KEYS:
        return found
    for name in names:
        likest = _likest(name, others)
        if likest is not None and _likest(likest, names) == name:
            found[name] = likest
    return found


def _likest(name: str, others: Sequence[str]) -> str | None:
    """The name that is clearly the most like this one; None where none is."""
    ranked = sorted(((name_similarity(name, other), other) for other in others), reverse=True)
    if not ranked or ranked[0][0] < _SOMEWHAT:
        return None
    second = ranked[1][0] if len(ranked) > 1 else 0.0
    return ranked[0][1] if ranked[0][0] - second >= _CLEARLY else None


def _raised(case: Case) -> Iterator[Option]:
    """Parameters of the tool that stand inside of another one, which has no such field."""
    for name, value in case.parameters.items() if case.schema is not None else ():
        held = object_in(value)
        path = (name, 0) if isinstance(value, list) else (name,)
        inner = object_view(case.schema or {}, path, held) if held else None
        fields = [each for each in inner.unknown(held) if each in _names(case)] if inner else []
        if fields:
            edit = Flatten(name=name, fields=tuple(fields), partly=True)
            yield _step(case, [edit], f"`{fields[0]}` belongs beside `{name}`", _UNPACKED)


def _swapped(case: Case) -> Iterator[Option]:
    """Two values of which each fits only in the other's place."""
    for (one, first), (other, second) in combinations(_strangers(case), 2):
        mine, its = case.parameter(one), case.parameter(other)
        if mine and its and fits(first, its.types) and fits(second, mine.types):
            edits = [
                Replace(name=one, before=first, value=second),
                Replace(name=other, before=second, value=first),
            ]
            yield _step(case, edits, f"`{one}` and `{other}` are swapped", _NESTED)


def _by_position(case: Case) -> Iterator[Option]:
    """Values in a list without their names, as many as the call lacks."""
    if case.view is None or case.view.source != "schema":
        return
    lacks = set(case.view.missing(case.parameters))
    # The schema has them in the order of the tool's maker; the view sorts them.
    missing = [each for each in object_in((case.schema or {}).get("properties")) if each in lacks]
    for name, value in _strangers(case):
        if name in case.view.parameters or not isinstance(value, list):
            continue
        fit = len(value) == len(missing) > 1 and all(
            fits(each, case.view.parameters[place].types)
            for each, place in zip(value, missing, strict=True)
        )
        if fit:
            edit = Flatten(name=name, fields=tuple(missing))
            yield _step(case, [edit], f"the values of `{name}` have no names", _BY_POSITION)
    yield from _by_number(case, lacks)


def _by_number(case: Case, lacks: set[str]) -> Iterator[Option]:
    """Values under numbers (`arg0`, `arg1`), in the order in which the schema has its names."""
    strange = [name for name, _ in _strangers(case) if name not in _names(case)]
    numbers = [int(found[1]) for name in strange if (found := _NUMBERED.fullmatch(name))]
    absent = [each for each in object_in((case.schema or {}).get("properties"))
              if each not in case.parameters]  # fmt: skip
    places = absent[: len(numbers)]
    if len(numbers) != len(strange) or not numbers or not lacks <= {*places}:
        return
    if numbers in (list(range(len(numbers))), list(range(1, len(numbers) + 1))):
        edits = [Rename(name=name, to=to) for name, to in zip(strange, places, strict=False)]
        yield _step(case, edits, "the values have numbers for names", _BY_POSITION)


def _parted(case: Case) -> Iterator[Option]:
    """Two values that stand in one: both ends of a range, or the only two that are missing."""
    if case.view is None or case.view.source != "schema":
        return
    names = _names(case)
    strange = [
        (name, value)
        for name, value in _strangers(case)
        if name not in names
        and not (isinstance(value, dict) and any(_is_like_one(each, names) for each in value))
    ]
    missing = case.view.missing(case.parameters)
    absent = [name for name in case.view.parameters if name not in case.parameters]
    for name, value in strange:
        pairs = _ends_of(name, absent)
        if not pairs and len(strange) == 1 and len(missing) == _TWO:
            has = object_in((case.schema or {}).get("properties"))
            pairs = [tuple(sorted(missing, key=list(has).index))]
        for pair in pairs if len(pairs) == 1 else ():
            views = [case.view.parameters[each] for each in pair]
            parts = next(filter(None, (_as_two(value, mark) for mark in _BETWEEN)), ())
            try:
                held = {
                    view.name: part if fits(part, view.types) else cast(part, view.types[0])
                    for view, part in zip(views, parts, strict=False)
                }
            except CastError:
                continue
            if held:
                edits: list[Edit] = [
                    Replace(name=name, before=value, value=held), Flatten(name=name)
                ]  # fmt: skip
                reason = f"`{name}` holds `{pair[0]}` and `{pair[1]}`"
                yield _step(case, edits, reason, _PARTED)


def _ends_of(name: str, absent: Sequence[str]) -> list[tuple[str, ...]]:
    """The absent parameters that are the two ends of what a name is about."""
    about = set(words_of(name))
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
    """The two values that a text, a list or an object of two holds; none where it holds others."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, str) and not _IN_MARKS.isdisjoint(value):
        return ()
    parts = value.split(mark) if isinstance(value, str) else value
    if not isinstance(parts, list) or len(parts) != _TWO:
        return ()
    found = tuple(part.strip() if isinstance(part, str) else part for part in parts)
    return (
        () if any(isinstance(each, dict | list) or each in ("", None) for each in found) else found
    )


def _paired(case: Case) -> Iterator[Option]:
    """A map in the place of a list of pairs, or the reverse."""
    for name, value in case.parameters.items():
        known = case.parameter(name)
        made: JsonValue = None
        if known is None:
            continue
        if isinstance(value, list) and len(value) <= MAX_KEYS:
            if "array" in known.types and known.item_types[:1] == ("object",):
                items: list[JsonValue] = [object_in(each) or _map_of(each) for each in value]
                made = items if all(items) else None
            elif "object" in known.types and "array" not in known.types:
                made = _map_of(value)
        elif "array" in known.types and isinstance(value, dict):
            made = _pairs_of(case, name, value)
        if made is not None and made != value:
            edit = Replace(name=name, before=value, value=made)
            what = "an object" if isinstance(made, dict) else "a list of objects"
            yield _step(case, [edit], f"`{name}` is {what}", _PAIRED)


def _several(case: Case) -> Iterator[Option]:
    """A list whose only item is the text of a list, or of several of the values that may stand."""
    for name, value in case.parameters.items():
        known = case.parameter(name)
        one = value[0] if isinstance(value, list) and len(value) == 1 else None
        if known is None or "array" not in known.types or not isinstance(one, str):
            continue
        try:
            items = cast(one, "array", known.item_types)
        except CastError:
            continue
        if isinstance(items, list) and len(items) > 1:
            edit = Replace(name=name, before=value, value=items)
            yield _step(case, [edit], f"`{name}` holds a list in one item", _PAIRED)


def _map_of(pairs: JsonValue) -> JsonObject | None:
    """What lists of two, or objects of a key and its value, say by name."""
    if not isinstance(pairs, list) or not pairs:
        return None
    found = dict(
        pair
        for each in pairs[:MAX_KEYS]
        if (pair := pair_of(list(each.values()) if isinstance(each, dict) else each))
    )
    return found if len(found) == len(pairs) else None


def _pairs_of(case: Case, name: str, value: JsonObject) -> list[JsonValue] | None:
    """Objects of two fields for the entries of a map, where it is clear which is which."""
    inner = object_view(case.schema, (name, 0), {}) if case.schema is not None else None
    fields = [view for view in inner.parameters.values() if view.required] if inner else []
    if len(fields) != 2 or not 0 < len(value) <= MAX_KEYS or _is_its_own(case, name, value):
        return None
    entries = list(value.values())
    ways = [
        (key, held)
        for key, held in (fields, fields[::-1])
        if fits("", key.types) and all(fits(each, held.types) for each in entries)
    ]
    if len(ways) > 1:
        ways = [way for way in ways if not _KEYS.isdisjoint(words_of(way[0].name))]
    if len(ways) != 1:
        return None
    [(key, held)] = ways
    return [{key.name: one, held.name: other} for one, other in value.items()]


def _step(case: Case, edits: Sequence[Edit], reason: str, trials: Trials) -> Option:
    source: EvidenceSource = "error" if case.view is None else case.view.source
    return Option(tuple(edits), reason, trials, (source, "parameters"))


def _is_like_one(name: str, names: frozenset[str]) -> bool:
    return name in names or any(name_similarity(name, each) >= _LIKE for each in names)
