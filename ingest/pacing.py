"""Who goes first: all tuning of learning next to recording and answering, in one place.

One processor and one interpreter lock are shared by what arrives, what is asked, and what is
learned. Arriving calls go first: a burst is let pass before it is learned. Learning goes before
vectors, since most is found without one. Answers go before both (`aftercall.background.Precedence`,
which threads of learning ask). The figures are of `python -m bench.service` on two cores.
"""

import asyncio
from collections.abc import Awaitable, Callable

from aftercall.background import ANSWERS

# Batches

BATCH = 4_000
"""Events that are learned from together."""
EMBED_BATCH = 1024
"""Documents per round of the model: sorted by length among so many, 3 % of it is padding."""
POINTS = 256
"""Of them that the index takes at once: it lets nothing else run for 50 us each."""
TOGETHER_S = 0.1
"""What comes within so long after the first is learned with it: one event alone costs ten times its
part of three hundred, and delays the next answer by as much."""

# Who waits for whom

FLOOD = 3_000
"""Events a second above which intake has the processor to itself: more than is learned even alone,
so that what arrives more slowly is learned next to it."""
BACKLOG = 1_000
"""Events waiting from which on vectors let learning go first."""
LOOK_S = 0.2
BURST_LOOKS = 75
"""How long learning lets a flood pass, once for each backlog: a longer one is learned next to."""
PATIENT_LOOKS = 50
"""Of vectors: most is found without, and made sooner they take a tenth of learning's speed."""

COURTESY_S = 0.005
"""Longest time that learning waits for answers before each event that it reads or learns, and each
row that it decodes or encodes: next to questions without a pause 200 a second."""
SWITCH_S = 0.0005
"""How long a thread of Python may keep others waiting. The event loop must not starve those that
write, embed and learn: with Python's 5 ms, appends next to a busy loop were ten times slower
(`bench/log_store.py`)."""

# How often it is looked

POLL_S = 0.25
"""How often it is looked for what other processes stored, where a store is shared."""
OWN_POLL_S = 2.0
"""The same where others store next to nothing, and of vectors: what is stored here wakes them."""
IDLE_S = 3.0
"""Seconds without work after which a workspace is given back, where a store is shared."""
RETRY_S = 1.0
FOLLOW_S = 0.5
"""Between two looks at what others learned: that is to be usable here within a second."""
FOLLOW_IDLE_S = 2.0
"""The same while no one asks; the first who does waits for a look."""

# What is kept, and what comes later

MUCH = 150
"""From so many events between two calls of `Indexer.hand_over_known` on, the learner keeps tools
decoded: reading a much used one again takes some 5 ms."""
MUCH_FOR_A_PROCESS = 600
"""Events between two such calls from which on learning gets a process of its own: 200 a second,
which take an eighth of a processor."""
QUIET_LOOKS = 10
"""Such calls with fewer, until the process is ended: half a minute."""
PROCESS_NICE = 10
"""Lowers the priority of that process: recording and answers go first."""
MAX_CACHES = 16
"""Workspaces whose rows the learner keeps."""
GIVE_BACK_S = 3.0
"""How often the memory that batches have freed is given back, and what they made is spared the
garbage collector."""
YOUNG = 2_000
"""New objects after which Python looks for garbage among them: 1 ms of the interpreter lock. Among
10,000, and ten times as many now and then, it took 9 and up to 30 ms (`bench/pauses.py`)."""
GARBAGE_IDLE_S, GARBAGE_S = 3_600.0, 6 * 3_600.0
"""After so long it is looked for among all objects, while nothing is learned, or anyhow: 0.3 s. Per
freeze some 40 objects are spared that become garbage later, 8 MiB an hour next to 8 askers."""
SETTLE_S = 2.0
"""Between two rounds of clustering: axes that come together are mostly clustered together."""
CLUSTER_IDLE_S = 20.0
"""The same while no one asks."""
CLUSTER_REST = 4.0
"""Times a round's own length until the next: one that names new axes all the time takes a fifth of
the model's time, so that questions come first."""


def let_answers_pass() -> None:
    """Wait, in a learning thread, while an answer is made: `COURTESY_S` at most."""
    ANSWERS.let_others(COURTESY_S)


class Pacing:
    """Lets bursts pass before they are learned, and learning go before vectors.

    `waiting` counts the events that are still to be learned from.
    """

    def __init__(self, waiting: Callable[[], Awaitable[int]]) -> None:
        self._waiting = waiting
        self._looks = BURST_LOOKS
        self.is_behind = False
        """Whether so much waits that vectors let learning go first."""

    async def let_burst_pass(self, has_process: Callable[[], bool] = lambda: False) -> bool:
        """Wait while more arrives than can be learned, a while at most; whether anything waits.

        A process that learns lets recording pass anyhow: it has the lower priority.
        """
        before = await self._waiting()
        self.is_behind = before >= BACKLOG
        if not self.is_behind:
            self._looks = BURST_LOOKS
        while self.is_behind and self._looks and not has_process():
            self._looks -= 1
            await asyncio.sleep(LOOK_S)
            after = await self._waiting()
            if after - before <= FLOOD * LOOK_S:
                break
            before = after
        return before > 0

    async def let_learning_pass(self) -> None:
        """Wait while learning is behind, ten seconds at most."""
        for _ in range(PATIENT_LOOKS):
            if not self.is_behind:
                break
            await asyncio.sleep(LOOK_S)
