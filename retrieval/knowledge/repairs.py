"""What several mended alike: examples of repairs, and what they have in common.

An example is a failed call with the call of the same agent that then worked, whatever the error
said and whatever changed. What of it was the repair is told by counting: a change that sessions
have in common is learned, one that differs each time (the next question) is not. A change is held
in the most general form that explains the examples: `topK` 50, 40 and 23 to 10 is a bound, `users`
to `app_users` and `orders` to `app_orders` a prefix (programming by example over a small language
of edits: Gulwani 2011; least general generalisation: Plotkin 1970).

Each example carries its agent and session. A value that one agent brought is its own; from two
other agents on it is common knowledge of the tool (4-rules.md). Names and structure are anybody's.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from rapidfuzz.distance import Postfix, Prefix

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue, canonical_json
from aftercall.tables import gathered
from retrieval import edits as ed
from retrieval.edit_effects import applied, changed_names, effect_key
from retrieval.edits import edit_key, is_masked, names_of, places_of, touches
from retrieval.parameters import EVERY, Path, value_at
from retrieval.principals import capped, drop_loudest, others
from retrieval.texts import is_number
from retrieval.values import same_value, type_of

MAX_EXAMPLES = 24
MAX_OF_ONE_AGENT = 8
MAX_SIZE = 1_500
"""Characters of an example's two calls; larger ones are not kept."""
NOBODY = "\x00"
"""Who asks for everybody: no agent's own values are for it."""
MIN_SESSIONS = 2
MIN_AGENTS = 2
_IN_COMMON = 2 / 3
"""More than this share of the sessions with such a call a change must have mended."""
_TOGETHER = 0.6
"""Share of the examples of one change that have another as well, for both to be one repair."""
_MOST = 3
MAX_HEARD = 12
"""Sessions that are remembered of a call that has to come first."""
MAX_FIRST_CALLS = 8


@dataclass(slots=True)
class RepairExample:
    """A failed call and the one that mended it; `agent` and `session` are short hashes."""

    failed: JsonObject
    mended: JsonObject
    edits: list[ed.Edit]
    agent: str
    session: str
    execution_id: str
    at: datetime
    followed: bool = False
    """Whether it followed a suggestion: then it says what such a call may also have meant, and
    speaks for no change, since that it ran is weak evidence of right."""


def add_example(examples: list[RepairExample], new: RepairExample) -> None:
    """Add an example in place; one of each session, the latest few of each agent and in all.

    Of several principals the one with the most makes room; what followed a suggestion makes room
    for what an agent did by itself.
    """
    if len(canonical_json(new.failed)) + len(canonical_json(new.mended)) > MAX_SIZE:
        return
    if new.followed and any(each.session == new.session and not each.followed for each in examples):
        return
    kept = [*(each for each in examples if each.session != new.session), new]
    kept.sort(key=lambda each: not each.followed)
    own = [each for each in kept if each.agent == new.agent]
    dropped = {each.session for each in own[: max(0, len(own) - MAX_OF_ONE_AGENT)]}
    examples[:] = [each for each in kept if each.session not in dropped]
    drop_loudest(examples, MAX_EXAMPLES, lambda each: each.agent)


@dataclass(slots=True)
class FirstCall:
    """A tool that was called between a failure and the same call's success.

    `parameters` says which of its parameters had the value of which of the failed call's, in every
    session; `is_whole` that these were all that it was given.
    """

    tool_name: str
    sessions: list[str] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)
    is_whole: bool = True
    execution_ids: list[str] = field(default_factory=list)

    def learn(
        self, session: str, parameters: JsonObject, failed: JsonObject, execution_id: str
    ) -> None:
        """Add one session, in place."""
        same = {
            name: next((other for other, mine in failed.items() if same_json(mine, value)), None)
            for name, value in parameters.items()
        }
        found = {name: other for name, other in same.items() if other is not None}
        if not self.sessions:
            self.parameters = found
        both = self.parameters.items() & found.items()
        self.parameters = {name: other for name, other in found.items() if (name, other) in both}
        self.is_whole = self.is_whole and len(self.parameters) == len(parameters)
        self.sessions = [*(each for each in self.sessions if each != session), session][-MAX_HEARD:]
        self.execution_ids = [*self.execution_ids, execution_id][-_MOST:]


@dataclass(frozen=True, slots=True)
class CommonChange:
    """An edit that examples have in common, by their places in the list of examples.

    `mended` are those that it explains, `otherwise` those that it could have been made to and that
    were mended differently. `is_general` says that it was never made to a call quite like this.
    """

    edit: ed.Edit
    mended: frozenset[int]
    otherwise: frozenset[int] = field(default_factory=frozenset)
    is_general: bool = False


