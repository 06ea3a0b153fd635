"""Reflection for plain functions, as decorators (no extra).

    @reflecting
    def rag_query(query: str, topK: int = 5) -> list[str]: ...

    @reflecting(client=client, recorder=recorder, agent="librarian", may_repeat=True)
    def find_books(query: str) -> list[str]: ...

    @recorded(recorder=recorder, agent="librarian")
    async def fetch(url: str) -> str: ...

Both keep the function's signature and serve plain and `async` functions. An exception of the
function is what the caller gets; where there are suggestions they are a note of the exception.

Recorded are the arguments that the caller gave, by name; defaults, `self` and `cls` are left out,
and so is what `unrecorded` names.
"""

import inspect
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, wraps
from typing import (
    Any,
    ParamSpec,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    get_type_hints,
    overload,
)

from pydantic import TypeAdapter

from aftercall.adapters.reflector import (
    Asking,
    KnownTool,
    ReflectionOptions,
    Reflector,
    code_of,
    has_run,
)
from aftercall.errors import ConfigurationError
from aftercall.json_values import JsonObject, JsonValue
from aftercall.models.calls import ToolAnnotations
from aftercall.outcomes import Outcome
from aftercall.reflection import CallObserver, ExecutionSink, ReflectionPolicy, ResultReader
from aftercall.reflection.results import OutcomeReader

P = ParamSpec("P")
R = TypeVar("R")
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
Stated: TypeAlias = str | Callable[[], str | None] | None
"""A text, or a function that is asked for it at every call (a `ContextVar.get`, say)."""


class FunctionOptions(TypedDict, total=False):
    """Options of both decorators.

    `name` is the tool's, or the function's. Calls of one `session_id` are looked at together for
    repairs; `context` is what the agent is trying to do. Parameters that are `unrecorded`, such as
    a connection, are passed on and never recorded, asked about or changed. With others whose values
    are not JSON, a call is recorded (as text) and not retried. The `reader` recognises failures.
    """

    name: str | None
    session_id: Stated
    context: Stated
    unrecorded: Collection[str]
    reader: ResultReader[Any] | None


class ReflectingOptions(FunctionOptions, ReflectionOptions, total=False):
    """Options of `reflecting`."""


