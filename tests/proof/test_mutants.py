"""Which swaps the mutants are made of; none is made whose order nobody can see."""

import pytest

from tests.proof.mutant_finder import swapped_in

ONE_TRANSACTION = """
def write(connection, entry):
    {0}
    {1}

def count(connection, kinds):
    connection.execute("INSERT INTO counts VALUES (?)", kinds)
"""
HEAD = 'connection.execute("UPDATE heads SET position = ?", entry)'


@pytest.mark.parametrize(
    ("other", "is_made"),
    [
        ("connection.execute('INSERT INTO audit VALUES (?)', entry)", False),
        ("count(connection, entry)", False),
        ("connection.execute('INSERT INTO audit SELECT position FROM heads')", True),
        ("connection.execute('COMMIT')", True),
        ("entry = chained(entry)", True),
    ],
)
def test_in_one_transaction_the_order_of_two_tables_is_nothing(
    other: str, *, is_made: bool
) -> None:
    """But that with what reads the same table, ends the transaction or makes what is written is."""
    of_head = [each for each in swapped_in(ONE_TRANSACTION.format(HEAD, other)) if "heads" in each]
    assert bool(of_head) is is_made
    own = ONE_TRANSACTION.replace("connection, entry", "path, entry").format(HEAD, other)
    assert HEAD in swapped_in(own)  # a connection of its own may write each by itself


@pytest.mark.parametrize(
    ("function", "other", "is_made"),
    [
        ("async def", "done += len(rows)", False),
        ("async def", "self.done['rows'] += 1", False),
        ("async def", "place = place_of(settings)", False),
        ("def", "self.path = path", False),
        ("def", "place = place_of(settings)", True),
        ("async def", "place = await place_of(settings)", True),
        ("async def", "rows = rows[1:]", True),
        ("async def", "store.rows = rows", True),
        ("async def", "await anew.commit(rows)", True),
        ("async def", "if rows:\n        return", True),
    ],
)
def test_what_only_remembers_may_come_first(function: str, other: str, *, is_made: bool) -> None:
    """What a process remembers ends with it; what is awaited, called or used by both counts."""
    word = "await " if function.startswith("async") else ""
    statement = f"{word}store.commit(rows)"
    text = f"{function} write(self, store, rows, done=0):\n    {statement}\n    {other}\n"
    assert (statement in swapped_in(text)) is is_made