@dataclass(frozen=True, slots=True)
class LearnedRepair:
    """What mended calls like this one: edits, and how many sessions and agents made them."""

    edits: tuple[ed.Edit, ...]
    sessions: int
    otherwise: int
    is_general: bool
    mended: tuple[RepairExample, ...]

    @property
    def alone(self) -> int:
        """How many of the calls that it mended had nothing else changed."""
        names = {name for edit in self.edits for name in names_of(edit)}
        return sum(
            all(name in names for edit in each.edits for name in names_of(edit))
            for each in self.mended
        )

    @property
    def share(self) -> str:
        """Of the sessions that met such a call, those that mended it so: `10 of 10`."""
        return f"{self.sessions} of {self.sessions + self.otherwise}"

    @property
    def execution_ids(self) -> tuple[str, ...]:
        """The latest calls that it mended."""
        return tuple(each.execution_id for each in self.mended[-_MOST:])


def learned_repairs(
    examples: Sequence[RepairExample],
    changes: Sequence[CommonChange],
    parameters: JsonObject,
    agent: str,
) -> list[LearnedRepair]:
    """What examples with common `changes` tell an `agent` (its hash), most sessions first."""
    found: list[LearnedRepair] = []
    candidates = [
        each for each in _by_effect(changes, parameters) if _is_open(each, examples, agent)
    ]
    for first in [each for each in candidates[:_MOST] if len(each.mended) >= MIN_SESSIONS]:
        together, mended = [first], first.mended
        for other in candidates:
            shared = mended & other.mended
            often = len(shared) >= max(1, _TOGETHER * len(mended))
            if often and not any(touches(other.edit, each.edit) for each in together):
                together.append(other)
                mended = shared
        # Changes of what others of the same repair put there: a new name's value in another type.
        edits = [each.edit for each in together]
        together += [
            each
            for each in changes
            if mended <= each.mended
            and applied(parameters, [each.edit]) is None
            and applied(parameters, [*edits, each.edit]) is not None
        ]
        for_it, against = (
            {examples[at].session for at in some} for some in (mended, first.otherwise)
        )
        repair = LearnedRepair(
            tuple(each.edit for each in together),
            sessions=capped(for_it, against),
            otherwise=capped(against, for_it),
            is_general=any(each.is_general for each in together),
            mended=tuple(examples[at] for at in sorted(mended)),
        )
        most = _IN_COMMON * (repair.sessions + repair.otherwise)
        is_common = repair.sessions >= MIN_SESSIONS and repair.sessions > most
        if is_common and repair.edits not in [each.edits for each in found]:
            found.append(repair)
    return found


def common_repairs(
    examples: Sequence[RepairExample], changes: Sequence[CommonChange], *, own: bool = False
) -> list[LearnedRepair]:
    """What the latest examples have in common and everybody may hear, most sessions first.

    With `own` also what the agents themselves may hear, for the operator.
    """
    found: dict[str, LearnedRepair] = {}
    for each in [each for each in examples if not each.followed][-_MOST:]:
        for repair in learned_repairs(
            examples, changes, each.failed, each.agent if own else NOBODY
        ):
            found.setdefault(edit_key(repair.edits), repair)
    return sorted(found.values(), key=lambda each: -each.sessions)


def open_example(repair: LearnedRepair) -> tuple[JsonObject, JsonObject]:
    """What failed and what worked in the latest example, as everybody may see it.

    Of the parameters that were changed; values that the repair does not itself name as its type.
    """
    latest = repair.mended[-1]
    known = [edit.value for edit in repair.edits if isinstance(edit, ed.Add | ed.Replace)]
    known += [edit.before for edit in repair.edits if isinstance(edit, ed.Replace)]
    names = {name for edit in repair.edits for name in names_of(edit)}
    failed, mended = (
        {name: _opened(value, known) for name, value in call.items() if name in names}
        for call in (latest.failed, latest.mended)
    )
    return failed, mended


def _opened(value: JsonValue, known: Sequence[JsonValue]) -> JsonValue:
    if any(same_json(value, each) for each in known):
        return value
    if isinstance(value, dict):
        return {name: _opened(each, known) for name, each in value.items()}
    if isinstance(value, list):
        return [_opened(each, known) for each in value]
    return value if value is None or isinstance(value, bool) else f"<{type_of(value)}>"


def _is_open(change: CommonChange, examples: Sequence[RepairExample], agent: str) -> bool:
    """Whether a change may be offered to an agent: its values are its own, or common knowledge."""
    agents = {examples[at].agent for at in change.mended}
    if not carries_value(change.edit) or agent in agents:
        return True
    return others(agents, agent) >= MIN_AGENTS


def carries_value(edit: ed.Edit) -> bool:
    """Whether an edit brings in what somebody sent, and not only another form or name."""
    match edit:
        case ed.Add() | ed.Replace() | ed.Rewrite():
            return True
        case ed.Clamp():
            return (edit.minimum, edit.maximum) != (None, None)
        case _:
            return False


def _by_effect(changes: Sequence[CommonChange], parameters: JsonObject) -> list[CommonChange]:
    """Those that apply to a call, each effect once with all that speaks for it; most first."""
    effects: dict[str, CommonChange] = {}
    for change in changes:
        made = applied(parameters, [change.edit])
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


