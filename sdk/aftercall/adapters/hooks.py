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
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias, Unpack
from uuid import uuid4

from aftercall.adapters.reflector import AsyncAsking, KnownTool, ReflectionOptions, Reflector
from aftercall.json_values import bounded_text
from aftercall.mcp_calls import McpResultReader
from aftercall.models.calls import ExecutionError, ToolAnnotations
from aftercall.outcomes import ToolFailedError
from aftercall.reflection import ReflectedResult, ResultReader
from aftercall.reflection.async_driver import ask
from aftercall.reflection.reflected_call import ReflectedCall
from aftercall.reflection.results import CallFacts

MAX_OPEN = 10_000
"""Calls that may be between their two hooks; far more than one gateway process runs at once."""
EXPIRES_AFTER_S = 600.0
"""Seconds that a call may take; ContextForge gives a tool 60 s by default."""
Failure: TypeAlias = Exception | ExecutionError | str | None
"""What the tool raised, or what the gateway states of it; None where the result shows."""


class CallHooks:
    """Records calls that are seen from outside, and advises on those that failed.

    A call is recorded when its second hook comes; one whose second hook never comes is dropped, and
    so is a second hook without a first, after a restart of the gateway.

    May be shared by all requests of a process, from any thread or task. An observer that has to be
    called in one task (tracing) needs a gateway that runs both hooks of a call in one.

    `agent` calls where `pre` is not given one. The `reader` recognises a result that is a failure:
    results of MCP tools as mappings or models (`isError`), and typed outcomes, when None.

    All other arguments are those of `ReflectionOptions`; of the policy count here
    `disabled_agents`, `min_failure_rate`, `trust_annotations` and `suggest_timeout_s`.
    """

    def __init__(
        self,
        *,
        agent: str = "unknown",
        reader: ResultReader[Any] | None = None,
        **options: Unpack[ReflectionOptions],
    ) -> None:
        self._reflector = Reflector(**options)
        self._policy = replace(self._reflector.policy, max_attempts=1)
        self._agent = agent
        self._reader = McpResultReader() if reader is None else reader
        self._lock = threading.Lock()
        # Oldest first: a key that comes again is put last.
        self._open: dict[str, tuple[ReflectedCall[object], KnownTool, float]] = {}

    def pre(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None,
        *,
        key: str | None = None,
        agent: str | None = None,
        server_name: str | None = None,
        session_id: str | None = None,
        context: str | None = None,
        tool: KnownTool | None = None,
    ) -> str:
        """Note that a tool is about to be called; returns its key, at once.

        The key is what `post` will name the call by, such as the gateway's request id, when a
        request calls one tool only; made up when None. The arguments are copied. Calls of
        one session are looked at together for repairs. Arguments may be the text that a model
        wrote; what is cut off or states no object is recorded as it came. `context` is what the
        agent was trying to do, and `tool` its schema and annotations, where the gateway knows them.
        """
        key = key or str(uuid4())
        job: ReflectedCall[object] = ReflectedCall(
            CallFacts(
                tool_name=name,
                agent=agent or self._agent,
                server_name=server_name or self._reflector.server_name,
                session_id=session_id,
                context=context,
            ),
            arguments if isinstance(arguments, str) else dict(arguments or {}),  # copied there
            self._policy,
            self._reflector.recorder,
            rates=self._reflector.rates,
            reader=self._reader,
            observers=self._reflector.observers,
        )
        job.begin_attempt()
        now = time.monotonic()
        with self._lock:
            self._open.pop(key, None)
            self._open[key] = job, tool or KnownTool(), now
            stale = now - EXPIRES_AFTER_S
            while len(self._open) > MAX_OPEN or next(iter(self._open.values()))[2] < stale:
                del self._open[next(iter(self._open))]
        return key

    async def post(
        self, result: object = None, *, key: str, error: Failure = None
    ) -> ReflectedResult[object] | None:
        """Note that the call has ended: it is recorded, and asked about when it failed.

        The result may be a failure; with an `error`, of the tool or the gateway, it is not read.

        Returns:
            How it ended, `advice` and `suggestions` included; None when nothing is known of the
            key. Never raises because of the tool or the service.
        """
        with self._lock:
            found = self._open.pop(key, None)
        if found is None:
            return None
        job, tool, _ = found
        job.note_stopped()
        if error is None:
            job.note_returned(result)
        else:
            if isinstance(error, str):
                error = ExecutionError(type="ToolError", message=bounded_text(error, 8000))
            job.note_raised(ToolFailedError(error) if isinstance(error, ExecutionError) else error)
        if (question := job.question) is not None:
            asking, inside = AsyncAsking(self._reflector.client, tool), job.observe_question()
            trusted = None if self._policy.trust_annotations else ToolAnnotations()
            job.decide_retry(await ask(asking, question, self._policy, trusted, inside))
        return job.finish_call(raise_on_failure=False)

    def is_open(self, key: str) -> bool:
        """Return whether the call is between its hooks."""
        return key in self._open

    def drop(self, key: str) -> None:
        """Forget a call whose end cannot be known, such as one that the gateway has blocked."""
        with self._lock:
            self._open.pop(key, None)
