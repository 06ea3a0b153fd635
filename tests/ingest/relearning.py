"""Learning everything anew, as a rebuild does, without its command and its new index."""

from embeddings.protocol import Embedder
from ingest.claims import Claims
from ingest.indexer import Indexer
from mongo.protocol import LogStore
from retrieval.index.protocol import VectorIndex
from retrieval.memory import Memory


async def learn_anew(store: LogStore, index: VectorIndex, embedder: Embedder) -> int:
    """Learn all that the log has into the next generation and switch to it; which one that is.

    Nobody else may have claimed a workspace.
    """
    claims = Claims(store, ttl=15, for_rebuild=True)
    try:
        for workspace in await store.workspaces():
            assert await claims.claim(workspace) is not None
        shadow = await store.open_shadow()
        learner = Indexer(
            store=shadow, memory=Memory(shadow), index=index, embedder=embedder, claims=claims
        )
        await learner.run_until_empty()
        await learner.close()
        return await store.adopt(shadow, {}, claims.held)
    finally:
        await claims.close()
