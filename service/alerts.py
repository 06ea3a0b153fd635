"""Changes since yesterday in words, and alerts: messages to one address about what began to fail.

Alerts are about what is new since the day before, and about contracts that drifted. Each thing is
reported once, and each tool at most once an hour; the first look reports nothing. One of the
processes that share a store sends the alerts.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from math import sqrt
from typing import Final, Literal, NamedTuple

from aftercall import models as m
from aftercall.models.base import Name
from ingest.leases import LeaseKeeper
from mongo.records import decode_json, encode_json
from service.api.patterns import read_pattern_statistics
from service.api.statistics import read_called_tools, sum_windows
from service.context import Context, Space
from service.dashboard import words as w
from service.lifecycle import keep_doing
from service.requests import WindowList

EVERY: Final = timedelta(hours=1)
"""Between two alerts about one tool."""
_LOOK_S: Final = 60.0
_REMEMBERED: Final = timedelta(days=8)
"""How long a report is not repeated; a drift is news for a shorter time."""
_TIMEOUT_S: Final = 10.0
_FACT: Final = "alerts"
_TOOLS: Final = 500
AlertKind = Literal["new_pattern", "tool_in_trouble", "contract_drift"]


class Alert(m.WireModel):
    """The body of the POST, about one thing. Words of tools stand in `text` as data."""

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
"""When each thing was reported, and when each tool was; so a restart repeats nothing."""


def due_of(said: Said, found: Iterable[tuple[str, Alert]], now: datetime) -> dict[str, Alert]:
    """Return the alerts that are to be sent now, by their subject; at most one for each tool."""
    due: dict[str, Alert] = {}
    reported = {name for name, at in said.items() if now - at < EVERY}
    for thing, alert in found:
        if thing in said or alert.about in reported:
            continue
        reported.add(alert.about)
        due[thing] = alert
    return due


@asynccontextmanager
async def open_alerts(context: Context) -> AsyncIterator[None]:
    """Look once a minute until the block ends, if an address is configured."""
    if (url := context.settings.alerts.url) is None:
        yield
        return
    keeper = LeaseKeeper(context.store.leases, "alerts", ttl=30.0)

    async def look_once() -> float:
        if await keeper.try_take():
            await send_alerts(context, url)
        return _LOOK_S

    try:
        async with keep_doing(look_once, "sending alerts", 1.0, _LOOK_S):
            yield
    finally:
        await keeper.close()


async def send_alerts(context: Context, url: str) -> int:
    """Look once, send what is due, and return how many alerts were sent.

    An alert that could not be sent is due again at the next look.

    Raises:
        httpx2.HTTPError: the address does not answer with a success.
    """
    now = context.clock()
    fact = await context.store.metadata.get(_FACT)
    found = [
        each
        for name in await context.store.events.read_heads()
        for each in await find_news(Space(context, name))
    ]
    if fact is None:  # the first look reports nothing
        await _keep_said(context, {thing: now for thing, _ in found})
        return 0
    said = decode_json(Said, fact.encode())
    if not (due := due_of(said, found, now)):
        return 0
    import httpx2  # noqa: PLC0415  # where no address is set no alert is sent

    async with httpx2.AsyncClient(timeout=_TIMEOUT_S, follow_redirects=False) as client:
        for thing, alert in due.items():
            answer = await client.post(
                url,
                content=alert.model_dump_json(by_alias=True).encode(),
                headers={"content-type": "application/json"},
            )
            answer.raise_for_status()
            said[thing] = said[alert.about] = now
            await _keep_said(context, {k: at for k, at in said.items() if now - at < _REMEMBERED})
    return len(due)


async def _keep_said(context: Context, said: Said) -> None:
    await context.store.metadata.put(_FACT, encode_json(said).decode())


async def find_news(space: Space) -> list[tuple[str, Alert]]:
    """Return what is new in a workspace, each with a key of its own; secrets are masked."""
    context, workspace = space
    now, base = context.clock(), context.settings.server.public_url
    [day] = await sum_windows(space, asked=["24h"], with_durations=False)
    patterns = await read_pattern_statistics(space, WindowList(window="24h", limit=50))
    tools_day = await read_called_tools(space, "24h", _TOOLS)
    tools_week = await read_called_tools(space, "7d", _TOOLS)
    alerts: list[tuple[str, Alert]] = []

    def add(kind: AlertKind, tool: m.ToolName, text: str, path: str, thing: str) -> None:
        alert = Alert(
            kind=kind,
            workspace=workspace,
            tool=tool,
            text=context.redactor.text(text),
            at=now,
            url=f"{base}/dashboard{path}" if base else None,
        )
        key = "\x1f".join((kind, workspace, thing))
        alerts.append((key, alert))

    for each in find_changes(day, patterns, tools_day, tools_week):
        pattern, tool = each.pattern, each.tool
        if pattern is not None and pattern.state == "open":
            name = pattern.pattern_id
            add("new_pattern", pattern.tool, each.words, f"/patterns/{name}", name)
        elif tool is not None and each.tone == "bad":
            thing = f"{tool.server_name or ''}\x1f{tool.tool_name}\x1f{now.date()}"
            add("tool_in_trouble", tool, each.words, "/tools", thing)
    for stored in await context.memory.list_tools(workspace):
        drifted = stored.tool
        for change in drifted.contract_changes:
            if now - change.at >= timedelta(days=7):
                continue
            about = m.ToolName(
                tool_id=drifted.tool_id, server_name=drifted.server_name, tool_name=drifted.name
            )
            text = f"`{change.parameter}` of {drifted.name} {change.said}"
            thing = f"{drifted.tool_id}\x1f{change.at.isoformat()}"
            add("contract_drift", about, text, "/tools", thing)
    return alerts


# Changes since yesterday: a change is only named if it is more than chance would give.


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
    """One sentence, and the tool or the pattern that it describes."""

    words: str
    tone: Literal["good", "bad", "warn", "plain"] = "plain"
    """`good` and `bad` only where it is clear."""
    tool: m.ToolName | None = None
    pattern: m.FailurePattern | None = None


def find_changes(
    day: m.WindowTotals,
    patterns: m.PatternStatistics,
    tools_day: Sequence[m.ToolUsage],
    tools_week: Sequence[m.ToolUsage],
) -> list[DayChange]:
    """Return what changed in 24 hours, the most general first; the list is never empty.

    `tools_week` counts 7 days.
    """
    if day.before is None:
        return [DayChange("There is nothing to compare with yet: a day's calls are needed first.")]
    if not w.count_calls(day.totals) and not w.count_calls(day.before):
        return [DayChange("Nothing was called in the last 48 hours.")]
    if not w.count_calls(day.before):  # everything would be new
        return [_changed_calls(w.count_calls(day.totals), 0)]
    new = [
        DayChange(
            f"New since yesterday, {w.format_noun(each.failures, 'time')}: "
            f"{each.pattern.title[:160]}",
            "warn",
            pattern=each.pattern,
        )
        for each in patterns.patterns
        if each.before == 0 and each.failures >= _ENOUGH
    ]
    return [
        _changed_calls(w.count_calls(day.totals), w.count_calls(day.before)),
        *_changed_rate(day.totals, day.before),
        *_changed_tools(tools_day, tools_week),
        *_shorten_list(new, "failures are new since yesterday"),
    ]


def is_sure(one: m.CallCounts, other: m.CallCounts) -> bool:
    """Return whether two rates differ by more than chance (pooled z-test); False with few calls."""
    n, k = w.count_calls(one), w.count_calls(other)
    if min(n, k) < _FEW:
        return False
    pooled = (one.successes + other.successes) / (n + k)
    variance = pooled * (1 - pooled)
    error = sqrt(variance * (1 / n + 1 / k))
    difference = one.successes / n - other.successes / k
    return error > 0 and abs(difference) / error >= _SURE


def _changed_calls(now: int, before: int) -> DayChange:
    words = f"{w.format_noun(now, 'call')} in the last 24 hours"
    if before == 0:
        return DayChange(f"{words}, none in the 24 hours before.")
    if now == before:
        return DayChange(f"{words}, as many as in the 24 hours before.")
    # A percentage of few calls would claim too much.
    change = (now - before) / before
    by = f" ({change:+.0%})" if before >= _FEW else ""
    return DayChange(f"{words}, {w.format_count(before)} in the 24 hours before{by}.")


def _changed_rate(now: m.CallCounts, before: m.CallCounts) -> list[DayChange]:
    rate, former = w.success_rate(now), w.success_rate(before)
    if rate is None or former is None:
        return []
    fewest = min(w.count_calls(now), w.count_calls(before))
    if fewest < _FEW:
        return [DayChange(f"Fewer than {_FEW} calls on one side: success rates are not compared.")]
    words = f"{w.format_percent(rate)} succeeded, {w.format_percent(former)} the day before"
    points = (rate - former) * 100
    if not is_sure(now, before):
        change = DayChange(f"{words}: the difference may be chance.")
    elif points > 0:
        change = DayChange(f"{words}: up by {points:.1f} points.", "good")
    else:
        change = DayChange(f"{words}: down by {-points:.1f} points.", "bad")
    return [change]


def _changed_tools(day: Sequence[m.ToolUsage], week: Sequence[m.ToolUsage]) -> Iterable[DayChange]:
    today = {_name_key(each.tool): each for each in day}
    failing: list[DayChange] = []
    recovered: list[DayChange] = []
    for each in week:
        now = today.get(_name_key(each.tool), m.CallCounts())
        # Both windows end now, so what is left of the week is what was before these 24 hours.
        failed = max(0, each.failures - now.failures)
        succeeded = max(0, each.successes - now.successes)
        earlier = failed + succeeded
        name = w.format_tool(each.tool)
        before = w.format_count(earlier)
        if failed == 0 and now.failures >= _ENOUGH and earlier >= _ENOUGH:
            calls = w.format_noun(w.count_calls(now), "call")
            words = (
                f"{name} began to fail: {w.format_count(now.failures)} of {calls}; "
                f"in the days before none of {before}."
            )
            failing.append(DayChange(words, "bad", tool=each.tool))
        # At least every tenth call failed, so that a day without a failure is news.
        was_bad = failed >= _ENOUGH and failed * 10 >= earlier
        if was_bad and now.failures == 0 and now.successes >= _QUIET:
            words = (
                f"{name} recovered: no failure in {w.format_count(now.successes)} calls; in the "
                f"days before {w.format_count(failed)} of {before} failed."
            )
            recovered.append(DayChange(words, "good", tool=each.tool))
    return [
        *_shorten_list(failing, "tools began to fail"),
        *_shorten_list(recovered, "tools recovered"),
    ]


def _name_key(tool: m.ToolName) -> tuple[str | None, str]:
    return tool.server_name, tool.tool_name


def _shorten_list(found: Sequence[DayChange], words: str) -> list[DayChange]:
    shown = list(found[:_MOST])
    more = len(found) - _MOST
    if more > 0:
        shown.append(DayChange(f"{more} more {words}."))
    return shown
