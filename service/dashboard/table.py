"""Tables that a reader sorts, filters, pages through and takes along (`static/dashboard.js`)."""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from service.dashboard.html import Html, data_element, is_local
from service.dashboard.words import (
    MAX_SENTENCE,
    count,
    duration,
    moment,
    one_line,
    percent,
    score,
)

Kind = Literal["text", "number", "percent", "duration", "time"]


class Link(NamedTuple):
    """A cell that leads somewhere."""

    text: str
    href: str


class Column(NamedTuple):
    """One column of a table."""

    key: str
    """Its name in downloads, and the attribute or item of a row that it shows, without `of`."""
    label: str
    kind: Kind = "text"
    """`percent`: a share in [0, 1]; `duration`: milliseconds; `time`: a `datetime`."""
    remark: str = ""
    """What its label leaves open."""
    of: Callable[[Any], object] | None = None
    """What it shows of a row: a text, a number, a time, a link or None."""

    def value(self, row: object) -> object:
        """What it shows of a row; texts in one line, with all their characters visible."""
        if self.of is not None:
            value = self.of(row)
        else:
            value = row[self.key] if isinstance(row, Mapping) else getattr(row, self.key)
        if isinstance(value, Link):
            return Link(one_line(value.text, MAX_SENTENCE), value.href)
        return one_line(value, MAX_SENTENCE) if isinstance(value, str) else value


Cell: TypeAlias = "str | tuple[str, str | None] | tuple[str, str | None, float | None]"
"""Its text; where it leads to; and what it is sorted by, where that is not the text."""

# https://owasp.org/www-community/attacks/CSV_Injection; the wide ones are taken for the others.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001


_NOTHING: Final = "Nothing here yet."

Row = Mapping[str, object]
"""A row of its own, by the keys of columns."""


@dataclass(frozen=True, slots=True)
class DataTable:
    """A table; `rows` are all of it, of which a reader sees a page at a time."""

    name: str
    """What is in it: its caption, and the name of its downloads."""
    columns: Sequence[Column]
    rows: Sequence[object]
    missing: str = _NOTHING
    """What stands there when there is no row."""
    page_size: int = 25
    plain: bool = False
    """Without filter, downloads and pages: the other form of a chart."""
    look: str = ""
    """A class: `wide`, `roomy` or `close`."""

    def html(self, address: str = "") -> Html:
        """The table; its downloads are at `address`, which has a query."""
        data = {
            "name": self.name,
            "columns": [
                {
                    "label": f"{each.label} (UTC)" if each.kind == "time" else each.label,
                    "note": each.remark,
                    "end": each.kind in ("number", "percent", "duration"),
                }
                for each in self.columns
            ],
            "rows": [
                [_cell(each.kind, each.value(row)) for each in self.columns] for row in self.rows
            ],
            "missing": self.missing,
            "pageSize": self.page_size,
            "plain": self.plain,
            "look": self.look,
            "address": address,
        }
        return data_element("data-table", data)

    def csv(self) -> bytes:
        """UTF-8 with a mark at its beginning, so that spreadsheets read it as such.

        A text that a spreadsheet would take for a formula is quoted.
        """
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow([_csv_cell(each.label) for each in self.columns])
        for row in self.rows:
            writer.writerow([_csv_cell(each.value(row)) for each in self.columns])
        return out.getvalue().encode("utf-8-sig")

    def json(self) -> bytes:
        """An array of objects, in UTF-8."""
        rows = [{each.key: _plain(each.value(row)) for each in self.columns} for row in self.rows]
        return json.dumps(rows, ensure_ascii=False, indent=1, default=str).encode("utf-8")

    def file_name(self, ending: str) -> str:
        """A name that any system takes: letters, digits and hyphens."""
        plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in self.name.lower())
        return f"aftercall-{plain.strip('-')[:60] or 'table'}.{ending}"


def plain_table(
    name: str, columns: Sequence[Column], rows: Sequence[object], missing: str = _NOTHING
) -> Html:
    """A table without filter, downloads and pages."""
    return DataTable(name, columns, rows, missing, plain=True).html()


def _cell(kind: Kind, value: object) -> Cell:
    if isinstance(value, Link):
        return (value.text, value.href) if is_local(value.href) else value.text
    words = _words(kind, value)
    if isinstance(value, datetime):
        return words, None, value.timestamp()
    if value is None or isinstance(value, int | float):
        return words, None, value
    return words


def _words(kind: Kind, value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return moment(value)
    if not isinstance(value, int | float):
        return str(value)
    if kind == "percent":
        return percent(value)
    if kind == "duration":
        return duration(value)
    return count(value) if isinstance(value, int) else score(value)


def _plain(value: object) -> object:
    return value.text if isinstance(value, Link) else value


def _csv_cell(value: object) -> str | int | float:
    value = _plain(value)
    if value is None:
        return ""
    if isinstance(value, int | float):  # a negative number is no formula
        return value
    words = str(value)
    return f"'{words}" if words.startswith(_FORMULA) else words
