"""What is told of a tool: from where it comes, and what is never told."""

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import ErrorCategory
from retrieval.answers.known_tools.common import estimate_tokens
from retrieval.answers.known_tools.pages import markdown_page, prompt_block
from retrieval.knowledge.patterns.clusters import AxisClusters, KnownCluster
from retrieval.knowledge.rewrites.edits import Add, Clamp, Rename, Replace, Respell
from retrieval.knowledge.rows.health import MethodTallies
from retrieval.knowledge.tool.profile import ToolProfile
from retrieval.knowledge.tool.rules import signature_id
from retrieval.knowledge.tool.runs import RecoveryTimes, learn_recovery
from tests.retrieval.cases import object_schema
from tests.retrieval.known_tools.made_records import (
    NOW,
    health,
    knowledge,
    mended,
    record,
    referred,
    tally,
    told,
    tool,
)

SCHEMA = object_schema(
    ["repo_path"],
    repo_path="string",
    max_count={"type": "integer", "minimum": 1, "maximum": 100},
    order={"enum": ["asc", "desc"]},
    paths={"type": "array", "items": {"type": "string"}},
)


def test_without_a_schema_calls_show_the_parameters() -> None:
    """Only those that several had: a key of one caller's own is nobody else's business."""
    profile = ToolProfile()
    for session in ("s1", "s2", "s3", "s4", "s5"):
        profile.observe_success({"city": "Rome"}, session, agent=session)
    profile.observe_success({"city": "Rome", "patient_4711": 1}, "s6", agent="ada")
    assert told(record(knowledge=knowledge(profile))).signature.full == "(city: string)"


def test_a_correction_that_is_likely_wrong_is_not_told() -> None:
    """The mistake is, as what it is."""
    known = knowledge(ToolProfile())
    mended(known, "Invalid timezone: <v>", [Respell(name="timezone", style="title")])
    [rule] = known.signatures[signature_id("Invalid timezone: <v>")].rules.values()
    for each in range(4):
        rule.evidence.mended_otherwise(f"agent {each}")
    text = prompt_block([told(record(knowledge=known))], 2_000)
    assert "Invalid timezone" in text
    assert "Write" not in text


def test_what_one_session_sent_is_not_told() -> None:
    """Neither the value that failed nor the one that worked, of one session or one agent of two."""
    profile = ToolProfile()
    for agent in ("ada", "bob"):
        profile.observe_success({"city": "Rome"}, agent, agent=agent)
    edits = [Replace(name="city", before="Sankt-Anna-Klinik", value="Haus 4711")]
    texts = []
    for sessions, agents in ((["s1"], ["ada"]), (["s1", "s2"], ["ada"])):
        known = mended(knowledge(profile), "bad <v>", edits, sessions=sessions, agents=agents)
        facts = told(record(knowledge=known, health=health(3, 3)))
        texts += [prompt_block([facts], 2_000), markdown_page([facts], 2_000)]
    known = mended(knowledge(profile), "bad <v>", edits)
    shared = prompt_block([told(record(knowledge=known))], 2_000)
    assert "For `city`, use 'Haus 4711' instead of 'Sankt-Anna-Klinik'." in shared
    assert all("4711" not in text and "Anna" not in text for text in texts)


def test_a_rule_that_the_schema_contradicts_is_not_told() -> None:
    """However often it worked under an earlier one."""
    known = mended(knowledge(), "no order", [Add(name="order", value="random")])
    mended(known, "no limit", [Rename(name="limit", to="top")])
    mended(known, "too many", [Clamp(name="max_count", maximum=1_000)])
    text = prompt_block([told(record(tool(schema=SCHEMA), knowledge=known))], 2_000)
    assert text.count("pitfall") == 3
    assert "sure" not in text


def test_a_learned_limit_is_told_where_the_schema_has_none() -> None:
    """What worked in several sessions, never the number that one caller sent in vain."""
    from retrieval.knowledge.reading.faults import Fault

    profile = ToolProfile()
    for session in ("s1", "s2"):
        for count in (1, 50):
            profile.observe_success({"n": count}, session, agent=session)
    beyond = Fault(path=("n",), kind="out_of_range")
    profile.observe_failure({"n": 73_311}, [beyond], NOW, blame_parameters=True)
    facts = told(record(knowledge=knowledge(profile), health=health(4, 1)))
    text = prompt_block([facts], 2_000)
    assert "n worked at 1 to 50; more was refused" in text
    assert "73311" not in text


