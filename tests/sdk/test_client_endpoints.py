"""Each method of the clients: what it sends, what it reads, and what it refuses to send."""

import json
from typing import Any
from urllib.parse import parse_qs, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.client.transport import query
from aftercall.errors import ProtocolError, ServiceFailedError
from aftercall.models import Promotion
from aftercall.promotions_file import parse_promotions
from aftercall.redaction import Redactor
from tests.sdk.loopback import Loopback, Scripted

SECRET = "sk-live-abcdefghijklmnop1234"  # noqa: S105  # planted
TOLD = f"with token={SECRET}"
AN_ID = "0b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d"
AT = "2026-02-20T14:30:00Z"

TOOL = {"toolId": "t", "name": "t", "updatedAt": AT, "isEvolved": True}
RANKED = {
    "tool": TOOL, "score": 0.9, "source": "original",
    "factors": {"base": 0.9, "quality": 1.0, "failureDemotion": 1.0},
}  # fmt: skip
FOUND = {"candidates": [RANKED], "threshold": 0.2, "mode": "fitness"}
MARKED = {
    "markId": AN_ID, "toolId": "t", "version": None, "severity": "high", "duplicate": False,
    "quality": 0.9,
}  # fmt: skip
FAILURE = {"scenario": "s", "similarity": 0.5, "weight": 1.0, "at": AT}
PROMOTION = {
    "evolvedVersion": "1.1.0", "evolvedFile": "t_v1_1.py", "originalVersion": "1.0.0",
    "reason": "slow", "mutation": "cache", "promotedAt": "2024-01-15T10:00:00Z",
}  # fmt: skip
TRIALS = {"version": "1.0.0", "successes": 1, "failures": 0, "quality": 1.0}
STATUS = PROMOTION | {
    "namespace": "n", "inheritedQuality": 1.0, "evolved": TRIALS, "original": TRIALS,
    "failsMore": False, "probability": 0.5,
}  # fmt: skip
HISTORY = {
    "namespace": "n", "changes": [{"at": AT, "action": "rolled_back", "promotion": None}],
}  # fmt: skip
FILE = {
    "n": {
        "evolved_version": "1.1.0", "evolved_file": "t_v1_1.py", "original_version": "1.0.0",
        "reason": "slow", "mutation": "cache", "promoted_at": "2024-01-15T10:00:00Z",
    }
}  # fmt: skip
RECEIPT = {"added": ["n"], "changed": [], "removed": [], "unchanged": [], "unknownNamespaces": []}
PROMOTED = Promotion.model_validate(PROMOTION)
RECORDED = {
    "correctionId": AN_ID, "executionId": AN_ID, "serverName": "s", "toolName": "t",
    "tied": True, "duplicate": False,
}  # fmt: skip
KNOWN = {
    "correctionId": AN_ID, "executionId": AN_ID, "toolName": None, "kind": "low_utility",
    "text": "not films", "boundaryAxes": ["a"], "agent": None, "at": AT,
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
WINDOW = {"window": "24h", "since": "2026-03-01T00:00:00Z", "until": "2026-03-01T12:00:00Z"}
PATTERN = {
    "patternId": "p-1", "tool": {"toolName": "t"}, "category": "timeout", "signature": "slow",
    "count": 3,
}  # fmt: skip
CALLED = {"successes": 0, "failures": 0}
EFFECT = {"firstAttempts": CALLED, "tasks": CALLED, "retries": CALLED, "suggested": CALLED}
TREND = {**WINDOW, "step": "hour", "points": []}
AGENT = {**WINDOW, "agent": "a/b", "usage": {"agent": "a/b"}}
ON_SERVER = {"tool_name": "a/b", "server_name": "s"}

CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any], str, Any]] = [
    (
        "namespaces", (), {}, "GET /namespaces",
        {"namespaces": [{"namespace": "n", "toolIds": ["t"]}]},
    ),
    (
        "best_tool", ("a/b", "say hi & bye"), {"use_rag": False, "mode": "thompson", "limit": 3},
        "GET /namespaces/a%2Fb/best"
        "?scenario=say%20hi%20%26%20bye&useRag=false&mode=thompson&limit=3",
        FOUND | RANKED,
    ),
    ("find_tools", ("say hi",), {"tags": ["x"], "limit": 2}, "POST /tools/find", FOUND),
    (
        "mark_failure", ("a/b", "say hi", "broke"), {"severity": "high"},
        "POST /tools/a%2Fb/failures", MARKED,
    ),
    (
        "tool_failures", ("t",), {"scenario": "x", "limit": 2},
        "GET /tools/t/failures?scenario=x&limit=2", {"failures": [FAILURE]},
    ),
    ("get_tool", ("t",), {"use_evolved": True}, "GET /tools/t?useEvolved=true", TOOL),
    ("promote", ("n", PROMOTED), {}, "PUT /namespaces/n/promotion", STATUS),
    ("get_promotion", ("n",), {}, "GET /namespaces/n/promotion", STATUS),
    ("remove_promotion", ("n",), {}, "DELETE /namespaces/n/promotion", None),
    ("rollback_promotion", ("n",), {}, "POST /namespaces/n/promotion/rollback", HISTORY),
    ("promotion_history", ("n",), {}, "GET /namespaces/n/promotion/history", HISTORY),
    ("import_promotions", ({"n": PROMOTED},), {}, "PUT /promotions", RECEIPT),
    (
        "find_evolutions", ("say hi",), {"limit": 1}, "POST /evolutions/find",
        {"evolutions": [{"namespace": "n", "promotion": PROMOTION, "similarity": 0.4}]},
    ),
    ("correct", ("not films",), {"execution_id": AN_ID}, "POST /corrections", RECORDED),
    (
        "corrections", (), {**ON_SERVER, "limit": 3},
        "GET /corrections?toolName=a%2Fb&serverName=s&limit=3", {"corrections": [KNOWN]},
    ),
    ("corrections", (), {}, "GET /corrections", {"corrections": [KNOWN]}),
    ("tool_health", ("a/b",), {}, "GET /tools/a%2Fb/health", HEALTH),
    ("boundaries", (), {}, "GET /boundaries", BOUNDARIES),
    (
        "recommendations", (), {"state": "all", "tool_id": "a b", "kind": "split", "limit": 2},
        "GET /recommendations?state=all&toolId=a%20b&kind=split&limit=2",
        {"recommendations": [RECOMMENDATION]},
    ),
    (
        "change_recommendation", (AN_ID, "dismissed"), {"reason": "as meant"},
        f"PUT /recommendations/{AN_ID}", RECOMMENDATION,
    ),
    ("patterns", (), {}, "GET /patterns", {"patterns": [PATTERN], "consolidatedAt": None}),
    (
        "patterns", (), {**ON_SERVER, "category": "timeout", "limit": 3},
        "GET /patterns?toolName=a%2Fb&serverName=s&category=timeout&limit=3",
        {"patterns": [PATTERN]},
    ),
    ("totals", (), {}, "GET /stats/totals", {"windows": []}),
    ("usage", (), {}, "GET /stats/usage?window=24h", {"window": "24h"}),
    # Fields of a later service are no reason to fail.
    ("usage", ("30d",), {"limit": 5}, "GET /stats/usage?window=30d&limit=5", {"window": "30d"}),
    ("trend", (), {}, "GET /stats/trend?window=24h", TREND),
    (
        "trend", ("7d",), ON_SERVER, "GET /stats/trend?window=7d&toolName=a%2Fb&serverName=s",
        TREND,
    ),
    (
        "latency", ("7d",), ON_SERVER, "GET /stats/latency?window=7d&toolName=a%2Fb&serverName=s",
        TREND,
    ),
    (
        "tool_statistics", ("7d",), {"limit": 2}, "GET /stats/tools?window=7d&limit=2",
        {**WINDOW, "tools": []},
    ),
    ("agent_statistics", ("a/b",), {}, "GET /stats/agents/a%2Fb?window=24h", AGENT),
    ("reflection", ("30d",), {}, "GET /stats/reflection?window=30d", {**WINDOW, **EFFECT}),
    (
        "pattern_statistics", (), {"limit": 3}, "GET /stats/patterns?window=24h&limit=3",
        {**WINDOW, "patterns": []},
    ),
    (
        "pattern_history", ("p-1",), {}, "GET /stats/patterns/p-1?window=30d",
        {**WINDOW, "pattern": PATTERN, "points": []},
    ),
    ("confidence", (), {}, "GET /stats/confidence", {"judged": 0, "bins": []}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "args", "options", "line", "answer"), CALLS, ids=[each[3] for each in CALLS]
)
async def test_each_method_asks_its_endpoint_and_reads_the_answer(
    call: Any,
    scripted: Scripted,
    name: str,
    args: tuple[Any, ...],
    options: dict[str, Any],
    line: str,
    answer: Any,
) -> None:
    """The path exactly, without what is not asked; the answer as a model or a list of models."""
    scripted.answers(answer if answer is None else answer | {"fromALaterService": 1})
    got = await call(name, *args, **options)
    assert scripted.request[0] == line
    if isinstance(got, list):
        [got], [answer] = got, answer[next(iter(answer))]
    shown = None if got is None else got.model_dump(mode="json", by_alias=True)
    assert (shown is None) == (answer is None)
    assert answer is None or shown.keys() >= answer.keys()


