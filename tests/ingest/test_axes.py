"""The axes of a workspace are clustered from its book, and keep ids and names."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from aftercall.models import Execution, ExecutionError
from ingest.axes import AxisClusterer
from tests.ingest.conftest import WORKSPACE, Brain

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def referral(*axes: str) -> Execution:
    """A call that was refused because it crosses a boundary."""
    return Execution(
        execution_id=str(uuid4()),
        timestamp=NOW,
        agent="librarian",
        tool_name="read_page",
        parameters={},
        outcome="failure",
        error=ExecutionError(
            type="wrong_tool_boundary",
            message="not my job",
            details={"boundary_axes": list(axes), "evidence": "seen"},
        ),
    )


@pytest.fixture
def clusterer(brain: Brain) -> AxisClusterer:
    return AxisClusterer(
        knowledge=lambda: brain.store.knowledge,
        memory=brain.memory,
        embedder=brain.embedder,
        clock=lambda: NOW,
    )


async def clustered(clusterer: AxisClusterer) -> dict[str, list[str]]:
    """Members by name."""
    found = await clusterer.cluster_axes(WORKSPACE)
    return {each.name: sorted(each.members) for each in found.clusters}


async def test_axes_become_clusters(brain: Brain, clusterer: AxisClusterer) -> None:
    """By what they say; which is due as soon as there is a new one."""
    assert not await clusterer.is_due(WORKSPACE)
    await brain.learn(
        referral("HTML table parsing"), referral("parsing HTML tables"), referral("payment")
    )
    assert await clusterer.is_due(WORKSPACE)
    assert await clustered(clusterer) == {
        "html table parsing": ["html table parsing", "parsing html table"],
        "payment": ["payment"],
    }
    assert not await clusterer.is_due(WORKSPACE)
    await brain.learn(referral("payment", "invoice"))
    assert await clusterer.is_due(WORKSPACE)


async def test_a_rebuild_keeps_ids_and_names(brain: Brain, clusterer: AxisClusterer) -> None:
    """Also those of a cluster whose most frequent wording is another by now."""
    await brain.learn(referral("HTML table parsing"))
    before = await clusterer.cluster_axes(WORKSPACE)
    await brain.learn(*(referral("parsing HTML tables") for _ in range(2)))
    await brain.rebuild()
    [workspace] = await clusterer.cluster_all()
    assert workspace == WORKSPACE
    [known] = (await brain.memory.axis_clusters(WORKSPACE)).clusters
    assert (known.cluster_id, known.name) == (before.clusters[0].cluster_id, "html table parsing")
    assert known.members == ["parsing html table", "html table parsing"]


async def test_a_thousand_axes_of_one_agent_leave_the_others_as_they_are(
    brain: Brain, clusterer: AxisClusterer
) -> None:
    """They are clusters of their own; ids and names of what was there stay."""
    await brain.learn(*(referral("transport", "extraction") for _ in range(3)))
    before = await clustered(clusterer)
    words = [f"{uuid4().hex[:6]} {uuid4().hex[:6]}" for _ in range(1_000)]
    await brain.learn(*(referral(*words[start : start + 20]) for start in range(0, 1_000, 20)))
    after = await clustered(clusterer)
    assert len((await brain.memory.axis_book(WORKSPACE)).axes) == 1_002
    assert before.keys() == {"transport", "extraction"} <= after.keys()
