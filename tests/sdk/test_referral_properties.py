"""Laws of referral metadata: whatever a tool gave, the result is strict, and twice is once."""

import enum
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aftercall.json_values import check_json_object
from aftercall.models import (
    MAX_AXES,
    MAX_AXIS_CHARS,
    MAX_SPLIT,
    MAX_WORDS_CHARS,
    ExecutionError,
    Referral,
)
from aftercall.outcomes import Outcome, normalised_details, referral_details, referral_of

FIELDS = ["boundary_axes", "observed_task_shape", "suggested_split", "evidence"]
STYLES = [
    "boundary_axes", "boundaryAxes", "BoundaryAxes", "boundary-axes", "Boundary Axes",
    "BOUNDARY_AXES", "boundary.axes", "boundaryAxis", "boundary_axis",
]  # fmt: skip

hostile_text = st.text(max_size=200) | st.sampled_from(
    [
        "\x00", "\ud800", "\u202eevil", "a\nb; c", "[1, 2]", '["x"', "👨‍👩‍👧", "x" * 5_000,
        "网络、解析", "\u200b", "a->b",
    ]
)  # fmt: skip
junk: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | hostile_text | st.binary(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=30)
        | st.dictionaries(hostile_text, inner, max_size=6)
        | st.tuples(inner)
        | st.frozensets(hostile_text, max_size=4)
    ),
    max_leaves=40,
)
details = st.dictionaries(st.sampled_from(FIELDS + STYLES) | hostile_text, junk, max_size=8)


def read(**fields: Any) -> Referral:
    return referral_of(Outcome.error("wrong_tool_boundary", "m", details=fields).error)


def through_the_wire(referral: Referral) -> Referral | None:
    details = referral_details(referral)
    return referral_of(ExecutionError(type="wrong_tool_boundary", message="m", details=details))


@given(details)
@example({"boundary_axes": ["evidence…"]})
def test_whatever_was_given_the_result_is_strict(given_details: dict[str, Any]) -> None:
    """Never raises; within the wire's bounds; plain JSON; the message is untouched.

    Normalised again it is the same, and so is the referral that is read of any of its forms.
    """
    error = Outcome.error("wrong_tool_boundary", "my words", details=given_details).error
    assert error.message == "my words"
    check_json_object(error.details)
    found = referral_of(error)
    assert len(found.boundary_axes) <= MAX_AXES
    assert len({axis.casefold() for axis in found.boundary_axes}) == len(found.boundary_axes)
    assert all(0 < len(axis) <= MAX_AXIS_CHARS for axis in found.boundary_axes)
    assert len(found.suggested_split) <= MAX_SPLIT
    texts = [*found.boundary_axes, *found.suggested_split, found.evidence or "x"]
    assert all(text == text.strip() and 0 < len(text) <= MAX_WORDS_CHARS for text in texts)
    assert not any(char in text for text in texts for char in "\x00\n\r\u202e")
    once = normalised_details(given_details)
    assert normalised_details(once) == once
    raw = ExecutionError.model_construct(type="low_utility", details=given_details)
    again = ExecutionError(type="low_utility", message="", details=once)
    assert referral_of(raw) == referral_of(again) == through_the_wire(found) == found


@given(st.builds(Referral, boundary_axes=st.just([])))
def test_the_form_of_the_wire_reads_back(referral: Referral) -> None:
    """`referral_details` and `referral_of` are each other's reverse."""
    assert through_the_wire(referral) == referral


@given(junk)
def test_a_serialised_success_is_never_read_as_a_failure(value: Any) -> None:
    """Neither is what a tool returned that is no mapping."""
    assert Outcome.coerce(Outcome.ok(value, status="error").to_dict()).is_ok
    if not isinstance(value, dict):
        assert Outcome.coerce(value).is_ok


@pytest.mark.parametrize("key", STYLES)
def test_any_style_of_key_is_read(key: str) -> None:
    """Snake, camel, kebab, spaces, case, and the singular."""
    assert read(**{key: ["transport"]}).boundary_axes == ["transport"]


class Axis(enum.Enum):
    TRANSPORT = "transport"


@pytest.mark.parametrize(
    ("axes", "found"),
    [
        ("transport", ["transport"]),
        ("transport, extraction", ["transport", "extraction"]),
        ("transport, extraction, and HTML parsing", ["transport", "extraction", "HTML parsing"]),
        ("transport + extraction", ["transport", "extraction"]),
        ("transport\n- extraction", ["transport", "extraction"]),
        ("1. transport; 2. extraction", ["transport", "extraction"]),
        ("网络、解析", ["网络", "解析"]),
        ("fetch, parse and render it", ["fetch, parse and render it"]),
        ("HTTP, which is not its business", ["HTTP, which is not its business"]),
        (["transport, extraction"], ["transport, extraction"]),
        (["Transport", "transport", " TRANSPORT "], ["Transport"]),
        ([{"name": "transport"}], ['{"name": "transport"}']),
        ([["transport"], ["extraction"]], ["transport", "extraction"]),
        (Axis.TRANSPORT, ["transport"]),
        (7, ["7"]), (None, []), (True, []), ([], []), ("", []), ("\u200b", []),
        ([None, "", "x"], ["x"]),
        (["👨‍👩‍👧", "transport\x00layer"], ["👨‍👩‍👧", "transport layer"]),
    ],
)  # fmt: skip
def test_values_are_read_for_what_they_unmistakably_are(axes: Any, found: list[str]) -> None:
    """A lone text is a list only where nobody could take it for a sentence."""
    assert read(boundary_axes=axes).boundary_axes == found


def test_several_words_for_one_field_become_one() -> None:
    """Lists are joined, and so are texts."""
    found = read(boundary_axes="transport", boundaryAxes=["extraction"], evidence=["a", "b"])
    assert (found.boundary_axes, found.evidence) == (["transport", "extraction"], "a; b")
    assert read(evidence={"status": 404}).evidence == '{"status": 404}'
