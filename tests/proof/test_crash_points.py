"""A share of all deaths; `python -m tests.proof.crash_points` dies at every point."""

import shutil

import pytest

from tests.proof.crash_points import WAYS, run

SHARE = 8


@pytest.mark.real
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.parametrize("way", WAYS)
def test_whenever_it_dies_what_was_acknowledged_is_there(way: str) -> None:
    """Once and unchanged, with the knowledge of a rebuild; what was forgotten stays so."""
    points, found = run(way, jobs=1, until=SHARE)
    assert points > 2_000
    assert len(found) == SHARE
    wrong = {point: [e for e in bad if not e.startswith("(")] for point, bad in found.items()}
    assert {point: bad for point, bad in wrong.items() if bad} == {}
