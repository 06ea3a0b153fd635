"""What the session knows for a wrong value: paths, folders, ids by their kind, the caller."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from retrieval.answers.proposers.compose import propose_changes
from retrieval.knowledge.session.session_calls import EarlierCall, extract_values, session_call
from tests.retrieval.cases import make_case

Earlier = Sequence[tuple[str, dict[str, Any], Any]]
ONE, TWO = "0f6f0a52-1a77-4c7b-9a53-0a4fbc0b3a11", "9b2f0a52-1a77-4c7b-9a53-0a4fbc0b3a12"
ISSUES = {"issues": [{"id": ONE, "key": "WEB-1"}, {"id": TWO, "key": "WEB-2"}]}


def calls(earlier: Earlier) -> list[EarlierCall]:
    """Successes of a session, by tool, arguments and result."""
    return [
        session_call(tool, sent, extract_values(result), result) for tool, sent, result in earlier
    ]


def proposed(
    call: dict[str, Any], message: str, earlier: Earlier, tool: str = "tool"
) -> list[dict[str, Any]]:
    """The repaired calls that are proposed from the session alone."""
    made = replace(make_case(call, message), tool=tool)
    session = calls(earlier)
    case = replace(made, session=lambda: session)
    return [each.parameters for each in propose_changes(case)]


@pytest.mark.parametrize(
    ("call", "message", "earlier", "meant"),
    [
        (
            {"path": "/data/form_requiremente.md"},
            "ENOENT: no such file or directory, open '/data/form_requiremente.md'",
            [("list_directory", {"path": "/data"}, "[FILE] form_requirement.md\n[DIR] old")],
            {"path": "/data/form_requirement.md"},
        ),
        (
            {"command": "grep foo session/state.go"},
            "Exit code 2\ngrep: session/state.go: No such file or directory",
            [("Grep", {"pattern": "foo"}, "cmd/cli/session/state.go:12: foo\ncmd/main.go:3: foo")],
            {"command": "grep foo cmd/cli/session/state.go"},
        ),
        (
            {"files": ["C:\\shop\\setting.json"]},
            "Cannot find path 'C:\\shop\\setting.json' because it does not exist.",
            [("dir", {"path": "C:\\shop"}, "03/09/2025  17:45  566 settings.json\r\n")],
            {"files": ["C:\\shop\\settings.json"]},
        ),
        (
            {"file_path": "src/main.py"},
            "file_path must be an absolute path",
            [("Read", {"file_path": "/home/u/proj/src/a.py"}, "...")],
            {"file_path": "/home/u/proj/src/main.py"},
        ),
        (
            {"repo_path": "."},
            "repo_path must be an absolute path",
            [("get_cwd", {}, {"cwd": "/srv/app"})],
            {"repo_path": "/srv/app"},
        ),
    ],
    ids=["listed", "in a command", "of windows", "behind its folder", "here"],
)
def test_a_path_is_the_near_one_that_the_session_names(
    call: dict[str, Any], message: str, earlier: Earlier, meant: dict[str, Any]
) -> None:
    """All else of the call stays, byte for byte."""
    assert proposed(call, message, earlier)[0] == meant


def test_of_two_files_of_one_name_none_is_proposed() -> None:
    """Which is meant is for the caller to say."""
    found = [("glob", {"pattern": "*"}, ["a/x/conf.yml", "b/y/conf.yml"])]
    assert proposed({"path": "c/conf.yml"}, "c/conf.yml: no such file", found) == []


def test_a_name_is_exchanged_for_the_id_of_what_has_it() -> None:
    """Where an id is wanted and one record of the session has the name."""
    message = "issueId must be a UUID"
    found = [("list_issues", {}, ISSUES)]
    assert proposed({"issueId": "WEB-2"}, message, found)[0] == {"issueId": TWO}
    assert proposed({"issueId": "WEB-7"}, message, found) == []


def test_the_id_of_another_kind_is_never_taken() -> None:
    """A page was made by somebody: that one's id is no page's."""
    found = [("get_page", {}, {"title": "Plan", "created_by": {"id": "u-1", "name": "Mia"}})]
    assert proposed({"page_id": "p-x"}, "page p-x not found", found) == []
    assert proposed({}, "missing required parameter: page_id", found) == []


def test_the_only_one_of_its_kind_fills_what_is_missing() -> None:
    """Two would be a guess."""
    missing = "missing required parameter: channel_id"
    one = {"channels": [{"id": "C1", "name": "general"}]}
    two = {"channels": [{"id": "C1", "name": "general"}, {"id": "C2", "name": "random"}]}
    assert proposed({}, missing, [("list_channels", {}, one)])[0] == {"channel_id": "C1"}
    assert proposed({}, missing, [("list_channels", {}, two)]) == []


def test_the_caller_is_who_the_tool_says() -> None:
    """Where the call says `me`, or stands in a place for one."""
    mine = [("get_me", {}, {"login": "octo", "id": 7, "name": "Octo Cat"})]
    assert proposed({"owner": "your-username"}, "404 Not Found", mine)[0] == {"owner": "octo"}
    assert proposed({"owner": "acme"}, "404 Not Found", mine) == []


def test_another_files_folder_is_no_base() -> None:
    """Where a copy goes to says nothing of where it comes from."""
    call = {"source_path": "export/report.pdf", "destination_path": "/mnt/2025/report.pdf"}
    message = "source_path must be absolute (got 'export/report.pdf')"
    assert proposed(call, message, []) == []
