"""Arguments that are a text: what is read, what is left alone, and what becomes of the call."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.arguments import INVALID_ARGUMENTS, READ_NOTE, arguments_of, read_arguments
from aftercall.json_values import JsonObject, printable_json
from aftercall.redaction import REDACTED, Redactor
from aftercall.reflection import call_with_reflection, call_with_reflection_sync
from tests.sdk.scripted_advice import TOP_K, AsyncScripted, Records, SyncScripted, answer

CODE = "def f():\n    return {1: 2}\n"
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("{'a': 'x', 'b': True, 'c': None}", {"a": "x", "b": True, "c": None}),
        ('{"a": [1, 2,], "b": "c,}",}', {"a": [1, 2], "b": "c,}"}),
        ('```json\n{"a": "x"}\n```', {"a": "x"}),
        ('"{\\"a\\": {\\"b\\": 1}}"', {"a": {"b": 1}}),
        ("\"{'a': 1}\"", {"a": 1}),
        ('{a: "x", b: -3.50, c: 1e5}', {"a": "x", "b": -3.5, "c": 1e5}),
        ('{"a": "say "hi" now", "b": 2}', {"a": 'say "hi" now', "b": 2}),
        (f'{{"path": "a.py", "content": "{CODE}",}}', {"path": "a.py", "content": CODE}),
        ('Sure! {"a": "b"} I hope this helps.', {"a": "b"}),
    ],
)
def test_loose_json_is_its_object(text: str, read: JsonObject) -> None:
    """Every value is the one that was written, blanks at its ends included."""
    assert read_arguments(text) == read
    assert (arguments_of(text).parameters, arguments_of(text).note) == (read, READ_NOTE)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "x", "b": "hal',
        '{"a": 1, "b": 12',
        '{"a": 1',
        '{"a": {"b": "x"}, "c": false',
        '{"a": [1, 2}',
        '{"path": "a.c", "content": "if (x) { }}',
        '```json\n{"a": "x", "b": "hal\n```',
        '"{\\"a\\": 1',
    ],
)
def test_what_is_cut_off_is_never_completed(text: str) -> None:
    """An open bracket or quote may have had anything behind it."""
    assert arguments_of(text).parameters is None
    assert arguments_of(text).recorded_fields() == {
        "parameters": {},
        "parameters_known": False,
        "arguments_text": text,
    }


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 5 kg}',
        '{"a": "x", "b"}',
        '{"a": "x", "b":}',
        '{"a": "1" "2"}',
        '{"a": 010}',
        '{"a": 1} {"b": 2}',
        '{"a": {"b": 1} {"c": 2}}',
        '{"a": "C:\\Users\\new"}',
        "{'a': 'C:\\dir\\new'}",
        f'{{path: "a.py", "content": "{CODE}"}}',
        "[1]",
        "hello",
        '{"a": ' * 5000 + "1" + "}" * 5000 + ",",
    ],
)
def test_what_would_lose_or_change_a_value_is_not_read(text: str) -> None:
    """No word and no blank of a text is left out, and no value is made up."""
    assert read_arguments(text) is None


@given(
    st.dictionaries(
        st.text("abc_ é'", min_size=1),
        st.recursive(
            st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
            lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
            max_leaves=8,
        ),
    )
)
def test_whatever_python_prints_is_read_as_it_was(written: dict[str, Any]) -> None:
    """`str` of a dictionary is what a framework in Python often sends; and JSON is itself."""
    clean = arguments_of(printable_json(written))
    assert (clean.parameters, clean.text) == (written, None)
    read = read_arguments(repr(written))
    assert read == written


@pytest.mark.parametrize("piece", ['\\"', "\\'", "\"'", " ", "{", "w ", ",", "\\", "```"])
def test_no_text_takes_long(piece: str) -> None:
    """64 KiB of whatever is read or given up in a moment; it was 40 s."""
    begun = time.perf_counter()
    read_arguments('{a: "' + piece * (60_000 // len(piece)) + "}")
    assert time.perf_counter() - begun < 5


async def test_a_call_with_a_loose_text_is_made_with_its_object() -> None:
    """The note says so; recorded is what was sent, and the text that came."""
    records, sent = Records(), []

    async def tool(parameters: JsonObject) -> str:
        sent.append(parameters)
        return "done"

    result = await call_with_reflection(
        tool, tool_name="t", parameters="{'a': 1,}", agent="ada",
        client=AsyncScripted(), recorder=records,
    )  # fmt: skip
    assert (sent, result.succeeded) == ([{"a": 1}], True)
    assert result.note == f"succeeded; {READ_NOTE}"
    (recorded,) = records.executions
    assert (recorded.parameters, recorded.arguments_text) == ({"a": 1}, "{'a': 1,}")


def test_a_read_call_that_fails_is_repaired_as_any_other() -> None:
    """The question is about the object, so the changes are made to it."""
    records, service = Records(), SyncScripted(answer(TOP_K))

    def tool(parameters: JsonObject) -> str:
        if parameters["top_k"] > 10:
            raise ValueError("top_k must be <= 10")
        return "done"

    result = call_with_reflection_sync(
        tool, tool_name="t", parameters="{'query': 'x', 'top_k': 50}", agent="ada",
        client=service, recorder=records,
    )  # fmt: skip
    assert (result.repaired, result.note) == (True, f"repaired via reflection; {READ_NOTE}")
    assert (service.asked[0].parameters["top_k"], service.asked[0].arguments_text) == (50, None)
    texts = [each.arguments_text for each in records.executions]
    assert texts == ["{'query': 'x', 'top_k': 50}", None]


def test_a_cut_off_call_is_not_made_and_recorded_as_failed() -> None:
    """Whatever the service proposes for it, nothing is called."""
    records = Records()
    text = '{"query": "x", "password": "hunter2hunter2", "top_k": 1'
    result = call_with_reflection_sync(
        lambda _: pytest.fail("it was called"), tool_name="t", parameters=text,
        agent="ada", client=SyncScripted(answer(TOP_K)), recorder=records,
    )  # fmt: skip
    assert (result.succeeded, len(records.executions)) == (False, 1)
    assert "a text that says no object" in result.note
    (recorded,) = records.executions
    assert recorded.error is not None
    assert (recorded.error.type, recorded.arguments_text) == (INVALID_ARGUMENTS, text)
    masked = Redactor.create().call(recorded).arguments_text or ""
    assert "hunter2" not in masked
    assert '"query": "x"' in masked


def test_the_text_of_a_tool_with_an_allowlist_is_masked_whole() -> None:
    """Nothing in a text says which of its parts are allowed."""
    redactor = Redactor.create(allowlists={"t": ["top_k"]})
    records = Records()
    call_with_reflection_sync(
        lambda _: None, tool_name="t", parameters='{"query": "private", "top', agent="ada",
        client=SyncScripted(answer()), recorder=records,
    )  # fmt: skip
    assert redactor.call(records.executions[0]).arguments_text == REDACTED
