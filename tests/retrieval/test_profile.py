"""Tool profiles: bounded, private, and clear about what is common knowledge."""

from retrieval.knowledge.profile import ToolProfile
from retrieval.knowledge.rules import MAX_SIGNATURES, ToolKnowledge


def test_redacted_and_long_values_are_not_kept() -> None:
    """Masks teach nothing, and long texts are intents, not values."""
    profile = ToolProfile()
    profile.observe_success({"key": "[redacted:string:33-64]", "text": "x" * 500}, "s")
    assert profile.parameters["key"].values == {}
    assert profile.parameters["text"].values == {}


def test_a_success_clears_what_was_known_to_fail() -> None:
    """The same call works now: it is no longer held against a proposal."""
    profile = ToolProfile()
    profile.observe_failure({"a": 1}, blame_parameters=True)
    assert profile.is_known_to_fail({"a": 1})
    profile.observe_success({"a": 1}, "s")
    assert not profile.is_known_to_fail({"a": 1})


def test_knowledge_of_a_tool_is_bounded() -> None:
    """The least recent signatures are forgotten first."""
    knowledge = ToolKnowledge()
    for number in range(MAX_SIGNATURES + 50):
        knowledge.signature_to_update(f"error {number}", "unknown").count += 1
    assert len(knowledge.signatures) == MAX_SIGNATURES
    assert knowledge.signature("error 0") is None
    assert knowledge.signature(f"error {MAX_SIGNATURES + 49}") is not None
