"""After a switch of the store: what was at hand is dropped, and vectors wait for the index."""

import pytest

from mongo.errors import StoreFencedError
from mongo.records import IndexCommit
from tests.ingest.conftest import Brain
from tests.ingest.fitness_samples import a_call, a_tool, counted
from tests.ingest.relearning import learn_anew


async def test_vectors_wait_until_the_index_is_the_one_that_holds(brain: Brain) -> None:
    """Learning goes on; what would go into the former index stays queued."""
    await brain.learn(a_call(1))
    generation = await learn_anew(brain.store, brain.index, brain.embedder)
    await brain.store.put_tool(a_tool())
    assert await brain.indexer.learn_step() == 1
    assert await brain.indexer.embed_step() == 0
    assert (await brain.store.counts()).pending == 1
    brain.indexer.switched(generation)
    assert await brain.indexer.embed_step() == 1
    assert (await brain.store.counts()).pending == 0


async def test_a_batch_of_the_former_generation_is_read_anew(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The switch comes between reading and commit: it is refused, and learned once."""
    await brain.learn(a_call(1))
    await brain.indexer.learn_step()
    commit_index, refused = brain.store.commit_index, list[IndexCommit]()

    async def late(commit: IndexCommit) -> None:
        monkeypatch.setattr(brain.store, "commit_index", commit_index)
        generation = brain.store.generation
        assert commit.generation == await generation()
        with pytest.raises(StoreFencedError):
            await commit_index(IndexCommit(commit.workspace, commit.generation + 1))
        refused.append(commit)
        raise StoreFencedError("switched")

    monkeypatch.setattr(brain.store, "commit_index", late)
    await brain.learn(a_call(2))
    assert len(refused) == 1
    assert await counted(brain.store) == (["success", "success"], 2, 0)


async def test_what_was_at_hand_before_a_switch_is_not_learned_into(brain: Brain) -> None:
    """Also when nobody told of the switch: the store's generation says it."""
    await brain.learn(a_call(1))
    await learn_anew(brain.store, brain.index, brain.embedder)
    await brain.intake.accept("default", [a_call(2)])
    await brain.indexer.learn_step()
    assert await counted(brain.store) == (["success", "success"], 2, 0)
