"""Tables sum up rows of the same keys, however they stand, and read back as they were stored."""

from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.usage.table import StoredTable, Table, empty, read_table, table_of

rows = st.lists(
    st.tuples(st.integers(490_000, 490_100), st.integers(0, 3), st.integers(-40, 200),
              st.integers(0, 10**10)),
    max_size=40,
)  # fmt: skip
Rows = list[tuple[int, int, int, int]]


def table(given_rows: Rows) -> Table:
    return table_of(array("q", [number for row in given_rows for number in row]), 3, 1)


@given(rows, st.integers(490_000, 490_100), st.integers(0, 50))
def test_a_compact_table_says_the_same(made: Rows, first: int, hours: int) -> None:
    """In total, by a key, by two, by steps, and of any span."""
    loose, last = table(made), first + hours
    compact = loose.compact()
    for one, other in ((loose, compact), (loose.within(first, last), compact.within(first, last))):
        assert one.total().tolist() == other.total().tolist()
        assert one.by(1, 4).tolist() == other.by(1, 4).tolist()
        assert one.by_both(1, 4, 2, 241, -40).tolist() == other.by_both(1, 4, 2, 241, -40).tolist()
    expected = [0] * (hours + 1)
    for hour, _, _, count in made:
        if first <= hour <= last:
            expected[hour - first] += count
    told = compact.within(first, last).by_step(first, 1, hours + 1)[:, 0].tolist()
    assert told == expected


@given(rows, rows)
def test_joined_tables_hold_the_rows_of_both(one: Rows, other: Rows) -> None:
    joined = table(one).compact().joined(table(other))
    assert joined.total().tolist() == table(one + other).total().tolist()


@given(rows)
def test_a_table_reads_back(made: Rows) -> None:
    """And the same rows in another order are the same bytes."""
    stored = table(made).compact().stored()
    assert table(made[::-1]).compact().stored() == stored
    read = read_table(StoredTable.model_validate_json(stored.model_dump_json()), 3, 1)
    assert read.compact().stored() == stored


@pytest.mark.parametrize(
    "damaged",
    [
        StoredTable(kinds=["<i8", "<i8"], data=""),
        StoredTable(kinds=["<i8", "<f8", "<i8"], data=""),
        StoredTable(kinds=["<i8", "<i8", "nothing"], data=""),
        StoredTable(kinds=["|u1", "|u1", "|u1"], data="eJxLTEoGAAJNASc="),
        StoredTable(kinds=["|u1", "|u1", "<u2"], data="eJxLTEoGAAJNASc="),
        StoredTable(kinds=["|u1", "|u1", "|u1"], data="AAAA"),
        StoredTable(kinds=["|u1", "|u1", "|u1"], data="/"),
        Table((np.array([7, 3]), np.array([1, 1])), (np.array([1, 1]),)).stored(),
        Table((np.array([3, 7]), np.array([1, 1])), (np.array([1, -1]),)).stored(),
    ],
    ids=[
        "columns",
        "floats",
        "no-kind",
        "whole",
        "cut-off",
        "no-zlib",
        "no-base64",
        "no-order",
        "below-zero",
    ],
)
def test_what_is_no_table_is_refused(damaged: StoredTable, request: pytest.FixtureRequest) -> None:
    """With an error that says so, and no other; the whole one is there for comparison."""
    if request.node.callspec.id == "whole":
        assert read_table(damaged, 2, 1).total().tolist() == [ord("c")]
        return
    with pytest.raises(ValueError):  # noqa: PT011  # whatever it says
        read_table(damaged, 2, 1)


def test_an_empty_table_sums_up_to_nothing() -> None:
    nothing = empty(2, 6)
    assert nothing.within(0, 9).by(1, 3).tolist() == [[0] * 6] * 3
    assert nothing.compact().total().tolist() == [0] * 6
