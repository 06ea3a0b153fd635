"""Reports: the wire's form, nothing secret, everything bounded; usefulness is monotone."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import AxisShare, Cohesion, ToolHealth, ToolName
from aftercall.redaction import Redactor
from retrieval.health.record import (
    Corrected,
    KnownHealth,
    MethodTallies,
    Referred,
    Weak,
)
from retrieval.health.report import MAX_SHOWN, health_report, utility_of
from retrieval.knowledge.rules import SignatureKnowledge, ToolKnowledge
from tests.retrieval.health.health_samples import NOW, moments, tallies, tally_of

KEY = "AKIAIOSFODNN7EXAMPLE"
CALL = "3f0b5a3e-8f4e-4a57-9c1e-0a1f0f9f7a11"
EXACT = 1e-9
TOOL = ToolName(tool_id="t", server_name="srv", tool_name="translate")


def report_of(
    known: KnownHealth,
    knowledge: ToolKnowledge | None = None,
    cohesion: Cohesion | None = None,
    stated: frozenset[str] = frozenset(),
) -> ToolHealth:
    return health_report(
        known,
        tool=TOOL,
        knowledge=knowledge,
        cohesion=cohesion or Cohesion(),
        stated_methods=stated,
        redactor=Redactor(),
        now=NOW,
    )


def referred(number: int, *, evidence: str | None = "html", words: str = "x") -> Referred:
    return Referred(
        at=NOW - timedelta(hours=100 - number),
        execution_id=CALL,
        kind="wrong_tool_boundary",
        session="s",
        axes=["transport"],
        spelled=[words],
        shape=words,
        split=[words],
        evidence=evidence,
    )


def test_a_tool_without_calls_is_healthy() -> None:
    """Nobody complained; nothing is known."""
    report = report_of(KnownHealth())
    assert (report.successes.count, report.utility.score, report.cohesion.warning) == (
        0,
        1.0,
        False,
    )


def test_counts_weights_and_the_latest() -> None:
    """Most first, latest first, weights as of now."""
    known = KnownHealth(
        successes=tally_of(NOW, NOW - timedelta(days=7)),
        categories={
            "timeout": tally_of(NOW),
            "wrong_tool_boundary": tally_of(*[NOW] * 30),
            "low_utility": tally_of(NOW),
        },
        methods={
            "get": MethodTallies(successes=tally_of(NOW), sessions=["a", "b"]),
            "mine": MethodTallies(successes=tally_of(NOW, NOW), sessions=["a"]),
        },
        referrals=[referred(number) for number in range(30)] + [referred(99, evidence=None)],
    )
    report = report_of(known)
    assert (report.successes.count, report.successes.weight) == (2, 1.5)
    assert [each.category for each in report.categories] == [
        "wrong_tool_boundary", "low_utility", "timeout",
    ]  # fmt: skip
    assert [each.method for each in report.methods] == ["get"]
    assert len(report.recent_referrals) == MAX_SHOWN
    assert [each.lacks_evidence for each in report.recent_referrals[:2]] == [True, False]
    assert report.utility.low_utility.count == 1


def test_what_was_said_is_masked_and_bounded() -> None:
    """Whoever said it, wherever it stands."""
    words = f"key {KEY} " + "long " * 500
    known = KnownHealth(
        referrals=[referred(1, evidence=words, words=words)],
        recent_weak=[Weak(at=NOW, execution_id=CALL, why=words)],
        recent_corrections=[
            Corrected(at=NOW, correction_id=CALL, execution_id=CALL, kind="low_utility", text=words)
        ],
    )
    knowledge = ToolKnowledge(
        signatures={"1": SignatureKnowledge(signature=words, category="execution", count=2)}
    )
    share = AxisShare(cluster_id="c", name=words, axes=[words], count=1, share=1.0)
    report = report_of(known, knowledge, Cohesion(axes=[share], message=words))
    told = report.model_dump_json()
    assert KEY not in told
    assert "key " in told
    assert len(told) < 12_000


def test_one_correction_outweighs_a_tools_own_word_thrice() -> None:
    """Of ten good answers: 11/14 after a correction, 11/12 after `low_utility`, 11/11.5 weak."""
    good = tally_of(*[NOW] * 10)
    corrected = KnownHealth(successes=good, corrections=tally_of(NOW))
    own_word = KnownHealth(successes=good, categories={"low_utility": tally_of(NOW)})
    weak = KnownHealth(successes=tally_of(*[NOW] * 11), weak=tally_of(NOW))
    found = [utility_of(each, now=NOW) for each in (corrected, own_word, weak)]
    assert found == pytest.approx([11 / 14, 11 / 12, 11 / 11.5])


def test_useless_answers_alone_go_towards_zero() -> None:
    """And fade with time."""
    known = KnownHealth(categories={"low_utility": tally_of(*[NOW] * 99)})
    assert utility_of(known, now=NOW) == pytest.approx(0.01)
    assert utility_of(known, now=NOW + timedelta(days=365)) > 0.99


knowns = st.builds(
    lambda good, weak, corrections, low: KnownHealth(
        successes=tally_of(*good, *weak),
        weak=tally_of(*weak),
        corrections=corrections,
        categories={"low_utility": low},
    ),
    st.lists(moments, max_size=8),
    st.lists(moments, max_size=8),
    tallies,
    tallies,
)


@given(knowns, moments)
def test_usefulness_is_monotone(known: KnownHealth, at: datetime) -> None:
    """A good success never lowers it, no complaint raises it, the graver one lowers it more."""
    before = utility_of(known, now=NOW)
    assert 0 <= before <= 1

    def after(*changed: str) -> float:
        more = known.model_copy(deep=True)
        for each in changed:
            tally = more.categories[each] if each == "low_utility" else getattr(more, each)
            tally.add(at)
        return utility_of(more, now=NOW)

    weak, own, corrected = after("successes", "weak"), after("low_utility"), after("corrections")
    assert after("successes") >= before - EXACT
    assert before + EXACT >= weak
    assert weak + EXACT >= own
    assert own + EXACT >= corrected
