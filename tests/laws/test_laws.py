"""The product keeps the laws of `bench.quality.laws`: a share here, thousands in `make prove`."""

from collections.abc import Iterable

import pytest

from bench.quality.brain import open_brain
from bench.quality.laws.asking import Asker
from bench.quality.laws.case import Case
from bench.quality.laws.runner import BY_NAME, PER_CASE, LawResult, run_law
from bench.quality.laws.sources import stream
from embeddings.embedders import HashingEmbedder

SHARE = 24
"""Comparisons of each law in `make test`: three hundred in all, in half a minute."""
ALL = 2_000
KEPT = ("bytes", "names", "dialect", "order", "knowledge", "fixpoint", "agreement", "ambiguity")
"""Laws that hold without exception. The others are measured by `python -m bench.quality --only
laws`: what is learned breaks *evidence*, *separation* and a part of *bystander*; signatures break
*envelope*; deep places break *depth* now and then."""
HERE = ("written", "generated")
"""Sources that need no data from elsewhere."""


async def keeps(name: str, cases: Iterable[Case], count: int, per_case: int) -> LawResult:
    async with open_brain(HashingEmbedder()) as brain:
        return await run_law(Asker(brain), BY_NAME[name], cases, count=count, per_case=per_case)


def broken_in(result: LawResult) -> list[tuple[str, str, str, str]]:
    return [
        (kind, each.why, each.base.case.source, each.base.case.name)
        for kind, tally in result.tallies.items()
        for each in tally.smallest
    ]


@pytest.mark.parametrize("name", KEPT)
async def test_a_share_of_the_cases_keeps_the_law(name: str) -> None:
    """Written and generated cases, each changed in one or two of the ways of the law."""
    result = await keeps(name, stream(HERE, 2 * SHARE), SHARE, per_case=2)
    assert result.count >= SHARE
    assert broken_in(result) == []


@pytest.mark.prove
@pytest.mark.parametrize("name", KEPT)
async def test_thousands_of_cases_keep_the_law(name: str) -> None:
    """Of all sources that are there; each changed in many of the ways of the law."""
    result = await keeps(name, stream(), ALL, per_case=PER_CASE)
    assert result.count >= ALL
    assert broken_in(result) == []
