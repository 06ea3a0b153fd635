"""Reading an error: one pass over all grammars, then tying faults to the call's parameters."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

from aftercall.json_values import JsonObject, JsonValue, canonical_json
from aftercall.models import ErrorCategory, ExecutionError
from retrieval.identifiers import words_of
from retrieval.reading.category import UNREAD, categorise
from retrieval.reading.codes import CODES, code_within
from retrieval.reading.faults import Fault
from retrieval.reading.literals import embedded_json, is_number, type_of
from retrieval.reading.pydantic_grammar import read_pydantic
from retrieval.reading.rejection import is_rejected_before_run
from retrieval.reading.signature import signature_of, strip_frames, without_values
from retrieval.reading.structured_grammar import read_structured
from retrieval.reading.text_grammar import read_text

READ_LIMIT = 4_000
"""Characters of a message that the grammars read; validators say what matters first."""
_MAX_LEAVES = 1_000
"""Values of a call that are looked for in the message; real calls have a few dozen."""
_MAX_FAULTS = 64
_MAX_LEAF = 300

_Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class ErrorReading:
    """What an error says. `confidence` (0 to 1, higher is surer) is of the category."""

    category: ErrorCategory
    confidence: float
    signature: str
    faults: tuple[Fault, ...]
    rejected_before_run: bool

    @property
    def is_unread(self) -> bool:
        """No grammar knows the message, and it holds words that a classifier may know."""
        return self.category == "unknown" and self.confidence <= UNREAD

    @property
    def implicated(self) -> frozenset[str]:
        """Top-level parameters that the error says something about."""
        return frozenset(fault.parameter for fault in self.faults if fault.parameter)


def read_error(error: ExecutionError, parameters: JsonObject) -> ErrorReading:
    """Read an error in the light of the parameters that caused it. Pure; never raises."""
    message = error.message[:READ_LIMIT]
    code = (error.code or "").strip()
    if error.details and code.upper() not in CODES:
        code = code_within(error.details) or code
    leaves = list(islice(_leaves(parameters), _MAX_LEAVES))
    found = islice((*_faults_of(message), *read_structured(error.details)), _MAX_FAULTS)
    faults = tuple(_dedupe(_joined(list(_tied_each(found, parameters, leaves)))))
    reading = categorise(
        error.type,
        code,
        without_values(message, [text for _, text in leaves]),
        has_faults=bool(faults),
        blames_value=any(f.kind in _OF_VALUES and f.parameter in parameters for f in faults),
    )
    names = {part for fault in faults for part in _names_said(fault, parameters)}
    return ErrorReading(
        category=reading.category,
        confidence=reading.confidence,
        signature=signature_of(
            message, names=names | parameters.keys(), values=[text for _, text in leaves]
        ),
        faults=faults,
        rejected_before_run=reading.category in _REFUSALS
        and not _has_run(error.details)
        and is_rejected_before_run(code, message, faults, parameters),
    )


def _has_run(details: JsonValue) -> bool:
    """Whether who asks saw the tool's own code run, as adapters do; then no words undo it."""
    return isinstance(details, dict) and details.get("ran") is True


_OF_VALUES = frozenset({"wrong_type", "out_of_range", "not_allowed", "bad_format", "unexpected"})
_REFUSALS = frozenset({"invalid_parameters", "rate_limited"})


@lru_cache(maxsize=1024)
def _faults_of(message: str) -> tuple[Fault, ...]:
    """All faults in a message; a grammar made for the message's validator wins over phrases."""
    if exact := tuple(read_pydantic(message)):
        return exact
    if structured := tuple(f for value in embedded_json(message) for f in read_structured(value)):
        return structured
    return tuple(islice(read_text(strip_frames(message)), _MAX_FAULTS))


def _names_said(fault: Fault, parameters: JsonObject) -> Iterator[str]:
    """The names of parameters in a fault; what is neither sent nor missing may be anyone's data."""
    if fault.parameter in parameters or (fault.kind == "missing" and not fault.guessed_place):
        yield from (str(part) for part in fault.path)


def _tied_each(
    faults: Iterable[Fault], parameters: JsonObject, leaves: list[tuple[_Path, str]]
) -> Iterator[Fault]:
    for fault in faults:
        if not fault.given_types:
            yield _tied(fault, parameters, leaves)
        elif place := _of_type(fault, parameters):
            yield replace(fault, path=place)


def _of_type(fault: Fault, parameters: JsonObject) -> _Path:
    """The one parameter that has the type which a message tells instead of a name, if it is one.

    A text that stands where a number is wanted is one that holds a number.
    """
    places = [
        name
        for name, value in islice(parameters.items(), _MAX_LEAVES)
        if type_of(value) in fault.given_types
        and not (
            isinstance(value, str) and fault.expected_types == ("number",) and not is_number(value)
        )
    ]
    return (places[0],) if len(places) == 1 else ()


