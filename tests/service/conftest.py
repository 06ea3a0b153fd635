"""One service for all tests of a module that do not break it."""

from collections.abc import AsyncIterator, Iterator

import pytest

from aftercall import AsyncClient, cli
from tests.service.fitness_client import Fitness
from tests.service.running_service import Run, RunningService, hashing_settings, running


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with running(hashing_settings(tmp_path_factory.mktemp("service"))) as started:
        yield started


@pytest.fixture
def fitness(service: RunningService) -> Fitness:
    return Fitness(service)


@pytest.fixture
async def client(service: RunningService) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(service.url) as made:
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
