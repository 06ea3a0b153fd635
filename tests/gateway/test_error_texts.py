"""Texts that read as errors although no result says so."""

import asyncio
import sys

import pytest

from aftercall import Recorder
from aftercall.error_texts import ErrorTexts
from tests.gateway.conftest import OpenGateway
from tests.gateway.contract_service import ContractService, answer, suggestion
from tests.gateway.results import texts

TOOL = ("db", "query")


ERRORS = [
    "Database error: no such table: users", "Error: path is outside of the folder",
    "ValueError: bad zone", "Error executing tool x: boom", "SQL Error [42P01]: relation",
    "Traceback (most recent call last):\n  File 'x'", "Tool error (-32602): unknown",
]  # fmt: skip
PAGES = [
    "", "No errors: all 12 tests passed", "0 errors", "The error rate is 3 %",
    "errors.md: a page about errors", "error_log: /var/log/x", "[{'error': 'x'}]",
    "Error: " + "a page that goes on and on " * 40, "Error: a\n" + "line\n" * 9,
    "How to handle an error: first, read it", "See the section Error handling",
]  # fmt: skip


@pytest.mark.parametrize("text", [*ERRORS, *PAGES])
def test_what_begins_as_errors_do_is_one(text: str) -> None:
    """In the words of databases, validators and languages; not what only speaks of errors."""
    assert ErrorTexts().explain_success(TOOL, text, {}) == (
        "it begins as errors do" if text in ERRORS else None
    )


@pytest.mark.parametrize(
    ("sent", "text", "is_error"),
    [
        ({"path": "log.txt"}, "Error: disk full", False),
        ({"path": "log.txt"}, "Error: disk full: sda1", False),
        ({"path": "log.txt"}, "Error: there is no file 'log.txt'", True),
        ({"query": "select * from users"}, "Database error: no such table: users", True),
        ({"query": "SELCT 1"}, 'Database error: near "SELCT": syntax error', True),
        ({"query": "timeout"}, "Error: timeout while connecting", False),
        ({"messageType": "error"}, "Error: Operation failed", False),
    ],
)
def test_what_a_reading_tool_gives_is_no_error_unless_it_names_what_was_sent(
    sent: dict[str, str], text: str, is_error: bool
) -> None:
    """A file or a row may begin so; an error is about the call."""
    assert (ErrorTexts().explain_success(TOOL, text, sent, reads=True) is not None) is is_error
    assert ErrorTexts().explain_success(TOOL, text, sent) is not None


def test_what_the_caller_itself_sent_is_no_error() -> None:
    """A tool that gives back what it was given."""
    assert (
        ErrorTexts().explain_success(TOOL, "Error: disk full", {"note": "Error: disk full\n"})
        is None
    )


def test_the_form_of_an_error_that_the_tool_called_so_is_known_again() -> None:
    """With other values; of this tool alone."""
    known = ErrorTexts()
    known.learn_error(TOOL, "Sorry, there is no row 17 in 'users'")
    assert known.explain_success(TOOL, "Sorry, there is no row 4 in 'orders'", {}, reads=True)
    assert (
        known.explain_success(("db", "other"), "Sorry, there is no row 4 in 'orders'", {}) is None
    )
    assert known.explain_success(TOOL, "Here is row 4 in 'orders'", {}) is None


@pytest.mark.real
async def test_a_text_that_reads_as_an_error_is_recorded_as_one_and_left_as_it_is(
    open_gateway: OpenGateway, service: ContractService, recorder: Recorder
) -> None:
    """A sure suggestion is said, and not followed: the tool itself called it no error."""
    script = (
        "from mcp.server.mcpserver import MCPServer\n"
        "server = MCPServer('db')\n"
        "@server.tool()\n"
        "def query(sql: str) -> str:\n"
        "    return 'Database error: no such table: users'\n"
        "server.run()\n"
    )
    service.suggest = lambda _: answer(suggestion({"op": "replace", "path": "/sql", "value": "x"}))
    db = {"command": sys.executable, "args": ["-c", script]}
    async with open_gateway({"db": db}) as client:
        found = await client.call_tool_mcp("query", {"sql": "select * from users"})
        service.suggest = lambda _: answer()
        silent = await client.call_tool_mcp("query", {"sql": "select * from users"})
    await asyncio.to_thread(recorder.flush)
    assert not found.is_error
    assert texts(found)[0] == texts(silent)[0] == "Database error: no such table: users"
    assert texts(found)[-1].startswith("Suggestions from Aftercall")
    assert [each["outcome"] for each in service.recorded] == ["failure", "failure"]
    for each in (found, silent):
        assert each.meta["aftercall"]["readAsError"] == "it begins as errors do"


def test_how_servers_report_a_failure_is_one_of_a_reading_tool_too() -> None:
    """The prefix of MCP's SDK stands before no file and no row; what was sent is no error."""
    text = "Error executing tool search: 1 validation error"
    assert ErrorTexts().explain_success(TOOL, text, {"query": "x"}, reads=True) is not None
    assert ErrorTexts().explain_success(TOOL, text, {"query": text}, reads=True) is None
