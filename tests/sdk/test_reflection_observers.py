"""Observers of a call that do not keep their word, through both twins."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from aftercall.reflection.results import PlannedAttempt
from tests.sdk.scripted_advice import (
    BAD,
    GOOD,
    TWINS,
    PickyTool,
    answer,
    change,
    reflected_by,
    suggestion,
)

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


@pytest.mark.parametrize("twin", TWINS)
@pytest.mark.parametrize("when", MOMENTS)
async def test_an_observer_that_raises_harms_neither_the_call_nor_others(
    twin: str, when: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Called and recorded as without it, no success a failure; the log says so, without values."""
    tool, before, after = PickyTool(GOOD), Observer(), Observer()
    advice = answer(suggestion(change("/topK", 10, before=50)))
    observers = (before, Observer(when), after)
    reflected, _, records = await reflected_by(twin, tool, advice, observers=observers)

    assert reflected.note == "repaired via reflection"
    assert tool.calls == [BAD, GOOD]
    assert [each.outcome for each in records.executions] == ["failure", "success"]
    assert before.told == after.told == TOLD
    assert "Observer raised RuntimeError" in caplog.text
    assert "s3cret" not in caplog.text
