"""Recent calls: the latest different calls of a tool, kept small, and how alike a question is.

A document stands for many calls, so its vector cannot say which of them was meant. The log has
them all: what a question is held against are the words of the latest calls of the tool, read from
there once and then kept up to date. Learning does nothing for it.
"""

import asyncio
import hashlib
import math
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from aftercall.json_values import JsonObject, canonical_json
from aftercall.models import Outcome
from aftercall.tables import keep_latest
from embeddings.protocol import Embedder
from embeddings.text import call_text, split_terms
from mongo.contents import StoredExecution, execution_of
from mongo.protocol import EventLog
from mongo.records import Event, ToolKey

MAX_CALLS = 500
"""Different calls of a tool and an outcome that are kept, the latest."""
MAX_READ = 1_000
"""Events of a tool that are read where nothing of it is kept: some 50 ms, once."""
_WITHIN = 20_000
"""Events of the log among which an answer that reads fewer looks for them: some 12 ms, once."""
_MAX_BYTES = 16 << 20
_PAGES = (50, 200)
"""Events of the reads one after the other: mostly there is little that is new."""
_FEW, _SHORT = 120, 200_000
"""Calls of 25 us each, and their bytes, that are read on the event loop: the way to a thread and
back takes as long while calls are recorded."""
_MAX_KEPT = 32 * (2 * MAX_CALLS + 1)
"""Calls that are kept of all tools, 1 kB each with 30 words, and the tools themselves: 32 of those
that have most, and any number that have few. Read again, a tool of 500 calls takes some 40 ms."""
_DIGITS = 6
"""Of a likeness: what differs by less is equally like, whatever the order of the sums."""
_MAX_WORDS = 4_000
"""Characters of a call whose words count."""
_DIGEST = 8
_MAX_ASKERS = 4
"""Principals that alone hear of their own calls, for whom the words of a tool are kept weighed."""
_EMBEDDED = 16
"""Calls of the most common words that are embedded for a question: 40 ms of MiniLM, once each."""


@dataclass(slots=True)
class RecentCall:
    """A call with its words."""

    execution_id: str
    position: int
    outcome: Outcome
    agent: str
    principal: str
    what: bytes
    """The same for calls of the same parameters, context and error; begins with `digest_call`."""
    text: str
    """As it is embedded."""
    words: tuple[str, ...]
    """Each once. A set of so few takes five times the space."""
    vector: NDArray[np.float16] | None = None
    """Unit length, shape (dimension,); None until a question needed it."""

    @classmethod
    def from_stored(cls, stored: StoredExecution) -> "RecentCall":
        """Return what is kept of an execution."""
        call = stored.execution
        message = call.error.message if call.error is not None else ""
        return cls(
            execution_id=call.execution_id,
            position=stored.position,
            outcome=call.outcome,
            agent=call.agent,
            principal=stored.principal,
            what=digest_call(call.parameters, call.context) + _digest_text(message),
            text=call_text(call.tool_name, call.parameters, call.context),
            words=tuple(words_of_call(call.parameters, call.context)),
        )


def digest_call(parameters: JsonObject, context: str | None) -> bytes:
    """Return eight bytes that are the same for calls of the same parameters and context."""
    return _digest_text(canonical_json([parameters, context or ""]))


def _digest_text(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST).digest()


def words_of_call(parameters: JsonObject, context: str | None) -> frozenset[str]:
    """Return the different words of a call's intent and parameters, names and values alike."""
    said = f"{context or ''} {canonical_json(parameters)}"[:_MAX_WORDS]
    return frozenset(map(sys.intern, split_terms(said)))


@dataclass(slots=True)
class _OfTool:
    depth: int
    """Events that were read at first."""
    scanned: int = 0
    """Position up to which the log was looked through."""
    calls: dict[tuple[Outcome, str, str, bytes], RecentCall] = field(default_factory=dict)
    """By outcome, principal, agent and what it states, the latest last."""
    worked: "dict[tuple[str | None, int], WordIndex]" = field(default_factory=dict)
    """The latest that worked, by the principal that recorded them and how many."""


