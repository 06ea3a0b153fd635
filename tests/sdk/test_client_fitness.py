"""Both clients' methods for choosing tools and for promotions: what they send, what they read."""

import json
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from aftercall.errors import ProtocolError, ServiceFailedError
from aftercall.models import Promotion
from aftercall.promotions_file import parse_promotions
from aftercall.redaction import Redactor
from tests.sdk.loopback import Loopback, Scripted

SECRET = "sk-live-abcdefghijklmnop1234"  # noqa: S105  # planted
WITHOUT = Redactor()

TOOL = {"toolId": "t", "name": "t", "updatedAt": "2026-02-20T14:30:00Z", "isEvolved": True}
RANKED = {
    "tool": TOOL, "score": 0.9, "source": "original",
    "factors": {"base": 0.9, "quality": 1.0, "failureDemotion": 1.0},
}  # fmt: skip
FOUND = {"candidates": [RANKED], "threshold": 0.2, "mode": "fitness"}
MARKED = {
    "markId": "0b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d", "toolId": "t", "version": None,
    "severity": "high", "duplicate": False, "quality": 0.9,
}  # fmt: skip
FAILURE = {"scenario": "s", "similarity": 0.5, "weight": 1.0, "at": "2026-02-20T14:30:00Z"}
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
    "namespace": "n",
    "changes": [{"at": "2026-02-20T14:30:00Z", "action": "rolled_back", "promotion": None}],
}
FILE = {
    "n": {
        "evolved_version": "1.1.0", "evolved_file": "t_v1_1.py", "original_version": "1.0.0",
        "reason": "slow", "mutation": "cache", "promoted_at": "2024-01-15T10:00:00Z",
    }
}  # fmt: skip
RECEIPT = {"added": ["n"], "changed": [], "removed": [], "unchanged": [], "unknownNamespaces": []}
PROMOTED = Promotion.model_validate(PROMOTION)

CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any], str, Any]] = {
    "namespaces": (
        (), {}, "GET /namespaces", {"namespaces": [{"namespace": "n", "toolIds": ["t"]}]},
    ),
    "best_tool": (
        ("a/b", "say hi & bye"), {"use_rag": False, "mode": "thompson", "limit": 3},
        "GET /namespaces/a%2Fb/best"
        "?scenario=say%20hi%20%26%20bye&useRag=false&mode=thompson&limit=3",
        FOUND | RANKED,
    ),
    "find_tools": (("say hi",), {"tags": ["x"], "limit": 2}, "POST /tools/find", FOUND),
    "mark_failure": (
        ("a/b", "say hi", "broke"), {"severity": "high"}, "POST /tools/a%2Fb/failures", MARKED,
    ),
    "tool_failures": (
        ("t",), {"scenario": "x", "limit": 2}, "GET /tools/t/failures?scenario=x&limit=2",
        {"failures": [FAILURE]},
    ),
    "get_tool": (("t",), {"use_evolved": True}, "GET /tools/t?useEvolved=true", TOOL),
    "promote": (("n", PROMOTED), {}, "PUT /namespaces/n/promotion", STATUS),
    "get_promotion": (("n",), {}, "GET /namespaces/n/promotion", STATUS),
    "remove_promotion": (("n",), {}, "DELETE /namespaces/n/promotion", None),
    "rollback_promotion": (("n",), {}, "POST /namespaces/n/promotion/rollback", HISTORY),
    "promotion_history": (("n",), {}, "GET /namespaces/n/promotion/history", HISTORY),
    "export_promotions": ((), {}, "GET /promotions", FILE),
    "import_promotions": (({"n": PROMOTED},), {}, "PUT /promotions", RECEIPT),
    "find_evolutions": (
        ("say hi",), {"limit": 1}, "POST /evolutions/find",
        {"evolutions": [{"namespace": "n", "promotion": PROMOTION, "similarity": 0.4}]},
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
    if answer is None:
        assert got is None
    elif isinstance(got, list):
        [sent] = next(iter(answer.values()))
        assert json.loads(got[0].model_dump_json()).items() >= json.loads(json.dumps(sent)).items()
    elif name != "export_promotions":
        assert got.model_dump(mode="json", by_alias=True).keys() >= answer.keys()


async def test_bodies_are_of_the_contract(call: Any, scripted: Scripted) -> None:
    """In camelCase; promotions files in their own form."""
    scripted.answers(FOUND)
    await call("find_tools", "say hi")
    assert scripted.request[1] == {
        "scenario": "say hi", "tags": [], "limit": 5, "mode": "fitness",
    }  # fmt: skip
    scripted.answers(RECEIPT)
    await call("import_promotions", {"n": PROMOTED})
    assert scripted.request[1] == FILE
    scripted.answers(FILE)
    assert await call("export_promotions") == parse_promotions(json.dumps(FILE))
    scripted.answers(STATUS)
    await call("promote", "n", PROMOTED)
    assert scripted.request[1] == PROMOTION


async def test_a_mark_that_is_sent_again_is_the_same_mark(
    call: Any, scripted: Scripted, service: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client makes its id before the first attempt, so that it counts once."""
    monkeypatch.setattr("aftercall.client.transport.full_jitter_s", lambda *_, **__: 0.0)
    service.fail(lambda handler: handler.send_error_json(503, "busy"), times=2)
    scripted.answers(MARKED)
    await call("mark_failure", "t", "say hi", "broke", execution_id=MARKED["markId"])
    bodies = [json.loads(each.body) for each in service.requests]
    assert len(bodies) == 3
    assert bodies[0] == bodies[1] == bodies[2]
    assert bodies[0]["markId"] is not None
    assert bodies[0]["executionId"] == MARKED["markId"]


async def test_a_rollback_is_never_sent_twice(call: Any, service: Loopback) -> None:
    """Two of them would go back twice."""
    service.fail(lambda handler: handler.send_error_json(503, "busy"), times=1)
    with pytest.raises(ServiceFailedError):
        await call("rollback_promotion", "n")
    assert len(service.requests) == 1


async def test_secrets_in_words_do_not_leave_the_process(
    call: Any, scripted: Scripted, service: Loopback
) -> None:
    """Scenario, error message, reason and mutation are masked."""
    told = f"with token={SECRET}"
    secret = PROMOTED.model_copy(update={"reason": told, "mutation": told})
    for name, args, answer in (
        ("best_tool", ("n", told), FOUND | RANKED),
        ("find_tools", (told,), FOUND),
        ("mark_failure", ("t", told, told), MARKED),
        ("promote", ("n", secret), STATUS),
        ("import_promotions", ({"n": secret},), RECEIPT),
        ("find_evolutions", (told,), {"evolutions": []}),
    ):
        scripted.answers(answer)
        await call(name, *args)
        last = service.requests[-1]
        sent = unquote(last.path) + last.body.decode()
        assert SECRET not in sent, name
        assert "[redacted:string:17-32]" in sent, name
    scripted.answers({"failures": []})
    await call("tool_failures", "t", scenario=told)
    [asked] = parse_qs(urlsplit(service.requests[-1].path).query)["scenario"]
    assert asked == WITHOUT.text(told)


@pytest.mark.parametrize("scenario", ["", "  ", "x" * 10_001])
async def test_a_scenario_that_says_nothing_or_too_much_is_not_sent(
    call: Any, service: Loopback, scenario: str
) -> None:
    """It is the caller's mistake."""
    for name, args in (
        ("find_tools", (scenario,)),
        ("mark_failure", ("t", scenario, "e")),
        ("find_evolutions", (scenario,)),
    ):
        with pytest.raises(ValueError, match="scenario"):
            await call(name, *args)
    assert service.requests == []


async def test_a_question_too_long_for_a_url_is_told(call: Any, service: Loopback) -> None:
    """Rather than cut."""
    with pytest.raises(ValueError, match="in fewer words"):
        await call("best_tool", "n", "\u4e2d" * 10_000)
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
