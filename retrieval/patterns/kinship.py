"""Whether two failures of a tool are of one kind: by what they speak of, and how near they are."""

import re
from collections.abc import Collection, Mapping

from retrieval.reading.faults import FaultKind

MIN_SIMILARITY = 0.65
"""Cosine of two signatures from which on they say one thing, where category and subjects agree.

On the groups of `tests/embeddings/tool_errors.py` (MiniLM, signatures alone) 25 of 36 pairs that
say one thing are joined, and none of the 162 pairs of one category that do not; without the
subjects 3 of these would be, and 7 from 0.60 on. At 0.70 it joins 19. The tool's name is left
out of the text: with it all errors of a tool are near.
"""

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MASK = re.compile(r"<(?:v|n|id|url|date|path|hex|email)>")
_CALLED = re.compile(r"\b\w+\(\)")
_CAMEL = re.compile(r"[a-z]+[A-Z][A-Za-z]*")
_STEP = re.compile(r"\[\]")


def plain_signature(signature: str) -> str:
    """A signature as it is compared letter by letter: words only, in lower case, without masks."""
    return " ".join(_WORD.findall(_MASK.sub(" ", signature))).casefold()


def subjects_of(
    signature: str, places: Mapping[str, FaultKind], parameters: Collection[str]
) -> list[str]:
    """What a failure speaks of, sorted: parameters at fault, else parameters and identifiers named.

    Two that differ in it are two kinds, however alike their words: `'from' is required` and
    `'to' is required` need two different corrections.

    Args:
        signature: the masked message.
        places: what was wrong, by place, as far as a grammar knows it.
        parameters: names of the tool's parameters, as far as calls have shown them.
    """
    if places:
        return sorted({_STEP.sub("", place) for place in places})
    words = _WORD.findall(_CALLED.sub(" ", _MASK.sub(" ", signature)))
    return sorted({word for word in words if word in parameters or _is_identifier(word)})


def may_be_one(one: Mapping[str, FaultKind], other: Mapping[str, FaultKind]) -> bool:
    """Whether nothing that is known to be wrong in the one contradicts the other."""
    return not one or not other or one == other


def _is_identifier(word: str) -> bool:
    """Names of code; a word with digits in it is rather somebody's data."""
    if any(char.isdigit() for char in word):
        return False
    return "_" in word.strip("_") or _CAMEL.fullmatch(word) is not None
