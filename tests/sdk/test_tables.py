"""A table of so many entries."""

from aftercall.tables import keep_latest


def test_what_was_put_longest_ago_makes_room() -> None:
    """What is put again counts as put now."""
    table = {"a": 1, "b": 2}
    assert keep_latest(table, "a", 3, 2) == 3
    keep_latest(table, "c", 4, 2)
    assert list(table.items()) == [("a", 3), ("c", 4)]
    keep_latest(table, "d", 5, 1)
    assert table == {"d": 5}
