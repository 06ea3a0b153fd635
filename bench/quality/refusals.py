"""Refusals: calls whose parameters are right, and that fail for another reason.

What is transient wants the same call again, after the wait that the error states, if any. What is
forbidden, or was declined by a person, wants somebody who may. Neither wants other parameters, yet
many of the messages name some. They are in the words of the services, gateways, databases and
operating systems that say such things, written without looking at what reads them.
"""

import json
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from aftercall.models import FailedCall, SuggestResponse
from bench.quality.trial import Json

Expected = Literal["retry_unchanged", "escalate"]

_ROWS = Path(__file__).with_suffix(".jsonl")
"""Calls of tools, and messages with what is expected after them."""
_PER_MESSAGE = 2
"""Each message is said to so many calls, other ones each time."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A failed call with nothing wrong in its parameters.

    Args:
        wait_ms: the wait that the error states, in milliseconds; None where it states none.
        tempts: whether the message names a parameter of the call, or its value.
    """

    tool: str
    server: str
    parameters: Json
    schema: Json
    error: Json
    expected: Expected
    wait_ms: float | None
    tempts: bool

    def failed_call(self, *, with_schema: bool = True, agent: str = "tester") -> FailedCall:
        """The case as it is asked about."""
        fields: Json = {
            "agent": agent, "session_id": "test/refusals", "tool_name": self.tool,
            "server_name": self.server, "parameters": self.parameters, "error": self.error,
            "input_schema": self.schema if with_schema else None,
        }  # fmt: skip
        return FailedCall.model_validate(fields)


@dataclass(frozen=True, slots=True)
class Answer:
    """What was said about a case."""

    case: Refusal
    response: SuggestResponse

    @property
    def changes_nothing(self) -> bool:
        """Whether no suggestion, not even the last one, changes a parameter."""
        return all(
            each.action != "change_parameters" and not each.changes
            for each in self.response.suggestions
        )

    @property
    def is_right(self) -> bool:
        """Whether the first suggestion is the expected action. To abstain is not."""
        return [each.action for each in self.response.suggestions[:1]] == [self.case.expected]

    @property
    def waits_as_told(self) -> bool:
        """Whether the first suggestion's wait is the stated one (to a hundredth of it)."""
        told, given = self.case.wait_ms, None
        if self.response.suggestions:
            given = self.response.suggestions[0].retry_after_ms
        return told is not None and given is not None and abs(given - told) <= 0.01 * told


@dataclass(frozen=True, slots=True)
class RefusalScores:
    """Shares in [0, 1]; higher is better. `tempted` is `no_change` where a message tempts."""

    cases: int
    no_change: float
    tempted: float
    right_action: float
    right_retry: float
    right_escalation: float
    right_wait: float

    def row(self) -> dict[str, float]:
        """For JSON."""
        return asdict(self)


async def answers_of(
    refusals: Sequence[Refusal],
    ask: Callable[[FailedCall], Awaitable[SuggestResponse]],
    *,
    with_schema: bool,
) -> list[Answer]:
    """Ask about each."""
    return [Answer(each, await ask(each.failed_call(with_schema=with_schema))) for each in refusals]


def score(answers: Sequence[Answer]) -> RefusalScores:
    """Score the answers."""
    retries = [each for each in answers if each.case.expected == "retry_unchanged"]
    escalations = [each for each in answers if each.case.expected == "escalate"]
    return RefusalScores(
        cases=len(answers),
        no_change=_share([each.changes_nothing for each in answers]),
        tempted=_share([each.changes_nothing for each in answers if each.case.tempts]),
        right_action=_share([each.is_right for each in answers]),
        right_retry=_share([each.is_right for each in retries]),
        right_escalation=_share([each.is_right for each in escalations]),
        right_wait=_share([e.waits_as_told for e in answers if e.case.wait_ms is not None]),
    )


def cases() -> list[Refusal]:
    """All of them; the same each time."""
    rng = random.Random("refusals")
    rows = [json.loads(line) for line in _ROWS.read_text(encoding="utf-8").splitlines()]
    calls = [row for row in rows if "tool" in row]
    return [
        _case(row["expected"], _Said(**{key: row[key] for key in row if key != "expected"}),
              **call, rng=rng)
        for row in rows if "expected" in row for call in rng.sample(calls, _PER_MESSAGE)
    ]  # fmt: skip


def _case(
    expected: Expected, said: "_Said", tool: str, server: str, parameters: Json, rng: random.Random
) -> Refusal:
    name = rng.choice([key for key, value in parameters.items() if isinstance(value, str)])
    blanks = {"<tool>": tool, "<name>": name, "<value>": parameters[name]}
    error: Json = {"type": said.type, "message": said.message, "details": said.details}
    if said.code is not None:
        error["code"] = said.code
    filled = json.dumps(error)
    for blank, words in blanks.items():
        filled = filled.replace(blank, json.dumps(words)[1:-1])
    return Refusal(
        tool=tool, server=server, parameters=parameters, schema=_schema(parameters),
        error=json.loads(filled), expected=expected, wait_ms=said.wait_ms,
        tempts="<name>" in said.message or "<value>" in said.message,
    )  # fmt: skip


def _schema(parameters: Json) -> Json:
    types = {str: "string", int: "integer", bool: "boolean", list: "array"}
    return {
        "type": "object",
        "properties": {name: {"type": types[type(value)]} for name, value in parameters.items()},
        "required": list(parameters),
    }


def _share(hits: Sequence[bool]) -> float:
    return sum(hits) / max(1, len(hits))


@dataclass(frozen=True, slots=True)
class _Said:
    """An error, with blanks for the tool's name and for one parameter's name and value."""

    message: str
    type: str = "Error"
    code: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    wait_ms: float | None = None
