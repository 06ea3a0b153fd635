"""Tables as files: a spreadsheet takes no cell for a formula, and JSON says what was shown."""

import csv
import io
import json

import pytest

from service.dashboard.downloads import file_name, to_csv, to_json

COLUMNS = [("name", "Name"), ("calls", "Calls")]


def cells(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1", "-1+1", "@sum(A1)", "\t=1", "\r=1", "\n=1", "=cmd|' /C calc'!A0", "＝1"],  # noqa: RUF001
    ids=["equals", "plus", "minus", "at", "tab", "return", "break", "command", "wide"],
)
def test_what_looks_like_a_formula_is_text(text: str) -> None:
    _, [name, _] = cells(to_csv(COLUMNS, [{"name": text, "calls": 1}]))
    assert name == f"'{text}"


def test_names_of_columns_are_no_formulas_either() -> None:
    [head] = cells(to_csv([("a", "=1+1")], []))
    assert head == ["'=1+1"]


def test_negative_numbers_stay_numbers() -> None:
    _, row = cells(to_csv(COLUMNS, [{"name": "x", "calls": -5}]))
    assert row == ["x", "-5"]


def test_quotes_breaks_and_missing_cells_survive() -> None:
    content = to_csv(COLUMNS, [{"name": 'a "b", c\nd\0'}])
    assert cells(content)[1] == ['a "b", c\nd', ""]
    assert content.startswith(b"\xef\xbb\xbf")


def test_json_holds_values_as_they_are() -> None:
    rows = [{"name": "=1", "calls": 2, "other": "left out"}]
    assert json.loads(to_json(COLUMNS, rows)) == [{"name": "=1", "calls": 2}]


def test_half_a_character_breaks_no_download() -> None:
    assert b"?" in to_csv(COLUMNS, [{"name": "\ud800"}])
    assert b"?" in to_json(COLUMNS, [{"name": "\ud800"}])


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
    assert file_name(name, "csv") == expected
