"""The audit of a repaired call, and the trees that judge by it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.confidence import (
    JUDGED,
    SURE,
    Blend,
    Estimate,
    bar_of,
    judge,
    judged,
    shipped,
    shipped_blend,
    unanimous,
)
from retrieval.edits import Remove, Replace
from retrieval.knowledge.rules import SignatureKnowledge
from retrieval.proposals.audit import AUDITED, audit, shipped_trees, trees_of_text
from retrieval.proposals.case import Option, Trials
from retrieval.proposals.compose import Proposal
from tests.retrieval.cases import make_case, object_schema
from tests.retrieval.test_repairs import an_example

SCHEMA = object_schema(city="string", days="integer") | {"additionalProperties": False}
_EVIDENCE = [JUDGED.index(name) for name in ("likelihood", "rivals", "bound", "least_likely")]
vectors = st.lists(st.floats(-20, 20), min_size=len(JUDGED), max_size=len(JUDGED))


def counts_of(sent: dict[str, object], repaired: dict[str, object]) -> dict[str, float]:
    """The audit of a repair of a call whose city is at fault."""
    case = make_case(sent, "city is wrong", schema=SCHEMA)  # type: ignore[arg-type]
    edit = Replace(name="city", before=sent["city"], value=repaired["city"])  # type: ignore[arg-type]
    option = Option((edit,), "like", Trials(9, 1), ("error",))
    proposal = Proposal(repaired, (option,), frozenset(("city",)), "")  # type: ignore[arg-type]
    return dict(zip(AUDITED, audit(case, proposal), strict=True))


def test_words_that_are_gone_or_new_are_counted() -> None:
    """Another case or another separator is the same word; a number is its digits."""
    found = counts_of({"city": "new-york city", "days": 3}, {"city": "NewYork", "days": 3})
    assert (found["lost_words"], found["new_words"]) == (1, 0)
    found = counts_of({"city": "Rome", "days": 3.0}, {"city": "Milan", "days": 3})
    assert (found["lost_words"], found["new_words"]) == (1, 1)
    found = counts_of({"city": "Rome", "days": 3}, {"city": "Milan", "days": 3})
    assert (found["changed_values"], found["same_values"]) == (1, 1)


def test_signs_that_few_values_have_are_counted_where_no_successes_are_known() -> None:
    """What stays in the repaired call, whoever put it there."""
    assert counts_of({"city": "Rome", "days": 3}, {"city": "{Rome}", "days": 3})["odd_signs"] == 1
    assert counts_of({"city": "rome", "days": 3}, {"city": "Rome, IT", "days": 3})["odd_signs"] == 0


def test_a_value_unlike_all_that_are_listed_or_known_is_counted() -> None:
    """Whatever was mended beside it; what is masked is none of our business."""
    listed = object_schema(mode={"type": "string", "description": "One of: 'START', 'STOP'"})
    for value, expected in (("IGNITION_ON", 1), ("STOP", 0), ("[redacted:string:9-16]", 0)):
        case = make_case({"mode": value, "cache": 1}, "unexpected cache", schema=listed)
        option = Option((Remove(name="cache"),), "", Trials(9, 1), ("error",))
        proposal = Proposal({"mode": value}, (option,), frozenset(("cache",)), "")
        found = dict(zip(AUDITED, audit(case, proposal), strict=True))
        assert found["unlike_values"] == expected
    zone = object_schema(zone={"type": "string", "description": "e.g. 'Europe/Rome', 'Asia/Tokyo'"})
    case = make_case({"zone": "Africa/Cairo", "cache": 1}, "unexpected cache", schema=zone)
    proposal = Proposal({"zone": "Africa/Cairo"}, (option,), frozenset(("cache",)), "")
    assert dict(zip(AUDITED, audit(case, proposal), strict=True))["unlike_values"] == 0


@given(vectors, st.sampled_from(_EVIDENCE), st.floats(0, 20))
def test_evidence_never_makes_the_trees_less_sure(
    vector: list[float], place: int, more: float
) -> None:
    """Of the shipped trees, wherever a proposal stands."""
    better = [*vector[:place], vector[place] + more, *vector[place + 1 :]]
    for trees in shipped_trees():
        assert trees.features == JUDGED
        assert trees.log_odds(better) >= trees.log_odds(vector) - 1e-9


def test_trees_say_what_they_were_fitted_on(fitting: Any) -> None:
    """The written trees give the fitted model's log-odds."""
    rows = [
        fitting.Judged(tuple(float(at * n % 7) for n in range(3, len(JUDGED) + 3)), at % 3 > 0)
        for at in range(400)
    ]
    model = fitting.fit_trees(rows)
    trees, _ = trees_of_text(fitting.json_of_trees([model, model]))
    for row in rows[:40]:
        [odds] = model.decision_function([row.vector])
        assert trees.log_odds(row.vector) == pytest.approx(odds, abs=0.02)


