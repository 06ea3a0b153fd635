"""*Keys*: the audit's rows that say the same stand in one."""

from datetime import UTC, datetime

from aftercall.models import AuditRecord
from service.dashboard.keys import fold_entries
from service.dashboard.words import fold_names


def entry(position: int, action: str, subject: str) -> AuditRecord:
    """One that the owner did."""
    return AuditRecord(
        position=position,
        at=datetime(2026, 11, 22, tzinfo=UTC),
        principal="owner",
        workspace="default",
        action=action,
        subject=subject,
        hash="0" * 64,
    )


def test_fifty_registered_tools_are_one_row() -> None:
    """What stands between them keeps its own place."""
    puts = [entry(100 - each, "tool.put", f"git.{each}") for each in range(50)]
    rows = fold_entries([*puts, entry(50, "key.create", "k1"), entry(49, "tool.put", "git.x")])
    assert [len(row) for row in rows] == [50, 1, 1]
    assert fold_names(each.subject for each in rows[0]) == "git.0, git.1, git.2 and 47 more"


def test_few_names_are_all_said_once() -> None:
    """Three are no reason to fold."""
    assert fold_names(["a", "b", "a", "c"]) == "a, b, c"
    assert fold_names([]) == ""
