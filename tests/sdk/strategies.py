"""Hypothesis strategies for what crosses the wire."""

from datetime import UTC, datetime
from typing import Any, TypeVar

from hypothesis import strategies as st

from aftercall.json_values import MAX_INTEGER
from aftercall.models import (
    Change,
    Evidence,
    Example,
    Execution,
    ExecutionError,
    FailedCall,
    Pattern,
    RecordReceipt,
    Rejection,
    RetryAdvice,
    SimilarExecution,
    SimilarRequest,
    SimilarResponse,
    Suggestion,
    SuggestRequest,
    SuggestResponse,
    Tool,
    ToolAnnotations,
    ToolSpec,
    WireModel,
)

ModelT = TypeVar("ModelT", bound=WireModel)


def _models(model: type[ModelT], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[ModelT]:
    # st.builds would ask for the aliases too.
    return st.fixed_dictionaries(fields).map(model.model_validate)


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

errors = _models(
    ExecutionError,
    type=names,
    message=texts,
    code=st.none() | texts,
    stack=st.none() | texts,
    details=json_objects,
)

_call: dict[str, st.SearchStrategy[Any]] = {
    "agent": names,
    "server_name": st.none() | names,
    "tool_name": names,
    "tool_version": st.none() | names,
    "parameters": json_objects,
    "context": st.none() | texts,
    "duration_ms": st.floats(0, 1e12),
    "result": json_values,
    "session_id": st.none() | names,
    "sequence": st.none() | st.integers(0, 4 * 10**18),
    "attempt": st.integers(1, 1000),
    "repair_of": st.none() | ids,
    "suggestion_id": st.none() | ids,
    "input_schema": st.none() | json_objects,
}

executions = st.one_of(
    _models(
        Execution,
        execution_id=ids,
        timestamp=timestamps,
        outcome=st.just("success"),
        **_call,
    ),
    _models(
        Execution,
        execution_id=ids,
        timestamp=timestamps,
        outcome=st.just("failure"),
        error=errors,
        **_call,
    ),
)
failed_calls = _models(
    FailedCall,
    execution_id=st.none() | ids,
    timestamp=st.none() | timestamps,
    error=errors,
    **_call,
)

annotations = _models(
    ToolAnnotations,
    read_only_hint=st.none() | st.booleans(),
    destructive_hint=st.none() | st.booleans(),
    idempotent_hint=st.none() | st.booleans(),
    open_world_hint=st.none() | st.booleans(),
)
tool_specs = _models(
    ToolSpec,
    namespace=st.none() | names,
    name=names,
    server_name=st.none() | names,
    version=st.none() | st.from_regex(r"v?[0-9]{1,3}(\.[0-9]{1,3}){0,2}", fullmatch=True),
    description=texts,
    input_schema=st.none() | json_objects,
    annotations=annotations,
    tags=st.lists(names, max_size=3),
    implementation=json_values,
    evolved_from=st.none() | names,
)

tools = tool_specs.flatmap(
    lambda spec: _models(Tool, tool_id=names, schema_hash=st.none() | texts, updated_at=timestamps,
        **{name: st.just(value) for name, value in spec},
    )
)  # fmt: skip

unit = st.floats(0, 1)
changes = st.one_of(
    _models(Change, op=st.just("add"), path=texts, value=json_values, reason=texts),
    _models(Change, op=st.just("remove"), path=texts, from_=json_values, reason=texts),
    _models(
        Change,
        op=st.just("replace"),
        path=texts,
        from_=json_values,
        value=json_values,
        reason=texts,
    ),
)
suggestions = _models(
    Suggestion,
    suggestion_id=ids,
    action=st.sampled_from(["change_parameters", "retry_unchanged", "switch_tool", "escalate"]),
    changes=st.lists(changes, max_size=2),
    corrected_parameters=st.none() | json_objects,
    tool=st.none() | names,
    retry_after_ms=st.none() | st.floats(0, 1e6),
    confidence=unit,
    confidence_interval=st.none() | st.tuples(unit, unit),
    evidence=_models(
        Evidence,
        repairs=st.integers(0, 9),
        execution_ids=st.lists(ids, max_size=2),
        sources=st.lists(st.sampled_from(["schema", "error", "seed"]), max_size=2),
    ),
    lesson=texts,
    example=st.none() | _models(Example, failed=json_objects, successful=json_objects),
)
suggest_requests = _models(
    SuggestRequest,
    execution=failed_calls,
    limit=st.integers(1, 20),
    annotations=st.none() | annotations,
)
suggest_responses = _models(
    SuggestResponse,
    pattern=_models(
        Pattern,
        category=st.sampled_from(["invalid_parameters", "timeout"]),
        signature=texts,
        confidence=unit,
    ),
    suggestions=st.lists(suggestions, max_size=2),
    retry=_models(RetryAdvice, safe=st.booleans(), reason=texts),
    abstained=st.booleans(),
    reason=st.none() | texts,
    took_ms=st.floats(0, 1e6),
)
similar_requests = _models(
    SimilarRequest,
    tool_name=names,
    server_name=st.none() | names,
    context=st.none() | texts,
    parameters=json_objects,
    outcome=st.sampled_from(["success", "failure"]),
    limit=st.integers(1, 50),
)
similar_responses = _models(
    SimilarResponse,
    executions=st.lists(
        _models(SimilarExecution, execution=executions, similarity=st.floats(-1, 1)), max_size=2
    ),
)
receipts = _models(
    RecordReceipt,
    accepted=st.integers(0, 1000),
    duplicates=st.integers(0, 1000),
    rejected=st.lists(_models(Rejection, index=st.integers(0, 999), message=texts), max_size=2),
)
