"""Each notebook runs from beginning to end with a service inside its own process."""

from pathlib import Path

import pytest

from tests.notebooks.executing import NAMES, READING, complaints, execute, images

pytestmark = pytest.mark.real

PLOTS = {
    "similar_successes": 2,
    "confidence_and_calibration": 4,
    "fitness_and_regret": 6,
    "boundary_axes_and_cohesion": 5,
    "recorded_session": 1,
    "your_own_proposer": 1,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all, so that matplotlib looks for fonts once."""
    return tmp_path_factory.mktemp("jupyter")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.prove] * (name in READING)) for name in NAMES]
)
def test_it_needs_no_server(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No cell fails or warns, and every plot is drawn. Others run in front of a server too."""
    played = execute(name, folder, monkeypatch)
    assert complaints(played) == []
    assert images(played) == PLOTS[name]


def test_an_address_without_a_service_is_told_with_its_cure(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable alone leads to a server, and a reader is told how to start one."""
    with pytest.raises(pytest.fail.Exception, match=r"nothing answers at.*aftercall serve"):
        execute(NAMES[0], folder, monkeypatch, AFTERCALL_URL="http://127.0.0.1:9")
