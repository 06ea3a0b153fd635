"""Runs the laws over the cases, counts, and keeps the smallest cases that break one."""

import math
import random
import re
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bench.quality.laws.asking import Reply
from bench.quality.laws.case import Case
from bench.quality.laws.decisions import vary_agreement, vary_ambiguity, vary_fixpoint
from bench.quality.laws.depth import vary_depth
from bench.quality.laws.law import Law, Variation, itself, spread
from bench.quality.laws.past import vary_evidence, vary_knowledge, vary_separation
from bench.quality.laws.values import vary_bystanders, vary_bytes
from bench.quality.laws.wording import vary_dialect, vary_envelope, vary_names, vary_order

LAWS = (
    Law("bystander", "one more parameter that is right changes neither repair nor class, and "
        "confidence by at most .05", vary_bystanders),
    Law("bytes", "what no change names comes out as it went in", vary_bytes),
    Law("names", "tool, server, agent, session and right parameters renamed throughout: the same "
        "answer", vary_names),
    Law("envelope", "the same error in an envelope: the same reading, repair and class",
        vary_envelope),
    Law("dialect", "the same fault in the words of another library: the same repair",
        vary_dialect),
    Law("depth", "the same fault deeper, in a list, in every element: the same repair there",
        vary_depth),
    Law("order", "the order of parameters, schema, events and batches changes nothing",
        vary_order),
    Law("evidence", "a fix taught more often is at least as sure, safe and well said; one that "
        "failed is less sure", vary_evidence),
    Law("separation", "another error, tool or place of the same name: no lesson of this one",
        vary_separation),
    Law("knowledge", "a schema, hints or a session never turn a right answer into a wrong one",
        vary_knowledge),
    Law("fixpoint", "a right call and a repaired call are left alone", vary_fixpoint),
    Law("agreement", "check and suggest agree, and SDK and service", vary_agreement),
    Law("ambiguity", "of two open places that would take a value neither is filled unasked",
        vary_ambiguity),
)  # fmt: skip
BY_NAME = {law.name: law for law in LAWS}
PER_CASE = 8
"""Ways in which one case is changed for a law, at most."""
_EVERY_S = 20.0
_NUMBER = re.compile(r"[-+]?\d[\d.]*")


class Product(Protocol):
    """What is asked: the product, or in a test one that is wrong on purpose."""

    async def reply(self, case: Case) -> Reply:
        """Return the answer about a case."""
        ...


@dataclass(frozen=True, slots=True)
class Broken:
    """A case that breaks a law, with both answers."""

    why: str
    base: Reply
    changed: Reply

    @property
    def size(self) -> int:
        """Characters to read."""
        return self.changed.case.size


@dataclass(slots=True)
class Tally:
    """What came of one way to change cases."""

    count: int = 0
    broken: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    smallest: list[Broken] = field(default_factory=list)

    def add(self, found: Broken | None, keep: int) -> None:
        """Count one comparison; keep the smallest that break the law."""
        self.count += 1
        if found is None:
            return
        self.broken += 1
        reason = _NUMBER.sub("#", found.why.split(":")[0])[:60]
        self.reasons[reason] = self.reasons.get(reason, 0) + 1
        self.smallest = sorted([*self.smallest, found], key=lambda each: each.size)[:keep]


@dataclass(slots=True)
class LawResult:
    """What came of one law, by the way in which the cases are changed."""

    law: Law
    seconds: float = 0.0
    stopped: bool = False
    """Whether the time was up before there were enough comparisons."""
    tallies: dict[str, Tally] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Comparisons."""
        return sum(each.count for each in self.tallies.values())

    @property
    def broken(self) -> int:
        """Comparisons that break the law."""
        return sum(each.broken for each in self.tallies.values())


async def run_law(
    asker: Product,
    law: Law,
    cases: Iterable[Case],
    *,
    count: int,
    seconds: float = math.inf,
    keep: int = 1,
    per_case: int = PER_CASE,
) -> LawResult:
    """Compare answers until there are so many comparisons, or the time is up.

    The draws depend on the law and the case alone, so that the same case is changed in the same
    ways whatever else is run.
    """
    result = LawResult(law)
    started = shown = time.perf_counter()
    for case in cases:
        rng = random.Random(f"{law.name}/{case.source}/{case.name}")
        for variation in spread(iter(law.vary(case, rng)), rng, per_case):
            if (found := await compare(asker, variation)) is not None:
                tally = result.tallies.setdefault(variation.kind, Tally())
                tally.add(None if isinstance(found, bool) else found, keep)
        now = time.perf_counter()
        if now - shown > _EVERY_S:
            shown = now
            print(f"  {law.name}: {result.count:,} compared, {result.broken:,} broken",
                  file=sys.stderr, flush=True)  # fmt: skip
        result.stopped = now - started > seconds
        if result.count >= count or result.stopped:
            break
    result.seconds = time.perf_counter() - started
    return result


async def compare(asker: Product, variation: Variation) -> Broken | bool | None:
    """Return what is broken, True where the law holds, None where there is nothing to compare."""
    base = await asker.reply(variation.base)
    changed: Any = variation.changed
    case = variation.base if changed is itself else changed
    case = case if isinstance(case, Case) else case(base)
    if case is None:
        return None
    reply = await asker.reply(case)
    why = variation.relation(base, reply)
    return True if why is None else Broken(why, base, reply)


def chosen(names: Sequence[str]) -> list[Law]:
    """Return the laws of these names; all of them for none.

    Raises:
        ValueError: a name is no law's; the message lists those that are.
    """
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        raise ValueError(f"no law is named {', '.join(unknown)}; there are {', '.join(BY_NAME)}")
    return [law for law in LAWS if not names or law.name in names]
