"""What repaired this before: repair rules of the tool and of all tools, and the shipped corpus."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from aftercall.json_patch import same_json
from aftercall.json_values import JsonValue
from aftercall.redaction import is_redacted
from retrieval.answers.proposers.case import Case, Option, value_sources_of
from retrieval.answers.proposers.subjects import is_respelling, is_setting, is_subject_value
from retrieval.knowledge.beta import Trials
from retrieval.knowledge.calls.tree import leaves_of
from retrieval.knowledge.rewrites import edits as ed
from retrieval.knowledge.rewrites.edit_effects import changed_names, effect_key, try_edits
from retrieval.knowledge.rewrites.edits import names_of, touch_same_place
from retrieval.knowledge.rows.principals import (
    OF_A_STRANGER,
    agent_mark,
    count_others,
    is_one_stranger,
    principal_of,
)
from retrieval.knowledge.tool.examples import common_changes
from retrieval.knowledge.tool.profile import COMMON_SESSIONS, agent_token
from retrieval.knowledge.tool.record import contradicts_view
from retrieval.knowledge.tool.repairs import learned_repairs
from retrieval.knowledge.tool.rules import (
    MENDED,
    NO_SCHEMA,
    RepairRule,
    SignatureKnowledge,
    _repair_trials,
)
from retrieval.knowledge.values.parameters import (
    EVERY,
    Path,
    ToolView,
    first_path,
    value_at,
    written_place,
)
from retrieval.knowledge.values.scalars import type_of
from retrieval.knowledge.values.texts import format_of

_MOST_NEAR = 10
"""Rules of other signatures, and of other tools for one fault, that are looked at."""
_GENERAL = 2.0
"""Pseudo-wrongs of a change that was never made to a value like this one."""
_IN_PASSING = 2 * MENDED
"""The same of a change that no one made alone, to what the error does not name: what they changed
next to it, each in another way, may be what repaired the call."""
_LOSING = 10.0
"""The same of a form that leaves a part of a value out, as long as few made it."""
_ENOUGH = 4
_SEED = Trials(9, 1.5)


def rule_options(case: Case, near: Sequence[SignatureKnowledge] = ()) -> Iterator[Option]:
    """Edits that repaired the like before, where they apply to this call.

    The rules of the call's own signature count in full; those of `near` ones of the tool with the
    same faults (`ToolKnowledge.similar_signatures`) half.
    """
    known = case.signature
    learned = list(learned_options(case, known)) if known is not None else []
    if not learned and (elsewhere := case.elsewhere()) is not None:
        learned = [each for each in learned_options(case, elsewhere) if _is_of_value(each)]
    yield from learned
    # Where there are examples, they say more than the rules that were made of them.
    if known is not None and all(each.followed for each in known.examples):
        yield from _of_signature(case, known, "the same error", near=False)
    for signature in near[:_MOST_NEAR]:
        yield from _of_signature(case, signature, "a like error", near=True)


_WORDINGS = 3
"""Kinds of failure in which a value was repaired alike, for its error's words not to matter."""


def _is_of_value(option: Option) -> bool:
    """Return whether exactly this value was replaced, whatever the error was about."""
    is_exact = all(isinstance(edit, ed.Replace) for edit in option.edits)
    return is_exact and option.repairs >= _WORDINGS


def sibling_options(case: Case) -> Iterator[Option]:
    """Yield what repaired such an error on siblings of the tool, which has no lesson of its own."""
    for sibling in case.siblings:
        repairs = learned_repairs(
            sibling.examples, common_changes(sibling.examples), case.parameters,
            agent_mark(case.agent),
        )  # fmt: skip
        for repair in repairs:
            if any(is_of_subject(case, edit) for edit in repair.edits):
                continue
            mended = Trials(1 + MENDED * repair.sessions, 1 + _GENERAL + MENDED * repair.otherwise)
            yield Option(
                repair.edits,
                f"{repair.share} sessions mended `{sibling.tool_name}` so, a like tool",
                mended.under_old_schema(),
                ("similar",),
                repairs=repair.sessions,
                execution_ids=repair.execution_ids,
                covers=_touched_faults(case, repair.edits),
                menders=frozenset(principal_of(each.agent) for each in repair.mended),
            )


