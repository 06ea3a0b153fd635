"""Privacy: what one caller sent is never proposed to another, whatever was learned from it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftercall.json_values import canonical_json
from aftercall.models import Execution, ExecutionError, SuggestResponse, ToolAnnotations
from aftercall.redaction import is_redacted
from ingest.learner import learn_failure, learn_outcome, learn_repair, learn_success
from ingest.mining import MinedRepair, mine_repairs
from retrieval.answers.answer import Question, answer
from retrieval.answers.proposers.case import Case
from retrieval.knowledge.reading.reader import ErrorReading, read_error
from retrieval.knowledge.rewrites.edits import Add, Edit, Replace
from retrieval.knowledge.tool.rules import ToolKnowledge, skeleton_of
from retrieval.knowledge.values.parameters import view_of_schema
from tests.retrieval.cases import READS, an_execution, answer_to, make_case, object_schema

START = datetime(2026, 3, 1, tzinfo=UTC)
MARK = "zq"
"""Begins every private text; no other text of these tests has it."""
MASK = "[redacted:string:9-16]"
COMMON = ["main", "ASC", "2026-03-01", 5, True]
NAMES = ["name", "names", "limit", "zone", "where"]

MESSAGES = [
    "'zone' is a required property", "'name' is a required property", "limit must be an integer",
    "limit must be <= 10", "Out of range value for column 'limit' at row 1",
    "No item found with name '{name}'", "Invalid value for zone", "name is not valid",
    "Additional properties are not allowed ('where' was unexpected)",
    "name must be one of 'main', 'dev'", "names.0: field required", "something went wrong",
]  # fmt: skip
SCHEMAS = [
    None,
    object_schema(["name"], name="string", limit="integer", zone="string"),
    object_schema(["name", "zone"], name="string", zone={"type": "string", "default": "main"})
    | {"additionalProperties": False},
]


@dataclass(frozen=True)
class Caller:
    """Who calls: its private values are its alone."""

    number: int

    def amount(self, which: int) -> int:
        """A private number."""
        return 70_000 + 100 * self.number + which

    def private(self, which: int) -> list[Any]:
        """The same secret as tools take it: a text, a key, a list, a number, an address."""
        text, number = f"{MARK}{self.number}x{which}", self.amount(which)
        return [
            text, {text: "main"}, [text, "main"], number, f"{text}@acme.org", f"x/{text}",
            {"id": text, "n": number}, text.upper(),
        ]  # fmt: skip

    def value(self, which: int, form: int) -> Any:
        """A private value, a common one, or one that was masked before it came here."""
        kinds = [*self.private(which), *COMMON, MASK]
        return kinds[form % len(kinds)]


class Scenario(NamedTuple):
    """What several callers did alike, each with values of its own."""

    message: int
    sent: dict[str, tuple[int, int]]
    """Of the failing call, by parameter: which secret, in which form."""
    removed: list[str]
    added: dict[str, tuple[int, int]]
    others: list[dict[str, tuple[int, int]]]
    """Further successes."""
    callers: int

    def calls(self, caller: Caller, session: int = 0) -> list[Execution]:
        """A failure, what mended it, and the further successes, in a session of one caller."""
        failing = called(caller, self.sent)
        kept = {name: value for name, value in failing.items() if name not in self.removed}
        made = [failing, kept | called(caller, self.added)]
        made += [called(caller, each) for each in self.others]
        return [
            an_execution(
                execution_id=str(UUID(int=10_000 * caller.number + 100 * session + number)),
                timestamp=START + timedelta(seconds=1_000 * session + number),
                agent=f"agent {caller.number}",
                session_id=f"session {caller.number} {session}",
                parameters=sent,
                outcome="success" if number else "failure",
                error=None if number else error_of(self.message, sent),
            )
            for number, sent in enumerate(made)
        ]


secrets = st.tuples(st.integers(0, 2), st.integers(0, 7))
shared_values = st.tuples(st.just(0), st.integers(8, 13))
choices = secrets | shared_values
parameters = st.dictionaries(st.sampled_from(NAMES), choices, max_size=3)


@st.composite
def made_alike(draw: st.DrawFn) -> Scenario:
    """Most errors are about the parameter that the callers then send otherwise."""
    message = draw(st.integers(0, len(MESSAGES) - 1))
    about = next((name for name in reversed(NAMES) if name in MESSAGES[message]), "name")
    sent = draw(parameters)
    if "required" not in MESSAGES[message]:
        sent[about] = draw(shared_values | secrets)
    return Scenario(
        message=message,
        sent=sent,
        removed=draw(st.lists(st.sampled_from(NAMES), max_size=1)),
        added=draw(st.fixed_dictionaries({about: choices}) | parameters.filter(bool)),
        others=draw(st.lists(parameters, max_size=6)),
        callers=draw(st.integers(1, 4)),
    )


scenarios = made_alike()


def called(caller: Caller, sent: dict[str, tuple[int, int]]) -> dict[str, Any]:
    return {name: caller.value(*choice) for name, choice in sent.items()}


def error_of(number: int, sent: dict[str, Any]) -> ExecutionError:
    name = sent.get("name")
    return ExecutionError(
        type="ToolError", message=MESSAGES[number].format(name=name if isinstance(name, str) else 1)
    )


@cache
def _read(message: str) -> ErrorReading:
    return read_error(ExecutionError(type="ToolError", message=message), {})


def mined(calls: Sequence[Execution]) -> list[MinedRepair]:
    """All repairs that are found while the calls arrive one by one."""
    return [
        repair
        for count, new in enumerate(calls, start=1)
        for repair in mine_repairs(calls[:count], new, lambda failed: _read(failed.error.message))
    ]


def learned(history: Sequence[Sequence[Execution]]) -> ToolKnowledge:
    """What is known of the tool after these calls; each list is a session."""
    own = ToolKnowledge()
    for calls in history:
        for call in calls:
            if call.error is None:
                learn_success(own, call, None)
            else:
                learn_failure(own, call, read_error(call.error, call.parameters), None)
        for repair in mined(calls):
            learn_repair(own, repair, None)
            if not repair.edits:
                continue
            for number in range(3):
                reading = repair.reading
                learn_outcome(
                    own, reading.signature, reading.category, repair.edits, "success",
                    f"fan {number}",
                )  # fmt: skip
    return own


def asked(
    scenario: Scenario,
    history: Sequence[Sequence[Execution]],
    *,
    schema: dict[str, Any] | None,
    writes: bool,
    context: str | None = None,
) -> SuggestResponse:
    """The answer to another caller, with all that was learned, as the suggester gathers it."""
    own = learned(history)
    call = called(ASKER, scenario.sent)
    error = error_of(scenario.message, call)
    reading = read_error(error, call)
    profile = own.find_profile(None)
    view = view_of_schema(schema) if schema else None
    if view is None and profile is not None and profile.successes:
        view = profile.make_view()
    case = Case(
        parameters=call, reading=reading, view=view, profile=profile,
        signature=own.find_signature(reading.signature),
        like_signatures=tuple(own.similar_signatures(reading.signature, skeleton_of(reading))),
        context=context, writes=writes, schema=schema,
    )  # fmt: skip
    annotations = ToolAnnotations() if writes else READS
    return answer(Question(case, error, annotations), limit=20).response


def said(response: SuggestResponse) -> str:
    """All that an answer says, save for the ids and the caller's own error."""
    told = [each.model_dump(mode="json", exclude={"evidence"}) for each in response.suggestions]
    text = canonical_json([told, response.reason]).lower()
    # The random ids of suggestions may hold any digits.
    for each in response.suggestions:
        text = text.replace(each.suggestion_id, "")
    return text


