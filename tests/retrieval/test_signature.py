"""A signature is the words of a message, out of whatever is around them."""

import json

import pytest

from retrieval.knowledge.reading.signature import signature_of

CALL = {"city": "Oslo", "days": 3}
WORDS = "days must not be above the limit"


@pytest.mark.parametrize(
    "message",
    [
        WORDS,
        f"Error: {WORDS}",
        f"Error executing tool get_forecast: {WORDS}",
        f"MCP error -32602: {WORDS}",
        f"HTTP 422 Unprocessable Entity: {json.dumps({'detail': WORDS})}",
        json.dumps({"ok": False, "error": WORDS}),
        json.dumps({"error": {"code": "limit", "message": WORDS}}),
        json.dumps({"content": [{"type": "text", "text": WORDS}], "isError": True}),
        str({"ok": False, "error": WORDS}),
        f"<error><message>{WORDS}</message></error>",
        f'{WORDS}\n  File "/app/run.py", line 88, in call_tool\n    raise error',
        f"{WORDS}\n    at callTool (/app/dist/server.js:214:11)",
        f'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    f()\n'
        f"ValueError: {WORDS}",
        f"{WORDS}\n\nHint: read the documentation of the tool.",
        f"{json.dumps(CALL)}\n{WORDS}",
        f"{WORDS} Arguments: {json.dumps(CALL)}",
    ],
)
def test_no_envelope_is_a_part_of_the_words(message: str) -> None:
    assert signature_of(message, parameters=CALL, names=CALL) == WORDS


def test_errors_of_one_envelope_are_told_apart_by_their_words() -> None:
    one = signature_of('{"ok": false, "error": "Cannot decode byte"}')
    other = signature_of('{"ok": false, "error": "Render engine crashed"}')
    assert (one, other) == ("Cannot decode byte", "Render engine crashed")


def test_places_of_issues_are_told_apart() -> None:
    issues = [{"loc": ["body", name], "msg": "Field required"} for name in ("city", "days")]
    one, other = (signature_of(json.dumps({"detail": [issue]})) for issue in issues)
    assert (one, other) == ("city: Field required", "days: Field required")


def test_a_code_stands_for_words_where_there_are_none() -> None:
    assert signature_of('{"code": "E1042", "ok": false}') == "E1042"


def test_what_says_nothing_stays_as_it_is() -> None:
    assert signature_of("[]") == "[]"
    assert signature_of("") == ""
    assert signature_of("{" * 5_000) != ""
