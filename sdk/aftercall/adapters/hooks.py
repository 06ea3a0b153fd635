"""Reflection for gateways with hooks: one before a tool is called, one after it (no extra).

    hooks = CallHooks(client=client, recorder=recorder)

    key = hooks.pre("rag_query", {"query": "reflection", "topK": 50})   # before
    ended = await hooks.post(result, key=key)                           # after
    if ended and ended.advice:
        ...                                                             # add it to the error

Only the hook before the call sees the arguments, as in IBM's ContextForge; the two are brought
together by a key, the gateway's own or the one that `pre` makes. Nothing is retried here: the
gateway makes the calls, so what a failure gets is advice.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from aftercall._generated.reflection_driver import ask_sync
from aftercall.adapters.questions import AnySuggester, Asking, AsyncAsking, KnownTool
from aftercall.errors import ConfigurationError
from aftercall.json_values import bounded_text, clean_text
from aftercall.mcp_results import McpResultReader
from aftercall.models.calls import Execution, ExecutionError, ToolAnnotations
from aftercall.outcomes import ToolFailedError
from aftercall.reflection import (
    CallObserver,
    ExecutionSink,
    FailureRates,
    ReflectedResult,
    ReflectionPolicy,
    ResultReader,
)
from aftercall.reflection.async_driver import ask
from aftercall.reflection.observers import CallFacts
from aftercall.reflection.reflected_call import ReflectedCall

MAX_OPEN = 10_000
"""Calls that may be between their two hooks; far more than one gateway process runs at once."""

EXPIRES_AFTER_S = 600.0
"""Seconds that a call may take; ContextForge gives a tool 60 s by default."""


@dataclass(frozen=True, slots=True)
class HookStats:
    """How the hooks matched: `open` calls are between their hooks now, the rest are counts so far.

    `ended` had both hooks and are recorded. `expired`, whose second hook never came (the gateway
    blocked the call, or lost it), and `replaced`, whose key came again before that, are not.
    `unmatched` are second hooks without a first.
    """

    open: int
    ended: int
    expired: int
    replaced: int
    unmatched: int


class CallHooks:
    """Records calls that are seen from outside, and advises on those that failed.

    A call is recorded when its second hook comes. One whose second hook never comes is dropped and
    counted, since nobody knows how it ended. A second hook without a first, after a restart of the
    gateway, is counted, and recorded when it names the tool: as a call whose parameters are not
    known, or they would be learned as none. It is not asked about, as there is nothing to correct.

    May be shared by all requests of a process, from any thread or task. An observer that has to be
    called in one task (tracing) needs a gateway that runs both hooks of a call in one.

    Args:
        client: asks `/suggest`: a `Client`, or an `AsyncClient` where only `post` is used.
        recorder: takes every call.
        agent: who calls, where `pre` is not given one.
        server_name: the server that the tools belong to, where `pre` is not given one.
        policy: limits; of them count here `disabled_agents`, `min_failure_rate`,
            `trust_annotations`, `suggest_timeout_s` and `limit`.
        rates: failure counts per tool, to share with others; own ones when None.
        reader: how a result that is a failure is recognised; results of MCP tools as mappings
            or models (`isError`), and typed outcomes, when None.
        observers: look on (`aftercall.events`, `aftercall.tracing`).
        max_open: most calls between their two hooks; past this the oldest is dropped.
        expires_after_s: seconds after which a call whose second hook did not come is dropped.
        clock: seconds that only go up.

    Raises:
        ConfigurationError: `max_open` or `expires_after_s` is not positive.
    """

    def __init__(
        self,
        *,
        client: AnySuggester,
        recorder: ExecutionSink,
        agent: str = "unknown",
        server_name: str | None = None,
        policy: ReflectionPolicy | None = None,
        rates: FailureRates | None = None,
        reader: ResultReader[Any] | None = None,
        observers: Sequence[CallObserver] = (),
        max_open: int = MAX_OPEN,
        expires_after_s: float = EXPIRES_AFTER_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._agent = agent
        self._server_name = server_name
        self._policy = replace(policy or ReflectionPolicy(), max_attempts=1)
        self._rates = rates or FailureRates()
        self._reader = McpResultReader() if reader is None else reader
        self._observers = observers
        self._open = _OpenCalls(max_open, expires_after_s, clock)

    def pre(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        *,
        key: str | None = None,
        agent: str | None = None,
        server_name: str | None = None,
        session_id: str | None = None,
        context: str | None = None,
        tool: KnownTool | None = None,
    ) -> str:
        """A tool is about to be called; returns at once.

        Args:
            name: the tool's name.
            arguments: what it is called with. A copy is taken.
            key: what `post` will name the call by, such as the gateway's request id, when a
                request calls one tool only; made up when None.
            agent: who calls.
            server_name: the server that the tool belongs to.
            session_id: calls of one session are looked at together for repairs.
            context: what the agent was trying to do.
            tool: its schema and annotations, where the gateway knows them.

        Returns:
            The key.
        """
        key = key or str(uuid4())
        facts = CallFacts(
            tool_name=name,
            agent=agent or self._agent,
            server_name=server_name or self._server_name,
            session_id=session_id,
            context=context,
        )
        job: ReflectedCall[object] = ReflectedCall(
            facts,
            dict(arguments or {}),  # which takes the copy
            self._policy,
            self._recorder,
            self._rates,
            self._reader,
            False,  # noqa: FBT003  # may_repeat: nothing is called again from here
            lambda: 0.0,
            observers=self._observers,
        )
        job.begin()
        self._open.begin(key, (job, tool or KnownTool()))
        return key

    async def post(
        self,
        result: object = None,
        *,
        key: str,
        error: Exception | ExecutionError | str | None = None,
        name: str | None = None,
    ) -> ReflectedResult[object] | None:
        """The call has ended: it is recorded, and asked about when it failed.

        Args:
            result: what the tool returned, which may be a failure.
            key: as given to `pre`, or returned by it.
            error: what it raised, or what the gateway says went wrong; then `result` is not read.
            name: the tool's name, for a call that `pre` has not seen.

        Returns:
            How it ended, `advice` and `suggestions` included; None when nothing is known of the
            key. Never raises because of the tool or the service.
        """
        found = self._ended(result, key, error, name)
        if found is None:
            return None
        job, tool = found
        question = job.question()
        if question is not None:
            asking, inside = AsyncAsking(self._client, tool), job.asking()
            job.answered(await ask(asking, question, self._policy, self._trusted(), inside))
        return job.finish(raise_on_failure=False)

    def post_sync(
        self,
        result: object = None,
        *,
        key: str,
        error: Exception | ExecutionError | str | None = None,
        name: str | None = None,
    ) -> ReflectedResult[object] | None:
        """As `post`, for gateways without an event loop.

        Raises:
            ConfigurationError: the client is an `AsyncClient`.
        """
        found = self._ended(result, key, error, name)
        if found is None:
            return None
        job, tool = found
        question = job.question()
        if question is not None:
            asking, inside = Asking(self._client, tool), job.asking()
            job.answered(ask_sync(asking, question, self._policy, self._trusted(), inside))
        return job.finish(raise_on_failure=False)

    def is_open(self, key: str) -> bool:
        """Whether the call is between its hooks."""
        return key in self._open

    def drop(self, key: str) -> None:
        """Forget a call whose end cannot be known, such as one that the gateway has blocked."""
        self._open.end(key, counted="expired")

    def stats(self) -> HookStats:
        """How the hooks matched so far."""
        return self._open.stats()

    def _ended(
        self,
        result: object,
        key: str,
        error: Exception | ExecutionError | str | None,
        name: str | None,
    ) -> "_OpenCall | None":
        found = self._open.end(key, counted="ended")
        raised = None if error is None else _as_exception(error)
        if found is None:
            if name is not None:
                self._record_unseen(name, result, raised)
            return None
        job, _ = found
        job.stopped()
        if raised is None:
            job.returned(result)
        else:
            job.raised(raised)
        return found

    def _record_unseen(self, name: str, result: object, raised: Exception | None) -> None:
        """A call of which only the end was seen."""
        reader = self._reader
        if raised is None and not reader.is_outcome(result):
            return
        error = reader.read_failure(result) if raised is None else reader.read_exception(raised)
        self._recorder.record(
            Execution(
                execution_id=str(uuid4()),
                timestamp=datetime.now(UTC),
                agent=clean_text(self._agent)[:256] or "unknown",
                server_name=self._server_name and clean_text(self._server_name)[:256],
                tool_name=clean_text(name)[:256] or "unknown",
                parameters={},
                parameters_known=False,
                outcome="success" if error is None else "failure",
                error=error,
                result=reader.summarise(result) if error is None else None,
            )
        )

    def _trusted(self) -> ToolAnnotations | None:
        return None if self._policy.trust_annotations else ToolAnnotations()


def _as_exception(error: Exception | ExecutionError | str) -> Exception:
    if isinstance(error, Exception):
        return error
    if isinstance(error, str):
        error = ExecutionError(type="ToolError", message=bounded_text(error, 8000))
    return ToolFailedError(error)


_OpenCall = tuple[ReflectedCall[object], KnownTool]


class _OpenCalls:
    """Calls between their two hooks, by their keys; safe to share between threads.

    Nothing stays in it for ever.
    """

    def __init__(self, max_open: int, expires_after_s: float, clock: Callable[[], float]) -> None:
        if max_open < 1 or expires_after_s <= 0:
            raise ConfigurationError(
                f"max_open must be 1 or more and expires_after_s positive, "
                f"not {max_open} and {expires_after_s}"
            )
        self._max_open = max_open
        self._expires_after_s = expires_after_s
        self._clock = clock
        self._lock = threading.Lock()
        # Oldest first: a key that comes again is put last.
        self._open: dict[str, tuple[_OpenCall, float]] = {}
        self._counts = {"ended": 0, "expired": 0, "replaced": 0, "unmatched": 0}

    def __contains__(self, key: str) -> bool:
        return key in self._open

    def begin(self, key: str, call: _OpenCall) -> None:
        with self._lock:
            if self._open.pop(key, None) is not None:
                self._counts["replaced"] += 1
            self._open[key] = (call, self._clock())
            self._drop_old()

    def end(self, key: str, *, counted: str) -> _OpenCall | None:
        """Take a call out; None when it is not there."""
        with self._lock:
            found = self._open.pop(key, None)
            if found is not None:
                self._counts[counted] += 1
            elif counted == "ended":
                self._counts["unmatched"] += 1
        return None if found is None else found[0]

    def stats(self) -> HookStats:
        with self._lock:
            self._drop_old()
            return HookStats(open=len(self._open), **self._counts)

    def _drop_old(self) -> None:
        now = self._clock()
        while self._open:
            key, (_, began) = next(iter(self._open.items()))
            if now - began <= self._expires_after_s and len(self._open) <= self._max_open:
                return
            del self._open[key]
            self._counts["expired"] += 1
