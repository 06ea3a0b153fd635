"""The service as a toolbox asks it: in bounded time, and not again and again while it is away."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from aftercall.client import AsyncClient, Client
from aftercall.errors import (
    ConfigurationError,
    ProtocolError,
    RateLimitedError,
    ServiceFailedError,
    ServiceTimeoutError,
    ServiceUnreachableError,
)
from aftercall.redaction import DEFAULT_REDACTOR, Redactor

T = TypeVar("T")

AWAY = (ServiceUnreachableError, ServiceFailedError, RateLimitedError, ProtocolError)
"""What means that the service cannot be asked now."""

PAUSE_S = 5.0
"""Seconds for which a service that gave no answer is not asked again."""


class ServiceLink:
    """Asks one service.

    Args:
        client: asks it; None for a toolbox without a service.
        timeout_s: longest wait for an answer, retries included, in seconds.
        clock: seconds of a clock that never goes back.

    Raises:
        ConfigurationError: the client is a synchronous one.
    """

    def __init__(
        self,
        client: AsyncClient | None,
        *,
        timeout_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if isinstance(client, Client):
            raise ConfigurationError(
                "a toolbox asks through an AsyncClient, the synchronous Toolbox too; pass one that "
                "nothing else uses"
            )
        self.client = client
        self._timeout_s = timeout_s
        self._clock = clock
        self._paused_until = float("-inf")
        self._problem = ""

    @property
    def redactor(self) -> Redactor | None:
        """Masks secrets in what goes to others: the client's."""
        return DEFAULT_REDACTOR if self.client is None else self.client.redactor

    async def ask(self, question: Callable[[AsyncClient], Awaitable[T]]) -> T:
        """The answer.

        Raises:
            ServiceUnreachableError: there is no service, or it gave no answer (a moment ago).
            AftercallError: what the service said.
        """
        if self.client is None:
            raise ServiceUnreachableError("this toolbox has no service; give it a client")
        if self._clock() < self._paused_until:
            raise ServiceUnreachableError(f"not asked again just now: {self._problem}")
        limit = asyncio.timeout(self._timeout_s)
        try:
            async with limit:
                return await question(self.client)
        except TimeoutError as error:
            away = ServiceTimeoutError(f"no answer within {self._timeout_s:g} s")
            self._pause(away)
            raise away from error
        except AWAY as error:
            self._pause(error)
            raise

    def _pause(self, error: Exception) -> None:
        self._paused_until = self._clock() + PAUSE_S
        self._problem = str(error)
