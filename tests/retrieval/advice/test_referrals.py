"""Referrals and broken contracts: another tool, a split, what mended it before, or an honest no."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from aftercall.models import FailedCall, SuggestRequest, SuggestResponse
from aftercall.outcomes import Outcome
from retrieval.answers.answer import Question, answer
from retrieval.answers.proposers.case import PLAIN, CallContext, Candidate, Case
from retrieval.knowledge.reading.reader import read_error
from retrieval.knowledge.rewrites.edits import Add, Edit
from retrieval.knowledge.rows.health import Referred
from retrieval.knowledge.tool.rules import SignatureKnowledge
from retrieval.knowledge.tool.runs import Repeats
from tests.ingest.conftest import WORKSPACE, Brain, brain
from tests.retrieval.cases import READS, an_execution, object_schema, tool

__all__ = ["brain"]

NOW = datetime(2026, 2, 20, 14, 0, 0, tzinfo=UTC)
URL = {"url": "https://x.test"}


HERE = tuple(Candidate(tool(name)) for name in ("read_page", "http_get", "read_titles"))


def ask(
    outcome: Outcome[Any],
    call_context: CallContext = PLAIN,
    signature: SignatureKnowledge | None = None,
    parameters: dict[str, Any] | None = None,
) -> SuggestResponse:
    error = outcome.error
    assert error is not None
    given = URL if parameters is None else parameters
    case = Case(given, read_error(error, given), signature=signature, writes=False)
    return answer(Question(case, error, READS, call_context=call_context), limit=3).response


def referred(*others: Candidate, earlier: tuple[Referred, ...] = (), **fields: Any) -> Any:
    told = {"boundary_axes": ["transport", "extraction"], "evidence": "it is HTML"} | fields
    call_context = CallContext(
        now=NOW, tool_name="read_page", namespace="docs", server_name="srv", others=others,
        referrals=earlier,
    )  # fmt: skip
    return ask(Outcome.wrong_tool_boundary("a page has to be fetched first", **told), call_context)


def past(*split: str, session: str = "s1", axes: tuple[str, ...] = ("transport",)) -> Referred:
    return Referred(
        at=NOW, execution_id=str(UUID(int=len(session))), kind="wrong_tool_boundary",
        session=session, axes=list(axes), spelled=list(axes), split=list(split), evidence="e",
    )  # fmt: skip


# Splits


@pytest.mark.parametrize(
    "split",
    [
        ["http_get", "read_titles"], "http_get -> read_titles", ["id-http_get", "id-read_titles"],
        "http_get, read_titles", ["fetch it with http_get", "then call read_titles on the text"],
        [{"tool": "http_get"}, {"tool": "read_titles"}], "1. http_get\n2. read_titles",
    ],
)  # fmt: skip
def test_a_split_over_registered_tools_is_proposed_in_its_order(split: Any) -> None:
    """In whatever form the tool says it; the first of them is the tool to go on with."""
    [found] = referred(*HERE, suggested_split=split).suggestions
    assert (found.action, found.tool) == ("switch_tool", "http_get")
    assert found.split == ["http_get", "read_titles"]
    assert found.corrected_parameters is None
    assert '"http_get", then "read_titles"' in found.lesson


def test_a_split_over_unknown_tools_is_handed_over_in_the_tools_words() -> None:
    """Quoted as data: what the tool says is no instruction of ours."""
    response = referred(suggested_split=["get the page", 'parse it "well"\nand obey'])
    [found] = response.suggestions
    assert (found.action, found.tool) == ("escalate", None)
    assert found.split == ["get the page", 'parse it "well" and obey']
    assert "The task is two jobs" in found.lesson
    assert '"get the page", then "parse it \\"well\\" and obey"' in found.lesson
    assert not response.retry.safe


def test_one_known_tool_of_a_split_is_still_the_one_to_use() -> None:
    """As where the error names it otherwise."""
    [found] = referred(HERE[1], suggested_split=["http_get", "something else"]).suggestions
    assert (found.action, found.tool, found.split) == ("switch_tool", "http_get", [])


def test_evidence_and_agreement_make_a_split_surer() -> None:
    """A referral without evidence may be a way out; sessions that said the same speak for it."""

    def sure(*earlier: Referred, evidence: str | None = "it is HTML") -> float:
        split = ["http_get", "read_titles"]
        response = referred(*HERE, earlier=earlier, suggested_split=split, evidence=evidence)
        found: float = response.suggestions[0].confidence
        return found

    agreeing = [past("http_get", "read_titles", session=f"s{n}") for n in range(3)]
    assert sure(evidence=None) < sure() < sure(*agreeing[:1]) < sure(*agreeing)
    assert sure(past("something", "else")) == sure()


def test_a_referral_without_a_split_learns_from_earlier_ones_about_its_axes() -> None:
    """Of the same axes only, in any spelling of them; most sessions win."""
    earlier = (
        past("http_get", "read_titles", session="s1"),
        past("http_get", "read_titles", session="s2"),
        past("read_titles", "http_get", session="s3"),
        past("a_job", "b_job", axes=("billing",)),
    )  # fmt: skip
    response = referred(*HERE, earlier=earlier, boundary_axes=["Transports"])
    [found] = response.suggestions
    assert found.split == ["http_get", "read_titles"]
    assert "2 sessions" in found.lesson
    assert found.evidence.execution_ids
    for axes in (["billing"], ["style"], []):
        assert referred(*HERE, earlier=earlier, boundary_axes=axes).abstained


def test_words_of_one_session_are_not_told_to_another() -> None:
    """They may be private; from several sessions on they are common knowledge."""
    words = ("open Ada's mailbox", "read her invoices")
    one = (past(*words, session="s1"), past(*words, session="s1"))
    response = referred(*HERE, earlier=one)
    assert response.abstained
    assert "Ada" not in str(response)
    assert '"transport", "extraction"' in str(response.reason)
    [found] = referred(*HERE, earlier=(*one, past(*words, session="s2"))).suggestions
    assert (found.action, found.split) == ("escalate", list(words))


def test_a_tool_that_succeeds_on_such_calls_stands_before_a_less_sure_split() -> None:
    """The surer of the two is proposed; a tool of a split is none for the whole task."""
    split = ["http_get", "read_titles"]
    worker = Candidate(tool("page_titles", inputSchema=object_schema(url="string")), 0.95, 40, 0, 8)
    [found] = referred(*HERE, worker, suggested_split=split, evidence=None).suggestions
    assert (found.tool, found.split) == ("page_titles", [])
    [found] = referred(*HERE, suggested_split=split).suggestions
    assert found.split == split


def test_a_split_of_hostile_size_is_bounded() -> None:
    """Thousands of parts and tools, each of thousands of characters."""
    many = tuple(Candidate(tool(f"tool_{n}")) for n in range(2_000))
    [found] = referred(*many, suggested_split=[f"tool_{n}" for n in range(2_000)]).suggestions
    assert len(found.split) == 10
    assert len(found.lesson) < 1_000
    [found] = referred(suggested_split=["x" * 9_000 for _ in range(99)]).suggestions
    assert len(found.lesson) < 1_500


# Answers of little use


def weak(*others: Candidate, **known: Any) -> SuggestResponse:
    call_context = CallContext(
        now=NOW, tool_name="read_page", namespace="docs", server_name="srv", others=others
    )
    return ask(Outcome.low_utility("this is a menu", evidence="no years"), call_context, **known)


def test_low_utility_is_answered_with_a_tool_that_succeeds_on_such_calls() -> None:
    """One of the namespace; without one it is an abstention, as before."""
    worker = Candidate(tool("film_titles", inputSchema=object_schema(url="string")), 0.9, 40, 2, 6)
    [found] = weak(worker).suggestions
    assert (found.action, found.tool) == ("switch_tool", "film_titles")
    assert found.corrected_parameters == URL
    assert "of little use" in found.lesson
    elsewhere = Candidate(tool("film_titles", namespace="mail"), 0.9, 40, 2, 6)
    for others in ((), (elsewhere,), HERE):
        response = weak(*others)
        assert response.abstained
        assert "of little use" in str(response.reason)


# Broken contracts

VIOLATION = Outcome.error(
    "contract_violation",
    "the result broke its contract",
    violations=[{"path": "/films", "mismatch": "min_items", "expected": 1, "actual": 0}],
)


def knowledge(edits: list[Edit], times: int) -> SignatureKnowledge:
    error = VIOLATION.error
    assert error is not None
    reading = read_error(error, URL)
    known = SignatureKnowledge(signature=reading.signature, category=reading.category)
    for number in range(times):
        known.rule_to_update(edits).add_repair(f"agent-{number}", f"s{number}")
    return known


def test_without_experience_a_broken_contract_is_an_abstention_that_says_so() -> None:
    """No parameter is blamed for it."""
    response = ask(VIOLATION, parameters={"films": "x"})
    assert response.abstained
    assert response.pattern.category == "contract_violation"
    assert "the result broke its contract" in str(response.reason)
    plain = Outcome.error("contract_violation", "'films' is a required property")
    response = ask(plain, parameters={"query": "x"})
    assert response.abstained
    assert "the result broke its contract" in str(response.reason)


def test_parameters_that_made_a_result_fit_are_proposed() -> None:
    """Learned from several agents; nothing else is proposed beside them."""
    signature = knowledge([Add(name="render", value=True)], 4)
    [found] = ask(VIOLATION, signature=signature).suggestions
    assert found.action == "change_parameters"
    assert found.corrected_parameters == {**URL, "render": True}
    assert found.evidence.repairs == 4


def test_trying_again_is_proposed_where_it_has_worked() -> None:
    """Surer with each time, and less so with each failure of this very call."""
    sure = []
    for times in (1, 3, 6):
        [found] = ask(VIOLATION, signature=knowledge([], times)).suggestions
        assert (found.action, found.retry_after_ms) == ("retry_unchanged", 0)
        assert found.corrected_parameters == URL
        sure.append(found.confidence)
    assert sure == sorted(set(sure))
    again = CallContext(now=NOW, repeats=Repeats(3, 3))
    [found] = ask(VIOLATION, again, signature=knowledge([], 6)).suggestions
    assert found.confidence < sure[-1]


# Through the store


async def test_what_was_referred_in_other_sessions_helps_the_next_one(brain: Brain) -> None:
    """Recorded, learned, and asked about without a split of its own."""
    for name in ("read_page", "http_get", "read_titles"):
        await brain.put_tool(tool(name))
    error = Outcome.wrong_tool_boundary(
        "fetch it first", boundary_axes="transport, extraction", evidence="it is HTML",
        suggested_split=["http_get", "read_titles"],
    ).error  # fmt: skip
    await brain.learn(
        *(
            an_execution(
                execution_id=str(UUID(int=n)), session_id=f"s{n}", agent=f"agent-{n}",
                tool_name="read_page", parameters=URL, outcome="failure", error=error,
            )
            for n in range(1, 4)
        )
    )  # fmt: skip
    asked = Outcome.wrong_tool_boundary("not mine", boundary_axes="Transport").error
    call = FailedCall(
        agent="ada", server_name="srv", tool_name="read_page", parameters=URL, session_id="s9",
        error=asked,
    )  # fmt: skip
    response = await brain.suggester.suggest(WORKSPACE, SuggestRequest(execution=call))
    [found] = response.suggestions
    assert (found.action, found.split) == ("switch_tool", ["http_get", "read_titles"])
    assert "3 sessions" in found.lesson
