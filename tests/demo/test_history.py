"""A made-up history on a service inside this process: what is recorded, learned and reported."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from aftercall.models import Execution
from mongo.contents import execution_of
from service.demo.history import HistoryReport, play_history
from workbench.alone import executions_alone
from workbench.in_process import InProcessClient, in_process

pytestmark = pytest.mark.real

NOW = datetime(2026, 11, 20, 16, tzinfo=UTC)
_LIMIT = 100


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[InProcessClient]:
    async with in_process(tmp_path, embedder="hashing") as opened:
        yield opened


async def test_a_history_is_recorded_learned_and_reported(client: InProcessClient) -> None:
    """Counts agree with the service's; agents that ask are mended more; tools and words arrive.

    The nightly run works inside, too: there are patterns of failures that several agents met.
    """
    told: list[int] = []
    report = await play_history(
        client, calls_per_day=60, now=NOW, on_progress=lambda done, _words: told.append(done)
    )
    counts = report.counts

    status = await client.status()
    assert status.executions == report.calls == told[-1]
    assert status.pending_indexing == 0
    assert report.agents == 16
    assert report.since < report.until <= NOW

    assert counts["asked"] > counts["followed"] > 0
    assert counts["right"] + counts["wrong"] + counts["failed"] == counts["followed"]
    assert counts["right"] > 8 * counts["wrong"], "nearly all that succeeded did what was meant"
    assert report.final_rate > report.first_rate + 0.08

    tools = {tool.tool_id: tool for tool in await client.list_tools()}
    assert tools["tickets.create_ticket"].version == "2.0.0"
    assert (await client.get_promotion("translation")).evolved_version == "1.1.0"
    assert len({tool.namespace for tool in tools.values()} - {None}) >= 5
    assert len({tool.server_name for tool in tools.values()}) == 8
    assert len(await client.corrections(limit=_LIMIT)) == counts["corrections"] > 0
    await followed_as_told(client, report)
    assert not (await client.run_night()).failed
    assert (await client.patterns(limit=_LIMIT))[0].count >= 5


async def followed_as_told(client: InProcessClient, report: HistoryReport) -> None:
    """A call on a suggestion's word carries its id, the call that it mends, and its attempt."""
    log, kept = client.context.store.events, list[Execution]()
    position = 0
    while events := await log.read_after("default", position, 500):
        kept += [execution_of(each).execution for each in events if each.kind == "execution"]
        position = events[-1].position
    by_id = {each.execution_id: each for each in kept}
    following = [each for each in kept if each.suggestion_id is not None]

    assert len(kept) == report.calls
    assert len(following) == report.counts["followed"]
    for each in following:
        mended = by_id[each.repair_of]
        assert (mended.outcome, mended.session_id) == ("failure", each.session_id)
        assert each.attempt >= 2


async def test_nobody_asks_where_asking_is_off_and_the_same_history_twice_counts_once(
    client: InProcessClient,
) -> None:
    """It is that of agents alone, call by call; ids follow from the seed, those of words too."""
    report = await play_history(client, calls_per_day=20, now=NOW, ask=False)
    alone = executions_alone(now=NOW, calls_per_day=20)

    assert report.counts["asked"] == report.counts["followed"] == 0
    assert report.calls == len(alone)
    for each in alone[::50]:
        assert await client.get_execution(each.execution_id) == each

    await play_history(client, calls_per_day=20, now=NOW, ask=False)
    assert (await client.status()).executions == report.calls
    assert len(await client.corrections(limit=_LIMIT)) == report.counts["corrections"]


async def test_a_folder_of_its_own_is_removed_and_a_given_one_stays(tmp_path: Path) -> None:
    """Nothing is left behind but what was asked for."""
    async with in_process(embedder="hashing") as client:
        folder = client.settings.data.dir
        assert folder.is_dir()
    assert not folder.exists()

    async with in_process(tmp_path / "kept", embedder="hashing") as client:
        report = await play_history(client, calls_per_day=2, now=NOW, ask=False)
    async with in_process(tmp_path / "kept", embedder="hashing") as client:
        assert (await client.status()).executions == report.calls


async def test_the_environment_lends_no_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A made-up history never reaches the stores that the environment names."""
    monkeypatch.setenv("AFTERCALL_MONGO_URI", "mongodb://127.0.0.1:1/")
    monkeypatch.setenv("AFTERCALL_DATA_DIR", str(tmp_path / "real"))
    async with in_process(tmp_path / "made-up", embedder="hashing") as client:
        assert (await client.status()).log_store == "sqlite"
    assert not (tmp_path / "real").exists()
