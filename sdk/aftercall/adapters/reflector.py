"""What the adapters share: calls with reflection, by either client, with what is known of the tool.

For frameworks that call tools with and without an event loop. Anything that is known includes
whether a tool that failed had begun to run, where its code is known: a function that has done its
work may raise the very words that refuse a call, a validation error of something it looked at, say.
Its traceback shows the one from the other.
"""

import inspect
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from types import CodeType
from typing import Any, TypeAlias, TypedDict, Unpack, cast

from aftercall import reflection
from aftercall.background import in_thread
from aftercall.client import Client
from aftercall.errors import ConfigurationError
from aftercall.json_values import JsonObject, bounded_text, make_json_value
from aftercall.models.base import WireModel
from aftercall.models.calls import Execution, ExecutionError, SuggestResponse, ToolAnnotations
from aftercall.recording.recorder import Recorder

AnySuggester: TypeAlias = reflection.Suggester | reflection.AsyncSuggester
"""A `Client` or an `AsyncClient`."""
META_KEY = "aftercall"
"""Under this key of a result's metadata stands what Aftercall did."""
_logger = logging.getLogger(__name__)
_MAX_CAUSES = 5
"""Frameworks wrap what a function raised once or twice; causes may be a ring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTool:
    """What an adapter knows of a tool; looked up only when a call of it has failed.

    What `schema` raises is taken for None. Claims that are None are left to those registered at the
    service. Where the tool's own code ran in the failed attempt (`has_run`), nothing in the words
    of its error makes a retry safe.
    """

    schema: Callable[[], object] = lambda: None
    annotations: ToolAnnotations | None = None
    has_run: Callable[[], bool] = lambda: False

    def ask_about(
        self, client: AnySuggester, execution: Execution, annotations: ToolAnnotations | None
    ) -> Any:
        """Return the client's answer, asked with the tool's schema and claims."""
        return client.suggest(
            self._describe_run(execution),
            annotations=self.annotations if annotations is None else annotations,
        )

    def _describe_run(self, execution: Execution) -> Execution:
        if (error := execution.error) is not None and self.has_run():
            ran = error.model_copy(update={"details": {**error.details, "ran": True}})
            execution = execution.model_copy(update={"error": ran})
        try:
            schema = make_json_value(self.schema())
        # A foreign schema may fail in any way; the question stands.
        except Exception:  # noqa: BLE001
            return execution
        if not isinstance(schema, dict):
            return execution
        return execution.model_copy(update={"input_schema": schema})


class ReflectionOptions(TypedDict, total=False):
    """Options that all adapters have.

    Attributes:
        client: asks `/suggest`: a `Client`, or an `AsyncClient` where every call is awaited; this
            process's own, by `AFTERCALL_URL` and `AFTERCALL_API_KEY`, when None.
        recorder: takes every attempt; this process's own when None.
        server_name: what the tools belong to.
        policy: limits; `ReflectionPolicy()` when None.
        rates: failure counts per tool, to share with others; own ones when None.
        observers: look on, attempt by attempt (`aftercall.events`, `aftercall.tracing`).
    """

    client: AnySuggester | None
    recorder: reflection.ExecutionSink | None
    server_name: str | None
    policy: reflection.ReflectionPolicy | None
    rates: reflection.FailureRates | None
    observers: Sequence[reflection.CallObserver]


@cache
def _open_process(_process: int) -> tuple[Client, Recorder] | None:
    """Return the client and the recorder of this process; a forked one makes its own."""
    try:
        return Client(retries=0), Recorder()
    except ConfigurationError as error:
        _logger.warning("calls are not recorded: %s", error)
        return None


class _OwnService:
    """Opened at the first call, and never in the way of it."""

    def suggest(self, *question: Any, **more: Any) -> SuggestResponse:
        """Ask as `Client.suggest` does; the tool's own error comes back, whatever it raises."""
        if (opened := _open_process(os.getpid())) is None:
            raise ConfigurationError("the service's address in the environment is wrong")
        return opened[0].suggest(*question, **more)

    def record(self, execution: Execution) -> None:
        if (opened := _open_process(os.getpid())) is not None:
            opened[1].record(execution)


_OWN = _OwnService()


class Reflector:
    """Calls tools with reflection. Arguments are those of `ReflectionOptions`."""

    def __init__(self, **options: Unpack[ReflectionOptions]) -> None:
        self.client: AnySuggester = options.get("client") or _OWN
        self.recorder: reflection.ExecutionSink = options.get("recorder") or _OWN
        self.server_name = options.get("server_name")
        self.policy = options.get("policy") or reflection.ReflectionPolicy()
        self.rates = options.get("rates") or reflection.FailureRates()
        self.observers = options.get("observers", ())

    async def call_async(
        self, call: Callable[[JsonObject], Awaitable[Any]], tool: "ToolSource", **facts: Any
    ) -> reflection.ReflectedResult[Any]:
        """Make one call with reflection.

        `facts` are arguments of `call_with_reflection`, and of `_call_settings`.
        """
        return await reflection.call_with_reflection(
            call, client=AsyncAsking(self.client, tool), **self._call_settings(**facts)
        )

    def call(
        self, call: Callable[[JsonObject], Any], tool: KnownTool, **facts: Any
    ) -> reflection.ReflectedResult[Any]:
        """Make one call without an event loop; see `call_async`."""
        return reflection.call_with_reflection_sync(
            call, client=Asking(self.client, tool), **self._call_settings(**facts)
        )

    def _call_settings(
        self,
        *,
        is_retried: bool = True,
        keeps_values: bool = False,
        patience_s: float = 0.0,
        **facts: Any,
    ) -> dict[str, Any]:
        # With patience a service that is being started is waited for.
        timeout_s = self.policy.suggest_timeout_s + patience_s
        policy = replace(self.policy, suggest_timeout_s=timeout_s) if patience_s else self.policy
        policy = replace(policy, keeps_values=True) if keeps_values else policy
        return {
            "recorder": self.recorder,
            "server_name": self.server_name,
            "policy": policy if is_retried else replace(policy, max_attempts=1),
            "rates": self.rates,
            "observers": self.observers,
            **facts,
        }


