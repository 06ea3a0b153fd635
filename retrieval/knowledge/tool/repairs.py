"""What several repaired alike: which of the changes that examples have in common is a repair.

Which part of what changed was the repair is shown by counting: a change that sessions have in
common is learned, one that differs each time (the next question) is not.

A value that one agent brought is its own; from two other agents on it is common knowledge of the
tool (4-rules.md). Names and structure are anyone's.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue, canonical_json
from retrieval.knowledge.rewrites import edits as ed
from retrieval.knowledge.rewrites.edit_effects import changed_names, effect_key, try_edits
from retrieval.knowledge.rewrites.edits import edit_key, names_of, places_of
from retrieval.knowledge.rewrites.rewriting import find_differences
from retrieval.knowledge.rows.principals import cap_marks, capped_against, count_others
from retrieval.knowledge.tool.examples import (
    MISSING,
    CommonChange,
    RepairExample,
    common_changes,
    places_within,
    value_or_none,
)
from retrieval.knowledge.values.parameters import EVERY, Path, first_path, leaves_like, value_at
from retrieval.knowledge.values.scalars import type_of

NOBODY = "\x00"
"""A caller for everyone, who gets no agent's own values."""
MIN_SESSIONS = 2
MIN_AGENTS = 2
_IN_COMMON = 2 / 3
"""More than this share of the sessions with such a call a change must have repaired."""
_TOGETHER = 0.6
"""Share of the examples of one change that have another as well, for both to be one repair."""
_MOST = 3
_Difference: TypeAlias = tuple[set[Path], set[Path], set[Path]]  # new, gone and changed
DifferencesOf: TypeAlias = Callable[[int], _Difference]


@dataclass(frozen=True, slots=True)
class LearnedRepair:
    """What repaired calls like this one: edits, and how many sessions and agents made them."""

    edits: tuple[ed.Edit, ...]
    sessions: int
    otherwise: int
    is_general: bool
    mended: tuple[RepairExample, ...]

    @property
    def alone(self) -> int:
        """Return how many of the calls that it repaired had nothing else changed."""
        names = {name for edit in self.edits for name in names_of(edit)}
        return sum(
            all(name in names for edit in each.edits for name in names_of(edit))
            for each in self.mended
        )

    @property
    def share(self) -> str:
        """Return how many of the sessions that met such a call repaired it so: `10 of 10`."""
        return f"{self.sessions} of {self.sessions + self.otherwise}"

    @property
    def execution_ids(self) -> tuple[str, ...]:
        """Latest calls that it repaired."""
        return tuple(each.execution_id for each in self.mended[-_MOST:])


def learned_repairs(
    examples: Sequence[RepairExample],
    changes: Sequence[CommonChange],
    parameters: JsonObject,
    agent: str,
    *,
    is_common: Callable[[ed.Edit], bool] = lambda _: False,
    differs: DifferencesOf | None = None,
) -> list[LearnedRepair]:
    """Return what examples with common `changes` show an `agent` (its hash), most sessions first.

    A repair is the changes that examples made together, the most general of each place. It is shown
    only if it accounts for all that is new or gone in most of them: half of a move is a loss. What
    brings in a value was made in two sessions, or `is_common`; of names and forms one is enough.
    """
    differs = differs or differences_of(examples)
    own = [each for each in changes if _is_open(each, examples, parameters, agent, is_common)]
    told = sorted(
        _by_effect(own, parameters),
        key=lambda each: (len(each.otherwise) - len(_own_examples(each, own)), _change_rank(each)),
    )
    found: list[LearnedRepair] = []
    for change in told[:_MOST]:
        if any(_says_less(change, each, examples) for each in found):
            continue
        repair = _combine_changes(change, told, changes, examples, differs, parameters)
        if repair is None or not _is_usual(repair, is_common):
            continue
        if repair.edits not in [each.edits for each in found]:
            found.append(repair)
    return found


