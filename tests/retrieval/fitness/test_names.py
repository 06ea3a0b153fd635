"""Naming: an id, a tool's name, or its server's and its own."""

from mongo.records import ToolKey
from retrieval.fitness.registry import meant, nearest_names, possible_tools, recorded_name

READ = ToolKey("w", "web", "read_page")
ALONE = ToolKey("w", None, "translate")
SLASHED = ToolKey("w", "acme/tools", "v1/read")


def test_a_name_could_mean_any_split_at_a_slash() -> None:
    """Servers and tools may have slashes in their own names."""
    for tool in (READ, ALONE, SLASHED):
        assert tool in set(possible_tools("w", recorded_name(tool)))
    assert list(possible_tools("w", "/a/")) == [ToolKey("w", None, "/a/")]


def test_a_tool_name_alone_means_it_on_any_server() -> None:
    """Several are left for the asker to choose from."""
    other = READ._replace(server_name="files")
    assert meant("read_page", [READ, ALONE]) == [READ]
    assert meant("read_page", [READ, other]) == [READ, other]
    assert meant("read", [READ, ALONE]) == []


def test_the_nearest_names_are_told() -> None:
    """Of registered ids and recorded tools alike."""
    assert nearest_names("web/read_pages", ["page_reader"], [READ, ALONE])[0] == "web/read_page"
    assert nearest_names("zzz", ["page_reader"], [READ]) == []
