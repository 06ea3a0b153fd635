"""All that is known about a tool as one task for an evolver, without secrets."""

from collections.abc import Sequence
from dataclasses import dataclass

from aftercall.evolution.experience import Experience
from aftercall.evolution.hidden_values import HiddenValues
from aftercall.evolution.present import EvolvingTool, Present
from aftercall.evolution.tasks import EvolutionTask, PastEvolution, PastFailure
from aftercall.json_values import JsonObject, clean_text
from aftercall.models import ToolSpec
from aftercall.redaction import Redactor


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """Why a tool is evolved, as the caller tells it."""

    reason: str
    mutation_hint: str = ""
    scenario: str | None = None
    failures: Sequence[PastFailure] = ()
    lessons: Sequence[str] = ()


def task_for(
    tool: EvolvingTool,
    present: Present,
    occasion: Occasion,
    experience: Experience,
    *,
    hidden: HiddenValues,
    redactor: Redactor | None,
) -> EvolutionTask:
    """The task; the caller's failures come before those that the service knew."""

    def clean(text: str) -> str:
        return clean_text(hidden.hide(text))

    failures = [
        PastFailure(
            scenario=clean(failure.scenario),
            error_message=None if failure.error_message is None else clean(failure.error_message),
            severity=failure.severity,
            at=failure.at,
        )
        for failure in (*occasion.failures, *experience.failures)
    ]
    return EvolutionTask(
        tool_id=clean(tool.tool_id),
        namespace=clean(tool.namespace),
        version=present.version,
        language=present.language,
        source=hidden.source,
        reason=clean(occasion.reason),
        mutation_hint=clean(occasion.mutation_hint),
        scenario=None if occasion.scenario is None else clean(occasion.scenario),
        description=clean(tool.description),
        input_schema=_schema(tool.input_schema, redactor),
        failures=_distinct(failures),
        lessons=[clean(lesson) for lesson in occasion.lessons],
        past_evolutions=[
            PastEvolution(
                namespace=clean(past.namespace),
                reason=clean(past.reason),
                mutation=clean(past.mutation),
            )
            for past in experience.evolutions
        ],
    )


def _distinct(failures: Sequence[PastFailure]) -> list[PastFailure]:
    """One of each: what the caller saw may be what the service was just told."""
    first: dict[tuple[str, str | None], PastFailure] = {}
    for failure in failures:
        first.setdefault((failure.scenario, failure.error_message), failure)
    return list(first.values())


def _schema(schema: JsonObject | None, redactor: Redactor | None) -> JsonObject | None:
    if schema is None or redactor is None:
        return schema
    return redactor.tool(ToolSpec(name="schema", input_schema=schema)).input_schema
