"""A function's arguments as JSON parameters, there and back, and its schema from its type hints."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from aftercall.errors import ConfigurationError
from aftercall.json_values import JsonObject, make_json_value

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BOUND = ("self", "cls")


class CallSignature:
    """How the calls of one function are told by name.

    Args:
        function: a function or method as it is defined; a first parameter `self` or `cls` is taken
            for what the call is bound to.
        unrecorded: parameters that are not told.

    Raises:
        ConfigurationError: `unrecorded` names no parameter, or the function tells no signature.
    """

    def __init__(self, function: Callable[..., Any], unrecorded: frozenset[str]) -> None:
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"{function!r} tells no signature; wrap it in a function that has one"
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
        self, args: Sequence[Any], kwargs: Mapping[str, Any], parameters: JsonObject
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments for a call with other parameters; what is not told is passed as it was."""
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
        """JSON Schema of the parameters, from the type hints; what cannot be told is left open."""
        if self._schema is None:
            self._schema = self._made_schema()
        return self._schema

    def _all(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        names = [p.name for p in self._positional]
        given = args[self._bound :]
        told: dict[str, Any] = dict(zip(names, given, strict=False))
        beyond = list(given[len(names) :])
        if beyond:  # more than it takes, unless it takes any number: it says so itself
            told[self._spread or "args"] = beyond
        return {**told, **kwargs}

    def _made_schema(self) -> JsonObject:
        hints = _hints(self._function)
        adapters: dict[str, TypeAdapter[Any]] = {}
        properties: JsonObject = {}
        required: list[str] = []
        for each in self._parameters:
            if each.name in self._unrecorded or each.kind is inspect.Parameter.VAR_KEYWORD:
                continue
            properties[each.name] = {}
            hint = hints.get(each.name, Any)
            if each.kind is inspect.Parameter.VAR_POSITIONAL:
                hint = list[hint]  # type: ignore[valid-type]  # a hint at run time is a value
            elif each.default is inspect.Parameter.empty:
                required.append(each.name)
            adapter = _adapter(hint)
            if adapter is not None:
                adapters[each.name] = adapter
        schemas, shared = TypeAdapter.json_schemas(
            [(name, "validation", adapter) for name, adapter in adapters.items()]
        )
        properties |= {name: schema for (name, _), schema in schemas.items()}
        takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in self._parameters)
        made = make_json_value(
            {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": takes_any,
                **({"$defs": shared["$defs"]} if "$defs" in shared else {}),
            }
        )
        return made if isinstance(made, dict) else {}


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except Exception:  # noqa: BLE001  # a name that is only there for type checkers, say
        return {}


def _adapter(hint: Any) -> TypeAdapter[Any] | None:
    """For a hint that JSON Schema has words for."""
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hint)
        adapter.json_schema()
    except Exception:  # noqa: BLE001  # pydantic raises many kinds for what it cannot tell
        return None
    return adapter
