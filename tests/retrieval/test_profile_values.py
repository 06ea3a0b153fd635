"""Common knowledge: counted by agents and sessions, so that no flood makes or moves it."""

import pytest

from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.rows.principals import MAX_WEIGHT_OF_AGENT
from retrieval.knowledge.tool.profile import MAX_VALUES, CommonValue, ToolProfile
from retrieval.knowledge.tool.rules import MAX_SIGNATURES, ToolKnowledge
from tests.retrieval.profiles import at


def use(
    profile: ToolProfile, value: object, agent: str, *, calls: int = 1, sessions: int = 1
) -> None:
    """Successes of `city` = `value` by an agent, spread over its sessions."""
    for number in range(calls):
        profile.observe_success({"city": value}, f"{agent}-{number % sessions}", agent, at(number))  # type: ignore[dict-item]  # any JSON


def common(profile: ToolProfile) -> list[object]:
    """The common values of `city`, the first first."""
    return [each.value for each in profile.common_values("city")]


def of(profile: ToolProfile, value: str) -> CommonValue:
    """One of them."""
    return next(each for each in profile.common_values("city") if each.value == value)


@pytest.mark.parametrize(
    ("uses", "found"),
    [
        ([("Rome", "ada", 5, 1)], []),
        ([("Rome", "ada", 5, 1), ("Rome", "ada", 2, 2)], ["Rome"]),
        ([("Rome", "ada", 10, 5), ("Oslo", "bob", 1, 1)], []),
    ],
)
def test_two_sessions_make_a_value_common_while_one_agent_uses_a_tool(
    uses: list[tuple[str, str, int, int]], found: list[str]
) -> None:
    """Nobody else can confirm it; the second agent takes back what the first alone made common."""
    profile = ToolProfile()
    for value, agent, calls, sessions in uses:
        use(profile, value, agent, calls=calls, sessions=sessions)
    assert common(profile) == found


def test_where_several_agents_use_a_tool_one_alone_makes_nothing_common() -> None:
    """Not with any number of sessions, and also where the others never used the parameter."""
    profile = ToolProfile()
    profile.observe_success({"other": 1}, "s", "bob", at(0))
    use(profile, "https://evil.example", "mallory", calls=500, sessions=100)
    assert common(profile) == []
    use(profile, "https://evil.example", "bob")
    assert common(profile) == ["https://evil.example"]


def test_a_flood_of_one_agent_moves_no_share_beyond_its_voice() -> None:
    """10,000 calls count as those of any other busy agent, for the value and against the others."""
    profile = ToolProfile()
    for agent in ("ada", "bob", "cleo"):
        use(profile, "Rome", agent, calls=MAX_WEIGHT_OF_AGENT, sessions=4)
    use(profile, "Oslo", "bob")
    before = of(profile, "Rome")
    assert before.weight > 2.9 * MAX_WEIGHT_OF_AGENT
    use(profile, "Oslo", "mallory", calls=10_000, sessions=1_000)
    after = of(profile, "Rome")
    assert common(profile) == ["Rome", "Oslo"]
    assert after.weight == before.weight
    assert after.share > 0.7
    assert of(profile, "Oslo").count == 10_001
    assert of(profile, "Oslo").weight <= MAX_WEIGHT_OF_AGENT + 1


def test_the_calls_of_an_only_agent_are_not_capped() -> None:
    """There is nobody to be outshouted."""
    profile = ToolProfile()
    use(profile, "Rome", "ada", calls=300, sessions=10)
    use(profile, "Oslo", "ada", calls=100, sessions=10)
    assert (of(profile, "Rome").weight, of(profile, "Rome").share) == (300, 0.75)


def test_a_flood_drives_out_no_value_that_several_use() -> None:
    """More values than are kept, each used often by one agent: the common ones stay."""
    profile = ToolProfile()
    for city in ("Rome", "Oslo"):
        for agent in ("ada", "bob"):
            use(profile, city, agent)
    for number in range(4 * MAX_VALUES):
        use(profile, f"flood {number}", "mallory", calls=20, sessions=10)
    assert common(profile) == ["Oslo", "Rome"]
    assert len(profile.parameters["city"].values) <= MAX_VALUES * 9 / 8


def test_of_equals_the_latest_comes_first() -> None:
    """Recency by the executions' own clock, not by arrival."""
    profile = ToolProfile()
    for city, seconds in (("new", 100), ("old", 1)):
        for session in "ab":
            profile.observe_success({"city": city}, session, "ada", at(seconds))
    assert common(profile) == ["new", "old"]


def refuse(profile: ToolProfile, value: object, seconds: int, *faults: Fault) -> None:
    """A failure of `city` = `value` that is blamed on what was sent."""
    call = {"city": value, "n": 1}
    profile.observe_failure(call, faults, at(seconds), blame_parameters=True)  # type: ignore[arg-type]  # any JSON


NAMED = Fault("not_allowed", ("city",))


