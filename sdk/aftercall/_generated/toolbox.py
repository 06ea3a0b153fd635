"""The toolbox for synchronous programs."""

# Made by `make generate` from toolbox/async_toolbox.py; edit that.
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from aftercall import models
from aftercall.background import BackgroundLoop
from aftercall.client import AsyncClient
from aftercall.evolution import Checks, EvolutionResult, Evolver, PastFailure, checks_beside
from aftercall.executors import protocol
from aftercall.json_values import JsonValue
from aftercall.reflection.reflected_call import ExecutionSink
from aftercall.toolbox.async_toolbox import AsyncToolbox
from aftercall.toolbox.rules import CallResult, ResilientResult


class Toolbox:
    """The methods of `AsyncToolbox`, without `await`; a context manager.

    It may be used from several threads, whose calls run side by side, and from tools that are plain
    functions; not from tools that are coroutines, as those run on its loop.

    Its `client`, an `AsyncClient` that nothing else uses, is closed with it.
    """

    def __init__(
        self,
        client: AsyncClient | None,
        recorder: ExecutionSink | None,
        executors: protocol.Executor,
        *,
        agent: str,
        session_id: str | None = None,
        promotions: Path | str | None = None,
        tools: Mapping[str, models.ToolSpec] | None = None,
        evolver: Evolver | None = None,
        checks: Callable[[Path], Checks | None] = checks_beside,
        trust_annotations: bool = True,
        timeout_s: float = protocol.DEFAULT_TIMEOUT_S,
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
        )
        self._client = client
        self._loop = BackgroundLoop("aftercall-toolbox")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the calls that still run, close the client and the loop; twice does nothing.

        Raises:
            RuntimeError: from a tool's own coroutine, or in a thread that waits for a call.
        """
        self._loop.close(None if self._client is None else self._client.close)

    def register_tool(self, tool_id: str, spec: models.ToolSpec) -> models.Tool:
        """Define a tool in this program and, which may fail by itself, at the service."""
        return self._loop.run(self._toolbox.register_tool(tool_id, spec))

    def get_tool(self, tool_id: str, use_evolved: bool = True) -> models.Tool:
        """Return a tool: the promoted version, or with `use_evolved=False` the original."""
        return self._loop.run(self._toolbox.get_tool(tool_id, use_evolved))

    def get_best_tool_in_namespace(
        self, tool_id: str, scenario: str, use_rag: bool = True
    ) -> models.BestTool:
        """Return the fittest tool of a namespace, in the version that is in force here.

        The id of a tool is a namespace too. With `use_rag` tools like it are compared too, and
        failures in scenarios like this one count.
        """
        return self._loop.run(self._toolbox.get_best_tool_in_namespace(tool_id, scenario, use_rag))

    def find_tools_for_scenario(
        self, scenario: str, tags: Sequence[str] | None = None, limit: int = 5
    ) -> list[models.RankedTool]:
        """Tools for a scenario, best first, in the versions that are in force here."""
        return self._loop.run(self._toolbox.find_tools_for_scenario(scenario, tags, limit))

    def call_tool(
        self,
        tool_id: str,
        input_data: JsonValue = None,
        *,
        use_evolved: bool = True,
        scenario: str | None = None,
        timeout_s: float | None = None,
    ) -> CallResult:
        """Call a tool in its promoted version; the run is recorded, with its version and scenario.

        `input_data` is an object of parameters, or any other JSON value as the only input. With
        `use_evolved=False` the original is called. Raises as `Executor.execute`; the `execution_id`
        of a `ToolFailedError` is the recorded run's, and a refused tool is not recorded.

        A version that was promoted on another machine, whose file is not on this one, gives way to
        the original; `fallback` of the result and the log say so.
        """
        return self._loop.run(
            self._toolbox.call_tool(
                tool_id, input_data, use_evolved=use_evolved, scenario=scenario, timeout_s=timeout_s
            )
        )

    def run(
        self,
        tool: models.Tool,
        input_data: JsonValue = None,
        *,
        scenario: str | None = None,
        timeout_s: float | None = None,
    ) -> CallResult:
        """Run this very version of a tool, and record it; raises as `call_tool`."""
        return self._loop.run(
            self._toolbox.run(tool, input_data, scenario=scenario, timeout_s=timeout_s)
        )

    def mark_tool_failure(
        self,
        tool_id: str,
        scenario: str,
        error_message: str,
        severity: models.Severity = "medium",
        *,
        version: str | None = None,
        execution_id: str | None = None,
        negative_tags: Sequence[str] = (),
    ) -> models.MarkedFailure:
        """Report to the service that a tool failed in a scenario; see `AsyncClient.mark_failure`.

        Without a version and without an execution, which has one, it is the version in force here.
        """
        return self._loop.run(
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
        """Try the tools that fit a scenario, best first, until one succeeds.

        After a failure that may have left an effect behind no other tool is tried, unless
        `may_repeat` states that this does no harm (see `aftercall.toolbox.rules`). Failures are
        marked. When all fail and there is an evolver, the best tool is evolved and its new version
        tried once. How it ended is shown in the result; a tool's failure raises nothing.

        Only tools with at least one of the `tags` are tried, and at most `max_attempts` (1 to 25)
        of them, an evolved version not counted, each for `timeout_s` seconds. A scenario has 1 to
        10,000 characters.

        Raises:
            ValueError: the scenario is blank or too long, or `max_attempts` out of range.
        """
        return self._loop.run(
            self._toolbox.resilient_tool_call(
                scenario, input_data, tags, max_attempts, may_repeat=may_repeat, timeout_s=timeout_s
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
        """Make a tool's next minor version and promote it; see `aftercall.evolution.evolve`."""
        return self._loop.run(
            self._toolbox.evolve_tool(tool_id, reason, mutation_hint, scenario, failures=failures)
        )
