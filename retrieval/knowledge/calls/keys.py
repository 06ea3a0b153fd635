"""Keys: why a value stands under another name, and which other places would take it.

A name is another spelling of the one that was sent, or the error names it, or the value only moved
to the level that the tool has; else the place may be the only one left. Where another open place
would take the value as well, the change is a question.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from aftercall.change_classes import qualifiers_of
from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue
from retrieval import WORDS
from retrieval.knowledge.calls.account import Grounds, KeyReason
from retrieval.knowledge.calls.tree import Piece, around_key, at_last_key, last_key, members_at
from retrieval.knowledge.values.forms import meets_form
from retrieval.knowledge.values.likeness import name_similarity, names_the_same, words_of
from retrieval.knowledge.values.parameters import ParameterView, Path
from retrieval.knowledge.values.scalars import fits_types

_MARGIN = 0.1
"""Likeness of names up to which two are about as like a third."""
KEY_WORDS: dict[KeyReason, str] = {
    "same": "in another place of the list",
    "spelling": "another spelling",
    "error": "the error names it",
    "level": "on the level where the tool has it",
    "only": "the only place left",
    "left": "the only place left, though the name says something else",
    "none": "nothing says that this name is meant",
}
_GENERIC = WORDS["of_names"] | {"key", "title", "code", "ref", "uuid", "ids"}
"""Words that name an aspect of anything: `name` may be that of a user or of a channel."""
REASONS: tuple[KeyReason, ...] = ("same", "level", "spelling", "error", "only", "left", "none")
"""From what is sure to what nothing states."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a repaired call, with what may explain them."""

    grounds: Grounds
    after: JsonObject

    def key_reason(self, gone: Piece, new: Piece) -> KeyReason:
        """Return why a value stands under other keys than it was sent under."""
        before = [step for step in gone.path if isinstance(step, str)]
        after = [step for step in new.path if isinstance(step, str)]
        if len(before) != len(after):
            return self._level_reason(before, after, new)
        reasons: list[KeyReason] = ["same"]
        for at, (old, name) in enumerate(zip(before, after, strict=True)):
            if old != name:
                reasons.append(self._name_reason(old, name, around_key(new.path, at), new.value))
        return max(reasons, key=REASONS.index)

    def _level_reason(self, before: list[str], after: list[str], new: Piece) -> KeyReason:
        """Return why a value stands on another level, whose own name may change as well."""
        old = before[-1]
        name = after[-1]
        is_taken_out = before[: len(after)] == after
        folded = words_of(name) == _words_of_keys(before[-2:]) or words_of(old) == _words_of_keys(
            after[-2:]
        )
        if old == name:
            return "level"
        if is_taken_out:
            return "level"
        if folded:
            return "level"
        if after[: len(before)] == before and not WORDS["of_values"].isdisjoint(words_of(name)):
            return "level"
        return self._name_reason(old, name, around_key(new.path, len(after) - 1), new.value)

    def _name_reason(self, old: str, name: str, around: Path, value: JsonValue) -> KeyReason:
        if self.grounds.renamed(old, name):
            return "error"
        if names_the_same(old, name):
            return "spelling"
        views = self.grounds.places(around)
        if name not in views:
            return "none"
        if _says_otherwise(old, name):
            return "none"
        if old in views and (
            _takes_value(views[old], value) or not _takes_value(views[name], value)
        ):
            return "none"
        words = {*words_of(old)}
        is_neutral = words <= WORDS["neutral"] or words <= {*words_of(name)}
        if is_neutral:
            return "only"
        return "left"

    def rival_places(self, gone: Piece, new: Piece, key: KeyReason) -> tuple[Path, ...]:
        """Return the other open places that would take the value as well."""
        if key not in ("spelling", "only", "left"):
            return ()
        at = at_last_key(new.path)
        around = new.path[:at]
        name = str(new.path[at])
        old = last_key(gone.path) or ""
        views = self.grounds.places(around)
        taken = members_at(self.after, around)
        target = views.get(name)
        found = []
        for rival, view in views.items():
            if rival in taken:
                continue
            if rival == name:
                continue
            if target and target.required > view.required:
                continue
            if _takes_value(view, gone.value) and _is_as_near(old, name, rival, key):
                found.append((*around, rival))
        return tuple(found)


def _is_as_near(old: str, name: str, rival: str, key: KeyReason) -> bool:
    """Return whether a rival's name is about as near to the name that was sent."""
    if key != "spelling":
        return True
    if words_of(old) == words_of(name):
        return False
    added = set(words_of(name)) - set(words_of(old))
    is_aspect = set(words_of(old)) <= _GENERIC and not added <= WORDS["harmless"] | _GENERIC
    own = set(words_of(old))
    if own <= set(words_of(name)) and own <= set(words_of(rival)):
        return True  # `path` may be `source_path` or `target_path`
    near = name_similarity(old, rival) >= name_similarity(old, name) - _MARGIN
    return near or is_aspect


def _says_otherwise(old: str, name: str) -> bool:
    """Return whether a name limits or negates, so that its value belongs nowhere else."""
    return bool(qualifiers_of(old) ^ qualifiers_of(name))


def _takes_value(view: ParameterView, value: JsonValue) -> bool:
    """Return whether a place would take a value, by type, list and form."""
    if view.types and not fits_types(value, view.types):
        return False
    if view.allowed and not any(same_json(value, each) for each in view.allowed):
        return False
    forms = [form for form in (view.pattern, view.form) if form]
    return not (isinstance(value, str) and any(meets_form(value, form) is False for form in forms))


def _words_of_keys(keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for key in keys for word in words_of(key))
