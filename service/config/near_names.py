"""The nearest known name, for messages that say what was probably meant."""

from collections.abc import Iterable

from rapidfuzz import fuzz, process, utils

_ALIKE = 74.0
"""Of 100, normalised Indel similarity: `params` to `parameters` has 75, `args` to `agent` less."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`, whatever its case and separators; None when none is near."""
    found = process.extractOne(
        name, list(known), scorer=fuzz.ratio, processor=utils.default_process, score_cutoff=_ALIKE
    )
    return found[0] if found else None
