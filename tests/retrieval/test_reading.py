"""Reading an error: real messages of real validators."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import ExecutionError
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.reading.reader import read_error
from retrieval.knowledge.reading.signature import hide_word

PYDANTIC = (
    "Error executing tool convert_time: 2 validation errors for convert_timeArguments\n"
    "source_timezone\n  Field required [type=missing, input_value={'source_tz': 'Europe/Ber...'}, "
    "input_type=dict]\n    For further information visit https://errors.pydantic.dev/2.14/v/missing\n"
    "max_count\n  Input should be a valid integer, unable to parse string as an integer "
    "[type=int_parsing, input_value='five', input_type=str]\n"
)


def faults(message: str, parameters: dict[str, object] | None = None) -> tuple[Fault, ...]:
    return read_error(ExecutionError(message=message), parameters or {}).faults  # type: ignore[arg-type]  # plain JSON


def test_a_zod_issue_list_inside_the_text_is_read() -> None:
    """MCP servers in TypeScript send zod's issues as JSON in the message."""
    call = {"topK": "5", "q": "x", "limit": 50, "mode": "c"}
    issues = [
        {"code": "invalid_type", "expected": "number", "received": "string", "path": ["topK"]},
        {"code": "unrecognized_keys", "keys": ["q"], "path": []},
        {"code": "too_big", "maximum": 10, "type": "number", "path": ["limit"]},
        {"code": "invalid_enum_value", "options": ["a", "b"], "path": ["mode"]},
    ]
    found = faults(f"MCP error -32602: Invalid arguments: {json.dumps(issues)}", call)
    assert [(fault.kind, fault.path) for fault in found] == [
        ("wrong_type", ("topK",)),
        ("unexpected", ("q",)),
        ("out_of_range", ("limit",)),
        ("not_allowed", ("mode",)),
    ]
    assert found[2].maximum == 10
    assert found[3].allowed == ("a", "b")


@pytest.mark.parametrize(
    ("message", "faults"),
    [
        (PYDANTIC, [("missing", ("source_timezone",)), ("wrong_type", ("max_count",))]),
        ("limit should be a number, and offset must be at least 1",
         [("wrong_type", ("limit",)), ("out_of_range", ("offset",))]),
        # Which of two whole numbers is meant, nobody says.
        ("object of type 'int' has no len()", []),
        # Laravel, Django REST and Rails map each field to its texts.
        ('{"message": "The given data was invalid.", "errors": {"device_id": ["The device id field '
         'is required."]}}', [("missing", ("device_id",))]),
        ('400: {"city": ["This field is required."], "days": ["A valid integer is required."]}',
         [("missing", ("city",)), ("wrong_type", ("days",))]),
        ('{"errors": {"name": "is required"}}', [("missing", ("name",))]),
        ('{"name": "x", "texts": ["This field is required."]}', []),
        ('400: {"town": ["Paris"]}', []),
    ],
)  # fmt: skip
def test_each_fault_that_a_message_tells_of_is_read(
    message: str, faults: list[tuple[str, tuple[str, ...]]]
) -> None:
    """With its place, and nothing else."""
    call = {"town": "Paris", "source_tz": "Europe/Berlin", "max_count": "five", "limit": "x"}
    reading = read_error(ExecutionError(message=message), call | {"offset": 0, "page": 1})
    assert [(each.kind, each.path) for each in reading.faults] == faults


def test_what_a_tool_says_of_itself_is_never_overruled() -> None:
    """A typed referral stays one, whatever its message looks like."""
    error = ExecutionError(
        type="wrong_tool_boundary", message="validation error: topK must be <= 10"
    )
    assert read_error(error, {}).category == "wrong_tool_boundary"


def test_like_errors_share_a_signature() -> None:
    """Numbers, quoted values and the call's own values are masked; parameter names are not."""
    first = read_error(ExecutionError(message="Ref 'mian' did not resolve"), {"revision": "mian"})
    other = read_error(ExecutionError(message="Ref 'x/y' did not resolve"), {"revision": "x/y"})
    assert first.signature == other.signature == "Ref <v> did not resolve"
    limit = read_error(ExecutionError(message="topK must be <= 10"), {"topK": 5})
    assert limit.signature == "topK must be <= <n>"


def test_server_frames_do_not_split_signatures() -> None:
    """The same words behind `Error executing tool ...:` are the same failure."""
    plain = read_error(ExecutionError(message="No item found with id master"), {})
    framed = read_error(
        ExecutionError(message="Error executing tool git_x: No item found with id master"), {}
    )
    assert plain.signature == framed.signature


def test_a_message_of_a_mebibyte_is_cut_not_chewed() -> None:
    """Length alone changes nothing: only the first part is read."""
    message = "topK must be <= 10. " + "x'" * 524_288
    reading = read_error(ExecutionError(message=message), {"topK": 50})
    assert reading.faults[0].maximum == 10


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ("failed: GET https://api.example.com/repos/rivetlabs: 404 Not Found []", ("owner",)),
        ("no such repository rivetlabs", ("owner",)),
        ("rivetlabs has no repository parser: not found", ()),
        ("404 Not Found", ()),
    ],
)
def test_what_was_not_found_is_the_only_value_of_the_call_in_the_message(
    message: str, place: tuple[str, ...]
) -> None:
    """Also where the message names no parameter; of two values neither is meant."""
    call = {"owner": "rivetlabs", "repo": "parser", "page": 4}
    faults = read_error(ExecutionError(message=message), call).faults
    assert {fault.path for fault in faults} <= {place, ()}
    assert any(fault.path == place for fault in faults) or not place


_SIGNS = "ab_\u00e9 -'=:."


@given(text=st.text(_SIGNS, max_size=14), value=st.text(_SIGNS, min_size=1, max_size=3))
def test_a_value_is_hidden_where_a_pattern_of_it_would_find_it(text: str, value: str) -> None:
    """As a word of its own; where it is to be told as a value, behind a sign that tells it."""
    found = re.escape(value)
    assert hide_word(text, value) == re.sub(rf"(?<!\w){found}(?!\w)", "<v>", text)
    if value.isalnum():
        told = re.sub(rf"(['\"`=:] ?){found}(?!\w)", r"\1<v>", text)
        assert hide_word(text, value, told=True) == told