def common_changes(examples: Sequence[RepairExample]) -> list[CommonChange]:
    """Every change of the examples, and what they come to in general, with what speaks for each."""
    own = [each for each in examples if not each.followed]
    candidates = {edit_key([edit]): (edit, False) for each in own for edit in each.edits}
    replaced = gathered(
        (edit.path, (edit.before, edit.value))
        for each in own
        for edit in each.edits
        if isinstance(edit, ed.Replace)
    )
    for path, pairs in replaced.items():
        for edit in _general(pairs):
            placed = edit.at(path)
            candidates.setdefault(edit_key([placed]), (placed, True))
    made = [{edit_key([edit]) for edit in each.edits if not each.followed} for each in examples]
    found = []
    for key, (edit, is_general) in candidates.items():
        made_by = {at for at, keys in enumerate(made) if key in keys}
        mended, otherwise = set(made_by), set[int]()
        for at, each in enumerate(examples):
            explains = None if at in made_by else _explains(edit, each)
            if explains is False:
                otherwise.add(at)
            elif explains and not each.followed:
                mended.add(at)
        if mended and not is_masked(edit):
            found.append(CommonChange(edit, frozenset(mended), frozenset(otherwise), is_general))
    return found


def _explains(edit: ed.Edit, example: RepairExample) -> bool | None:
    """Whether an edit gives what mended an example, at its places; None: it does not apply."""
    made = applied(example.failed, [edit])
    if made is None:
        return None
    every = [edit.path[: edit.path.index(EVERY)]] if EVERY in edit.path else places_of(edit)
    return all(same_value(_at(made, path), _at(example.mended, path)) for path in every)


_MISSING = "\x00missing"


def _at(value: JsonObject, path: Path) -> JsonValue:
    around = value_at(value, path[:-1])
    if isinstance(around, dict) and str(path[-1]) not in around:
        return _MISSING
    return value_at(value, path)


def _general(pairs: Sequence[tuple[JsonValue, JsonValue]]) -> Iterator[ed.Edit]:
    distinct = {canonical_json(before): (before, after) for before, after in pairs}
    numbers = [
        (float(before), float(after))
        for before, after in distinct.values()
        if is_number(before) and is_number(after)
    ]
    if numbers:
        yield from _of_numbers(numbers)
    if len(distinct) > 1:
        yield from _of_texts(list(distinct.values()))


def _of_numbers(pairs: Sequence[tuple[float, float]]) -> Iterator[ed.Edit]:
    befores, afters = [before for before, _ in pairs], {after for _, after in pairs}
    if len(afters) == 1:
        [bound] = afters
        if min(befores) > bound:
            yield ed.Clamp(name="", maximum=bound)
        elif max(befores) < bound:
            yield ed.Clamp(name="", minimum=bound)
    elif 0 not in befores:
        factors = {round(after / before, 9) for before, after in pairs}
        if len(factors) == 1:
            yield ed.Scale(name="", factor=factors.pop())


def _of_texts(pairs: Sequence[tuple[JsonValue, JsonValue]]) -> Iterator[ed.Edit]:
    found: dict[str, ed.Edit] = {}
    for before, after in pairs:
        if isinstance(after, str) and (isinstance(before, str) or is_number(before)):
            reformats = (
                ed.Reformat(name="", to=name, day_first=first)
                for form, name in _FORMS.items()
                if re.fullmatch(form, after, re.ASCII)
                for first in (True, False)
            )
            for edit in (*_rewrites(str(before), after), *reformats):
                found[edit_key([edit])] = edit
    for edit in found.values():
        made = ((applied({"": before}, [edit]), after) for before, after in pairs)
        if sum(to is not None and same_value(to[""], after) for to, after in made) > 1:
            yield edit


_FORMS = {
    r"\d{4}-\d\d-\d\d": "YYYY-MM-DD", r"\d{4}/\d\d/\d\d": "YYYY/MM/DD", r"\d{8}": "YYYYMMDD",
    r"\d\d/\d\d/\d{4}": "DD/MM/YYYY",
}  # fmt: skip


def _rewrites(before: str, after: str) -> Iterator[ed.Edit]:
    start, end = Prefix.similarity(before, after), Postfix.similarity(before, after)
    # The ending that both have, whole words of it: what is before it was written anew.
    end = end if end == len(after) else _word_start(before[::-1], end)
    if end:
        old, new = before[: len(before) - end], after[: len(after) - end]
        yield ed.Rewrite(name="", where="start", old=old, new=new)
    if start and before[start:]:
        start = _word_start(before, start)
    if start:
        yield ed.Rewrite(name="", where="end", old=before[start:], new=after[start:])
    end = min(end, len(before) - start, len(after) - start)
    end = _word_start(before[::-1], end)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    if start and end and old:
        yield ed.Rewrite(name="", where="inside", old=old, new=new)


def _word_start(text: str, at: int) -> int:
    while 0 < at < len(text) and text[at].isalnum() and text[at - 1].isalnum():
        at -= 1
    return at
