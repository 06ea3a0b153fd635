"""What changed since yesterday, in words; and alerts, a word to one address of what began to fail.

Alerts are of what is new since the day before, and of contracts that drifted. Each thing
is said once, and of each tool at most one in an hour; the first look says nothing. One process of
those that share a store does it.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from math import sqrt
from typing import Final, Literal, NamedTuple

import httpx2

from aftercall import models as m
from aftercall.models.base import Name
from ingest.leases import LeaseKeeper
from mongo.records import decode_json, encode_json
from service import statistics
from service.context import Context
from service.dashboard import words as w
from service.lifecycle import beside

EVERY: Final = timedelta(hours=1)
"""Between two alerts about one tool."""
_LOOK_S: Final = 60.0
_REMEMBERED: Final = timedelta(days=8)
"""For so long what was stated is not stated again; a drift is news for less."""
_TIMEOUT_S: Final = 10.0
_FACT: Final = "alerts"
_TOOLS: Final = 500
AlertKind = Literal["new_pattern", "tool_in_trouble", "contract_drift"]


class Alert(m.WireModel):
    """Body of the POST: one thing. What tools stated stands in `text` as data."""

    kind: AlertKind
    workspace: Name
    tool: m.ToolName
    text: m.Text
    at: m.Timestamp
    url: str | None = None
    """The page about it, where the service knows its public address."""

    @property
    def about(self) -> str:
        """Tool that it is about, in its workspace."""
        return "\x1f".join((self.workspace, self.tool.server_name or "", self.tool.tool_name))


Said = dict[str, datetime]
"""When a thing was said, and when anything was said of a tool; so a restart says nothing twice."""


def due_of(said: Said, found: Iterable[tuple[str, Alert]], now: datetime) -> dict[str, Alert]:
    """Return what is to be stated now, by what it is; of each tool one."""
    due: dict[str, Alert] = {}
    told = {name for name, at in said.items() if now - at < EVERY}
    for thing, alert in found:
        if thing not in said and alert.about not in told:
            told.add(alert.about)
            due[thing] = alert
    return due


@asynccontextmanager
async def alerting(context: Context) -> AsyncIterator[None]:
    """Look once a minute until the block ends, where an address is configured."""
    if (url := context.settings.alerts.url) is None:
        yield
        return
    keeper = LeaseKeeper(context.store.leases, "alerts", ttl=30.0)

    async def step() -> float:
        if await keeper.try_take():
            await send_alerts(context, url)
        return _LOOK_S

    try:
        async with beside(step, "sending alerts", 1.0, _LOOK_S):
            yield
    finally:
        await keeper.close()


async def send_alerts(context: Context, url: str) -> int:
    """Return one look; how many were sent. What could not be sent is due again at the next one.

    An `httpx2.HTTPError` where the address does not answer with a success.
    """
    now = context.clock()
    fact = await context.store.metadata.get(_FACT)
    found = [
        each
        for name in await context.store.events.read_heads()
        for each in await news(context, name)
    ]
    if fact is None:  # what was there before anyone asked is no news
        await _keep(context, {thing: now for thing, _ in found})
        return 0
    said = decode_json(Said, fact.encode())
    if not (due := due_of(said, found, now)):
        return 0
    async with httpx2.AsyncClient(timeout=_TIMEOUT_S, follow_redirects=False) as client:
        for thing, alert in due.items():
            answer = await client.post(
                url,
                content=alert.model_dump_json(by_alias=True).encode(),
                headers={"content-type": "application/json"},
            )
            answer.raise_for_status()
            said[thing] = said[alert.about] = now
            await _keep(context, {k: at for k, at in said.items() if now - at < _REMEMBERED})
    return len(due)


async def _keep(context: Context, said: Said) -> None:
    await context.store.metadata.put(_FACT, encode_json(said).decode())


async def news(context: Context, workspace: str) -> list[tuple[str, Alert]]:
    """Return what is new in a workspace, each with a key of its own; masked as everywhere."""
    now, base = context.clock(), context.settings.server.public_url
    found = changes(
        (await statistics.totals(context, workspace, with_durations=False)).windows[0],
        await statistics.patterns(context, workspace, "24h", 50),
        await statistics.called(context, workspace, "24h", _TOOLS),
        await statistics.called(context, workspace, "7d", _TOOLS),
    )
    told: list[tuple[str, Alert]] = []

    def add(kind: AlertKind, tool: m.ToolName, text: str, path: str, thing: str) -> None:
        url = f"{base}/dashboard{path}" if base else None
        text = context.redactor.text(text)
        alert = Alert(kind=kind, workspace=workspace, tool=tool, text=text, at=now, url=url)
        told.append(("\x1f".join((kind, workspace, thing)), alert))

    for each in found:
        if each.pattern is not None and each.pattern.state == "open":
            name = each.pattern.pattern_id
            add("new_pattern", each.pattern.tool, each.words, f"/patterns/{name}", name)
        elif each.tool is not None and each.tone == "bad":
            name = f"{each.tool.server_name or ''}\x1f{each.tool.tool_name}"
            add("tool_in_trouble", each.tool, each.words, "/tools", f"{name}\x1f{now.date()}")
    for one in await context.memory.list_tools(workspace):
        for change in one.tool.contract_changes:
            if now - change.at < timedelta(days=7):
                tool = m.ToolName(
                    tool_id=one.tool.tool_id,
                    server_name=one.tool.server_name,
                    tool_name=one.tool.name,
                )
                text = f"`{change.parameter}` of {one.tool.name} {change.said}"
                thing = f"{one.tool.tool_id}\x1f{change.at.isoformat()}"
                add("contract_drift", tool, text, "/tools", thing)
    return told


# What changed since yesterday: a change is only named where it is more than chance would give.


_FEW: Final = 20
"""Calls on either side below which shares are not compared."""
_SURE: Final = 1.96
"""|z| of a difference that chance gives in one of twenty days (two-sided 5 %)."""
_ENOUGH: Final = 3
"""Failures from which on a tool counts as failing, and calls before that it counts as known."""
_QUIET: Final = 5
"""Calls without a failure from which on a tool counts as recovered."""
_MOST: Final = 4
"""Tools and patterns of one kind that are named."""


class DayChange(NamedTuple):
    """One sentence, and the tool or the pattern that it is about."""

    words: str
    tone: Literal["good", "bad", "warn", "plain"] = "plain"
    """`good` and `bad` only where it is clear."""
    tool: m.ToolName | None = None
    pattern: m.FailurePattern | None = None


def changes(
    day: m.WindowTotals,
    patterns: m.PatternStatistics,
    tools_day: Sequence[m.ToolUsage],
    tools_week: Sequence[m.ToolUsage],
) -> list[DayChange]:
    """Return what changed in 24 hours, most general first, never empty.

    `tools_week` are of 7 days.
    """
    if day.before is None:
        return [DayChange("There is nothing to compare with yet: a day's calls are needed first.")]
    if not w.calls(day.totals) and not w.calls(day.before):
        return [DayChange("Nothing was called in the last 48 hours.")]
    if not w.calls(day.before):  # all would be new
        return [_changed_calls(w.calls(day.totals), 0)]
    new = [
        DayChange(
            f"New since yesterday, {w.counted(each.failures, 'time')}: {each.pattern.title[:160]}",
            "warn",
            pattern=each.pattern,
        )
        for each in patterns.patterns
        if each.before == 0 and each.failures >= _ENOUGH
    ]
    return [
        _changed_calls(w.calls(day.totals), w.calls(day.before)),
        *_changed_rate(day.totals, day.before),
        *_changed_tools(tools_day, tools_week),
        *_first(new, "failures are new since yesterday"),
    ]


def is_sure(one: m.CallCounts, other: m.CallCounts) -> bool:
    """Return whether two rates differ by more than chance (pooled z-test); never with few calls."""
    n, k = w.calls(one), w.calls(other)
    if min(n, k) < _FEW:
        return False
    pooled = (one.successes + other.successes) / (n + k)
    error = sqrt(pooled * (1 - pooled) * (1 / n + 1 / k))
    return error > 0 and abs(one.successes / n - other.successes / k) / error >= _SURE


def _changed_calls(now: int, before: int) -> DayChange:
    words = f"{w.counted(now, 'call')} in the last 24 hours"
    if before == 0:
        return DayChange(f"{words}, none in the 24 hours before.")
    if now == before:
        return DayChange(f"{words}, as many as in the 24 hours before.")
    # Of few calls a percentage would say more than there is.
    by = f" ({(now - before) / before:+.0%})" if before >= _FEW else ""
    return DayChange(f"{words}, {w.count(before)} in the 24 hours before{by}.")


def _changed_rate(now: m.CallCounts, before: m.CallCounts) -> list[DayChange]:
    rate, former = w.success_rate(now), w.success_rate(before)
    if rate is None or former is None:
        return []
    if min(w.calls(now), w.calls(before)) < _FEW:
        return [DayChange(f"Fewer than {_FEW} calls on one side: success rates are not compared.")]
    words = f"{w.percent(rate)} succeeded, {w.percent(former)} the day before"
    if not is_sure(now, before):
        return [DayChange(f"{words}: the difference may be chance.")]
    points = (rate - former) * 100
    if points > 0:
        return [DayChange(f"{words}: up by {points:.1f} points.", "good")]
    return [DayChange(f"{words}: down by {-points:.1f} points.", "bad")]


def _changed_tools(day: Sequence[m.ToolUsage], week: Sequence[m.ToolUsage]) -> Iterable[DayChange]:
    today = {(each.tool.server_name, each.tool.tool_name): each for each in day}
    failing: list[DayChange] = []
    recovered: list[DayChange] = []
    for each in week:
        now = today.get((each.tool.server_name, each.tool.tool_name), m.CallCounts())
        # Both windows end now, so what is left of the week is what was before these 24 hours.
        failed = max(0, each.failures - now.failures)
        earlier = failed + max(0, each.successes - now.successes)
        name, before = w.tool_name(each.tool), w.count(earlier)
        if failed == 0 and now.failures >= _ENOUGH and earlier >= _ENOUGH:
            words = (
                f"{name} began to fail: {w.count(now.failures)} of {w.count(w.calls(now))} calls; "
                f"in the days before none of {before}."
            )
            failing.append(DayChange(words, "bad", tool=each.tool))
        # It failed so often that a day without a failure is news: every tenth call, at least.
        was_bad = failed >= _ENOUGH and failed * 10 >= earlier
        if was_bad and now.failures == 0 and now.successes >= _QUIET:
            words = (
                f"{name} recovered: no failure in {w.count(now.successes)} calls; in the days "
                f"before {w.count(failed)} of {before} failed."
            )
            recovered.append(DayChange(words, "good", tool=each.tool))
    return [*_first(failing, "tools began to fail"), *_first(recovered, "tools recovered")]


def _first(found: Sequence[DayChange], words: str) -> list[DayChange]:
    more = len(found) - _MOST
    return [*found[:_MOST], *([DayChange(f"{more} more {words}.")] if more > 0 else [])]
