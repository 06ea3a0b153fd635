"""The laws themselves: what they compare is well made, and a product that breaks one is found."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.json_patch import diff
from aftercall.models import CheckResponse, Suggestion, SuggestResponse
from bench.quality.laws.asking import Reply
from bench.quality.laws.case import Case, leaves, put_at, value_at
from bench.quality.laws.complaints import complaints_of, errors_of
from bench.quality.laws.dialects import DIALECTS, error_in
from bench.quality.laws.runner import BY_NAME, LAWS, LawResult, run_law
from bench.quality.laws.sources import generated_cases, right_calls, stream
from bench.quality.trial import Json

HERE = ("written", "generated")
"""Sources that need no data from elsewhere."""
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=5),
    lambda below: (
        st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below, max_size=3)
    ),
    max_leaves=12,
)


@given(value=VALUES)
def test_leaves_are_what_their_paths_lead_to(value: object) -> None:
    """And putting each back where it was changes nothing."""
    for path, leaf in leaves(value):
        assert value_at(value, path) is leaf
        assert put_at(value, path, leaf) == value


def test_generated_calls_fit_their_schemas_down_to_five_levels() -> None:
    """They are the same each time, too."""
    made = list(islice(right_calls("test"), 100))
    assert [each for each in made if errors_of(each.schema or {}, each.call)] == []
    assert made == list(islice(right_calls("test"), 100))
    deepest = max(len(path) for each in made for path, _ in leaves(each.call))
    assert deepest >= 5


def test_damaged_calls_are_refused_and_their_right_calls_are_not() -> None:
    """So every case of a law has a fault that its error is about."""
    for case in islice(generated_cases("test"), 200):
        assert case.schema is not None
        assert errors_of(case.schema, case.call)
        assert all(not errors_of(case.schema, right) for right in case.right or ())
        assert all(errors_of(case.schema, wrong) for wrong, _ in case.mends)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_says_something_of_every_complaint(dialect: str) -> None:
    """In its own words: no two libraries say the same of a fault."""
    for case in islice(generated_cases("test"), 60):
        complaints = complaints_of(case.schema or {}, case.call)
        assert complaints
        message = error_in(dialect, case.tool, complaints)["message"]
        others = [error_in(name, case.tool, complaints)["message"] for name in DIALECTS]
        assert others.count(message) == 1


def suggestion(case: Case, repaired: Json, confidence: float) -> Suggestion:
    changes = [
        {"op": each.op, "path": each.path, "value": each.value, "from": each.before, "reason": ""}
        for each in diff(case.call, repaired)
    ]
    fields = {
        "suggestion_id": "00000000-0000-4000-8000-000000000000", "action": "change_parameters",
        "changes": changes, "corrected_parameters": repaired, "confidence": confidence,
        "class": "lossless", "safe": True, "evidence": {}, "lesson": "",
    }  # fmt: skip
    return Suggestion.model_validate(fields)


Answer = tuple[Json | None, float]


class Wrong:
    """A product that answers by a function of the case; it repairs before the call as after it."""

    def __init__(self, answer: Callable[[Case], Answer]) -> None:
        self._answer = answer

    async def reply(self, case: Case) -> Reply:
        repaired, confidence = self._answer(case)
        offered = [] if repaired is None else [suggestion(case, repaired, confidence)]
        pattern = {"category": "unknown", "signature": "", "confidence": 1.0}
        retry = {"safe": bool(offered), "reason": ""}
        suggested = SuggestResponse.model_validate(
            {"pattern": pattern, "suggestions": offered, "retry": retry, "abstained": not offered,
             "took_ms": 0}
        )  # fmt: skip
        checked = CheckResponse(verdict="warn")
        if offered:
            checked = CheckResponse(verdict="repair", changes=offered[0].changes,
                                    change_class="lossless", confidence=confidence)  # fmt: skip
        return Reply(case, suggested, checked, repaired, "")


def right(case: Case) -> Json:
    return dict((case.right or (case.call,))[0])


def silent(_: Case) -> Answer:
    return None, 0.0


def trims(case: Case) -> Answer:
    changed = right(case)
    for path, value in leaves(changed):
        if isinstance(value, str):
            changed = put_at(changed, path, value.strip("'\" \t\r\n.;,()"))
    return changed, 0.9


def fills_the_last(case: Case) -> Answer:
    """Puts what the schema does not know into the place that it names last."""
    properties = (case.schema or {}).get("properties", {})
    unknown = [name for name in case.call if name not in properties]
    if not unknown or not properties:
        return None, 0.0
    plain = {name: value for name, value in case.call.items() if name not in unknown}
    return plain | {list(properties)[-1]: case.call[unknown[0]]}, 0.9


WRONG: dict[str, Callable[[Case], Answer]] = {
    "bystander": lambda case: ({**case.call, "x": 1}, 0.99 / (1 + len(case.call))),
    "bytes": trims,
    "names": lambda case: ({**case.call, "x": case.server}, 0.9),
    "envelope": lambda case: ({**case.call, "x": len(case.message)}, 0.9),
    "dialect": lambda case: ({**case.call, "x": case.dialect}, 0.9),
    "depth": lambda case: ({**case.call, "x": 1}, 0.9),
    "order": lambda case: ({**case.call, "x": next(iter(case.call), "")}, 0.9),
    "evidence": lambda case: (right(case), 1 / (1 + len(case.history))),
    "separation": lambda case: ({**case.call, "x": 1} if case.history else None, 0.9),
    "knowledge": lambda case: (right(case) if case.schema is None else {"x": 1}, 0.9),
    "fixpoint": lambda case: ({**case.call, "x": len(case.call)}, 0.9),
    "agreement": lambda case: ({**case.call, "x": 1} if case.schema else None, 0.5),
    "ambiguity": fills_the_last,
}


def share() -> Iterator[Case]:
    return stream(HERE, 30)


async def ran(name: str, answer: Callable[[Case], Answer], count: int = 48) -> LawResult:
    return await run_law(Wrong(answer), BY_NAME[name], share(), count=count)


@pytest.mark.parametrize("name", BY_NAME)
async def test_a_product_that_breaks_a_law_is_found(name: str) -> None:
    """Each law has a product that is wrong on purpose; one that says nothing breaks none."""
    assert WRONG.keys() == BY_NAME.keys()
    found = await ran(name, WRONG[name])
    assert found.broken > 0
    quiet = await ran(name, silent)
    assert quiet.count > 0
    assert quiet.broken == 0


async def test_the_comparisons_are_the_same_each_time() -> None:
    """So that the counts of two versions of the product can be compared."""
    for law in LAWS:
        one, other = [await ran(law.name, trims, 24) for _ in range(2)]
        assert counted(one) == counted(other)


def counted(result: LawResult) -> list[tuple[str, int, int, list[int]]]:
    return [
        (kind, tally.count, tally.broken, [each.size for each in tally.smallest])
        for kind, tally in sorted(result.tallies.items())
    ]


def test_a_case_is_asked_as_it_stands() -> None:
    """Names, call, error and schema reach the product as they are."""
    case = next(generated_cases("test"))
    asked = replace(case, context="the words of the task").question()
    assert json.loads(json.dumps(asked.parameters)) == case.call
    assert (asked.tool_name, asked.server_name) == (case.tool, case.server)
    assert (asked.input_schema, asked.error.message) == (case.schema, case.message)
