"""`aftercall rebuild`: opening the stores, showing progress, and removing former vectors."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from aftercall.cli.status import show_duration
from ingest.rebuild import OnProgress, Rebuilt
from ingest.rebuild import rebuild_generation as rebuild_knowledge
from mongo.errors import StoreInUseError
from mongo.protocol import Store
from retrieval.index.opening import INDEX_FACT, destroy_index, next_index_name, refuse_another_store
from retrieval.index.protocol import EdgePlace, VectorIndex
from service import databases, stores
from service.archive import refuse_half_imported
from service.cli.options import say_seldom
from service.forget import learned_without
from service.lifecycle import COMMAND_PATIENCE_S, when_it_answers
from service.settings import Settings

GRACE_S = 10.0
"""Before what is on a server is removed: services notice the switch within half a second."""


async def rebuild_store(settings: Settings, say: Callable[[str], None]) -> Rebuilt:
    """Learn everything again next to a running service, then switch; it may be killed."""
    async with opened_beside(settings, say) as store, stores.opened_embedder(settings) as embedder:
        await refuse_half_imported(store.metadata)
        place = await stores.index_place(settings, store)
        former_model = await store.metadata.get(stores.INDEX_MODEL_FACT)
        forgotten = await learned_without(store)

        async def open_index(generation: int) -> VectorIndex:
            async def open_new() -> VectorIndex:
                await refuse_another_store(place)
                await destroy_index(place, name)  # of a rebuild that was killed
                return await stores.open_named(place, name, embedder)

            name = next_index_name(generation)
            return await when_it_answers(
                open_new,
                f"the vector index at {stores.where_index_is(settings)}",
                patience_s=0 if settings.qdrant.url is None else COMMAND_PATIENCE_S,
            )

        done = await rebuild_knowledge(
            store=store,
            embedder=embedder,
            open_index=open_index,
            facts=lambda generation: {
                INDEX_FACT: next_index_name(generation),
                stores.INDEX_MODEL_FACT: embedder.fingerprint,
                **forgotten,
            },
            lease_s=settings.indexing.lease_s,
            carries=not forgotten,
            on_progress=_make_progress(say, embedder.name),
        )
        is_same_model = former_model in (None, embedder.fingerprint)
        if not is_same_model:
            say(
                f"the vectors are of another model now: restart every service with it "
                f"(AFTERCALL_EMBEDDING_MODEL={settings.embedding.model}); until then it answers "
                "from its former vectors and learns nothing"
            )
        if stores.is_remote(settings):
            say(f"removing what was current before in {GRACE_S:.0f} s")
            await asyncio.sleep(GRACE_S)
        if is_same_model or isinstance(place, EdgePlace):
            await stores.remove_former(place, next_index_name(done.generation))
        else:
            say("the former vectors stay on the server; the next rebuild removes them")
        return done


@asynccontextmanager
async def opened_beside(settings: Settings, say: Callable[[str], None]) -> AsyncIterator[Store]:
    """Yield the log store until the block ends, also if a service has it open."""
    async with AsyncExitStack() as stack:
        try:
            store = await stack.enter_async_context(
                databases.opened_store(settings, patience_s=COMMAND_PATIENCE_S)
            )
        except StoreInUseError:
            say(f"a service runs on {settings.data.dir}: it goes on answering and learning")
            store = await stack.enter_async_context(databases.opened_store(settings, beside=True))
        yield store


def _make_progress(say: Callable[[str], None], model: str) -> OnProgress:
    slowly: Callable[[str], None] | None = None
    started = time.monotonic()

    def show_progress(done: int, total: int) -> None:
        nonlocal slowly, started
        if slowly is None:
            slowly, started = say_seldom(say), time.monotonic()
            say(f"learning from {total:,} records with {model}")
        elif done:
            rate = done / max(time.monotonic() - started, 1e-9)
            left = show_duration((total - done) / rate)
            slowly(f"{done:,} of {total:,} ({rate:,.0f} a second, {left} left)")

    return show_progress
