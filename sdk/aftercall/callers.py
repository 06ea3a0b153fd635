"""Who makes a call over MCP, as a request's `_meta` says it.

| | first | then | else |
|---|---|---|---|
| agent | the tool's argument | `_meta["aftercall/agent"]` | the MCP client's name, `unknown` |
| session | the tool's argument | `_meta["aftercall/session"]` | the connection's, none |
| context | | `_meta["aftercall/context"]` | none |
"""

from collections.abc import Mapping
from dataclasses import dataclass

from aftercall.json_values import MAX_NAME_CHARS, bounded_text

AGENT_KEY = "aftercall/agent"
SESSION_KEY = "aftercall/session"
CONTEXT_KEY = "aftercall/context"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, in which session, and what for."""

    agent: str = "unknown"
    session_id: str | None = None
    context: str | None = None

    def with_meta(self, meta: Mapping[str, object]) -> "Caller":
        """The caller as the request's `_meta` names it, else as it is."""
        context = meta.get(CONTEXT_KEY)
        return Caller(
            name_or_none(meta.get(AGENT_KEY)) or self.agent,
            name_or_none(meta.get(SESSION_KEY)) or self.session_id,
            context if isinstance(context, str) and context else self.context,
        )


def name_or_none(value: object) -> str | None:
    """A name that the contract takes, of whatever a client sent; None for nothing of the kind."""
    if not isinstance(value, str) or not value.strip():
        return None
    return bounded_text(value, MAX_NAME_CHARS)
