"""Signals: what account, error, schema and evidence show a repair, as named numbers.

Every signal is about what the repair changes, or about what error and schema say of the call. What
a repair leaves alone is the caller's, and no signal reads it: one more right parameter, a secret, a
block of code next to the fault change nothing (`6-proof.md`, law *bystander*).
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from aftercall.change_classes import BOUNDS, qualifiers_of
from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue
from aftercall.redaction import is_redacted
from retrieval import WORDS
from retrieval.answers.judge.strange import is_odd, is_unlike
from retrieval.answers.proposers.case import Case, Option
from retrieval.answers.proposers.compose import Proposal
from retrieval.answers.proposers.faults import misses_form
from retrieval.knowledge.calls.account import CallAccount, Dropped, Origined
from retrieval.knowledge.calls.tree import leaves_of
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.rewrites import edits as ed
from retrieval.knowledge.values.likeness import (
    differ_in_digits,
    is_portion,
    name_similarity,
    refers_by_words,
    words_of,
)
from retrieval.knowledge.values.parameters import Path, leaves_like, unknown_inside, value_at
from retrieval.knowledge.values.scalars import fits_types, is_placeholder, may_count
from retrieval.knowledge.values.texts import format_of, is_number, written_in

SIGNALS = (
    "odds",
    "lead",
    "least",
    "bound",
    "alike",
    "uncovered",
    "left_open",
    "still_wrong",
    "named_left",
    "first_only",
    "reading",
    "no_schema",
    "blind",
    "refused",
    "unknown_left",
    "lists_all",
    "class",
    "key",
    "likeness",
    "rivals",
    "unexplained",
    "stated",
    "found",
    "recoded",
    "lossy",
    "dropped",
    "wishes",
    "bounds",
    "values",
    "lost_words",
    "new_words",
    "odd",
    "unusual",
    "unlike",
    "strange",
    "unmet",
    "in_write",
    "reshaped",
    "repaired",
    "beyond",
    "sibling",
    "failed",
)
"""The order of the vector that `signals_of` gives."""
RISING = frozenset(("odds", "lead", "least", "bound", "alike", "repaired", "likeness", "reading"))
"""Signals that never make a repair less likely by rising."""
DOUBTS = (
    "left_open", "still_wrong", "named_left", "first_only", "unknown_left", "odd", "unlike",
    "strange", "unmet", "wishes", "rivals", "unexplained",
)  # fmt: skip
"""Signals that something is wrong with a repair, or with what it leaves."""
OPEN = ("unexplained", "rivals", "beyond")
"""Doubts that leave a question: who states the value, which place is meant, what is allowed."""
FALLING = frozenset(
    (*DOUBTS, "uncovered", "unusual", "lost_words", "lossy", "values", "beyond", "failed")
)
"""Signals that never make a repair more likely by rising."""
_CLASSES = ("lossless", "plausible", "lossy", "semantic")
_KEYS = ("same", "level", "spelling", "error", "only", "left", "none")
_MOST = 3
_MOST_WORDS = 8
_SEEN_ENOUGH = 5
"""Texts of successes from which on a form that none of them has is unlike all that was seen."""
_LISTS_ALL = re.compile(r"validation errors? for|\[\{")
"""Of the messages of validators that list all that they find: pydantic, zod, FastAPI."""
_COMPLAINED_OF = re.compile(
    r"(?<![\w-])(\w{2,60})(?:['\"`]?\s(?:must|is|are|should|does|has|cannot|may)\b|: )"
)
"""A name, and what states that something is wrong with it."""
_WORD = re.compile(r"[^\W_]+")
_INNER_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_DENIES = frozenset("!^~")
_HOW_MANY = frozenset(("all", "any", "every", "everything", "both", "none", "*"))
_FOUND = frozenset(("session", "profile", "similar"))
_OF_CALL = frozenset(("context", "schema", "error"))
"""Sources next to what other calls showed."""
_SETTINGS = frozenset(("encoding", "recursive", "mode", "force", "include", "validate"))
_A_WORD, _A_YEAR = 12, 4
"""Characters of a word and digits of a year: what has more is of the caller's own."""
_MOST_NAMES = 100
_LIKE = 0.7
"""Likeness from which on two names are of one thing."""
_LONGEST = 200
"""Characters from which on a text is content, and has no form."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """A proposal with its account, and what speaks for it next to the others of its case.

    `odds` are log-odds of the product of its options' Beta means, `lead` the log of its share
    next to the surest rival, `bound` how sure the place is that its values come from; `refused` is
    1 where the schema refuses the call as sent, 0 where it takes it, -1 without a schema.
    """

    proposal: Proposal
    account: CallAccount
    odds: float
    lead: float
    bound: float
    refused: float


def signals_of(case: Case, weighed: Weighed) -> tuple[float, ...]:
    """Return the signals of a proposal, as `SIGNALS` names them."""
    proposal, account = weighed.proposal, weighed.account
    about = proposal.reshaped or case
    covered = frozenset(index for option in proposal.options for index in option.covers)
    uncovered = sum(
        index not in covered and fault.kind != "invalid" for index, fault in enumerate(about.faults)
    )
    values = account.values
    moved = [each for each in values if each.key != "same"]
    origins = Counter(each.origin for each in values)
    lost, new = changed_words(account)
    return (
        weighed.odds,
        weighed.lead,
        min(option.evidence.mean for option in proposal.options),
        weighed.bound,
        float(any(option.share for option in proposal.options)),
        _few(uncovered),
        _few(_left_open(case, proposal)),
        float(_is_still_wrong(case, proposal)),
        _few(_named_left(case, proposal)),
        float(not case.knows_tool and any(fault.is_first for fault in case.faults)),
        case.reading.confidence,
        float(case.schema is None),
        float(not case.knows_tool),
        weighed.refused,
        _few(_unknown_left(about, proposal.parameters)),
        float(_LISTS_ALL.search(case.reading.signature) is not None),
        float(_CLASSES.index(account.change_class)),
        float(max((_KEYS.index(each.key) for each in moved), default=0)),
        min(map(_likeness, moved), default=1.0),
        _few(len(account.questions)),
        _few(origins["unexplained"]),
        _few(origins["stated"]),
        _few(origins["own"] + origins["setting"]),
        _few(origins["recoded"]),
        _few(sum(bool(each.loses) for each in values) + len(account.lost_keys)),
        _few(sum(not each.says_nothing for each in account.dropped)),
        _few(sum(_wishes(each) for each in account.dropped)),
        _few(len(account.bounds)),
        float(min(_MOST_WORDS, len(values) + len(account.dropped))),
        float(min(_MOST_WORDS, lost)),
        float(min(_MOST_WORDS, new)),
        _few(sum(_is_odd_value(case, each) for each in _new_texts(account))),
        _few(sum(_is_unusual(case, each) for each in _new_texts(account))),
        _few(sum(is_unlike(case, path, value) for path, value in _new_texts(account))),
        _few(_strange(case, proposal, account)),
        _few(_unmet(case, proposal.parameters)),
        float(case.writes and any(each.origin not in ("moved", "recoded") for each in values)),
        float(proposal.reshaped is not None),
        float(is_learned(proposal)),
        float(_is_beyond(case, proposal)),
        float(any(map(of_sibling, proposal.options))),
        proposal.doubt,
    )


def is_learned(proposal: Proposal) -> bool:
    """Return whether several repaired such a call so, or all of it was repaired so before."""
    options = proposal.options
    return any(option.share for option in options) or all(option.repairs for option in options)


def of_sibling(option: Option) -> bool:
    """Return whether an option is what repaired another tool, and nothing else states it."""
    return option.repairs > 0 and set(option.sources) == {"similar"}


def _is_beyond(case: Case, proposal: Proposal) -> bool:
    """Return whether a value stays that the error states to be beyond a bound: it comes back."""
    for fault in case.faults:
        is_stated = fault.path and not fault.from_schema
        if is_stated and fault.kind == "out_of_range" and _is_left(case, proposal, fault):
            return True
    return False


def _few(count: int) -> float:
    return float(min(_MOST, count))


def _likeness(moved: Origined) -> float:
    source = _last_name(moved.source or ())
    target = _last_name(moved.path)
    return 1.0 if source == target else name_similarity(source, target)


def _new_texts(account: CallAccount) -> list[tuple[Path, JsonValue]]:
    """Return the texts that the repaired call has at places where the failed one had others."""
    found = []
    for each in account.values:
        leaves = islice(leaves_of(each.value, each.path), _MOST_WORDS)
        found += [(leaf.path, leaf.value) for leaf in leaves if isinstance(leaf.value, str)]
    return [(path, value) for path, value in found if not is_redacted(value)]


def changed_words(account: CallAccount) -> tuple[int, int]:
    """Return how many words of the failed call are gone, and how many are new."""
    before = Counter(_words(each.value for each in account.dropped))
    before += Counter(_words(list(account.former)))
    after = Counter(_words(each.value for each in account.values))
    return (before - after).total(), (after - before).total()


def _words(values: Iterable[JsonValue]) -> list[str]:
    found = []
    for value in values:
        for leaf in leaves_of(value):
            if leaf.value is None or isinstance(leaf.value, bool | dict | list):
                continue
            text = str(leaf.value).removesuffix(".0")[:2_000]
            found += _WORD.findall(_INNER_CAPITAL.sub(" ", text).lower())
    return found


def _left_open(case: Case, proposal: Proposal) -> int:
    """Count the faults that the error states at a place and the repair leaves as they were."""
    covered = set[int]().union(*(option.covers for option in proposal.options))
    count = 0
    for index, fault in enumerate(case.faults):
        if index in covered or not fault.path or fault.from_schema:
            continue
        is_open = fault.kind == "missing" if proposal.reshaped else fault.kind != "invalid"
        count += is_open and _is_left(case, proposal, fault)
    return count


def _is_left(case: Case, proposal: Proposal, fault: Fault) -> bool:
    """Return whether the value at a fault's place is as it was."""
    before = value_at(case.parameters, fault.path)
    return same_json(before, value_at(proposal.parameters, fault.path))