def leaked(response: SuggestResponse, callers: Sequence[Caller]) -> list[str]:
    """What of the callers' private values is in the answer, in any form."""
    told = said(response)
    return [
        mark
        for caller in callers
        for which in range(3)
        for mark in (f"{MARK}{caller.number}x{which}", str(caller.amount(which)))
        if mark in told
    ]


ASKER = Caller(0)


@settings(max_examples=300, deadline=None)
@given(
    scenarios, st.sampled_from(SCHEMAS), st.booleans(),
    st.sampled_from([None, "List the main items of 2026-03-01, at most 5."]),
)  # fmt: skip
def test_nothing_that_one_session_sent_is_said_to_another(
    scenario: Scenario, schema: Any, writes: bool, context: str | None
) -> None:
    """Neither in parameters nor in words, however many failures, repairs and outcomes it had."""
    callers = [Caller(number + 1) for number in range(scenario.callers)]
    history = [scenario.calls(each) for each in callers]
    response = asked(scenario, history, schema=schema, writes=writes, context=context)
    assert leaked(response, callers) == []


@settings(max_examples=300, deadline=None)
@given(scenarios, st.sampled_from(SCHEMAS), st.booleans())
def test_nothing_that_one_agent_sent_is_said_to_another_where_several_use_the_tool(
    scenario: Scenario, schema: Any, writes: bool
) -> None:
    """Though it sent it in three sessions: no agent alone makes a value common."""
    callers = [Caller(number + 1) for number in range(scenario.callers + 1)]
    history = [scenario.calls(each, session) for each in callers for session in range(3)]
    response = asked(scenario, history, schema=schema, writes=writes)
    assert leaked(response, callers) == []


