"""The shape of a call, read before its names: fields too deep, too high, or without names.

A whole call under one key, or as JSON text there; a value inside of an object; fields that belong
into an object or a list of one; values in a list without names. In another shape the call is a case
of its own, whose names and values are repaired as those of any call. A shape counts only if less is
wrong with it than before, as far as schema, profile or error say.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, islice

from aftercall.change_classes import qualifiers_of
from aftercall.json_values import JsonObject, JsonValue
from retrieval import WORDS
from retrieval.answers.proposers.boxes import box_options, into_free, unbox_options
from retrieval.answers.proposers.case import Case, Option, prior_trials
from retrieval.answers.proposers.faults import (
    NOT_ABOUT_PARAMETERS,
    inner_faults,
    objects_in,
    shown_by,
)
from retrieval.answers.proposers.layouts import (
    LEAKED,
    as_option,
    by_position,
    is_its_own,
    is_like_one,
    is_stated,
    leak_options,
    list_options,
    names_of_tool,
    pair_options,
    part_options,
    split_off,
    unknown_parameters,
)
from retrieval.answers.proposers.slips import exchange_values
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.rewrites.edit_effects import try_edits
from retrieval.knowledge.rewrites.edits import (
    Add,
    Cast,
    Edit,
    Flatten,
    Nest,
    Remove,
    Rename,
    Replace,
    Unwrap,
)
from retrieval.knowledge.values.likeness import best_matches, words_of
from retrieval.knowledge.values.notations import (
    MAX_KEYS,
    MAX_TEXT,
    cells_in,
    json_or_text,
    object_in,
)
from retrieval.knowledge.values.scalars import fits_types, says_nothing

_UNPACKED = prior_trials("shape.unpacked")  # {"params": {"a": 1}} -> {"a": 1}
_BARED = prior_trials("shape.bared")  # {"body[a]": 1} -> {"a": 1}
_VALUE = prior_trials("shape.value")  # {"a": {"value": 1}} -> {"a": 1}
_UNKNOWN_KEY = prior_trials("shape.value.unknown")  # {"a": {"foo": 1}} -> {"a": 1}
_NESTED = prior_trials("shape.nested")  # {"old": 1} -> {"edits": [{"old": 1}]}
_PLACE = re.compile(r"\]?[\[./:]|__")
"""What stands between the steps of a path."""
_MAX_PLACE = 200
"""Characters of a name that is read as a path."""
_Inner = tuple[tuple[str, ...], JsonObject, list[tuple[str, JsonValue]]]
_MENDED = 1.5
"""What a like name takes off the two faults that it repairs."""
_AROUND_ALL = 0.5
"""What a key around all of a call adds to what is wrong inside."""
_ASSIGNED = re.compile(r"(\w+)[\"'\\]*\s*[=:>]")
_IDENTIFIER = re.compile(r"[A-Za-z_][\w-]*")
_MAX_STEPS = 3
_MAX_TRIED = 20


@dataclass(frozen=True, slots=True)
class Reshaped:
    """The call in another shape, with what the schema shows to be wrong with it there."""

    option: Option
    case: Case


def reshape_call(case: Case) -> Reshaped | None:
    """Return the call in the shape that the tool states.

    None where its own is as good as any known.
    """
    is_of_it = case.reading.category not in NOT_ABOUT_PARAMETERS | {"contract_violation"}
    if not case.parameters_known or not is_of_it or len(case.parameters) > MAX_KEYS:
        return None
    now = case
    steps = list[Option]()
    for _ in range(_MAX_STEPS):
        better = min(_find_better(now), key=lambda each: _count_wrong(each.case), default=None)
        if better is None:
            break
        now = better.case
        steps = [*steps, better.option]
    if not steps:
        return None
    weakest = min(steps, key=lambda step: step.trials.mean)
    edits = tuple(edit for step in steps for edit in step.edits)
    return Reshaped(replace(weakest, edits=edits, reason=steps[0].reason), now)


def holds_parameters(case: Case, value: JsonValue) -> bool:
    """Return whether a value holds names of the tool's own parameters, and so is no single value.

    Nor is the text of an object that was cut off, or of names with values.
    """
    names = names_of_tool(case)
    inner = object_in(value)
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


def _find_better(case: Case) -> Iterator[Reshaped]:
    before = _count_wrong(case)  # from 0, and then nothing is better
    steps = (
        _bare_names,
        _restyle_names,
        _index_fields,
        _fold_names,
        _unpack_call,
        _unwrap_values,
        leak_options,
        _nest_fields,
        _raise_parameters,
        _swap_values,
        by_position,
        part_options,
        split_off,
        box_options,
        unbox_options,
        into_free,
        pair_options,
        list_options,
    )
    for option in islice(
        (each for step in steps for each in step(case)), _MAX_TRIED * (before > 0)
    ):
        parameters = try_edits(case.parameters, option.edits)
        if parameters is None:
            continue
        # What the error states is stated of the call as it was sent; a schema shows the rest.
        said = () if is_stated(case) else _missing_still(case, parameters)
        reading = replace(case.reading, faults=said)
        after = replace(case, parameters=parameters, reading=reading, signature=None)
        if _count_wrong(after) < before:
            yield Reshaped(option, after)


def _missing_still(case: Case, parameters: JsonObject) -> tuple[Fault, ...]:
    faults = case.reading.faults
    return tuple(f for f in faults if f.kind == "missing" and f.parameter not in parameters)


def _count_wrong(case: Case) -> float:
    """Return how much is wrong with a call's names and types.

    What a like name would repair is less.
    """
    if case.view is None:
        return len(_missing_still(case, case.parameters))
    inner = inner_faults(case.schema, case.parameters) if case.schema is not None else []
    missing = case.view.missing_parameters(case.parameters)
    unknown = case.view.unknown_parameters(case.parameters)
    values = [
        fault
        for fault in shown_by(case.view, case.parameters)
        if fault.kind not in ("missing", "unexpected")
    ]
    names = len(missing) + len(unknown) - _MENDED * len(best_matches(unknown, missing))
    items: float = sum(
        not fits_types(item, known.item_types)
        for name, value in case.parameters.items()
        if (known := case.view_parameter(name)) and isinstance(value, list)
        for item in value[:MAX_KEYS]
    )
    items += sum(
        isinstance(value, list) and len(value) == 1 and str(value[0])[:1] == "[" for value in
        case.parameters.values()
    )  # fmt: skip
    items += sum(
        isinstance(value, str) and LEAKED.search(value) is not None
        for value in case.parameters.values()
    )
    items += sum(
        _AROUND_ALL + len(case.view.unknown_parameters(object_in(case.parameters[name])))
        for name in unknown
        if _is_wrapped(case, name)
    )
    return names + len(inner) + items + _MENDED / 2 * len(values)


def _bare_names(case: Case) -> Iterator[Option]:
    """Yield names of the tool with marks, paths or types around them: `owner?`, `body[owner]`."""
    names = names_of_tool(case)
    strange = [name for name, _ in unknown_parameters(case) if name not in names]
    parts = {name: _IDENTIFIER.findall(name) for name in strange}
    around = set.intersection(*map(set, parts.values())) if len(parts) > 1 else set()
    edits: list[Edit] = []
    for name, inside in parts.items():
        bare = [each for each in inside if each in names and each not in case.parameters]
        bare = [each for each in bare if each not in around] or bare
        if len(bare) == 1:
            edits.append(Rename(name=name, to=bare[0]))
    if edits and len({edit.to for edit in edits if isinstance(edit, Rename)}) == len(edits):
        yield as_option(case, edits, "the names have marks around them", _BARED)


def _restyle_names(case: Case) -> Iterator[Option]:
    """Yield new names of all fields inside objects that are named in another style."""
    edits = []
    for path, inner in objects_in(case.parameters):
        view = case.view_object(path, inner) if path else None
        if view is None:
            continue
        letters = {to: "".join(words_of(to)) for to in view.parameters if to not in inner}
        for name in view.unknown_parameters(inner):
            own = "".join(words_of(name))
            same = [to for to, known in letters.items() if known == own]
            edits += [Rename(name=name, to=to).under_prefix(path) for to in same]
    if edits:
        yield as_option(case, edits, "the names inside are in another style", _BARED)


def _index_fields(case: Case) -> Iterator[Option]:
    """Fields under the paths of their places: `labels[0][name]`, `labels__0__name`, `labels/1`."""
    for name in names_of_tool(case) - case.parameters.keys():
        parts = {
            key: steps
            for key in case.parameters
            if len(key) <= _MAX_PLACE
            and (steps := _PLACE.split(key.rstrip("]")))[0] == name
            and len(steps) > 1
        }
        numbered = any(each.isdecimal() for steps in parts.values() for each in steps)
        if len(parts) > 1 and numbered:
            made = _build_value(
                {tuple(steps[1:]): case.parameters[key] for key, steps in parts.items()}
            )
            edits: list[Edit] = [Add(name=name, value=made), *(Remove(name=key) for key in parts)]
            yield as_option(case, edits, f"the parts of `{name}` stand beside one another", _NESTED)


def _fold_names(case: Case) -> Iterator[Option]:
    """Yield a name whose words are steps of a place: `{"per": {"page": 5}}` is `perPage`."""
    for name, value in unknown_parameters(case):
        inner = value if isinstance(value, dict) else {}
        whole = {key: words_of(name) + words_of(key) for key in inner}
        edits: list[Edit] = [
            Rename(name=key, to=each)
            for key, words in whole.items()
            for each in names_of_tool(case) - case.parameters.keys()
            if words_of(each) == words
        ]
        if inner and len(edits) == len(inner):
            reason = f"the names inside of `{name}` go on with it"
            yield as_option(case, [Flatten(name=name), *edits], reason, _UNPACKED)


def _build_value(parts: Mapping[tuple[str, ...], JsonValue]) -> JsonValue:
    """Return a value from its parts and their places; numbers from 0 or 1 on make a list."""
    if () in parts:
        return parts[()]
    heads = dict.fromkeys(place[0] for place in parts)
    inside = {
        head: _build_value({place[1:]: held for place, held in parts.items() if place[0] == head})
        for head in heads
    }
    numbers = sorted(int(head) for head in heads if head.isdecimal())
    is_list = len(numbers) == len(heads) and numbers[0] in (0, 1) and (
        numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    )  # fmt: skip
    if is_list:
        return [inside[key] for key in sorted(heads, key=int)]
    return inside


def _unpack_call(case: Case) -> Iterator[Option]:
    """Yield a call, or a part of it, out of one key, a text or a protocol's frame."""
    names = names_of_tool(case)
    for name, outer in unknown_parameters(case):
        for path, inner, beside in islice(_objects_within(outer, ()), _MAX_TRIED):
            is_wrapped = not path and _is_wrapped(case, name)
            if not is_wrapped and not any(is_like_one(each, names) for each in inner):
                continue
            if is_its_own(case, name, inner):
                continue
            if any(not WORDS["compares"].isdisjoint(words_of(each)) for each in inner):
                continue
            if not all(_is_of_envelope(case, names, *each) for each in beside):
                continue
            # What states nothing next to it gives way to what stands inside.
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
                is_json = text.lstrip()[:1] == "{" and json_or_text(text) == inner
                edits += [Cast(name=name, to="object") if is_json
                          else Replace(name=name, before=outer, value=inner),
                          Flatten(name=name)]  # fmt: skip
            reason = f"parameters of the tool stand inside of `{name}`"
            yield as_option(case, edits, reason, _UNPACKED)


