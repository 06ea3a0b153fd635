"""What an executor is, several of them as one, and how a run ends that does not succeed.

ToolFailedError            the tool failed; `ran` is False when it was rejected before it ran
├── ToolRefusedError           this machine did not run it: not allowed, not there, no way to run it
│   └── EvolvedFileMissingError    (command) its promoted file is on another machine
└── ContractViolationError     (contracts) it returned, but not what its deliverable asks for
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from aftercall.json_values import JsonObject, JsonValue, make_json_value
from aftercall.models.tools import Tool
from aftercall.outcomes import Outcome, ToolFailedError, make_error
from aftercall.reflection.results import read_exception

DEFAULT_TIMEOUT_S = 60.0
"""Seconds that a tool may take when no one states otherwise."""


@dataclass(frozen=True, slots=True)
class ExecutorResult:
    """What a tool returned; `details` show how, such as what it wrote to standard error.

    `status` is the tool's own word for its success, such as `success_no_parse`.
    """

    value: JsonValue
    details: JsonObject = field(default_factory=dict)
    status: str | None = None


def result_of(returned: object, details: JsonObject | None = None) -> ExecutorResult:
    """Return what a tool returned, made plain JSON.

    An `Outcome`, or anything else (`Outcome.coerce`).
    """
    outcome = Outcome.coerce(returned)
    return ExecutorResult(make_json_value(outcome.unwrap()), details or {}, outcome.status)


class Executor(Protocol):
    """Runs tools of some kind.

    A tool's definition comes from a registry that others may write. So an executor takes what it
    states as data: it picks among what was allowed on this machine, and never widens that.
    """

    def fits(self, tool: Tool) -> bool:
        """Return whether this executor is the one for the tool; it may still refuse to run it."""

    async def execute(
        self, tool: Tool, input_data: JsonValue, *, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> ExecutorResult:
        """Run this very version of a tool.

        The input is an object of parameters, or any other JSON value as the only one; None is no
        input.

        Raises:
            ToolFailedError: the tool failed, or was rejected before it ran (`ran` is False).
            ToolRefusedError: this machine does not run it.
        """


def script_of(executor: Executor | None, tool: Tool) -> Path | None:
    """Return the script of a registered tool whose executor runs files."""
    find: Callable[[Tool], Path | None] = getattr(executor, "script_of", lambda _: None)
    return find(tool)


class Executors:
    """Several executors as one: the first that fits a tool runs it.

    The order matters where two fit: put `PythonExecutor` first, so that a callable registered in
    this process goes before what the registry states.
    """

    def __init__(self, *executors: Executor) -> None:
        self._executors = executors

    def fits(self, tool: Tool) -> bool:
        """Return whether any of them fits."""
        return self._find_fitting(tool) is not None

    def script_of(self, tool: Tool) -> Path | None:
        """Return the script of a tool as registered, when the executor that fits runs one."""
        return script_of(self._find_fitting(tool), tool)

    async def execute(
        self, tool: Tool, input_data: JsonValue, *, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> ExecutorResult:
        """Run the tool by the first that fits; it is refused when none does."""
        if (executor := self._find_fitting(tool)) is None:
            raise ToolRefusedError(
                f"nothing here runs the tool {tool_title(tool)}: register a callable for it, allow "
                "the command of its implementation, or name its MCP server"
            )
        return await executor.execute(tool, input_data, timeout_s=timeout_s)

    def _find_fitting(self, tool: Tool) -> Executor | None:
        return next((each for each in self._executors if each.fits(tool)), None)


def implementation_of(tool: Tool) -> JsonObject:
    """Return the implementation as an object; an empty one for anything else."""
    return tool.implementation if isinstance(tool.implementation, dict) else {}


def evolved_file_of(tool: Tool) -> str | None:
    """Return the file that stands in for the original's script; None for an original."""
    name = implementation_of(tool).get("evolved_file")
    return name if isinstance(name, str) else None


def tool_title(tool: Tool) -> str:
    """Tool and version for messages: `'translator' 1.1.0`."""
    return f"{tool.tool_id!r} {tool.version}" if tool.version else repr(tool.tool_id)


class ToolRefusedError(ToolFailedError):
    """This machine did not run the tool, which states nothing about the tool; see the message."""

    def __init__(self, message: str) -> None:
        super().__init__(make_error("ToolRefused", message), ran=False)


class EvolvedFileMissingError(ToolRefusedError):
    """The promoted version has a file that this machine has not; see the message."""


def last_chars(text: str, most: int) -> str:
    """Return the last `most` characters.

    The first of them is an ellipsis when something was cut off.
    """
    return text if len(text) <= most else "…" + text[-(most - 1) :]


def rejected_input(message: str) -> ToolFailedError:
    """Return the input does not fit the tool; it was not run."""
    return ToolFailedError(make_error("InvalidInput", message), ran=False)


def failure_of(error: BaseException) -> ToolFailedError:
    """Return what a tool raised, as the failure of its call."""
    if isinstance(error, ToolFailedError):
        return error
    if isinstance(error, Exception):
        return ToolFailedError(read_exception(error))
    return ToolFailedError(make_error(type(error).__name__, f"the tool exited: {error}"))


@asynccontextmanager
async def failing_as_tool(timeout_s: float, left: str) -> AsyncIterator[None]:
    """Around a run: what it raises is its failure, and so is that its time is up.

    `left` states what goes on then.
    """
    limit = asyncio.timeout(timeout_s)
    try:
        async with limit:
            yield
    except ToolFailedError:
        raise  # the tool's own words
    except (Exception, SystemExit) as error:
        if isinstance(error, TimeoutError) and limit.expired():
            raise timed_out(timeout_s, left) from error
        raise failure_of(error) from error


def timed_out(timeout_s: float, what: str) -> ToolFailedError:
    """Return no result in time; whatever it did until then is done."""
    return ToolFailedError(make_error("Timeout", f"no result within {timeout_s:g} s; {what}"))
