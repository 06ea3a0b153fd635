"""The toolbox for asyncio code: the fittest tool of a capability, called and recorded.

    toolbox = AsyncToolbox(client, recorder, executors, agent="librarian", promotions=path)
    result = await toolbox.call_tool("translator", {"text": "hola"}, scenario="say it in English")

Without the service these work on: `get_tool` and `call_tool` for definitions of this program
(`tools`), for entries of the promotions file, and for tools that the service named before;
`resilient_tool_call` among those tools, ranked by shared words; `evolve_tool`. Executions wait in
the recorder's spool. Ranking by fitness and marking failures need the service.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from uuid import uuid4

from aftercall.client import AsyncClient
from aftercall.errors import ConfigurationError
from aftercall.evolution import (
    Checks,
    EvolutionResult,
    Evolver,
    PastFailure,
    checks_beside,
)
from aftercall.executors.protocol import DEFAULT_TIMEOUT_S, Executor
from aftercall.json_values import JsonValue
from aftercall.models import (
    BestTool,
    MarkedFailure,
    RankedTool,
    Severity,
    Tool,
    ToolSpec,
)
from aftercall.reflection.reflected_call import ExecutionSink
from aftercall.toolbox.calls import Runner
from aftercall.toolbox.evolving import evolve_here
from aftercall.toolbox.resilient import Question, call_resiliently
from aftercall.toolbox.resolver import LocalTools, Resolver, ServiceLink
from aftercall.toolbox.rules import CallResult, ResilientResult


class AsyncToolbox:
    """Calls tools by capability (seed 002).

    Args:
        client: asks the service; stays open. None does without a service.
        recorder: takes every run over; None records nothing.
        executors: how tools are run here; `Executors(...)` for several ways.
        agent: who calls, as the executions have it.
        session_id: the session that they belong to.
        promotions: the file `.tool_promotions.json` of this machine, which need not be there yet.
            Its entries go before the service's promotions, as their files lie here.
        tools: definitions of this program by tool id; they go before registered ones.
        evolver: writes new versions of tools that fail; None never evolves. It needs `promotions`.
        checks: what a new version of a script must pass; the test beside the script when left out.
        trust_annotations: whether claims of a tool's maker (read-only, idempotent) may make it safe
            to go on to another tool.
        timeout_s: longest run of a tool, in seconds.
        service_timeout_s: longest wait for the service, in seconds; after a wait in vain it is not
            asked for 5 s.
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
        self._promotions = None if promotions is None else Path(promotions)
        if evolver is not None and self._promotions is None:
            raise ConfigurationError(
                "an evolver needs a promotions file: new versions are written beside the tools and "
                "promoted in it; pass promotions"
            )
        self.executors = executors
        self.link = ServiceLink(client, timeout_s=service_timeout_s)
        self.local = LocalTools(tools or {}, self._promotions)
        self.resolver = Resolver(self.link, self.local)
        self.trust_annotations = trust_annotations
        self._runner = Runner(
            executors, recorder, agent=agent, session_id=session_id, timeout_s=timeout_s
        )
        self._evolver = evolver
        self._checks = checks

    @property
    def can_evolve(self) -> bool:
        """Whether there is an evolver."""
        return self._evolver is not None

    async def register_tool(self, tool_id: str, spec: ToolSpec) -> Tool:
        """Define a tool in this program and at the service.

        Raises:
            AftercallError: the service did not take it; in this program it is defined all the same.
        """
        self.local.add(tool_id, spec)
        return await self.link.ask(lambda client: client.put_tool(tool_id, spec))

    async def get_tool(self, tool_id: str, use_evolved: bool = True) -> Tool:  # noqa: FBT001, FBT002  # seed 002
        """A tool: the promoted version, or with `use_evolved=False` the original.

        Raises:
            NotFoundError: there is no such tool.
            ServiceUnreachableError: the service is away, and the tool is not known here.
            ConfigurationError: the promotions file is malformed, or promotes what is not known.
        """
        if use_evolved:
            return await self.resolver.in_force(tool_id)
        return await self.resolver.original(tool_id)

    async def get_best_tool_in_namespace(
        self,
        tool_id: str,
        scenario: str,
        use_rag: bool = True,  # noqa: FBT001, FBT002  # seed 002
    ) -> BestTool:
        """The fittest tool of a namespace, in the version that is in force here.

        Args:
            tool_id: the namespace; the id of a tool is one.
            scenario: what is to be done, in words.
            use_rag: also compare tools like it, and count failures in scenarios like this one.

        Raises:
            NotFoundError: there is no such namespace.
            ServiceUnreachableError: ranking needs the service.
        """
        return await self.resolver.best(tool_id, scenario, use_rag=use_rag)

    async def find_tools_for_scenario(
        self, scenario: str, tags: Sequence[str] | None = None, limit: int = 5
    ) -> list[RankedTool]:
        """Tools for a scenario, best first, in the versions that are in force here.

        Raises:
            ServiceUnreachableError: ranking needs the service.
        """
        return (await self.resolver.find(scenario, tags, limit)).candidates

    async def call_tool(
        self,
        tool_id: str,
        input_data: JsonValue = None,
        *,
        use_evolved: bool = True,
        scenario: str | None = None,
        timeout_s: float | None = None,
    ) -> CallResult:
        """Call a tool in its promoted version; the run is recorded, with its version and scenario.

        Args:
            tool_id: the tool.
            input_data: an object of parameters, or any other JSON value as the only input.
            use_evolved: False calls the original.
            scenario: what is to be done, in words.
            timeout_s: another limit than the toolbox's.

        Raises:
            ToolFailedError: it failed; `execution_id` is the recorded run's.
            ToolRefusedError: this machine does not run it; nothing is recorded.
            AftercallError: as `get_tool`.
        """
        tool = await self.get_tool(tool_id, use_evolved)
        return await self.run(tool, input_data, scenario=scenario, timeout_s=timeout_s)

    async def run(
        self,
        tool: Tool,
        input_data: JsonValue = None,
        *,
        scenario: str | None = None,
        timeout_s: float | None = None,
    ) -> CallResult:
        """Run this very version of a tool, and record it.

        Raises:
            ToolFailedError, ToolRefusedError: as `call_tool`.
        """
        return await self._runner.run(tool, input_data, scenario=scenario, timeout_s=timeout_s)

    async def mark_tool_failure(
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
        """Tell the service that a tool failed in a scenario; see `AsyncClient.mark_failure`.

        Without a version and without an execution, which has one, it is the version in force here.

        Raises:
            NotFoundError: the service has no such tool.
            ServiceUnreachableError: the service is away, and the mark is not kept.
        """
        mark_id = str(uuid4())
        if version is None and execution_id is None:
            version = self.resolver.version_here(tool_id)
        return await self.link.ask(
            lambda client: client.mark_failure(
                tool_id,
                scenario,
                error_message,
                severity=severity,
                version=version,
                execution_id=execution_id,
                negative_tags=negative_tags,
                mark_id=mark_id,
            )
        )

    async def resilient_tool_call(
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
        `may_repeat` says that this does no harm (see `aftercall.toolbox.rules`). Failures are
        marked. When all fail and there is an evolver, the best tool is evolved and its new version
        tried once. How it ended is told in the result; a tool's failure raises nothing.

        Args:
            scenario: what is to be done, in words: 1 to 10,000 characters.
            input_data: the input of whichever tool is tried.
            tags: only tools with at least one of them.
            max_attempts: most tools that are run, 1 to 25, an evolved version not counted.
            may_repeat: doing it twice does no harm.
            timeout_s: longest run of each tool, when not the toolbox's.

        Raises:
            ValueError: the scenario is blank or too long, or `max_attempts` out of range.
            AftercallError: the service refused the question.
        """
        question = Question(
            scenario=scenario,
            input_data=input_data,
            tags=tuple(tags or ()),
            max_attempts=max_attempts,
            may_repeat=may_repeat,
            timeout_s=timeout_s,
        )
        return await call_resiliently(self, question)

    async def evolve_tool(
        self,
        tool_id: str,
        reason: str,
        mutation_hint: str = "",
        scenario: str | None = None,
        *,
        failures: Sequence[PastFailure] = (),
    ) -> EvolutionResult:
        """Make the next minor version of a tool and promote it; see `aftercall.evolution.evolve`.

        Raises:
            ConfigurationError: there is no evolver, or the tool is no script of this machine.
            AftercallError: as `get_tool`.
        """
        if self._evolver is None or self._promotions is None:
            raise ConfigurationError("this toolbox has no evolver; pass evolver and promotions")
        return await evolve_here(
            self,
            await self.resolver.original(tool_id),
            self._evolver,
            promotions_file=self._promotions,
            checks=self._checks,
            reason=reason,
            mutation_hint=mutation_hint,
            scenario=scenario,
            failures=failures,
        )
