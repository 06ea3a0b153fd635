"""Tools that an error names to be called first: each sentence of the table reads its example."""

from typing import Any

import pytest

from retrieval import read_word_table
from retrieval.answers.advice.first_calls import find_named_tool

TABLE = read_word_table("answers/advice/first_calls.toml")


@pytest.mark.parametrize("row", TABLE["sentences"], ids=lambda row: row["tool"])
def test_each_sentence_reads_its_example(row: dict[str, Any]) -> None:
    """Without knowing any tool of the server."""
    assert find_named_tool(row["example"], "failed_tool", ()) == row["tool"]


@pytest.mark.parametrize("row", TABLE["never"], ids=lambda row: row["example"])
def test_what_names_no_tool_is_left_alone(row: dict[str, Any]) -> None:
    """Other tools, forms, parameters, people."""
    assert find_named_tool(row["example"], "failed_tool", (), ("start_date", "end_date")) is None


def test_a_known_tool_is_given_as_the_server_spells_it() -> None:
    """Also where the error has the client's prefix before it, or other marks in it."""
    names = ("resolve_library_id", "get_docs")
    for said in ("'resolve-library-id'", "`mcp__docs__resolve_library_id`", "resolveLibraryId"):
        text = f"Unknown library. To find its id, use {said} with its name."
        assert find_named_tool(text, "get_docs", names) == "resolve_library_id"


def test_the_tool_that_failed_and_the_calls_own_words_are_none() -> None:
    """Whatever the sentence says."""
    assert find_named_tool("Call get_docs first", "get_docs", ("get_docs",)) is None
    assert find_named_tool("Call page_token first", "list", (), ("page_token",)) is None
