"""The knowledge about a tool, and its parameters as schema and calls show them.

Names that one caller alone used, and values that only one session sent, are private to a caller:
they are counted here and not shown (4-rules.md, Suggesting), as in `retrieval.answers.known_tools`.
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
    """The known parameters of a tool under its live schema."""

    rows: Sequence[h.Row]
    notes: Sequence[str]
    """From how many calls it is known, and what is not shown."""


def columns_of(rows: Sequence[h.Row]) -> list[h.Column]:
    """Return the columns of parameters; a column without values is left out."""
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
    """Return the parameters of a tool; None if neither a schema nor a call has any."""
    view, profile = record.schema_view(), record.profile
    if view is None and profile is None:
        return None
    profile = profile or ToolProfile()
    seen, usual = profile.parameters, profile.make_view().parameters
    stated = view.parameters if view is not None else {}
    common = set(stated)
    for name, each in seen.items():
        if is_common_name(each, profile):
            common.add(name)
    required = stated if view is not None else usual

    def sort_key(name: str) -> tuple[bool, int, str]:
        is_required = name in required and required[name].required
        successes = seen[name].successes if name in seen else 0
        return not is_required, -successes, name

    def write_value(name: str) -> Written:
        def write_one(value: JsonValue) -> str:
            masked = redactor.parameters(record.key.tool_name, {name: value})
            [text] = map(canonical_json, masked.values())
            return visible_line(text, 60, redactor.text)

        return write_one

    names = sorted(common, key=sort_key)
    rows: list[dict[str, object]] = []
    for name in names[:MAX_PARAMETERS]:
        row = _make_row(name, view, usual, profile, write_value(name))
        row["name"] = visible_line(name, 100, redactor.text)
        rows.append(row)
    schemas = len(record.knowledge.profiles) if record.knowledge else 0
    private = len(seen.keys() - common)
    left_out = len(names) - len(rows)
    notes = list(_write_notes(profile, schemas, private, left_out))
    return ToolParameters(rows, notes)


def _write_notes(profile: ToolProfile, schemas: int, private: int, left_out: int) -> Iterator[str]:
    made = w.format_noun(profile.successes + profile.failures, "call")
    failed = w.format_count(profile.failures)
    yield f"From {made} under this schema, of which {failed} failed."
    if schemas > 1:
        known = w.format_count(schemas)
        yield f"Calls under {known} schemas are remembered; this is the live one."
    if private:
        hidden = w.format_count(private)
        yield f"Names that one caller alone used are not shown: {hidden}."
    if left_out:
        yield f"{w.format_count(left_out)} more parameters."


def _make_row(
    name: str,
    view: ToolView | None,
    usual: dict[str, ParameterView],
    profile: ToolProfile,
    written: Written,
) -> dict[str, object]:
    stated = view.parameters.get(name) if view is not None else None
    seen = profile.parameters.get(name) or ParameterProfile()
    required, stated_words = "", ""
    if stated is not None:
        required = "yes" if stated.required else ""
        stated_words = ", ".join(_read_stated(stated, written)) or "any"
    elif name in usual and usual[name].required:
        required = "probably"
    presence: float | None = None
    if profile.successes:
        presence = min(1.0, seen.successes / profile.successes)
    values: list[str] = []
    if seen.successes:
        for each in seen.common_values()[:MAX_VALUES]:
            share = w.format_percent(min(1.0, each.share))
            values.append(f"{written(each.value)} ({share})")
    return {
        "required": required,
        "stated": stated_words,
        "presence": presence,
        "worked": _list_types(seen),
        "failed": _list_types(seen.failed),
        "range": _write_range(seen, written),
        "values": "; ".join(values),
        "refused": len(seen.refused),
    }


def _read_stated(stated: ParameterView, written: Written) -> Iterator[str]:
    if stated.types:
        yield " or ".join(stated.types)
    if stated.minimum is not None:
        yield f"from {write_number(stated.minimum)}"
    if stated.maximum is not None:
        yield f"up to {write_number(stated.maximum)}"
    if stated.allowed:
        shown = [written(each) for each in stated.allowed[:MAX_VALUES]]
        left = len(stated.allowed) - len(shown)
        if left:
            shown.append(f"{left} more")
        yield f"one of {' | '.join(shown)}"
    if stated.has_default:
        yield f"default {written(stated.default)}"


def _list_types(shape: Shape) -> str:
    """Return `integer`, or `integer 90 %, string 10 %`; with the form that most texts have."""
    total = sum(shape.types.values())
    if not total:
        return ""
    usual = list(shape.usual_types())
    if len(usual) == 1:
        words = str(usual[0])
    else:
        percentages = [round(100 * shape.types[each] / total) for each in usual]
        shares = zip(usual, percentages, strict=True)
        words = ", ".join(f"{kind} {share} %" for kind, share in shares)
    form = shape.usual_format()
    if form is None:
        return words
    name, share = form
    is_usual = share >= _MOST and name not in _NO_FORM
    return f"{words} ({name})" if is_usual else words


def _write_range(seen: ParameterProfile, written: Written) -> str:
    """Return the numbers that worked, if they are common knowledge, and those beyond them."""
    bound = seen.find_boundary()
    if bound is None:
        return ""
    ends = {bound.smallest, bound.largest}
    if any(written(end) != canonical_json(end) for end in ends):
        return ""
    values = [each.value for each in seen.common_values()]
    common = {value for value in values if not isinstance(value, list | dict)}
    is_known = seen.is_shared or ends <= common
    if not is_known:
        return ""
    smallest, largest = write_number(bound.smallest), write_number(bound.largest)
    worked = smallest if smallest == largest else f"{smallest} to {largest}"
    beyond: list[str] = []
    if bound.fails_below is not None:
        beyond.append("less")
    if bound.fails_above is not None:
        beyond.append("more")
    if not beyond:
        return f"{worked} worked"
    return f"{worked} worked; {' and '.join(beyond)} was refused"
