"""A share of all deaths; `python -m tests.proof.crash_points` dies at every point."""

import shutil

import pytest

from tests.conftest import NO_COMPILER
from tests.proof.crash_points import WAYS, order, run

SHARE = 3


@pytest.mark.real
@pytest.mark.skipif(shutil.which("cc") is None, reason=NO_COMPILER)
def test_whenever_it_dies_what_was_acknowledged_is_there() -> None:
    """Once and unchanged, with the knowledge of a rebuild; what was forgotten stays so."""
    tried, status = run(*WAYS, jobs=1, until=SHARE)
    assert status == 0
    for way, (points, found) in zip(WAYS, tried, strict=True):
        assert len(points) > 1_000
        assert len(found) == SHARE
        wrong = {point: [e for e in bad if not e.startswith("(")] for point, bad in found.items()}
        assert {point: bad for point, bad in wrong.items() if bad} == {}, way


def test_each_class_comes_first_before_any_comes_twice() -> None:
    """Then its last point and its middle one, and in the end each point came once."""
    classes = ["a", "b", "a", "c", "a", "a", "b", "a"]
    tried = order(classes)
    assert sorted(tried.values()) == [*range(1, 9)]
    assert all(classes[point - 1] == name[0] for name, point in tried.items())
    parts = [*tried]
    assert [sorted(parts[:3]), sorted(parts[3:5]), parts[5]] == [
        ["a.0", "b.0", "c.0"], ["a.4", "b.1"], "a.2",
    ]  # fmt: skip
