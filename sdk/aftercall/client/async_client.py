"""The client for asyncio code: the methods of `aftercall.client.Client`, awaited."""

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self, TypeVar

import httpx2

from aftercall.client import endpoints
from aftercall.client.async_boundaries import AsyncBoundaryMethods
from aftercall.client.async_fitness import AsyncFitnessMethods
from aftercall.client.async_nightly import AsyncNightlyMethods
from aftercall.client.async_statistics import AsyncStatisticsMethods
from aftercall.client.requests import Request
from aftercall.client.transport import (
    BASE_URL,
    NOT_NOW,
    RetryPolicy,
    checked_base_url,
    headers_for,
    mapped_errors,
    read_answer,
    request_headers,
)
from aftercall.errors import AftercallError
from aftercall.json_values import JsonObject
from aftercall.models import (
    Execution,
    FailedCall,
    Outcome,
    RecordReceipt,
    SimilarRequest,
    SimilarResponse,
    Status,
    SuggestResponse,
    Tool,
    ToolAnnotations,
    ToolSpec,
)
from aftercall.redaction import DEFAULT_REDACTOR, Redactor

T = TypeVar("T")

_LARGE_BATCH = 20
"""Executions whose redaction may hold up an event loop: some 30 microseconds each."""


class AsyncClient(
    AsyncFitnessMethods, AsyncBoundaryMethods, AsyncNightlyMethods, AsyncStatisticsMethods
):
    """Talks to the service from asyncio code; an async context manager.

    Args:
        base_url: where the service is.
        timeout_s: seconds to wait for an answer once connected; longest silence, not longest
            download.
        connect_timeout_s: seconds to wait for a connection.
        retries: how often a request is sent again (see `aftercall.client.transport.RetryPolicy`).
        redactor: masks secrets before they leave the process; None sends everything as it is.
        headers: sent with every request.
        transport: another way to send: a proxy, a unix socket, an application in this process.
            Without one the environment's proxy variables are not read, or a call to the service on
            this machine would leave it.

    Raises:
        ConfigurationError: `base_url` is no URL, or `retries` is negative.
    """

    def __init__(
        self,
        base_url: str = BASE_URL,
        *,
        timeout_s: float = 10.0,
        connect_timeout_s: float = 2.0,
        retries: int = 2,
        redactor: Redactor | None = DEFAULT_REDACTOR,
        headers: Mapping[str, str] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._policy = RetryPolicy(retries=retries)
        self._redactor = redactor
        self._url = checked_base_url(base_url)
        self._http = httpx2.AsyncClient(
            base_url=self._url,
            timeout=httpx2.Timeout(timeout_s, connect=connect_timeout_s),
            headers=request_headers(headers),
            transport=transport,
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; closing twice does nothing."""
        await self._http.aclose()

    @property
    def base_url(self) -> str:
        """Where the service is."""
        return str(self._url)

    @property
    def redactor(self) -> Redactor | None:
        """What masks secrets."""
        return self._redactor

    async def record(self, executions: Execution | Sequence[Execution]) -> RecordReceipt:
        """Store executions, at most 1,000 and 8 MiB at once; durable when this returns.

        One that the service refuses is named in the receipt and holds up no other. To record from
        running calls use `Recorder`: it takes no time, and keeps what it has while the service is
        away.
        """
        if isinstance(executions, Execution) or len(executions) <= _LARGE_BATCH:
            return await self.send(endpoints.record(executions, self._redactor))
        request = await asyncio.to_thread(endpoints.record, executions, self._redactor)
        return await self.send(request)

    async def get_execution(self, execution_id: str) -> Execution:
        """An execution as it is stored.

        Raises:
            NotFoundError: there is none of this id.
        """
        return await self.send(endpoints.get_execution(execution_id))

    async def status(self) -> Status:
        """What the service holds and how far it is with it."""
        return await self.send(endpoints.status())

    async def suggest(
        self,
        execution: FailedCall | Execution,
        *,
        limit: int = 3,
        annotations: ToolAnnotations | None = None,
    ) -> SuggestResponse:
        """Ask what to do about a failed call; an empty list of suggestions is an honest answer.

        Args:
            execution: the failed call.
            limit: most suggestions to return, 1 to 20.
            annotations: claims about the tool; None takes those it was registered with,
                `ToolAnnotations()` trusts none.

        Raises:
            ValueError: `execution` is a success.
        """
        request = endpoints.suggest(execution, limit, annotations, self._redactor)
        return await self.send(request)

    async def report_outcome(
        self, suggestion_id: str, *, outcome: Outcome, execution_id: str
    ) -> None:
        """Tell what became of a suggestion; `execution_id` is the call that followed it."""
        await self.send(endpoints.report_outcome(suggestion_id, outcome, execution_id))

    async def similar(
        self,
        tool_name: str,
        *,
        server_name: str | None = None,
        context: str | None = None,
        parameters: JsonObject | None = None,
        outcome: Outcome = "success",
        limit: int = 5,
    ) -> SimilarResponse:
        """Recorded calls like this one, nearest first; `limit` is 1 to 50."""
        question = SimilarRequest(
            tool_name=tool_name,
            server_name=server_name,
            context=context,
            parameters=parameters or {},
            outcome=outcome,
            limit=limit,
        )
        return await self.send(endpoints.similar(question, self._redactor))

    async def put_tool(self, tool_id: str, spec: ToolSpec) -> Tool:
        """Register a tool, or replace the one of this id."""
        return await self.send(endpoints.put_tool(tool_id, spec, self._redactor))

    async def get_tool(self, tool_id: str, *, use_evolved: bool = False) -> Tool:
        """A registered tool; with `use_evolved` the version that was promoted in its place.

        Raises:
            NotFoundError: there is none of this id.
        """
        return await self.send(endpoints.get_tool(tool_id, use_evolved))

    async def list_tools(self) -> list[Tool]:
        """All registered tools."""
        return await self.send(endpoints.list_tools())

    async def delete_tool(self, tool_id: str) -> None:
        """Forget a tool's registration; what was learned about its calls stays.

        Raises:
            NotFoundError: there is none of this id.
        """
        await self.send(endpoints.delete_tool(tool_id))

    async def healthy(self) -> bool:
        """Whether the service runs; False also when there is no answer."""
        return await self._probe(endpoints.healthy())

    async def ready(self) -> bool:
        """Whether the service answers questions now; False also when there is no answer."""
        return await self._probe(endpoints.ready())

    async def send(self, request: Request[T]) -> T:
        """Send a request of `aftercall.client.endpoints`, again where that can help.

        Raises:
            AftercallError: the subclass that says what went wrong (see `aftercall.errors`).
        """
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._send_once(request)
            except AftercallError as error:
                wait_s = self._policy.wait_s(attempt, error) if request.retried else None
                if wait_s is None:
                    raise
            await asyncio.sleep(wait_s)

    async def _send_once(self, request: Request[T]) -> T:
        with mapped_errors(self._url):
            response = await self._http.request(
                request.method, request.path, content=request.body, headers=headers_for(request)
            )
        return read_answer(request, response)

    async def _probe(self, request: Request[None]) -> bool:
        try:
            await self.send(request)
        except NOT_NOW:
            return False
        return True
