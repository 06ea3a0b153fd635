"""A history with every kind of event, days long, and what a generation holds of it."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, get_args
from uuid import UUID

from aftercall.models import Evidence, Execution, Promotion, Suggestion, Tool
from ingest.batches import commit_events
from ingest.workspace import WorkspaceCache
from mongo.contents import (
    CorrectionRecord,
    FailureRecord,
    IssuedSuggestion,
    PromotionEvent,
    RuleChange,
    RuleRemoval,
    StoredPatternReview,
    StoredPromotion,
    StoredTool,
    SuggestionOutcome,
    correction_event,
    execution_event,
    mark_event,
    outcome_event,
    promotion_command,
    removal_event,
    review_command,
    suggestion_event,
    tool_command,
)
from mongo.protocol import CounterDimension, Generation, Store
from mongo.records import Event, Row, ToolKey
from retrieval.knowledge.memory import NIGHTLY, VECTOR
from retrieval.knowledge.rewrites.edits import Clamp, edit_key
from tests.retrieval.cases import an_execution

WORKSPACE = "default"
BEGIN = datetime(2026, 2, 1, tzinfo=UTC)
_BOUND = {"type": "ValidationError", "message": "Invalid parameter: topK must be <= 10"}
_SIGNATURE = "Invalid parameter: topK must be <= <n>"
_BUSY = {"type": "TimeoutError", "message": "timed out after 30 s"}
_NOT_MINE = {
    "type": "wrong_tool_boundary",
    "message": "not my job",
    "details": {"boundary_axes": ["page reading", "payment"], "evidence": "seen"},
}


def history(seed: int, count: int, days: float) -> Iterator[Event]:
    """Events in the order of their arrival, spread over days, with late and early ones."""
    dice = random.Random(seed)  # noqa: S311  # no secret
    earlier: list[Execution] = []
    suggested: list[tuple[str, IssuedSuggestion]] = []
    for number in range(count):
        at = BEGIN + timedelta(days=days * number / count)
        for event in _some(dice, number, at, earlier, suggested):
            yield replace(event, received_at=at)


def _some(
    dice: random.Random,
    number: int,
    at: datetime,
    earlier: list[Execution],
    suggested: list[tuple[str, IssuedSuggestion]],
) -> Iterator[Event]:
    tool = ToolKey(WORKSPACE, "srv", dice.choice(["search", "fetch"]))
    match dice.choices(
        ["call", "suggest", "outcome", "mark", "correct", "tool", "promote", "rule", "review"],
        [60, 8, 6, 6, 6, 3, 2, 2, 1],
    )[0]:
        case "call":
            call = _call(dice, number, at, tool, earlier, suggested)
            earlier.append(call)
            yield execution_event(
                WORKSPACE, call, content_hash=str(number), schema_hash=None, input_schema=None,
                stands_for=dice.choice([1, 1, 1, 4]),
            )  # fmt: skip
        case "suggest":
            name, issued = str(UUID(int=10_000 + number)), _issued(tool, number, at)
            suggested.append((name, issued))
            yield suggestion_event(name, issued)
        case "outcome" if suggested:
            name, issued = dice.choice(suggested[-5:])
            call_id = str(UUID(int=dice.randrange(number + 20) + 1))
            outcome = dice.choice(["success", "failure"])
            yield outcome_event(SuggestionOutcome(name, call_id, outcome, issued, agent="eve"))
        case "mark":
            yield mark_event(
                FailureRecord(
                    tool=tool, mark_id=f"m{number}",
                    version=dice.choice([None, "1.0", "2.0"]), scenario="find pages",
                    error_message="wrong", severity=dice.choice(["low", "high"]), marked_at=at,
                    negative_tags=("not-for-pdf",), execution_id=_near(dice, number),
                )
            )  # fmt: skip
        case "correct":
            yield correction_event(
                CorrectionRecord(
                    correction_id=str(UUID(int=30_000 + number)),
                    execution_id=_near(dice, number) or str(UUID(int=9_999)),
                    kind="low_utility", text="not what I meant", corrected_at=at,
                    boundary_axes=("price extraction",),
                )
            )  # fmt: skip
        case "tool":
            before = _tool(tool, at, "1.0") if dice.random() < 0.5 else None
            after = _tool(tool, at, "2.0") if before is None or dice.random() < 0.7 else None
            stored = StoredTool(WORKSPACE, before) if before else None
            yield tool_command(WORKSPACE, tool.tool_name, stored, after)[0]
        case "rule":
            key, change = edit_key([Clamp(name="topK")]), dice.choice(get_args(RuleChange))
            yield removal_event(RuleRemoval(tool, _SIGNATURE, key, change))
        case "review":
            yield review_command(StoredPatternReview(f"p{number % 3}", "ignored", at))[0]
        case "promote":
            promotion = Promotion(
                original_version="1.0", evolved_version=f"1.{1 + number % 3}", reason="better",
                mutation="caches", promoted_at=at,
            )  # fmt: skip
            promoted = StoredPromotion(WORKSPACE, "pages", promotion)
            change = PromotionEvent(WORKSPACE, "pages", at, "promoted", promoted)
            yield promotion_command(change, None)[0]


def _call(
    dice: random.Random,
    number: int,
    at: datetime,
    tool: ToolKey,
    earlier: list[Execution],
    suggested: list[tuple[str, IssuedSuggestion]],
) -> Execution:
    error: Any = dice.choice([None, None, _BOUND, _BUSY, _NOT_MINE])
    follows = dice.choice(suggested)[0] if suggested and dice.random() < 0.2 else None
    repairs = dice.choice(earlier[-6:]).execution_id if earlier and dice.random() < 0.1 else None
    early = timedelta(minutes=dice.choice([0, 0, 0, 7]))
    return an_execution(
        execution_id=str(UUID(int=number + 1)),
        timestamp=(at - early).isoformat(),
        agent=dice.choice(["ada", "bob", "eve"]),
        server_name=tool.server_name,
        tool_name=tool.tool_name,
        tool_version=dice.choice([None, "1.0"]),
        parameters={"query": f"q{number % 7}", "topK": 50 if error is _BOUND else 10},
        context=dice.choice([None, "find pages", f"look at page {number}"]),
        outcome="failure" if error else "success",
        error=error,
        session_id=dice.choice([None, f"s{int(at.timestamp() // 7200)}", "long"]),
        suggestion_id=follows,
        repair_of=repairs,
        attempt=dice.choice([1, 1, 2]),
    )


def _near(dice: random.Random, number: int) -> str | None:
    """Of a call that came lately, or comes soon, or of none."""
    return dice.choice([None, str(UUID(int=max(1, number + dice.randrange(-30, 10))))])


def _issued(tool: ToolKey, number: int, at: datetime) -> IssuedSuggestion:
    edits = [Clamp(name="topK")]
    return IssuedSuggestion(
        tool=tool,
        category="invalid_parameters",
        signature=_SIGNATURE,
        issued_at=at,
        suggestion=Suggestion(
            suggestion_id=str(UUID(int=10_000 + number)), action="change_parameters",
            confidence=0.9, evidence=Evidence(), lesson="",
        ),
        edit_key=edit_key(edits),
        estimate=0.8,
        answered=("asked", "action:change_parameters"),
        faults={"topK": "out_of_range"},
    )  # fmt: skip


def _tool(tool: ToolKey, at: datetime, version: str) -> Tool:
    return Tool(
        tool_id=tool.tool_name, name=tool.tool_name, server_name=tool.server_name,
        namespace="pages", version=version, description=f"Version {version}.", updated_at=at,
    )  # fmt: skip


async def held(generation: Generation) -> dict[str, Any]:
    """All rows and counters of a generation, but for results of the nightly job."""
    rows: list[Row] = []
    after = 0
    while page := await generation.scan_rows(WORKSPACE, None, 1_000, by="serial", after=after):
        rows += page
        after = page[-1].serial
    by: tuple[CounterDimension, ...] = get_args(CounterDimension)
    sums = await generation.sum_counters(WORKSPACE, ["*"], since=0, until=2**40, by=by)
    return {
        "counters": {each[1:]: each.number for each in sums},
        **{
            f"{row.kind} {row.key}": (row.data, row.tool, row.rank)
            for row in rows
            if row.kind not in NIGHTLY
        },
    }


async def differences(store: Store) -> list[str]:
    """Kinds of rows in which the current generation differs from one that learns all anew."""
    anew = await store.open_generation(store.knowledge.generation + 1)
    cursor = (await anew.read_cursors()).get(WORKSPACE)
    position, serial = (cursor.position, cursor.serial) if cursor else (0, 0)
    cache = WorkspaceCache(WORKSPACE, serial)
    while events := await store.events.read_after(WORKSPACE, position, 1_000):
        await commit_events(store.events, anew, cache, events, position)
        position = events[-1].position
    live, expected = await held(store.knowledge), await held(anew)
    differ = {
        name.split()[0]
        for name in live.keys() | expected.keys()
        if not name.startswith(f"{VECTOR.name} ") and live.get(name) != expected.get(name)
    }
    return sorted(differ)
