"""Calls whose obvious repair does harm are not repaired without asking; plain slips are."""

from bench.quality import traps
from embeddings.embedders import HashingEmbedder


async def test_no_trap_is_automatic_and_wrong() -> None:
    """In any wording, with and without schema and hints, through the rules of the SDK."""
    asked = await traps.measure(HashingEmbedder(), traps.cases("traps"))
    assert len({id(each.case) for each in asked}) >= 63
    assert [(e.case.tool.name, e.case.parameters, e.way, e.sent) for e in asked if e.wrong] == []


async def test_what_is_lossless_and_sure_does_not_wait() -> None:
    """Where the schema is known; the gate is not closed by refusing all."""
    chosen = traps.cases("harmless")
    assert len(chosen) >= 40
    ways = [way for way in traps.WAYS if way.with_schema]
    asked = await traps.measure(HashingEmbedder(), chosen, ways)
    assert [(e.case.tool.name, e.case.parameters, e.way) for e in asked if e.wrong] == []
    sure = [each for each in asked if each.is_sure]
    assert len(sure) >= 0.9 * len(asked)
    assert [(e.case.tool.name, e.case.parameters, e.way) for e in sure if not e.right] == []
