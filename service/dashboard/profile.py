"""What is known of a tool, and its parameters as schema and calls show them.

Names that one caller alone used, and values that only one session sent, are some caller's own: they
are counted here and not shown (4-rules.md, Suggesting), as in `retrieval.answers.known_tools`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from aftercall.json_values import JsonValue, canonical_json
from aftercall.redaction import Redactor
from mongo.records import ToolKey
from retrieval.answers.known_tools.common import visible_line
from retrieval.knowledge.tool.profile import ParameterProfile, ToolProfile
from retrieval.knowledge.tool.record import ToolRecord, is_common_name
from retrieval.knowledge.values.parameters import ParameterView, ToolView
from retrieval.knowledge.values.scalars import write_number
from retrieval.knowledge.values.texts import Shape
from service.context import Context
from service.dashboard import html as h
from service.dashboard import words as w

MAX_PARAMETERS: Final = 40
"""Rows of a profile; required parameters come first, then the most used."""
MAX_VALUES: Final = 5
"""Common values of one parameter."""
_MOST: Final = 0.9
"""From such a share on, a form of texts is stated to be theirs."""
_NO_FORM: Final = frozenset({"empty", "word", "words"})
"""Forms that say no more than that it is a text."""
_COLUMNS: Final = (
    h.Column("name", "Parameter"),
    h.Column("required", "Required", remark="By its schema; or probably, as far as is seen."),
    h.Column("stated", "By its schema"),
    h.Column("presence", "In successes", "percent"),
    h.Column("worked", "Types that worked"),
    h.Column("failed", "Types that failed"),
    h.Column("range", "Numbers"),
    h.Column("values", "Common values"),
    h.Column("refused", "Refused values", "number", "How many; they are not shown."),
)
Written = Callable[[JsonValue], str]
"""A value of one parameter as its row writes it: plain, bounded, without secrets."""


@dataclass(frozen=True, slots=True)
class ToolParameters:
    """What is known of a tool's parameters under its live schema."""

    rows: Sequence[h.Row]
    notes: Sequence[str]
    """From how many calls it is known, and what is not shown."""


def columns_of(rows: Sequence[h.Row]) -> list[h.Column]:
    """Return the columns of parameters.

    What none has takes no room, so that the rest is seen at once.
    """
    return [each for each in _COLUMNS if any(row[each.key] for row in rows)]


async def record_of(context: Context, tool: ToolKey) -> ToolRecord:
    """Return all that is known of a tool."""
    memory = context.memory
    stored = await memory.find_tool(tool)
    return ToolRecord(
        tool,
        stored.tool if stored is not None else None,
        await memory.read_knowledge(tool),
        (await memory.read_health([tool])).get(tool),
        (await memory.read_statistics([tool])).get(tool),
    )


def parameters_of(record: ToolRecord, redactor: Redactor) -> ToolParameters | None:
    """Return the parameters of a tool.

    None where neither a schema nor a call states anything of them.
    """
    view, profile = record.schema_view(), record.profile
    if view is None and profile is None:
        return None
    profile = profile or ToolProfile()
    seen, usual = profile.parameters, profile.make_view().parameters
    stated = view.parameters if view is not None else {}
    common = [
        name for name, each in seen.items() if name in stated or is_common_name(each, profile)
    ]
    required = stated if view is not None else usual

    def order(name: str) -> tuple[bool, int, str]:
        is_required = name in required and required[name].required
        return not is_required, -(seen[name].successes if name in seen else 0), name

    def written(name: str) -> Written:
        def one(value: JsonValue) -> str:
            [masked] = redactor.parameters(record.key.tool_name, {name: value}).values()
            return visible_line(canonical_json(masked), 60, redactor.text)

        return one

    names = sorted({*stated, *common}, key=order)
    rows = [
        {"name": visible_line(name, 100, redactor.text)}
        | _row(name, view, usual, profile, written(name))
        for name in names[:MAX_PARAMETERS]
    ]
    schemas = len(record.knowledge.profiles) if record.knowledge else 0
    private = len(seen.keys() - set(names))
    return ToolParameters(rows, list(_notes(profile, schemas, private, len(names) - len(rows))))


def _notes(profile: ToolProfile, schemas: int, private: int, left_out: int) -> Iterator[str]:
    made = w.counted(profile.successes + profile.failures, "call")
    yield f"From {made} under this schema, of which {w.count(profile.failures)} failed."
    if schemas > 1:
        yield f"Calls under {w.count(schemas)} schemas are remembered; this is the live one."
    if private:
        yield f"Names that one caller alone used are not shown: {w.count(private)}."
    if left_out:
        yield f"{w.count(left_out)} more parameters."


def _row(
    name: str,
    view: ToolView | None,
    usual: dict[str, ParameterView],
    profile: ToolProfile,
    written: Written,
) -> dict[str, object]:
    stated = view.parameters.get(name) if view is not None else None
    seen = profile.parameters.get(name) or ParameterProfile()
    values = seen.common_values()[:MAX_VALUES] if seen.successes else []
    of_schema, of_calls = stated is not None and stated.required, usual.get(name)
    required = "yes" if of_schema else ""
    if stated is None and of_calls is not None and of_calls.required:
        required = "probably"
    return {
        "required": required,
        "stated": "" if stated is None else ", ".join(_stated(stated, written)) or "any",
        "presence": min(1.0, seen.successes / profile.successes) if profile.successes else None,
        "worked": _types(seen),
        "failed": _types(seen.failed),
        "range": _range(seen, written),
        "values": "; ".join(
            f"{written(each.value)} ({w.percent(min(1.0, each.share))})" for each in values
        ),
        "refused": len(seen.refused),
    }


def _stated(stated: ParameterView, written: Written) -> Iterator[str]:
    if stated.types:
        yield " or ".join(stated.types)
    if stated.minimum is not None:
        yield f"from {write_number(stated.minimum)}"
    if stated.maximum is not None:
        yield f"up to {write_number(stated.maximum)}"
    if stated.allowed:
        shown = [written(each) for each in stated.allowed[:MAX_VALUES]]
        left = len(stated.allowed) - len(shown)
        yield f"one of {' | '.join([*shown, *([f'{left} more'] if left else [])])}"
    if stated.has_default:
        yield f"default {written(stated.default)}"


def _types(shape: Shape) -> str:
    """`integer`, or `integer 90 %, string 10 %`; the form of texts where most have one."""
    if not (total := sum(shape.types.values())):
        return ""
    usual = list(shape.usual_types())
    shares = (f"{each} {round(100 * shape.types[each] / total)} %" for each in usual)
    words = str(usual[0]) if len(usual) == 1 else ", ".join(shares)
    form = shape.usual_format()
    is_usual = form is not None and form[1] >= _MOST and form[0] not in _NO_FORM
    return f"{words} ({form[0]})" if form is not None and is_usual else words


def _range(seen: ParameterProfile, written: Written) -> str:
    """The numbers that worked, where these are common knowledge, and what was beyond them."""
    if (bound := seen.find_boundary()) is None:
        return ""
    ends = {bound.smallest, bound.largest}
    if any(written(end) != canonical_json(end) for end in ends):
        return ""
    common = {
        each.value for each in seen.common_values() if not isinstance(each.value, list | dict)
    }
    if not (seen.is_shared or ends <= common):
        return ""
    worked = " to ".join(dict.fromkeys((write_number(bound.smallest), write_number(bound.largest))))
    sides = (("less", bound.fails_below), ("more", bound.fails_above))
    beyond = [word for word, refused in sides if refused is not None]
    return f"{worked} worked" + (f"; {' and '.join(beyond)} was refused" if beyond else "")