ToolSource: TypeAlias = KnownTool | Callable[[], Awaitable[KnownTool]]
"""What is known of a tool, or what looks it up when a question is asked."""


@dataclass(frozen=True, slots=True)
class AsyncAsking:
    """Asks from a coroutine; a `Client` is asked in a thread that nothing else waits for.

    Not one of the event loop's own: a service that hangs would take the threads that tools need.
    """

    client: AnySuggester
    tool: ToolSource

    async def suggest(
        self, execution: Execution, *, annotations: ToolAnnotations | None = None
    ) -> SuggestResponse:
        """Ask as `KnownTool.ask_about` does."""
        tool = self.tool if isinstance(self.tool, KnownTool) else await self.tool()
        ask = partial(tool.ask_about, self.client, execution, annotations)
        is_async = inspect.iscoroutinefunction(self.client.suggest)
        return cast("SuggestResponse", await (ask() if is_async else in_thread(ask)))


@dataclass(frozen=True, slots=True)
class Asking:
    """Asks from code without an event loop; a `ConfigurationError` where it is an `AsyncClient`."""

    client: AnySuggester
    tool: KnownTool

    def __post_init__(self) -> None:
        if inspect.iscoroutinefunction(self.client.suggest):
            raise ConfigurationError(
                "a tool is called without an event loop, and an AsyncClient cannot be asked then: "
                "give a Client, which serves both ways"
            )

    def suggest(
        self, execution: Execution, *, annotations: ToolAnnotations | None = None
    ) -> SuggestResponse:
        """Ask as `KnownTool.ask_about` does."""
        return cast("SuggestResponse", self.tool.ask_about(self.client, execution, annotations))


def claims_in(metadata: object) -> ToolAnnotations | None:
    """MCP's annotations among a tool's metadata (`readOnlyHint` ...); None when none is claimed."""
    if not isinstance(metadata, dict):
        return None
    try:
        claims = ToolAnnotations.model_validate(metadata)
    except ValueError:  # not booleans: safety hangs on them, so nothing is read into them
        return None
    return claims if claims.model_dump(exclude_none=True) else None


def text_with_advice(error: ExecutionError, advice: str) -> str:
    """Return what a model reads of a failure: the tool's own error first, then the suggestions."""
    return with_advice(f"{error.type}: {error.message}".removesuffix(": "), advice)


def with_advice(text: str, advice: str) -> str:
    """Return a text with the suggestions after it, if there are any."""
    return f"{text}\n\n{advice}" if advice else text


def repair_facts(reflected: reflection.ReflectedResult[Any]) -> JsonObject:
    """Return what a repaired call's result states of its repair, under `META_KEY`; plain JSON."""
    first = reflected.attempts[0].error
    followed = dump_model(reflected.followed) if reflected.followed else {}
    kept = ("confidence", "suggestionId", "action", "evidence", "lesson")
    account = {"account": followed["account"]} if "account" in followed else {}
    return {
        "repaired": True,
        "note": reflected.note,
        "attempts": len(reflected.attempts),
        **{name: followed.get(name) for name in kept},
        **account,
        "changes": [dump_model(change) for change in reflected.attempts[-1].changes],
        "firstError": bounded_text(first.message, 500) if first else None,
        "timeToRepairMs": reflected.time_to_repair_ms,
    }


def dump_model(model: WireModel) -> JsonObject:
    """Return a model in the wire's names."""
    return model.model_dump(mode="json", by_alias=True)


def code_of(function: Callable[..., Any]) -> CodeType | None:
    """Return the innermost code behind decorators, a `partial`, a method or a callable object."""
    inner: Any = inspect.unwrap(function)
    while hasattr(inner, "func"):
        inner = inspect.unwrap(inner.func)
    if not hasattr(inner, "__code__"):
        inner = getattr(inner, "__call__", None)  # noqa: B004  # asks what it is
    code = getattr(inner, "__code__", None)
    return code if isinstance(code, CodeType) else None


def has_run(code: CodeType | None, error: BaseException) -> bool:
    """Return whether the error, or what caused it, came out of the code.

    False without one.
    """
    cause: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        trace = cause.__traceback__ if cause is not None else None
        while code is not None and trace is not None:
            if trace.tb_frame.f_code is code:
                return True
            trace = trace.tb_next
        cause = cause.__cause__ if cause is not None else None
    return False
