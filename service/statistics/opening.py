"""Opening the statistics of a service: what works in the background until it ends."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from aftercall.redaction import Redactor
from ingest.nightly.patterns import patterns_fact
from mongo.protocol import LogStore
from retrieval.boundaries.cohesion import CohesionRules
from retrieval.memory import Memory
from retrieval.usage.base import version_fact
from service.nightly import run_process
from service.settings import Settings
from service.statistics.answers import counting_answers
from service.statistics.book import UsageBook
from service.statistics.news import News
from service.statistics.reports import StatisticsReports


@asynccontextmanager
async def open_statistics(
    settings: Settings,
    *,
    store: LogStore,
    memory: Memory,
    redactor: Redactor,
    cohesion: CohesionRules,
) -> AsyncIterator[StatisticsReports]:
    """Statistics over a store; at the end what was counted of answers is written.

    Args:
        settings: of the service; who has a scheduler for the nightly run counts by that alone.
        store: where all that is told comes from.
        memory: what is known of tools, cached.
        redactor: masks secrets before anything is answered.
        cohesion: when a tool is said to be asked for several jobs.
    """

    async def look_at(workspace: str) -> object:
        """Executions and what was learned of them, and what the nightly run left."""
        return (
            await store.counts(workspace),
            await store.get_fact(version_fact(workspace)),
            await store.get_fact(patterns_fact(workspace)),
        )

    async def count_again() -> int:
        return await run_process(settings, only=("statistics",))

    async with AsyncExitStack() as stack:
        answers = await stack.enter_async_context(counting_answers(store))
        news = News(look_at)
        stack.push_async_callback(news.close)
        book = UsageBook(
            store,
            run_step=count_again if settings.nightly.every_h else None,
            on_caught_up=news.tell,
        )
        stack.push_async_callback(book.close)
        yield StatisticsReports(
            book=book,
            store=store,
            memory=memory,
            redactor=redactor,
            cohesion=cohesion,
            answers=answers,
            news=news,
        )
