"""The agents: they call through the gateway and say how each call ended."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from fastmcp import Client
from mcp_types import TextContent

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue
from service.demo.scenario import PlannedCall, Session

Ending = Literal["fine", "repaired", "by itself", "failed"]
"""Right at once; mended by Aftercall; mended by the agent after reading the error; not mended."""


@dataclass(frozen=True, slots=True)
class PlayedCall:
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


async def play(
    session: Session, gateway_url: str, on_call: Callable[[PlayedCall], None]
) -> list[PlayedCall]:
    """Let an agent make its calls, one after the other, over a connection of its own."""
    played = []
    async with Client(gateway_url) as client:
        for call in session.calls:
            result = await _play_call(client, session, call)
            on_call(result)
            played.append(result)
    return played


async def _play_call(client: Client[Any], session: Session, call: PlannedCall) -> PlayedCall:
    meta = {
        "aftercall/agent": session.agent,
        "aftercall/session": session.name,
        "aftercall/context": session.purpose,
    }
    result = await client.call_tool(call.tool, call.sends, meta=meta, raise_on_error=False)
    told = (result.meta or {}).get("aftercall", {})
    if not result.is_error:
        return _succeeded(session, call, told)
    error = next((b.text for b in result.content if isinstance(b, TextContent)), "")
    best = next(iter(told.get("suggestions", [])), None)
    ending: Ending = "failed"
    if call.knows_better:
        again = await client.call_tool(call.tool, call.means, meta=meta, raise_on_error=False)
        ending = "failed" if again.is_error else "by itself"
    return PlayedCall(
        session, call, ending, error=error,
        suggestion=_changes(best.get("changes", [])) if best else None,
        confidence=best.get("confidence") if best else None,
        evidence=_evidence(best.get("evidence", {})) if best else "",
        repairs_known=best.get("evidence", {}).get("repairs", 0) if best else 0,
    )  # fmt: skip


def _succeeded(session: Session, call: PlannedCall, told: JsonObject) -> PlayedCall:
    if not told.get("repaired"):
        return PlayedCall(session, call, "fine", as_meant=same_json(call.sends, call.means))
    changes, evidence = told.get("changes"), told.get("evidence")
    changes = changes if isinstance(changes, list) else []
    evidence = evidence if isinstance(evidence, dict) else {}
    confidence, repairs = told.get("confidence"), evidence.get("repairs")
    return PlayedCall(
        session, call, "repaired",
        error=str(told.get("firstError")),
        suggestion=_changes(changes),
        confidence=confidence if isinstance(confidence, float) else None,
        evidence=_evidence(evidence),
        repairs_known=repairs if isinstance(repairs, int) else 0,
        as_meant=same_json(_applied(call.sends, changes), call.means),
    )  # fmt: skip


def _applied(parameters: JsonObject, changes: list[JsonValue]) -> JsonObject:
    changed = dict(parameters)
    for change in changes:
        if isinstance(change, dict):
            name = str(change["path"]).removeprefix("/")
            changed.pop(name, None)
            if change["op"] != "remove":
                changed[name] = change["value"]
    return changed


def _changes(changes: list[JsonValue]) -> str | None:
    parts = []
    for change in changes:
        if isinstance(change, dict):
            name = str(change["path"]).removeprefix("/")
            parts.append(f"-{name}" if change["op"] == "remove" else f"{name}={change['value']!r}")
    return ", ".join(parts) or None


def _evidence(evidence: JsonObject) -> str:
    sources = evidence.get("sources")
    words = [str(source) for source in sources] if isinstance(sources, list) else []
    counts = [
        f"{evidence[many]} {one if evidence[many] == 1 else many}"
        for one, many in (("repair", "repairs"), ("success", "successes"))
        if evidence.get(many)
    ]
    return ", ".join([*words, *counts])
