"""Signatures: how a tool is called, in one line. From its live schema, else from its successes."""

from collections.abc import Sequence
from dataclasses import dataclass

from aftercall.json_values import JsonValue, canonical_json
from retrieval.known_tools.common import is_common_name
from retrieval.known_tools.plain import Clean, in_quotes, named, number, plain
from retrieval.known_tools.records import ToolRecord
from retrieval.known_tools.tokens import estimate_tokens
from retrieval.parameters import ParameterView
from retrieval.reading.faults import JsonType

_MAX_SHOWN = 16
"""Parameters that are told one by one; required ones come first."""

_MAX_ALLOWED = 8
_MAX_NAME = 64
_MAX_VALUE = 30


@dataclass(frozen=True, slots=True)
class Signature:
    """A tool's parameters in two lengths, each in parentheses; unescaped.

    `full` says types, bounds and allowed values; `short` names the required parameters and counts
    the others. Both are `(?)` where nothing is known.
    """

    short: str
    full: str


def signature_of_tool(record: ToolRecord, clean: Clean) -> Signature:
    """The signature of a tool. An optional parameter has a `?` behind its name."""
    views = _views(record)
    if views is None:
        return Signature("(?)", "(?)")
    required = [each for each in views if each.required]
    optional = [each for each in views if not each.required]
    names = [_name(each, clean) for each in required[:_MAX_SHOWN]]
    left = len(required) - len(names)
    if left:
        names.append(f"{left} more")
    if len(optional) == 1 and not left:
        names.append(f"{_name(optional[0], clean)}?")
    elif optional:
        names.append(f"{len(optional)} optional")
    told = [_told(each, clean) for each in [*required, *optional][:_MAX_SHOWN]]
    if len(views) > _MAX_SHOWN:
        told.append(f"{len(views) - _MAX_SHOWN} more")
    short, full = f"({', '.join(names)})", f"({', '.join(told)})"
    return Signature(min(full, short, key=estimate_tokens), full)


def _views(record: ToolRecord) -> Sequence[ParameterView] | None:
    view = record.schema_view()
    if view is not None:
        return list(view.parameters.values())
    profile = record.profile
    if profile is None or not profile.successes:
        return None
    return [
        each
        for name, each in sorted(profile.view().parameters.items())
        if is_common_name(profile.parameters[name], profile)
    ]


def _name(view: ParameterView, clean: Clean) -> str:
    return named(plain(view.name, _MAX_NAME, clean))


def _told(view: ParameterView, clean: Clean) -> str:
    what = _kind(view, clean)
    name = _name(view, clean) + ("" if view.required else "?")
    return f"{name}: {what}" if what else name


def _kind(view: ParameterView, clean: Clean) -> str:
    if view.allowed:
        shown = [_value(each, clean) for each in view.allowed[:_MAX_ALLOWED]]
        left = len(view.allowed) - len(shown)
        return "|".join([*shown, *([f"{left} more"] if left else [])])
    types = "|".join(_type(each, view) for each in view.types)
    bounds = _bounds(view.minimum, view.maximum)
    return " ".join(part for part in (types, bounds) if part)


def _type(kind: JsonType, view: ParameterView) -> str:
    if kind == "array" and view.item_types:
        return f"{view.item_types[0]}[]"
    return kind


def _bounds(low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return ""
    if low is None or high is None:
        return f"from {number(low)}" if low is not None else f"up to {number(high or 0)}"
    return f"{number(low)}..{number(high)}"


def _value(value: JsonValue, clean: Clean) -> str:
    if isinstance(value, str):
        return in_quotes(plain(value, _MAX_VALUE, clean))
    return plain(canonical_json(value), _MAX_VALUE, clean)
