"""Pages from templates, and tables. A template writes the words of others as text, never markup.

So no word of a tool, an agent or an address can become an element, an attribute or a script, and
characters that cannot be seen are written as escapes.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from markupsafe import Markup, escape

from service.dashboard import words as w

if TYPE_CHECKING:
    from jinja2 import Environment

Html: TypeAlias = Markup
Tone = Literal["good", "bad", "warn", "plain"]
SIGNS: Final[dict[Tone, str]] = {"good": "✓ ", "bad": "✗ ", "warn": "! ", "plain": ""}
"""Signs before a word, for colour alone must not carry a meaning."""


def is_local(href: str) -> bool:
    """Return whether an address is a path of this service, or a place on this page."""
    if not href.isprintable():  # browsers leave out what is not: `/` and a tab before `/` are `//`
        return False
    return href.startswith("#") or (href.startswith("/") and not href.startswith(("//", "/\\")))


# Tables that a reader sorts, filters, pages through and takes along (`static/dashboard.js`).

Kind = Literal["text", "number", "percent", "duration", "time"]


class Anchor(NamedTuple):
    """A text with a link."""

    text: str
    href: str


Value: TypeAlias = str | Anchor


class Column(NamedTuple):
    """One column of a table."""

    key: str
    """Its name in downloads, and the attribute or item of a row that it shows, without `of`."""
    label: str
    kind: Kind = "text"
    """`percent`: a share in [0, 1]; `duration`: milliseconds; `time`: a `datetime`."""
    remark: str = ""
    """A remark that completes the label."""
    of: Callable[[Any], object] | None = None
    """The value for a row: a text, a number, a time, a link or None."""

    def read_value(self, row: object) -> object:
        """Return the column's value for a row; texts in one line, with all characters visible."""
        if self.of is not None:
            value = self.of(row)
        else:
            value = row[self.key] if isinstance(row, Mapping) else getattr(row, self.key)
        if isinstance(value, Anchor):
            return Anchor(w.format_line(value.text, w.MAX_SENTENCE), value.href)
        return w.format_line(value, w.MAX_SENTENCE) if isinstance(value, str) else value


Cell: TypeAlias = "str | tuple[str, str | None] | tuple[str, str | None, float | None]"
"""Its text; where it leads to; and what it is sorted by, where that is not the text."""

# https://owasp.org/www-community/attacks/CSV_Injection; the wide ones are taken for the others.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001
_NOTHING: Final = "Nothing here yet."
Row = Mapping[str, object]
"""A row of its own, by the keys of columns."""


@dataclass(frozen=True, slots=True)
class DataTable:
    """A table; `rows` are all of it, and a reader sees a page at a time."""

    name: str
    """Its caption, and the name of its downloads."""
    columns: Sequence[Column]
    rows: Sequence[object]
    missing: str = _NOTHING
    """The text of an empty table."""
    page_size: int = 25
    plain: bool = False
    """Without filter, downloads and pages: the other form of a chart."""
    look: str = ""
    """A class: `wide`, `roomy` or `close`."""

    def write_html(self, address: str = "") -> Html:
        """Return the table; its downloads are at `address`, which has a query."""
        from jinja2.utils import htmlsafe_json_dumps  # noqa: PLC0415  # as in `open_templates`

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
                [_write_cell(each.kind, each.read_value(row)) for each in self.columns]
                for row in self.rows
            ],
            "missing": self.missing,
            "pageSize": self.page_size,
            "plain": self.plain,
            "look": self.look,
            "address": address,
        }
        written = htmlsafe_json_dumps(data, ensure_ascii=False, separators=(",", ":"))
        return Html("<data-table data='{}'></data-table>").format(written)

    def write_csv(self) -> bytes:
        """Return CSV in UTF-8 with a mark for spreadsheets; texts like formulas are quoted."""
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow([_csv_cell(each.label) for each in self.columns])
        for row in self.rows:
            writer.writerow([_csv_cell(each.read_value(row)) for each in self.columns])
        return out.getvalue().encode("utf-8-sig")

    def write_json(self) -> bytes:
        """Return an array of objects, in UTF-8."""
        rows = [
            {each.key: _write_plain(each.read_value(row)) for each in self.columns}
            for row in self.rows
        ]
        return json.dumps(rows, ensure_ascii=False, indent=1, default=str).encode("utf-8")

    def file_name(self, ending: str) -> str:
        """Return a name that any system takes: letters, digits and hyphens."""
        return f"aftercall-{_make_slug(self.name) or 'table'}.{ending}"


