"""What mended this before: repair rules of the tool, and the edits of the shipped corpus."""

from collections.abc import Iterator, Sequence

from aftercall.json_patch import same_json
from aftercall.json_values import JsonValue
from aftercall.redaction import is_redacted
from retrieval.edits import Add, Clamp, Edit, EditDoesNotApplyError, Replace, apply_edits, names_of
from retrieval.knowledge import NO_SCHEMA, RepairRule
from retrieval.profile import COMMON_SESSIONS
from retrieval.proposals.case import Case
from retrieval.proposals.option import Option, Trials
from retrieval.values import type_of

_PER_REPAIR = 6.0
"""Pseudo-rights of a mined repair: the agent itself chose that edit, and it worked."""
_PER_SUCCESS = 1.0
"""Of a reported success; less, since to succeed is weak evidence of right (4-rules.md)."""
_PER_FAILURE = 4.0
_MOST_REPAIRS = 10
_MOST_SUCCESSES = 12
"""So many count at most: a wrong suggestion that succeeds would else make itself sure."""
_SEED = Trials(9, 1.5)


def rule_options(case: Case) -> Iterator[Option]:
    """Edits that mended the same signature of the same tool, where they apply to this call."""
    if case.signature is None:
        return
    for rule in case.signature.rules.values():
        if not rule.edits or not _applies(case, rule.edits) or not _may_travel(case, rule):
            continue
        if any(_is_overruled(case, edit) for edit in rule.edits):
            continue
        said = {index for index, fault in enumerate(case.faults) if not fault.from_schema}
        yield Option(
            tuple(rule.edits),
            f"it mended the same error {rule.repairs} time{'s' * (rule.repairs != 1)} before",
            _trials(case, rule),
            ("repairs",),
            repairs=rule.repairs,
            successes=rule.successes,
            failures=rule.failures,
            execution_ids=tuple(rule.execution_ids[-3:]),
            covers=_touched(case, rule.edits) | said,
        )


def _trials(case: Case, rule: RepairRule) -> Trials:
    """A rule that was only seen under other schemas of the tool counts less."""
    trials = rule_trials(rule)
    if case.schema_hash is None or {case.schema_hash, NO_SCHEMA} & set(rule.schema_hashes):
        return trials
    return trials.under_old_schema()


def rule_trials(rule: RepairRule) -> Trials:
    """The evidence of a rule; repairs of one session count once."""
    repairs = min(rule.repairs, len(rule.sessions), _MOST_REPAIRS)
    right = 1 + _PER_REPAIR * repairs + _PER_SUCCESS * min(rule.successes, _MOST_SUCCESSES)
    return Trials(right, 1 + _PER_FAILURE * rule.failures)


def seed_options(case: Case) -> Iterator[Option]:
    """Edits of corpus entries that are about this error, where they apply to this call."""
    for seed in case.seeds:
        covers = _touched(case, seed.edits)
        # An entry may only be like this error: it must be about a parameter that is at fault.
        overruled = any(_is_overruled(case, edit) for edit in seed.edits)
        if seed.edits and covers and not overruled and _applies(case, seed.edits):
            yield Option(
                tuple(seed.edits),
                seed.correction,
                _SEED,
                ("seed",),
                lesson=seed.lesson,
                covers=covers,
            )


def _touched(case: Case, edits: Sequence[Edit]) -> frozenset[int]:
    """The faults of parameters that the edits change, take away or supply."""
    names = {name for edit in edits for name in names_of(edit)}
    return frozenset(index for index, fault in enumerate(case.faults) if fault.parameter in names)


def _applies(case: Case, edits: Sequence[Edit]) -> bool:
    try:
        apply_edits(case.parameters, edits)
    except EditDoesNotApplyError:
        return False
    return True


def _is_overruled(case: Case, edit: Edit) -> bool:
    """Whether the error at hand states another bound than the one a rule learned."""
    if not isinstance(edit, Clamp):
        return False
    stated = [
        (fault.minimum, fault.maximum)
        for fault in case.faults
        if fault.kind == "out_of_range" and fault.parameter in (edit.name, None)
    ]
    low, high = edit.minimum, edit.maximum
    return any(
        (low is not None and minimum not in (None, low))
        or (high is not None and maximum not in (None, high))
        for minimum, maximum in stated
    )


def _may_travel(case: Case, rule: RepairRule) -> bool:
    """Values go to another caller only when they are common knowledge; never redacted ones.

    A redacted value is no ground either: the mask is the same for many values.
    """
    for edit in rule.edits:
        if isinstance(edit, Replace) and is_redacted(edit.before):
            return False
        if isinstance(edit, Add | Replace):
            if is_redacted(edit.value):
                return False
            if not _is_common(case, edit.name, edit.value, len(rule.sessions)):
                return False
    return True


def _is_common(case: Case, name: str, value: JsonValue, rule_sessions: int) -> bool:
    if rule_sessions >= COMMON_SESSIONS:
        return True
    # Nobody is known by a yes or no; but into a write (`force`, `confirm`) one session puts none.
    if type_of(value) in ("boolean", "null") and not case.writes:
        return True
    if any(same_json(value, mine) for mine in case.parameters.values()):
        return True
    view, seen = case.parameter(name), case.seen(name)
    if view:
        stated = [*view.allowed, *view.stated_values, *([view.default] if view.has_default else [])]
        if any(same_json(value, each) for each in stated):
            return True
    common = seen.common_values() if seen else []
    return any(same_json(value, known.value) for known in common)
