"""Recalibration: what became of a workspace's suggestions moves its confidence, and no other's."""

import asyncio
from uuid import UUID

import pytest

import ingest.recalibration
from aftercall.models import (
    Execution,
    FailedCall,
    Outcome,
    OutcomeReport,
    SuggestRequest,
    SuggestResponse,
    ToolAnnotations,
)
from ingest.outcomes import record_outcome
from ingest.recalibration import recalibrate
from mongo.records import SuggestionOutcome
from retrieval.confidence import Scaling, log_odds, logistic, shipped
from retrieval.fitting import fit_scaling
from retrieval.memory import Memory, calibration_fact
from tests.ingest.conftest import WORKSPACE, Brain
from tests.retrieval.cases import an_execution, object_schema

OURS, THEIRS = WORKSPACE, "theirs"
SCHEMA = object_schema(repo_path="string") | {"additionalProperties": False}


def failure(number: int = 0, agent: str = "ada") -> Execution:
    """A call with a renamed key, which anybody with the schema can mend."""
    return an_execution(
        execution_id=str(UUID(int=number)),
        agent=agent,
        session_id=f"s-{number}",
        parameters={"repo": "a"},
        outcome="failure",
        error={"type": "ValidationError", "message": "'repo_path' is a required property"},
        input_schema=SCHEMA,
    )


async def ask(brain: Brain, workspace: str) -> SuggestResponse:
    """What to do about such a call."""
    fields = failure().model_dump(exclude={"execution_id", "timestamp"})
    return await brain.suggester.suggest(
        workspace,
        SuggestRequest(
            execution=FailedCall.model_validate(fields),
            annotations=ToolAnnotations(read_only_hint=True),
        ),
    )


async def confidence(brain: Brain, workspace: str) -> float:
    """How sure the best suggestion is."""
    return (await ask(brain, workspace)).suggestions[0].confidence


async def follow(
    brain: Brain, workspace: str, outcome: Outcome, count: int = 1, agents: int = 10
) -> None:
    """Several agents ask, do as they are told, and say what became of it."""
    for number in range(count):
        found = await ask(brain, workspace)
        call = failure(number + 1, f"agent {number % agents}")
        await brain.intake.accept(workspace, [call])
        await record_outcome(
            workspace,
            found.suggestions[0].suggestion_id,
            OutcomeReport(outcome=outcome, execution_id=call.execution_id),
            store=brain.store,
            suggester=brain.suggester,
            on_stored=lambda: None,
        )
    await brain.suggester.close()


async def test_what_failed_makes_the_workspace_less_sure_and_no_other(brain: Brain) -> None:
    """The next answer follows at once; another workspace's does not."""
    before = await confidence(brain, OURS)
    await follow(brain, OURS, "failure", count=120)
    await follow(brain, THEIRS, "success")
    assert await confidence(brain, OURS) == before, "nothing is fitted before the nightly run"
    changed = await recalibrate(brain.store, brain.memory)
    assert set(changed) == {OURS}
    assert changed[OURS].outcomes == 120
    assert await confidence(brain, OURS) < min(before, 0.8)
    assert await confidence(brain, THEIRS) == before
    assert await confidence(brain, "never asked") == before


async def test_a_scaling_outlives_the_process(brain: Brain) -> None:
    """It is a fact of the store; the log's rebuilding leaves it as it is."""
    await follow(brain, OURS, "failure", count=80)
    changed = await recalibrate(brain.store, brain.memory)
    await brain.rebuild()
    fresh = Memory(brain.store)
    assert (await fresh.calibration(OURS)).scaling == changed[OURS]
    assert (await fresh.calibration(THEIRS)).scaling == Scaling()


async def test_recalibrating_again_changes_nothing(brain: Brain) -> None:
    """It is fitted on the shipped estimates, not on the scaled ones: it does not run away."""
    await follow(brain, OURS, "failure", count=80)
    [first] = (await recalibrate(brain.store, brain.memory)).values()
    assert await recalibrate(brain.store, brain.memory) == {}
    await follow(brain, OURS, "failure", count=1)
    estimates = [each.estimate for each in await brain.store.judged_suggestions(OURS, 100)]
    assert len(set(estimates)) == 1
    assert (await brain.memory.calibration(OURS)).scaling == first


async def test_few_outcomes_leave_the_shipped_calibration(brain: Brain) -> None:
    """Ten agents were unlucky once each."""
    before = await confidence(brain, OURS)
    await follow(brain, OURS, "failure", count=10)
    assert await recalibrate(brain.store, brain.memory) == {}
    assert await confidence(brain, OURS) == before


async def test_a_cached_calibration_is_read_anew_when_it_is_forgotten(brain: Brain) -> None:
    """Another process may have fitted it."""
    shipped_ = await confidence(brain, OURS)
    doubtful = Scaling(shift=-2, slope=1, outcomes=500)
    await brain.store.put_fact(calibration_fact(OURS), doubtful.model_dump_json())
    assert await confidence(brain, OURS) == shipped_
    brain.memory.forget_calibration(OURS)
    expected = logistic(doubtful.score(log_odds(shipped_)))
    assert abs(await confidence(brain, OURS) - expected) < 0.001
    assert await confidence(brain, THEIRS) == shipped_


async def flood(brain: Brain, count: int) -> None:
    """One agent says of a suggestion again and again that it failed."""
    suggestion = (await ask(brain, OURS)).suggestions[0].suggestion_id
    await brain.suggester.close()
    calls = [failure(number, "mallory") for number in range(1_000, 1_000 + count)]
    await brain.intake.accept(OURS, calls)
    await brain.store.add_outcomes(
        [SuggestionOutcome(OURS, suggestion, call.execution_id, "failure") for call in calls]
    )


@pytest.mark.parametrize("looked_at", [20_000, 300], ids=["in sight", "out of sight"])
async def test_a_flood_of_one_agent_weighs_no_more_than_its_cap(
    brain: Brain, monkeypatch: pytest.MonkeyPatch, looked_at: int
) -> None:
    """300 failures of one are 50 beside 60 successes of 60, also where no more are looked at."""
    monkeypatch.setattr(ingest.recalibration, "_LATEST", looked_at)
    await follow(brain, OURS, "success", count=60, agents=60)
    await flood(brain, 300)
    await recalibrate(brain.store, brain.memory)
    [latest] = await brain.store.judged_suggestions(OURS, 1)
    agents: list[str | None] = [*map(str, range(60)), *["mallory"] * 50]
    capped = fit_scaling([latest.estimate] * 110, [True] * 60 + [False] * 50, agents)
    scaling = (await brain.memory.calibration(OURS)).scaling
    for probability in (0.6, 0.9):
        score = log_odds(probability)
        assert logistic(scaling.score(score)) > logistic(capped.score(score)) - 0.05


async def test_a_workspace_without_estimates_keeps_what_is_shipped(brain: Brain) -> None:
    """Outcomes of suggestions that nobody made are no evidence."""
    outcomes = [
        SuggestionOutcome(OURS, str(UUID(int=n)), str(UUID(int=n)), "failure") for n in range(200)
    ]
    await brain.store.add_outcomes(outcomes)
    assert await recalibrate(brain.store, brain.memory) == {}
    assert await brain.memory.calibration(OURS) == shipped()


async def test_questions_are_answered_while_it_runs(brain: Brain) -> None:
    """Fitting takes place beside the event loop."""
    await follow(brain, OURS, "failure", count=60)
    fitting = asyncio.create_task(recalibrate(brain.store, brain.memory))
    answers = [await confidence(brain, THEIRS) for _ in range(3)]
    await fitting
    assert len(set(answers)) == 1
