"""Small tables, shown by Jupyter without another library. Every cell is text and never markup."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

MAX_CELL = 160
"""Characters of a cell that are shown: a tool may have stated a page."""

_CELL = "padding:0.2em 0.8em;vertical-align:top;"
_NUMBER = _CELL + "text-align:right;font-variant-numeric:tabular-nums;"
_TEXT = _CELL + "text-align:left;white-space:pre-wrap;"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns; a row has one cell per column."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    """Which columns hold numbers alone; these stand to the right."""
    caption: str = ""

    def _repr_html_(self) -> str:
        heads = "".join(
            f'<th scope="col" style="{_style(is_number)}">{escape(name)}</th>'
            for name, is_number in zip(self.columns, self.numeric, strict=True)
        )
        body = "".join(f"<tr>{self._cells(row)}</tr>" for row in self.rows)
        caption = f"<caption>{escape(self.caption)}</caption>" if self.caption else ""
        return f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"

    def _cells(self, row: tuple[str, ...]) -> str:
        return "".join(
            f'<td style="{_style(is_number)}">{escape(cell)}</td>'
            for cell, is_number in zip(row, self.numeric, strict=True)
        )

    def __repr__(self) -> str:
        lines = [self.columns, *self.rows]
        widths = [max(len(line[place]) for line in lines) for place in range(len(self.columns))]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if is_number else cell.ljust(width)
                for cell, width, is_number in zip(line, widths, self.numeric, strict=True)
            ).rstrip()
            for line in lines
        )


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, caption: str = "") -> Table:
    """Return a table of anything: numbers with two decimals, None as nothing, long texts cut.

    Raises:
        ValueError: a row has not one cell per column.
    """
    kept = [tuple(row) for row in rows]
    if any(len(row) != len(columns) for row in kept):
        raise ValueError(f"each row needs {len(columns)} cells: {', '.join(columns)}")
    numeric = tuple(
        all(isinstance(row[place], int | float | None) for row in kept)
        for place in range(len(columns))
    )
    shown = tuple(tuple(_shown(cell) for cell in row) for row in kept)
    return Table(tuple(columns), shown, numeric, caption)


def percent(share: float | None) -> str:
    """Return a share from 0 to 1 with one decimal at most, as `83.3 %`; nothing for None."""
    return "" if share is None else f"{share * 100:.1f}".removesuffix(".0") + " %"


def _shown(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:,.2f}"
    if isinstance(cell, int):
        return f"{cell:,}"
    text = str(cell)
    return text if len(text) <= MAX_CELL else f"{text[: MAX_CELL - 1]}…"


def _style(is_number: bool) -> str:  # noqa: FBT001  # the only thing it asks
    return _NUMBER if is_number else _TEXT