def _is_wrapped(case: Case, name: str) -> bool:
    """Return whether all of a call stands under one key of no meaning."""
    inner = object_in(case.parameters[name])
    words = words_of(name)
    names = names_of_tool(case)
    alone = len(case.parameters) == 1 and name not in names and len(names) > 0
    return alone and len(inner) > 0 and words != () and WORDS["wrappers"].issuperset(words)


def _object_at(value: JsonValue, path: tuple[str, ...]) -> JsonValue:
    """Return what stands in objects, and lists of one, under these keys.

    None where anything else does.
    """
    for key in (*path, None):
        one = value[0] if isinstance(value, list) and len(value) == 1 else value
        value = one.get(key) if key is not None and isinstance(one, dict) else one
    return value


def _objects_within(value: JsonValue, path: tuple[str, ...]) -> Iterator[_Inner]:
    """Yield the objects in a value, outer ones first, with their keys and surroundings."""
    held = object_in(value)
    yield path, held, []
    for key, each in held.items() if len(path) <= _MAX_STEPS else ():
        beside = [(other, value) for other, value in held.items() if other != key]
        for keys, inner, more in _objects_within(each, (*path, key)):
            yield keys, inner, [*beside, *more]


def _is_of_envelope(case: Case, names: frozenset[str], key: str, value: JsonValue) -> bool:
    """Return whether a member states which call it is, and nothing of what is called for."""
    if is_like_one(key, names) or qualifiers_of(key):
        return False
    is_mark = isinstance(value, str | int) and not isinstance(value, bool)
    is_short = len(str(value)) <= MAX_KEYS and " " not in str(value)
    says_which = is_mark and is_short and not WORDS["of_envelopes"].isdisjoint(words_of(key))
    return value == case.tool or says_nothing(value) or says_which