async def test_bodies_are_of_the_contract(call: Any, scripted: Scripted) -> None:
    """In camelCase; promotions files in their own form; a correction has an id of its own."""
    for name, args, options, answer, body in (
        ("find_tools", ("say hi",), {}, FOUND,
         {"scenario": "say hi", "tags": [], "limit": 5, "mode": "fitness"}),
        ("import_promotions", ({"n": PROMOTED},), {}, RECEIPT, FILE),
        ("promote", ("n", PROMOTED), {}, STATUS, PROMOTION),
        ("correct", ("wrong page",), {
            "session_id": "s-1", **ON_SERVER, "kind": "wrong_tool_boundary",
            "boundary_axes": "transport", "agent": "me", "correction_id": AN_ID,
         }, RECORDED, {
            "correctionId": AN_ID, "executionId": None, "sessionId": "s-1", "serverName": "s",
            "toolName": "a/b", "text": "wrong page", "kind": "wrong_tool_boundary",
            "boundaryAxes": ["transport"], "agent": "me", "timestamp": None,
         }),
    ):  # fmt: skip
        scripted.answers(answer)
        await call(name, *args, **options)
        assert scripted.request[1] == body
    scripted.answers(FILE)
    assert await call("export_promotions") == parse_promotions(json.dumps(FILE))


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