def _own_examples(change: CommonChange, changes: Sequence[CommonChange]) -> frozenset[int]:
    """Return the examples that speak for a change: what was moved elsewhere is not left out."""
    if not isinstance(change.edit, ed.Remove):
        return change.mended
    [place] = places_of(change.edit)
    moved = (e.mended for e in changes if place in ed.read_paths(e.edit) and e != change)
    return change.mended.difference(*moved)


def _says_less(
    change: CommonChange, repair: LearnedRepair, examples: Sequence[RepairExample]
) -> bool:
    """Return whether a change explains the same calls less generally than a repair."""
    mended = {each.execution_id for each in repair.mended}
    is_same = all(examples[at].execution_id in mended for at in change.mended)
    return is_same and any(ed.touch_same_place(change.edit, edit) for edit in repair.edits)


def _combine_changes(
    start: CommonChange,
    beside: Sequence[CommonChange],
    changes: Sequence[CommonChange],
    examples: Sequence[RepairExample],
    differs: DifferencesOf,
    parameters: JsonObject,
) -> LearnedRepair | None:
    """Return the repair around one change; None where something of it is not accounted for."""
    together = [start]
    mended = start.mended
    for other in beside:
        # Of the examples that it could have been made to: some may lack what it is about.
        could = start.mended & (other.mended | other.otherwise)
        # A value that some put instead of another may be their next intent.
        least = 1.0 if isinstance(other.edit, ed.Replace | ed.Put) else _TOGETHER
        often = len(start.mended & other.mended) >= max(1, least * len(could))
        if often and not any(ed.touch_same_place(other.edit, each.edit) for each in together):
            together.append(other)
            mended -= other.otherwise
    # Changes of what others of the same repair put there: a new name's value in another type.
    edits = [each.edit for each in together]
    for each in changes:
        if (
            mended <= each.mended
            and try_edits(parameters, [each.edit]) is None
            and try_edits(parameters, [*edits, each.edit]) is not None
        ):
            together.append(each)
            edits.append(each.edit)
    if _is_half(edits, [differs(at) for at in sorted(mended)], parameters):
        return None
    edits.sort(key=lambda edit: not isinstance(edit, ed.Remove))
    otherwise = {at for each in together for at in each.otherwise} - mended
    for_it, against = ({examples[at].session for at in some} for some in (mended, otherwise))
    return LearnedRepair(
        tuple(edits),
        sessions=cap_marks(for_it, against),
        otherwise=capped_against(against, for_it),
        is_general=any(each.is_general for each in together),
        mended=tuple(examples[at] for at in sorted(mended)),
    )


def _is_usual(repair: LearnedRepair, is_common: Callable[[ed.Edit], bool]) -> bool:
    """Return whether enough sessions made a repair, of those with such a call."""
    carries = any(
        brings_key(edit) or (carries_value(edit) and not is_common(edit)) for edit in repair.edits
    )
    most = _IN_COMMON * (repair.sessions + repair.otherwise)
    return repair.sessions >= (MIN_SESSIONS if carries else 1) and repair.sessions > most


def differences_of(examples: Sequence[RepairExample]) -> DifferencesOf:
    """Return what gives the places that differ between the calls of each example, found once."""
    return cache(lambda at: find_differences(examples[at].failed, examples[at].mended))


def _is_half(
    edits: Sequence[ed.Edit], differs: Sequence[_Difference], parameters: JsonObject
) -> bool:
    """Return whether most of the examples put in or took out something that the edits do not."""
    places = [place for edit in edits for place in (*places_of(edit), *ed.read_paths(edit))]
    only_loses = all(isinstance(edit, ed.Remove) for edit in edits)
    left: Counter[Path] = Counter()
    for new, gone, _ in differs:
        there = {path for path in gone if not _is_absent(parameters, path)}
        unmet = [path for path in new | there if not any(_paths_meet(path, at) for at in places)]
        # Where it went to another place each time, it is no loss either.
        left.update(unmet[:1] and [()] if only_loses else unmet)
    return any(count >= max(1, _TOGETHER * len(differs)) for count in left.values())


