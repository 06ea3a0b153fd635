"""Failed calls of the workspace that *Try it* can be filled in with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aftercall.models import Execution, FailedCall, FailurePattern
from service.context import Context
from service.dashboard.shown.asking import Form, form_of
from service.dashboard.shown.boundary_rows import tool_text
from service.dashboard.shown.call_text import one_line

MAX_EXAMPLES: Final = 3

_MAX_LABEL: Final = 60


@dataclass(frozen=True, slots=True)
class Example:
    """A failed call that happened, secrets masked."""

    label: str
    form: Form


async def examples_of(
    services: Context, workspace: str, patterns: Sequence[FailurePattern]
) -> list[Example]:
    """The latest failure that is still stored of each of the first patterns.

    Raises:
        StoreError: when the store cannot say.
    """
    first = patterns[: 2 * MAX_EXAMPLES]  # some have expired altogether
    ids = [each for pattern in first for each in pattern.examples]
    stored = await services.store.get_executions(workspace, ids)
    calls = {each.execution.execution_id: each.execution for each in stored}
    found = []
    for pattern in first:
        latest = next((calls[each] for each in reversed(pattern.examples) if each in calls), None)
        call = None if latest is None else _asked(services.redactor.call(latest))
        if call is not None:
            label = one_line(f"{tool_text(pattern.tool)}: {pattern.signature}", _MAX_LABEL)
            found.append(Example(label, form_of(call)))
    return found[:MAX_EXAMPLES]


def _asked(execution: Execution) -> FailedCall | None:
    if execution.error is None or not execution.parameters_known:
        return None
    names = FailedCall.model_fields.keys() & Execution.model_fields.keys()
    return FailedCall(**{name: getattr(execution, name) for name in names})