def learned_options(case: Case, known: SignatureKnowledge) -> Iterator[Option]:
    """Yield what repaired such calls, whatever the error states and whatever changed."""
    said = {index for index, fault in enumerate(case.faults) if not fault.from_schema}
    repairs = learned_repairs(
        known.examples, known.find_common_changes(), case.parameters, agent_mark(case.agent),
        is_common=lambda edit: _is_known_value(case, edit), differs=known.find_differences(),
    )  # fmt: skip
    for repair in repairs:
        edits = repair.edits
        overruled = any(_is_overruled(case, edit) for edit in edits)
        if overruled or known.is_off(edits) or is_retired(case, edits):
            continue
        if any(is_of_subject(case, edit) for edit in edits):
            continue
        doubts = _GENERAL if repair.is_general else 0.0
        # Whether the error is about a place that is changed, or the schema refuses what was there.
        names = {name for edit in edits for name in names_of(edit)}
        is_named = any(fault.path and fault.path[0] in names for fault in case.faults)
        placed = [f for f in case.reading.faults if f.path and f.parameter in case.parameters]
        names_others = bool(placed) and not is_named
        loses = any(map(_loses_text, edits))
        if names_others and loses:
            continue  # the error complains of another place
        if names_others or not (repair.alone or is_named):
            doubts += _IN_PASSING
        if repair.sessions < _ENOUGH and loses:
            doubts += _LOSING
        mended = Trials(1 + MENDED * repair.sessions, 1 + doubts + MENDED * repair.otherwise)
        yield Option(
            repair.edits,
            f"{repair.share} sessions mended such a call so",
            _as_often_sent(case, repair.edits, mended),
            ("repairs",),
            repairs=repair.sessions,
            execution_ids=repair.execution_ids,
            share=repair.share,
            covers=_touched_faults(case, repair.edits) | said,
            menders=frozenset(principal_of(each.agent) for each in repair.mended),
        )


@dataclass(frozen=True, slots=True)
class Reports:
    """What became of suggestions of one change; `weight` is the failures as they weigh now."""

    failures: int = 0
    successes: int = 0
    weight: float = 0.0
    worked: float = 0.0
    """The successes as they weigh now."""
    reporters: frozenset[str] = frozenset()
    """The principals of these."""
    failers: frozenset[str] = frozenset()
    """The principals of the failures."""
    is_a_strangers: bool = False
    """Whether the failures are what one principal alone states against several."""

    def heard_by(self, menders: frozenset[str]) -> "Reports":
        """Return the same, where one principal alone speaks against what others repaired so."""
        if not is_one_stranger(self.failers, menders | self.reporters):
            return self
        least = min(self.weight, OF_A_STRANGER)
        return replace(self, weight=least, failures=0, is_a_strangers=True)


def read_reports(case: Case) -> dict[str, Reports]:
    """Return what was reported of changes that this error was answered with, by their effect here.

    Two edits that give the same parameters are one change: what failed as the one has failed as
    the other.
    """
    found: dict[str, Reports] = {}
    value_sources = value_sources_of(case)
    for rule in case.signature.rules.values() if case.signature else ():
        if not rule.failures and not rule.successes:
            continue
        made = try_edits(case.parameters, rule.edits, value_sources)
        if made is None:
            continue
        key = effect_key(made, changed_names(case.parameters, made))
        known = found.get(key, Reports())
        found[key] = Reports(
            known.failures + rule.failures,
            known.successes + rule.successes,
            known.weight + rule.evidence_weight().failures,
            known.worked + rule.evidence_weight().successes,
            known.reporters | rule.evidence.success_principals(),
            known.failers | rule.evidence.failure_principals(),
        )
    return found


def _of_signature(
    case: Case, known: SignatureKnowledge, what: str, *, near: bool
) -> Iterator[Option]:
    said = {index for index, fault in enumerate(case.faults) if not fault.from_schema}
    for rule in known.rules.values():
        if not known.is_off(rule.edits) and _may_be_offered(case, rule, rule.edits):
            trials = (
                _trials_of_rule(case, rule).under_old_schema()
                if near
                else _trials_of_rule(case, rule)
            )
            option = _make_option(case, rule, rule.edits, what, trials)
            yield option if near else replace(option, covers=option.covers | said)


