"""`POST /similar` ranks calls: the one that was meant, of all that a tool has had."""

from typing import Any
from uuid import uuid4

import pytest

from aftercall.models import Execution
from mongo.records import ToolKey
from retrieval.knowledge.rows.log import read_executions
from retrieval.knowledge.session import recent_calls
from tests.service.running_service import RunningService, execution, failure, on_loop

TOPICS = (
    "reset the password of a customer", "travel expenses abroad", "open ports of the agent",
    "rotate the signing key", "parental leave", "two tax rates on one invoice",
    "restore a table from the backup", "limits of the free plan", "export tickets as CSV",
    "escalation at night", "equipment for working from home", "merge two accounts",
)  # fmt: skip


def learned(service: RunningService, *calls: dict[str, Any]) -> None:
    receipt = service.record(list(calls))
    assert receipt.json()["accepted"] == len(calls), receipt.text
    service.learned()


def similar(service: RunningService, tool: str, **asked: Any) -> list[dict[str, Any]]:
    question = {"toolName": tool, "serverName": "rag-server", **asked}
    response = service.client.post("/similar", json=question)
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["executions"]
    assert [e["similarity"] for e in found] == sorted(e["similarity"] for e in found)[::-1]
    return found


def queries(found: list[dict[str, Any]]) -> list[str]:
    return [each["execution"]["parameters"]["query"] for each in found]


@pytest.fixture
def tool() -> str:
    return f"rag_query_{uuid4().hex[:8]}"


def test_each_of_twelve_calls_comes_first_for_its_own_words(
    service: RunningService, tool: str
) -> None:
    """All have one shape, and so one document."""
    calls = [
        execution(toolName=tool, parameters={"query": each, "topK": 5}, context=f"about {each}")
        for each in TOPICS
    ]
    learned(service, *calls)
    for topic in TOPICS:
        for asked in (
            {"parameters": {"query": topic, "topK": 5}},
            {"context": f"about {topic}"},
            {"parameters": {"query": topic, "topK": 5}, "context": f"about {topic}"},
        ):
            found = similar(service, tool, **asked, limit=12)
            assert queries(found)[0] == topic, asked
            assert sorted(queries(found)) == sorted(TOPICS)
        assert found[0]["similarity"] == 1.0


def test_answers_differ_and_the_latest_stands_for_its_like(
    service: RunningService, tool: str
) -> None:
    """The same call of ten sessions is one answer, and leaves room for the others."""
    again = [execution(toolName=tool, sessionId=f"s{n}") for n in range(10)]
    other = execution(toolName=tool, parameters={"query": "retries", "topK": 5})
    learned(service, other, *again)
    found = similar(service, tool, parameters=again[0]["parameters"])
    assert queries(found) == ["reflection", "retries"]
    assert found[0]["execution"]["executionId"] == again[-1]["executionId"]


def test_a_call_that_was_just_recorded_is_found(service: RunningService, tool: str) -> None:
    """What was read before is kept up to date."""
    for topic in TOPICS[:4]:
        learned(service, execution(toolName=tool, parameters={"query": topic, "topK": 5}))
        assert queries(similar(service, tool, parameters={"query": topic}))[0] == topic


def test_failures_are_ranked_in_the_same_way(service: RunningService, tool: str) -> None:
    """By their calls; the same call with another error is another answer."""
    calls = [failure(toolName=tool, parameters={"query": each, "topK": 50}) for each in TOPICS[:6]]
    error = {"message": "the index is being rebuilt"}
    learned(service, *calls, failure(toolName=tool, parameters=calls[0]["parameters"], error=error))
    for topic in TOPICS[1:6]:
        found = similar(service, tool, outcome="failure", parameters={"query": topic, "topK": 50})
        assert queries(found)[0] == topic
    found = similar(service, tool, outcome="failure", parameters=calls[0]["parameters"])
    assert queries(found)[:2] == [TOPICS[0]] * 2
    assert similar(service, tool, parameters=calls[0]["parameters"]) == []


def test_an_erased_call_is_no_answer_and_takes_no_place(service: RunningService, tool: str) -> None:
    """Though its words were read before it went."""
    calls = [execution(toolName=tool, parameters={"query": each, "topK": 5}) for each in TOPICS[:8]]
    learned(service, *calls)
    asked = {"parameters": calls[0]["parameters"], "limit": 2}
    before = similar(service, tool, **asked)
    assert queries(before)[0] == TOPICS[0]
    log = service.context.store.events
    [stored] = on_loop(service, read_executions(log, "default", [calls[0]["executionId"]]))
    on_loop(service, log.forget_events("default", [stored.position]))
    after = queries(similar(service, tool, **asked))
    assert len(after) == 2
    assert TOPICS[0] not in after


