"""*Sessions*: the calls of agents one by one, and a search over the stored calls."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

from aftercall.models import Execution, ToolName
from aftercall.redaction import Redactor
from aftercall.tables import gather_values
from mongo.contents import execution_of, name_as_given
from mongo.records import Event
from retrieval.knowledge.memory import REPAIR
from service.context import Space
from service.dashboard import html as h
from service.dashboard import words as w
from service.dashboard.look import Look, NothingHereError, Shown
from service.dashboard.pattern import ShownRepair

MAX_LOOKED: Final = 10_000
"""Calls that are looked at, the latest; and no longer than `_PATIENCE_S`."""
MAX_FOUND: Final = 200
_PATIENCE_S: Final = 3.0
_MAX_FAILURES: Final = 50
"""Failures of one session whose repairs are looked for."""
_MAX_CALLS: Final = 200
"""Calls of one session, the latest."""
FIELDS: Final = {
    "tool": "Tool", "agent": "Agent", "text": "Text", "parameter": "Parameter",
    "since": "Since (UTC)", "until": "Until (UTC)",
}  # fmt: skip


class SearchedCalls(NamedTuple):
    """Which calls are searched; an empty field leaves all in. Names are parts of names."""

    tool: str = ""
    agent: str = ""
    text: str = ""
    """In the context, the parameters or the error, as they are shown."""
    parameter: str = ""
    """The whole name of one at the top."""
    since: datetime | None = None
    until: datetime | None = None

    def includes_call(self, call: Execution) -> bool:
        """Return whether a call fits the search by its names and its time."""
        tool = w.format_tool(ToolName(server_name=call.server_name, tool_name=call.tool_name))
        return (
            self.tool.casefold() in tool.casefold()
            and self.agent.casefold() in call.agent.casefold()
            and self.parameter in ("", *call.parameters)
            and (self.since is None or call.timestamp >= self.since)
            and (self.until is None or call.timestamp <= self.until)
        )

    def has_words(self, call: Execution) -> bool:
        """Return whether a call has the text, masked as it is shown."""
        said = [call.context or "", json.dumps(call.parameters, ensure_ascii=False)]
        said += [call.error.message, call.error.type] if call.error else []
        return any(self.text.casefold() in each.casefold() for each in said)


class FoundCall(NamedTuple):
    """A call, masked, and its session as the log names it."""

    session: str
    call: Execution

    @property
    def tool(self) -> ToolName:
        """Tool that was called."""
        return ToolName(server_name=self.call.server_name, tool_name=self.call.tool_name)


@dataclass(slots=True)
class FoundCalls:
    """The result of a search: the latest calls first, and how far it looked."""

    calls: list[FoundCall] = field(default_factory=list)
    looked: int = 0
    back_to: datetime | None = None
    is_all: bool = False
    """Whether it came to the first call that is stored."""


async def search_calls(space: Space, wanted: SearchedCalls) -> FoundCalls:
    """Return the latest stored calls that fit, read in a bounded time off the event loop."""
    context, workspace = space
    found, before, until = FoundCalls(), None, time.monotonic() + _PATIENCE_S
    while len(found.calls) < MAX_FOUND and found.looked < MAX_LOOKED and time.monotonic() < until:
        page = await context.store.events.latest_events(workspace, "execution", 500, before=before)
        if not page:
            found.is_all = True
            break
        before, found.back_to = page[-1].position, page[-1].received_at
        found.looked += len(page)
        found.calls += await asyncio.to_thread(_filter_calls, page, wanted, context.redactor)
    del found.calls[MAX_FOUND:]
    return found


def _filter_calls(
    events: Sequence[Event], wanted: SearchedCalls, redactor: Redactor
) -> list[FoundCall]:
    needle = json.dumps(wanted.text, ensure_ascii=False)[1:-1].casefold()
    found = []
    for event in events:
        # Bytes exclude most events before they are masked; a secret is never found by its text.
        if needle not in event.data.decode("utf-8", "replace").casefold():
            continue
        call = execution_of(event).execution
        if wanted.includes_call(call) and wanted.has_words(masked := redactor.call(call)):
            found.append(FoundCall(event.session or "", masked))
    return found


async def show_sessions(look: Look) -> Shown:
    """Return the page: the latest sessions, or the calls that a form asks for."""
    asked = {name: look.query.get(name, "").strip()[:256] for name in FIELDS}
    wanted = SearchedCalls(
        asked["tool"],
        asked["agent"],
        asked["text"],
        asked["parameter"],
        _read_moment(asked["since"]),
        _read_moment(asked["until"]),
    )
    # Masking all these calls takes too long for a page, so it is not done each second.
    found = await (
        look.read_rarely(f"calls {wanted}", lambda: search_calls(look.space, wanted))
        if wanted.text
        else search_calls(look.space, wanted)
    )
    by_session = gather_values((each.session, each) for each in found.calls)

    def link_page(session: str) -> h.Anchor:
        return h.Anchor(session_name(session), look.link_path(f"/sessions/{session}"))

    return look.show_page(
        "Sessions",
        "sessions",
        asked=asked,
        fields=FIELDS,
        found=found,
        sessions=list(by_session.values()),
        session_columns=[
            h.Column("session", "Session", of=lambda calls: link_page(calls[0].session)),
            h.Column("agent", "Agent", of=lambda calls: calls[0].call.agent),
            h.Column("calls", "Calls found", "number", of=len),
            h.Column("failures", "Failures", "number",
                     of=lambda calls: sum(each.call.outcome == "failure" for each in calls)),
            h.Column("tools", "Tools", of=lambda calls: w.fold_names(
                w.format_tool(each.tool) for each in calls)),
            h.Column("last", "Last call", "time", of=lambda calls: calls[0].call.timestamp),
        ],
        call_columns=[
            h.Column("at", "When", "time", of=lambda each: each.call.timestamp),
            look.whole_tool_column(),
            h.Column("outcome", "Outcome", of=lambda each: each.call.outcome),
            h.Column("said", "What it said", of=lambda each: w.format_line(
                w.error_words(each.call.error), w.MAX_SIGNATURE) if each.call.error else ""),
            h.Column("agent", "Agent", of=lambda each: h.Anchor(
                each.call.agent, look.link_agent(each.call.agent))),
            h.Column("session", "Session", of=lambda each: link_page(each.session)),
        ],
    )  # fmt: skip


def _read_moment(text: str) -> datetime | None:
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise NothingHereError(
            f"{text!r} is no time.", "Write one as 2026-11-22, or as 2026-11-22T14:05, in UTC."
        ) from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def session_name(session: str) -> str:
    """Return the name of a session: its id, or the agent whose calls without one it holds."""
    name = name_as_given(session)
    return f"{name[1:]}, without a session" if name.startswith("\x1f") else name


# One session


class SessionStep(NamedTuple):
    """One call of a session, with the repair that it is a half of."""

    call: Execution
    tool: ToolName
    mended_by: ShownRepair | None = None
    mends: ShownRepair | None = None


async def show_session(look: Look) -> Shown:
    """Return the page of one session."""
    name = look.named["session"]
    if not (steps := await read_session_steps(look.space, name)):
        raise NothingHereError(
            f"There is no call of a session {w.format_line(session_name(name), 80)!r}.",
            "Its calls may have expired. The page Sessions lists the latest.",
        )
    return look.show_page(
        f"Session {w.format_line(session_name(name))}",
        "session",
        steps=steps,
        failures=sum(each.call.outcome == "failure" for each in steps),
        mended=sum(each.mended_by is not None for each in steps),
        is_whole=len(steps) < _MAX_CALLS,
    )


async def read_session_steps(space: Space, session: str) -> list[SessionStep]:
    """Return the latest calls of a session, masked, in their order."""
    context, workspace = space
    events = await context.store.events.latest_events(
        workspace, "execution", _MAX_CALLS, sessions=[session]
    )
    calls = await asyncio.to_thread(
        lambda: [context.redactor.call(execution_of(each).execution) for each in events]
    )
    calls.sort(key=lambda each: (each.sequence or 0, each.timestamp))
    by_id = {each.execution_id: each for each in calls}
    mended_by: dict[str, ShownRepair] = {}
    mends: dict[str, ShownRepair] = {}
    for call in [each for each in calls if each.outcome == "failure"][:_MAX_FAILURES]:
        start = f"{call.execution_id}\x1f"
        rows = await context.store.knowledge.scan_rows(workspace, REPAIR.name, 1, after=start)
        right = by_id.get(rows[0].key.removeprefix(start)) if rows else None
        if right is not None:
            mended_by[call.execution_id] = mends[right.execution_id] = ShownRepair(call, right, "")
    return [
        SessionStep(
            each,
            FoundCall(session, each).tool,
            mended_by.get(each.execution_id),
            mends.get(each.execution_id),
        )
        for each in calls
    ]
