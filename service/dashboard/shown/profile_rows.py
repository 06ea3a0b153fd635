"""The profile of a tool's parameters as rows: what is common knowledge of them. Pure.

Names that one caller alone used, and values that only one session sent, are some caller's own: they
are counted here and not told (4-rules.md, Suggesting), as in `retrieval.known_tools`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from aftercall.json_values import JsonValue, canonical_json
from retrieval.knowledge.parameter import ParameterProfile, Shape
from retrieval.knowledge.profile import ToolProfile
from retrieval.known_tools.common import ToolRecord, is_common_name
from retrieval.known_tools.text import Clean, number, plain
from retrieval.parameters import ParameterView, ToolView

MAX_PARAMETERS = 40
"""Rows of a profile; required parameters come first, then the most used."""

MAX_VALUES = 5
"""Common values of one parameter."""

_MOST = 0.9
"""From such a share on, a form of texts is told as theirs."""

_NO_FORM = frozenset({"empty", "word", "words"})
"""Forms that say no more than that it is a text."""

Mask = Callable[[str, JsonValue], JsonValue]
"""A value as it may be shown, by the name of its parameter: learned before the name was secret."""

Told = Callable[[JsonValue], str]
"""A value of one parameter as its row says it."""

_MAX_NAME = 100
_MAX_VALUE = 60


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """One parameter. All texts are plain, bounded and without secrets; empty: nothing is known."""

    name: str
    required: str
    """`yes` by its schema, `probably` where successes alone say so, or empty."""
    stated: str
    """Types and bounds that the registered schema states."""
    presence: float | None
    """The share of successes that had it, in 0..1; None before the first success."""
    worked: str
    """Types that worked, with their shares where there are several."""
    failed: str
    """Types of the values that failures are blamed on."""
    range: str
    """Numbers that worked, and whether some beyond them were refused."""
    values: tuple[tuple[str, float], ...]
    """Common values in successes as JSON, with their shares (0..1) of all successes with it."""
    refused: int
    """Distinct values that errors named as wrong and that never worked; they are not told."""


@dataclass(frozen=True, slots=True)
class ShownProfile:
    """What is known of a tool's parameters under its live schema."""

    successes: int
    failures: int
    schemas: int
    """Schemas under which calls are remembered."""
    rows: tuple[ParameterRow, ...]
    private: int
    """Names that are not told, for one caller alone used them."""
    left_out: int
    """Parameters beyond `MAX_PARAMETERS`."""


def shown_profile(record: ToolRecord, clean: Clean, mask: Mask) -> ShownProfile | None:
    """The parameters of a tool; None where neither a schema nor a call says anything of them.

    Args:
        record: what is known of the tool.
        clean: masks secrets by their form.
        mask: masks them by the name of their parameter.
    """
    view, profile = record.schema_view(), record.profile
    if view is None and profile is None:
        return None
    profile = profile or ToolProfile()
    seen = profile.parameters
    stated = view.parameters if view is not None else {}
    common = [
        name for name, each in seen.items() if name in stated or is_common_name(each, profile)
    ]
    names = list(dict.fromkeys([*stated, *common]))
    usual = profile.view().parameters
    names.sort(
        key=lambda name: (
            not _is_required(name, view, usual),
            -(seen[name].successes if name in seen else 0),
            name,
        )
    )
    rows = [_row(name, view, usual, profile, clean, mask) for name in names[:MAX_PARAMETERS]]
    return ShownProfile(
        successes=profile.successes,
        failures=profile.failures,
        schemas=len(record.knowledge.profiles) if record.knowledge else 0,
        rows=tuple(rows),
        private=len(seen.keys() - set(names)),
        left_out=len(names) - len(rows),
    )


def _row(
    name: str,
    view: ToolView | None,
    usual: dict[str, ParameterView],
    profile: ToolProfile,
    clean: Clean,
    mask: Mask,
) -> ParameterRow:
    stated = view.parameters.get(name) if view is not None else None
    seen = profile.parameters.get(name) or ParameterProfile()
    values = seen.common_values() if seen.successes else []

    def told(value: JsonValue) -> str:
        return plain(canonical_json(mask(name, value)), _MAX_VALUE, clean)

    return ParameterRow(
        name=plain(name, _MAX_NAME, clean),
        required=_required(stated, usual.get(name)),
        stated=_stated(stated, told) if stated is not None else "",
        presence=min(1.0, seen.successes / profile.successes) if profile.successes else None,
        worked=_types(seen),
        failed=_types(seen.failed),
        range=_range(seen, told),
        values=tuple((told(each.value), min(1.0, each.share)) for each in values[:MAX_VALUES]),
        refused=len(seen.refused),
    )


def _is_required(name: str, view: ToolView | None, usual: dict[str, ParameterView]) -> bool:
    source = view.parameters if view is not None else usual
    return name in source and source[name].required


def _required(stated: ParameterView | None, usual: ParameterView | None) -> str:
    if stated is not None:
        return "yes" if stated.required else ""
    return "probably" if usual is not None and usual.required else ""


def _stated(stated: ParameterView, told: Told) -> str:
    return ", ".join(_stated_parts(stated, told)) or "any"


def _stated_parts(stated: ParameterView, told: Told) -> Iterator[str]:
    if stated.types:
        yield " or ".join(stated.types)
    if stated.minimum is not None:
        yield f"from {number(stated.minimum)}"
    if stated.maximum is not None:
        yield f"up to {number(stated.maximum)}"
    if stated.allowed:
        shown = [told(each) for each in stated.allowed]
        left = len(shown) - MAX_VALUES
        more = [f"{left} more"] if left > 0 else []
        yield f"one of {' | '.join([*shown[:MAX_VALUES], *more])}"
    if stated.has_default:
        yield f"default {told(stated.default)}"


def _types(shape: Shape) -> str:
    """`integer`, or `integer 90 %, string 10 %`; the form of texts where most have one."""
    total = sum(shape.types.values())
    if not total:
        return ""
    usual = list(shape.usual_types())
    if len(usual) == 1:
        said: str = usual[0]
    else:
        said = ", ".join(f"{each} {round(100 * shape.types[each] / total)} %" for each in usual)
    form = shape.usual_format()
    if form is None or form[1] < _MOST or form[0] in _NO_FORM:
        return said
    return f"{said} ({form[0]})"


def _range(seen: ParameterProfile, told: Told) -> str:
    """The numbers that worked, where these are common knowledge, and what was beyond them."""
    bound = seen.boundary()
    if bound is None:
        return ""
    ends = {bound.smallest, bound.largest}
    if any(told(end) != canonical_json(end) for end in ends):
        return ""
    common = {
        each.value for each in seen.common_values() if not isinstance(each.value, list | dict)
    }
    if not (seen.is_shared or ends <= common):
        return ""
    worked = " to ".join(dict.fromkeys((number(bound.smallest), number(bound.largest))))
    beyond = [
        *(["less"] if bound.fails_below is not None else []),
        *(["more"] if bound.fails_above is not None else []),
    ]
    return f"{worked} worked" + (f"; {' and '.join(beyond)} was refused" if beyond else "")
