"""The service answers the frozen stories as when they were frozen; `stories.py` says how."""

import pytest

from tests.golden.stories import differences, frozen, names, play


@pytest.mark.parametrize("story", names())
async def test_the_answers_are_as_frozen(story: str) -> None:
    """Every answer to the story is the same, within the stated tolerance."""
    found = list(differences(frozen(story), await play(story)))
    assert not found, f"{len(found)} differences:\n" + "\n".join(found[:40])
