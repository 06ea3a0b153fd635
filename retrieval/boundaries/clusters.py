"""Clusters of axes: wordings that mean one capability, under ids and names that last."""

import uuid
from datetime import datetime
from functools import cached_property

from pydantic import BaseModel, Field

_IDS = uuid.UUID("5f0c3c4e-1d0b-5f0a-9b1e-3c7a2f6d9e10")


class KnownCluster(BaseModel):
    """One cluster; `name` and `members` are normalised axes."""

    cluster_id: str
    name: str
    members: list[str] = Field(default_factory=list)


class AxisClusters(BaseModel):
    """All clusters of a workspace, as the latest clustering left them."""

    clusters: list[KnownCluster] = Field(default_factory=list)
    clustered_at: datetime | None = None

    def cluster_of(self, axis: str) -> KnownCluster:
        """The cluster of a normalised axis; one that was never clustered stands for itself."""
        known = self._by_axis.get(axis)
        return known or KnownCluster(cluster_id=new_cluster_id(axis), name=axis, members=[axis])

    def knows(self, axis: str) -> bool:
        """Whether the axis was clustered."""
        return axis in self._by_axis

    @cached_property
    def _by_axis(self) -> dict[str, KnownCluster]:
        return {axis: each for each in self.clusters for axis in each.members}


def new_cluster_id(first_axis: str) -> str:
    """The id of a cluster that begins with this axis."""
    return str(uuid.uuid5(_IDS, first_axis))


def axes_fact(workspace: str) -> str:
    """The name of the store's fact that holds a workspace's clusters."""
    return f"axes:{workspace}"
