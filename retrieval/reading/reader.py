"""Reading an error: one pass over all grammars, then tying faults to the call's parameters."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from aftercall.json_values import JsonObject, JsonValue, canonical_json
from aftercall.wire import ErrorCategory, ExecutionError
from retrieval.reading.category import categorise
from retrieval.reading.faults import Fault
from retrieval.reading.literals import embedded_json
from retrieval.reading.pydantic_grammar import read_pydantic
from retrieval.reading.signature import signature_of, strip_frames
from retrieval.reading.structured_grammar import read_structured
from retrieval.reading.text_grammar import read_text

READ_LIMIT = 4_000
"""Characters of a message that the grammars read; validators say what matters first."""


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
    found = _faults_of(message) + tuple(read_structured(error.details))
    faults = tuple(_dedupe(_tied(fault, parameters) for fault in found))
    reading = categorise(error.type, error.code, message, has_faults=bool(faults))
    names = {str(part) for fault in faults for part in fault.path} | parameters.keys()
    return ErrorReading(
        category=reading.category,
        confidence=reading.confidence,
        signature=signature_of(message, names=names, values=list(_texts(parameters))),
        faults=faults,
        rejected_before_run=reading.rejected_before_run,
    )


@lru_cache(maxsize=1024)
def _faults_of(message: str) -> tuple[Fault, ...]:
    """All faults in a message; a grammar made for the message's validator wins over phrases."""
    if exact := tuple(read_pydantic(message)):
        return exact
    if structured := tuple(f for value in embedded_json(message) for f in read_structured(value)):
        return structured
    return tuple(read_text(strip_frames(message)))


def _tied(fault: Fault, parameters: JsonObject) -> Fault:
    """Find the parameter of a fault that the message names only by value or in other words."""
    value_text = _bare(fault.value_text)
    if value_text is not None and not (fault.path and str(fault.path[0]) in parameters):
        paths = [path for path, text in _leaves(parameters) if text == value_text]
        paths += [(name,) for name, value in parameters.items() if _is_shown(value, value_text)]
        if len(paths) == 1:
            return replace(fault, path=paths[0], value_text=value_text)
    if fault.path and fault.kind not in ("missing", "unexpected"):
        name = str(fault.path[0])
        if name not in parameters:
            near = [key for key in parameters if _same_name(key, name)]
            path = (near[0], *fault.path[1:]) if len(near) == 1 else ()
            return replace(fault, path=path, value_text=value_text)
    return replace(fault, value_text=value_text)


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


def _leaves(
    value: JsonValue, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value[:50]):
            yield from _leaves(item, (*path, index))
    elif value is not None:
        yield path, str(value)


def _is_shown(value: JsonValue, text: str) -> bool:
    """Whether a message shows an array or object so, as Python or as JSON writes it."""
    if not isinstance(value, list | dict) or len(text) > 300:
        return False
    return text in (repr(value), canonical_json(value), json.dumps(value))


def _texts(parameters: JsonObject) -> Iterator[str]:
    for _, text in _leaves(parameters):
        if len(text) <= 200:
            yield text


def _bare(text: str | None) -> str | None:
    if text is None:
        return None
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"`" else text


def _same_name(left: str, right: str) -> bool:
    return (
        left.replace("_", "").replace("-", "").lower()
        == right.replace("_", "").replace("-", "").replace(" ", "").lower()
    )
