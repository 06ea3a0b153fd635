"""Which tools are siblings, and what a lesson of one is in the names of the other."""

from datetime import UTC, datetime

from mongo.records import ToolKey
from retrieval.answers.siblings import map_spelling, may_be_siblings, sibling_of
from retrieval.knowledge.tool.examples import RepairExample
from retrieval.knowledge.tool.rules import SignatureKnowledge, ToolKnowledge

WORDS = "E1042: the request was not understood"


def tool(name: str, server: str | None = "one") -> ToolKey:
    """A tool of the workspace."""
    return ToolKey("work", server, name)


def lesson(failed: dict[str, object], mended: dict[str, object]) -> ToolKnowledge:
    """What is known of a tool after one repair."""
    example = RepairExample(failed, mended, [], "a", "s", "e", datetime.now(UTC))
    known = SignatureKnowledge(signature=WORDS, category="invalid_parameters", examples=[example])
    return ToolKnowledge(signatures={"x": known})


def test_the_same_tool_of_another_server_is_a_sibling() -> None:
    others = [tool("searchIssues", "two"), tool("paint_fence", "two"), tool("list_issues", "two"),
              tool("search_issues_two"), tool("search_issues_v2")]  # fmt: skip
    found = may_be_siblings(tool("search_issues"), others)
    assert [each.tool_name for each in found] == [
        "search_issues_v2", "list_issues", "searchIssues"
    ]  # fmt: skip


def test_names_are_those_of_the_tool_that_is_asked_about() -> None:
    mine = {"maxResults", "searchQuery"}
    assert map_spelling({"max_results", "page_size", "q"}, mine) == {
        "max_results": "maxResults", "page_size": "pageSize", "q": "q"
    }  # fmt: skip


def test_a_lesson_is_told_in_the_names_of_the_sibling() -> None:
    known = lesson({"search_text": "oak"}, {"search_query": "oak"})
    found = sibling_of(tool("find", "two"), known, WORDS, {"searchText": "elm"}, ("searchQuery",))
    assert found is not None
    [example] = found.examples
    assert (example.failed, example.mended) == ({"searchText": "oak"}, {"searchQuery": "oak"})


def test_another_error_or_other_parameters_are_no_lesson() -> None:
    known = lesson({"search_text": "oak"}, {"search_query": "oak"})
    other = "The branch was changed in the meantime"
    assert sibling_of(tool("find", "two"), known, other, {"search_text": "elm"}, ()) is None
    assert sibling_of(tool("find", "two"), known, WORDS, {"colour": "red"}, ()) is None
