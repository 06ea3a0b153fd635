"""What advice looks at beside the case, what it says, and how it quotes words of tools."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import Action, Tool
from retrieval.health.record import Referred
from retrieval.knowledge.rules import RecoveryTimes, Repeats
from retrieval.proposals.case import Trials


@dataclass(frozen=True, slots=True)
class Candidate:
    """Another registered tool, with what is known of its calls.

    `similarity` is the cosine of its nearest success to the failed call, None without one;
    `sessions` are distinct ones, of which a few are remembered.
    """

    tool: Tool
    similarity: float | None = None
    successes: int = 0
    failures: int = 0
    sessions: int = 0
    execution_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallContext:
    """Where a failed call stands. All may be left out; then the advice goes by the error alone.

    Attributes:
        now: the time of asking, with a zone; without it, moments that an error names are not read.
        tool_name: the tool that failed.
        namespace: that it is registered in, if it is.
        server_name: the server it was called on.
        attempt: 1 for the first try of the call.
        repeats: how often exactly this call failed with this error.
        recoveries: recovery times of such failures, that of the tool before that of the workspace.
        others: registered tools of the same workspace; gathered only where they can matter.
        referrals: the tool's latest, oldest first; gathered only when the call was referred, too.
        may_show: whether a value of a parameter is open today; what was learned may be older.
    """

    now: datetime | None = None
    tool_name: str = ""
    namespace: str | None = None
    server_name: str | None = None
    attempt: int = 1
    repeats: Repeats = field(default_factory=Repeats)
    recoveries: tuple[RecoveryTimes, ...] = ()
    others: tuple[Candidate, ...] = ()
    referrals: tuple[Referred, ...] = ()
    may_show: Callable[[str, JsonValue], bool] = lambda _name, _value: True


PLAIN = CallContext()
"""Nothing is known beside the case."""


@dataclass(frozen=True, slots=True)
class Advice:
    """One action that leaves the parameters as they are.

    `yields` says that a repair which was learned for this very error stands beside it, the surer
    first; all other advice stands alone. `successes` and `failures` are calls of `tool`; `split` is
    as in `wire.Suggestion`.
    """

    action: Action
    trials: Trials
    lesson: str
    retry_after_ms: float | None = None
    tool: str | None = None
    parameters: JsonObject | None = None
    successes: int = 0
    failures: int = 0
    execution_ids: tuple[str, ...] = ()
    yields: bool = False
    split: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoAdvice:
    """Nothing can be advised, and no change of parameters would mend it either.

    With `yields`, one that was learned for this very error may.
    """

    reason: str
    yields: bool = False


_MAX = 120
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")


def quoted(value: JsonValue, limit: int = _MAX) -> str:
    """A value as JSON on one line, cut; control and direction marks are blanks."""
    if isinstance(value, str):
        value = " ".join(_CONTROL.sub(" ", value[: 4 * limit]).split())
        value = value if len(value) <= limit else f"{value[:limit]}..."
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit + 5 else f"{text[:limit]}..."
