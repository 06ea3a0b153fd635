"""Who serves a namespace: promoted version, originals, the others; circles end and are named."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.promotions_file import promoted_tool
from mongo.contents import StoredPromotion, StoredTool
from retrieval.knowledge.rows.registry import (
    Registry,
    ToolCandidate,
    candidates_of,
    find_cycle,
    offer_tool,
    original_of,
)
from tests.retrieval.fitness.registry_samples import AT, promoted, stored

TEXT = stored("text", version="1.0.0", namespace="text", implementation={"command": "python"})
FAST = stored("fast", version="2.0.0", namespace="text")
ANEW = stored("text", version="1.1.0", namespace="text")
BACK = stored("text-1.1", version="1.1.0", namespace="text", evolved_from="text")
BARE = replace(
    promoted("text"), promotion=promoted("text").promotion.model_copy(update={"evolved_file": None})
)
"""A promotion that names no file."""


def shown(candidates: list[ToolCandidate]) -> list[tuple[str, str, str | None]]:
    """What matters of candidates."""
    return [(each.source, each.tool.tool_id, each.tool.version) for each in candidates]


@pytest.mark.parametrize(
    ("tools", "promotions", "candidates"),
    [
        # The original is the tool whose id is the namespace.
        ([FAST, TEXT], [], [("original", "text", "1.0.0"), ("semantic", "fast", "2.0.0")]),
        # Without it all that evolved from none are, also those whose ancestor is gone.
        ([FAST, stored("late", namespace="text", evolved_from="fast"),
          stored("orphan", namespace="text", evolved_from="gone")], [],
         [("original", "fast", "2.0.0"), ("original", "orphan", None), ("semantic", "late", None)]),
        # A registered version stands for the promotion; it may have evolved in steps.
        ([TEXT, BACK, stored("text-1.2", version="1.2", namespace="text", evolved_from="text-1.1")],
         [promoted("text", "1.2.0")],
         [("evolved", "text-1.2", "1.2"), ("original", "text", "1.0.0"),
          ("semantic", "text-1.1", "1.1.0")]),
        # An original that was put anew at the promoted version is one candidate.
        ([ANEW], [promoted("text")], [("evolved", "text", "1.1.0")]),
        ([ANEW], [BARE], [("evolved", "text", "1.1.0")]),
        # Nothing is offered under a version nobody could run; a tool that is back serves again.
        ([TEXT, FAST], [BARE], [("original", "text", "1.0.0"), ("semantic", "fast", "2.0.0")]),
        ([TEXT, BACK], [BARE], [("evolved", "text-1.1", "1.1.0"), ("original", "text", "1.0.0")]),
        # An evolved tool outlives its original.
        ([BACK], [promoted("text")], [("evolved", "text-1.1", "1.1.0")]),
    ],
)  # fmt: skip
def test_who_serves_a_namespace(
    tools: list[StoredTool], promotions: list[StoredPromotion], candidates: list[tuple[str, ...]]
) -> None:
    """The promoted version, the originals and the others, in this order."""
    assert shown(candidates_of(Registry(tools, promotions), "text")) == candidates


def test_the_promoted_version_is_made_from_the_original() -> None:
    """Its file beside what the implementation holds; it counts only the calls that name it."""
    found = candidates_of(Registry([FAST, TEXT], [promoted("text")]), "text")
    assert shown(found) == [
        ("evolved", "text", "1.1.0"), ("original", "text", "1.0.0"), ("semantic", "fast", "2.0.0"),
    ]  # fmt: skip
    evolved = found[0]
    assert evolved.tool.is_evolved
    assert evolved.tool.implementation == {
        "command": "python", "evolved_file": "tools/text_v1_1_0.py",
    }  # fmt: skip
    assert (evolved.versions, evolved.start, evolved.since) == (("1.1.0",), 0.8, AT)
    assert evolved.counts_version("1.1")
    assert not evolved.counts_version("")
    assert evolved.key == TEXT.tool_key


def test_an_implementation_that_is_no_object_gives_way_to_the_file() -> None:
    """It has no place for a key."""
    tool = stored("text", implementation="run me").tool
    made = promoted_tool(tool, promoted("text").promotion)
    assert made.implementation == {"evolved_file": "tools/text_v1_1_0.py"}
    without = promoted("text").promotion.model_copy(update={"evolved_file": None})
    assert promoted_tool(tool, without).implementation == "run me"


def test_versions_that_share_a_name_share_no_calls() -> None:
    """Calls without a version are the original's; of a version with its own name, its own."""
    shares = stored("b", name="text", version="1.1.0", namespace="text", evolved_from="text")
    other = stored("c", name="text2", version="1.2.0", namespace="text", evolved_from="text")
    versions = {
        each.tool.tool_id: each.versions
        for each in candidates_of(Registry([TEXT, shares, other]), "text")
    }
    assert versions == {"text": ("", "1.0.0"), "b": ("1.1.0",), "c": ("", "1.2.0")}


def test_a_found_tool_is_offered_as_its_promoted_version() -> None:
    """The original and the version itself are; others of the namespace are offered as they are."""
    registry = Registry([TEXT, FAST], [promoted("text")])
    assert shown([offer_tool(registry, TEXT)]) == [("evolved", "text", "1.1.0")]
    assert shown([offer_tool(registry, FAST)]) == [("semantic", "fast", "2.0.0")]
    for known in (Registry([TEXT]), Registry([TEXT], [BARE])):
        assert shown([offer_tool(known, TEXT)]) == [("semantic", "text", "1.0.0")]


def test_of_several_originals_the_promotion_names_one_by_its_version() -> None:
    """The first, where none has it."""
    registry = Registry(
        [stored("a", namespace="n", version="3.0.0"), stored("b", namespace="n", version="1.0")],
        [promoted("n")],
    )
    found = original_of(registry, "n")
    assert found.tool.tool_id == "b"
    assert candidates_of(registry, "n")[0].tool.tool_id == "b"


def test_a_circle_is_shown_as_the_chain_that_it_closes() -> None:
    """From the tool back to itself; evolving from itself is the shortest."""
    registry = Registry([stored("a", evolved_from="b"), stored("b", evolved_from="c"), stored("c")])
    assert find_cycle("c", "a", registry) == ["c", "a", "b", "c"]
    assert find_cycle("c", "c", registry) == ["c", "c"]
    assert find_cycle("new", "a", registry) is None
    assert find_cycle("new", None, registry) is None
    assert find_cycle("new", "unknown", registry) is None


links = st.dictionaries(st.sampled_from("abcde"), st.sampled_from("abcdef"), max_size=5)


@given(links, st.sampled_from("abcdez"), st.sampled_from("abcdef"))
def test_every_walk_ends_whatever_is_stored(known: dict[str, str], one: str, other: str) -> None:
    """Circles included; and each tool of a namespace is a candidate once."""
    tools = [stored(each, namespace="n", evolved_from=known.get(each)) for each in "abcde"]
    registry = Registry(tools, [promoted("n"), promoted("a")])
    find_cycle(one, other, registry)
    found = candidates_of(registry, "n")
    plain = [each.tool.tool_id for each in found if each.source != "evolved"]
    assert sorted(plain) == list("abcde")
    for each in tools:
        offer_tool(registry, each)
