"""From what is recorded to what is suggested: real store, real index, no network."""

from typing import Any
from uuid import UUID

import pytest

from aftercall.models import Execution, OutcomeReport, SuggestRequest
from aftercall.redaction import Redactor
from embeddings.protocol import EmbeddingError
from ingest.learner import learn_failure, learn_repair, learn_success
from ingest.mining import Repair
from ingest.outcomes import UnknownSuggestionError, record_outcome
from mongo.errors import StoreUnavailableError
from mongo.records import IndexCommit, ToolKey
from retrieval.edits.kinds import Replace
from retrieval.knowledge.rules import ToolKnowledge
from retrieval.reading.reader import read_error
from tests.ingest.conftest import WORKSPACE, Brain
from tests.retrieval.cases import an_execution

NO_REF = {"type": "ToolError", "message": "Ref 'master' did not resolve to an object"}
TOOL = ToolKey(WORKSPACE, "srv", "git_show")


def show(number: int, session: str, revision: str, **fields: Any) -> Execution:
    """A call of git_show; a failure when the revision is master."""
    failed = revision == "master"
    return an_execution(
        execution_id=str(UUID(int=number)),
        timestamp=f"2026-02-20T14:{number:02d}:00Z",
        tool_name="git_show",
        session_id=session,
        parameters={"repo_path": "/r", "revision": revision},
        outcome="failure" if failed else "success",
        error=NO_REF if failed else None,
        **fields,
    )


async def knowledge(brain: Brain) -> ToolKnowledge:
    row = await brain.store.get_knowledge(TOOL)
    assert row is not None
    return ToolKnowledge.model_validate_json(row.data)


async def test_the_second_agent_profits_from_the_first(brain: Brain) -> None:
    """Two sessions mend the same mistake; a third gets the correction, sure enough to retry."""
    await brain.learn(show(1, "a", "master"), show(2, "a", "main"))
    first = (await brain.ask(show(9, "z", "master"))).suggestions
    assert all(suggestion.confidence < 0.8 for suggestion in first)
    await brain.learn(show(3, "b", "master"), show(4, "b", "main"))
    best = (await brain.ask(show(9, "z", "master"))).suggestions[0]
    assert best.corrected_parameters == {"repo_path": "/r", "revision": "main"}
    assert best.confidence > 0.8
    assert best.evidence.repairs == 2
    assert "repairs" in best.evidence.sources


async def test_halves_of_a_repair_may_come_in_any_order_and_batch(brain: Brain) -> None:
    """A success that is indexed before its failure, and long before, still makes one repair."""
    await brain.learn(show(2, "a", "main"))
    await brain.learn(show(1, "a", "master"))
    await brain.learn(show(5, "other", "main"))
    repairs = await brain.store.list_repairs(TOOL, 10)
    assert [(row.failed_id, row.mended_id) for row in repairs] == [
        (str(UUID(int=1)), str(UUID(int=2)))
    ]
    [rule] = next(iter((await knowledge(brain)).signatures.values())).rules.values()
    assert rule.repairs == 1


async def test_sending_everything_twice_teaches_once(brain: Brain) -> None:
    """Duplicates are told apart by id and count nowhere."""
    calls = [show(1, "a", "master"), show(2, "a", "main")]
    await brain.learn(*calls)
    before = await knowledge(brain)
    await brain.learn(*calls)
    assert await knowledge(brain) == before


