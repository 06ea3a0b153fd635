"""The first half of the demo: scripted agents make mistakes through the gateway.

Only their calls are written down, in `data/scenario.toml`. Errors come from the tools, corrections
from `/suggest`, results from the retried calls.
"""

import json
from collections.abc import Callable
from typing import Any, Literal

from fastmcp import Client
from mcp_types import TextContent
from pydantic import BaseModel, ConfigDict

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject
from service.demo.simulated_tools import read_table

Ending = Literal["fine", "repaired", "by itself", "failed"]
"""Right at once; mended by Aftercall; mended by the agent after reading the error; not mended."""


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PlannedCall(_Table):
    """One call of an agent: what it sends at first, and what it had in mind (None: the same).

    After a failure that nothing mends, an agent that knows better sends what it meant itself.
    """

    tool: str
    sends: JsonObject
    means: JsonObject | None = None
    mistake: str | None = None
    knows_better: bool = True

    @property
    def meant(self) -> JsonObject:
        """What it had in mind."""
        return self.sends if self.means is None else self.means


class Session(_Table):
    """One session of one agent."""

    agent: str
    name: str
    purpose: str
    calls: list[PlannedCall]


class PlayedCall(_Table):
    """How a planned call went. `as_meant`: what finally ran is what the agent had in mind."""

    session: Session
    call: PlannedCall
    ending: Ending
    error: str | None = None
    suggestion: str | None = None
    confidence: float | None = None
    evidence: str = ""
    repairs_known: int = 0
    as_meant: bool = True


def sessions(repository: str) -> list[Session]:
    """The sessions in their order; `repository` is the folder of the demo's git repository."""
    tables = json.dumps(read_table("scenario")["sessions"])
    filled = json.loads(tables.replace("{repo}", json.dumps(repository)[1:-1]))
    return [Session.model_validate(each) for each in filled]


async def play(
    session: Session, gateway_url: str, on_call: Callable[[PlayedCall], None]
) -> list[PlayedCall]:
    """Let an agent make its calls, one after the other, over a connection of its own."""
    played = []
    async with Client(gateway_url) as client:
        for call in session.calls:
            played.append(await _play_call(client, session, call))
            on_call(played[-1])
    return played


async def _play_call(client: Client[Any], session: Session, call: PlannedCall) -> PlayedCall:
    meta = {
        "aftercall/agent": session.agent,
        "aftercall/session": session.name,
        "aftercall/context": session.purpose,
    }
    result = await client.call_tool(call.tool, call.sends, meta=meta, raise_on_error=False)
    found: dict[str, Any] = (result.meta or {}).get("aftercall", {})
    if not result.is_error and not found.get("repaired"):
        as_meant = same_json(call.sends, call.meant)
        return PlayedCall(session=session, call=call, ending="fine", as_meant=as_meant)
    ending: Ending = "repaired"
    error, best, as_meant = str(found.get("firstError")), found, True
    if result.is_error:
        error = next((b.text for b in result.content if isinstance(b, TextContent)), "")
        best = next(iter(found.get("suggestions", [])), {})
        ending = "failed"
        if call.knows_better:
            again = await client.call_tool(call.tool, call.meant, meta=meta, raise_on_error=False)
            ending = "failed" if again.is_error else "by itself"
    else:
        as_meant = same_json(_applied(call.sends, found.get("changes", [])), call.meant)
    evidence = best.get("evidence", {})
    return PlayedCall(
        session=session, call=call, ending=ending, error=error, as_meant=as_meant,
        suggestion=_changes(best.get("changes", [])), confidence=best.get("confidence"),
        evidence=_evidence(evidence), repairs_known=evidence.get("repairs", 0),
    )  # fmt: skip


def _applied(parameters: JsonObject, changes: list[dict[str, Any]]) -> JsonObject:
    changed = dict(parameters)
    for change in changes:
        name = change["path"].removeprefix("/")
        changed.pop(name, None)
        if change["op"] != "remove":
            changed[name] = change["value"]
    return changed


def _changes(changes: list[dict[str, Any]]) -> str | None:
    parts = []
    for change in changes:
        name = change["path"].removeprefix("/")
        parts.append(f"-{name}" if change["op"] == "remove" else f"{name}={change['value']!r}")
    return ", ".join(parts) or None


def _evidence(evidence: dict[str, Any]) -> str:
    counts = [
        f"{evidence[many]} {one if evidence[many] == 1 else many}"
        for one, many in (("repair", "repairs"), ("success", "successes"))
        if evidence.get(many)
    ]
    return ", ".join([*evidence.get("sources", []), *counts])
