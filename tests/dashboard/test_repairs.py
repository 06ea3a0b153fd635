"""Repairs of a pattern, and the rules that they made."""

from datetime import UTC, datetime, timedelta
from typing import Any

from aftercall.models import Execution
from aftercall.redaction import Redactor
from mongo.records import RepairRow, ToolKey
from retrieval.edits.kinds import Clamp, Edit, Rename, Replace, edit_key
from retrieval.knowledge.documents import document_id
from retrieval.knowledge.rules import ToolKnowledge
from retrieval.patterns import Pattern, mark_of
from service.dashboard.shown.repair_rules import SAME_CALL, rules_of
from service.dashboard.shown.repairs import belonging_to, ids_of, repairs_of, shown_repairs
from tests.retrieval.known_tools.made_records import knowledge, mended, record

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
TOOL = ToolKey("default", "git", "git_log")
IDS = [f"0b7e1c9a-2a4e-4b0e-9d5c-{number:012}" for number in range(10)]
SECRET = "AKIAIOSFODNN7EXAMPLE"  # noqa: S105  # it only looks like one
OTHER = "AKIAIOSFODNN7EXAMPLF"


def pattern(*signatures: str) -> Pattern:
    """A pattern of these wordings."""
    made = Pattern(
        pattern_id="p", server_name="git", tool_name="git_log",
        category="invalid_parameters", leader=signatures[0],
    )  # fmt: skip
    marks = (document_id("default", "reflection", "git", "git_log", each) for each in signatures)
    made.set_marks({mark_of(each) for each in marks})
    return made


def row(failed: str, mended: str, signature: str, edits: list[Edit] | None = None) -> RepairRow:
    """A repair as it is stored."""
    return RepairRow(TOOL, failed, mended, signature, edit_key(edits or []).encode())


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


def test_repairs_belong_to_the_pattern_of_their_signature() -> None:
    """Whatever the wording; those of other patterns of the tool are left out, the order stays."""
    belongs = belonging_to("default", pattern("too many", "at most <n>"))
    rows = [row("a", "b", "at most <n>"), row("c", "d", "no such path"), row("e", "f", "too many")]
    assert [each.failed_id for each in repairs_of(rows, belongs)] == ["a", "e"]
    assert ids_of(rows[:2]) == ["a", "b", "c", "d"]


def test_another_workspace_has_other_patterns() -> None:
    """The same wording of the same tool there is no failure of this pattern."""
    assert not belonging_to("other", pattern("too many"))("too many")


def test_a_repair_is_shown_with_both_calls_and_what_changed() -> None:
    """And with what it teaches, and how long the failure waited for it."""
    edits: list[Edit] = [Clamp(name="max_count", maximum=100)]
    executions = {each.execution_id: each for each in (called(1, failed=True), called(4))}
    [shown] = shown_repairs([row(IDS[1], IDS[4], "too many", edits)], executions, Redactor())
    assert shown.changes == ("replace /max_count: 500 -> 100",)
    assert shown.failed.error == "Error: max_count must be <= 100"
    assert shown.mended.error is None
    assert shown.lesson == "max_count must be at most 100."
    assert shown.waited == timedelta(seconds=3)


def test_repairs_whose_calls_have_expired_are_left_out() -> None:
    """One half alone shows nothing."""
    rows = [row(IDS[1], IDS[2], "too many")]
    assert not list(shown_repairs(rows, {IDS[2]: called(2)}, Redactor()))


def test_a_mending_call_that_claims_to_be_earlier_waited_no_time() -> None:
    """Callers' clocks differ."""
    executions = {each.execution_id: each for each in (called(5, failed=True), called(2))}
    [shown] = shown_repairs([row(IDS[5], IDS[2], "too many")], executions, Redactor())
    assert shown.waited == timedelta()


def test_what_is_a_secret_today_is_masked_in_old_calls() -> None:
    """In parameters, errors, contexts, changes and lessons."""
    edits: list[Edit] = [Replace(name="key", before=SECRET, value=OTHER)]
    executions = {
        each.execution_id: each
        for each in (
            called(
                1, failed=True, parameters={"key": SECRET}, context=f"use {SECRET}",
                error={"message": f"no key {SECRET}"},
            ),
            called(2, parameters={"key": OTHER, "token": "abcdefgh"}),
        )
    }  # fmt: skip
    shown = list(shown_repairs([row(IDS[1], IDS[2], "x", edits)], executions, Redactor()))
    assert len(shown) == 1
    assert SECRET not in repr(shown)
    assert OTHER not in repr(shown)
    assert "abcdefgh" not in repr(shown)


def test_a_repair_of_another_version_is_shown_without_a_lesson() -> None:
    """Its calls say enough."""
    unread = RepairRow(TOOL, IDS[1], IDS[2], "too many", b'{"kind":"unheard-of"}')
    executions = {each.execution_id: each for each in (called(1, failed=True), called(2))}
    [shown] = shown_repairs([unread], executions, Redactor())
    assert shown.lesson == ""


def rules(known: ToolKnowledge, *signatures: str) -> list[tuple[str, int, int, bool]]:
    """Lesson, repairs, agents, and whether it is told."""
    belongs = belonging_to("default", pattern(*signatures))
    found = rules_of(record(knowledge=known), belongs, Redactor())
    return [(each.lesson, each.repairs, each.agents, each.is_told) for each in found]


def test_rules_say_what_speaks_for_them() -> None:
    """Those of other patterns are left out."""
    known = mended(knowledge(), "too many", [Clamp(name="max_count", maximum=100)])
    mended(known, "no such path", [Rename(name="path", to="paths")])
    assert rules(known, "too many") == [("max_count must be at most 100.", 2, 2, True)]


def test_one_repair_under_two_wordings_is_one_rule() -> None:
    """Its repairs add up."""
    edits: list[Edit] = [Rename(name="path", to="paths")]
    known = mended(mended(knowledge(), "too many", edits), "at most <n>", edits)
    assert rules(known, "too many", "at most <n>") == [
        ("The parameter is called paths, not path.", 4, 2, True)
    ]


def test_a_rule_of_one_session_is_not_told_to_everybody() -> None:
    """Its value is that caller's own."""
    edits: list[Edit] = [Replace(name="path", before="/a", value="/b")]
    known = mended(knowledge(), "too many", edits, sessions=["s1"])
    [(_, repairs, _, is_told)] = rules(known, "too many")
    assert (repairs, is_told) == (1, False)


def test_a_value_under_a_name_that_became_secret_is_not_in_a_lesson() -> None:
    """At any depth; what was learned before stays as it was learned."""
    redactor = Redactor.create(extra_names=["door_word"])
    edits: list[Edit] = [
        Replace(name="door_word", before="zebra", value="zebu"),
        Replace(name="inside", inside=("doorWord",), before={"a": "zebra"}, value=4711),
    ]
    known = mended(knowledge(), "too many", edits)
    [found] = rules_of(
        record(knowledge=known), belonging_to("default", pattern("too many")), redactor
    )
    assert not any(word in found.lesson for word in ("zebra", "zebu", "4711"))
    assert "door_word" in found.lesson


def test_a_rule_without_edits_is_the_same_call_again() -> None:
    """And it says so."""
    known = mended(knowledge(), "took <n> s", [])
    assert rules(known, "took <n> s")[0][0] == SAME_CALL


def test_nothing_is_known_of_a_tool_that_nothing_was_learned_of() -> None:
    """An empty list."""
    assert rules_of(record(), lambda _: True, Redactor()) == []