def _unwrap_values(case: Case) -> Iterator[Option]:
    for name, value in unknown_parameters(case):
        known = case.view_parameter(name)
        if known is not None and isinstance(value, dict):
            keys = {word for key in value for word in words_of(key)}
            if "value" in value and WORDS["of_schemas"].issuperset(value):
                edit = Replace(name=name, before=value, value=value["value"])
                yield as_option(case, [edit], f"`{name}` is a value, not its schema", _VALUE)
            elif not any(map(qualifiers_of, value)) and keys.isdisjoint(WORDS["compares"]):
                shown = not keys.isdisjoint(WORDS["of_values"].union(words_of(name)))
                if not shown and known.types == ("string",):
                    continue  # its key states something: it is written as JSON text
                trials = _VALUE if shown else _UNKNOWN_KEY
                reason = f"`{name}` is a plain value, no object"
                yield as_option(case, [Unwrap(name=name)], reason, trials)


def _nest_fields(case: Case) -> Iterator[Option]:
    """Fields that belong into an object, or into a list of one, that the call does not have."""
    strange = {
        name: value for name, value in unknown_parameters(case) if name not in names_of_tool(case)
    }
    if case.schema is None or case.view is None or not strange:
        return
    for name, known in case.view.parameters.items():
        listed = "array" in known.types
        if not (listed or "object" in known.types):
            continue
        there = object_in(case.parameters.get(name))
        inner = case.view_object((name, 0) if listed else (name,), there or strange)
        known_fields = inner.parameters if inner else {}
        fields = {each: each for each in strange if each in known_fields}
        fields |= best_matches(
            [each for each in strange if each not in fields],
            [each for each in known_fields if each not in strange],
        )
        if len(fields) == 1 and not known.required and not fields.keys() & {*fields.values()}:
            continue  # one field of a like name alone asks for nothing that was left out
        if (
            fields
            and inner
            and not inner.missing_parameters({**there, **dict.fromkeys(fields.values())})
        ):
            edits: list[Edit] = [Nest(name=name, fields=tuple(fields), listed=listed)]
            prefix = (name, 0) if listed else (name,)
            edits += [
                Rename(name=one, to=other).under_prefix(prefix)
                for one, other in fields.items()
                if one != other
            ]
            what = "a list of objects" if listed else "an object"
            reason = f"`{name}` is {what}, and its fields stand beside it"
            yield as_option(case, edits, reason, _NESTED)


def _raise_parameters(case: Case) -> Iterator[Option]:
    """Parameters of the tool that stand inside of another one, which has no such field."""
    for name, value in case.parameters.items() if case.schema is not None else ():
        held = object_in(value)
        path = (name, 0) if isinstance(value, list) else (name,)
        inner = case.view_object(path, held) if held else None
        unknown = inner.unknown_parameters(held) if inner else ()
        fields = [each for each in unknown if each in names_of_tool(case)]
        if fields:
            edit = Flatten(name=name, fields=tuple(fields), partly=True)
            yield as_option(case, [edit], f"`{fields[0]}` belongs beside `{name}`", _UNPACKED)


def _swap_values(case: Case) -> Iterator[Option]:
    for (one, first), (other, second) in combinations(unknown_parameters(case), 2):
        mine = case.view_parameter(one)
        its = case.view_parameter(other)
        if mine and its and fits_types(first, its.types) and fits_types(second, mine.types):
            edits = exchange_values(case, one, other)
            yield as_option(case, edits, f"`{one}` and `{other}` are swapped", _NESTED)
