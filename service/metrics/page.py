"""The page: tools first, then all else, in the form that the scraper asked for."""

import asyncio
import gzip
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from prometheus_client.exposition import gzip_accepted
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from service.context import Lifecycle
from service.metrics.counting import ServiceMetrics
from service.metrics.formats import PageFormat, format_for
from service.metrics.requests import RequestMetrics
from service.metrics.state import WITHIN_S, StateOfStores

_GZIP_LEVEL = 1
"""A page is mostly repetition: the highest level takes ten times as long for a fifth less."""


@dataclass(frozen=True, slots=True)
class Page:
    """The bytes, and what an answer's head says of them."""

    content: bytes
    headers: dict[str, str]


class MetricsPage:
    """Writes the page of one app, whatever the state of its services; it never fails.

    Args:
        requests: counted from the start of the app on.
        lifecycle: where the services are, once they are open.
        within_s: seconds that a store has to say how it is.
    """

    def __init__(
        self, requests: RequestMetrics, lifecycle: Lifecycle, *, within_s: float = WITHIN_S
    ) -> None:
        self._requests = requests
        self._lifecycle = lifecycle
        self._state = StateOfStores(within_s)
        # Of its own: it must not wait behind a batch that is learned. One page at a time.
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="aftercall-metrics")

    async def write(self, accept: str, accept_encoding: str) -> Page:
        """The page as it is now.

        Args:
            accept: the `Accept` of the request; any text.
            accept_encoding: its `Accept-Encoding`; any text.
        """
        context = self._lifecycle.context
        now = await self._state.look(context)
        counted = None if context is None else context.metrics
        form = format_for(accept)
        packed = gzip_accepted(accept_encoding)
        content = await asyncio.get_running_loop().run_in_executor(
            self._writer, self._written, counted, now, form, packed
        )
        headers = {"content-type": form.content_type, "vary": "accept, accept-encoding"}
        if packed:
            headers["content-encoding"] = "gzip"
        return Page(content, headers)

    def _written(
        self,
        counted: ServiceMetrics | None,
        now: list[Metric],
        form: PageFormat,
        packed: bool,  # noqa: FBT001  # run_in_executor passes no names
    ) -> bytes:
        tools = b"" if counted is None else counted.tools.page(open_metrics=form.is_open_metrics)
        registries = [self._requests.registry, *([] if counted is None else [counted.registry])]
        content = tools + form.encode(_Together(registries, now))
        return gzip.compress(content, _GZIP_LEVEL) if packed else content


class _Together(Collector):
    """Several registries and what was seen just now, as one.

    Without the `_created` series, which `prometheus_client` adds to every counter and histogram:
    nobody asks for them, they double the page, and its switch for them is the whole process's.
    """

    def __init__(self, registries: Iterable[Collector], now: Iterable[Metric]) -> None:
        self._registries = registries
        self._now = now

    def collect(self) -> Iterable[Metric]:
        for registry in self._registries:
            for family in registry.collect():
                created = f"{family.name}_created"
                family.samples = [each for each in family.samples if each.name != created]
                yield family
        yield from self._now
