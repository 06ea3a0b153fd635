"""One service for all tests of a module that do not break it."""

from collections.abc import Iterator

import pytest

from tests.service.fitness_client import Fitness
from tests.service.running_service import RunningService, hashing_settings, running


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with running(hashing_settings(tmp_path_factory.mktemp("service"))) as started:
        yield started


@pytest.fixture
def fitness(service: RunningService) -> Fitness:
    return Fitness(service)
