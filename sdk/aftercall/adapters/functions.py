"""Reflection for plain functions, as decorators (no extra).

    @reflecting(client=client, recorder=recorder, agent="librarian")
    def rag_query(query: str, topK: int = 5) -> list[str]: ...

    @recorded(recorder=recorder, agent="librarian")
    async def fetch(url: str) -> str: ...

Both keep the function's signature and serve plain and `async` functions. What the function raises
is what the caller gets; where there are suggestions they are a note of the exception.

Recorded are the arguments that the caller gave, by name. Defaults are left out: that something was
left out is what there is to learn, and a default is not the caller's choice. `self` and `cls` are
left out as well, and so is what `unrecorded` names.
"""

import inspect
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

from aftercall.adapters.asking import AnySuggester, Asking, AsyncAsking, KnownTool
from aftercall.adapters.functions_arguments import CallSignature
from aftercall.adapters.running import Running, code_of
from aftercall.errors import ConfigurationError
from aftercall.json_values import JsonObject
from aftercall.models.calls import Execution, SuggestResponse, ToolAnnotations
from aftercall.reflection import (
    CallObserver,
    ExecutionSink,
    FailureRates,
    ReflectedResult,
    ReflectionPolicy,
    ResultReader,
    call_with_reflection,
    call_with_reflection_sync,
)
from aftercall.reflection.results import OutcomeReader

_logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

Said: TypeAlias = str | Callable[[], str | None] | None
"""A text, or a function that is asked for it at every call (a `ContextVar.get`, say)."""