@settings(max_examples=200, deadline=None)
@given(scenarios, st.sampled_from(SCHEMAS), st.booleans())
def test_a_mask_is_never_proposed(scenario: Scenario, schema: Any, writes: bool) -> None:
    """What was learned masked is no value; only what the caller itself masked stays so."""
    open_ = {name: choice for name, choice in scenario.sent.items()
             if not is_redacted(ASKER.value(*choice))}  # fmt: skip
    scenario = scenario._replace(sent=open_)
    history = [scenario.calls(Caller(number + 1), n) for number in range(4) for n in range(2)]
    response = asked(scenario, history, schema=schema, writes=writes)
    assert "[redacted" not in said(response)


@pytest.mark.parametrize("writes", [True, False])
def test_the_largest_number_of_one_session_is_no_bound_for_others(writes: bool) -> None:
    """Where the error states no bound, what one session sent is not put in its place."""
    known = ToolKnowledge()
    for number in range(8):
        learn_success(known, an_execution(parameters={"amount": 70_001 + number}), None)
    message = '[{"code": "too_big", "path": ["amount"], "message": "Too big"}]'
    case = make_case({"amount": 999_999}, message, profile=known.find_profile(None), writes=writes)
    assert [fault.kind for fault in case.faults] == ["out_of_range"]
    response = answer(Question(case, ExecutionError(message=message), READS), limit=20).response
    assert "7000" not in said(response)


@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize("sessions", [1, 3])
@pytest.mark.parametrize(
    ("edit", "message", "parameters"),
    [
        (Add(name="token", value=f"{MARK}9"), "'token' is a required property", {"q": "x"}),
        (Replace(name="q", before="x", value=f"{MARK}9"), "bad q", {"q": "x"}),
    ],
)
def test_a_rule_of_one_agent_gives_its_value_to_nobody(
    edit: Edit, message: str, parameters: dict[str, Any], sessions: int, writes: bool
) -> None:
    """Other agents use the tool with success, and none of them with that value."""
    case = make_case(parameters, message)
    known = ToolKnowledge()
    for number in range(6):
        learn_success(known, an_execution(agent=f"a{number}", session_id=f"o{number}"), None)
    signature = known.signature_to_update(case.reading.signature, "invalid_parameters")
    rule = signature.rule_to_update([edit])
    for number in range(sessions):
        rule.add_repair("mallory", f"s{number}")
    case = replace(case, profile=known.find_profile(None), signature=signature, writes=writes)
    response = answer(Question(case, ExecutionError(message=message), READS), limit=20).response
    assert MARK not in said(response)


def test_a_mask_is_no_mark_around_a_value() -> None:
    """The caller has the value in full, so nothing is mended in what stands for it."""
    schema = object_schema(campaign="string", start_date="string") | {"additionalProperties": False}
    sent = {"campaign": MASK, "start_date_param": "2016-03-01"}
    case = make_case(sent, "Unknown argument: start_date_param", schema=schema)
    [first, *_] = answer_to(case).response.suggestions
    assert first.corrected_parameters == {"campaign": MASK, "start_date": "2016-03-01"}
