"""Repair rules of a pattern: what mends it, and how much speaks for and against each. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from aftercall.redaction import Redactor
from retrieval.confidence import lower_bound
from retrieval.knowledge.rules import RepairRule
from retrieval.known_tools.common import ToolRecord, may_be_told
from retrieval.proposals.experience import rule_trials
from service.dashboard.shown.repairs import told_lesson

SAME_CALL = "Make the same call again, later."
"""What a rule without edits says."""

MAX_RULES = 20


@dataclass(frozen=True, slots=True)
class ShownRule:
    """One way to mend failures of a pattern."""

    lesson: str
    repairs: int
    """Failures that agents mended so by themselves."""
    worked: int
    """Suggestions of it that were reported to have worked."""
    failed: int
    """Suggestions of it that were reported to have failed."""
    agents: int
    """Agents that mended so, as far as they are remembered."""
    sure: float
    """The lower bound of how surely it mends, in [0, 1]; higher is surer."""
    is_told: bool
    """Whether what it says is common knowledge, so that `/known-tools` may tell it to everybody."""
    last_seen: datetime | None


def rules_of(
    record: ToolRecord, belongs: Callable[[str], bool], redactor: Redactor
) -> list[ShownRule]:
    """The rules of a pattern's signatures, the surest first; the same edits are one rule.

    Args:
        record: what is known of the pattern's tool.
        belongs: whether a signature belongs to the pattern.
        redactor: masks secrets.
    """
    if record.knowledge is None:
        return []
    kinds = [each for each in record.knowledge.signatures.values() if belongs(each.signature)]
    merged: dict[str, ShownRule] = {}
    for kind in kinds:
        for key, rule in kind.rules.items():
            shown = _shown(rule, record, redactor)
            merged[key] = _both(merged[key], shown) if key in merged else shown
    surest = sorted(merged.values(), key=lambda each: (-each.sure, -each.repairs, each.lesson))
    return surest[:MAX_RULES]


def _shown(rule: RepairRule, record: ToolRecord, redactor: Redactor) -> ShownRule:
    return ShownRule(
        lesson=told_lesson(rule.edits, redactor) if rule.edits else SAME_CALL,
        repairs=rule.repairs,
        worked=rule.successes,
        failed=rule.failures,
        agents=rule.agents(),
        sure=lower_bound(rule_trials(rule)),
        is_told=may_be_told(rule, record),
        last_seen=rule.last_seen,
    )


def _both(one: ShownRule, other: ShownRule) -> ShownRule:
    """The same edits, learned under two wordings; how sure it is goes by the surer one."""
    seen = [each for each in (one.last_seen, other.last_seen) if each is not None]
    return ShownRule(
        lesson=one.lesson,
        repairs=one.repairs + other.repairs,
        worked=one.worked + other.worked,
        failed=one.failed + other.failed,
        agents=max(one.agents, other.agents),
        sure=max(one.sure, other.sure),
        is_told=one.is_told or other.is_told,
        last_seen=max(seen, default=None),
    )
