"""Tables: cells as they are read, sorted and taken along."""

import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from service.dashboard.html import Anchor, Column, DataTable, Row

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def table(rows: Sequence[Row], *columns: Column) -> DataTable:
    found = columns or (Column("name", "Name"), Column("calls", "Calls", "number"))
    return DataTable("Tools", found, rows)


def cells(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))


@pytest.mark.parametrize(
    ("column", "value", "cell"),
    [
        (Column("a", "A"), "plain", "plain"),
        (Column("a", "A"), "a\u202eb\nc", "a\\u202eb c"),
        (Column("a", "A"), Anchor("t", "/tools/t"), ["t", "/tools/t"]),
        (Column("a", "A"), Anchor("t", "https://evil.example"), "t"),
        (Column("a", "A", "number"), 1_200, ["1,200", None, 1_200]),
        (Column("a", "A", "number"), 0.5, ["0.50", None, 0.5]),
        (Column("a", "A", "percent"), 0.5, ["50.0 %", None, 0.5]),
        (Column("a", "A", "duration"), 2_300.0, ["2.3 s", None, 2_300.0]),
        (Column("a", "A", "time"), AT, ["2026-03-01 12:00", None, AT.timestamp()]),
        (Column("a", "A", "number"), None, ["-", None, None]),
        (Column("a", "A", of=lambda row: row["a"] * 2), "x", "xx"),
    ],
)
def test_a_cell_is_a_text_and_what_it_is_sorted_by(column: Column, value: Any, cell: Any) -> None:
    """As it is sent to the page: in one line, visible, and no link leads elsewhere."""
    data = table([{"a": value}], column).write_html().partition("data='")[2].partition("'></")[0]
    assert json.loads(data.replace("&#39;", "'").replace("&amp;", "&"))["rows"] == [[cell]]


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1", "-1+1", "@sum(A1)", "\t=1", "\n=1", "=cmd|' /C calc'!A0", "＝1"],  # noqa: RUF001
    ids=["equals", "plus", "minus", "at", "tab", "break", "command", "wide"],
)
def test_what_looks_like_a_formula_is_text(text: str) -> None:
    """In a cell, and in the name of a column."""
    columns = Column("name", "Name"), Column("calls", "=1+1", "number")
    head, [name, calls] = cells(table([{"name": text, "calls": -5}], *columns).write_csv())
    assert name == f"'{text.strip()}"
    assert head[1] == "'=1+1"
    assert calls == "-5"  # a negative number stays one


def test_a_file_holds_the_values_of_the_table() -> None:
    """Quotes, breaks and empty cells survive; JSON has plain values by the keys of columns."""
    rows = [{"name": Anchor('a "b", c', "/x"), "calls": None}, {"name": "\ud800", "calls": 2}]
    content = table(rows).write_csv()
    assert content.startswith(b"\xef\xbb\xbf")
    assert cells(content)[1:] == [['a "b", c', ""], ["\\ud800", "2"]]
    assert json.loads(table(rows).write_json()) == [
        {"name": 'a "b", c', "calls": None},
        {"name": "\\ud800", "calls": 2},
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Most frequent failures", "aftercall-most-frequent-failures.csv"),
        ("../../etc/passwd", "aftercall-etc-passwd.csv"),
        ("\u202e", "aftercall-table.csv"),
    ],
    ids=["plain", "path", "nothing left"],
)
def test_names_of_files_are_plain(name: str, expected: str) -> None:
    assert DataTable(name, [], []).file_name("csv") == expected