async def test_a_batch_that_could_not_be_committed_is_learned_once_later(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store fails after all was learned: nothing is lost or doubled."""
    await brain.intake.accept(WORKSPACE, [show(1, "a", "master"), show(2, "a", "main")])
    commit = brain.store.commit_index

    async def refuse(_: IndexCommit) -> None:
        raise StoreUnavailableError("gone")

    monkeypatch.setattr(brain.store, "commit_index", refuse)
    with pytest.raises(StoreUnavailableError):
        await brain.indexer.learn_step()
    monkeypatch.setattr(brain.store, "commit_index", commit)
    assert await brain.indexer.run_until_empty() == 2
    known = await knowledge(brain)
    profile = known.profile(None)
    assert profile is not None
    assert (profile.successes, profile.failures) == (1, 1)
    assert len(await brain.store.list_repairs(TOOL, 10)) == 1


async def test_a_rebuild_learns_the_same_again(brain: Brain) -> None:
    """Everything learned comes from the log alone, suggestions' outcomes included."""
    await brain.learn(show(1, "a", "master"), show(2, "a", "main"), show(3, "b", "main"))
    suggestion = (await brain.ask(show(9, "z", "master"))).suggestions[0]
    await brain.suggester.close()
    await brain.learn(
        show(10, "z", "master"),
        show(11, "z", "main", suggestion_id=suggestion.suggestion_id, attempt=2),
    )
    before = await knowledge(brain)
    [rule] = next(iter(before.signatures.values())).rules.values()
    assert (rule.repairs, rule.successes) == (1, 1)
    await brain.rebuild()
    assert await knowledge(brain) == before


async def test_an_outcome_teaches_once_however_it_is_told(brain: Brain) -> None:
    """By endpoint and by `suggestionId` of the execution: the same outcome counts once."""
    await brain.learn(show(1, "a", "master"), show(2, "a", "main"), show(3, "b", "main"))
    suggestion = (await brain.ask(show(9, "z", "master"))).suggestions[0]
    report = OutcomeReport(outcome="failure", execution_id=str(UUID(int=21)))
    for expected in (True, False):
        told = await record_outcome(
            WORKSPACE, suggestion.suggestion_id, report,
            store=brain.store, suggester=brain.suggester, on_stored=brain.indexer.wake,
        )  # fmt: skip
        assert told is expected
    await brain.suggester.close()
    await brain.learn(show(20, "q", "master"))
    [rule] = next(iter((await knowledge(brain)).signatures.values())).rules.values()
    assert (rule.repairs, rule.successes, rule.failures) == (1, 0, 1)


async def test_an_outcome_of_an_unknown_suggestion_is_refused(brain: Brain) -> None:
    """The message names the id and what to send."""
    report = OutcomeReport(outcome="success", execution_id=str(UUID(int=1)))
    with pytest.raises(UnknownSuggestionError, match="suggestionId"):
        await record_outcome(
            WORKSPACE, str(UUID(int=77)), report,
            store=brain.store, suggester=brain.suggester, on_stored=brain.indexer.wake,
        )  # fmt: skip


async def test_secrets_are_gone_before_anything_is_written_or_answered(brain: Brain) -> None:
    """Neither the log, nor what is learned, nor an answer holds the secret."""
    secret = "hunter2-hunter2"  # noqa: S105 - made up, to be found nowhere
    failed = an_execution(
        execution_id=str(UUID(int=1)), tool_name="git_show", outcome="failure",
        parameters={"repo_path": "/r", "password": secret},
        error={"type": "E", "message": f"'revision' is a required property; password={secret}"},
        context=f"log in with password={secret}",
    )  # fmt: skip
    await brain.learn(failed)
    stored = await brain.store.get_execution(WORKSPACE, failed.execution_id)
    row = await brain.store.get_knowledge(TOOL)
    answer = await brain.ask(failed)
    assert stored is not None
    assert row is not None
    for text in (stored.model_dump_json(), row.data.decode(), answer.model_dump_json()):
        assert secret not in text


async def test_another_workspace_knows_nothing(brain: Brain) -> None:
    """Nothing crosses the tenant's border."""
    for session, number in (("a", 1), ("b", 3), ("c", 5)):
        await brain.learn(show(number, session, "master"), show(number + 1, session, "main"))
    fields = show(9, "z", "master").model_dump(exclude={"execution_id", "timestamp"})
    request = {"execution": fields, "annotations": {"readOnlyHint": True}}
    response = await brain.suggester.suggest("other", SuggestRequest.model_validate(request))
    assert response.abstained


async def test_one_unlearnable_record_does_not_hold_up_the_others(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that breaks the learner is passed over; those behind it are learned."""
    from ingest import batch

    original = batch.learn_success

    def breaks_on_one(known: ToolKnowledge, execution: Execution, schema_hash: str | None) -> None:
        if execution.execution_id == str(UUID(int=1)):
            raise RuntimeError("no")
        original(known, execution, schema_hash)

    monkeypatch.setattr(batch, "learn_success", breaks_on_one)
    await brain.learn(show(1, "a", "main"), show(2, "a", "main"))
    profile = (await knowledge(brain)).profile(None)
    assert profile is not None
    assert profile.successes == 1
    assert (await brain.store.counts()).pending == 0


async def test_rules_do_not_wait_for_the_model(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the embedder is stuck, repairs are usable; new documents stay queued."""

    async def stuck(*_: object) -> None:
        raise EmbeddingError("no model")

    for number, session in ((1, "a"), (3, "b")):
        await brain.intake.accept(
            WORKSPACE, [show(number, session, "master"), show(number + 1, session, "main")]
        )
    with monkeypatch.context() as patch:
        patch.setattr(brain.embedder, "embed", stuck)
        assert await brain.indexer.learn_step() == 4
        with pytest.raises(EmbeddingError):
            await brain.indexer.embed_step()
        best = (await brain.ask(show(9, "z", "master"))).suggestions[0]
        assert best.corrected_parameters == {"repo_path": "/r", "revision": "main"}
    assert (await brain.store.counts()).pending == 2
    await brain.indexer.run_until_empty()
    assert (await brain.store.counts()).pending == 0


async def test_a_backlog_of_a_long_session_teaches_all_its_repairs(brain: Brain) -> None:
    """Thousands of calls of one session wait: repairs far from its end count too."""
    calls = []
    for number in range(1, 2_401, 3):
        for offset, revision in enumerate(("master", "main", "other")):
            call = show(1, "long", revision, sequence=number + offset)
            calls.append(call.model_copy(update={"execution_id": str(UUID(int=number + offset))}))
    for start in range(0, len(calls), 1_000):
        await brain.intake.accept(WORKSPACE, calls[start : start + 1_000])
    await brain.indexer.run_until_empty()
    assert len(await brain.store.list_repairs(TOOL, 5_000)) == 800


async def test_what_is_known_of_a_tool_stays_small(brain: Brain) -> None:
    """Names, values, messages and repairs without end leave a bounded number of bytes."""
    known = ToolKnowledge()
    for number in range(3_000):
        wide = {f"p{number}_{n}": f"{n}-{number}" + "x" * 100 for n in range(10)}
        learn_success(
            known, an_execution(parameters=wide, session_id=f"s{number}"), str(number % 9)
        )
        failed = an_execution(
            parameters={"text": f"{number}" * 500}, outcome="failure", agent=f"agent {number}" * 20,
            session_id=f"s{number}", error={"message": f"no such thing: {hash_of(number)}"},
        )  # fmt: skip
        mended = an_execution(parameters={"text": "y" * 100_000, "p": "z" * 900})
        reading = read_error(failed.error, failed.parameters)  # type: ignore[arg-type]  # a failure has one
        learn_failure(known, failed, reading, None)
        for edit in (Replace(name="text", before="a", value="y" * 100_000),
                     Replace(name="p", before=str(number), value="z" * 400)):  # fmt: skip
            learn_repair(known, Repair(failed, mended, reading, [edit]), None)
    assert len(known.model_dump_json()) < 4_000_000


def hash_of(number: int) -> str:
    """A word of letters, so that no mask makes two of them one."""
    return "".join(chr(103 + int(digit)) for digit in f"{number:08d}")


async def test_a_repair_under_an_old_schema_counts_less(brain: Brain) -> None:
    """The rule stays, and under a newer schema of the tool it is less sure."""
    old = {"type": "object", "properties": {"repo_path": {}, "revision": {}}}
    newer = old | {"description": "version 2"}
    for number, session in ((1, "a"), (3, "b"), (5, "c")):
        await brain.learn(
            show(number, session, "master", input_schema=old),
            show(number + 1, session, "main", input_schema=old),
        )
    then = (await brain.ask(show(9, "z", "master", input_schema=old))).suggestions[0]
    now = (await brain.ask(show(9, "z", "master", input_schema=newer))).suggestions[0]
    assert now.corrected_parameters == then.corrected_parameters
    assert now.confidence < then.confidence - 0.03


async def test_what_is_masked_since_is_not_answered(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value learned before its name was declared secret is never suggested again."""
    for number, session in ((1, "a"), (3, "b"), (5, "c")):
        await brain.learn(show(number, session, "master"), show(number + 1, session, "main"))
    assert (await brain.ask(show(9, "z", "master"))).suggestions
    monkeypatch.setattr(brain.suggester, "_redactor", Redactor.create(extra_names=["revision"]))
    response = await brain.ask(show(9, "z", "master"))
    assert "main" not in response.model_dump_json()
    assert response.abstained