@pytest.mark.parametrize(
    ("name", "args", "answer", "key"),
    [
        ("mark_failure", ("t", "say hi", "broke"), MARKED, "markId"),
        ("correct", ("not films",), RECORDED, "correctionId"),
    ],
)
async def test_what_is_sent_again_is_the_same(
    call: Any,
    scripted: Scripted,
    service: Loopback,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    args: tuple[str, ...],
    answer: Any,
    key: str,
) -> None:
    """The client makes the id before the first attempt, so that it counts once."""
    monkeypatch.setattr("aftercall.client.transport.full_jitter_s", lambda *_, **__: 0.0)
    service.fail(lambda handler: handler.send_error_json(503, "busy"), times=2)
    scripted.answers(answer)
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


async def test_secrets_in_words_do_not_leave_the_process(
    call: Any, scripted: Scripted, service: Loopback
) -> None:
    """Of scenarios, errors, promotions, users and reviewers; a session keeps one name."""
    secret = PROMOTED.model_copy(update={"reason": TOLD, "mutation": TOLD})
    for name, args, options, answer in (
        ("best_tool", ("n", TOLD), {}, FOUND | RANKED),
        ("find_tools", (TOLD,), {}, FOUND),
        ("mark_failure", ("t", TOLD, TOLD), {}, MARKED),
        ("promote", ("n", secret), {}, STATUS),
        ("import_promotions", ({"n": secret},), {}, RECEIPT),
        ("find_evolutions", (TOLD,), {}, {"evolutions": []}),
        ("tool_failures", ("t",), {"scenario": TOLD}, {"failures": []}),
        ("change_recommendation", (AN_ID, "dismissed"), {"reason": TOLD}, RECOMMENDATION),
        ("correct", (TOLD,), {"session_id": SECRET, "boundary_axes": [TOLD]}, RECORDED),
    ):
        scripted.answers(answer)
        await call(name, *args, **options)
        last = service.requests[-1]
        sent = unquote(last.path) + last.body.decode()
        assert SECRET not in sent, name
        assert "[redacted:string:17-32]" in sent, name
    assert scripted.request[1]["sessionId"] == Redactor().session_id(SECRET)


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
        ("trend", (), {"server_name": "web"}, "server_name needs tool_name"),
        ("latency", (), {"server_name": "web"}, "server_name needs tool_name"),
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
    call: Any, scripted: Scripted, body: Any
) -> None:
    """What would be refused in a file is not taken from a service."""
    scripted.answers(body)
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
    said = parse_qs(query(fields).removeprefix("?"), keep_blank_values=True, strict_parsing=False)
    wanted = {name: [each] if isinstance(each, str) else each for name, each in fields.items()}
    assert said == {name: each for name, each in wanted.items() if each}
