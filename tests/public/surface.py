"""What others build on: names and signatures of the SDK, paths and fields of HTTP, as lines."""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

import aftercall
from aftercall.client import Client
from aftercall.toolbox import Toolbox
from service.context import Lifecycle
from service.server import create_app
from tests.service.running_service import hashing_settings

FOLDER = Path(__file__).parent
_ERRORS = 400
"""Statuses from here on have the one form of an error, which `test_openapi` holds."""


def sdk() -> set[str]:
    """Return a line for each public name of `aftercall`, and for each method of its two clients."""
    lines: set[str] = set()
    for name in aftercall.__all__:
        value = getattr(aftercall, name)
        if isinstance(value, type) and issubclass(value, BaseModel):
            fields = value.model_fields.items()
            lines |= {f"{name}.{field}{'!' if of.is_required() else ''}" for field, of in fields}
        else:
            lines.add(_line(name, value))
    for owner in (Client, Toolbox):
        for name, member in inspect.getmembers(owner, inspect.isfunction):
            if not name.startswith("_"):
                lines.add(f"{owner.__name__}.{_line(name, member)}")
    return lines


def _line(name: str, value: object) -> str:
    if not callable(value):
        return name
    try:
        signature = inspect.signature(value)
    except ValueError:
        return name
    parameters = filter(lambda parameter: parameter.name != "self", signature.parameters.values())
    return f"{name}({', '.join(map(_parameter, parameters))})"


def _parameter(parameter: inspect.Parameter) -> str:
    marks = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
    is_named = parameter.kind is parameter.KEYWORD_ONLY
    need = "" if parameter.default is parameter.empty else "?"
    return f"{marks.get(parameter.kind, '')}{parameter.name}{need}{' by name' if is_named else ''}"


def http() -> set[str]:
    """Return a line for each parameter, field of a body and field of an answer of the service."""
    document = create_app(hashing_settings(FOLDER), Lifecycle()).openapi()
    lines: set[str] = set()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            place = f"{method.upper()} {path}"
            lines.add(place)
            for parameter in operation.get("parameters", ()):
                need = "!" if parameter.get("required") else "?"
                lines.add(f"{place} {parameter['in']}:{parameter['name']}{need}")
            body = operation.get("requestBody", {}).get("content", {})
            lines |= {f"{place} takes {field}" for field in _fields(document, body)}
            for status, response in operation["responses"].items():
                lines.add(f"{place} {status}")
                answer = response.get("content", {}) if int(status) < _ERRORS else {}
                lines |= {f"{place} {status} gives {each}" for each in _fields(document, answer)}
    return lines


def _fields(document: dict[str, Any], content: dict[str, Any]) -> Iterator[str]:
    for kind, media in content.items():
        yield kind
        yield from _named(document, media.get("schema", {}), "", frozenset())


def _named(
    document: dict[str, Any], schema: dict[str, Any], prefix: str, seen: frozenset[str]
) -> Iterator[str]:
    name = schema.get("$ref", "").rpartition("/")[2]
    if name in seen:
        return
    if name:
        schema, seen = document["components"]["schemas"][name], seen | {name}
    for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from _named(document, part, prefix, seen)
    if isinstance(schema.get("items"), dict):
        yield from _named(document, schema["items"], f"{prefix}[]", seen)
    for key, inner in schema.get("properties", {}).items():
        need = "!" if key in schema.get("required", ()) else ""
        yield f"{prefix}.{key}{need}"
        yield from _named(document, inner, f"{prefix}.{key}", seen)


SURFACES: dict[str, Callable[[], set[str]]] = {"sdk": sdk, "http": http}


def frozen(name: str) -> set[str]:
    """Return the frozen lines of a surface; none where it was never frozen."""
    file = FOLDER / f"{name}.txt"
    return set(file.read_text(encoding="utf-8").splitlines()) if file.exists() else set()


def freeze(name: str, lines: set[str]) -> None:
    """Write the lines of a surface, sorted."""
    text = "".join(f"{line}\n" for line in sorted(lines))
    (FOLDER / f"{name}.txt").write_text(text, encoding="utf-8")
