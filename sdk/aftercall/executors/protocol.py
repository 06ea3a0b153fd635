"""What an executor is."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from aftercall.json_values import JsonObject, JsonValue, make_json_value
from aftercall.models.tools import Tool
from aftercall.outcomes import Outcome

DEFAULT_TIMEOUT_S = 60.0
"""Seconds that a tool may take when nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class ExecutorResult:
    """What a tool returned; `details` tell how, such as what it wrote to standard error.

    `status` is the tool's own word for its success, such as `success_no_parse`.
    """

    value: JsonValue
    details: JsonObject = field(default_factory=dict)
    status: str | None = None


def result_of(returned: object, details: JsonObject | None = None) -> ExecutorResult:
    """What a tool returned, made plain JSON: an `Outcome`, or anything else (`Outcome.coerce`).

    Raises:
        ToolFailedError: it returned a typed error.
    """
    outcome = Outcome.coerce(returned)
    return ExecutorResult(make_json_value(outcome.unwrap()), details or {}, outcome.status)


class Executor(Protocol):
    """Runs tools of some kind.

    A tool's definition comes from a registry that others may write. So an executor takes what it
    says as data: it picks among what was allowed on this machine, and never widens that.
    """

    def fits(self, tool: Tool) -> bool:
        """Whether this executor is the one for the tool; it may still refuse to run it."""

    async def execute(
        self, tool: Tool, input_data: JsonValue, *, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> ExecutorResult:
        """Run the tool.

        Args:
            tool: the very version to run.
            input_data: an object of parameters, or any other JSON value as the only input; None
                is no input.
            timeout_s: longest time in seconds.

        Raises:
            ToolFailedError: the tool failed, or was rejected before it ran (`ran` is False).
            ToolRefusedError: this machine does not run it.
        """


@runtime_checkable
class Scripted(Protocol):
    """An executor whose tools are files of this machine, which can be evolved."""

    def script_of(self, tool: Tool) -> Path | None:
        """The script of a tool as registered, when it is a file here."""


def implementation_of(tool: Tool) -> JsonObject:
    """The implementation as an object; an empty one when it is none."""
    return tool.implementation if isinstance(tool.implementation, dict) else {}


def evolved_file_of(tool: Tool) -> str | None:
    """The file that stands in for the original's script; None for an original."""
    name = implementation_of(tool).get("evolved_file")
    return name if isinstance(name, str) else None


def titled(tool: Tool) -> str:
    """Tool and version for messages: `'translator' 1.1.0`."""
    return f"{tool.tool_id!r} {tool.version}" if tool.version else repr(tool.tool_id)
