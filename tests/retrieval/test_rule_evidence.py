"""The standing of rules: repeated words of one agent, and rules that start to fail."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mongo.records import decode_json, encode_json
from retrieval.knowledge.confidence import lower_bound
from retrieval.knowledge.rewrites.edits import Rename, Replace, edit_key
from retrieval.knowledge.tool.rules import (
    MAX_AGENTS_HEARD,
    MAX_RULES,
    RepairRule,
    SignatureKnowledge,
    rule_trials,
)

words = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from(["success", "failure", "repair"])),
    max_size=60,
)


def a_rule(repairs: int = 0, agents: int = 5, successes: int = 0) -> RepairRule:
    """A rule that several agents found, each in sessions of its own, and then followed."""
    rule = RepairRule(edits=[Rename(name="a", to="b")])
    for number in range(repairs):
        rule.add_repair(f"agent {number % agents}", f"session {number}")
    for number in range(successes):
        rule.add_report(f"agent {number % agents}", "success")
    return rule


def sure(rule: RepairRule) -> float:
    """How sure its trials are: the lower bound."""
    return lower_bound(rule_trials(rule))


@pytest.mark.parametrize(
    ("word", "few"),
    [
        (lambda rule: rule.add_report("mallory", "success"), 4),
        (lambda rule: rule.add_repair("a", "s"), 1),
    ],
    ids=["successes of an agent", "repairs of a session"],
)
def test_a_flood_counts_up_to_its_cap(word: Callable[[RepairRule], None], few: int) -> None:
    """1,000 successes of one agent are worth what four are; a session saw its repair once."""
    calm, flooded = a_rule(), a_rule()
    for rule, times in ((calm, few), (flooded, 1_000)):
        for _ in range(times):
            word(rule)
    assert sure(flooded) == sure(calm) < 0.8


def test_a_reported_failure_is_kept_beside_many_other_rules() -> None:
    """What was tried once and worked makes room first, the oldest of it."""
    known = SignatureKnowledge(signature="no such folder", category="not_found")
    failed = [Replace(name="folder", before="A", value="a")]
    known.rule_to_update(list(failed)).add_report("ada", "failure")
    for number in range(100):
        edit = Replace(name="folder", before=f"{number}", value="b")
        known.rule_to_update([edit]).add_report("ada", "success")
    assert edit_key(failed) in known.rules
    assert edit_key([edit]) in known.rules
    assert len(known.rules) == MAX_RULES


def test_a_flood_of_failures_of_one_agent_does_not_take_a_rule_from_the_others() -> None:
    """What five agents found stays above the line of automatic retries."""
    rule = a_rule(repairs=10, successes=20)
    for _ in range(1_000):
        rule.add_report("mallory", "failure")
    assert sure(rule) > 0.8


@pytest.mark.parametrize("agents", [1, 3, 50])
@pytest.mark.parametrize("repairs", [0, 3, 40])
def test_a_rule_that_starts_to_fail_is_not_believed_for_long(agents: int, repairs: int) -> None:
    """Three failures after 200 successes end the automatic retries, ten the belief."""
    rule = a_rule(repairs, agents, successes=200)
    for number in range(3):
        rule.add_report(f"agent {number % agents}", "failure")
    assert sure(rule) < 0.8
    for number in range(3, 10):
        rule.add_report(f"agent {number % agents}", "failure")
    assert sure(rule) < 0.5


def test_a_rule_that_works_again_comes_back() -> None:
    """Failures are forgotten when the same agents report successes."""
    rule = a_rule(repairs=6, agents=3)
    before = sure(rule)
    for number in range(6):
        rule.add_report(f"agent {number % 3}", "failure")
    for number in range(30):
        rule.add_report(f"agent {number % 3}", "success")
    assert sure(rule) > before - 0.1


@given(words)
def test_each_further_word_moves_it_its_own_way_and_the_store_stays_small(
    said: list[tuple[str, str]],
) -> None:
    """Monotone: a success or repair never lowers it, a failure never raises it."""
    rule = a_rule()
    for number, (agent, word) in enumerate(said):
        before = sure(rule)
        if word == "repair":
            rule.add_repair(agent, str(number))
        else:
            rule.add_report(agent, "success" if word == "success" else "failure")
        after = sure(rule)
        assert after <= before + 1e-9 if word == "failure" else after >= before - 1e-9
    assert decode_json(RepairRule, encode_json(rule)) == rule


def test_agents_are_kept_as_hashes_and_are_few() -> None:
    """No name is stored, and a thousand agents take no more room than sixteen."""
    rule = a_rule(repairs=1_000, agents=1_000)
    assert len(rule.evidence.by_agent) == MAX_AGENTS_HEARD
    assert not any("agent" in key for key in rule.evidence.by_agent)