def reflecting(
    *,
    client: AnySuggester,
    recorder: ExecutionSink,
    agent: str = "unknown",
    name: str | None = None,
    server_name: str | None = None,
    session_id: Said = None,
    context: Said = None,
    annotations: ToolAnnotations | None = None,
    may_repeat: bool = False,
    unrecorded: Collection[str] = (),
    policy: ReflectionPolicy | None = None,
    rates: FailureRates | None = None,
    reader: ResultReader[Any] | None = None,
    observers: Sequence[CallObserver] = (),
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: every call is recorded, a failed one asked about and retried where that is safe.

    A plain function waits in its own thread while the service is asked and before a retry, so in a
    program with an event loop it is to be called as before: in a thread.

    Args:
        client: asks `/suggest`: a `Client` for all functions, an `AsyncClient` for `async` ones.
        recorder: takes every attempt.
        agent: who calls.
        name: the tool's name; the function's when None.
        server_name: what the tool belongs to.
        session_id: calls of one session are looked at together for repairs.
        context: what the agent is trying to do.
        annotations: claims about the tool; those registered at the service when None.
        may_repeat: calling twice does no harm.
        unrecorded: parameters that are passed on and never recorded, asked about or changed, such
            as a connection. With others whose values are not JSON, a call is recorded (as text) and
            not retried.
        policy: limits; `ReflectionPolicy()` when None.
        rates: failure counts, shared by all calls; needed for `policy.min_failure_rate`.
        reader: how a result that tells a failure is recognised.
        observers: look on, attempt by attempt.

    Raises:
        ConfigurationError: when it is put on what cannot be called again with other arguments: a
            generator, a class, a `staticmethod` (put it below that one); or an `AsyncClient` is to
            serve a plain function; or `unrecorded` names no parameter.
    """
    setup = _Setup(
        client=client,
        recorder=recorder,
        agent=agent,
        name=name,
        server_name=server_name,
        session_id=session_id,
        context=context,
        annotations=annotations,
        may_repeat=may_repeat,
        unrecorded=frozenset(unrecorded),
        policy=policy or ReflectionPolicy(),
        rates=rates,
        reader=reader or _FunctionReader(),
        observers=observers,
    )
    return lambda function: _wrapped(function, setup)


def recorded(
    *,
    recorder: ExecutionSink,
    agent: str = "unknown",
    name: str | None = None,
    server_name: str | None = None,
    session_id: Said = None,
    context: Said = None,
    unrecorded: Collection[str] = (),
    reader: ResultReader[Any] | None = None,
    observers: Sequence[CallObserver] = (),
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: every call is recorded, and nothing else. Arguments as for `reflecting`."""
    return reflecting(
        client=_Nobody(),
        recorder=recorder,
        agent=agent,
        name=name,
        server_name=server_name,
        session_id=session_id,
        context=context,
        unrecorded=unrecorded,
        policy=ReflectionPolicy(disabled_agents=frozenset({agent})),  # recorded and never asked
        reader=reader,
        observers=observers,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setup:
    client: AnySuggester
    recorder: ExecutionSink
    agent: str
    name: str | None
    server_name: str | None
    session_id: Said
    context: Said
    annotations: ToolAnnotations | None
    may_repeat: bool
    unrecorded: frozenset[str]
    policy: ReflectionPolicy
    rates: FailureRates | None
    reader: ResultReader[Any]
    observers: Sequence[CallObserver] = field(default=())

    def facts(self, tool_name: str, parameters: JsonObject) -> dict[str, Any]:
        """What both ways of calling take."""
        return {
            "tool_name": tool_name,
            "parameters": parameters,
            "agent": self.agent,
            "recorder": self.recorder,
            "server_name": self.server_name,
            "session_id": _now(self.session_id),
            "context": _now(self.context),
            "may_repeat": self.may_repeat,
            "policy": self.policy,
            "rates": self.rates,
            "reader": self.reader,
            "observers": self.observers,
            "raise_on_failure": True,
        }


def _wrapped(function: Callable[P, R], setup: _Setup) -> Callable[P, R]:
    _check(function)
    signature = CallSignature(function, setup.unrecorded)
    tool_name = setup.name or _name_of(function)
    tool = KnownTool(schema=signature.schema, annotations=setup.annotations)

    code = code_of(function)

    if _is_coroutine_function(function):
        awaited = cast("Callable[..., Any]", function)

        @wraps(function)
        async def async_wrapper(*args: P.args, **kwargs: P.kwargs) -> Any:
            given, running = signature.named(args, kwargs), Running(code)

            async def call(parameters: JsonObject) -> Any:
                with running:
                    if parameters is given:
                        return await awaited(*args, **kwargs)
                    new_args, new_kwargs = signature.corrected(args, kwargs, parameters)
                    return await awaited(*new_args, **new_kwargs)

            asking = AsyncAsking(setup.client, replace(tool, has_run=running.has_run))
            facts = setup.facts(tool_name, given)
            return (await call_with_reflection(call, client=asking, **facts)).value()

        return cast("Callable[P, R]", async_wrapper)

    Asking(setup.client, tool)  # refuses a client that cannot be asked from here

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        given, running = signature.named(args, kwargs), Running(code)

        def call(parameters: JsonObject) -> R:
            with running:
                if parameters is given:
                    return function(*args, **kwargs)
                new_args, new_kwargs = signature.corrected(args, kwargs, parameters)
                return cast("Callable[..., R]", function)(*new_args, **new_kwargs)

        asking = Asking(setup.client, replace(tool, has_run=running.has_run))
        facts = setup.facts(tool_name, given)
        reflected: ReflectedResult[R] = call_with_reflection_sync(call, client=asking, **facts)
        if not reflected.attempts:
            warn_once()
        return reflected.value()

    @cache
    def warn_once() -> None:
        _logger.warning(
            "calls of %s are not recorded: what it returns is still to be awaited or gone through; "
            "decorate the `async` function itself, or one that returns a list",
            tool_name,
        )

    return wrapper


def _name_of(function: Any) -> str:
    """Of a function, of that in a `partial`, or of a callable object's class."""
    named = getattr(function, "func", function)
    return str(getattr(named, "__name__", None) or type(named).__name__)


def _is_coroutine_function(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  # asks what it is, not whether it is there
    )


def _check(function: object) -> None:
    """Refuse what is not one call with one end."""
    if isinstance(function, staticmethod | classmethod | property):
        kind = type(function).__name__
        raise ConfigurationError(f"put the decorator below @{kind}, on the function itself")
    if inspect.isclass(function) or not callable(function):
        raise ConfigurationError(f"{function!r} is no function; decorate the function that does it")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigurationError(
            f"{getattr(function, '__name__', function)!r} is a generator: it ends after its caller "
            "has seen a part, so it can be neither judged nor called again; decorate a function "
            "that returns a list"
        )


def _now(said: Said) -> str | None:
    return said() if callable(said) else said


class _FunctionReader(OutcomeReader):
    """As for any callable; what is still to be awaited or gone through is no outcome yet."""

    def is_outcome(self, result: object) -> bool:
        """False for an awaitable or a generator that a plain function returned."""
        return not (
            inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result)
        )


class _Nobody:
    """Stands where a client is asked for and none is used."""

    def suggest(
        self,
        execution: Execution,
        *,
        limit: int = 3,
        annotations: ToolAnnotations | None = None,
    ) -> SuggestResponse:
        del execution, limit, annotations
        raise ConfigurationError("@recorded asks nobody; use @reflecting")
