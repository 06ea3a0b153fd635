"""Both clients' methods for corrections, health, boundaries, recommendations and known tools."""

import json
from typing import Any
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.client.transport import query
from aftercall.errors import ProtocolError
from aftercall.redaction import Redactor
from tests.sdk.loopback import Loopback, Scripted

SECRET = "sk-live-abcdefghijklmnop1234"  # noqa: S105  # planted
AN_ID = "0b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d"
AT = "2026-02-20T14:30:00Z"

RECORDED = {
    "correctionId": AN_ID, "executionId": AN_ID, "serverName": "s", "toolName": "t",
    "tied": True, "duplicate": False,
}  # fmt: skip
KNOWN = {
    "correctionId": AN_ID, "executionId": AN_ID, "toolName": None, "kind": "low_utility",
    "text": "not films", "boundaryAxes": ["a"], "agent": None,
}  # fmt: skip
NONE = {"count": 0, "weight": 0.0}
HEALTH = {
    "tool": {"toolName": "t"}, "successes": NONE, "failures": NONE, "categories": [],
    "signatures": [], "repairs": {"attempts": 0, "succeeded": 0},
    "utility": {"lowUtility": NONE, "weakSuccesses": NONE, "corrections": NONE, "score": 1.0},
    "cohesion": {"score": None},
}  # fmt: skip
BOUNDARIES: dict[str, Any] = {"clusters": [], "coOccurrences": [], "tools": [], "unclustered": 2}
RECOMMENDATION = {
    "recommendationId": AN_ID, "kind": "split", "message": "m", "confidence": 0.9,
    "priority": 3.5, "evidence": {"counts": []},
}  # fmt: skip

CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any], str, Any]] = {
    "correct": (("not films",), {"execution_id": AN_ID}, "POST /corrections", RECORDED),
    "corrections": (
        (), {"tool_name": "a/b", "server_name": "s", "limit": 3},
        "GET /corrections?toolName=a%2Fb&serverName=s&limit=3",
        {"corrections": [KNOWN | {"at": AT}]},
    ),
    "tool_health": (("a/b",), {}, "GET /tools/a%2Fb/health", HEALTH),
    "boundaries": ((), {}, "GET /boundaries", BOUNDARIES),
    "recommendations": (
        (), {"state": "all", "tool_id": "a b", "kind": "split", "limit": 2},
        "GET /recommendations?state=all&toolId=a%20b&kind=split&limit=2",
        {"recommendations": [RECOMMENDATION]},
    ),
    "change_recommendation": (
        (AN_ID, "dismissed"), {"reason": "as meant"}, f"PUT /recommendations/{AN_ID}",
        RECOMMENDATION,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
async def test_each_method_asks_its_endpoint_and_reads_the_answer(
    call: Any, scripted: Scripted, name: str
) -> None:
    """The path exactly, and the answer as a model or a list of models."""
    args, options, line, answer = CALLS[name]
    scripted.answers(answer)
    got = await call(name, *args, **options)
    assert scripted.request[0] == line
    if isinstance(got, list):
        [got] = got
        [answer] = answer[next(iter(answer))]
    assert got.model_dump(mode="json", by_alias=True).keys() >= answer.keys()


async def test_questions_without_a_filter_have_no_query(call: Any, scripted: Scripted) -> None:
    """The service's own defaults count then."""
    for name in ("corrections", "recommendations"):
        scripted.answers({name: []})
        assert await call(name) == []
        assert scripted.request[0] == f"GET /{name}"


async def test_known_tools_are_text(call: Any, scripted: Scripted) -> None:
    """Each tool is a parameter of its own; a single name is one name, and none means all."""
    text = "<known_tools>\nfind_films(query) \u2013 \u2603\n</known_tools>"
    for args, options, asked in (
        ((["a", "b/c"],), {"max_tokens": 500, "namespace": "n"},
         "?tool=a&tool=b%2Fc&namespace=n&maxTokens=500&format=prompt"),
        (("abc",), {"format": "markdown"}, "?tool=abc&format=markdown"),
        ((), {}, "?format=prompt"),
    ):  # fmt: skip
        scripted.answers(text.encode())
        assert await call("known_tools", *args, **options) == text
        assert scripted.request[0] == f"GET /known-tools{asked}"
    scripted.answers(b"\xff\xfe")
    with pytest.raises(ProtocolError, match="UTF-8"):
        await call("known_tools")


async def test_a_correction_is_of_the_contract(call: Any, scripted: Scripted) -> None:
    """In camelCase, with an id of its own; a single axis is one axis."""
    scripted.answers(RECORDED)
    await call(
        "correct", "wrong page", session_id="s-1", tool_name="t", server_name="s",
        kind="wrong_tool_boundary", boundary_axes="transport", agent="me",
    )  # fmt: skip
    sent = scripted.request[1]
    assert sent.pop("correctionId") is not None
    assert sent == {
        "executionId": None, "sessionId": "s-1", "serverName": "s", "toolName": "t",
        "text": "wrong page", "kind": "wrong_tool_boundary", "boundaryAxes": ["transport"],
        "agent": "me", "timestamp": None,
    }  # fmt: skip
    scripted.answers(RECORDED)
    await call("correct", "x", execution_id=AN_ID, correction_id=AN_ID, boundary_axes=("a", "b"))
    assert scripted.request[1]["correctionId"] == AN_ID
    assert scripted.request[1]["boundaryAxes"] == ["a", "b"]


async def test_a_correction_that_is_sent_again_is_the_same(
    call: Any, scripted: Scripted, service: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client makes its id before the first attempt, so that it counts once."""
    monkeypatch.setattr("aftercall.client.transport.full_jitter_s", lambda *_, **__: 0.0)
    service.fail(lambda handler: handler.send_error_json(503, "busy"), times=2)
    scripted.answers(RECORDED)
    await call("correct", "not films", session_id="s-1")
    bodies = [json.loads(each.body) for each in service.requests]
    assert len(bodies) == 3
    assert bodies[0] == bodies[1] == bodies[2]
    assert bodies[0]["correctionId"] is not None


async def test_secrets_do_not_leave_the_process(
    call: Any, scripted: Scripted, service: Loopback
) -> None:
    """In a user's words, an axis or a reason; a session is named as its recorded calls name it."""
    told = f"with token={SECRET}"
    scripted.answers(RECORDED)
    await call("correct", told, session_id=SECRET, boundary_axes=[f"token={SECRET}"])
    assert SECRET not in service.requests[-1].body.decode()
    sent = scripted.request[1]
    assert "[redacted:string:17-32]" in sent["text"]
    assert sent["sessionId"] == Redactor().session_id(SECRET)
    scripted.answers(RECOMMENDATION)
    await call("change_recommendation", AN_ID, "dismissed", reason=told, changed_by="me")
    assert SECRET not in service.requests[-1].body.decode()
    assert scripted.request[1]["state"] == "dismissed"


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("x", {}, "name either"),
        ("x", {"execution_id": AN_ID, "session_id": "s"}, "name either"),
        ("x", {"execution_id": AN_ID, "tool_name": "t"}, "narrow a sessionId"),
        ("  \n", {"execution_id": AN_ID}, "must say something"),
        ("x" * 2_001, {"execution_id": AN_ID}, "2000"),
        ("x", {"execution_id": "one"}, "UUID"),
        ("x", {"session_id": "s", "boundary_axes": ["a"] * 21}, "20"),
        ("x", {"session_id": "s", "boundary_axes": ""}, "boundary_?[aA]xes"),
    ],
)
async def test_a_correction_that_cannot_be_one_is_not_sent(
    call: Any, service: Loopback, text: str, options: dict[str, Any], said: str
) -> None:
    """It is the caller's mistake."""
    with pytest.raises(ValueError, match=said):
        await call("correct", text, **options)
    assert service.requests == []


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c"]),
        st.text(st.characters(exclude_categories=["Cs"]))
        | st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=4),
    )
)
def test_a_query_reads_back_as_it_was(fields: dict[str, str | list[str]]) -> None:
    """Whatever the texts hold; a list stands there once for each of its members."""
    said = parse_qs(query(fields).removeprefix("?"), keep_blank_values=True, strict_parsing=False)
    wanted = {name: [each] if isinstance(each, str) else each for name, each in fields.items()}
    assert said == {name: each for name, each in wanted.items() if each}
