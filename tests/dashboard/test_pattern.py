"""Patterns: what is said of them, the rules that mend them, and what they rest on in a store."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from aftercall.models import FailurePattern
from aftercall.redaction import Redactor
from retrieval.knowledge.patterns.consolidation import ConsolidatedPattern, mark_of
from retrieval.knowledge.rewrites.edits import Clamp, Edit, Rename, Replace
from retrieval.knowledge.rows.documents import document_id
from service.api import patterns as operations
from service.context import Space
from service.dashboard import pattern as dashboard_pattern
from service.dashboard.failures import compare_counts
from service.dashboard.pattern import (
    PatternEvidence,
    belonging_to,
    gather_evidence,
    mended_share,
    rules_of,
)
from tests.dashboard.made import pattern
from tests.dashboard.test_calls import pattern_of
from tests.dashboard.test_html import UI
from tests.retrieval.known_tools.made_records import knowledge, mended, record
from tests.service.fitness_client import fresh
from tests.service.running_service import (
    RunningService,
    execution,
    failure,
    hashing_settings,
    on_loop,
    running,
)

SIGNATURE = "Invalid parameter: topK must be <= <n>"
GONE = "00000000-0000-4000-8000-000000000000"

KNOWN: dict[str, ConsolidatedPattern] = {}
"""What the nightly job left, by id."""


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (compare_counts(None), ""), (compare_counts(0), "none in the same time before"),
        (compare_counts(1_200), "1,200 in the same time before"),
        (mended_share(pattern(count=0)), None), (mended_share(pattern(count=2, mended=4)), 1.0),
    ],
)  # fmt: skip
def test_counts_are_compared_in_words(found: object, expected: object) -> None:
    """Not at all with what is not known; never more is mended than failed."""
    assert found == expected


LIMIT: list[Edit] = [Clamp(name="max_count", maximum=100)]
NAMED: list[Edit] = [Rename(name="path", to="paths")]
OWN: list[Edit] = [Replace(name="path", before="/a", value="/b")]
SECRET: list[Edit] = [
    Replace(name="door_word", before="zebra", value="zebu"),
    Replace(name="inside", inside=("doorWord",), before={"a": "zebra"}, value=4711),
]


@pytest.mark.parametrize(
    ("repairs", "lesson", "expected"),
    [
        ([("too many", LIMIT, {}), ("no such path", NAMED, {})],
         "`max_count` must be at most 100.", (2, 2, "yes")),
        ([("too many", NAMED, {}), ("at most <n>", NAMED, {})],
         "The parameter is called `paths`, not `path`.", (4, 2, "yes")),
        ([("too many", OWN, {"sessions": ["s1"]})], "path", (1, 1, "no")),
        ([("too many", SECRET, {})], "door_word", (2, 2, "yes")),
        ([("too many", [], {})], "Make the same call again, later.", (2, 2, "yes")),
    ],
    ids=["others are left out", "under two wordings", "of one session", "of a name that is secret "
         "now", "without edits"],
)  # fmt: skip
def test_rules_say_what_speaks_for_them(
    repairs: list[Any], lesson: str, expected: tuple[int, int, str]
) -> None:
    """Lesson, repairs, agents, and whether it is told to everybody; no secret, at any depth."""
    known = knowledge()
    for signature, edits, options in repairs:
        mended(known, signature, edits, **options)
    belongs = belonging_to("default", pattern_of("too many", "at most <n>"))
    redactor = Redactor.create(extra_names=["door_word"])
    [rule] = rules_of(record(knowledge=known), belongs, redactor)
    assert lesson in rule["lesson"]
    assert (rule["repairs"], rule["agents"], rule["told"]) == expected
    assert not any(word in str(rule) for word in ("zebra", "zebu", "4711"))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    async def get(_: Space, pattern_ids: Sequence[str]) -> list[ConsolidatedPattern]:
        return [KNOWN[each] for each in pattern_ids if each in KNOWN]

    with (
        pytest.MonkeyPatch.context() as patched,
        running(hashing_settings(tmp_path_factory.mktemp("evidence"))) as started,
    ):
        for module in (dashboard_pattern, operations):
            patched.setattr(module, "find_patterns", get)
        yield started


def learned(service: RunningService, *records: dict[str, Any]) -> None:
    """Record, and wait until it is learned."""
    assert service.record(list(records)).status_code == 202
    service.learned()


def repaired(tool: str, minute: int, **fields: Any) -> list[dict[str, Any]]:
    """A failure, and the success that mended it a second later."""
    called = {"toolName": tool, "serverName": "s", "sessionId": fresh("session"), **fields}
    start = datetime.now(UTC) - timedelta(hours=1) + timedelta(minutes=minute)
    before, after = ((start + timedelta(seconds=each)).isoformat() for each in (0, 1))
    return [
        failure(**called, timestamp=before),
        execution(**called, timestamp=after, attempt=2, parameters={"query": "x", "topK": 10}),
    ]


def stored(service: RunningService, tool: str, *examples: str) -> FailurePattern:
    """The pattern of the tool's failures, as a nightly run leaves it."""
    kept = ConsolidatedPattern(
        pattern_id=fresh("pattern"), server_name="s", tool_name=tool,
        category="invalid_parameters", leader=SIGNATURE, execution_ids=list(examples), count=1,
    )  # fmt: skip
    mark = mark_of(document_id("default", "reflection", "s", tool, SIGNATURE))
    kept.members = b64encode(mark).decode()
    KNOWN[kept.pattern_id] = kept
    named = {"serverName": "s", "toolName": tool}
    return pattern(kept.pattern_id, tool=named, signature=SIGNATURE, examples=list(examples))


def shown(service: RunningService, *patterns: FailurePattern) -> list[PatternEvidence]:
    """What is still stored of them."""
    found = on_loop(service, gather_evidence(Space(service.context, "default"), patterns, 5))
    return [found[each.pattern_id] for each in patterns]


def test_a_pattern_has_its_repairs_and_examples(service: RunningService) -> None:
    """The latest first; what has expired is counted, failures of another kind are left out."""
    tool = fresh("tool")
    first, second, other = (repaired(tool, minute) for minute in (1, 2, 3))
    other[0]["error"] = {"message": "Invalid parameter: topK must be a multiple of ten"}
    learned(service, *first, *second, *other)
    failed = [each[0]["executionId"] for each in (first, second)]
    [found] = shown(service, stored(service, tool, GONE, *failed))
    assert [each.failed.execution_id for each in found.repairs] == failed[::-1]
    assert [each.execution_id for each in found.examples] == failed[::-1]
    assert (found.examples_gone, found.repairs_gone) == (1, 0)
    assert found.repairs[0].changes == ["replace /topK: 50 -> 10"]


def test_a_repair_shows_what_became_of_each_value(service: RunningService) -> None:
    """The value that the agent itself put in is of nobody else; the others stayed."""
    tool = fresh("tool")
    learned(service, *repaired(tool, 1))
    [found] = shown(service, stored(service, tool))
    look = SimpleNamespace(link_agent=lambda _: "/agent", trace_url=None)
    page = UI.repair(look, found.repairs[0], 3)
    assert "What it does with each value" in page
    assert "<code>/topK</code>" in page
    assert found.repairs[0].account.values[0].path == "/topK"
