"""The parameters of a tool, as its schema and its calls show them."""

from collections.abc import Iterator
from typing import Final

from service.dashboard.shown.numbers import count, percent
from service.dashboard.shown.profile_rows import ShownProfile
from service.dashboard.tables import Column, DataTable
from service.dashboard.widgets import section, text

_COLUMNS: Final = (
    Column("name", "Parameter"),
    Column("required", "Required", note="By its schema; or probably, as far as is seen."),
    Column("stated", "By its schema"),
    Column("presence", "In successes", "percent"),
    Column("worked", "Types that worked"),
    Column("failed", "Types that failed"),
    Column("range", "Numbers"),
    Column("values", "Common values"),
    Column("refused", "Refused values", "number", note="How many; they are not told."),
)


def show_profile(profile: ShownProfile | None) -> None:
    """The parameters: what is common knowledge of them."""
    with section(
        "Parameters",
        note="From the registered schema and the calls. Values are shown where two sessions (of "
        "two agents, where several use it) had success with them; others are their callers' own.",
    ):
        if profile is None:
            text("Nothing is known of its parameters yet.")
            return
        if not profile.rows:
            text("None of its parameters is common knowledge yet.")
        else:
            _table(profile)
        for line in _profile_notes(profile):
            text(line, "p", "note")


def _table(profile: ShownProfile) -> None:
    rows = list(_parameters(profile))
    table = DataTable(
        "Parameters of this tool",
        # What no parameter has takes no room, so that the rest is seen without scrolling.
        [each for each in _COLUMNS if any(row[each.key] for row in rows)],
        "key",
    )
    table.element.classes("close")
    table.set(rows)


def _parameters(profile: ShownProfile) -> Iterator[dict[str, object]]:
    for place, row in enumerate(profile.rows):
        values = "; ".join(f"{value} ({percent(share)})" for value, share in row.values)
        yield {
            "key": str(place),
            "name": row.name,
            "required": row.required,
            "stated": row.stated,
            "presence": row.presence,
            "worked": row.worked,
            "failed": row.failed,
            "range": row.range,
            "values": values,
            "refused": row.refused,
        }


def _profile_notes(profile: ShownProfile) -> Iterator[str]:
    calls = profile.successes + profile.failures
    made = "1 call" if calls == 1 else f"{count(calls)} calls"
    yield f"From {made} under this schema, of which {count(profile.failures)} failed."
    if profile.schemas > 1:
        yield f"Calls under {count(profile.schemas)} schemas are remembered; this is the live one."
    if profile.private:
        yield f"Names that one caller alone used are not shown: {count(profile.private)}."
    if profile.left_out:
        yield f"{count(profile.left_out)} more parameters."
