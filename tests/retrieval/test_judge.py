"""The judge: one model over named signals, that only evidence raises and only doubts lower."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval import read_word_table
from retrieval.answers.judge.model import LEAN, OPEN_QUESTION, Model, model_of_text, shipped_model
from retrieval.answers.judge.ranking import judge
from retrieval.answers.judge.signals import FALLING, RISING, SIGNALS, Weighed, signals_of
from retrieval.answers.proposers.case import Case, Option
from retrieval.answers.proposers.compose import Proposal
from retrieval.answers.proposers.grounds import grounds_of
from retrieval.knowledge.beta import Trials
from retrieval.knowledge.calls.account import CallAccount
from retrieval.knowledge.calls.matching import account_of
from retrieval.knowledge.confidence import Scaling
from retrieval.knowledge.rewrites.edits import Rename, Replace
from retrieval.knowledge.rows.principals import SURE
from retrieval.knowledge.tool.rules import SignatureKnowledge
from tests.retrieval.cases import make_case, object_schema
from tests.retrieval.test_repairs import an_example

SCHEMA = object_schema(city="string", days="integer") | {"additionalProperties": False}
vectors = st.lists(st.floats(-20, 20), min_size=len(SIGNALS), max_size=len(SIGNALS))


def an_account(case: Case, repaired: dict[str, Any]) -> CallAccount:
    """The account of a repair of the case's call."""
    return account_of(case.parameters, repaired, grounds_of(case))


def signals_for(sent: dict[str, Any], repaired: dict[str, Any]) -> dict[str, float]:
    """The signals of a repair of a call whose city is at fault."""
    case = make_case(sent, "city is wrong", schema=SCHEMA)
    edit = Replace(name="city", before=sent["city"], value=repaired["city"])
    option = Option((edit,), "like", Trials(9, 1), ("error",))
    proposal = Proposal(repaired, (option,), frozenset(("city",)), "")
    weighed = Weighed(proposal, an_account(case, repaired), 2.0, 0.0, 1.0, 1.0)
    return dict(zip(SIGNALS, signals_of(case, weighed), strict=True))


def test_words_that_are_gone_or_new_are_counted() -> None:
    """Another case or another separator is the same word; a number is its digits."""
    found = signals_for({"city": "new-york city", "days": 3}, {"city": "NewYork", "days": 3})
    assert (found["lost_words"], found["new_words"]) == (1, 0)
    found = signals_for({"city": "Rome", "days": 3}, {"city": "Milan", "days": 3})
    assert (found["lost_words"], found["new_words"]) == (1, 1)


def test_what_is_put_in_is_looked_at_and_what_is_left_alone_is_not() -> None:
    """Marks around the new city are odd; those around another value are its caller's."""
    assert signals_for({"city": "Rome", "days": 3}, {"city": "{Rome}", "days": 3})["odd"] == 1
    beside = {"days": 3, "note": "```{x}```"}
    found = signals_for({"city": "rome", **beside}, {"city": "Rome", **beside})
    assert found["odd"] == 0


BYSTANDERS = [
    "a plain text", "[redacted:string:9-16]", "    if a:\n\t**return** `x`;\n", {"a": {"b": [1]}},
    ["x", "y"], "lorem " * 400, True, 7.5, {},
]  # fmt: skip


@pytest.mark.parametrize("bystander", BYSTANDERS, ids=str)
def test_a_right_value_beside_the_fault_changes_no_answer(bystander: Any) -> None:
    """A secret, code, an object, a list, a long text: nothing of them is read as a sign."""
    schema = SCHEMA | {"properties": SCHEMA["properties"] | {"extra": {}}}
    message = "town: unexpected property"
    alone, beside = (
        judge(make_case({"town": "Rome", "days": 3} | more, message, schema=schema), Scaling())
        for more in ({}, {"extra": bystander})
    )
    one, other = alone[0], beside[0]
    assert other.proposal.parameters == one.proposal.parameters | {"extra": bystander}
    assert other.account.change_class == one.account.change_class
    assert other.estimate.probability == pytest.approx(one.estimate.probability, abs=0.05)


@given(vectors, st.integers(0, len(SIGNALS) - 1), st.floats(0, 20))
def test_signals_move_the_shipped_model_their_own_way(
    vector: list[float], place: int, more: float
) -> None:
    """Evidence never makes a repair less sure, a doubt never surer."""
    model = shipped_model()
    moved = [*vector[:place], vector[place] + more, *vector[place + 1 :]]
    rise = model.sum_points(moved) - model.sum_points(vector)
    assert SIGNALS[place] not in RISING or rise >= -1e-9
    assert SIGNALS[place] not in FALLING or rise <= 1e-9


def test_what_was_learned_as_well_is_held_to_no_more() -> None:
    """The bar of a stratum is not above that of what stands without other callers."""
    bars = shipped_model().bars
    assert all(bars[f"{name}, learned"] <= bar for name, bar in bars.items() if "learn" not in name)


