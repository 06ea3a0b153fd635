"""What may be followed without asking: the table of the four classes, and what limits a call."""

from typing import Any

import pytest

from aftercall.change_classes import ORDER, alters_qualifier, are_opposites, reads_only
from aftercall.models import RetryAdvice, ToolAnnotations
from aftercall.models.calls import ChangeClass
from aftercall.policy import Repair, decide_repair

READS = ToolAnnotations(read_only_hint=True)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False)
AGAIN = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True)
DESTROYS = ToolAnnotations(read_only_hint=False, destructive_hint=True)
SAID_NOTHING = ToolAnnotations()


def _decided(
    change: ChangeClass, tool: str, hints: ToolAnnotations | None, *, rejected: bool = True,
    principals: int = 0, quorum: int = 2,
) -> RetryAdvice:  # fmt: skip
    return decide_repair(
        Repair(
            change_class=change, tool_name=tool, hints=hints, before={}, after={},
            rejected=rejected, principals=principals, quorum=quorum,
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "annotations", "allowed"),
    [
        # lossless, plausible, lossy, semantic of one, semantic of two principals
        ("anything", READS, "yyyny"),
        ("anything", WRITES, "yynnn"),
        ("anything", AGAIN, "yynny"),
        ("anything", DESTROYS, "ynnnn"),
        ("delete_rows", SAID_NOTHING, "ynnnn"),
        ("delete_rows", None, "ynnnn"),
        ("purgeCache", None, "ynnnn"),
        ("save_note", WRITES, "yynnn"),
        ("send_mail", None, "yynnn"),
        ("rag_query", None, "yyyny"),
        ("search_and_replace", None, "yynnn"),
        ("get_rows", DESTROYS, "ynnnn"),
        ("get_rows", ToolAnnotations(idempotent_hint=True), "yynnn"),
    ],
)
def test_the_table(tool: str, annotations: ToolAnnotations | None, allowed: str) -> None:
    """Of a call that was rejected before it ran; two principals for another value."""
    asked: list[tuple[ChangeClass, int]] = [
        ("lossless", 0), ("plausible", 0), ("lossy", 0), ("semantic", 1), ("semantic", 2),
    ]  # fmt: skip
    found = [
        _decided(change, tool, annotations, principals=principals) for change, principals in asked
    ]
    assert "".join("y" if each.safe else "n" for each in found) == allowed
    assert all(each.reason for each in found)


@pytest.mark.parametrize("change", ORDER)
def test_what_may_have_run_is_not_run_again(change: ChangeClass) -> None:
    """Unless the tool only reads, or doing it twice changes nothing."""
    decided = _decided(change, "send", WRITES, rejected=False, principals=2)
    assert not decided.safe
    assert "may have had an effect" in decided.reason
    assert _decided(change, "send", READS, rejected=False, principals=2).safe


def test_one_owner_needs_one_word() -> None:
    """`AFTERCALL_QUORUM=1` says that all callers are the owner's."""
    assert _decided("semantic", "get_x", None, principals=1, quorum=1).safe
    assert not _decided("semantic", "get_x", None, quorum=1).safe


@pytest.mark.parametrize(
    ("tool", "annotations", "parameters", "reads"),
    [
        ("list_files", None, (), True),
        ("listFiles", SAID_NOTHING, (), True),
        ("list_files", ToolAnnotations(destructive_hint=True), (), False),
        ("list_files", ToolAnnotations(read_only_hint=True, destructive_hint=True), (), True),
        ("list_files", ToolAnnotations(read_only_hint=False), (), False),
        ("get_or_create", None, (), False),
        ("process", None, (), False),
        ("", None, (), False),
        ("query", None, {"sql": "x"}, True),
        ("query", None, {"sql": "x", "dryRun": True}, False),
        ("query", READS, {"sql": "x", "dryRun": True}, True),
    ],
)
def test_reading_is_said_or_presumed(
    tool: str, annotations: ToolAnnotations | None, parameters: Any, reads: bool
) -> None:
    """By a reading verb, no changing one and no dry run, where the tool gives no hint at all."""
    assert reads_only(tool, annotations, parameters) == reads


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        ({"except": ["a"]}, {"entityNames": ["a"]}, True),
        ({"path": "p", "append": "x"}, {"path": "p", "content": "x"}, True),
        ({"dryRun": True, "paths": []}, {"dry_run": True, "paths": []}, False),
        ({"dryRun": True}, {}, True),
        ({"dryRun": False}, {}, False),
        ({"table": "t", "filter": "id=1"}, {"table": "t"}, True),
        ({"q": {"keepNames": ["a"]}}, {"q": {"names": ["a"]}}, True),
        ({"where": "x"}, {"options": {"where": "x"}}, False),
        ({"name": "a"}, {"title": "a"}, False),
        ({"names": ["a"]}, {"keepNames": ["a"]}, True),
        ({"call": '{"dryRun": true}'}, {"dryRun": True}, False),
    ],
)
def test_what_limits_a_call_is_not_lost(
    before: dict[str, Any], after: dict[str, Any], lost: bool
) -> None:
    """At every depth; what is empty or false said nothing."""
    assert alters_qualifier(before, after) == lost


@pytest.mark.parametrize(
    ("left", "right", "opposite"),
    [
        ("unpublishAt", "publishAt", True), ("unlockd", "locked", True),
        ("denied_users", "allowedUsers", True), ("ap-southeast-1", "ap-northeast-1", True),
        ("no writer", "writer", True), ("file_name", "fileName", False),
        ("recipent", "recipient", False), ("only", "offset", False),
        ("a" * 10_000, "un" + "a" * 10_000, False),
    ],
)  # fmt: skip
def test_opposites_differ_by_a_word_or_a_negation(left: str, right: str, opposite: bool) -> None:
    """In names and in values, with a slip in the word too; long texts are not looked at."""
    assert are_opposites(left, right) == are_opposites(right, left) == opposite