def _is_still_wrong(case: Case, proposal: Proposal) -> bool:
    """Return whether a value that the error itself shows to be wrong is still there."""
    shown = {f.parameter for f in case.reading.faults if f.path and f.value_text is not None}
    return bool(shown & case.parameters.keys() - proposal.touched)


def _named_left(case: Case, proposal: Proposal) -> int:
    """Count the parameters that the error complains of by name, and the repair leaves alone."""
    said = {match[1] for match in _COMPLAINED_OF.finditer(case.reading.signature)}
    return len(said & case.parameters.keys() - proposal.touched)


def _unknown_left(case: Case, parameters: JsonObject) -> int:
    """Count the names of the repaired call that the tool does not have, as far as is known."""
    view = case.view
    if view is None or not case.knows_tool:
        return 0
    if view.source == "schema":
        schema = case.schema or {}
        inside = len(unknown_inside(schema, parameters))
        is_open = bool(schema.get("additionalProperties"))
        return inside if is_open else inside + len(view.unknown_parameters(parameters))
    said = {fault.parameter for fault in case.reading.faults if fault.kind == "missing"}
    said |= {fault.suggested for fault in case.reading.faults}
    return sum(
        name not in said and not is_redacted(value) and not _was_seen(case, name, value)
        for name, value in parameters.items()
    )


