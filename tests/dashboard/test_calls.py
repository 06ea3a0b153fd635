"""Calls and repairs as a page shows them: bounded, masked as of today, with what was changed."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

from aftercall.models import Execution
from aftercall.redaction import Redactor
from retrieval.knowledge.memory import MendedFailure
from retrieval.knowledge.patterns.consolidation import ConsolidatedPattern, mark_of
from retrieval.knowledge.rewrites.edits import Clamp, Edit, edit_key
from retrieval.knowledge.rows.documents import document_id
from service.dashboard.html import open_templates
from service.dashboard.pattern import PatternEvidence, ShownRepair, read_repairs
from tests.dashboard.test_look import look

UI: Any = open_templates().get_template("ui.html").module

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
IDS = [f"0b7e1c9a-2a4e-4b0e-9d5c-{number:012}" for number in range(10)]


def pattern_of(*signatures: str) -> ConsolidatedPattern:
    """A pattern of these wordings."""
    made = ConsolidatedPattern(
        pattern_id="p", server_name="git", tool_name="git_log",
        category="invalid_parameters", leader=signatures[0],
    )  # fmt: skip
    marks = (document_id("default", "reflection", "git", "git_log", each) for each in signatures)
    made.members = b64encode(b"".join(sorted(map(mark_of, marks)))).decode()
    return made


def row(failed: str, mended: str, signature: str, edits: list[Edit] | None = None) -> MendedFailure:
    """A repair as it is stored."""
    return MendedFailure(
        failed_id=failed, mended_id=mended, failed_at=AT, mended_at=AT, signature=signature,
        edit_key=edit_key(edits or []),
    )  # fmt: skip


def called(number: int, *, failed: bool = False, **fields: Any) -> Execution:
    """A call, a second after the one before."""
    return Execution.model_validate(
        {
            "execution_id": IDS[number],
            "timestamp": AT + timedelta(seconds=number),
            "agent": "ada",
            "server_name": "git",
            "tool_name": "git_log",
            "parameters": {"max_count": 500 if failed else 100},
            "outcome": "failure" if failed else "success",
            "error": {"message": "max_count must be <= 100"} if failed else None,
            **fields,
        }
    )


def repair(before: dict[str, Any], after: dict[str, Any]) -> ShownRepair:
    """A repair that changed parameters so."""
    return ShownRepair(called(1, failed=True, parameters=before), called(2, parameters=after), "")


def test_a_repair_is_shown_with_both_calls_and_what_changed() -> None:
    """And with what it teaches, and how long the failure waited for it."""
    edits: list[Edit] = [Clamp(name="max_count", maximum=100)]
    calls = {each.execution_id: each for each in (called(1, failed=True), called(4))}
    [found] = read_repairs([row(IDS[1], IDS[4], "too many", edits)], calls, Redactor())
    assert found.changes == ["replace /max_count: 500 -> 100"]
    assert found.lesson == "`max_count` must be at most 100."
    assert PatternEvidence([found], []).glimpse == "replace /max_count: 500 -> 100"
    shown = UI.repair(look(), found, 3)
    assert "Error: max_count must be &lt;= 100" in shown
    assert "3.0 s after the failure." in shown
    assert "/dashboard/agents/ada" in shown


def test_a_repair_lacks_what_has_expired_or_cannot_be_read() -> None:
    """One call alone shows nothing; both without a lesson show enough."""
    calls = {each.execution_id: each for each in (called(1, failed=True), called(2))}
    unread = row(IDS[1], IDS[2], "too many").model_copy(update={"edit_key": '{"kind":"?"}'})
    [found] = read_repairs([row(IDS[1], IDS[7], "too many"), unread], calls, Redactor())
    assert found.lesson == ""


def test_a_call_is_shown_with_parameters_error_and_context() -> None:
    """And with what else was said of it; what nobody saw is not an empty object."""
    error = {"type": "ValueError", "message": "too many", "code": "E7"}
    call = called(1, failed=True, error=error, context="find it", attempt=2, tool_version="1.2")
    shown = UI.call_card(look(), "Failed", call, 3)
    for text in ("&#34;max_count&#34;: 500", "ValueError (E7): too many", "find it",
                 "2026-03-01 12:00 UTC by ", ", version 1.2, attempt 2"):  # fmt: skip
        assert text in shown
    unseen = UI.call_card(look(), "Failed", called(1, parameters={}, parameters_known=False), 3)
    assert "Nobody saw its parameters." in unseen
    assert "Error" not in unseen


def test_long_parameters_and_many_changes_are_cut() -> None:
    """So that no call fills a page; what is left out is counted."""
    assert len(UI.call_card(look(), "x", called(1, parameters={"t": "x" * 100_000}), 3)) < 6_000
    changes = repair({}, {f"p{n:03}": n for n in range(25)}).changes
    assert (len(changes), changes[-1]) == (21, "and 5 more")


def test_changes_are_told_in_order_with_both_values() -> None:
    """As JSON Patch operations, one line each; of the same call made again there are none."""
    failed, mended = {"topK": 50, "tz": "CET", "q": "x"}, {"topK": 10, "q": "x", "page": 1}
    assert repair(failed, mended).changes == [
        "replace /topK: 50 -> 10",
        'remove /tz (was "CET")',
        "add /page: 1",
    ]  # fmt: skip
    same = repair({"a": 1}, {"a": 1})
    assert same.changes == []
    assert "the same call worked" in PatternEvidence([same], []).glimpse
