"""The registry finds tools by id and namespace, and near names for a 404."""

from retrieval.knowledge.rows.registry import Registry, names_like
from tests.retrieval.fitness.registry_samples import promoted, stored


def test_a_namespace_is_what_a_tool_names_or_a_tools_id() -> None:
    """Its tools by id; one that is named after it belongs to it, whatever else it names."""
    registry = Registry(
        [stored("b", namespace="text"), stored("a", namespace="text"), stored("text")]
    )
    assert [each.tool.tool_id for each in registry.in_namespace("text")] == ["a", "b", "text"]
    assert [each.tool.tool_id for each in registry.in_namespace("a")] == ["a"]
    assert registry.in_namespace("nothing") == ()


def test_the_list_names_each_capability_once() -> None:
    """A tool that serves a namespace is not listed as one of its own, unless it was promoted."""
    tools = [stored("a", namespace="text"), stored("b", namespace="text"), stored("alone")]
    listed = Registry(tools, [promoted("a")]).list_namespaces()
    assert [(each.namespace, each.tool_ids, each.promoted_version) for each in listed] == [
        ("a", ["a"], "1.1.0"), ("alone", ["alone"], None), ("text", ["a", "b"], None),
    ]  # fmt: skip


def test_near_names_are_those_that_were_probably_meant() -> None:
    """A misspelling, another case or separator; nothing for a name like none."""
    registry = Registry([stored("code_generator"), stored("translator"), stored("weather")])
    assert registry.nearest_names("transaltor")[0] == "translator"
    assert names_like("Code-Generator", registry.by_id)[0] == "code_generator"
    assert registry.nearest_names("zzqqk") == []
    assert Registry([]).nearest_names("anything") == []


def test_descendants_come_nearest_first_and_once_also_in_a_circle() -> None:
    """A stored circle ends where it began."""
    registry = Registry([
        stored("a"), stored("c", evolved_from="b"), stored("b", evolved_from="a"),
        stored("x", evolved_from="y"), stored("y", evolved_from="x"),
    ])  # fmt: skip
    assert [each.tool.tool_id for each in registry.list_descendants("a")] == ["b", "c"]
    assert [each.tool.tool_id for each in registry.list_descendants("x")] == ["y"]