def _was_seen(case: Case, name: str, value: JsonValue) -> bool:
    seen = case.observed_values(name)
    return bool(seen and seen.successes and fits_types(value, tuple(seen.types)))


def _is_odd_value(case: Case, new: tuple[Path, JsonValue]) -> bool:
    path, value = new
    return isinstance(value, str) and is_odd(case, path, value)


def _is_unusual(case: Case, new: tuple[Path, JsonValue]) -> bool:
    """Return whether a text has a form that none of many successes had at its place."""
    path, value = new
    name = str(path[0])
    seen = case.observed_values(name) if len(path) == 1 else None
    formats = seen.formats if seen else {}
    if not isinstance(value, str) or sum(formats.values()) < _SEEN_ENOUGH:
        return False
    if format_of(value) in formats:
        return False
    view = case.view_parameter(name)
    return view is None or not view.states_value(value)


def _strange(case: Case, proposal: Proposal, account: CallAccount) -> int:
    """Count what in a repair is seldom meant."""
    count = _strange_edits(case, proposal) + _strange_losses(case, account)
    count += _says_twice(case, proposal.parameters)
    count += case.writes and _changes_amount(case, proposal)
    recoded = (each for each in account.values if each.origin == "recoded")
    return count + any(map(_counts, recoded))


def _strange_edits(case: Case, proposal: Proposal) -> int:
    """Count the ways in which edits put in what the caller did not mean."""
    against_context = is_other_choice = stands_for = is_another = False
    for option in proposal.options:
        is_remembered = _OF_CALL.isdisjoint(option.sources)
        is_found = _FOUND.issuperset(option.sources)
        for edit in option.edits:
            against_context |= _says_otherwise(case, edit)
            is_other_choice |= _is_another_choice(case, edit)
            stands_for |= is_remembered and _stands_for(edit)
            is_another |= is_found and _is_another(edit)
    return against_context + is_other_choice + stands_for + is_another


def _strange_losses(case: Case, account: CallAccount) -> int:
    """Count the ways in which what is left out was something of its own."""
    contradicts = is_part = False
    for dropped in account.dropped:
        if not dropped.says_nothing:
            contradicts |= _contradicts(case, dropped)
            is_part |= _is_part_of_one(dropped.path)
    return contradicts + is_part


def _is_part_of_one(path: Path) -> bool:
    """Return whether a name is that of a part (`extension`), whose value belongs to another one."""
    last_word = words_of(_last_name(path))[-1:]
    return not WORDS["parts"].isdisjoint(last_word)


