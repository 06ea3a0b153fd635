"""Cohesion: a warning where two jobs are credible, and only there."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import Cohesion
from retrieval.knowledge.patterns.clusters import AxisClusters, KnownCluster
from retrieval.knowledge.patterns.cohesion import CohesionRules, cohesion_of
from retrieval.knowledge.rows.health import Corrected, KnownHealth, Referred

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
CLUSTERS = AxisClusters(
    clusters=[
        KnownCluster(cluster_id="t", name="transport", members=["transport", "http transport"]),
        KnownCluster(cluster_id="e", name="extraction", members=["extraction"]),
    ]
)
LITERAL = CohesionRules(min_confidence=0)


def referred(*axes: str, days_ago: float = 0, evidence: str | None = "seen") -> Referred:
    at = NOW - timedelta(days=days_ago)
    return Referred(
        at=at, execution_id="1", kind="wrong_tool_boundary", session="s",
        axes=list(axes), spelled=[axis.title() for axis in axes], evidence=evidence,
    )  # fmt: skip


def corrected(*axes: str, call: str = "1") -> Corrected:
    return Corrected(
        at=NOW, correction_id="1", execution_id=call, kind="wrong_tool_boundary", text="no",
        axes=list(axes),
    )  # fmt: skip


def told(*referrals: Referred, now: datetime = NOW, rules: CohesionRules | None = None) -> Cohesion:
    known = KnownHealth(referrals=list(referrals))
    return cohesion_of(known, CLUSTERS, now=now, rules=rules or CohesionRules())


def test_a_tool_that_names_both_its_jobs_is_warned_of_at_the_fifth_failure() -> None:
    """With both clusters, the tool's own words for them, and a message that names them."""
    both = referred("http transport", "extraction")
    assert not told(*[both] * 4).warning
    cohesion = told(*[both] * 4, referred("transport", "extraction", evidence=None))
    assert cohesion.warning
    assert cohesion.score == 0.5
    assert cohesion.confidence > 0.99
    assert (cohesion.failures, cohesion.without_evidence) == (5, 1)
    assert {each.name: (each.axes, each.count, each.share) for each in cohesion.axes} == {
        "extraction": (["Extraction"], 5, 1.0),
        "transport": (["Http Transport", "Transport"], 5, 1.0),
    }
    assert "extraction (100%) and transport (100%)" in cohesion.message


def test_wordings_of_one_cluster_are_one_axis() -> None:
    cohesion = told(*[referred("transport"), referred("http transport")] * 10)
    assert (cohesion.score, cohesion.warning, cohesion.message) == (1.0, False, "")


def test_strays_on_many_axes_are_no_second_job() -> None:
    """5 strays on 5 axes are 20 % each, which the rule by counts and shares warns of."""
    strays = [referred(f"stray {number}") for number in range(5)]
    assert told(*strays, rules=LITERAL).warning
    assert not told(*strays).warning


def test_one_stray_beside_many_failures_on_one_axis_is_none() -> None:
    assert not told(*[referred("transport")] * 19, referred("extraction")).warning


def test_a_warning_ends_by_itself() -> None:
    both = [referred("transport", "extraction")] * 6
    assert told(*both, now=NOW + timedelta(days=7)).warning
    faded = told(*both, now=NOW + timedelta(days=60))
    assert not faded.warning
    assert faded.failures == 6


def test_recent_failures_outweigh_old_ones() -> None:
    """A tool whose second job is long gone is not warned of."""
    old = [referred("extraction", days_ago=60)] * 10
    cohesion = told(*old, *[referred("transport")] * 10)
    assert not cohesion.warning
    assert cohesion.axes[0].name == "transport"


def test_a_users_correction_counts_thrice() -> None:
    """Two corrected calls are six failures; a second word about one of them adds nothing."""
    said = [corrected("transport", "extraction", call=call) for call in ("1", "2", "2")]
    cohesion = cohesion_of(KnownHealth(recent_corrections=said), CLUSTERS, now=NOW)
    assert cohesion.warning
    assert (cohesion.failures, cohesion.weight) == (2, 6.0)


def test_other_kinds_and_failures_without_axes_take_part_in_no_share() -> None:
    useless = referred("transport").model_copy(update={"kind": "low_utility"})
    assert told(useless) == Cohesion()
    cohesion = told(*[referred()] * 9)
    assert (cohesion.failures, cohesion.axes, cohesion.score) == (9, [], None)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_share_that_nothing_can_be_surely_above_warns_of_nothing(share: float) -> None:
    both = [referred("transport", "extraction")] * 9
    assert not told(*both, rules=CohesionRules(min_share=share)).warning


NAMED = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["transport", "extraction", "a", "b", "c"]), unique=True),
        st.floats(0, 4_000),
    ),
    max_size=64,
)


@given(NAMED)
def test_whatever_was_named_the_figures_hold(named: Sequence[tuple[list[str], float]]) -> None:
    """All are in their ranges, the largest share comes first, and a warning has a message."""
    cohesion = told(*(referred(*axes, days_ago=days) for axes, days in named))
    shares = [each.share for each in cohesion.axes]
    assert shares == sorted(shares, reverse=True)
    assert cohesion.failures == len(named)
    assert cohesion.warning == bool(cohesion.message)
    assert Cohesion.model_validate(cohesion.model_dump()) == cohesion


@given(NAMED)
def test_a_further_failure_on_the_leading_axis_makes_no_warning(
    named: Sequence[tuple[list[str], float]],
) -> None:
    """It speaks for one job."""
    before = [referred(*axes, days_ago=days) for axes, days in named]
    cohesion = told(*before)
    if cohesion.axes and len(before) >= 5:
        after = told(*before, referred(cohesion.axes[0].axes[0].lower()))
        assert after.confidence <= cohesion.confidence + 1e-4