def test_a_value_is_refused_until_it_works_somewhere() -> None:
    """Then a later failure, real or made up, does not take it from the others."""
    profile = ToolProfile()
    refuse(profile, "Rome", 50, NAMED)
    city = profile.parameters["city"]
    assert city.is_refused("Rome")
    assert not city.is_refused("Oslo")
    use(profile, "Rome", "ada", calls=2, sessions=2)
    refuse(profile, "Rome", 60, NAMED)
    assert not city.is_refused("Rome")
    assert common(profile) == ["Rome"]


def test_a_value_is_only_refused_when_the_error_names_its_parameter() -> None:
    """An error about another parameter, or about one that is missing, says nothing of it."""
    for fault in (Fault("out_of_range", ("n",)), Fault("missing", ("zone",)), Fault("invalid")):
        profile = ToolProfile()
        refuse(profile, "Rome", 1, fault)
        assert not profile.parameters["city"].is_refused("Rome"), fault
    profile.observe_failure({"city": "Rome"}, (), at(1), blame_parameters=True)
    assert profile.parameters["city"].is_refused("Rome"), "the only one there is"


def test_the_boundary_between_what_works_and_what_fails_can_be_read() -> None:
    """The nearest numbers that were refused as out of range on either side of the successes."""
    profile = ToolProfile()
    for limit in (1, 40, 50):
        profile.observe_success({"limit": limit}, "s", "ada", at(limit))
    assert profile.parameters["limit"].find_boundary() == (None, 1, 50, None)
    for limit, fault in (
        (500, Fault("out_of_range", ("limit",))),
        (51, Fault("out_of_range", ("limit",))),
        (0, Fault("out_of_range", ("limit",))),
        (99, Fault("not_found", ("limit",))),
        (70, Fault("out_of_range", ("limit",), of_length=True)),
        (60, Fault("out_of_range", ("page",))),
    ):
        profile.observe_failure({"limit": limit}, [fault], at(limit), blame_parameters=True)
    assert profile.parameters["limit"].find_boundary() == (0, 1, 50, 51)
    profile.observe_success({"limit": 100}, "s", "ada", at(1_000))
    assert profile.parameters["limit"].find_boundary() == (0, 1, 100, 500)
    assert profile.profile_at("nothing") is None


def test_a_flood_of_one_agent_makes_no_parameter_required() -> None:
    """Its calls with one more parameter count no more than those of the others without it."""
    profile = ToolProfile()
    for agent, calls in (("ada", 30), ("bob", 30), ("mallory", 10_000)):
        junk = {"junk": 1} if agent == "mallory" else {}
        for number in range(calls):
            profile.observe_success({"query": "x"} | junk, f"s{number}", agent, at(number))
    required = {name: view.required for name, view in profile.make_view().parameters.items()}
    assert required == {"query": True, "junk": False}


def test_one_agent_alone_sets_no_boundary_where_there_are_others() -> None:
    """Two must have come as far; the claim of one is left out."""
    profile = ToolProfile()
    for agent, limits in (("ada", (2, 50)), ("bob", (1, 40)), ("mallory", (-9, 1_000_000))):
        for limit in limits:
            profile.observe_success({"limit": limit}, "s", agent, at(1))
    assert profile.parameters["limit"].find_boundary() == (None, 1, 50, None)
    profile.observe_success({"page": 3}, "s", "ada", at(1))
    assert profile.parameters["page"].find_boundary() is None


def test_masks_count_as_what_they_stand_for_and_are_no_values() -> None:
    """The type of a masked value is in its mask; its text is nobody's value, nor is a long one."""
    profile = ToolProfile()
    profile.observe_success({"text": "x" * 500}, "s", "ada", at(1))
    assert profile.parameters["text"].values == {}
    for mask in (
        "[redacted:number:1-8]",
        "[hashed:integer:0123456789abcdef]",
        "x [redacted:string:1-8]",
    ):
        profile.observe_success({"key": mask}, "s", "ada", at(1))
    key = profile.parameters["key"]
    assert key.types == {"number": 1, "integer": 1, "string": 1}
    assert (key.values, key.formats) == ({}, {})
    profile.observe_failure(
        {"key": "[redacted:string:1-8]"}, [Fault("invalid", ("key",))], at(2), blame_parameters=True
    )
    assert key.refused == {}


def test_texts_have_a_usual_format() -> None:
    """With the share of the texts that have it."""
    profile = ToolProfile()
    for day in ("2026-03-01", "2026-03-02", "2026-03-03", "soon"):
        profile.observe_success({"day": day, "tags": [day] * len(day)}, "s", "ada", at(1))
    day, tags = profile.parameters["day"], profile.parameters["tags"]
    assert (day.usual_format(), day.longest) == (("date", 0.75), 10)
    assert tags.usual_format() is None


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
    assert knowledge.find_signature("error 0") is None
    assert knowledge.find_signature(f"error {MAX_SIGNATURES + 49}") is not None
