"""Names and ids of clusters last over time."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from retrieval.knowledge.patterns.clusters import (
    RENAME,
    AxisClusters,
    name_clusters,
    new_cluster_id,
)

NIGHT = datetime(2026, 3, 1, 3, tzinfo=UTC)
AXES = [f"axis {letter}" for letter in "abcdefghij"]

Partition = list[list[str]]


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    """A partition of some of the axes."""
    placed = draw(st.dictionaries(st.sampled_from(AXES), st.integers(0, 4)))
    return [
        [axis for axis, place in placed.items() if place == number]
        for number in sorted(set(placed.values()))
    ]


COUNTS = st.fixed_dictionaries({axis: st.integers(1, 30) for axis in AXES})


def first(partition: Sequence[Sequence[str]], counts: Mapping[str, int]) -> AxisClusters:
    return name_clusters(AxisClusters(), partition, counts, at=NIGHT)


@given(partitions(), COUNTS)
def test_the_same_input_again_changes_nothing(partition: Partition, counts: dict[str, int]) -> None:
    """But for the time."""
    before = first(partition, counts)
    later = name_clusters(before, reversed(partition), counts, at=NIGHT + timedelta(days=1))
    assert later.clusters == before.clusters


@given(st.lists(st.tuples(partitions(), COUNTS), min_size=1, max_size=5))
def test_over_many_nights_it_stays_a_partition_with_one_id_each(
    nights: list[tuple[Partition, dict[str, int]]],
) -> None:
    """Whatever splits, merges, comes and goes; each name is a member's."""
    clusters = AxisClusters()
    for partition, counts in nights:
        clusters = name_clusters(clusters, partition, counts, at=NIGHT)
        told = [sorted(each.members) for each in clusters.clusters]
        assert sorted(told) == sorted(sorted(each) for each in partition)
        ids = [each.cluster_id for each in clusters.clusters]
        assert len(set(ids)) == len(ids)
        assert all(each.name in each.members for each in clusters.clusters)


@given(partitions(), COUNTS, st.integers(0, 5))
def test_a_new_phrase_renames_nobody(
    partition: Partition, counts: dict[str, int], place: int
) -> None:
    """It joins a cluster or makes one, and all others are called what they were."""
    before = first(partition, counts)
    after = [list(each) for each in partition]
    if place < len(after):
        after[place].append("a new phrase")
    else:
        after.append(["a new phrase"])
    later = name_clusters(before, after, counts | {"a new phrase": 1}, at=NIGHT)
    kept = {each.cluster_id: each.name for each in later.clusters}
    assert {each.cluster_id: each.name for each in before.clusters}.items() <= kept.items()


def test_a_new_cluster_is_named_after_its_most_frequent_member() -> None:
    """Of equals the shortest; its id is that of the axis when it stood for itself."""
    [known] = first([["http transport", "transport", "fetch"]], {"transport": 4}).clusters
    assert known.name == "transport"
    assert known.cluster_id == new_cluster_id("transport")
    [known] = first([["http transport", "fetch"]], {}).clusters
    assert known.name == "fetch"


def test_a_name_changes_when_another_is_several_times_as_frequent() -> None:
    """Not before, and the id stays."""
    before = first([["fetch", "transport"]], {"fetch": 4, "transport": 3})
    [close] = name_clusters(
        before, [["fetch", "transport"]], {"fetch": 4, "transport": 11}, at=NIGHT
    ).clusters
    assert close.name == "fetch"
    counts = {"fetch": 4, "transport": 4 * RENAME}
    [renamed] = name_clusters(before, [["fetch", "transport"]], counts, at=NIGHT).clusters
    assert (renamed.name, renamed.cluster_id) == ("transport", before.clusters[0].cluster_id)


def test_of_a_split_the_largest_part_keeps_the_id() -> None:
    """The other part gets one of its own, although the cluster began with its wording."""
    before = first([["fetch", "transport", "parsing"]], {"fetch": 9})
    counts = {"fetch": 2, "transport": 3, "parsing": 3}
    later = name_clusters(before, [["fetch"], ["transport", "parsing"]], counts, at=NIGHT)
    heir, other = later.clusters
    assert heir.cluster_id == before.clusters[0].cluster_id
    assert heir.members == ["parsing", "transport"]
    assert heir.name == "parsing"
    assert other.cluster_id != heir.cluster_id
    assert other.name == "fetch"


def test_a_merger_keeps_the_id_and_name_of_its_largest_part() -> None:
    """Largest by how often its members were named, whichever has the most frequent one."""
    counts = {"fetch": 4, "retrieve": 2, "transport": 5}
    before = first([["fetch", "retrieve"], ["transport"]], counts)
    [merged] = name_clusters(
        before, [["fetch", "retrieve", "transport"]], counts, at=NIGHT
    ).clusters
    assert (merged.name, merged.cluster_id) == ("fetch", before.clusters[0].cluster_id)
