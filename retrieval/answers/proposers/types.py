"""Wrong types: a value cast to the type that is wanted, without loss or with what is lost known."""

import re
from collections.abc import Iterator

from aftercall.json_patch import same_json
from aftercall.json_values import MAX_INTEGER, JsonValue
from aftercall.models import EvidenceSource
from retrieval.answers.proposers.case import Case, Option, one_edit, prior_trials, quote_json
from retrieval.answers.proposers.slips import number_options, rounded_options
from retrieval.knowledge.beta import Trials
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.rewrites.edits import Cast, Remove, Replace, Unwrap
from retrieval.knowledge.values.forms import in_form, seconds_at
from retrieval.knowledge.values.likeness import may_be_several, words_of
from retrieval.knowledge.values.measures import measure_text
from retrieval.knowledge.values.parameters import JsonType
from retrieval.knowledge.values.scalars import (
    CastError,
    cast_to_one,
    cast_value,
    fits_types,
    is_placeholder,
    may_be_rounded,
    may_count,
    number_in,
    says_nothing,
    type_of,
)

# ------------------------------------------------------------------ wrong types
_MAX_TEXT = 2_000
"""Characters of a text that are looked at for several values in one."""
_SINCE_1970 = Trials(6, 2)
_EXACT = prior_trials("cast.exact")  # "5" -> 5, 5 -> "5", a -> [a]
_UNWRAP = prior_trials("cast.unwrap")
_WORDS = prior_trials("cast.words")  # "five" -> 5, "1,000" -> 1000
_UNITS = prior_trials("cast.unit")  # "10 commits" -> 10, "$12.50" -> 12.5, "~150" -> 150
_SPLIT = prior_trials("cast.split")  # "a, b" -> ["a", "b"]
_AS_JSON = prior_trials("cast.json")  # {"a": 1} -> '{"a": 1}'
_BY_AND = Trials(6, 3)
"""A judgement: two words with `and` between them are mostly two things, and sometimes a name."""
_ONE_OF_SEVERAL = Trials(1, 4)
"""A text in a list of its own that may be several: `a and b`; or a title with a comma in it."""
_A_COUNT = Trials(3, 2)
"""A judgement: a small number instead of a list may say how many, or be the only one."""
CONVERTED = prior_trials("cast.converted")  # "2.4 kg" -> 2400 grams
ID_WITHIN = prior_trials("cast.id")  # "https://a.example/tickets/48213" -> 48213
AS_SHOWN = prior_trials("format.example")  # "123" -> "gid://shop/Product/123"
_NUMBERED = re.compile(
    r"(?:https?://\S{1,200}/|(?P<kind>[A-Za-z]{1,20})[-_:#/ ]{1,2}|#|[vV](?=\d))(?P<id>\d{1,15})/?"
)
"""An id with what stands before it: the address of its page, or the name of its kind."""
_ROUNDED = Trials(1, 4)
"""A judgement: zeros at the end of so long a number are mostly digits that were lost."""
_MILLIS = frozenset(("ms", "millis", "millisecond", "milliseconds"))
_OF_CLOCKS = frozenset(("unix", "epoch", "timestamp", "second", "seconds", "ts"))
_DROP_NULL = prior_trials("remove.null")  # null for an optional parameter: leave it out


