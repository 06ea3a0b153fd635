"""Arguments that came as a text: what is read, and what is left alone."""

import pytest

from aftercall.models import FailedCall
from retrieval.knowledge.values.notations import read_any_arguments, with_arguments


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('{"a": 1}', {"a": 1}),
        ("{'a': 'x', 'b': True}", {"a": "x", "b": True}),
        ('{a: "x", b: [1, 2,],}', {"a": "x", "b": [1, 2]}),
        ('```json\n{"a": "x"}\n```', {"a": "x"}),
        ('{"a": "x"} I hope this helps!', {"a": "x"}),
        ('{"a": "one\ntwo"}', {"a": "one\ntwo"}),
        ('{"a" "x", "b": 2}', {"a": "x", "b": 2}),
        # Only the bracket is missing, and every value is whole.
        ('{"a": {"b": "x"}, "c": false', {"a": {"b": "x"}, "c": False}),
    ],
)
def test_loose_json_is_read(text: str, read: dict[str, object]) -> None:
    """In whatever way a model writes it."""
    assert read_any_arguments(text) == read


@pytest.mark.parametrize(
    "text",
    ['{"a": "x", "b": "hal', '{"a": 1, "b": 12', '{"a": 1,', '{"a": tru', "", "hello", "[1]"],
)
def test_what_breaks_off_or_is_no_object_is_left(text: str) -> None:
    """Nobody knows how a text that breaks off in a value would go on."""
    assert read_any_arguments(text) is None


def test_a_call_has_the_object_that_its_text_says() -> None:
    """The text stays beside it, as it came."""
    call = FailedCall.model_validate(
        {"agent": "a", "toolName": "t", "parameters": "{'a': 1}", "error": {"message": "bad JSON"}}
    )
    read = with_arguments(call)
    assert read.parameters == {"a": 1}
    assert read.parameters_known
    assert read.arguments_text == "{'a': 1}"
