"""One service for all tests of a module that do not break it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from aftercall import Client, cli
from tests.mongo.mongo_server import SharedMongo
from tests.service.fitness_client import Fitness
from tests.service.running_service import Run, RunningService, hashing_settings, running


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with running(hashing_settings(tmp_path_factory.mktemp("service"))) as started:
        yield started


@pytest.fixture(scope="session")
def mongo() -> Iterator[SharedMongo]:
    """A MongoDB, for those who need no more of it than a database."""
    server = SharedMongo()
    yield server
    server.close()


@pytest.fixture
def own_service(tmp_path: Path) -> Iterator[RunningService]:
    """A service of the test's own: nothing was counted in it yet, and it may be broken."""
    with running(hashing_settings(tmp_path)) as started:
        yield started


@pytest.fixture
def fitness(service: RunningService) -> Fitness:
    return Fitness(service)


@pytest.fixture
def own_fitness(own_service: RunningService) -> Fitness:
    return Fitness(own_service)


@pytest.fixture
def client(service: RunningService) -> Iterator[Client]:
    with Client(service.url) as made:
        yield made


@pytest.fixture
def run(
    service: RunningService, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> Run:
    """Runs the module's `COMMAND`: exit code, what was printed, what was complained of."""
    command: str = request.module.COMMAND
    place = command == "promotions"  # the service is named behind its first word

    def done(*words: str, url: str = service.url) -> tuple[int, str, str]:
        try:
            code = cli.main([command, *words[:place], "--service", url, *words[place:]])
        except SystemExit as ended:
            code = int(ended.code or 0)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return done
