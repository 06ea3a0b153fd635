"""Running a version of a tool, and recording that as an execution."""

import logging
import time
from datetime import UTC, datetime
from itertools import count
from typing import Any
from uuid import uuid4

from pydantic import ValidationError

from aftercall.bounded import bounded_json, bounded_text
from aftercall.executors.failures import ToolFailedError, ToolRefusedError
from aftercall.executors.protocol import Executor, ExecutorResult
from aftercall.json_values import JsonObject, JsonValue, clean_text, make_json_value
from aftercall.models import Execution, Tool
from aftercall.reflection.reflected_call import ExecutionSink
from aftercall.reflection.result_reader import read_exception
from aftercall.toolbox.rules import CallResult

_LOGGER = logging.getLogger("aftercall")

_MAX_CONTEXT_CHARS = 4_000


class Runner:
    """Runs tools; every run is handed to the recorder, whether it succeeds or fails.

    Args:
        executors: how tools are run.
        recorder: takes executions over; None records nothing.
        agent: who calls.
        session_id: the session that all runs belong to.
        timeout_s: longest run, in seconds, when a call names no other.
    """

    def __init__(
        self,
        executors: Executor,
        recorder: ExecutionSink | None,
        *,
        agent: str,
        session_id: str | None,
        timeout_s: float,
    ) -> None:
        self._executors = executors
        self._recorder = recorder
        self._agent = clean_text(agent)[:256] or "unknown"
        self._session_id = clean_text(session_id)[:256] if session_id else None
        self._timeout_s = timeout_s
        self._sequence = count()

    async def run(
        self, tool: Tool, input_data: JsonValue, *, scenario: str | None, timeout_s: float | None
    ) -> CallResult:
        """Run this very version of a tool.

        Raises:
            ToolFailedError: it failed; `execution_id` is the recorded execution's, if any.
            ToolRefusedError: this machine does not run it; nothing is recorded.
        """
        run = _Run(input_data)
        try:
            result = await self._executors.execute(
                tool, input_data, timeout_s=self._timeout_s if timeout_s is None else timeout_s
            )
        except ToolRefusedError:
            raise
        except ToolFailedError as error:
            error.execution_id = self._record(run.ended(failure=error), tool, scenario)
            raise
        except Exception as error:
            # An executor of somebody's own, which lets through what a tool raised.
            failure = ToolFailedError(read_exception(error))
            failure.execution_id = self._record(run.ended(failure=failure), tool, scenario)
            raise failure from error
        fields = run.ended(result=result)
        execution_id = self._record(fields, tool, scenario)
        return CallResult(
            result.value, tool, execution_id, fields["duration_ms"], result.details, result.status
        )

    def _record(self, fields: dict[str, Any], tool: Tool, scenario: str | None) -> str | None:
        """Hand a run to the recorder; its id, unless it cannot be recorded."""
        if self._recorder is None:
            return None
        try:
            execution = Execution(
                **fields,
                agent=self._agent,
                server_name=tool.server_name,
                tool_name=tool.name,
                tool_version=tool.version,
                context=bounded_text(scenario, _MAX_CONTEXT_CHARS) if scenario else None,
                session_id=self._session_id,
                sequence=next(self._sequence) if self._session_id else None,
            )
        except ValidationError as error:
            # Recording must not fail a call that worked. Fields are named, values are not.
            names = ", ".join(str(e["loc"]) for e in error.errors(include_input=False))
            _LOGGER.warning("a call of %s could not be recorded: %s", tool.tool_id, names)
            return None
        self._recorder.record(execution)
        return execution.execution_id


class _Run:
    """One run from its beginning on; its parameters are copied, as a tool may change its input."""

    def __init__(self, input_data: JsonValue) -> None:
        self.execution_id = str(uuid4())
        self._timestamp = datetime.now(UTC)
        self._parameters = parameters_of(input_data)
        self._started = time.perf_counter()

    def ended(
        self, *, result: ExecutorResult | None = None, failure: ToolFailedError | None = None
    ) -> dict[str, Any]:
        """The fields of the execution that belong to the run."""
        return {
            "execution_id": self.execution_id,
            "timestamp": self._timestamp,
            "duration_ms": (time.perf_counter() - self._started) * 1000,
            "parameters": self._parameters,
            "outcome": "success" if failure is None else "failure",
            "error": None if failure is None else failure.error,
            "result": None if result is None else bounded_json(result.value),
            "result_status": None if result is None else result.status,
        }


def parameters_of(input_data: JsonValue) -> JsonObject:
    """An input as the parameters of an execution: what is no object stands under `input`."""
    if input_data is None:
        return {}
    made = make_json_value(input_data)
    return made if isinstance(made, dict) else {"input": made}
