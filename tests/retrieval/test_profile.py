"""Tool profiles: bounded, private, and clear about what is common knowledge."""

from hypothesis import given
from hypothesis import strategies as st

from retrieval.knowledge.profile import MAX_FAILED_CALLS, MAX_PARAMETERS, MAX_VALUES, ToolProfile
from retrieval.knowledge.rules import MAX_SIGNATURES, ToolKnowledge

calls = st.lists(
    st.dictionaries(st.sampled_from("abcde"), st.integers(0, 9) | st.text(max_size=3)), max_size=30
)


@given(calls, calls)
def test_a_profile_survives_its_storage(successes: list, failures: list) -> None:  # type: ignore[type-arg]  # plain JSON
    """Written and read again it is the same."""
    profile = ToolProfile()
    for number, call in enumerate(successes):
        profile.observe_success(call, str(number % 3))
    for call in failures:
        profile.observe_failure(call, blame_parameters=True)
    assert ToolProfile.model_validate_json(profile.model_dump_json()) == profile
    assert profile.successes == len(successes)
    assert profile.failures == len(failures)


def test_a_profile_is_bounded_whatever_is_sent() -> None:
    """Distinct names, values and failing calls beyond the limits are let go."""
    profile = ToolProfile()
    for number in range(2_000):
        profile.observe_success({f"p{number}": 1, "id": f"v{number}"}, "s")
        profile.observe_failure({"id": f"v{number}"}, blame_parameters=True)
    assert len(profile.parameters) <= MAX_PARAMETERS
    assert all(len(known.values) <= MAX_VALUES for known in profile.parameters.values())
    assert len(profile.failed_calls) <= MAX_FAILED_CALLS


def test_a_value_is_common_from_the_second_session_on() -> None:
    """How often one session used it does not matter."""
    profile = ToolProfile()
    for _ in range(5):
        profile.observe_success({"city": "Rome"}, "one")
    assert profile.parameters["city"].common_values() == []
    profile.observe_success({"city": "Rome"}, "two")
    assert [known.value for known in profile.parameters["city"].common_values()] == ["Rome"]


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


def test_a_transient_failure_does_not_blame_the_parameters() -> None:
    """A time-out says nothing about what was sent."""
    profile = ToolProfile()
    profile.observe_failure({"a": 1}, blame_parameters=False)
    assert not profile.is_known_to_fail({"a": 1})


def test_knowledge_of_a_tool_is_bounded() -> None:
    """The least recent signatures are forgotten first."""
    knowledge = ToolKnowledge()
    for number in range(MAX_SIGNATURES + 50):
        knowledge.signature_to_update(f"error {number}", "unknown").count += 1
    assert len(knowledge.signatures) == MAX_SIGNATURES
    assert knowledge.signature("error 0") is None
    assert knowledge.signature(f"error {MAX_SIGNATURES + 49}") is not None