@overload
def reflecting(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def reflecting(
    *,
    agent: str = "unknown",
    annotations: ToolAnnotations | None = None,
    may_repeat: bool = False,
    **options: Unpack[ReflectingOptions],
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def reflecting(
    function: Callable[..., Any] | None = None,
    /,
    *,
    agent: str = "unknown",
    annotations: ToolAnnotations | None = None,
    may_repeat: bool = False,
    **options: Unpack[ReflectingOptions],
) -> Any:
    """Return a decorator: calls are recorded, and failed ones retried where that is safe.

    Bare, it uses the service of `AFTERCALL_URL` and `AFTERCALL_API_KEY`, else that of this machine;
    while none answers, functions do what they did without it, and calls wait to be recorded.

    A plain function waits in its own thread while the service is asked and before a retry, so in a
    program with an event loop it is to be called as before: in a thread.

    `annotations` are claims about the tool, those registered at the service when None; with
    `may_repeat` calling twice does no harm. All other arguments are those of `ReflectionOptions` (a
    `Client` serves all functions, an `AsyncClient` the `async` ones) and `FunctionOptions`.

    Raises:
        ConfigurationError: when it is put on what cannot be called again with other arguments: a
            generator, a class, a `staticmethod` (put it below that one); or an `AsyncClient` is to
            serve a plain function; or `unrecorded` names no parameter.
    """
    name, reader = options.pop("name", None), options.pop("reader", None) or _FunctionReader()
    session_id, context = options.pop("session_id", None), options.pop("context", None)
    unrecorded = frozenset(options.pop("unrecorded", ()))
    reflector = Reflector(**cast("ReflectionOptions", options))

    def decorate_function(function: Callable[P, R]) -> Callable[P, R]:
        _check_function(function)
        signature = _CallSignature(function, unrecorded)
        tool, named = KnownTool(annotations=annotations), getattr(function, "func", function)
        tool_name = name or getattr(named, "__name__", None) or type(named).__name__

        def begin_call(args: Sequence[Any], kwargs: Mapping[str, Any]) -> "_Call":
            call = _Call(signature, args, kwargs)
            call.tool = replace(tool, schema=lambda: signature.schema, has_run=lambda: call.has_run)
            call.facts = {
                "tool_name": tool_name,
                "parameters": call.given,
                "agent": agent,
                "session_id": session_id() if callable(session_id) else session_id,
                "context": context() if callable(context) else context,
                "may_repeat": may_repeat,
                "reader": reader,
                "raise_on_failure": True,
            }
            return call

        @wraps(function)
        async def await_call(*args: Any, **kwargs: Any) -> Any:
            call = begin_call(args, kwargs)

            async def attempt_call(parameters: JsonObject) -> Any:
                with call.note_attempt(parameters) as (given, named):
                    return await cast("Any", function)(*given, **named)

            return (await reflector.call_async(attempt_call, call.tool, **call.facts)).value()

        @wraps(function)
        def call_plain(*args: Any, **kwargs: Any) -> Any:
            call = begin_call(args, kwargs)

            def attempt_call(parameters: JsonObject) -> Any:
                with call.note_attempt(parameters) as (given, named):
                    return function(*given, **named)

            return reflector.call(attempt_call, call.tool, **call.facts).value()

        called = getattr(function, "__call__", None)  # noqa: B004  # asks what it is
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called):
            return cast("Callable[P, R]", await_call)
        Asking(reflector.client, tool)  # refuses a client that cannot be asked from here
        return cast("Callable[P, R]", call_plain)

    return decorate_function if function is None else decorate_function(function)


def recorded(
    *,
    recorder: ExecutionSink,
    agent: str = "unknown",
    server_name: str | None = None,
    observers: Sequence[CallObserver] = (),
    **options: Unpack[FunctionOptions],
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator: every call is recorded, and nothing else.

    Arguments as for `reflecting`.
    """
    return reflecting(
        recorder=recorder,
        agent=agent,
        server_name=server_name,
        policy=ReflectionPolicy(disabled_agents=frozenset({agent})),  # recorded and never asked
        observers=observers,
        **options,
    )


class _Call:
    tool: KnownTool
    facts: dict[str, Any]
    has_run = False
    """Whether the function's own code was reached in the latest attempt."""

    def __init__(
        self, signature: "_CallSignature", args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        self._signature = signature
        self._args, self._kwargs = args, kwargs
        self.given = signature.name_arguments(args, kwargs)

    @contextmanager
    def note_attempt(
        self, parameters: JsonObject
    ) -> Iterator[tuple[Sequence[Any], Mapping[str, Any]]]:
        self.has_run = False
        try:
            yield self._signature.correct_arguments(
                self._args, self._kwargs, self.given, parameters
            )
        except BaseException as error:
            self.has_run = has_run(self._signature.code, error)
            raise
        self.has_run = True  # what it returned it has run for, whatever that states of a failure


def _check_function(function: object) -> None:
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


class _FunctionReader(OutcomeReader):
    """As for any callable; what is still to be awaited or gone through is no outcome yet."""

    def read(self, result: object) -> Outcome[Any] | None:
        is_open = inspect.isawaitable(result) or inspect.isgenerator(result)
        return None if is_open or inspect.isasyncgen(result) else super().read(result)


class _CallSignature:
    """A function's arguments as JSON parameters, there and back, and its schema.

    Of a function or method as it is defined: a first parameter `self` or `cls` is what the call is
    bound to, and is left out as those of `unrecorded` are.
    """

    def __init__(self, function: Callable[..., Any], unrecorded: frozenset[str]) -> None:
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"{function!r} has no signature; wrap it in a function that has one"
            ) from error
        parameters = list(signature.parameters.values())
        self._function, self.code = function, code_of(function)
        self._bound = 1 if parameters and parameters[0].name in ("self", "cls") else 0
        self._parameters = parameters[self._bound :]
        self._signature = signature.replace(parameters=self._parameters)
        self._positional = [p for p in self._parameters if p.kind in _POSITIONAL]
        spread = [p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL]
        self._spread = spread[0] if spread else None
        self._takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in self._parameters)
        self._unrecorded = unrecorded
        if (unknown := unrecorded - {p.name for p in self._parameters}) and not self._takes_any:
            raise ConfigurationError(
                f"unrecorded names {', '.join(sorted(unknown))}, which the function does not take"
            )

    def name_arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> JsonObject:
        """Return what the caller gave, by name, and nothing else; also where it does not fit."""
        return {
            n: v for n, v in self._all_arguments(args, kwargs).items() if n not in self._unrecorded
        }

    def correct_arguments(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        named: JsonObject,
        parameters: JsonObject,
    ) -> tuple[Sequence[Any], Mapping[str, Any]]:
        if parameters is named:
            return args, kwargs
        before = self._all_arguments(args, kwargs)
        kept = {name: before[name] for name in self._unrecorded if name in before}
        given: dict[str, Any] = {**parameters, **kept}
        call = inspect.BoundArguments(self._signature, OrderedDict())
        for each in self._parameters:
            if each.name in given and each.kind is not inspect.Parameter.VAR_KEYWORD:
                value = given.pop(each.name)
                if each.kind is inspect.Parameter.VAR_POSITIONAL:
                    value = tuple(value) if isinstance(value, list) else (value,)
                call.arguments[each.name] = value
        return [*args[: self._bound], *call.args], {**call.kwargs, **given}

    def _all_arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        names = [p.name for p in self._positional]
        given = args[self._bound :]
        named: dict[str, Any] = dict(zip(names, given, strict=False))
        beyond = list(given[len(names) :])
        if beyond:  # more than it takes, unless it takes any number: it states so itself
            named[self._spread or "args"] = beyond
        return {**named, **kwargs}

    @cached_property
    def schema(self) -> JsonObject:
        """JSON Schema of the parameters, from the type hints; other hints are left open."""
        try:
            hints = get_type_hints(self._function, include_extras=True)
        except Exception:  # noqa: BLE001  # a name that is only there for type checkers, say
            hints = {}
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
            try:
                schema = TypeAdapter(hint).json_schema()
            except Exception:  # noqa: BLE001  # pydantic raises many kinds for what it cannot say
                schema = {}
            shared |= schema.pop("$defs", {})
            properties[each.name] = schema
        return {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": self._takes_any,
            **({"$defs": shared} if shared else {}),
        }
