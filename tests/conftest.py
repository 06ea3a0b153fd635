"""What all tests share: generated examples are judged by what happens, not by how long it takes."""

import logging
import os
import sys
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Speed is measured in `bench/`. On a loaded machine a right example takes longer than 200 ms now
# and then, and drawing examples takes longer than Hypothesis expects.
settings.register_profile("aftercall", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("aftercall")

NO_CHROMIUM = (
    "Chromium is not installed: the dashboard was not looked at in a browser "
    "(`apt-get install chromium`, or name one in CHROMIUM)"
)
NO_NPM = (
    "npm is not installed, or cannot install: the gateway was not tried in front of servers from "
    "npm (`apt-get install nodejs npm`, or name one in NPM)"
)
NO_COMPILER = (
    "there is no C compiler: no death at a write was tried, and no clock was set "
    "(`apt-get install gcc libc6-dev`)"
)
NO_DATA = (
    "the benchmarks' data is not there: what only it can show was not tested "
    "(bench/README.md says how to get it)"
)
NOT_TESTED = (NO_CHROMIUM, NO_NPM, NO_COMPILER, NO_DATA)

MEMORY = "/dev/shm"
ROOM = 8 << 30


def is_roomy(folder: str) -> bool:
    """Whether a folder takes all that the tests write, and programs in it may be run."""
    if not os.access(folder, os.W_OK):
        return False
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize >= ROOM and not found.f_flag & os.ST_NOEXEC


# A sixth of the time is else the disk's: each service syncs what it stores.
if "TMPDIR" not in os.environ and is_roomy(MEMORY):
    os.environ["TMPDIR"] = tempfile.tempdir = MEMORY


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """A command that a test runs here sends the logs of the process where that test looks."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


SERVERS = ("tests.mongo.mongo_server", "tests.retrieval.index.servers")


@pytest.fixture(scope="session", autouse=True)
def nothing_left() -> Iterator[None]:
    """Servers that were given hold at the end what they held before."""
    yield
    used = [sys.modules[name] for name in SERVERS if name in sys.modules]
    assert [name for module in used for name in module.left_behind()] == []


def pytest_xdist_auto_num_workers() -> int:
    """Half as many workers again as cores: a third of the time they wait for processes."""
    cores = os.cpu_count() or 1
    return cores + cores // 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with long tests begin, so that at the end no worker goes on alone."""
    items.sort(key=lambda item: item.get_closest_marker("real") is None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once what was not tested."""
    skipped = [str(each.longrepr) for each in terminalreporter.getreports("skipped")]
    without = {why: sum(why in each for each in skipped) for why in NOT_TESTED}
    if any(without.values()):
        terminalreporter.section("not tested")
    for why, tests in without.items():
        if tests:
            terminalreporter.line(f"{tests} tests: {why}")