def _is_absent(parameters: JsonObject, path: Path) -> bool:
    return EVERY not in path and value_or_none(parameters, path) == MISSING


def _paths_meet(one: Path, other: Path) -> bool:
    return all(a == b or EVERY in (a, b) for a, b in zip(one, other, strict=False))


def _change_rank(change: CommonChange) -> int:
    """Return the order of explanations of the same examples: what is more general first."""
    match change.edit:
        case ed.FromError() | ed.Clamp(minimum=None, maximum=None):
            return 0
        case ed.Rename() | ed.Take(through=()):
            return 1
        case ed.Replace():
            return 6
        case ed.Put() | ed.Add():
            return 5
        case ed.Cut() | ed.Take(through=(ed.Cut(), *_)) | ed.Rewrite():
            return 4
        case _:
            return 2 if not change.is_general else 3


def told_by(examples: Sequence[RepairExample], parameters: JsonObject) -> list[list[ed.Edit]]:
    """Return the repairs of examples as edits, whatever values they bring in."""
    found = learned_repairs(
        examples, common_changes(examples), parameters, examples[-1].agent, is_common=lambda _: True
    )
    return [list(each.edits) for each in found]


def common_repairs(
    examples: Sequence[RepairExample], changes: Sequence[CommonChange], *, own: bool = False
) -> list[LearnedRepair]:
    """Return what the latest examples have in common and everyone may hear, most sessions first.

    With `own` also what the agents themselves may hear, for the operator.
    """
    found: dict[str, LearnedRepair] = {}
    differs = differences_of(examples)
    for each in [each for each in examples if not each.followed][-_MOST:]:
        for repair in learned_repairs(
            examples, changes, each.failed, each.agent if own else NOBODY, differs=differs
        ):
            found.setdefault(edit_key(repair.edits), repair)
    return sorted(found.values(), key=lambda each: -each.sessions)


def open_example(repair: LearnedRepair) -> tuple[JsonObject, JsonObject]:
    """Return what failed and what worked in the latest example, as everyone may see it.

    Of the parameters that were changed; values that the repair does not itself name as its type.
    """
    latest = repair.mended[-1]
    known = [edit.value for edit in repair.edits if isinstance(edit, ed.Add | ed.Replace | ed.Put)]
    known += [edit.before for edit in repair.edits if isinstance(edit, ed.Replace)]
    names = {name for edit in repair.edits for name in names_of(edit)}
    failed, mended = (
        {name: _open_value(value, known) for name, value in call.items() if name in names}
        for call in (latest.failed, latest.mended)
    )
    return failed, mended


def _open_value(value: JsonValue, known: Sequence[JsonValue]) -> JsonValue:
    if any(same_json(value, each) for each in known):
        return value
    if isinstance(value, dict):
        return {name: _open_value(each, known) for name, each in value.items()}
    if isinstance(value, list):
        return [_open_value(each, known) for each in value]
    if value is None or isinstance(value, bool):
        return value
    return f"<{type_of(value)}>"


def _is_like(edit: ed.Edit, examples: Sequence[RepairExample], parameters: JsonObject) -> bool:
    """Return whether the values that an edit reads have the form of its examples."""
    if isinstance(edit, ed.Put):
        befores = {canonical_json(value_at(e.failed, first_path(edit.path))) for e in examples}
        now = canonical_json(value_at(parameters, first_path(edit.path)))
        return len(befores) > 1 or now in befores
    forms = edit.through if isinstance(edit, ed.Take) else (edit,)
    [path] = ed.read_paths(edit) if not isinstance(edit, ed.Fill | ed.Add) else [()]
    if any(isinstance(form, _OF_EXAMPLES) for form in forms):
        pairs = {
            canonical_json([value_at(e.failed, old), value_at(e.mended, new)])
            for e in examples
            for old, new in zip(
                places_within(path, e.failed), places_within(edit.path, e.mended), strict=False
            )
        }
        if len(pairs) < MIN_SESSIONS:
            return False  # one value's other form is a value
    if not any(isinstance(form, ed.Respell | ed.Rewrite | ed.Pad) for form in forms):
        return True
    whole, ends = _value_signs(parameters, path)
    known = [_value_signs(each.failed, path) for each in examples]
    return whole <= {s for each, _ in known for s in each} and ends <= {
        s for _, each in known for s in each
    }


