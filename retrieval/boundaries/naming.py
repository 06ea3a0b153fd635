"""Naming: clusters made anew keep the ids and names that people know. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from retrieval.boundaries.clusters import AxisClusters, KnownCluster, new_cluster_id

RENAME = 3
"""How many times as frequent as the name another member must be to become it. Frequencies of a few
sway to twice and back by chance; after a change it takes the same again to change back."""


def named(
    previous: AxisClusters,
    partition: Iterable[Sequence[str]],
    counts: Mapping[str, int],
    *,
    at: datetime,
) -> AxisClusters:
    """A new partition under the old ids and names, as far as its clusters are the old ones.

    An id goes to the heir that has most of its cluster, by how often the members were named; where
    several claim one, or one could have several, the greatest overlap comes first. So of a split
    the largest part keeps the id, and of a merger the largest part gives it. A name stays until its
    wording has left the cluster, or another is `RENAME` times as frequent. What is new is named
    after its most frequent member.

    Args:
        previous: the clusters as they were.
        partition: normalised axes, each in one cluster; the order makes no difference.
        counts: how often each axis was named; 1 where it is missing.
        at: when the clusters were made.

    Raises:
        ValueError: an axis is in two clusters, or a cluster is empty.
    """
    groups = [sorted(each, key=lambda axis: _prominence(axis, counts)) for each in partition]
    _check(groups)
    groups.sort(key=lambda group: (-_weight(group, counts), group[0]))
    heirs = _heirs(previous, groups, counts)
    taken = {each.cluster_id for each in heirs.values()}
    clusters = []
    for place, group in enumerate(groups):
        before = heirs.get(place)
        cluster_id = before.cluster_id if before else _free_id(group, taken)
        taken.add(cluster_id)
        name = _name(before.name if before else None, group, counts)
        clusters.append(KnownCluster(cluster_id=cluster_id, name=name, members=group))
    return AxisClusters(clusters=clusters, clustered_at=at)


def _heirs(
    previous: AxisClusters, groups: Sequence[Sequence[str]], counts: Mapping[str, int]
) -> dict[int, KnownCluster]:
    """The old cluster that each group continues, if any, by the group's place."""
    old = {axis: place for place, each in enumerate(previous.clusters) for axis in each.members}
    overlaps: dict[tuple[int, int], int] = {}
    for new, group in enumerate(groups):
        for axis in group:
            if axis in old:
                pair = (new, old[axis])
                overlaps[pair] = overlaps.get(pair, 0) + _count(axis, counts)
    heirs: dict[int, KnownCluster] = {}
    inherited: set[int] = set()
    for new, before in sorted(overlaps, key=lambda pair: (-overlaps[pair], pair[1], pair[0])):
        if new not in heirs and before not in inherited:
            heirs[new] = previous.clusters[before]
            inherited.add(before)
    return heirs


def _name(before: str | None, group: Sequence[str], counts: Mapping[str, int]) -> str:
    most = group[0]
    if before is None or before not in group:
        return most
    return most if _count(most, counts) >= RENAME * _count(before, counts) else before


def _free_id(group: Sequence[str], taken: set[str]) -> str:
    """An id that begins with a member; another when a cluster that it has left bears it still."""
    for axis in group:
        if (cluster_id := new_cluster_id(axis)) not in taken:
            return cluster_id
    number = 2
    while (cluster_id := new_cluster_id(f"{group[0]}\x1f{number}")) in taken:
        number += 1
    return cluster_id


def _prominence(axis: str, counts: Mapping[str, int]) -> tuple[int, int, str]:
    """Most frequent first; of equals the shortest, for it is the most general."""
    return (-_count(axis, counts), len(axis), axis)


def _weight(group: Iterable[str], counts: Mapping[str, int]) -> int:
    return sum(_count(axis, counts) for axis in group)


def _count(axis: str, counts: Mapping[str, int]) -> int:
    return max(1, counts.get(axis, 1))


def _check(groups: Sequence[Sequence[str]]) -> None:
    members = [axis for group in groups for axis in group]
    if not all(groups) or len(set(members)) != len(members):
        raise ValueError("a partition has no empty cluster, and no axis that is in two")
