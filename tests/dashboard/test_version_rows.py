"""Versions and fitness as rows."""

from datetime import UTC, datetime, timedelta

from aftercall.models import BestTool, Factors, RankedTool, Tool
from mongo.records import StoredTool, ToolKey
from retrieval.fitness.statistics import ToolStatistics, trial_of
from service.dashboard.shown.version_rows import UNNAMED, fitness_rows, version_rows

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TOOL = ToolKey("default", "calc", "sum")


def registered(tool_id: str, version: str | None, name: str = "sum") -> StoredTool:
    """A registered version."""
    tool = Tool(tool_id=tool_id, name=name, server_name="calc", version=version, updated_at=NOW)
    return StoredTool("default", tool)


def fared(*calls: tuple[str | None, bool, int]) -> ToolStatistics:
    """Calls: the version, whether they succeeded, and how many hours ago."""
    known = ToolStatistics()
    for number, (version, succeeded, hours) in enumerate(calls):
        at = NOW - timedelta(hours=hours)
        trial = trial_of(at, str(number), "success" if succeeded else "failure")
        known.version_to_update(version).add(trial, at)
    return known


def test_each_version_has_its_own_record() -> None:
    """The latest used first; quality falls with failures."""
    known = fared(("1.0", False, 9), ("1.0", True, 8), ("1.1", True, 1), (None, True, 20))
    rows = version_rows(TOOL, [], known, NOW)
    assert [(row.version, row.successes, row.failures) for row in rows] == [
        ("1.1", 1, 0), ("1.0", 1, 1), (UNNAMED, 1, 0),
    ]  # fmt: skip
    assert rows[0].quality == 1.0
    assert 0 < rows[1].quality < 1


def test_registered_ids_stand_with_their_versions() -> None:
    """`1.0` and `1.0.0` are one version; tools of other names are no versions of it."""
    rows = version_rows(
        TOOL,
        [registered("sum-1", "1.0.0"), registered("sum-2", "2.0.0"), registered("x", "1.0", "max")],
        fared(("1.0", True, 1)),
        NOW,
    )
    assert [(row.version, row.tool_ids, row.successes) for row in rows] == [
        ("1.0", ("sum-1",), 1), ("2.0.0", ("sum-2",), 0),
    ]  # fmt: skip


def test_nothing_known_is_an_empty_table() -> None:
    """Of a tool that nobody called or registered."""
    assert version_rows(TOOL, [], None, NOW) == []


def test_candidates_are_told_with_all_factors() -> None:
    """In the order of the answer."""
    candidate = RankedTool(
        tool=registered("sum-1", "1.0").tool, score=0.63, source="original",
        factors=Factors(base=0.9, quality=0.7, failure_demotion=1.0),
    )  # fmt: skip
    best = BestTool(**dict(candidate), candidates=[candidate], threshold=0.2, mode="fitness")
    [row] = fitness_rows("sums", best)
    assert (row.base, row.quality, row.demotion, row.score) == (0.9, 0.7, 1.0, 0.63)
    assert (row.namespace, row.tool_id, row.version, row.source) == (
        "sums",
        "sum-1",
        "1.0",
        "original",
    )
