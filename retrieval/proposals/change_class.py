"""The class of a proposal: what of the caller's call it keeps, and what it puts in its place.

See `aftercall.change_classes` for what each class means and may do. A class is read from what an
edit does to this call, not from how sure the proposal is.
"""

import re

from rapidfuzz.distance import DamerauLevenshtein

from aftercall.change_classes import (
    BOUNDS,
    alters_qualifier,
    are_opposites,
    qualifiers_of,
    strictest,
)
from aftercall.json_patch import same_json
from aftercall.json_values import JsonValue, canonical_json
from aftercall.models import ChangeClass
from retrieval import WORDS
from retrieval import edits as ed
from retrieval.forms import moment_of, same_moment
from retrieval.likeness import name_similarity, nearest, synonym_of, words_of
from retrieval.parameters import leaves_like, value_at
from retrieval.proposals.case import Case
from retrieval.proposals.compose import Proposal
from retrieval.proposals.names import is_said_twice
from retrieval.values import (
    cast_to_one,
    catalogue,
    is_about_zones,
    same_value,
    says_nothing,
    says_only,
    type_of,
    unmarked,
)

_SHOWN_BY_NAME = 0.7
"""Likeness of two names from which on the one shows the other: its spelling, a word of it, or one
of the listed abbreviations and synonyms."""


def class_of(case: Case, proposal: Proposal) -> ChangeClass:
    """The class of a proposal's strictest change.

    Whatever its parts are, it is semantic where a parameter that limits or negates becomes another.
    """
    options, classes, about = proposal.options, list[ChangeClass](), case
    if proposal.reshaped is not None:
        edits = list(options[0].edits)
        classes = [_class_of(case, edit, edits) for edit in edits]
        if _only_moves(case, edits):
            classes = ["lossless"]
        about, options = proposal.reshaped, options[1:]
    edits = [edit for option in options for edit in option.edits]
    found = strictest(iter([*classes, *(_class_of(about, edit, edits) for edit in edits)]))
    if found in ("lossless", "plausible") and alters_qualifier(
        case.parameters, proposal.parameters, but=BOUNDS
    ):
        return "semantic"
    return found


def _only_moves(case: Case, edits: list[ed.Edit]) -> bool:
    """Whether what is added is all of what is taken out, in another place."""
    added = [edit.value for edit in edits if isinstance(edit, ed.Add)]
    taken = [value_at(case.parameters, edit.path) for edit in edits if isinstance(edit, ed.Remove)]
    found, had = (
        sorted(canonical_json(value) for _, value in leaves_like({"": values}, ()))
        for values in (added, taken)
    )
    return len(added) + len(taken) == len(edits) > 1 and found == had


def _class_of(case: Case, edit: ed.Edit, edits: list[ed.Edit]) -> ChangeClass:
    match edit:
        case ed.Rename():
            return _of_rename(case, edit)
        case ed.Cast():
            former = (e.path for e in edits if isinstance(e, ed.Rename) and e.to == edit.name)
            before = value_at(case.parameters, next(former, edit.path))
            made = cast_to_one(before, [edit.to])
            return "semantic" if made is None else _of_form(before, made[1])
        case ed.Replace():
            return _of_value(case, edit.name, edit.before, edit.value)
        case _:
            return _of_kind(case, edit)


def _of_kind(case: Case, edit: ed.Edit) -> ChangeClass:
    match edit:
        case ed.Flatten() if len(edit.fields) > 1 and isinstance(
            value_at(case.parameters, edit.path), list
        ):
            return "plausible"  # what has no name is what comes in this place
        case ed.Unwrap() | ed.Respell() | ed.Reformat() | ed.Nest() | ed.Flatten():
            return "lossless"
        case ed.Remove() if qualifiers_of(str(edit.path[-1])):
            return "lossy"  # without what was to limit it, a call may be about everything
        case ed.Remove() if value_at(case.parameters, edit.path) is None or (
            not edit.inside and is_said_twice(case, edit.name)
        ):
            return "lossless"
        case ed.Remove() if not edit.inside and says_nothing(value_at(case.parameters, edit.path)):
            view = case.parameter(edit.name)
            is_text = isinstance(value_at(case.parameters, edit.path), str)  # [] may clear a list
            return "lossless" if is_text and view and not view.required else "lossy"
        case ed.Remove() | ed.Clamp():
            return "lossy"
        case ed.Add():
            view = None if edit.inside else case.parameter(edit.name)
            is_default = view and view.has_default and same_json(view.default, edit.value)
            return "lossy" if is_default else "semantic"
        case _:
            return "semantic"  # what the error, the context or others' repairs put there


def _of_rename(case: Case, edit: ed.Rename) -> ChangeClass:
    if _says_the_same(str(edit.path[-1]), edit.to):
        return "lossless"
    missing = [fault for fault in case.faults if fault.kind == "missing"]
    unknown = case.view.unknown(case.parameters) if case.view else [edit.name]
    only = len(missing) == 1 and unknown == [edit.name] and not edit.inside
    return "plausible" if only and WORDS["neutral"].issuperset(words_of(edit.name)) else "semantic"


_IDS = frozenset(("id", "ids", "uuid", "key", "keys", "number", "ref"))
_ABBREVIATED = 0.65
"""Share of a word's letters up to which some of them, in order, are short for it."""
_ALIKE = 0.5
_WHICH = frozenset(
    ("base", "head", "default", "current", "previous", "next", "backup", "alternate", "primary",
     "secondary", "fallback", "original", "other", "parent", "home", "work")
)  # fmt: skip
"""Words that say which of several things: `base_branch` is not the branch that is meant."""
_OF_ITSELF = frozenset(
    (*WORDS["harmless"], "value", "string", "address", "path", "list", "data", "field", "param",
     "parameter", "input", "content", "contents", "uri", "url", "body", "query", "term", "file")
)  # fmt: skip
"""Last words that add nothing: `recipient_address` is the recipient, `recipient_bank` a bank."""


