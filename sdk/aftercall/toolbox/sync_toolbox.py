"""The toolbox for synchronous programs: `AsyncToolbox` on an event loop of its own."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from aftercall.client import AsyncClient
from aftercall.evolution import Checks, EvolutionResult, Evolver, PastFailure, checks_beside
from aftercall.executors.protocol import DEFAULT_TIMEOUT_S, Executor
from aftercall.json_values import JsonValue
from aftercall.models import BestTool, MarkedFailure, RankedTool, Severity, Tool, ToolSpec
from aftercall.reflection.reflected_call import ExecutionSink
from aftercall.toolbox.async_toolbox import AsyncToolbox
from aftercall.toolbox.results import CallResult, ResilientResult

T = TypeVar("T")


class Toolbox:
    """The methods of `AsyncToolbox`, without `await`; a context manager.

    It may be used from several threads, whose calls run side by side, and from tools that are plain
    functions; not from tools that are coroutines, as those run on its loop.

    Args:
        client: an `AsyncClient` that nothing else uses; closed with the toolbox.

    All other arguments are those of `AsyncToolbox`.
    """

    def __init__(
        self,
        client: AsyncClient | None,
        recorder: ExecutionSink | None,
        executors: Executor,
        *,
        agent: str,
        session_id: str | None = None,
        promotions: Path | str | None = None,
        tools: Mapping[str, ToolSpec] | None = None,
        evolver: Evolver | None = None,
        checks: Callable[[Path], Checks | None] = checks_beside,
        trust_annotations: bool = True,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        service_timeout_s: float = 5.0,
    ) -> None:
        self._toolbox = AsyncToolbox(
            client,
            recorder,
            executors,
            agent=agent,
            session_id=session_id,
            promotions=promotions,
            tools=tools,
            evolver=evolver,
            checks=checks,
            trust_annotations=trust_annotations,
            timeout_s=timeout_s,
            service_timeout_s=service_timeout_s,
        )
        self._client = client
        self._closing = False
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="aftercall-toolbox", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the calls that still run, close the client and the loop; twice does nothing.

        Raises:
            RuntimeError: from a tool's own coroutine, or to whoever waits for a call that it ended.
        """
        with self._lock:
            if self._closing:
                return
            ending = self._submit(self._end())
            self._closing = True
        try:
            ending.result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def register_tool(self, tool_id: str, spec: ToolSpec) -> Tool:
        """As `AsyncToolbox.register_tool`."""
        return self._wait(self._toolbox.register_tool(tool_id, spec))

    def get_tool(self, tool_id: str, use_evolved: bool = True) -> Tool:  # noqa: FBT001, FBT002  # seed 002
        """As `AsyncToolbox.get_tool`."""
        return self._wait(self._toolbox.get_tool(tool_id, use_evolved))

    def get_best_tool_in_namespace(
        self,
        tool_id: str,
        scenario: str,
        use_rag: bool = True,  # noqa: FBT001, FBT002  # seed 002
    ) -> BestTool:
        """As `AsyncToolbox.get_best_tool_in_namespace`."""
        return self._wait(self._toolbox.get_best_tool_in_namespace(tool_id, scenario, use_rag))

    def find_tools_for_scenario(
        self, scenario: str, tags: Sequence[str] | None = None, limit: int = 5
    ) -> list[RankedTool]:
        """As `AsyncToolbox.find_tools_for_scenario`."""
        return self._wait(self._toolbox.find_tools_for_scenario(scenario, tags, limit))

    def call_tool(
        self,
        tool_id: str,
        input_data: JsonValue = None,
        *,
        use_evolved: bool = True,
        scenario: str | None = None,
        timeout_s: float | None = None,
    ) -> CallResult:
        """As `AsyncToolbox.call_tool`."""
        return self._wait(
            self._toolbox.call_tool(
                tool_id,
                input_data,
                use_evolved=use_evolved,
                scenario=scenario,
                timeout_s=timeout_s,
            )
        )

    def run(
        self,
        tool: Tool,
        input_data: JsonValue = None,
        *,
        scenario: str | None = None,
        timeout_s: float | None = None,
    ) -> CallResult:
        """As `AsyncToolbox.run`."""
        return self._wait(
            self._toolbox.run(tool, input_data, scenario=scenario, timeout_s=timeout_s)
        )

    def mark_tool_failure(
        self,
        tool_id: str,
        scenario: str,
        error_message: str,
        severity: Severity = "medium",
        *,
        version: str | None = None,
        execution_id: str | None = None,
        negative_tags: Sequence[str] = (),
    ) -> MarkedFailure:
        """As `AsyncToolbox.mark_tool_failure`."""
        return self._wait(
            self._toolbox.mark_tool_failure(
                tool_id,
                scenario,
                error_message,
                severity,
                version=version,
                execution_id=execution_id,
                negative_tags=negative_tags,
            )
        )

    def resilient_tool_call(
        self,
        scenario: str,
        input_data: JsonValue = None,
        tags: Sequence[str] | None = None,
        max_attempts: int = 5,
        *,
        may_repeat: bool = False,
        timeout_s: float | None = None,
    ) -> ResilientResult:
        """As `AsyncToolbox.resilient_tool_call`."""
        return self._wait(
            self._toolbox.resilient_tool_call(
                scenario,
                input_data,
                tags,
                max_attempts,
                may_repeat=may_repeat,
                timeout_s=timeout_s,
            )
        )

    def evolve_tool(
        self,
        tool_id: str,
        reason: str,
        mutation_hint: str = "",
        scenario: str | None = None,
        *,
        failures: Sequence[PastFailure] = (),
    ) -> EvolutionResult:
        """As `AsyncToolbox.evolve_tool`."""
        return self._wait(
            self._toolbox.evolve_tool(tool_id, reason, mutation_hint, scenario, failures=failures)
        )

    async def _end(self) -> None:
        """End what runs on the loop, the connections of executors included."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if self._client is not None:
            await self._client.close()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        with self._lock:
            running = self._submit(work)
        try:
            return running.result()
        except CancelledError as error:
            raise RuntimeError("this toolbox was closed while the call ran") from error
        except BaseException:
            running.cancel()  # also when the caller is interrupted: the tool is not left running
            raise

    def _submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        problem = None
        if self._closing:
            problem = "this toolbox has been closed"
        elif threading.current_thread() is self._thread:
            problem = (
                "a coroutine that runs on this toolbox's loop cannot wait for the toolbox; make "
                "the tool a plain function, or give it an AsyncToolbox"
            )
        if problem is not None:
            work.close()
            raise RuntimeError(problem)
        return asyncio.run_coroutine_threadsafe(work, self._loop)