def _tied(fault: Fault, parameters: JsonObject, leaves: list[tuple[_Path, str]]) -> Fault:
    """Find the parameter of a fault that the message names only by value or in other words."""
    fault = replace(fault, value_text=_bare(fault.value_text))
    if fault.value_text is not None and (place := _place_of_value(fault, parameters, leaves)):
        # Python's KeyError shows a key: the call's own value where it has one, else a name.
        kind = "not_found" if fault.kind == "missing" else fault.kind
        return replace(fault, kind=kind, path=place)
    if fault.kind == "missing" and fault.value_text is not None:
        return replace(fault, value_text=None, guessed_place=True)
    if not fault.path or fault.kind in ("missing", "unexpected"):
        return fault
    return _tied_by_name(fault, parameters, leaves)


def _place_of_value(
    fault: Fault, parameters: JsonObject, leaves: list[tuple[_Path, str]]
) -> _Path | None:
    """Where the one value of the call is that the message shows."""
    if fault.value_text is None or (fault.path and str(fault.path[0]) in parameters):
        return None
    places = [path for path, text in leaves if text == fault.value_text]
    if fault.value_text[:1] in "[{":
        shown = islice(parameters.items(), _MAX_LEAVES)
        places += [(name,) for name, value in shown if _is_shown(value, fault.value_text)]
    return places[0] if len(places) == 1 else None


def _tied_by_name(fault: Fault, parameters: JsonObject, leaves: list[tuple[_Path, str]]) -> Fault:
    name, *inside = fault.path
    if str(name) in parameters:
        if inside and not isinstance(parameters[str(name)], dict | list):
            # Nothing is inside a plain value: pydantic names members of a union so (`limit.int`).
            return replace(fault, path=(name,))
        return fault
    near = _called(str(name), parameters)
    if near is not None:
        return replace(fault, path=(near, *inside))
    own = [path for path, text in leaves if text == name]
    if fault.kind == "invalid" and not inside and len(own) == 1:
        return replace(fault, path=own[0], value_text=str(name))  # not a name but the value itself
    deeper = [path for path, _ in leaves if len(path) > 1 and path[-1] == fault.path[-1]]
    if len(deeper) == 1:
        return replace(fault, path=deeper[0], guessed_place=True)
    # A name that the call does not have stays: what is said of it is said of no other.
    return fault


def _joined(faults: list[Fault]) -> list[Fault]:
    """What is wrong, and what would be right, are often said in two sentences; they are one fault."""
    for what in ("allowed", "suggested"):
        right = [
            fault
            for fault in faults
            if not fault.path and getattr(fault, what) and fault.value_text is None
        ]
        wrong = [
            fault
            for fault in faults
            if (fault.kind in ("invalid", "not_found") or (what == "suggested" and fault.path))
            and fault not in right
        ]
        if len(right) != 1 or len(wrong) != 1:
            continue
        faults.remove(right[0])
        if not getattr(wrong[0], what):
            kind = right[0].kind if what == "allowed" else wrong[0].kind
            changed = replace(wrong[0], kind=kind, **{what: getattr(right[0], what)})
            faults[faults.index(wrong[0])] = changed
    return faults


def _dedupe(faults: Iterable[Fault]) -> Iterator[Fault]:
    """One fault per path and kind; a vague `invalid` yields to any clearer word on its path."""
    kept: dict[tuple[object, ...], Fault] = {}
    for fault in faults:
        kept.setdefault(
            (fault.kind, fault.path, fault.suggested if not fault.path else None), fault
        )
    clear = {fault.path for fault in kept.values() if fault.kind != "invalid"}
    placed = {fault.kind for fault in kept.values() if fault.path}
    for fault in kept.values():
        if (
            fault.kind == "invalid"
            and not fault.suggested
            and (fault.path in clear or not fault.path)
        ):
            continue
        if not fault.path and fault.kind in placed and fault.value_text is None:
            continue  # the same said twice, once without its place
        if fault.kind == "missing" and ("unexpected", fault.path, None) in kept:
            continue
        yield fault


def _leaves(value: JsonValue, path: _Path = ()) -> Iterator[tuple[_Path, str]]:
    """The plain values of a call with their places, as text; long ones are left out."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value[:50]):
            yield from _leaves(item, (*path, index))
    elif value is not None and not (isinstance(value, str) and len(value) > _MAX_LEAF):
        yield path, str(value)


def _is_shown(value: JsonValue, text: str) -> bool:
    """Whether a message shows an array or object so, as Python or as JSON writes it."""
    if not isinstance(value, list | dict) or len(text) > _MAX_LEAF or len(value) > _MAX_LEAF:
        return False
    # A value with so many or so long parts would not be `text`; it is not worth writing out.
    if sum(len(part) for _, part in islice(_leaves(value), _MAX_LEAVES)) > _MAX_LEAF:
        return False
    return text in (repr(value), canonical_json(value), json.dumps(value))


def _bare(text: str | None) -> str | None:
    if text is None:
        return None
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"`" else text


def _called(name: str, parameters: JsonObject) -> str | None:
    """The one parameter that a message calls `name` in its own words (`Page size`, `date`)."""
    keys = list(islice(parameters, _MAX_LEAVES))
    same = [key for key in keys if _same_name(key, name)]
    if not same:
        words = set(words_of(name))
        same = [key for key in keys if words and words <= set(words_of(key))]
    return same[0] if len(same) == 1 else None


def _same_name(left: str, right: str) -> bool:
    return (
        left.replace("_", "").replace("-", "").lower()
        == right.replace("_", "").replace("-", "").replace(" ", "").lower()
    )