def _says_the_same(source: str, target: str) -> bool:
    """Whether one name shows the other; in an id a slip (`contact`, `contract`) is none."""
    a, b = words_of(source), words_of(target)
    if "".join(a) == "".join(b):
        return True
    if are_opposites(source, target) or name_similarity(source, target) < _SHOWN_BY_NAME:
        return False
    is_id = not _IDS.isdisjoint(a)
    if set(a) <= set(b) or set(b) <= set(a):
        longer = max(a, b, key=len)
        more = {*a} ^ {*b}
        return more.isdisjoint(_WHICH) and (longer[-1] not in more or longer[-1] in _OF_ITSELF)
    short, long = sorted((set(a) - set(b), set(b) - set(a)), key=len)
    matched = all(any(_same_word(one, other, is_id=is_id) for other in long) for one in short)
    return matched or (not is_id and DamerauLevenshtein.distance("".join(a), "".join(b)) == 1)


def _singular(word: str) -> str:
    return f"{word[:-3]}y" if word.endswith("ies") else word.rstrip("s")


def _same_word(one: str, other: str, *, is_id: bool) -> bool:
    short, long = sorted((one, other), key=len)
    if _singular(long) == _singular(short) or (long.startswith(short) and not is_id):
        return True
    if short[0] == long[0] and 2 <= len(short) <= _ABBREVIATED * len(long):
        letters = iter(long)
        if all(letter in letters for letter in short):
            return True
    distance = DamerauLevenshtein.distance(one, other)
    if distance == 1:
        return not is_id
    # Alike and no slip: another word. Unlike, and yet of the same meaning: a listed one.
    return 1 - distance / len(long) <= _ALIKE and name_similarity(one, other) >= _SHOWN_BY_NAME


def _of_form(before: JsonValue, after: JsonValue) -> ChangeClass:
    """Lossless where the way back gives what was there; else something is lost, as by a split."""
    if isinstance(after, list) and len(after) == 1 and same_json(after[0], before):
        return "lossless"
    if isinstance(before, str) and isinstance(after, list | dict):
        return "lossless" if before.strip()[:1] in ("[", "{", "(") else "lossy"
    back = cast_to_one(after, [type_of(before)])
    if back is None:
        return "lossy"
    same_text = isinstance(before, str) and (
        _plain(str(back[1])) == _plain(before) or says_only(before, after)
    )
    return "lossless" if same_value(back[1], before) or same_text else "lossy"


def _of_value(case: Case, name: str, before: JsonValue, after: JsonValue) -> ChangeClass:
    if type_of(before) != type_of(after):
        form = _of_form(before, after)
        return form if form == "lossless" or _says(before, after) else "semantic"
    if not isinstance(before, str) or not isinstance(after, str):
        return "semantic"
    bare = unmarked(before)
    if are_opposites(bare, after) or (bare[:1] == "-") != (after[:1] == "-"):
        return "semantic"
    if "/" not in after:
        bare = bare.removeprefix("./").removesuffix("/")
    # The same long number, grouped otherwise, or a mark of its kind that is gone or there.
    one, two = _GROUPING.sub("", bare), _GROUPING.sub("", after)
    regrouped = one == two and _LONG_NUMBER.fullmatch(one) is not None
    regrouped = regrouped or bare.removeprefix("#") == after.removeprefix("#")
    if _plain(bare) == _plain(after) or same_moment(bare, after) or regrouped:
        return "lossless"
    if _says_less(bare, after):
        return "lossy"
    view = case.parameter(name)
    listed = [
        *((*view.allowed, *view.stated_values) if view else ()),
        *(v for f in case.faults for v in f.allowed),
    ]
    for seed in case.seeds:
        if seed.catalogue and is_about_zones(name, case.reading.signature):
            listed += catalogue(seed.catalogue)
    if not any(same_json(after, each) for each in listed):
        return "semantic"
    texts = [str(each) for each in listed]
    near = nearest(bare, texts)
    is_near = near is not None and near[0] == after and near[1] not in ("start", "cut")
    return "lossless" if is_near or synonym_of(bare, texts) == (after, True) else "semantic"


_GROUPING = re.compile(r"[\s().-]")
_LONG_NUMBER = re.compile(r"\+?\d{7,}")


def _says_less(before: str, after: str) -> bool:
    """Whether a text says a part of the other: the day of a day and time, an address of a name."""
    whole, part = moment_of(before), moment_of(after)
    if whole is None or part is None:
        return "@" in after and after in before
    same_day = part.day in (None, whole.day) and part.zone in (None, whole.zone)
    return same_day and (part.clock is None or same_moment(before, after, by_day=False))


def _says(before: JsonValue, after: JsonValue) -> bool:
    """Whether a list of pieces, or a number, was written out in the text before it."""
    if not isinstance(before, str):
        return False
    made = cast_to_one(before, ["number"]) if type_of(after) in ("integer", "number") else None
    pieces = after if isinstance(after, list) else [after]
    return made[1] == after if made else all(str(each) in before for each in pieces)


def _plain(text: str) -> str:
    """Without case and separators between words; a sign before a number stays."""
    return re.sub(r"(?<=\w)[\s_-]+(?=\w)|\s+|_", "", text).lower()
