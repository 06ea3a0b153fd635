"""Reading an error: one pass over all grammars, then tying faults to the call's parameters."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

from aftercall.json_values import JsonObject, JsonValue, canonical_json
from aftercall.wire import ErrorCategory, ExecutionError
from retrieval.identifiers import words_of
from retrieval.reading.category import categorise
from retrieval.reading.faults import Fault
from retrieval.reading.literals import embedded_json
from retrieval.reading.pydantic_grammar import read_pydantic
from retrieval.reading.rejection import is_rejected_before_run
from retrieval.reading.signature import signature_of, strip_frames
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
    def implicated(self) -> frozenset[str]:
        """Top-level parameters that the error says something about."""
        return frozenset(fault.parameter for fault in self.faults if fault.parameter)


def read_error(error: ExecutionError, parameters: JsonObject) -> ErrorReading:
    """Read an error in the light of the parameters that caused it. Pure; never raises."""
    message = error.message[:READ_LIMIT]
    code = (error.code or "").strip()
    leaves = list(islice(_leaves(parameters), _MAX_LEAVES))
    found = islice((*_faults_of(message), *read_structured(error.details)), _MAX_FAULTS)
    faults = tuple(_dedupe(_tied(fault, parameters, leaves) for fault in found))
    reading = categorise(
        error.type,
        code,
        message,
        has_faults=bool(faults),
        blames_value=any(f.kind in _OF_VALUES and f.parameter in parameters for f in faults),
    )
    names = {str(part) for fault in faults for part in fault.path} | parameters.keys()
    return ErrorReading(
        category=reading.category,
        confidence=reading.confidence,
        signature=signature_of(message, names=names, values=[text for _, text in leaves]),
        faults=faults,
        rejected_before_run=reading.category in _REFUSALS
        and is_rejected_before_run(code, message, faults, parameters),
    )


_OF_VALUES = frozenset({"wrong_type", "out_of_range", "not_allowed", "bad_format", "unexpected"})
_REFUSALS = frozenset({"invalid_parameters", "rate_limited"})


@lru_cache(maxsize=1024)
def _faults_of(message: str) -> tuple[Fault, ...]:
    """All faults in a message; a grammar made for the message's validator wins over phrases."""
    if exact := tuple(read_pydantic(message)):
        return exact
    if structured := tuple(f for value in embedded_json(message) for f in read_structured(value)):
        return structured
    return tuple(read_text(strip_frames(message)))


def _tied(fault: Fault, parameters: JsonObject, leaves: list[tuple[_Path, str]]) -> Fault:
    """Find the parameter of a fault that the message names only by value or in other words."""
    value_text = _bare(fault.value_text)
    fault = replace(fault, value_text=value_text)
    if value_text is not None and not (fault.path and str(fault.path[0]) in parameters):
        paths = [path for path, text in leaves if text == value_text]
        if value_text[:1] in "[{":
            shown = islice(parameters.items(), _MAX_LEAVES)
            paths += [(name,) for name, value in shown if _is_shown(value, value_text)]
        if len(paths) == 1:
            return replace(fault, path=paths[0])
    if not fault.path or fault.kind in ("missing", "unexpected"):
        return fault
    name, *inside = fault.path
    if str(name) not in parameters:
        # A name that the call does not have stays: what is said of it is said of no other.
        near = _called(str(name), parameters)
        return fault if near is None else replace(fault, path=(near, *inside))
    if inside and not isinstance(parameters[str(name)], dict | list):
        # Nothing is inside a plain value: pydantic names the members of a union so (`limit.int`).
        return replace(fault, path=(name,))
    return fault


def _dedupe(faults: Iterator[Fault]) -> Iterator[Fault]:
    """One fault per path and kind; a vague `invalid` yields to any clearer word on its path."""
    kept: dict[tuple[object, ...], Fault] = {}
    for fault in faults:
        kept.setdefault(
            (fault.kind, fault.path, fault.suggested if not fault.path else None), fault
        )
    clear = {fault.path for fault in kept.values() if fault.kind != "invalid"}
    for fault in kept.values():
        if (
            fault.kind == "invalid"
            and not fault.suggested
            and (fault.path in clear or not fault.path)
        ):
            continue
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