def _make_option(
    case: Case, rule: RepairRule, edits: Sequence[ed.Edit], what: str, trials: Trials
) -> Option:
    times = f"{rule.repairs} time{'s' * (rule.repairs != 1)}"
    return Option(
        tuple(edits),
        f"it mended {what} {times} before",
        trials,
        ("repairs",),
        repairs=rule.repairs,
        successes=rule.successes,
        failures=rule.failures,
        failed=rule.evidence_weight().failures if rule.failures else 0.0,
        execution_ids=tuple(rule.execution_ids[-3:]),
        covers=_touched_faults(case, edits),
        menders=frozenset(map(principal_of, rule.repair_agents())),
        reporters=rule.evidence.success_principals(),
    )


def _may_be_offered(case: Case, rule: RepairRule, edits: Sequence[ed.Edit]) -> bool:
    if not edits or try_edits(case.parameters, edits, value_sources_of(case)) is None:
        return False
    # Where others use the tool, one agent is one session.
    agents = case.profile.agents.keys() if case.profile is not None else set()
    asker = agent_mark(case.agent)
    menders = rule.repair_agents()
    alone = count_others(menders, asker) + (asker in menders) < 2
    is_one = alone and bool(agents - {agent_token(case.agent)})
    sessions = 1 if is_one else len(rule.sessions)
    return all(
        _is_free(case, edit, sessions) and not _is_overruled(case, edit) for edit in edits
    ) and not is_retired(case, edits)


def _trials_of_rule(case: Case, rule: RepairRule) -> Trials:
    trials = _as_often_sent(case, rule.edits, _repair_trials(rule))
    if case.schema_hash is None or {case.schema_hash, NO_SCHEMA} & set(rule.schema_hashes):
        return trials
    return trials.under_old_schema()


def _as_often_sent(case: Case, edits: Sequence[ed.Edit], trials: Trials) -> Trials:
    """Return a value that edits fill in is right as often as the tool's successes have it there."""
    for edit in edits:
        if not isinstance(edit, ed.Add) or edit.inside or isinstance(edit.value, dict | list):
            continue
        if seen := case.observed_values(edit.name):
            known = seen.common_values()
            share = next((e.share for e in known if same_json(e.value, edit.value)), 0.0)
            rest = trials.right * (1 - share)
            trials = replace(trials, right=trials.right - rest, wrong=trials.wrong + rest)
    return trials


def seed_options(case: Case) -> Iterator[Option]:
    """Edits of corpus entries that are about this error, where they apply to this call."""
    value_sources = value_sources_of(case)
    for seed in case.seeds:
        covers = _touched_faults(case, seed.edits)
        # An entry may only be like this error: it must be about a parameter that is at fault.
        overruled = any(_is_overruled(case, edit) for edit in seed.edits)
        applies = try_edits(case.parameters, seed.edits, value_sources) is not None
        if seed.edits and covers and applies and not overruled:
            yield Option(
                tuple(seed.edits), seed.correction, _SEED, ("seed",),
                lesson=seed.lesson, covers=covers,
            )  # fmt: skip


def _touched_faults(case: Case, edits: Sequence[ed.Edit]) -> frozenset[int]:
    touched = set()
    for index, fault in enumerate(case.faults):
        if fault.path:
            removed = ed.Remove(name="").at_path(fault.path)
            if any(touch_same_place(edit, removed) for edit in edits):
                touched.add(index)
    return frozenset(touched)


def _loses_text(edit: ed.Edit) -> bool:
    """Return whether an edit leaves a part of a text out that states something."""
    forms = edit.through if isinstance(edit, ed.Take) else (edit,)
    return any(
        isinstance(form, ed.Cut)
        or (isinstance(form, ed.Rewrite) and any(map(str.isalnum, form.old)) and not form.new)
        for form in forms
    )


