"""Two log stores that are given one place for vectors: neither changes what the other has."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retrieval.index.protocol import IndexOfAnotherStoreError
from service.context import open_context
from service.nightly import run_nightly
from service.rebuild import rebuild_store
from service.settings import Settings
from tests.service.running_service import (
    RunningService,
    execution,
    failure,
    hashing_settings,
    running,
)

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore:Local mode:UserWarning")]

Settle = Callable[[Path], tuple[Settings, Settings, Settings]]
"""Makes settings of two stores with one place for vectors; the third are the second's, cured."""


def one_qdrant(folder: Path) -> tuple[Settings, Settings, Settings]:
    """Two stores on one Qdrant with the default prefix."""
    url = f"local:{folder / 'qdrant'}"
    one = hashing_settings(folder / "one", qdrant={"url": url})
    other = hashing_settings(folder / "other", qdrant={"url": url})
    cured = hashing_settings(folder / "other", qdrant={"url": url, "prefix": "other"})
    return one, other, cured


def one_folder(folder: Path) -> tuple[Settings, Settings, Settings]:
    """An embedded store in whose folder another one's vectors lie."""
    one, other = hashing_settings(folder / "one"), hashing_settings(folder / "other")
    return one, other, hashing_settings(folder / "cured")


def known(service: RunningService) -> tuple[Any, Any, Any]:
    """What the first store answers, and whether its vectors agree with it."""
    call = {name: failure()[name] for name in ("serverName", "toolName", "parameters")}
    similar = service.client.post("/similar", json=call).json()["executions"]
    status = service.client.get("/status").json()
    return [each["similarity"] for each in similar], status["vectors"], status["consistent"]


def learn(service: RunningService) -> None:
    """Record a failure and its repair, and wait until they are known."""
    session = {"sessionId": "s-1"}
    assert service.record([failure(**session), execution(**session)]).status_code == 202
    service.learned()


async def opened(settings: Settings) -> None:
    """Start, and end."""
    async with open_context(settings):
        pass


@pytest.mark.parametrize("settle", [one_qdrant, one_folder])
def test_another_stores_start_rebuild_and_expiry_change_nothing(
    tmp_path: Path, settle: Settle
) -> None:
    """Start and rebuild are refused with the setting that helps; with it all of them run."""
    one, other, cured = settle(tmp_path)
    with running(one) as service:
        learn(service)
        before = known(service)
    asyncio.run(rebuild_store(one, lambda _: None))  # its vectors have another name then
    assert before[0]
    assert before[2]
    if settle is one_folder:
        shutil.copytree(one.data.dir / "vectors-g2", other.data.dir / "vectors-g2")
    setting = "AFTERCALL_DATA_DIR" if settle is one_folder else "AFTERCALL_QDRANT_PREFIX"
    for attempt in (opened(other), rebuild_store(other, lambda _: None), opened(other)):
        with pytest.raises(IndexOfAnotherStoreError, match=setting):
            asyncio.run(attempt)
    with running(cured) as service:
        learn(service)
    asyncio.run(rebuild_store(cured, lambda _: None))
    report = asyncio.run(run_nightly(cured, lambda _: None, lambda *_: None))
    assert not report.failed
    asyncio.run(opened(cured))
    with running(one) as service:
        assert known(service) == before
