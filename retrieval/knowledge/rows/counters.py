"""Names of counters, and durations as counters: what is counted of calls and answers, by hour.

Ingest writes them (`ingest.learner`); statistics, patterns and pages read sums of them through
`mongo.protocol.Counters`.

A duration is counted in a bucket of fixed logarithmic bounds: the upper one is `GROWTH` times the
lower one, and a quantile is given as the geometric middle of its bucket, so that it is off by at
most `RELATIVE_ERROR` of itself (Masson et al., "DDSketch", VLDB 2019, with gamma = `GROWTH`).
"""

import math
from collections.abc import Mapping
from typing import Final

GROWTH: Final = 1.1
RELATIVE_ERROR: Final = math.sqrt(GROWTH) - 1
"""0.0488: a p95 that is given as 1,000 ms is one between 953 and 1,049 ms."""
_LEAST_MS, _MOST_MS = 0.01, 1e9
COUNTED: Final = "counted"
"""Calls and answers of all tools in one, so that it is cheap to see whether an hour has grown."""
SUCCESS: Final = "call.success"
FAILURE: Final = "call.failure"
RETRY_SUCCESS: Final = "retry.success"
RETRY_FAILURE: Final = "retry.failure"
"""Second and later attempts."""
FOLLOWED_SUCCESS: Final = "followed.success"
FOLLOWED_FAILURE: Final = "followed.failure"
"""Calls that followed a suggestion."""
BEFORE_SUCCESS: Final = "before.success"
BEFORE_FAILURE: Final = "before.failure"
"""Calls that were repaired before they were made."""
WITH_CONTEXT: Final = "context"
"""Calls that stated what the agent was trying to do."""
DURATION: Final = "ms."
"""Calls by the bucket of their duration: `ms.48`."""
CATEGORY: Final = "category."
"""Failures by error category: `category.timeout`."""
AGENT_SUCCESS: Final = "agent.success."
AGENT_FAILURE: Final = "agent.failure."
"""Calls by agent: `agent.success.librarian`."""
VERSION_SUCCESS: Final = "version.success."
VERSION_FAILURE: Final = "version.failure."
"""Calls that name the version of their tool, by it: `version.failure.1.2`."""
SHADOW: Final = "shadow."
"""Calls that were only watched, by what would have been done: `shadow.repair.failure` of one that
would have been repaired before it was made and failed, `shadow.same.success` of one that is what
would have been sent instead of the failed one before."""
AGENT_REPAIRED: Final = "agent.repaired."
"""Of an agent's successes those that were a second attempt, followed a suggestion or were repaired
before the call."""
OF_AGENTS: Final = (AGENT_SUCCESS, AGENT_FAILURE, AGENT_REPAIRED)
SIGNATURE: Final = "signature."
"""Failures by the mark of their reflection document (`patterns.consolidation.mark_of`), in hex."""
ANSWER: Final = "answer."
"""Answers of `/suggest` by what they were, such as `answer.asked`, `answer.action:switch_tool`."""
ASKED, ABSTAINED, SURE = "asked", "abstained", "confident"
"""What an answer is counted as, next to `abstained:<category>` and `action:<action>`."""
UNMADE: Final = "unmade"
"""And that of a call which is only watched and would have been made again."""
SURE_ABOVE: Final = 0.80
"""Confidence above which a suggestion is sure, as wherever harm is measured (`bench/quality`)."""
OTHER: Final = "(other)"
"""Agents, signatures and versions beyond those that are shown apart."""
MAX_AGENTS: Final = 200
MAX_SIGNATURES: Final = 100
MAX_VERSIONS: Final = 50
"""Of one tool."""


def bucket_of(duration_ms: float) -> int | None:
    """Return the bucket of a duration in milliseconds; None for 0, which no one measured."""
    if duration_ms <= 0:
        return None
    return math.floor(math.log(min(max(duration_ms, _LEAST_MS), _MOST_MS)) / math.log(GROWTH))


def duration_quantile(buckets: Mapping[int, int], share: float) -> float | None:
    """Return the duration in milliseconds that a share (0 to 1) of all does not exceed.

    None of none.
    """
    rank, seen = share * (sum(buckets.values()) - 1), 0
    for bucket in sorted(buckets):
        seen += buckets[bucket]
        if seen > rank:
            return float(GROWTH ** (bucket + 0.5))
    return None
