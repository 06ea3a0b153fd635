"""What mended this before: repair rules of the tool, and the edits of the shipped corpus."""

from collections.abc import Iterator

from aftercall.json_patch import same_json
from aftercall.json_values import JsonValue
from aftercall.redaction import is_redacted
from retrieval.edits import Add, Edit, EditDoesNotApplyError, Replace, apply_edits
from retrieval.knowledge import RepairRule
from retrieval.profile import COMMON_SESSIONS
from retrieval.proposals.case import Case
from retrieval.proposals.option import Option, Trials
from retrieval.values import type_of

_PER_REPAIR = 6.0
"""Pseudo-rights of a mined repair: the agent itself chose that edit, and it worked."""
_PER_SUCCESS = 2.0
"""Of a reported success; less, since to succeed is weak evidence of right (4-rules.md)."""
_PER_FAILURE = 4.0
_MOST_REPAIRS = 10
_SEED = Trials(9, 1.5)


def rule_options(case: Case) -> Iterator[Option]:
    """Edits that mended the same signature of the same tool, where they apply to this call."""
    if case.signature is None:
        return
    for rule in case.signature.rules.values():
        if not rule.edits or not _applies(case, rule.edits) or not _may_travel(case, rule):
            continue
        yield Option(
            tuple(rule.edits),
            f"it mended the same error {rule.repairs} time{'s' * (rule.repairs != 1)} before",
            rule_trials(rule),
            ("repairs",),
            repairs=rule.repairs,
            successes=rule.successes,
            failures=rule.failures,
            execution_ids=tuple(rule.execution_ids[-3:]),
            covers=frozenset(range(len(case.faults))),
        )


def rule_trials(rule: RepairRule) -> Trials:
    """The evidence of a rule; repairs of one session count once."""
    repairs = min(rule.repairs, len(rule.sessions), _MOST_REPAIRS)
    right = 1 + _PER_REPAIR * repairs + _PER_SUCCESS * min(rule.successes, 5 * _MOST_REPAIRS)
    return Trials(right, 1 + _PER_FAILURE * rule.failures)


def seed_options(case: Case) -> Iterator[Option]:
    """Edits of corpus entries that are about this error, where they apply to this call."""
    for seed in case.seeds:
        if seed.edits and _applies(case, seed.edits):
            yield Option(
                tuple(seed.edits),
                seed.correction,
                _SEED,
                ("seed",),
                lesson=seed.lesson,
                covers=frozenset(range(len(case.faults))),
            )


def _applies(case: Case, edits: list[Edit]) -> bool:
    try:
        apply_edits(case.parameters, edits)
    except EditDoesNotApplyError:
        return False
    return True


def _may_travel(case: Case, rule: RepairRule) -> bool:
    """Values go to another caller only when they are common knowledge; never redacted ones."""
    for edit in rule.edits:
        if isinstance(edit, Add | Replace):
            if is_redacted(edit.value):
                return False
            if not _is_common(case, edit.name, edit.value, len(rule.sessions)):
                return False
    return True


def _is_common(case: Case, name: str, value: JsonValue, rule_sessions: int) -> bool:
    if rule_sessions >= COMMON_SESSIONS or type_of(value) in ("boolean", "null"):
        return True
    if any(same_json(value, mine) for mine in case.parameters.values()):
        return True
    view, seen = case.parameter(name), case.seen(name)
    if view and (value in view.allowed or value in view.stated_values or view.default == value):
        return True
    common = seen.common_values() if seen else []
    return any(same_json(value, known.value) for known in common)