@given(st.floats(0.001, 0.98), st.floats(0.001, 0.01), st.sampled_from(["a", "b", OPEN_QUESTION]))
def test_a_bar_changes_no_order(probability: float, more: float, stratum: str) -> None:
    """What is likelier stays so; only what reaches its bar is sure, and no open question is."""
    model = Model(0.0, (), {"a": 0.9})
    held, higher = (model.hold(each, stratum) for each in (probability, probability + more))
    assert held <= higher
    assert (held > SURE) == (stratum == "a" and probability > 0.9)
    assert stratum != OPEN_QUESTION or held <= 0.5


def test_points_say_what_they_were_fitted_on(fitting: Any) -> None:
    """The written model gives the fitted one's log-odds, shifted and scaled."""
    rows = [
        fitting.Labelled(
            (*(float(at * n % 7) for n in range(3, len(SIGNALS) + 2)), 0.0), at % 3 > 0
        )
        for at in range(400)
    ]
    fitted = fitting.fit_stumps(rows)
    model = fitting.points_of(fitted, rows, 0.5, 2.0)
    read = model_of_text(fitting.json_of_model(model))
    assert read == model
    for row in rows[:40]:
        [odds] = fitted.decision_function([row.signals])
        lean = LEAN * row.signals[0]
        assert read.sum_points(row.signals) == pytest.approx(0.5 + 2 * odds + lean, abs=0.02)


def test_the_surest_comes_first() -> None:
    """In the order of their probabilities, which fall."""
    case = make_case({"city": "Rme", "days": "2"}, "city must be one of: Rome, Riga")
    found = [each.estimate.shipped for each in judge(case, Scaling())]
    assert found == sorted(found, reverse=True)


def test_a_value_that_nobody_states_is_never_likelier_than_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever its proposer says of it."""
    case = make_case({"city": "Rm", "days": 1}, "city is refused", schema=SCHEMA)
    option = Option((Replace(name="city", before="Rm", value="Quito"),), "", Trials(500, 0.1), ())
    proposal = Proposal({"city": "Quito", "days": 1}, (option,), frozenset(("city",)), "q")
    monkeypatch.setattr("retrieval.answers.judge.ranking.propose_changes", lambda _: [proposal])
    [found] = judge(case, Scaling())
    assert found.account.unexplained
    assert found.estimate.probability <= 0.5


def test_what_two_places_would_take_is_shared_among_them() -> None:
    """It is not sure, whatever the likeness of the first one's name."""
    schema = object_schema(channelName="string", user="string") | {"additionalProperties": False}
    case = make_case({"name": "bob"}, "name: unexpected property", schema=schema | {"required": []})
    [found, *_] = [each for each in judge(case, Scaling()) if each.account.values]
    assert found.account.questions
    assert found.estimate.probability <= 0.5


def test_what_several_mended_alike_keeps_its_own_record() -> None:
    """Sessions speak for it, which no shape of a change shows."""
    pairs = [({"city": "Rom", "days": days}, {"city": "Rome", "days": days}) for days in range(4)]
    signature = SignatureKnowledge(
        signature="not found", category="not_found",
        examples=[an_example(at, *pair) for at, pair in enumerate(pairs)],
    )  # fmt: skip
    case = make_case({"city": "Rom", "days": 9}, "not found", signature=signature)
    first, *_ = judge(case, Scaling())
    assert first.proposal.parameters["city"] == "Rome"
    assert first.estimate.probability > SURE


def test_a_rename_that_the_schema_asks_for_is_sure_and_lossless() -> None:
    """The schema refuses the call as sent, takes it as mended, and no other place would do."""
    case = make_case({"cityName": "Rome", "days": 3}, "bad request", schema=object_schema(
        city_name="string", days="integer") | {"additionalProperties": False})  # fmt: skip
    first, *_ = judge(case, Scaling())
    assert [edit for option in first.proposal.options for edit in option.edits] == [
        Rename(name="cityName", to="city_name")
    ]
    assert first.account.change_class == "lossless"
    assert first.estimate.probability > SURE


def test_the_three_strongest_reasons_are_in_words() -> None:
    """They say what counted; a schema that shows the fault and takes the repair is among them."""
    schema = object_schema(limit="integer")
    case = make_case({"limit": "10"}, "limit must be integer", schema=schema)
    ranked = judge(case, Scaling())[0]
    reasons = shipped_model().reasons(ranked.signals)
    assert len(reasons) == 3
    assert "the schema refuses the call as sent and takes the repaired one" in reasons
    unknown = judge(make_case({"limit": "10"}, "limit must be integer"), Scaling())[0]
    assert "the schema of the tool is not known" in shipped_model().reasons(unknown.signals)


def test_each_signal_has_its_words() -> None:
    """Or is counted with one that has."""
    table = read_word_table("answers/judge/reasons.toml")
    assert table.keys() == set(SIGNALS)
    assert all(row.get("with", name) in table for name, row in table.items())