def is_of_subject(case: Case, edit: ed.Edit) -> bool:
    """Return whether an edit brings in what a call is about: that is no one else's to say.

    A setting's values repeat (`is_setting`), or the schema lists them. Otherwise a value
    that looks like a name of something, a day, an address or a text is taken for a subject.
    """
    value: JsonValue
    if isinstance(edit, ed.Clamp):
        value = edit.maximum if edit.minimum is None else edit.minimum
    elif isinstance(edit, ed.Replace) and is_respelling(edit.before, edit.value):
        return False
    elif isinstance(edit, ed.Add | ed.Replace | ed.Put):
        value = edit.value
    else:
        return False
    keys = [step for step in edit.path if isinstance(step, str) and step != EVERY]
    name = keys[-1]
    leaves = [leaf for leaf in leaves_of(value) if isinstance(leaf.value, str | int | float)]
    view = case.view_parameter(name) if len(edit.path) == 1 else None
    seen = case.observed_values(name) if len(edit.path) == 1 else None
    if is_setting(name, view, seen) or (view is not None and view.states_value(value)):
        return False
    return any(
        is_subject_value(str(leaf.path[-1]) if leaf.path else name, leaf.value) for leaf in leaves
    )


def _is_overruled(case: Case, edit: ed.Edit) -> bool:
    """Return whether the error available states another bound than the one a rule learned."""
    if not isinstance(edit, ed.Clamp):
        return False
    low = edit.minimum
    high = edit.maximum
    return any(
        (low is not None and fault.minimum not in (None, low))
        or (high is not None and fault.maximum not in (None, high))
        for fault in case.faults
        if fault.kind == "out_of_range" and fault.parameter in (edit.name, None)
    )


def _is_free(case: Case, edit: ed.Edit, rule_sessions: int) -> bool:
    """Return whether an edit may travel.

    Values go to another caller only when they are common knowledge.

    A redacted one never does, and is no ground either: the mask is the same for many values.
    """
    if edit.inside and isinstance(edit, ed.Rename | ed.Add) and rule_sessions < COMMON_SESSIONS:
        return False  # a key inside a value may be a caller's own, such as an id in a map
    match edit:
        case ed.Replace() if is_redacted(edit.before):
            return False
        case ed.Add() | ed.Replace() | ed.Put() if is_of_subject(case, edit):
            return False
        case ed.Add() | ed.Replace():
            return _is_common(case, edit, rule_sessions) and not is_redacted(edit.value)
        case ed.Clamp():
            limits = {limit for limit in (edit.minimum, edit.maximum) if limit is not None}
            stated = {limit for f in case.faults for limit in (f.minimum, f.maximum)}
            return limits <= stated or rule_sessions >= COMMON_SESSIONS
        case ed.FromContext() if (seen := case.observed_values(edit.name)) and not edit.inside:
            # In a form that the tool's successes have there.
            value = (try_edits(case.parameters, [edit], value_sources_of(case)) or {}).get(
                edit.name
            )
            return not (isinstance(value, str) and seen.formats) or format_of(value) in seen.formats
        case _:
            return True


def _is_known_value(case: Case, edit: ed.Edit) -> bool:
    return isinstance(edit, ed.Add | ed.Replace) and _is_common(case, edit, 0)


def _is_common(case: Case, edit: ed.Add | ed.Replace, rule_sessions: int) -> bool:
    value = edit.value
    if rule_sessions >= COMMON_SESSIONS:
        return True
    # No one is known by a yes or no; but into a write (`force`, `confirm`) one session puts none.
    if type_of(value) in ("boolean", "null") and not case.writes:
        return True
    if any(same_json(value, mine) for mine in case.parameters.values()):
        return True
    view = None if edit.inside else case.view_parameter(edit.name)
    if view and view.states_value(value):
        return True
    place = written_place(first_path(edit.path))
    seen = case.profile.profile_at(place) if case.profile else None
    return seen is not None and seen.count_common(value) > 0


def is_retired(case: Case, edits: Sequence[ed.Edit]) -> bool:
    """Return whether the live schema rules out what one of the edits does."""
    return any(
        contradicts_view(view, edit)
        for edit in edits
        if (view := _view_around(case, edit.path)) is not None and view.parameters
    )


def _view_around(case: Case, path: Path) -> ToolView | None:
    if case.schema is None or case.view is None or case.view.source != "schema":
        return None
    if len(path) == 1:
        return case.view
    around = first_path(path[:-1])
    value = value_at(case.parameters, around)
    return case.view_object(around, value if isinstance(value, dict) else None)