class RecentCalls:
    """The latest different calls of tools, of a log."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._tools: LRUCache[ToolKey, _OfTool] = LRUCache(
            _MAX_KEPT, getsizeof=lambda known: 1 + len(known.calls)
        )

    async def of_tool(self, tool: ToolKey, most: int = MAX_READ) -> Sequence[RecentCall]:
        """Return the calls of a tool, of each agent those that differ, the latest last.

        `most` as in `find_worked`.

        Raises:
            StoreError: the log cannot be read.
        """
        return list((await self._read_tool(tool, most)).calls.values())

    async def find_worked(
        self, tool: ToolKey, only_of: str | None, number: int, most: int
    ) -> "WordIndex":
        """Return the latest calls of a tool that worked, a `number` of different ones at most.

        With `only_of`, a principal, those that it recorded.

        Of a tool that is not kept the latest `most` are read, fewer than `MAX_READ` only where they
        are among the latest events of the log.

        Raises:
            StoreError: the log cannot be read.
        """
        known = await self._read_tool(tool, most)
        if (index := known.worked.get((only_of, number))) is None:
            latest = {
                call.what: call
                for call in known.calls.values()
                if call.outcome == "success" and only_of in (None, call.principal)
            }
            index = WordIndex(list(latest.values())[-number:])
            keep_latest(known.worked, (only_of, number), index, _MAX_ASKERS)
        return index

    async def _read_tool(self, tool: ToolKey, most: int) -> _OfTool:
        known = self._tools.get(tool)
        if known is None or known.depth < most:
            known = _OfTool(most)
        head = await self._log.find_newest(tool.workspace)
        if head > known.scanned:
            reach = 0 if most >= MAX_READ else max(0, head - _WITHIN)
            found = await self._find_newer(tool, max(known.scanned, reach), most)
            if found:
                calls = [*known.calls.values(), *found]
                known = _keep_calls(calls, known.depth)
                head = max(head, found[-1].position)
            known.scanned = head
            self._tools[tool] = known
        return known

    def clear_calls(self) -> None:
        """Forget everything: calls may have been erased."""
        self._tools.clear()

    async def _find_newer(self, tool: ToolKey, position: int, most: int) -> list[RecentCall]:
        """Return the calls above a position, or the latest of them, the latest last."""
        found: list[RecentCall] = []
        before = None
        size = 0
        pages = iter(_PAGES)
        while len(found) < most and size < _MAX_BYTES:
            limit = min(next(pages, _PAGES[-1]), most - len(found))
            events = await self._log.latest_events(
                tool.workspace, "execution", limit, tool=tool, before=before, after=position
            )
            if not events:
                break
            if len(events) <= _FEW and sum(len(each.data) for each in events) <= _SHORT:
                found += _read_calls(events)
            else:
                found += await asyncio.to_thread(_read_calls, events)
            before = events[-1].position
            size += sum(len(event.data) for event in events)
        return found[::-1]


def _read_calls(events: Iterable[Event]) -> list[RecentCall]:
    return [RecentCall.from_stored(execution_of(event)) for event in events]


def _keep_calls(calls: Sequence[RecentCall], depth: int) -> _OfTool:
    kept = _OfTool(depth)
    numbers: Counter[Outcome] = Counter()
    for call in reversed(calls):
        key = (call.outcome, call.principal, call.agent, call.what)
        before = kept.calls.get(key)
        if before is not None:
            before.vector = call.vector if before.vector is None else before.vector
        elif numbers[call.outcome] < MAX_CALLS:
            numbers[call.outcome] += 1
            kept.calls[key] = call
    kept.calls = dict(reversed(kept.calls.items()))
    return kept


@dataclass(frozen=True, slots=True)
class CallQuestion:
    """A call to which like ones are looked for; `vector` has unit length, shape (dimension,)."""

    digest: bytes
    words: frozenset[str]
    vector: NDArray[np.float32]

    @classmethod
    def from_call(
        cls, parameters: JsonObject, context: str | None, vector: NDArray[np.float32]
    ) -> "CallQuestion":
        """Return the question after calls like this one."""
        return cls(digest_call(parameters, context), words_of_call(parameters, context), vector)


async def rank_calls(
    calls: Collection[RecentCall], question: CallQuestion, embedder: Embedder, limit: int
) -> list[tuple[RecentCall, float]]:
    """Return the calls most like a question with their likeness, -1 to 1, the likest first.

    It is 1 for the same parameters and context. Else half of it is the cosine of the vectors, and
    half the cosine of the words; words that few of these calls have weigh most. The words
    alone decide which calls are embedded, at least `limit`. Among equal ones the latest comes
    first.
    """
    shared = WordIndex(list(calls)).find_cosines(question.words)
    order = sorted(zip(shared, calls, strict=True), key=lambda each: (-each[0], -each[1].position))
    chosen = order[: max(limit, _EMBEDDED)]
    lacking = [call for _, call in chosen if call.vector is None]
    if lacking:
        vectors = await embedder.embed([call.text for call in lacking], "document")
        for call, made in zip(lacking, vectors, strict=True):
            call.vector = made.astype(np.float16)
    ranked = [(call, _call_likeness(call, question, by_words)) for by_words, call in chosen]
    return sorted(ranked, key=lambda each: (-each[1], -each[0].position))[:limit]


class WordIndex:
    """Calls with the weights of their words, by rarity (IDF)."""

    def __init__(self, calls: Sequence[RecentCall]) -> None:
        self.calls = calls
        in_calls = Counter(chain.from_iterable(call.words for call in calls))
        most = len(calls) + 1
        self._weights = {word: math.log(1 + most / (n + 0.5)) ** 2 for word, n in in_calls.items()}
        self._new = math.log(1 + most / 0.5) ** 2
        """Of a word that none of them has."""
        self._lengths = [math.sqrt(self._weigh(call.words)) for call in calls]

    def find_cosines(self, words: frozenset[str]) -> list[float]:
        """Return the cosine of words with each call's, 0 to 1."""
        known = self._weights.keys() & words
        asked = math.sqrt(self._weigh(known) + self._new * (len(words) - len(known)))
        cosines = []
        for call, length in zip(self.calls, self._lengths, strict=True):
            common = self._weigh(known.intersection(call.words))
            cosines.append(round(common / (asked * length), _DIGITS) if asked * length else 0.0)
        return cosines

    def _weigh(self, words: Iterable[str]) -> float:
        return math.fsum(map(self._weights.__getitem__, words))


def _call_likeness(call: RecentCall, question: CallQuestion, by_words: float) -> float:
    if call.vector is None:
        return 1.0
    if call.what.startswith(question.digest):
        return 1.0
    cosine = float(call.vector.astype(np.float32) @ question.vector)
    return round((min(1.0, max(-1.0, cosine)) + by_words) / 2, _DIGITS)
