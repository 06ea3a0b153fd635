"""Claims about trials and scenarios for any input (Hypothesis)."""

from datetime import datetime, timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from ingest.scenarios import ScenarioDocuments, Use, normalised
from retrieval.fitness.statistics import (
    MAX_SCENARIOS,
    Trial,
    TrialKind,
    VersionStatistics,
    merged,
    moment_of,
    trial_of,
    with_trial,
)
from retrieval.knowledge.documents import Document
from tests.ingest.fitness_samples import START, TOOL, worded

kinds: st.SearchStrategy[TrialKind] = st.sampled_from(
    ["success", "failure", "low", "medium", "high"]
)
moments = st.integers(0, 300).map(lambda minutes: START + timedelta(minutes=minutes))


def trials_of(keys: st.SearchStrategy[int]) -> st.SearchStrategy[Trial]:
    return st.builds(lambda at, key, kind: trial_of(at, str(key), kind), moments, keys, kinds)


@given(
    st.lists(trials_of(st.integers(0, 200)), max_size=150, unique_by=lambda each: each.key),
    trials_of(st.integers(201, 210)),
)
def test_adding_one_trial_is_merging_it(known: list[Trial], new: Trial) -> None:
    """The cheap way and the general one give the same, of a call that is not known."""
    assert with_trial(merged(known), new) == merged(merged(known), [new])


@given(st.lists(trials_of(st.integers(0, 30)), max_size=60), st.randoms(use_true_random=False))
def test_counts_do_not_depend_on_the_order(trials: list[Trial], random: Random) -> None:
    """Each call counts once, as a failure where anybody says so."""
    shuffled = random.sample(trials, len(trials))
    both = VersionStatistics(), VersionStatistics()
    for known, order in zip(both, (trials, shuffled), strict=True):
        for trial in order:
            known.add(trial, moment_of(trial))
    assert both[0] == both[1]
    worked = {each.key for each in trials} - {e.key for e in trials if not e.is_success}
    calls = {each.key for each in trials}
    assert (both[0].successes, both[0].failures) == (len(worked), len(calls) - len(worked))


@given(
    st.lists(trials_of(st.integers(0, 30)), max_size=30, unique_by=lambda each: each.key),
    trials_of(st.integers(31, 40)),
)
def test_what_is_taken_out_was_never_seen(others: list[Trial], moved: Trial) -> None:
    """A version from which a mark takes a call is as if that had been of another from the start."""
    never, known = VersionStatistics(), VersionStatistics()
    for trial in [*others, moved]:
        known.add(trial, moment_of(trial))
    known.take_out(moved.key, "success" if moved.is_success else "failure")
    for trial in others:
        never.add(trial, moment_of(trial))
    assert known == never or not others


uses = st.builds(
    lambda number, at, kind, key: Use(
        TOOL, "", worded(number), trial_of(at, str(key), kind), at, message=f"at {at}"
    ),
    st.integers(0, 90),
    moments,
    kinds,
    st.integers(0, 1_000),
)


@given(st.lists(st.lists(uses, max_size=120), max_size=4))
def test_the_store_holds_what_the_table_names(batches: list[list[Use]]) -> None:
    """After any batches: as many documents as there is room, and none without its vector."""
    stored: dict[tuple[str, str], Document] = {}
    vectors: set[tuple[str, str]] = set()
    table: dict[str, datetime] = {}
    for batch in batches:
        scenarios = ScenarioDocuments(dict(stored))
        for use in batch:
            scenarios.learn(use, table)
        removed, rows = scenarios.removed(), list(scenarios.rows())
        assert not {(row.workspace, row.document_id) for row in rows} & set(removed)
        for key in removed:
            stored.pop(key, None)
            vectors.discard(key)
        for row in rows:
            key = (row.workspace, row.document_id)
            stored[key] = Document.model_validate_json(row.data)
            if row.is_new:
                vectors.add(key)
        assert {identity for _, identity in stored} == set(table)
        assert vectors == set(stored)
        assert len(table) <= MAX_SCENARIOS


@given(st.text(max_size=200))
def test_a_wording_is_like_itself(text: str) -> None:
    """In any case, however it is spaced, whatever its numbers."""
    assert normalised(f"  {text}\n") == normalised(text)
    assert normalised(normalised(text)) == normalised(text)
    assert normalised(f"{text} 12") == normalised(f"{text} 7")