_OF_EXAMPLES = (ed.Rewrite, ed.Scale, ed.Cut, ed.Pad)
"""Forms whose own values are read off the examples: one example shows no more than one value."""


def _value_signs(parameters: JsonObject, path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Return the kinds of characters of the values at a path, and those that they begin with."""
    values = [str(value) for _, value in leaves_like(parameters, path)] if path else []
    whole = {_sign_of(sign) for value in values for sign in value[:_MOST_SIGNS]}
    return frozenset(whole), frozenset(_sign_of(value[0]) for value in values if value)


def _sign_of(sign: str) -> str:
    if sign.isdigit():
        return "9"
    if sign.isalpha():
        return "A" if sign.isupper() else "a"
    return sign


_MOST_SIGNS = 200


def _is_open(
    change: CommonChange,
    examples: Sequence[RepairExample],
    parameters: JsonObject,
    agent: str,
    is_common: Callable[[ed.Edit], bool],
) -> bool:
    """Return whether a change may be offered to an agent.

    Its values are its own, or common knowledge.
    """
    if not _is_like(change.edit, [examples[at] for at in change.mended], parameters):
        return False
    agents = {examples[at].agent for at in change.mended}
    if not carries_value(change.edit) or agent in agents or is_common(change.edit):
        return True
    return count_others(agents, agent) >= MIN_AGENTS


def brings_key(edit: ed.Edit) -> bool:
    """Return whether an edit brings in a key inside a value, maybe a caller's own, as an id."""
    forms = edit.through if isinstance(edit, ed.Take) else (edit,)
    if any(isinstance(form, ed.Unkeyed | ed.Unnamed) for form in forms):
        return True
    is_new = isinstance(edit, ed.Rename | ed.Add | ed.Take | ed.Put | ed.Fill | ed.Nest)
    return is_new and any(isinstance(step, str) and step != EVERY for step in edit.inside)


def carries_value(edit: ed.Edit) -> bool:
    """Return whether an edit brings in what someone sent, and not only another form or name."""
    match edit:
        case ed.Add() | ed.Replace() | ed.Put():
            return True
        case ed.Rewrite():
            return any(map(str.isalnum, edit.new))
        case ed.Fill():
            texts = [part for part in edit.parts if isinstance(part, str)]
            return any(map(str.isalnum, "".join(texts)))
        case ed.Take():
            return any(map(carries_value, edit.through))
        case ed.Clamp():
            return (edit.minimum, edit.maximum) != (None, None)
        case _:
            return False


def _by_effect(changes: Sequence[CommonChange], parameters: JsonObject) -> list[CommonChange]:
    """Return those that apply to a call, each effect once with all that speaks for it.

    Most first.
    """
    effects: dict[str, CommonChange] = {}
    for change in changes:
        made = try_edits(parameters, [change.edit])
        if made is None:
            continue
        key = effect_key(made, changed_names(parameters, made))
        known = effects.get(key, change)
        mended = known.mended | change.mended
        effects[key] = CommonChange(
            max(known, change, key=lambda each: len(each.mended)).edit,
            mended,
            (known.otherwise | change.otherwise) - mended,
            known.is_general and change.is_general,
        )
    return sorted(
        effects.values(), key=lambda each: (len(each.otherwise) - len(each.mended), each.is_general)
    )
