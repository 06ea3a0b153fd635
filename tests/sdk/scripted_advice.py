"""Scripted answers of `/suggest`, to drive the retry rules; nothing else is tested with them."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import uuid4

from pydantic import BaseModel, Field

from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import (
    Action,
    Change,
    ErrorCategory,
    Evidence,
    Execution,
    Pattern,
    RetryAdvice,
    Suggestion,
    SuggestResponse,
    ToolAnnotations,
)
from aftercall.reflection import (
    ReflectedResult,
    ReflectionPolicy,
    call_with_reflection,
    call_with_reflection_sync,
)

FAST = ReflectionPolicy(base_backoff_s=0)
BAD: JsonObject = {"query": "q", "topK": 50}
GOOD: JsonObject = {"query": "q", "topK": 10}
TWINS = ("async", "sync")


def change(path: str, value: JsonValue, *, op: str = "replace", before: JsonValue = None) -> Change:
    return Change.model_validate(
        {"op": op, "path": path, "value": value, "from": before, "reason": "the error says so"}
    )


def suggestion(
    *changes: Change,
    confidence: float = 0.9,
    action: Action = "change_parameters",
    retry_after_ms: float | None = None,
    tool: str | None = None,
) -> Suggestion:
    return Suggestion(
        suggestion_id=str(uuid4()),
        action=action,
        changes=list(changes),
        confidence=confidence,
        retry_after_ms=retry_after_ms,
        tool=tool,
        evidence=Evidence(),
        lesson="topK has a hard limit of 10",
    )


def answer(
    *suggestions: Suggestion, safe: bool = True, category: ErrorCategory = "invalid_parameters"
) -> SuggestResponse:
    return SuggestResponse(
        pattern=Pattern(category=category, signature="<s>", confidence=1),
        suggestions=list(suggestions),
        retry=RetryAdvice(safe=safe, reason="scripted"),
        abstained=not suggestions,
        took_ms=1,
    )


TOP_K = suggestion(change("/top_k", 10, before=50))
UNSURE = suggestion(change("/top_k", 10, before=50), confidence=0.5)


class Limited(BaseModel):
    limit: int = Field(le=10)


def write(limit: int) -> str:
    """Write, and look at what came back: the words would refuse the argument too."""
    return Limited(limit=limit).model_dump_json()


async def write_async(limit: int) -> str:
    """Write, and look at what came back."""
    await asyncio.sleep(0)
    return write(limit)


class ScriptedService:
    """Answers in order; an exception is raised, a callable is called with the execution."""

    def __init__(
        self,
        *answers: SuggestResponse | Exception | Callable[[Execution], SuggestResponse],
        delay_s: float = 0,
    ) -> None:
        self._answers = list(answers)
        self._delay_s = delay_s
        self.asked: list[Execution] = []
        self.annotations: list[ToolAnnotations | None] = []

    def next_answer(
        self, execution: Execution, annotations: ToolAnnotations | None
    ) -> SuggestResponse:
        self.asked.append(execution)
        self.annotations.append(annotations)
        following = self._answers.pop(0) if self._answers else answer()
        if isinstance(following, Exception):
            raise following
        return following if isinstance(following, SuggestResponse) else following(execution)

    @property
    def delay_s(self) -> float:
        return self._delay_s

    @property
    def said_of_the_run(self) -> list[object]:
        """Whether the tool had run, as each question says."""
        return [each.error.details.get("ran") for each in self.asked if each.error is not None]


class AsyncScripted(ScriptedService):
    async def suggest(
        self, execution: Execution, *, annotations: ToolAnnotations | None = None
    ) -> SuggestResponse:
        await asyncio.sleep(self.delay_s)
        return self.next_answer(execution, annotations)


class SyncScripted(ScriptedService):
    def suggest(
        self, execution: Execution, *, annotations: ToolAnnotations | None = None
    ) -> SuggestResponse:
        time.sleep(self.delay_s)
        return self.next_answer(execution, annotations)


class Records:
    """Keeps what a recorder is handed."""

    def __init__(self) -> None:
        self.executions: list[Execution] = []

    def record(self, execution: Execution) -> None:
        self.executions.append(execution)


class PickyTool:
    """A tool that takes only the parameters it knows, and remembers every call."""

    def __init__(self, *accepted: JsonObject, message: str = "topK must be <= 10") -> None:
        self.accepted = list(accepted)
        self.message = message
        self.calls: list[JsonObject] = []

    def run(self, parameters: JsonObject) -> str:
        self.calls.append(dict(parameters))
        if parameters in self.accepted:
            return "done"
        raise ValueError(f"{self.message} (call {len(self.calls)})")

    async def run_async(self, parameters: JsonObject) -> str:
        return self.run(parameters)


class Telling(PickyTool):
    """A tool that does each in turn: returns it, or raises it."""

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self.answers = list(answers)

    def run(self, parameters: JsonObject) -> Any:
        self.calls.append(dict(parameters))
        told = self.answers.pop(0)
        if isinstance(told, Exception):
            raise told
        return told


async def reflected_by(
    twin: str, tool: PickyTool, *script: Any, delay_s: float = 0, **options: Any
) -> tuple[ReflectedResult[str], ScriptedService, Records]:
    """One call of a tool by one of the twins: its result, who was asked, and what was recorded."""
    records = Records()
    settings: dict[str, Any] = {
        "tool_name": "rag_query", "parameters": dict(BAD), "agent": "librarian",
        "policy": FAST, "recorder": records, **options,
    }  # fmt: skip
    if twin == "async":
        awaited = AsyncScripted(*script, delay_s=delay_s)
        done = await call_with_reflection(tool.run_async, client=awaited, **settings)
        return done, awaited, records
    blocking = SyncScripted(*script, delay_s=delay_s)
    call = partial(call_with_reflection_sync, tool.run, client=blocking, **settings)
    return await asyncio.to_thread(call), blocking, records