def _wishes(dropped: Dropped) -> bool:
    """Return whether a parameter that the tool lacks states something of its own."""
    name = _last_name(dropped.path)
    if dropped.value is False or dropped.says_nothing:
        return False
    if not WORDS["remarks"].isdisjoint(words_of(name)):
        return False
    text = dropped.value if isinstance(dropped.value, str) else ""
    if " " in text or len(text) > _A_WORD:
        return True
    if sum(map(str.isdigit, text)) > _A_YEAR:
        return True
    return not qualifiers_of(name) <= BOUNDS | _SETTINGS


def _last_name(path: Path) -> str:
    """Return the last name of a path, which positions may follow; "" where it has none."""
    for step in reversed(path):
        if isinstance(step, str):
            return step
    return ""


def _unmet(case: Case, parameters: JsonObject) -> int:
    """Count the texts that miss what the schema states of them, or stand for no value at all."""
    found = 0
    for name, value in islice(parameters.items(), _MOST_NAMES):
        view = case.view_parameter(name)
        if not isinstance(value, str) or len(value) > _LONGEST or is_redacted(value):
            continue
        listed = view.allowed if view is not None else ()
        is_stated = view is not None and view.states_value(value)
        is_unlisted = len(listed) > 1 and not is_stated
        is_formless = view is not None and not is_stated and misses_form(view, value)
        is_stand_in = is_placeholder(value) and not value.isalpha()
        found += is_unlisted or is_formless or is_stand_in
    return found


def _contradicts(case: Case, dropped: Dropped) -> bool:
    """Return whether another value stands under a like name: which one is meant?"""
    if len(dropped.path) != 1:
        return False
    own = str(dropped.path[0])
    for name, held in islice(case.parameters.items(), _MOST_NAMES):
        if name == own or same_json(held, dropped.value):
            continue
        if name_similarity(own, name) >= _LIKE:
            return True
    return False


def _says_twice(case: Case, parameters: JsonObject) -> bool:
    """Return whether a text became that of two parameters: from Rome to Rome is no trip."""
    before = _count_texts(case.parameters)
    after = _count_texts(parameters)
    return any(count > max(1, before[text]) for text, count in after.items())


def _count_texts(parameters: JsonObject) -> Counter[str]:
    return Counter(text for text in parameters.values() if isinstance(text, str) and text)


def _stands_for(edit: ed.Edit) -> bool:
    """Return whether a value is put in for words such as `latest`.

    No one stated which one is meant.
    """
    before = edit.before if isinstance(edit, ed.Replace) else None
    return isinstance(before, str) and refers_by_words(before, edit.name)


def _counts(value: Origined) -> bool:
    """Return whether what is put into a list states how many.

    A small number, or a word such as `all`.
    """
    to_list = isinstance(value.value, list) or isinstance(value.path[-1], int)
    if not to_list or isinstance(value.former, dict | list):
        return False
    return may_count(value.former) or str(value.former).strip().lower() in _HOW_MANY


def _is_another(edit: ed.Edit) -> bool:
    """Return whether one thing gives way to another.

    `10116/#W37` is not `#W98`, `!main` not `main`.
    """
    if not isinstance(edit, ed.Replace):
        return False
    before = edit.before
    after = edit.value
    if not isinstance(before, str) or not isinstance(after, str):
        return False
    if before[:1] in _DENIES and after[:1] != before[:1]:
        return True
    has_digits = any(map(str.isdigit, before)) and any(map(str.isdigit, after))
    return has_digits and after not in before and differ_in_digits(before, after)


def _says_otherwise(case: Case, edit: ed.Edit) -> bool:
    """Return whether a value that the context states gives way to another one of the context."""
    sent = value_at(case.parameters, edit.path) if isinstance(edit, ed.FromContext) else None
    return isinstance(sent, str) and written_in(case.context or "", sent) is not None


def _is_another_choice(case: Case, edit: ed.Edit) -> bool:
    """Return whether the context states a listed value, and not the one that is put in."""
    view = case.view_parameter(edit.name) if isinstance(edit, ed.Replace) else None
    if view is None or not isinstance(edit, ed.Replace):
        return False
    stated = set[str]()
    for each in view.allowed:
        if isinstance(each, str) and written_in(case.context or "", each) is not None:
            stated.add(each)
    return bool(stated) and edit.value not in stated


def _numbers_in(value: JsonValue) -> list[int | float]:
    numbers = (leaf for _, leaf in leaves_like({"": value}, ()) if is_number(leaf))
    return sorted(numbers)


def _changes_amount(case: Case, proposal: Proposal) -> bool:
    """Return whether a write gets another amount than its caller's."""
    for name in proposal.touched & case.parameters.keys() & proposal.parameters.keys():
        mine = _numbers_in(case.parameters[name])
        new = _numbers_in(proposal.parameters[name])
        if len(mine) == len(new) and mine != new and not is_portion(name):
            return True
    return False
