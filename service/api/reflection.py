"""Reflection: calls before and after a question about failures, confidence, success criteria."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final, get_args

import numpy as np
from fastapi import APIRouter

from aftercall import models as m
from retrieval.answers.judge.reliability import Promise, reliability
from retrieval.knowledge.memory import JUDGED
from retrieval.knowledge.rows import counters as what
from service.api.patterns import list_latest_repairs, read_pattern_statistics
from service.context import Space
from service.requests import NO_QUERY, JsonRoute, Read, WindowList, WindowQuery
from service.windows import (
    CALL_COUNTERS,
    call_counts,
    call_fields,
    rank_counts,
    read_window,
    span_of,
)

router = APIRouter(tags=["statistics"], route_class=JsonRoute)
MAX_OUTCOMES = 2_000
"""The latest outcomes that are looked at."""
ASKED: Final = {
    "context": 0.80,
    "right_fix": 0.70,
    "repaired": 0.50,
    "repaired_of_not_refused": 0.70,
    "lift": 0.15,
    "lessons": None,
}
"""Seed 004, "Success Criteria"; the fourth is of the failures that a retry can settle at all."""
_REFUSED: Final = ("permission_denied", "user_rejected")
_COMMON: Final = 10
"""Seed 004: "Top 10 failure patterns"."""


@router.get("/stats/reflection", summary="What asking about failures did", name="reflection")
async def read_reflection(space: Read, query: WindowQuery) -> m.ReflectionStatistics:
    """Return how calls went before and after reflection, the answers, and the times of repairs.

    Repairs are the latest 2,000, and as many outcomes of suggestions (a success that followed one
    counts when it names in `repairOf` what it repairs). Times are those of the callers.
    """
    # Which retry belongs to which first attempt is not counted: `tasks` takes each success for that
    # of another task, as many as there are.
    span, about = await read_window(space, query.window)
    calls = await span.by_name(*CALL_COUNTERS)
    counted, answers = call_fields(calls), await span.by_name(prefix=what.ANSWER)
    watched = await span.by_name(prefix=what.SHADOW)
    before = await span.by_name(what.BEFORE_SUCCESS, what.BEFORE_FAILURE)
    # A call that was repaired before it was made would have failed.
    saved = before[what.BEFORE_SUCCESS]
    first = m.CallCounts(
        successes=max(0, calls[what.SUCCESS] - calls[what.RETRY_SUCCESS] - saved),
        failures=calls[what.FAILURE] - calls[what.RETRY_FAILURE] + saved,
    )
    began = first.successes + first.failures
    done = min(calls[what.SUCCESS], began)
    by_suggestion, by_agents = await _time_repairs(space, about)
    return m.ReflectionStatistics(
        **about,
        first_attempts=first,
        tasks=m.CallCounts(successes=done, failures=began - done),
        repaired_before=call_counts(before, what.BEFORE_SUCCESS, what.BEFORE_FAILURE),
        retries=counted["retries"],
        suggested=counted["suggested"],
        answers=_count_answers(answers),
        with_suggestion=by_suggestion,
        without_suggestion=by_agents,
        shadow=_count_shadow(watched, answers[what.UNMADE]) if watched else None,
    )


@router.get("/stats/criteria", summary="What is met of the success criteria", name="criteria")
async def read_criteria(space: Read, query: WindowQuery) -> m.Criteria:
    """Return how many cases of how many meet each criterion, and the asked share (seed 004)."""
    span = span_of(space, query.window)
    seen = await read_reflection(space, query)
    refusals = [f"{what.CATEGORY}{category}" for category in _REFUSED]
    counted = await span.by_name(what.SUCCESS, what.FAILURE, what.WITH_CONTEXT, *refusals)
    most_met = WindowList(window=query.window, limit=_COMMON)
    common = (await read_pattern_statistics(space, most_met)).patterns
    calls = counted[what.SUCCESS] + counted[what.FAILURE]
    first, tasks = seen.first_attempts, seen.tasks
    failed = first.failures
    refused = sum(counted[name] for name in refusals)
    gained = tasks.successes - first.successes
    worked = seen.suggested.successes + seen.repaired_before.successes
    followed = worked + seen.suggested.failures + seen.repaired_before.failures
    with_lesson = [each for each in common if each.pattern.lesson]
    met = {
        "context": (counted[what.WITH_CONTEXT], calls),
        "right_fix": (worked, followed),
        "repaired": (gained, failed),
        "repaired_of_not_refused": (gained, max(gained, failed - refused)),
        "lift": (gained, tasks.successes + tasks.failures),
        "lessons": (len(with_lesson), len(common)),
    }
    criteria: list[m.Criterion] = []
    for name, asked in ASKED.items():
        number, of = met[name]
        fields = {"name": name, "met": number, "of": of, "asked": asked}
        criteria.append(m.Criterion.model_validate(fields))
    return m.Criteria(
        window=seen.window,
        since=seen.since,
        until=seen.until,
        is_complete=seen.is_complete,
        criteria=criteria,
    )


@router.get(
    "/stats/confidence",
    summary="What suggestions promised, and what came of it",
    name="confidence",
    dependencies=[NO_QUERY],
)
async def read_confidence(space: Read) -> m.ConfidenceStatistics:
    """Return the latest 2,000 outcomes in tenths of the shown confidence, with two errors.

    A success is a call that succeeded: outcomes do not show whether it did what was meant.
    """
    context, workspace = space
    rows = await context.store.knowledge.scan_rows(workspace, JUDGED.name, MAX_OUTCOMES, by="rank")
    judged = [each for row in rows if (each := JUDGED.decode_row(row)).estimate is not None]
    return reliability([Promise(e.confidence, e.outcome == "success") for e in judged])


async def find_missing(space: Space) -> list[str]:
    """Return in sentences what calls of the last 7 days leave out and could be learned from."""
    sums = await span_of(space, "7d").by_name(what.SUCCESS, what.FAILURE, what.WITH_CONTEXT)
    calls = sums[what.SUCCESS] + sums[what.FAILURE]
    without = calls - sums[what.WITH_CONTEXT]
    if 2 * without <= calls:
        return []
    return [
        f"{without:,} of {calls:,} calls do not say what for, so tools cannot be compared by "
        'task: send `context`, over MCP `_meta` "aftercall/context", the header '
        "`aftercall-context` or `aftercall gateway --context`"
    ]


def _count_shadow(sums: Counter[str], unmade: int) -> m.ShadowCounts:
    def sum_calls(*names: str) -> m.CallCounts:
        return m.CallCounts(
            successes=sum(sums[f"{name}.success"] for name in names),
            failures=sum(sums[f"{name}.failure"] for name in names),
        )

    return m.ShadowCounts(
        watched=sum_calls("pass", "warn", "repair", "block"),
        repaired_before=sum_calls("repair"),
        blocked=sum_calls("block"),
        repaired_after=unmade,
        same=sum_calls("same"),
        other=sum_calls("other"),
    )


def _count_answers(sums: Counter[str]) -> m.AnswerCounts:
    actions = {f"action:{each}": each for each in get_args(m.Action)}
    kinds = {f"{what.ABSTAINED}:{each}": each for each in get_args(m.ErrorCategory)}
    return m.AnswerCounts(
        asked=sums[what.ASKED],
        abstained=sums[what.ABSTAINED],
        confident=sums[what.SURE],
        by_action=[
            m.ActionCount(action=actions[name], answers=number)
            for name, number in rank_counts(sums)
            if name in actions
        ],
        abstentions=[
            m.CategoryAbstentions(category=kinds[name], answers=number)
            for name, number in rank_counts(sums)
            if name in kinds
        ],
    )


async def _time_repairs(
    space: Space, about: Mapping[str, Any]
) -> tuple[m.RepairTimes, m.RepairTimes]:
    """Return the times of repairs in a window: by suggestions, and without them."""
    waited: dict[bool, list[float]] = {True: [], False: []}
    for _, each in await list_latest_repairs(space):
        if about["since"] <= each.mended_at <= about["until"]:
            # By different clocks a success may seem earlier than its failure.
            seconds = max(0.0, (each.mended_at - each.failed_at) / timedelta(seconds=1))
            waited[each.followed_suggestion].append(seconds * 1000)
    return _summarise_times(waited[True]), _summarise_times(waited[False])


def _summarise_times(waited_ms: Iterable[float]) -> m.RepairTimes:
    if not (found := list(waited_ms)):
        return m.RepairTimes()
    p50, p95 = np.percentile(found, [50, 95])
    return m.RepairTimes(
        repairs=len(found), p50_ms=round(float(p50), 3), p95_ms=round(float(p95), 3)
    )
