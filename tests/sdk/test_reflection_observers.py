"""Observers of a call that do not keep their word, through both twins."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from aftercall.json_values import JsonObject
from aftercall.reflection import (
    CallObserver,
    ReflectedResult,
    ReflectionPolicy,
    call_with_reflection,
    call_with_reflection_sync,
)
from aftercall.reflection.results import PlannedAttempt
from tests.sdk.scripted_advice import (
    AsyncScripted,
    PickyTool,
    Records,
    SyncScripted,
    answer,
    change,
    suggestion,
)

BAD: JsonObject = {"query": "q", "topK": 50}
GOOD: JsonObject = {"query": "q", "topK": 10}

MOMENTS = ("planned", "stopped", "ended", "asking", "answered")

TOLD = ["planned", "stopped", "ended", "asking", "answered", "planned", "stopped", "ended"]
"""Of a call that fails, is asked about, and is repaired."""


class Observer:
    """Keeps what it is told, and raises at one moment."""

    def __init__(self, raises_at: str | None = None) -> None:
        self._raises_at = raises_at
        self.told: list[str] = []

    def planned(self, attempt: PlannedAttempt) -> "Observer":
        del attempt
        return self._take("planned")

    def stopped(self) -> None:
        self._take("stopped")

    def ended(self, **_: object) -> None:
        self._take("ended")

    @contextmanager
    def asking(self) -> Iterator[None]:
        self._take("asking")
        yield
        self._take("answered")

    def _take(self, moment: str) -> "Observer":
        self.told.append(moment)
        if moment == self._raises_at:
            raise RuntimeError("s3cret")
        return self


async def called(
    kind: str, tool: PickyTool, *observers: CallObserver
) -> tuple[ReflectedResult[str], Records]:
    """The call of a tool that is repaired once, by one of the twins."""
    records, advice = Records(), answer(suggestion(change("/topK", 10, before=50)))
    settings: dict[str, Any] = {
        "tool_name": "rag_query", "parameters": dict(BAD), "agent": "librarian",
        "policy": ReflectionPolicy(base_backoff_s=0), "recorder": records, "observers": observers,
    }  # fmt: skip
    if kind == "async":
        client = AsyncScripted(advice)
        return await call_with_reflection(tool.run_async, client=client, **settings), records
    twin = SyncScripted(advice)
    return call_with_reflection_sync(tool.run, client=twin, **settings), records


@pytest.mark.parametrize("kind", ["async", "sync"])
@pytest.mark.parametrize("when", MOMENTS)
async def test_an_observer_that_raises_harms_neither_the_call_nor_others(
    kind: str, when: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Called and recorded as without it, no success a failure; the log says so, without values."""
    tool, before, after = PickyTool(GOOD), Observer(), Observer()
    reflected, records = await called(kind, tool, before, Observer(when), after)

    assert reflected.note == "repaired via reflection"
    assert tool.calls == [BAD, GOOD]
    assert [each.outcome for each in records.executions] == ["failure", "success"]
    assert before.told == after.told == TOLD
    assert "Observer raised RuntimeError" in caplog.text
    assert "s3cret" not in caplog.text
