"""Violations: what broke a contract, without the data that broke it."""

from typing import Any

import pytest

from retrieval.health.record import MAX_VIOLATIONS, Broken
from retrieval.health.signals import Breach, breaches_of, count_breach
from tests.retrieval.health.health_samples import NOW


@pytest.mark.parametrize(
    ("details", "found"),
    [
        (
            {"path": "/titles", "mismatch": "min_items", "expected": 1, "actual": ["secret"]},
            [Breach("/titles", "min_items", "1")],
        ),
        (
            {"path": ["items", 3, "title"], "mismatch": "required", "expected": {"a": 1}},
            [Breach("/items/*/title", "required", '{"a":1}')],
        ),
        (
            {"violations": [{"path": "/a/0", "mismatch": "x"}, {"path": "/a/7", "mismatch": "x"}]},
            [Breach("/a/*", "x", "")],
        ),
        ({"path": 3, "mismatch": None}, []),
        ({"violations": "all"}, []),
        ({}, []),
    ],
)
def test_what_the_details_say(details: dict[str, Any], found: list[Breach]) -> None:
    """Places in an array are one place; what was delivered instead is never kept."""
    assert breaches_of(details) == found


def test_hostile_details_stay_small() -> None:
    """Long texts and large values are cut, the number of kinds is bounded."""
    details = {
        "path": "/x" * 9_000, "mismatch": "m" * 9_000, "expected": ["e" * 99] * 9_000,
        "violations": [{"path": f"/p{n}", "mismatch": "m"} for n in range(10_000)],
    }  # fmt: skip
    found = breaches_of(details)
    assert len(found) <= MAX_VIOLATIONS + 1
    assert all(len(part) <= 120 for breach in found for part in breach)
    known: list[Broken] = []
    often = Breach("/often", "min_items", "1")
    for number in range(300):
        count_breach(known, often, NOW)
        count_breach(known, Breach(f"/p{number}", "m", ""), NOW)
    assert len(known) == MAX_VIOLATIONS
    assert next(each.tally.count for each in known if each.path == "/often") == 300
