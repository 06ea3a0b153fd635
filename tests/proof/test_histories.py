"""A share of the histories, and that the checker finds what is wrong on purpose."""

import pytest

from tests.mongo.mongo_server import missing
from tests.proof.histories import lived, plan, shrunk

pytestmark = pytest.mark.real

SHARE = {"sqlite": 120, "mongodb": 90}
WITHOUT_MONGO = pytest.mark.skipif(missing() is not None, reason=missing() or "")


@pytest.mark.parametrize("store", ["sqlite", pytest.param("mongodb", marks=WITHOUT_MONGO)])
def test_what_was_acknowledged_is_there_once_whatever_befalls_the_services(store: str) -> None:
    """Kills, pauses, cut connections, clocks, a nightly run and a rebuild beside five clients."""
    steps = plan(7, SHARE[store], services=2)
    assert {"kill", "pause", "cut"} <= {each.what for each in steps}
    assert lived(7, steps, store, services=2) == []


@pytest.mark.prove
@pytest.mark.parametrize(
    ("broken", "found"),
    [
        ("lose stale", ["was acknowledged and is lost", "which was overwritten"]),
        ("double blind", ["times", "was acknowledged and is not found"]),
        ("unfence", ["were both learned"]),
    ],
)
def test_a_product_that_is_wrong_on_purpose_is_found(broken: str, found: list[str]) -> None:
    """It loses, doubles, lets two learn at once, or answers what was overwritten."""
    services = 2 if broken == "unfence" else 1
    steps = [each for each in plan(3, 110, services) if each.what not in FAULTS]
    wrong = lived(3, steps, "sqlite", services, broken)
    for said in found:
        assert any(said in each for each in wrong), wrong


def test_a_plan_comes_from_its_seed_and_shrinks_to_what_it_takes() -> None:
    """The same again for the same seed; of many steps those are left without which all is well."""
    steps = plan(5, 200, 3)
    assert steps == plan(5, 200, 3) != plan(6, 200, 3)
    needed = {steps[31], steps[150]}
    assert shrunk(steps, lambda fewer: needed <= {*fewer}) == [steps[31], steps[150]]


FAULTS = {"kill", "pause", "cut", "clock", "nightly", "rebuild"}