@given(*3 * [st.floats(0, 1)], st.booleans(), st.sampled_from(JUDGED))
def test_neither_alone_is_sure(
    estimate: float, likely: float, blend: float, is_doubted: bool, shown: str
) -> None:
    """Weights and trees must both be, and what a doubt puts below a half stays there.

    Of a change that shows no word that is gone or new the trees must be surer.
    """
    vector = tuple(float(name == shown) for name in JUDGED)
    _, found = judged(estimate, likely, bar_of(vector), blend, is_doubted=is_doubted)
    if found > SURE:
        assert min(estimate, likely) > SURE
        assert shown in ("new_words", "lost_words") or likely > 0.92
        assert not is_doubted or found <= estimate
    if is_doubted and min(estimate, likely) < 0.5:
        assert found < 0.5


@given(*4 * [st.floats(0, 1)], st.booleans())
def test_more_evidence_never_makes_less_likely(
    estimate: float, more: float, likely: float, blend: float, is_doubted: bool
) -> None:
    """The blend rises with it as well, but may be anything."""
    _, before = judged(estimate, likely, SURE, blend, is_doubted=is_doubted)
    _, after = judged(min(1, estimate + more), likely, SURE, blend, is_doubted=is_doubted)
    assert after >= before


@given(*3 * [st.floats(0.01, 1)], st.floats(-9, 9))
def test_the_blend_rises_with_all_that_it_is_of(
    left: float, estimate: float, more: float, odds: float
) -> None:
    """As the shipped one is."""
    blend = shipped_blend()
    before = blend.probability(odds, left, estimate)
    for better in (
        blend.probability(odds + more, left, estimate),
        blend.probability(odds, min(1, left + more), estimate),
        blend.probability(odds, left, min(1, estimate + more)),
    ):
        assert better >= before - 1e-12


def test_one_fit_that_is_not_sure_is_enough() -> None:
    """What is not sure is as likely as the first fit says."""
    assert unanimous(iter([3.0, 2.5, 2.0]), SURE) == pytest.approx(0.953, abs=1e-3)
    assert unanimous(iter([3.0, 2.5, 1.0]), SURE) == pytest.approx(SURE - 0.01)
    assert unanimous(iter([0.0, -5.0]), SURE) == 0.5


def test_what_is_ordered_first_is_told_as_the_likelier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees and weights order repairs; the blend says how likely each is, none more than before."""
    case = make_case({"city": "Rm", "days": 2}, "Rm is refused")
    proposals = []
    for to, right in (("Rome", 5.0), ("Riga", 4.0), ("Reims", 3.0)):
        option = Option((Replace(name="city", before="Rm", value=to),), "", Trials(right, 4), ())
        made = {"city": to, "days": 2}
        proposals.append(Proposal(made, (option,), frozenset(("city",)), to))
    monkeypatch.setattr("retrieval.confidence.propose", lambda _: proposals)
    before = judge(case, shipped())
    likely = iter((0.2, 0.45, 0.3))
    monkeypatch.setattr(Blend, "probability", lambda *_: next(likely))
    after = judge(case, shipped())
    assert [each.proposal.key for each in after] == [each.proposal.key for each in before]
    assert len(after) == 3
    told = [each.estimate.shipped for each in after]
    assert told == sorted(told, reverse=True)


def test_an_estimate_moves_as_a_whole() -> None:
    """Interval and own scaling keep their order."""
    moved = Estimate(0.9, 0.85, 0.95, 0.9).moved_to(0.6)
    assert moved.shipped == pytest.approx(0.6)
    assert moved.low < moved.probability < moved.high


def test_what_several_mended_alike_keeps_its_own_record() -> None:
    """Sessions speak for it, which no shape of a change shows."""
    pairs = [({"city": "Rom", "days": days}, {"city": "Rome", "days": days}) for days in range(4)]
    signature = SignatureKnowledge(
        signature="not found", category="not_found",
        examples=[an_example(at, *pair) for at, pair in enumerate(pairs)],
    )  # fmt: skip
    case = make_case({"city": "Rom", "days": 9}, "not found", signature=signature)
    first, *_ = judge(case, shipped())
    assert first.proposal.parameters["city"] == "Rome"
    assert first.judged is None
    assert first.estimate.probability > SURE
