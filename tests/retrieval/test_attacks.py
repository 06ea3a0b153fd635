"""One key alone changes nothing that others follow, under however many names."""

import pytest

from bench.quality import attacks
from bench.quality.attacks import Names
from embeddings.embedders import HashingEmbedder
from retrieval.knowledge.rows.principals import cap_marks, count_others, drop_loudest, fairly_heard


@pytest.mark.parametrize("names", [Names(1, 1), Names(1, 10)])
async def test_nothing_of_one_key_is_followed_or_sure(names: Names) -> None:
    """Every goal, in every way at once and by registrations alone."""
    ways = ("registrations", "all") if names.names == 1 else ("all",)
    assert len(attacks.GOALS) >= 18
    found = await attacks.measure(HashingEmbedder(), [names], ways)
    fallen = [(e.goal.name, e.way, e.used) for e in found if e.followed or e.sure]
    assert fallen == []


async def test_two_keys_are_a_quorum_and_never_for_what_destroys() -> None:
    """The limit of the design: who has two keys is believed where a repair is harmless again."""
    found = await attacks.measure(HashingEmbedder(), [Names(2, 1)], ("repairs",))
    followed = [each.goal for each in found if each.followed]
    assert followed
    assert not any(each.destroys for each in followed)


@pytest.mark.parametrize(("names", "is_changed"), [(Names(1, 10), False), (Names(2, 1), True)])
async def test_what_else_is_said_wants_two_keys(names: Names, is_changed: bool) -> None:
    """Waits, first calls, marks, tags, failures, referrals: of one key they change nothing."""
    steered = await attacks.steer(HashingEmbedder(), names)
    changed = [each.what for each in steered if each.changed]
    assert bool(changed) is is_changed


async def test_ten_poisoned_of_110_records_are_neither_followed_nor_first() -> None:
    """MemoryGraft's design with tool calls."""
    grafted = await attacks.graft(HashingEmbedder())
    assert grafted.asked >= 30
    assert grafted.followed == 0
    assert grafted.first <= 0.01 * grafted.asked


def test_agents_of_another_key_count_as_one() -> None:
    """An agent's name separates, and never multiplies."""
    assert count_others(["k1.a", "k1.b", "k1.c"], "k2.a") == 1
    assert count_others(["k1.a", "k1.b", "k2.b", "k2.a"], "k2.a") == 2
    assert count_others(["a", "b", "c"], "c") == 2  # without keys


def test_what_one_principal_can_weigh_is_capped_beside_others() -> None:
    """Alone it counts whole; what it drives out is its own."""
    assert cap_marks([f"k1.{n}" for n in range(9)]) == 9
    assert cap_marks([f"k1.{n}" for n in range(9)], ["k2.a"]) == 4
    assert fairly_heard(["k1"] * 9 + ["k2"], str, "k3") == ["k1", "k2"]
    assert fairly_heard(["k1"] * 9, str, "k1") == ["k1"] * 9
    marks = ["k2.a", *(f"k1.{n}" for n in range(9))]
    drop_loudest(marks, 3, str)
    assert marks == ["k2.a", "k1.7", "k1.8"]
