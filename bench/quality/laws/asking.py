"""Asks the product about a case, in process: `/suggest`, `/check` and the rules of the SDK."""

import uuid
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby

from aftercall.change_classes import QUORUM
from aftercall.json_patch import same_json
from aftercall.models import (
    Call,
    CheckRequest,
    CheckResponse,
    Execution,
    ExecutionError,
    Suggestion,
    SuggestRequest,
    SuggestResponse,
)
from aftercall.reflection.retry_rules import ReflectionPolicy, RetryRules, apply_changes
from bench.quality.brain import START, WORKSPACE, Brain
from bench.quality.laws.case import Case, Past
from bench.quality.trial import Json
from retrieval.answers.check import answer_check

SURE = ReflectionPolicy().min_confidence
"""Confidence above which a client follows a suggestion that is safe."""
_KEPT = 4_000
"""Replies that are kept: a case is the base of several laws."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the product answers about a case."""

    case: Case
    suggested: SuggestResponse
    checked: CheckResponse
    sent: Json | None
    """What the SDK sends instead; None where it does not call again."""
    why_not: str
    """Why the SDK does not call again."""

    @property
    def first(self) -> Suggestion | None:
        """The first suggestion."""
        return self.suggested.suggestions[0] if self.suggested.suggestions else None

    @property
    def action(self) -> str:
        """The action of the first suggestion; `none` where there is none."""
        return self.first.action if self.first else "none"

    @property
    def repaired(self) -> Json | None:
        """The call with the changes of the first suggestion; None where it changes nothing."""
        return self.repairs[0] if self.action == "change_parameters" else None

    @property
    def repairs(self) -> list[Json | None]:
        """The call with the changes of each suggestion."""
        return [apply_changes(self.case.call, each.changes) for each in self.suggested.suggestions]

    @property
    def confidence(self) -> float:
        """The confidence of the first suggestion; 0 where there is none."""
        return self.first.confidence if self.first else 0.0

    @property
    def change_class(self) -> str:
        """The class of the first suggestion."""
        return str(self.first.change_class) if self.first else "none"

    @property
    def safe(self) -> bool:
        """Whether the first suggestion may be followed without asking."""
        return bool(self.first and self.first.safe)

    @property
    def before(self) -> Json | None:
        """The call as `/check` repairs it; None where it does not."""
        if self.checked.verdict != "repair":
            return None
        return apply_changes(self.case.call, self.checked.changes)

    def as_json(self) -> Json:
        """Return the answer in short, for a reader."""
        first = self.first
        return {
            "suggest": None if first is None else {
                "action": first.action, "repaired": self.repaired, "class": first.change_class,
                "confidence": round(first.confidence, 3), "safe": first.safe,
                "changes": [f"{each.op} {each.path}" for each in first.changes],
            },
            "category": self.suggested.pattern.category,
            "check": {"verdict": self.checked.verdict, "repaired": self.before},
            "sdk": self.sent if self.sent is not None else self.why_not,
        }  # fmt: skip


class Asker:
    """Asks one memory; a case with a history has a workspace of its own in it."""

    def __init__(self, brain: Brain) -> None:
        self._brain = brain
        self._replies: OrderedDict[int, Reply] = OrderedDict()
        self._workspaces: OrderedDict[str, str] = OrderedDict()
        self.asked = 0

    async def reply(self, case: Case) -> Reply:
        """Return the answer about a case; nothing is remembered of the question."""
        known = self._replies.get(id(case))
        if known is not None and known.case is case:
            return known
        self.asked += 1
        workspace = await self.workspace_of(case)
        request = SuggestRequest(execution=case.question(), annotations=case.hints)
        suggested = await self._brain.suggester.preview(
            workspace, request, principal=case.principal
        )
        sent, why_not = _decide(case, suggested)
        reply = Reply(case, suggested, await self._check(workspace, case), sent, why_not)
        self._replies[id(case)] = reply
        if len(self._replies) > _KEPT:
            self._replies.popitem(last=False)
        return reply

    async def _check(self, workspace: str, case: Case) -> CheckResponse:
        call = Call(
            agent=case.agent, tool_name=case.tool, server_name=case.server, parameters=case.call,
            session_id=case.session, input_schema=case.schema,
        )  # fmt: skip
        suggester = self._brain.suggester
        return await answer_check(
            workspace, CheckRequest(call=call, annotations=case.hints), memory=suggester.memory,
            redactor=suggester.redactor, quorum=QUORUM, principal=case.principal,
        )  # fmt: skip

    async def workspace_of(self, case: Case) -> str:
        """Return the workspace of a case, which has learned its history."""
        if not case.history:
            return WORKSPACE
        key = repr((case.batch, case.history))
        if key not in self._workspaces:
            self._workspaces[key] = f"laws-{len(self._workspaces)}"
            await self._learn(self._workspaces[key], case)
        return self._workspaces[key]

    async def _learn(self, workspace: str, case: Case) -> None:
        executions = as_executions(workspace, case.history)
        told = list(zip(case.history, executions, strict=True))
        for start in range(0, len(told), case.batch):
            batch = told[start : start + case.batch]
            for principal, of_one in groupby(batch, lambda each: each[0].principal):
                records = [execution for _, execution in of_one]
                receipt = await self._brain.intake.accept_executions(
                    workspace, records, principal=principal
                )
                assert not receipt.rejected, receipt.rejected[:3]
            await self._brain.indexer.catch_up()


def _decide(case: Case, answer: SuggestResponse) -> tuple[Json | None, str]:
    rules = RetryRules(
        ReflectionPolicy(), case.call, may_repeat=False, jitter=lambda: 0.0, tool_name=case.tool,
        annotations=case.hints,
    )  # fmt: skip
    retry = rules.next_retry(ExecutionError.model_validate(case.error), answer)
    return (None, rules.reason) if retry is None else (retry.parameters, "")


def as_executions(workspace: str, history: Sequence[Past]) -> list[Execution]:
    """Return the executions of a history, a few seconds apart, with ids of their own.

    Ids and times follow the place of an execution in its session and the session's name, so that
    sessions that come in another order are the same sessions.
    """
    places: dict[str, int] = {}
    executions = []
    for past in history:
        at = places[past.session] = places.get(past.session, 0) + 1
        minute = int(uuid.uuid5(uuid.NAMESPACE_URL, past.session)) % 10_000
        fields = {
            "execution_id": _id_of(workspace, past.session, at),
            "timestamp": START + timedelta(minutes=minute, seconds=5 * at), "agent": past.agent,
            "session_id": past.session, "sequence": at, "tool_name": past.tool,
            "server_name": past.server, "parameters": past.call, "input_schema": past.schema,
            "outcome": "failure" if past.error else "success", "error": past.error,
            "repair_of": _id_of(workspace, past.session, at - 1) if past.is_repair else None,
        }  # fmt: skip
        executions.append(Execution.model_validate(fields))
    return executions


def _id_of(workspace: str, session: str, at: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{workspace}/{session}/{at}"))


def same(left: Json | None, right: Json | None) -> bool:
    """Return whether two calls are the same, byte for byte, in whatever order their keys stand."""
    return same_json(left, right)
