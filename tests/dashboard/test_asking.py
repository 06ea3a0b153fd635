"""What is typed or pasted on *Try it* becomes the wire's question, or faults in plain words."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import FailedCall, SuggestRequest
from aftercall.redaction import DEFAULT_REDACTOR
from service.dashboard.shown.asking import (
    ASKER,
    FORM_FIELDS,
    MAX_CHARS,
    PASTED,
    Fault,
    Form,
    body_of,
    form_of,
    from_form,
    from_pasted,
)

TYPED = Form(
    tool="rag_query",
    server="rag-server",
    parameters='{"query": "x", "topK": 50}',
    message="Invalid parameter: topK must be <= 10",
)

CALL = {
    "agent": "ada",
    "toolName": "rag_query",
    "parameters": {"topK": 50},
    "error": {"message": "Invalid parameter: topK must be <= 10"},
}


def asked(form: Form) -> FailedCall:
    found = from_form(form)
    assert isinstance(found, SuggestRequest), found
    return found.execution


def faults(found: SuggestRequest | tuple[Fault, ...]) -> dict[str, str]:
    assert not isinstance(found, SuggestRequest)
    return {each.field: each.message for each in found}


def test_a_form_becomes_the_question_that_the_wire_knows() -> None:
    """With the fields that were filled in, and the wire's own defaults for the others."""
    call = asked(TYPED)
    assert (call.tool_name, call.server_name) == ("rag_query", "rag-server")
    assert call.parameters == {"query": "x", "topK": 50}
    assert (call.error.type, call.error.code, call.context) == ("Error", None, None)
    assert call.agent == ASKER
    full = replace(TYPED, error_type="ValueError", error_code="422", context="find", agent="ada")
    call = asked(full)
    assert (call.error.type, call.error.code) == ("ValueError", "422")
    assert (call.context, call.agent) == ("find", "ada")


def test_no_parameters_are_an_empty_object() -> None:
    """Many tools take none."""
    assert asked(replace(TYPED, parameters=" \n")).parameters == {}


def test_all_that_is_missing_is_told_at_once_at_its_field() -> None:
    """Nobody wants to send a form once per fault."""
    found = faults(from_form(Form()))
    assert set(found) == {"tool", "message"}
    assert "name the tool" in found["tool"]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ('{"topK": 50', "malformed JSON at line 1"),
        ('{\n "a": nope}', "line 2"),
        ("[1, 2]", "must be a JSON object"),
        ("50", "must be a JSON object"),
        ('{"a": NaN}', "nan"),
        ('{"a": ' + "[" * 300 + "]" * 300 + "}", "nested"),
    ],
    ids=["cut", "line", "list", "number", "nan", "deep"],
)
def test_bad_parameters_are_told_at_the_parameters(parameters: str, said: str) -> None:
    """With where and what, never as a traceback."""
    found = faults(from_form(replace(TYPED, parameters=parameters)))
    assert said in found["parameters"]


def test_the_wire_s_own_limits_are_told_at_the_field_they_are_about() -> None:
    """A name of 300 characters is refused by the model, not by the form."""
    found = faults(from_form(replace(TYPED, tool="x" * 300, agent="y" * 300)))
    assert set(found) == {"tool", "agent"}
    assert "256" in found["tool"]
    assert set(faults(from_form(replace(TYPED, error_type="t" * 300)))) == {"error_type"}
    assert set(faults(from_form(replace(TYPED, message="a\x00b")))) == {"message"}


@pytest.mark.parametrize("field", FORM_FIELDS)
def test_a_field_that_is_too_long_is_refused_with_its_name(field: str) -> None:
    """Before anything of it is read."""
    found = faults(from_form(replace(TYPED, **{field: "x" * (MAX_CHARS + 1)})))
    assert "50,000 characters" in found[field]


def test_a_pasted_call_a_pasted_execution_and_a_pasted_body_ask_the_same() -> None:
    """Whatever is at hand: a log line, a recorded execution, or a request."""
    execution = {
        **CALL,
        "executionId": "0b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d",
        "timestamp": "2026-02-20T14:30:00Z",
        "outcome": "failure",
    }
    for value in (CALL, execution, {"execution": CALL}, {"execution": CALL, "limit": 1}):
        found = from_pasted(json.dumps(value))
        assert isinstance(found, SuggestRequest)
        assert found.execution.parameters == {"topK": 50}
    assert isinstance(found, SuggestRequest)
    assert found.limit == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  ", "paste a failed call"),
        ("{", "malformed JSON at line 1"),
        ("[]", "must be one JSON object"),
        (json.dumps({**CALL, "outcome": "success"}), "succeeded"),
        (json.dumps({**CALL, "tool_nam": 1}), "did you mean `toolName`"),
        (json.dumps({"execution": {**CALL, "agent": ""}}), "execution.agent"),
        ("[" * 500, "malformed JSON"),
        ("x" * (MAX_CHARS + 1), "50,000 characters"),
        ('{"agent": "\ud800"}', "surrogate"),
    ],
    ids=["blank", "cut", "list", "success", "misspelt", "inner", "deep", "long", "surrogate"],
)
def test_what_is_pasted_wrong_is_told_in_plain_words(text: str, said: str) -> None:
    """With the path of the field, and what was probably meant."""
    found = from_pasted(text)
    assert not isinstance(found, SuggestRequest)
    assert {each.field for each in found} == {PASTED}
    assert any(said in each.message for each in found), found


@given(st.text(max_size=200))
def test_no_text_breaks_the_form(text: str) -> None:
    """Whatever is typed becomes a question or faults."""
    for found in (
        from_pasted(text),
        from_form(replace(TYPED, parameters=text)),
        from_form(Form(*[text] * len(FORM_FIELDS))),
    ):
        assert isinstance(found, SuggestRequest) or found


def test_a_call_fills_the_form_and_the_form_asks_the_same_call() -> None:
    """What an example button fills in is what is asked."""
    call = FailedCall.model_validate({**CALL, "serverName": "rag", "context": "find"})
    again = asked(form_of(call))
    assert again == call


def test_the_body_to_copy_asks_the_same_and_shows_no_secret() -> None:
    """It is a body of `/suggest` as it stands."""
    secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"  # noqa: S105  # it only looks like one
    found = from_form(replace(TYPED, parameters=json.dumps({"topK": 50, "token": secret})))
    assert isinstance(found, SuggestRequest)
    body = body_of(found, DEFAULT_REDACTOR)
    assert secret not in body
    read = SuggestRequest.model_validate_json(body)
    assert read.execution.parameters["topK"] == 50
    assert read.execution.error == found.execution.error
