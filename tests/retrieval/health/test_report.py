"""Reports: the wire's form, nothing secret, everything bounded; usefulness is monotone."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import Cohesion, ToolHealth, ToolName
from aftercall.redaction import Redactor
from retrieval.answers.health_report import MAX_SHOWN, health_report, utility_of
from retrieval.knowledge.rows.health import KnownHealth, MethodTallies, Referred, Tally
from tests.retrieval.health.health_samples import NOW, moments, tallies

CALL = "3f0b5a3e-8f4e-4a57-9c1e-0a1f0f9f7a11"
EXACT = 1e-9
TOOL = ToolName(tool_id="t", server_name="srv", tool_name="translate")


def report_of(known: KnownHealth) -> ToolHealth:
    return health_report(
        known,
        tool=TOOL,
        knowledge=None,
        cohesion=Cohesion(),
        stated_methods=frozenset(),
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


def test_counts_weights_and_the_latest() -> None:
    """Most first, latest first, weights as of now."""
    known = KnownHealth(
        successes=Tally.from_moments([NOW, NOW - timedelta(days=7)]),
        categories={
            "timeout": Tally.from_moments([NOW]),
            "wrong_tool_boundary": Tally.from_moments([NOW] * 30),
            "low_utility": Tally.from_moments([NOW]),
        },
        methods={
            "get": MethodTallies(successes=Tally.from_moments([NOW]), sessions=["a", "b"]),
            "mine": MethodTallies(successes=Tally.from_moments([NOW, NOW]), sessions=["a"]),
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


def test_one_correction_outweighs_a_tools_own_word_thrice() -> None:
    """Of ten good answers: 11/14 after a correction, 11/12 after `low_utility`, 11/11.5 weak."""
    good = Tally.from_moments([NOW] * 10)
    corrected = KnownHealth(successes=good, corrections=Tally.from_moments([NOW]))
    own_word = KnownHealth(successes=good, categories={"low_utility": Tally.from_moments([NOW])})
    weak = KnownHealth(successes=Tally.from_moments([NOW] * 11), weak=Tally.from_moments([NOW]))
    found = [utility_of(each, now=NOW) for each in (corrected, own_word, weak)]
    assert found == pytest.approx([11 / 14, 11 / 12, 11 / 11.5])


def test_useless_answers_alone_go_towards_zero() -> None:
    """And fade with time."""
    known = KnownHealth(categories={"low_utility": Tally.from_moments([NOW] * 99)})
    assert utility_of(known, now=NOW) == pytest.approx(0.01)
    assert utility_of(known, now=NOW + timedelta(days=365)) > 0.99


knowns = st.builds(
    lambda good, weak, corrections, low: KnownHealth(
        successes=Tally.from_moments([*good, *weak]),
        weak=Tally.from_moments(weak),
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
