"""Stages: the parts of one piece of work, for those who measure them.

    with stage("suggest.search") as noted:
        hits = await index.search(queries)
        noted.note(hits=len(hits))

The code that does the work does not know who measures it. No one does unless `measured_by` states
so, for the task (or thread) that it is stated in and for those begun from it; then a stage costs
the look at one variable.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Protocol


class Stage(Protocol):
    """A stage that is going on."""

    def note(self, **facts: str | float | bool) -> None:
        """Say counts, kinds and shares; never what is in a call."""


class StageMeter(Protocol):
    """Measures stages."""

    def stage(self, name: str) -> AbstractContextManager[Stage]:
        """Return a stage begins, and ends with the block; what is raised inside goes through."""


class _Unmeasured:
    def note(self, **facts: str | float | bool) -> None: ...


_UNMEASURED = nullcontext(_Unmeasured())
_METER: ContextVar[StageMeter | None] = ContextVar("aftercall_stage_meter", default=None)


def stage(name: str) -> AbstractContextManager[Stage]:
    """Return a stage of the work available; `name` is one of few, such as `suggest.search`."""
    meter = _METER.get()
    return _UNMEASURED if meter is None else meter.stage(name)


@contextmanager
def measured_by(meter: StageMeter | None) -> Iterator[None]:
    """Stages inside of the block, and in the tasks begun there, are measured; None for not."""
    token = _METER.set(meter)
    try:
        yield
    finally:
        _METER.reset(token)