def plain_table(
    name: str, columns: Sequence[Column], rows: Sequence[object], missing: str = _NOTHING
) -> Html:
    """Return a table without filter, downloads and pages."""
    return DataTable(name, columns, rows, missing, plain=True).write_html()


def _write_cell(kind: Kind, value: object) -> Cell:
    if isinstance(value, Anchor):
        return (value.text, value.href) if is_local(value.href) else value.text
    words = _write_words(kind, value)
    if isinstance(value, datetime):
        return words, None, value.timestamp()
    return (words, None, value) if value is None or isinstance(value, int | float) else words


def _write_words(kind: Kind, value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return w.format_moment(value)
    if not isinstance(value, int | float):
        return str(value)
    if kind == "percent":
        return w.format_percent(value)
    if kind == "duration":
        return w.format_duration(value)
    return w.format_count(value) if isinstance(value, int) else w.format_score(value)


def _write_plain(value: object) -> object:
    return value.text if isinstance(value, Anchor) else value


def _csv_cell(value: object) -> str | int | float:
    if (value := _write_plain(value)) is None:
        return ""
    if isinstance(value, int | float):  # a negative number is no formula
        return value
    words = str(value)
    return f"'{words}" if words.startswith(_FORMULA) else words


# Templates.


def _write_value(value: object) -> object:
    """Return what `{{ value }}` writes: markup as it is, all else as text that can be seen."""
    if isinstance(value, Html):
        return value
    return "" if value is None else w.escape_hidden(str(value))


def _make_slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60]


def _mark_spans(text: str) -> Html:
    """Return a text with the `code` spans of Markdown as elements."""
    parts = enumerate(escape(text).split("`"))
    code = Html("<code>{}</code>")
    return Html("").join(code.format(part) if place % 2 else part for place, part in parts)


@cache
def open_templates() -> "Environment":
    """Return the environment of the folder `templates`, with the filters that they use."""
    # Imported for the first page: Jinja takes a twentieth of the service's start.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415

    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        finalize=_write_value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "slug": _make_slug,
        "spans": _mark_spans,
        "as_json": w.as_json,
        "before": w.format_before,
        "calls": w.count_calls,
        "count": w.format_count,
        "counted": w.format_noun,
        "duration": w.format_duration,
        "error_words": w.error_words,
        "moment": w.format_moment,
        "one_line": w.format_line,
        "percent": w.format_percent,
        "score": w.format_score,
        "span_of": w.format_window,
        "success_rate": w.success_rate,
        "tool_name": w.format_tool,
        "visible": w.escape_hidden,
        "within": w.format_within,
    }
    # The text as it was typed, with hidden characters.
    made.filters["typed"] = lambda text: escape(text.encode("utf-8", "replace").decode())
    made.globals |= {
        "SIGNS": SIGNS,
        "WINDOWS": w.WINDOWS,
        "SAME_CALL": w.SAME_CALL,
        "ORIGINS": w.ORIGINS,
        "plain_table": plain_table,
    }
    made.globals["ui"] = made.get_template("ui.html").module  # which uses the others
    return made


def render_template(template: str, **data: object) -> Html:
    """Return a template of the folder `templates`, by its name without ending, with its data."""
    text = open_templates().get_template(f"{template}.html").render(data)
    return Html(text)  # the template has escaped what is not its own