def test_old_calls_of_another_shape_are_found_beyond_the_latest(
    service: RunningService, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each shape has a document, and that its latest calls."""
    old = execution(toolName=tool, parameters={"query": "billing", "filter": {"space": "hr"}})
    newer = [execution(toolName=tool, parameters={"query": f"q {n}", "topK": 5}) for n in range(9)]
    learned(service, old, *newer)
    service.context.memory.calls.clear_calls()
    monkeypatch.setattr(recent_calls, "MAX_CALLS", 3)
    read = on_loop(service, service.context.memory.calls.of_tool(
        ToolKey("default", "rag-server", tool)))  # fmt: skip
    assert len(read) == 3
    assert queries(similar(service, tool, parameters=old["parameters"]))[0] == "billing"
    service.context.memory.calls.clear_calls()


def test_of_tools_with_few_calls_any_number_is_kept(service: RunningService, tool: str) -> None:
    """What is bounded are calls: 40 tools that are asked about in turn are read once each."""
    tools = [f"{tool}_{number}" for number in range(40)]
    learned(service, *(execution(toolName=each, parameters={"query": "x"}) for each in tools))
    calls = service.context.memory.calls
    keys = [ToolKey("default", "rag-server", each) for each in tools]
    first = [on_loop(service, calls.of_tool(each)) for each in keys]
    again = [on_loop(service, calls.of_tool(each)) for each in keys]
    assert [one[0] is other[0] for one, other in zip(first, again, strict=True)] == [True] * 40


def test_an_answer_reads_few_calls_and_a_question_all_of_them(
    service: RunningService, tool: str
) -> None:
    """What was read of a tool for an answer is read again where more of it is asked for."""
    learned(service, *(execution(toolName=tool, parameters={"query": f"q {n}"}) for n in range(9)))
    calls, key = service.context.memory.calls, ToolKey("default", "rag-server", tool)
    calls.clear_calls()
    few = on_loop(service, calls.of_tool(key, 3))
    assert len(few) == 3
    assert len(on_loop(service, calls.of_tool(key))) == 9
    learned(service, execution(toolName=tool, parameters={"query": "newest"}))
    newest = on_loop(service, calls.of_tool(key, 3))
    assert len(newest) == 10
    assert newest[-1].position > few[-1].position


def test_secrets_are_masked_in_what_is_held_against_a_question(
    service: RunningService, tool: str
) -> None:
    """A question with the secret finds the call by the rest of it, and neither shows it."""
    secret = "sk_live_51HxQq2eZvKYlo2C8aBcDeFgH"  # noqa: S105  # a made-up one
    call = execution(toolName=tool, parameters={"query": "charge", "api_key": secret})
    learned(service, call, execution(toolName=tool, parameters={"query": "other", "api_key": "x"}))
    found = similar(service, tool, parameters=call["parameters"])
    assert queries(found)[0] == "charge"
    assert secret not in str(found)
    kept = on_loop(service, service.context.memory.calls.of_tool(
        ToolKey("default", "rag-server", tool)))  # fmt: skip
    assert all(secret not in each.text and secret.lower() not in each.words for each in kept)


def test_words_that_few_calls_have_weigh_most() -> None:
    """Names of parameters stand in every call, and say nothing of which is meant."""
    calls = [
        _recent({"query": f"common words here {name}", "top_k": 5})
        for name in ("otter", "badger", "heron")
    ]
    words = recent_calls.words_of_call({"query": "badger"}, None)
    cosines = recent_calls.WordIndex(calls).find_cosines(words)
    assert max(cosines) == cosines[1]
    assert cosines[1] > 2 * cosines[0]


def _recent(parameters: dict[str, Any]) -> recent_calls.RecentCall:
    call = Execution.model_validate(execution(parameters=parameters))
    return recent_calls.RecentCall(
        call.execution_id,
        1,
        "success",
        "a",
        "owner",
        b"",
        "",
        tuple(recent_calls.words_of_call(call.parameters, None)),
    )


def test_a_failure_that_nothing_mends_shows_calls_that_worked(
    service: RunningService, tool: str
) -> None:
    """At most three, the likest first; what shares no word with it is none of them."""
    calls = [
        execution(toolName=tool, parameters={"query": each, "topK": 5}, context=f"about {each}")
        for each in TOPICS
    ]
    learned(service, *calls)
    for asked, first in (("reset the password", 0), ("merge the accounts", 11)):
        failed = failure(toolName=tool, parameters={"query": asked, "topK": 5}, context="")
        failed["error"] = {"message": "internal state is inconsistent"}
        answer = service.client.post("/suggest", json={"execution": failed}).json()
        assert answer["abstained"]
        found = answer["similar"]
        assert 1 <= len(found) <= 3
        assert found[0]["parameters"]["query"] == TOPICS[first]
        assert [e["likeness"] for e in found] == sorted(e["likeness"] for e in found)[::-1]
