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

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from aftercall._generated.reflection_driver import ask_sync
from aftercall.adapters.asking import AnySuggester, Asking, AsyncAsking, KnownTool
from aftercall.adapters.hooks_results import HookResultReader
from aftercall.adapters.hooks_table import (
    EXPIRES_AFTER_S,
    MAX_OPEN,
    HookStats,
    OpenCall,
    OpenCalls,
)
from aftercall.bounded import bounded_text
from aftercall.json_values import clean_text
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

__all__ = ["CallHooks", "HookStats"]


class CallHooks:
    """Records calls that are seen from outside, and advises on those that failed.

    A call is recorded when its second hook comes. One whose second hook never comes is dropped and
    counted, since nobody knows how it ended. A second hook without a first, after a restart of the
    gateway, is counted, and recorded when it names the tool: as a call whose parameters are not
    known, or they would be learned as none. It is not asked about, as there is nothing to correct.

    May be shared by all requests of a process, from any thread or task. An observer that wants to
    be told in one task (tracing) needs a gateway that runs both hooks of a call in one.

    Args:
        client: asks `/suggest`: a `Client`, or an `AsyncClient` where only `post` is used.
        recorder: takes every call.
        agent: who calls, where `pre` is not told.
        server_name: the server that the tools belong to, where `pre` is not told.
        policy: limits; of them count here `disabled_agents`, `min_failure_rate`,
            `trust_annotations`, `suggest_timeout_s` and `limit`.
        rates: failure counts per tool, to share with others; own ones when None.
        reader: how a result that tells a failure is recognised; results of MCP tools as mappings
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
        self._reader = HookResultReader() if reader is None else reader
        self._observers = observers
        self._open = OpenCalls(max_open=max_open, expires_after_s=expires_after_s, clock=clock)

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
        self._open.begin(key, OpenCall(job, tool or KnownTool()))
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
            result: what the tool returned, which may tell of a failure.
            key: as given to `pre`, or returned by it.
            error: what it raised, or what the gateway says went wrong; then `result` is not read.
            name: the tool's name, for a call that `pre` has not told of.

        Returns:
            How it ended, `advice` and `suggestions` included; None when nothing is known of the
            key. Never raises because of the tool or the service.
        """
        found = self._ended(result, key, error, name)
        if found is None:
            return None
        question = found.job.question()
        if question is not None:
            asking = AsyncAsking(self._client, found.tool)
            inside = found.job.asking()
            found.job.answered(await ask(asking, question, self._policy, self._trusted(), inside))
        return found.job.finish(raise_on_failure=False)

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
        question = found.job.question()
        if question is not None:
            asking = Asking(self._client, found.tool)
            inside = found.job.asking()
            found.job.answered(ask_sync(asking, question, self._policy, self._trusted(), inside))
        return found.job.finish(raise_on_failure=False)

    def is_open(self, key: str) -> bool:
        """Whether the call is between its hooks."""
        return key in self._open

    def drop(self, key: str) -> None:
        """Forget a call whose end cannot be known, such as one that the gateway has blocked."""
        self._open.drop(key)

    def stats(self) -> HookStats:
        """How the hooks matched so far."""
        return self._open.stats()

    def _ended(
        self,
        result: object,
        key: str,
        error: Exception | ExecutionError | str | None,
        name: str | None,
    ) -> OpenCall | None:
        found = self._open.end(key)
        raised = None if error is None else _as_exception(error)
        if found is None:
            if name is not None:
                self._record_unseen(name, result, raised)
            return None
        found.job.stopped()
        if raised is None:
            found.job.returned(result)
        else:
            found.job.raised(raised)
        return found

    def _record_unseen(self, name: str, result: object, raised: Exception | None) -> None:
        """A call of which only the end was seen."""
        if raised is None and not self._reader.is_outcome(result):
            return
        reader = self._reader
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