def referring(**fields: Any) -> Any:
    """A tool with six boundary failures and two weak answers."""
    referrals = [
        referred(axes=["transport", "html parsing"], split=["fetch", "parse"], **fields)
        for _ in range(6)
    ]
    return health(
        20, 8, categories={"wrong_tool_boundary": tally(6), "low_utility": tally(2)},
        referrals=[*referrals, referred("low_utility", evidence="a menu of 12 items")],
        weak=tally(3), corrections=tally(1),
    )  # fmt: skip


def test_referrals_are_told_by_cluster_with_the_latest_evidence() -> None:
    """Without what is some caller's own: numbers, addresses, quotations."""
    clusters = AxisClusters(
        clusters=[KnownCluster(cluster_id="c", name="transport", members=["transport"])]
    )
    evidence = "the page 'Order 4711' of http://shop.example/4711 has no list"
    facts = told(record(health=referring(evidence=evidence)), clusters)
    text = prompt_block([facts], 2_000)
    assert 'not its job 6 times: "' in text
    assert {'"html parsing" 6', '"transport" 6'} <= set(re.findall(r'"[a-z ]+" 6', text))
    assert '; latest "the page … of … has no list"' in text
    assert 'cohesion: "' in text
    assert '; latest "a menu of … items"' in text
    assert "of little use: by its own word 2 times, by its users once, weak 3 times" in text
    assert 'try: split it into "fetch", then "parse"' in text
    assert "4711" not in text


def test_a_split_into_registered_tools_names_them() -> None:
    """Then it is known what to call."""
    facts = told(record(health=referring()), tool_names={"fetch", "parse"})
    assert "if this fails, try: use fetch, then parse" in prompt_block([facts], 2_000)
    assert "- Use fetch, then parse." in markdown_page([facts], 2_000)


def test_waits_are_those_that_sessions_saw() -> None:
    """From two sessions on, with what to do."""
    recoveries: dict[ErrorCategory, RecoveryTimes] = {}
    known = knowledge()
    for number, seconds in enumerate((8, 12)):
        worked = NOW.replace(second=seconds)
        learn_recovery(
            recoveries, "rate_limited", failed_at=NOW, worked_at=worked, session=str(number),
            agent=str(number),
        )  # fmt: skip
    known.recoveries = recoveries
    text = prompt_block([told(record(knowledge=known, health=health(9, 3)))], 2_000)
    assert "try: where rate_limited, wait 12 s and call again" in text


def test_methods_that_several_called_are_told() -> None:
    """And those that the schema lists; a method that one session made up is not."""
    fared = health(
        9, 3, method_parameter="order",
        methods={
            "list": MethodTallies(successes=tally(3), failures=tally(1), sessions=["a", "b"]),
            "asc": MethodTallies(successes=tally(2), sessions=["a"]),
            "own": MethodTallies(successes=tally(1), sessions=["a"]),
        },
    )  # fmt: skip
    facts = told(record(tool(schema=SCHEMA), health=fared))
    assert "methods by order: list 75% of 4, asc 100% of 2" in prompt_block([facts], 2_000)


def test_what_saves_most_is_told_first() -> None:
    """When there is room for one more line, it is that of the tool that fails often."""
    often = mended(knowledge(), "no such path", [Rename(name="p", to="path")], count=90)
    seldom = mended(knowledge(), "no such city", [Rename(name="c", to="city")], count=2)
    facts = [
        told(record(name="seldom", knowledge=seldom, health=health(500, 2))),
        told(record(name="often", knowledge=often, health=health(500, 90))),
    ]
    all_of_it = prompt_block(facts, 100_000)
    least = next(n for n in range(50, 400) if "pitfall" in prompt_block(facts, n))
    tight = prompt_block(facts, least)
    assert "no such path" in tight
    assert "no such city" not in tight
    assert "no such city" in all_of_it


@given(st.integers(50, 400), st.integers(0, 60), st.integers(0, 500))
def test_every_tool_is_told_or_counted(budget: int, count: int, further: int) -> None:
    """And what there is of room is used: one that would fit is not left out."""
    facts = [told(record(name=f"tool_{number}")) for number in range(count)]
    further = further if count else 0
    text = prompt_block(facts, budget, further=further)
    shown = text.count("<tool ")
    left = count + further - shown
    assert (f"{left} more tool" in text) == (left > 0)
    assert estimate_tokens(text) <= budget
    page = markdown_page(facts, budget, further=further)
    assert estimate_tokens(page) <= budget


def test_links_go_to_the_tools_page() -> None:
    """With the id percent-encoded; there are none without a base."""
    facts = [told(record(tool("a/b c", server="x)y")))]
    page = markdown_page(facts, 2_000, dashboard_url="https://a.example")
    assert "[Dashboard](https://a.example/dashboard/tools/x%29y.a%2Fb%20c)" in page
    assert "](" not in markdown_page(facts, 2_000)
