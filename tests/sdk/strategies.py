"""Hypothesis strategies for what crosses the wire: a model's fields by their annotations."""

from datetime import UTC, datetime
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from aftercall.json_values import MAX_INTEGER
from aftercall.models import (
    Change,
    Execution,
    ExecutionError,
    FailedCall,
    Promotion,
    RecordReceipt,
    SimilarExecution,
    SimilarRequest,
    SimilarResponse,
    SuggestRequest,
    SuggestResponse,
    Tool,
    ToolSpec,
    WireModel,
)
from aftercall.models.base import Id, Json, Name, Object, Timestamp
from aftercall.models.tools import Version

ModelT = TypeVar("ModelT", bound=WireModel)

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
names = texts.filter(bool)
ids = st.uuids().map(str)
timestamps = st.datetimes(
    datetime(1970, 1, 2),  # noqa: DTZ001  # Hypothesis adds the zone
    datetime(2199, 12, 30),  # noqa: DTZ001  # as above
    timezones=st.timezones() | st.just(UTC),
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
json_objects = st.dictionaries(texts, json_values, max_size=5)

_KNOWN: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (Name, names),
    (Id, ids),
    (Json, json_values),
    (Object, json_objects),
    (Timestamp, timestamps),
    (Version, st.from_regex(r"v?[0-9]{1,3}(\.[0-9]{1,3}){0,2}", fullmatch=True)),
    (str, texts),
    (bool, st.booleans()),
    (int, st.integers(1, 20)),
    (float, st.floats(0, 1)),
    (type(None), st.none()),
    (Change, st.deferred(lambda: changes)),
    (Execution, st.deferred(lambda: executions)),
]
"""Within all bounds that the models set."""


def _values(hint: Any) -> st.SearchStrategy[Any]:
    for known, strategy in _KNOWN:
        if hint == known:
            return strategy
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return st.one_of(*map(_values, arguments))
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is list:
        return st.lists(_values(arguments[0]), max_size=2)
    if origin is tuple:
        return st.tuples(*map(_values, arguments))
    if origin is dict:
        return json_objects
    if origin is Annotated:
        # A check before or after leaves the values of a known hint as they are.
        base, *checks = arguments
        return _values(Annotated[base, *checks[:-1]] if checks[1:] else base)
    return _models(hint)


def _models(
    model: type[ModelT], *left_out: str, **fields: st.SearchStrategy[Any]
) -> st.SearchStrategy[ModelT]:
    hints = get_type_hints(model, include_extras=True)
    every = {
        name: fields[name] if name in fields else _values(hints[name])
        for name in model.model_fields
        if name not in left_out
    }
    # st.builds would ask for the aliases too.
    return st.fixed_dictionaries(every).map(model.model_validate)


_CALL: dict[str, st.SearchStrategy[Any]] = {
    "duration_ms": st.floats(0, 1e12),
    "sequence": st.none() | st.integers(0, 4 * 10**18),
    "attempt": st.integers(1, 1000),
    "trace_id": st.none() | st.from_regex("[0-9a-f]{31}[1-9a-f]", fullmatch=True),
}
errors = _models(ExecutionError)
_KNOWN_ALWAYS = "parameters_known"
executions = _models(
    Execution, _KNOWN_ALWAYS, "error", outcome=st.just("success"), **_CALL
) | _models(Execution, _KNOWN_ALWAYS, outcome=st.just("failure"), error=errors, **_CALL)
failed_calls = _models(FailedCall, _KNOWN_ALWAYS, **_CALL)
_KNOWN.append((FailedCall, failed_calls))
changes = (
    _models(Change, "from_", op=st.just("add"))
    | _models(Change, "value", op=st.just("remove"))
    | _models(Change, op=st.just("replace"))
)
tool_specs = _models(ToolSpec)
tools = _models(Tool)
suggest_requests = _models(SuggestRequest)
suggest_responses = _models(SuggestResponse)
similar_requests = _models(SimilarRequest)
similar_responses = _models(
    SimilarResponse, executions=st.lists(_models(SimilarExecution), max_size=2)
)
receipts = _models(RecordReceipt)
_parts = st.text("abcdefghij_-.01 ü", min_size=1, max_size=8).filter(lambda part: part.strip(". "))
promotions = _models(
    Promotion,
    evolved_file=st.none() | st.lists(_parts, min_size=1, max_size=3).map("/".join),
    promoted_at=timestamps.map(lambda moment: moment.replace(microsecond=0)),
)
"""As a file has them: with a time, in whole seconds."""
