"""What others build on does not change unnoticed."""

import pytest

from tests.public.surface import SURFACES, frozen


@pytest.mark.parametrize("name", SURFACES)
def test_the_public_surface_is_what_was_frozen(name: str) -> None:
    """What is gone or has become required breaks others; what is new is frozen by `--write`."""
    found, before = SURFACES[name](), frozen(name)
    gone, new = sorted(before - found), sorted(found - before)
    cure = "if it is meant, run `python -m tests.public --write` and say it in CHANGELOG.md"
    assert not gone, f"gone or changed: {gone[:10]}; {cure}"
    assert not new, f"new: {new[:10]}; {cure}"
