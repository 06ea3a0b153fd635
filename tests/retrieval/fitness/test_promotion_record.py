"""The way back through the history of promotions, and who is compared with whom."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from mongo.contents import PromotionEvent, StoredPromotion
from retrieval.answers.fitness.promotions import pair_of, read_former
from retrieval.knowledge.rows.registry import Registry
from tests.retrieval.fitness.registry_samples import AT, promoted, stored

steps = st.lists(st.sampled_from(["promote", "remove", "back"]), max_size=30)


def history_of(done: list[str]) -> tuple[list[PromotionEvent], list[StoredPromotion | None]]:
    """What is remembered of these steps, oldest first, and what held in turn and is not undone."""
    events: list[PromotionEvent] = []
    held: list[StoredPromotion | None] = [None]
    for number, step in enumerate(done):
        at = AT + timedelta(minutes=number)
        if step == "back":
            if len(held) > 1:
                held.pop()
                events.append(PromotionEvent("w", "x", at, "rolled_back", held[-1]))
        else:
            new = promoted("x", f"1.{number + 1}.0") if step == "promote" else None
            held.append(new)
            events.append(PromotionEvent("w", "x", at, "promoted" if new else "removed", new))
    return events, held


@given(steps)
def test_each_step_back_leads_to_what_held_before(done: list[str]) -> None:
    """Promotions and removals alike, after any number of steps forth and back."""
    events, held = history_of(done)
    possible, promotion = read_former(events[::-1], is_whole=True)
    assert possible == (len(held) > 1)
    if possible:
        assert promotion is held[-2]


@given(steps, st.integers(1, 12))
def test_of_a_history_that_is_cut_off_nothing_is_made_up(done: list[str], kept: int) -> None:
    """What it leads to is right, or it is not known what held before."""
    events, held = history_of(done)
    possible, promotion = read_former(events[-kept:][::-1], is_whole=len(events) <= kept)
    if possible:
        assert promotion is held[-2]


def test_a_promotion_with_nothing_to_run_promotes_nobody() -> None:
    """Its tool was deleted and it names no file: there is nobody to compare."""
    made = promoted("x")
    bare = StoredPromotion(
        "w", "x", made.promotion.model_copy(update={"evolved_file": None}), made.inherited_quality
    )
    original = stored("x", version="1.0.0")
    evolved = stored("x2", version="1.1.0", evolved_from="x")
    assert pair_of(Registry([original], [bare]), "x") is None
    assert pair_of(Registry([original], [made]), "x") is not None
    pair = pair_of(Registry([original, evolved], [bare]), "x")
    assert (pair.evolved.tool.tool_id, pair.original.tool.tool_id) == ("x2", "x")
