"""Who goes first: a burst before learning, learning before vectors, answers before both."""

import ast
import gc
import threading
import weakref
from collections.abc import Iterable
from pathlib import Path

import pytest

import ingest
from aftercall.background import ANSWERS
from ingest import pacing
from ingest.pacing import Pacing, let_answers_pass
from service.lifecycle import GarbageKeeper, settle_memory


class Ring:
    """Garbage once nothing else holds it."""

    itself: "Ring | None" = None


def waiting(numbers: Iterable[int]) -> Pacing:
    """A pacing that sees these numbers of waiting events, one at each look."""
    left = iter(numbers)

    async def look() -> int:
        return next(left)

    return Pacing(look)


async def test_a_flood_passes_before_it_is_learned_and_vectors_wait_for_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once for each backlog, and so long; what arrives more slowly is learned beside it."""
    monkeypatch.setattr(pacing, "LOOK_S", 0.001)
    monkeypatch.setattr(pacing, "FLOOD", 3_000_000)  # events a second: 3,000 a look
    assert not await waiting([0]).let_burst_pass()
    few = waiting([10])
    assert await few.let_burst_pass()
    assert not few.is_behind
    flood = waiting([5_000, 10_000, 14_000, 15_000])
    assert await flood.let_burst_pass()  # at the last look only 1,000 came
    assert flood.is_behind
    await flood.let_learning_pass()
    endless = waiting(range(2_000, 10_000_000, 5_000))
    for _ in range(3):
        assert await endless.let_burst_pass()
    assert await endless._waiting() == 2_000 + 5_000 * (pacing.BURST_LOOKS + 3)


def test_learning_waits_for_an_answer_that_is_made_and_not_for_ever() -> None:
    """As long as it is made, but for `COURTESY_S` at most."""
    passed = threading.Event()

    def learn() -> None:
        for _ in range(1_000):
            let_answers_pass()
        passed.set()

    learner = threading.Thread(target=learn)
    with ANSWERS:
        learner.start()
        assert not passed.wait(3 * pacing.COURTESY_S)
    assert passed.wait(5)
    learner.join()
    with ANSWERS:
        let_answers_pass()


def test_what_stays_is_spared_the_garbage_collector() -> None:
    """What becomes garbage of it is found when it is time: sooner while nothing is learned."""
    now = [0.0]
    threshold = gc.get_threshold()
    gc.collect()
    try:
        settle_memory()
        assert gc.get_threshold()[0] == pacing.YOUNG
        keeper = GarbageKeeper(lambda: now[0])
        ring = Ring()
        ring.itself = ring
        gone = weakref.ref(ring)
        assert not keeper.tend(is_idle=True)
        del ring
        gc.collect()
        now[0] = pacing.GARBAGE_IDLE_S
        assert not keeper.tend(is_idle=False)
        assert gone() is not None
        assert keeper.tend(is_idle=True)
        assert gone() is None
        now[0] += pacing.GARBAGE_S
        assert keeper.tend(is_idle=False)
        assert gc.get_freeze_count() > 0
    finally:
        gc.set_threshold(*threshold)
        gc.unfreeze()


def test_no_other_module_of_learning_has_a_number_of_its_own_for_it() -> None:
    """Who learns calls `pacing`: neither the fold nor its rows wait or look by themselves."""
    for name in ("fold", "workspace", "learner", "trials", "mining"):
        tree = ast.parse((Path(ingest.__path__[0]) / f"{name}.py").read_text(encoding="utf-8"))
        names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert names.isdisjoint({"sleep", "let", "setswitchinterval"}), name
