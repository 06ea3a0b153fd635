"""Tables as files. A cell of a CSV file that a spreadsheet would take for a formula is quoted."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Final

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001
"""https://owasp.org/www-community/attacks/CSV_Injection; the wide ones are taken for the others."""

Rows = Sequence[Mapping[str, object]]


def to_csv(columns: Sequence[tuple[str, str]], rows: Rows) -> bytes:
    """UTF-8 with a mark at its beginning, so that spreadsheets read it as such.

    Args:
        columns: key and label of each.
        rows: values by key; a missing one is an empty cell.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([_cell(label) for _, label in columns])
    for row in rows:
        writer.writerow([_cell(row.get(key)) for key, _ in columns])
    return out.getvalue().encode("utf-8-sig", "replace")


def to_json(columns: Sequence[tuple[str, str]], rows: Rows) -> bytes:
    """An array of objects, in UTF-8."""
    picked = [{key: row.get(key) for key, _ in columns} for row in rows]
    return json.dumps(picked, ensure_ascii=False, indent=1, default=str).encode("utf-8", "replace")


def file_name(name: str, ending: str) -> str:
    """A name that any system takes: letters, digits and hyphens."""
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in name.lower())
    return f"aftercall-{plain.strip('-')[:60] or 'table'}.{ending}"


def _cell(value: object) -> str | int | float:
    if value is None:
        return ""
    if isinstance(value, int | float):  # a negative number is no formula
        return value
    words = str(value).replace("\0", "")
    return f"'{words}" if words.startswith(_FORMULA) else words
