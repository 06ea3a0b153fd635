"""HTML and tables from plain functions. A `str` is always text; only what is made here is markup.

So nothing that a tool, an agent or an address said can become an element, an attribute or a script,
and characters that cannot be seen are written as escapes.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from service.dashboard.words import (
    MAX_SENTENCE,
    count,
    duration,
    moment,
    one_line,
    percent,
    score,
    visible,
)

Tone = Literal["good", "bad", "warn", "plain"]
_SIGNS: Final[dict[Tone, str]] = {"good": "✓ ", "bad": "✗ ", "warn": "! ", "plain": ""}
"""What stands before a word, for nothing is said by colour alone."""
_VOID: Final = frozenset({"input", "link", "meta"})


class Html(str):
    """Markup."""

    __slots__ = ()


Content: TypeAlias = "str | Html | Iterable[Content] | None"
"""Text, markup, empty, or several of these."""
Value: TypeAlias = "str | Html"
"""Text or a link."""


def markup(content: Content) -> Html:
    """Content as markup: text is escaped."""
    if content is None:
        return Html()
    if isinstance(content, Html):
        return content
    if isinstance(content, str):
        return Html(escape(visible(content)))
    return Html("".join(map(markup, content)))


def tag(name: str, /, *content: Content, **attributes: str | int | bool | None) -> Html:
    """An element.

    Of the names of attributes `_` stands for `-`, one at the end for nothing (`class_`). None and
    False leave an attribute out, True writes it without a value.
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{_quoted(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    end = "" if name in _VOID else f"{markup(content)}</{name}>"
    return Html(f"<{name}{written}>{end}")


def p(*content: Content, class_: str | None = None) -> Html:
    """A paragraph."""
    return tag("p", *content, class_=class_)


def box(class_: str, *content: Content) -> Html:
    """A `div` of a class."""
    return tag("div", *content, class_=class_)


def note(*content: Content) -> Html | None:
    """A remark in small letters; nothing without content."""
    return p(*content, class_="note") if any(content) else None


def link(text: str, href: str | None, class_: str | None = None) -> Html:
    """A link within the service; plain text when `href` is None or leads elsewhere."""
    if href is None or not is_local(href):
        return tag("span", text, class_=class_)
    return tag("a", text, class_=class_, href=href)


def is_local(href: str) -> bool:
    """Whether an address is a path of this service, or a place on this page."""
    if not href.isprintable():  # browsers leave out what is not: `/` and a tab before `/` are `//`
        return False
    return href.startswith("#") or (href.startswith("/") and not href.startswith(("//", "/\\")))


def badge(word: str, tone: Tone = "plain") -> Html:
    """A short word about a state."""
    return tag("span", _SIGNS[tone] + word, class_=f"badge {tone}")


def toned(words: str, tone: Tone) -> str:
    """A sentence with the sign of its tone."""
    return _SIGNS[tone] + words


def section(title: str, *content: Content, remark: str = "") -> Html:
    """A card with a heading and, below it, what it is about."""
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60]
    heading = tag("h2", title)
    return tag(
        "section", heading, note(remark), *content, class_="card", id=f"s-{slug}", aria_label=title
    )


def stats(*numbers: tuple[str, ...], class_: str = "stats") -> Html:
    """Numbers beside one another: what each is, the number, and where it has one a remark."""
    return box(class_, [
        box("stat", p(label, class_="label"), p(value, class_="value"), p(*remark, class_="note"))
        for label, value, *remark in numbers
    ])  # fmt: skip


def facts(*pairs: tuple[str, Value]) -> Html:
    """Names with values."""
    return tag("dl", [[tag("dt", name), tag("dd", value)] for name, value in pairs], class_="facts")


def lines(items: Iterable[Content], name: str = "ul", class_: str = "lines") -> Html:
    """A list."""
    return tag(name, [tag("li", each) for each in items], class_=class_)


def code(text: str, **attributes: str) -> Html:
    """Preformatted text, which can be scrolled when it is long, with the keyboard too."""
    # A line end at its very beginning would be swallowed.
    return tag("pre", "\n" + text, class_="code", tabindex=0, **attributes)


def copyable(text: str, name: str) -> Html:
    """Preformatted text with a button that copies it; `name` is its id on the page."""
    button = tag("button", "Copy", type="button", data_copy=name)
    return markup([p(button, tag("span", role="status", class_="note"), class_="copy"),
                   code(text, id=name)])  # fmt: skip


def details(summary: str, *content: Content, class_: str | None = None) -> Html:
    """What is folded up until its reader opens it."""
    return tag("details", tag("summary", summary), *content, class_=class_)


def empty(what: str, cure: str, command: str | None = None, *, is_complete: bool = True) -> Html:
    """An empty state: what is missing, and what to do; unless it is not known yet to be one."""
    if not is_complete:
        what, command = "Still counting what was recorded.", None
        cure = "Nothing has to be done: this page fills by itself in a moment."
    return box("empty", p(what, class_="what"), p(cure), None if command is None else code(command))


def bars(title: str, items: Iterable[tuple[Value, str, float]]) -> Html:
    """Lying bars that are words too: no picture needs to be seen to read them.

    Args:
        title: what is counted, for who does not see it.
        items: name, number in words, and length in [0, 1].
    """
    drawn = [
        [tag("span", name, class_="bar-label"), tag("span", words, class_="bar-count"),
         tag("span", tag("span", class_="bar", style=f"width:{100 * length:.1f}%"),
             class_="bar-track", aria_hidden="true")]
        for name, words, length in items
    ]  # fmt: skip
    return tag("ul", [tag("li", each) for each in drawn], class_="bars", aria_label=title)


def form(
    action: str,
    *fields: Content,
    hidden: Iterable[tuple[str, str]] = (),
    class_: str = "filter-form",
) -> Html:
    """A form of the browser's own: it works with the keyboard, and gives an address to share."""
    kept = [tag("input", type="hidden", name=name, value=value) for name, value in hidden]
    submit = tag("button", "Show", type="submit")
    return tag("form", kept, *fields, submit, class_=class_, method="get", action=action)


def search_field(label: str, name: str, value: str) -> Html:
    """A field of such a form."""
    field = tag("input", type="search", name=name, value=value, maxlength=MAX_QUERY)
    return tag("label", tag("span", label), field)


def choice(label: str, name: str, options: Iterable[tuple[str, str]], chosen: str) -> Html:
    """A choice of such a form, from values with their words."""
    offered = [
        tag("option", words, value=value, selected=value == chosen) for value, words in options
    ]
    return tag("label", tag("span", label), tag("select", offered, name=name))


MAX_QUERY: Final = 256
"""Characters that a field of a form takes."""


def data_element(name: str, data: object) -> Html:
    """An element of our script's own, which draws itself from `data`."""
    # Between apostrophes JSON's many quotes may stay as they are.
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    written = text.replace("&", "&amp;").replace("'", "&#39;").replace("<", "\\u003c")
    return Html(f"<{name} data='{written}'></{name}>")


def _quoted(value: str | int) -> str:
    return escape(str(value).encode("utf-8", "replace").decode())


# Tables that a reader sorts, filters, pages through and takes along (`static/dashboard.js`).

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
