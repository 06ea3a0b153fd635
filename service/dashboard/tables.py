"""Tables that a reader sorts, filters, pages through and takes along."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeAlias

from nicegui import ui
from nicegui.element import Element
from nicegui.events import GenericEventArguments

from service.dashboard.downloads import file_name, to_csv, to_json
from service.dashboard.shown import numbers
from service.dashboard.widgets import is_local

Kind = Literal["text", "number", "percent", "duration", "time", "link"]

Row = Mapping[str, object]

Cell: TypeAlias = "str | tuple[str, str | None] | tuple[str, str | None, float | None]"
"""Its text; where it leads to; and what it is sorted by, where that is not the text."""

_UNKNOWN = "-"


@dataclass(frozen=True, slots=True)
class Column:
    """One column."""

    key: str
    label: str
    kind: Kind = "text"
    """`percent`: a share in [0, 1]; `duration`: milliseconds; `time`: a `datetime`; `link`: text
    with an `href`."""
    href: Callable[[Row], str | None] | None = None
    """Where a cell leads to, within the service."""
    note: str = ""
    """What the column says, where its label does not."""


class _Table(Element, component=Path(__file__).parent / "elements" / "data_table.js"):
    pass


class DataTable:
    """A table.

    Args:
        name: what is in it; its caption and the name of its downloads.
        columns: from left to right.
        row_key: key whose value tells rows apart.
        page_size: rows at a time.
        plain: without filter, downloads and pages: the other form of a chart.
        missing: what stands there when there is no row.
    """

    def __init__(
        self,
        name: str,
        columns: Sequence[Column],
        row_key: str,
        *,
        page_size: int = 25,
        plain: bool = False,
        missing: str = "Nothing here yet.",
    ) -> None:
        self._name, self._columns, self._row_key = name, columns, row_key
        self._rows: Sequence[Row] = ()
        self._shown: tuple[tuple[str, tuple[Cell, ...]], ...] = ()
        self.element = _Table()
        props = self.element.props
        props["name"] = name
        props["columns"] = [
            {
                "label": f"{each.label} (UTC)" if each.kind == "time" else each.label,
                "note": each.note,
                "end": each.kind in ("number", "percent", "duration"),
            }
            for each in columns
        ]
        props["rows"] = ()
        props["pageSize"] = page_size
        props["plain"] = plain
        props["missing"] = missing
        if not plain:
            self.element.on("download", self._download)

    def set(self, rows: Sequence[Row]) -> None:
        """Show these; sorting, filter and page of the reader stay."""
        self._rows = rows
        # Tuples, as NiceGUI wraps every list and dictionary of a property in one of its own, which
        # would make a page of 500 rows ten times as large.
        shown = tuple(
            (
                str(row.get(self._row_key, place)),
                tuple(_cell(column, row) for column in self._columns),
            )
            for place, row in enumerate(rows)
        )
        if shown != self._shown:
            self._shown = shown
            self.element.props["rows"] = shown

    def _download(self, event: GenericEventArguments) -> None:
        columns = [(each.key, each.label) for each in self._columns]
        if event.args == "json":
            ui.download.content(
                to_json(columns, self._rows), file_name(self._name, "json"), "application/json"
            )
        else:
            ui.download.content(
                to_csv(columns, self._rows), file_name(self._name, "csv"), "text/csv"
            )


def _cell(column: Column, row: Row) -> Cell:
    value = row.get(column.key)
    words = _words(column.kind, value)
    href = column.href(row) if column.href is not None else None
    if href is not None and not is_local(href):
        href = None
    if isinstance(value, datetime):
        return words, href, value.timestamp()
    if value is None or isinstance(value, int | float):
        return words, href, value
    return words if href is None else (words, href)


def _words(kind: Kind, value: object) -> str:
    if value is None:
        return _UNKNOWN
    if isinstance(value, datetime):
        return numbers.moment(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if kind == "percent":
        return numbers.percent(value)
    if kind == "duration":
        return numbers.duration(value)
    return numbers.count(value) if isinstance(value, int) else f"{value:,.2f}"
