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
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast, get_type_hints

from pydantic import TypeAdapter

from aftercall.adapters.questions import (
    AnySuggester,
    Asking,
    AsyncAsking,
    KnownTool,
    code_of,
    has_run,
)
from aftercall.errors import ConfigurationError
from aftercall.json_values import JsonObject, JsonValue
from aftercall.models.calls import SuggestResponse, ToolAnnotations
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

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BOUND = ("self", "cls")

Stated: TypeAlias = str | Callable[[], str | None] | None
"""A text, or a function that is asked for it at every call (a `ContextVar.get`, say)."""


def reflecting(
    *,
    client: AnySuggester,
    recorder: ExecutionSink,
    agent: str = "unknown",
    name: str | None = None,
    server_name: str | None = None,
    session_id: Stated = None,
    context: Stated = None,
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
        reader: how a result that is a failure is recognised.
        observers: look on, attempt by attempt.

    Raises:
        ConfigurationError: when it is put on what cannot be called again with other arguments: a
            generator, a class, a `staticmethod` (put it below that one); or an `AsyncClient` is to
            serve a plain function; or `unrecorded` names no parameter.
    """
    recording = {
        "agent": agent,
        "recorder": recorder,
        "server_name": server_name,
        "may_repeat": may_repeat,
        "policy": policy or ReflectionPolicy(),
        "rates": rates,
        "reader": reader or _FunctionReader(),
        "observers": observers,
        "raise_on_failure": True,
    }

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        _check(function)
        signature = _CallSignature(function, frozenset(unrecorded))
        tool_name = name or _name_of(function)

        def facts(parameters: JsonObject) -> dict[str, Any]:
            """What both ways of calling take."""
            return {
                **recording,
                "tool_name": tool_name,
                "parameters": parameters,
                "session_id": _now(session_id),
                "context": _now(context),
            }

        wrap = _async_wrapper if _is_coroutine_function(function) else _plain_wrapper
        tool = KnownTool(schema=signature.schema, annotations=annotations)
        return cast("Callable[P, R]", wrap(function, client, signature, tool, facts))

    return decorate


_FactsOf = Callable[[JsonObject], dict[str, Any]]


def _async_wrapper(
    function: Callable[..., Any],
    client: AnySuggester,
    signature: "_CallSignature",
    tool: KnownTool,
    facts: _FactsOf,
) -> Callable[..., Any]:
    code = code_of(function)

    @wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        given, attempt = signature.named(args, kwargs), _Attempt(code)

        async def call(parameters: JsonObject) -> Any:
            with attempt:
                new_args, new_kwargs = signature.corrected(args, kwargs, given, parameters)
                return await function(*new_args, **new_kwargs)

        asking = AsyncAsking(client, replace(tool, has_run=lambda: attempt.has_run))
        return (await call_with_reflection(call, client=asking, **facts(given))).value()

    return wrapper


def _plain_wrapper(
    function: Callable[..., Any],
    client: AnySuggester,
    signature: "_CallSignature",
    tool: KnownTool,
    facts: _FactsOf,
) -> Callable[..., Any]:
    code = code_of(function)
    Asking(client, tool)  # refuses a client that cannot be asked from here

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        given, attempt = signature.named(args, kwargs), _Attempt(code)

        def call(parameters: JsonObject) -> Any:
            with attempt:
                new_args, new_kwargs = signature.corrected(args, kwargs, given, parameters)
                return function(*new_args, **new_kwargs)

        asking = Asking(client, replace(tool, has_run=lambda: attempt.has_run))
        every = facts(given)
        reflected: ReflectedResult[Any] = call_with_reflection_sync(call, client=asking, **every)
        if not reflected.attempts:
            warn_once(every["tool_name"])
        return reflected.value()

    @cache
    def warn_once(tool_name: str) -> None:
        _logger.warning(
            "calls of %s are not recorded: what it returns is still to be awaited or gone through; "
            "decorate the `async` function itself, or one that returns a list",
            tool_name,
        )

    return wrapper


def recorded(
    *,
    recorder: ExecutionSink,
    agent: str = "unknown",
    name: str | None = None,
    server_name: str | None = None,
    session_id: Stated = None,
    context: Stated = None,
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


class _Nobody:
    """Stands where a client is asked for and none is used."""

    def suggest(self, *_: object, **__: object) -> SuggestResponse:
        raise ConfigurationError("@recorded asks nobody; use @reflecting")


class _Attempt:
    """Around each attempt of a call: whether the function's own code was reached in the latest."""

    def __init__(self, code: Any) -> None:
        self._code = code
        self.has_run = False

    def __enter__(self) -> None:
        self.has_run = False

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # What it returned it has run for, whatever that says of a failure.
        self.has_run = error is None or has_run(self._code, error)


def _name_of(function: Any) -> str:
    """Of a function, of that in a `partial`, or of a callable object's class."""
    named = getattr(function, "func", function)
    return str(getattr(named, "__name__", None) or type(named).__name__)


def _is_coroutine_function(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        # Asks what it is, not whether it is there.
        getattr(function, "__call__", None)  # noqa: B004
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


def _now(stated: Stated) -> str | None:
    return stated() if callable(stated) else stated


class _FunctionReader(OutcomeReader):
    """As for any callable; what is still to be awaited or gone through is no outcome yet."""

    def is_outcome(self, result: object) -> bool:
        """False for an awaitable or a generator that a plain function returned."""
        return not (
            inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result)
        )


class _CallSignature:
    """A function's arguments as JSON parameters, there and back, and its schema.

    Args:
        function: a function or method as it is defined; a first parameter `self` or `cls` is taken
            for what the call is bound to.
        unrecorded: parameters that are left out.

    Raises:
        ConfigurationError: `unrecorded` names no parameter, or the function has no signature.
    """

    def __init__(self, function: Callable[..., Any], unrecorded: frozenset[str]) -> None:
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"{function!r} has no signature; wrap it in a function that has one"
            ) from error
        self._function = function
        is_bound = bool(parameters) and parameters[0].name in _BOUND
        self._bound = 1 if is_bound else 0
        self._parameters = parameters[self._bound :]
        self._positional = [p for p in self._parameters if p.kind in _POSITIONAL]
        spread = [p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL]
        self._spread = spread[0] if spread else None
        self._unrecorded = unrecorded
        unknown = unrecorded - {p.name for p in self._parameters}
        takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in self._parameters)
        if unknown and not takes_any:
            raise ConfigurationError(
                f"unrecorded names {', '.join(sorted(unknown))}, which the function does not take"
            )
        self._schema: JsonObject | None = None

    def named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> JsonObject:
        """What the caller gave, by name, and nothing else; also where it does not fit."""
        return {n: v for n, v in self._all(args, kwargs).items() if n not in self._unrecorded}

    def corrected(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        named: JsonObject,
        parameters: JsonObject,
    ) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """The arguments for a call with other parameters than `named`; the rest as it was."""
        if parameters is named:
            return args, kwargs
        before = self._all(args, kwargs)
        given: dict[str, Any] = {
            **parameters,
            **{name: before[name] for name in self._unrecorded if name in before},
        }
        spread = given.pop(self._spread, []) if self._spread else []
        if not isinstance(spread, list):
            spread = [spread]
        positional = []
        for each in self._positional:
            by_position = bool(spread) or each.kind is inspect.Parameter.POSITIONAL_ONLY
            if not by_position or each.name not in given:
                break
            positional.append(given.pop(each.name))
        return [*args[: self._bound], *positional, *spread], given

    def schema(self) -> JsonObject:
        """JSON Schema of the parameters, from the type hints; other hints are left open."""
        if self._schema is None:
            self._schema = self._made_schema()
        return self._schema

    def _all(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        names = [p.name for p in self._positional]
        given = args[self._bound :]
        named: dict[str, Any] = dict(zip(names, given, strict=False))
        beyond = list(given[len(names) :])
        if beyond:  # more than it takes, unless it takes any number: it says so itself
            named[self._spread or "args"] = beyond
        return {**named, **kwargs}

    def _made_schema(self) -> JsonObject:
        hints = _hints(self._function)
        properties: JsonObject = {}
        shared: JsonObject = {}
        required: list[JsonValue] = []
        for each in self._parameters:
            if each.name in self._unrecorded or each.kind is inspect.Parameter.VAR_KEYWORD:
                continue
            hint = hints.get(each.name, Any)
            if each.kind is inspect.Parameter.VAR_POSITIONAL:
                hint = list[hint]  # type: ignore[valid-type]  # a hint at run time is a value
            elif each.default is inspect.Parameter.empty:
                required.append(each.name)
            schema = _schema_of(hint)
            shared |= schema.pop("$defs", {})
            properties[each.name] = schema
        takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in self._parameters)
        return {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": takes_any,
            **({"$defs": shared} if shared else {}),
        }


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except Exception:  # noqa: BLE001  # a name that is only there for type checkers, say
        return {}


def _schema_of(hint: Any) -> dict[str, Any]:
    """Of a hint that JSON Schema has words for; else one that allows anything."""
    try:
        return TypeAdapter(hint).json_schema()
    except Exception:  # noqa: BLE001  # pydantic raises many kinds for what it cannot say
        return {}