def wrong_type_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Yield the value in the type that the tool expects, where that is no guess."""
    name = fault.parameter
    if name is None:
        return
    if name not in case.parameters:
        return
    value = case.parameters[name]
    view = case.view_parameter(name)
    types = fault.expected_types or (view.types if view else ())
    source: EvidenceSource = "schema" if fault.from_schema else "error"
    if value is None and not case.knows_tool:
        reason = f"`{name}` may be left out, but not be null"
        yield one_edit(index, Remove(name=name), reason, _DROP_NULL, source)
    yield from left_out_options(case, index, name)
    yield from rounded_options(case, index, name)
    if not types and isinstance(value, list):
        yield from unwrapped_options(case, index, name)
    # `30 seconds` is 30 where the tool states that it counts in seconds.
    units = frozenset((*words_of(name), *(view.described_by if view else ())))
    for kind in types:
        try:
            if isinstance(value, str) and kind in ("integer", "number"):
                corrected: JsonValue = number_in(value, whole=kind == "integer", units=units)
            else:
                corrected = cast_value(value, kind, view.item_types if view else ())
                form = view.pattern or view.form if view else None
                if form and kind == "string" and (at := in_form(str(corrected), form)):
                    corrected = at  # 1717200000 for a moment
        except CastError:
            yield from _convert_units(case, index, name, kind)
            continue
        reason = f"`{name}` must be of type {kind}, not {type_of(value)}"
        # A general cast can be learned from; where items had to be cast too, only this value.
        plain = cast_to_one(value, [kind])
        edit: Cast | Replace = Cast(name=name, to=kind)
        if plain is None or not same_json(plain[1], corrected):
            edit = Replace(name=name, before=value, value=corrected)
        trials = _cast_trials(value, corrected, kind)
        if kind == "array" and _is_no_item(case, name, value):
            trials = _ONE_OF_SEVERAL
        yield one_edit(index, edit, reason, trials, source)


def _is_no_item(case: Case, name: str, value: JsonValue) -> bool:
    """Return whether a value is an item or a map, and no list of one."""
    if case.whole is not None and name.isdecimal():
        return True
    if not isinstance(value, dict):
        return False
    inner = case.view_object((name, 0), value)
    if inner is None and case.profile is not None:
        inner = case.profile.inner_view((name, 0))
    return not value or inner is None or bool(inner.unknown_parameters(value))


def _convert_units(case: Case, index: int, name: str, kind: JsonType) -> Iterator[Option]:
    """Yield a number for an amount in another unit, a moment, or an address that ends with it."""
    value = case.parameters[name]
    view = case.view_parameter(name)
    if kind in ("integer", "number"):
        yield from number_options(case, index, name)
    texts = value if kind == "string" and isinstance(value, list) else []
    if (
        texts
        and view
        and "comma" in view.description.lower()
        and "," not in "".join(map(str, texts))
    ):
        edit: Replace | Cast = Replace(name=name, before=value, value=",".join(map(str, texts)))
        yield one_edit(index, edit, f"`{name}` is a text with commas", _AS_JSON, "schema")
    if not isinstance(value, str):
        return
    if kind not in ("integer", "number"):
        return
    described = view.described_by if view else frozenset()
    number = measure_text(value, name, described)
    trials = CONVERTED
    if number is None:
        words = {*words_of(name), *described}
        number = seconds_at(value, in_millis=not words.isdisjoint(_MILLIS))
        trials = _SINCE_1970
        number = None if words.isdisjoint(_OF_CLOCKS | _MILLIS) else number
    if number is None and (id_ := _NUMBERED.fullmatch(value)):
        kind_of = words_of(id_["kind"] or name)  # PROJ-12 is the key of another system
        number = None if {*kind_of}.isdisjoint(words_of(name)) else int(id_["id"])
        trials = ID_WITHIN
    if number is None:
        return
    if abs(number) > MAX_INTEGER:
        return
    if kind == "number" or number == int(number):
        corrected = int(number) if number == int(number) else number
        reason = f"`{name}` is a number, and {quote_json(value)} says this one"
        edit = Replace(name=name, before=value, value=corrected)
        yield one_edit(index, edit, reason, trials, "parameters")


def unwrapped_options(case: Case, index: int, name: str) -> Iterator[Option]:
    """Yield the only item of a list in the list's place."""
    value = case.parameters.get(name)
    if isinstance(value, list) and len(value) == 1 and not isinstance(value[0], list | dict):
        reason = f"`{name}` is a list of one, and was not taken as one value"
        yield one_edit(index, Unwrap(name=name), reason, _UNWRAP, "error")


def _cast_trials(value: JsonValue, corrected: JsonValue, kind: JsonType) -> Trials:
    if kind == "array" and isinstance(corrected, list) and len(corrected) > 1:
        if isinstance(value, str) and not value.strip().startswith("["):
            return _SPLIT if len(corrected) > 2 or " " not in value.strip() else _BY_AND
        return _EXACT
    is_one = kind == "array" and isinstance(value, str) and corrected == [value]
    if is_one and may_be_several(str(value)[:_MAX_TEXT]):
        return _ONE_OF_SEVERAL
    if kind == "array" and may_count(value):
        return _A_COUNT
    if isinstance(value, dict) and kind == "string":
        return _AS_JSON
    if kind in ("integer", "number") and isinstance(value, str):
        text = value.strip()
        if text in (str(corrected), f"{corrected}.0"):
            return _EXACT
        bare = text[-1].isdigit() and text.lstrip("-")[0].isdigit()
        return _WORDS if bare or text[0].isalpha() else _UNITS
    return _ROUNDED if kind == "string" and may_be_rounded(value) else _EXACT


def left_out_options(case: Case, index: int, name: str) -> Iterator[Option]:
    """Yield the call without optional parameters that state nothing, such as "null"."""
    view = case.view_parameter(name)
    value = case.parameters[name]
    is_word = isinstance(value, str) and not fits_types(value, view.types if view else ())
    stands_in = is_word and (is_placeholder(str(value)) or value in ("optional", "default"))
    if view is None:
        return
    if view.required:
        return
    if not (stands_in or says_nothing(value)):
        return
    if stands_in and case.schema is None:
        return  # that few calls had it does not show that it may be left out
    alike = [
        each
        for each, other in case.parameters.items()
        if (known := case.view_parameter(each)) and not known.required and same_json(value, other)
    ]
    reason = f"`{name}` may be left out, but not be {quote_json(value)}"
    covers = {at for at, fault in enumerate(case.faults) if fault.parameter in alike}
    edits = tuple(Remove(name=each) for each in alike)
    yield Option(edits, reason, _DROP_NULL, ("schema",), covers=frozenset({index, *covers}))
