"""Each method of the clients: what it sends, what it reads, and what it refuses to send."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.client.transport import query_string
from aftercall.errors import ProtocolError, ServiceFailedError
from aftercall.models import Execution, ForgetRequest, KeySpec, NamedTool, Promotion, ToolSpec
from aftercall.promotions_file import parse_promotions
from aftercall.redaction import Redactor
from tests.sdk.loopback import Loopback

SECRET = "sk-live-abcdefghijklmnop1234"  # noqa: S105  # planted
TOLD = f"with token={SECRET}"
AN_ID = "0b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d"

FILE = {
    "n": {
        "evolved_version": "1.1.0", "evolved_file": "t_v1_1.py", "original_version": "1.0.0",
        "reason": "slow", "mutation": "cache", "promoted_at": "2024-01-15T10:00:00Z",
    }
}  # fmt: skip
PROMOTED = Promotion.model_validate(FILE["n"])
ON_SERVER = {"tool_name": "a/b", "server_name": "s"}

CALLS = json.loads((Path(__file__).parent / "data" / "client_calls.json").read_text())
"""Calls of every method, the line of the request each makes, and what is answered."""

MADE: dict[str, Callable[[list[Any]], list[Any]]] = {
    "promote": lambda _: ["n", PROMOTED],
    "import_promotions": lambda _: [{"n": PROMOTED}],
    "create_key": lambda args: [KeySpec.model_validate(*args)],
    "forget": lambda args: [ForgetRequest.model_validate(*args)],
}
"""Arguments that are models."""

ANSWERS = {call["method"]: call["answer"] for call in reversed(CALLS)}


@pytest.mark.parametrize("row", CALLS, ids=[each["request"] for each in CALLS])
async def test_each_method_asks_its_endpoint_and_reads_the_answer(
    call: Any, service: Loopback, row: dict[str, Any]
) -> None:
    """The path exactly, without what is not asked; the answer as a model or a list of models.

    Fields of a later service are no reason to fail.
    """
    name, answer = row["method"], row["answer"]
    args = MADE.get(name, list)(row["args"])
    service.answers(answer if answer is None else answer | {"fromALaterService": 1})
    got = await call(name, *args, **row["options"])
    assert service.last[0] == row["request"]
    if isinstance(got, list):
        [got], [answer] = got, answer[next(iter(answer))]
    shown = None if got is None else got.model_dump(mode="json", by_alias=True)
    assert (shown is None) == (answer is None)
    assert answer is None or shown.keys() >= answer.keys()


async def test_bodies_are_of_the_contract(call: Any, service: Loopback) -> None:
    """In camelCase; promotions files in their own form; a correction has an id of its own."""
    promotion = PROMOTED.model_dump(mode="json", by_alias=True)
    for name, args, options, body in (
        ("find_tools", ("say hi",), {},
         {"scenario": "say hi", "tags": [], "limit": 5, "mode": "fitness", "explore": False}),
        ("import_promotions", ({"n": PROMOTED},), {}, FILE),
        ("promote", ("n", PROMOTED), {}, promotion),
        ("report_outcome", (AN_ID,), {"outcome": "success", "execution_id": AN_ID},
         {"outcome": "success", "executionId": AN_ID}),
        ("similar", ("rag_query",), {"parameters": {"topK": 5}},
         {"toolName": "rag_query", "serverName": None, "context": None, "parameters": {"topK": 5},
          "outcome": "success", "agent": None, "signature": None, "limit": 5}),
        ("correct", ("wrong page",), {
            "session_id": "s-1", **ON_SERVER, "kind": "wrong_tool_boundary",
            "boundary_axes": "transport", "agent": "me", "correction_id": AN_ID,
         }, {
            "correctionId": AN_ID, "executionId": None, "sessionId": "s-1", "serverName": "s",
            "toolName": "a/b", "text": "wrong page", "kind": "wrong_tool_boundary",
            "boundaryAxes": ["transport"], "agent": "me", "timestamp": None,
         }),
    ):  # fmt: skip
        if name in ANSWERS:  # what is not there, the loopback service answers itself
            service.answers(ANSWERS[name])
        await call(name, *args, **options)
        assert service.last[1] == body
    service.answers(FILE)
    assert await call("export_promotions") == parse_promotions(json.dumps(FILE))


async def test_known_tools_are_text(call: Any, service: Loopback) -> None:
    """Each tool is a parameter of its own; a single name is one name, and none means all."""
    text = "<known_tools>\nfind_films(query) \u2013 \u2603\n</known_tools>"
    for args, options, asked in (
        ((["a", "b/c"],), {"max_tokens": 500, "namespace": "n"},
         "?tool=a&tool=b%2Fc&namespace=n&maxTokens=500&format=prompt"),
        (("abc",), {"format": "markdown"}, "?tool=abc&format=markdown"),
        ((), {}, "?format=prompt"),
    ):  # fmt: skip
        service.answers(text.encode())
        assert await call("known_tools", *args, **options) == text
        assert service.last[0] == f"GET /known-tools{asked}"
    service.answers(b"\xff\xfe")
    with pytest.raises(ProtocolError, match="UTF-8"):
        await call("known_tools")


async def test_learned_contracts_are_asked_for_a_hundred_at_a_time(
    call: Any, service: Loopback
) -> None:
    """Each tool is a parameter of its own; what is learned of all comes back as one list."""
    sentence = {"text": "Leave out `a`.", "failures": 3, "confidence": 0.9, "alone": False}
    for _ in range(2):
        service.answers({"contracts": [{"toolName": "t", "sentences": [sentence]}]})
    found = await call("learned_contracts", [f"s/t{number}" for number in range(101)])
    assert [each.sentences[0].text for each in found] == ["Leave out `a`."] * 2
    assert service.last[0] == "GET /known-tools/contracts?tool=s%2Ft100"


@pytest.mark.parametrize(
    ("name", "args", "key"),
    [("mark_failure", ("t", "say hi", "broke"), "markId"), ("correct", ("films",), "correctionId")],
)
async def test_what_is_sent_again_is_the_same(
    call: Any,
    service: Loopback,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    args: tuple[str, ...],
    key: str,
) -> None:
    """The client makes the id before the first attempt, so that it counts once."""
    monkeypatch.setattr("aftercall.client.transport.full_jitter_s", lambda *_, **__: 0.0)
    service.fail(lambda handler: handler.send_error_json(503, "busy"), times=2)
    service.answers(ANSWERS[name])
    await call(name, *args, execution_id=AN_ID)
    bodies = [json.loads(each.body) for each in service.requests]
    assert len(bodies) == 3
    assert bodies[0] == bodies[1] == bodies[2]
    assert bodies[0][key] is not None


async def test_a_rollback_is_never_sent_twice(call: Any, service: Loopback) -> None:
    """Two of them would go back twice."""
    service.fail(lambda handler: handler.send_error_json(503, "busy"), times=1)
    with pytest.raises(ServiceFailedError):
        await call("rollback_promotion", "n")
    assert len(service.requests) == 1


async def test_secrets_do_not_leave_the_process(
    call: Any, service: Loopback, new_execution: Callable[..., Execution]
) -> None:
    """Of calls, tools, scenarios, errors, promotions and users; a session keeps one name."""
    secret = PROMOTED.model_copy(update={"reason": TOLD, "mutation": TOLD})
    error = {"type": "ValidationError", "message": TOLD}
    parameters = {"apiKey": SECRET, "query": "x"}
    failed = new_execution(parameters=parameters, outcome="failure", error=error)
    tool = ToolSpec(name="login", description=TOLD, implementation={"apiKey": SECRET})
    for name, args, options in (
        ("record", ([failed],), {}),
        ("suggest", (failed,), {}),
        ("similar", ("rag_query",), {"parameters": parameters, "context": TOLD}),
        ("put_tool", ("login", tool), {}),
        ("put_tools", ([NamedTool(tool_id="login", **dict(tool))],), {}),
        ("best_tool", ("n", TOLD), {}),
        ("find_tools", (TOLD,), {}),
        ("mark_failure", ("t", TOLD, TOLD), {}),
        ("promote", ("n", secret), {}),
        ("import_promotions", ({"n": secret},), {}),
        ("find_evolutions", (TOLD,), {}),
        ("tool_failures", ("t",), {"scenario": TOLD}),
        ("change_recommendation", (AN_ID, "dismissed"), {"reason": TOLD}),
        ("correct", (TOLD,), {"session_id": SECRET, "boundary_axes": [TOLD]}),
    ):
        if name in ANSWERS:
            service.answers(ANSWERS[name])
        await call(name, *args, **options)
        last = service.requests[-1]
        sent = unquote(last.path) + last.body.decode()
        assert SECRET not in sent, name
        assert "[redacted:string:17-32]" in sent, name
    assert service.last[1]["sessionId"] == Redactor().session_id(SECRET)
    assert failed.parameters == parameters


LONG = "\u4e2d" * 10_000


@pytest.mark.parametrize(
    ("name", "args", "options", "said"),
    [
        ("correct", ("x",), {}, "name either"),
        ("correct", ("x",), {"execution_id": AN_ID, "session_id": "s"}, "name either"),
        ("correct", ("x",), {"execution_id": AN_ID, "tool_name": "t"}, "narrow a sessionId"),
        ("correct", ("  \n",), {"execution_id": AN_ID}, "must say something"),
        ("correct", ("x" * 2_001,), {"execution_id": AN_ID}, "2000"),
        ("correct", ("x",), {"execution_id": "one"}, "UUID"),
        ("correct", ("x",), {"session_id": "s", "boundary_axes": ["a"] * 21}, "20"),
        ("correct", ("x",), {"session_id": "s", "boundary_axes": ""}, "boundary_?[aA]xes"),
        ("find_tools", ("  ",), {}, "scenario"),
        ("mark_failure", ("t", "x" * 10_001, "e"), {}, "scenario"),
        ("find_evolutions", ("",), {}, "scenario"),
        ("best_tool", ("n", LONG), {}, "in fewer words"),
        ("agent_statistics", ("",), {}, "empty"),
    ],
)
async def test_what_cannot_be_asked_is_not_sent(
    call: Any, service: Loopback, name: str, args: tuple[str], options: dict[str, Any], said: str
) -> None:
    """It is the caller's mistake."""
    with pytest.raises(ValueError, match=said):
        await call(name, *args, **options)
    assert service.requests == []


@pytest.mark.parametrize(
    "body", [[], {"n": {"reason": "x"}}, {"n": FILE["n"] | {"evolved_file": "../x"}}]
)
async def test_promotions_of_something_else_are_a_protocol_error(
    call: Any, service: Loopback, body: Any
) -> None:
    """What would be refused in a file is not taken from a service."""
    service.answers(body)
    with pytest.raises(ProtocolError, match="no promotions of the contract"):
        await call("export_promotions")


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c"]),
        st.text(st.characters(exclude_categories=["Cs"]))
        | st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=4),
    )
)
def test_a_query_reads_back_as_it_was(fields: dict[str, str | list[str]]) -> None:
    """Whatever the texts hold; a list stands there once for each of its members."""
    said = parse_qs(
        query_string(fields).removeprefix("?"), keep_blank_values=True, strict_parsing=False
    )
    wanted = {name: [each] if isinstance(each, str) else each for name, each in fields.items()}
    assert said == {name: each for name, each in wanted.items() if each}
