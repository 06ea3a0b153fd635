"""What is strange in a value that a repair puts somewhere: no place holds such a value."""

import json
import re
from itertools import islice

from aftercall.json_patch import same_json
from aftercall.json_values import JsonValue
from aftercall.redaction import is_redacted
from retrieval import WORDS
from retrieval.answers.proposers.case import Case
from retrieval.knowledge.tool.profile import ParameterProfile
from retrieval.knowledge.values.likeness import named_in, refers_by_words, words_of
from retrieval.knowledge.values.parameters import Path, value_at, written_place
from retrieval.knowledge.values.scalars import (
    fits_types,
    has_odd_signs,
    is_encoded,
    is_escaped,
    is_marked,
    is_placeholder,
)
from retrieval.knowledge.values.texts import format_of, outline_text

_MAX_TEXT = 2_000
_MAX_KNOWN = 50
_ASKS = frozenset(("query", "q", "search", "title", "subject"))
_COMMAND = re.compile(r"(?:^|\s)--?[A-Za-z{<\"':@$(]|^\w+=\S")
"""Options of a command, or a name with its value: a call, and no value."""
_NAME = re.compile(r"[A-Za-z_]\w*")
_EXAMPLES = re.compile(r"\be\.?g\b|\bsuch as\b|\bexamples?\b|\blike\b|\be\.?x\.", re.IGNORECASE)
"""What states that values in a description are not all that there are."""
_FEW = 3
"""Texts of successes below which they do not show what is usual."""
_OFTEN = 5
"""Uses of each known value from which on they look like all that there are."""
_FORMS = 2
"""Forms of values up to which a parameter has a form."""


def is_odd(case: Case, path: Path, value: str) -> bool:
    """Return whether a new text is a placeholder, in quotes, JSON text, a command, or misspelt.

    What the schema lists, or the tool's successes had in such a form, is not odd.
    """
    if not 0 < len(value) <= _MAX_TEXT:
        return False
    name = str(path[0])
    view = case.view_parameter(name)
    if view is not None and view.states_value(value):
        return False
    if is_placeholder(value):
        return True
    names = set[str]()
    for step in path:
        if isinstance(step, str):
            names.update(words_of(step))
    is_new = not same_json(value_at(case.parameters, path), value)
    if is_new and _is_odd_where_new(case, path, names, value):
        return True
    if not WORDS["free_text"].isdisjoint(names):
        return is_escaped(value)
    if value == case.tool or is_marked(value):
        return True
    if _is_noted(names, case.observed_values(name), value):
        return True
    return _is_structure_where_none_is_due(case, name, value) or _is_misspelt(case, path, value)


def _is_odd_where_new(case: Case, path: Path, names: set[str], value: str) -> bool:
    """Return whether a text that the call did not have there stands for something else."""
    if refers_by_words(value, str(path[0])) or _is_place(case, path, value) or is_encoded(value):
        return True
    if not WORDS["free_text"].isdisjoint(names):
        return "\n" in value and not _ASKS.isdisjoint(names)
    if _COMMAND.search(value):
        return True
    return _names_parameters(case, value)


def _is_structure_where_none_is_due(case: Case, name: str, value: str) -> bool:
    if _has_form(case.observed_values(name), value):
        return False
    view = case.view_parameter(name)
    if format_of(value) == "json-text" and not (view and "json" in view.described_by):
        return True
    bare = value.strip().rstrip(",")
    is_enclosed = bare[:1] in "[({" and bare[-1:] in "])}"
    return is_enclosed and not _QUOTES.isdisjoint(bare)


_QUOTES = frozenset("'\":")


def _has_form(seen: ParameterProfile | None, value: str) -> bool:
    """Return whether successes had texts in the form of a value."""
    return seen is not None and seen.formats.get(format_of(value), 0) > 0


def _is_misspelt(case: Case, path: Path, value: str) -> bool:
    """Return whether a value is a listed one, or a success's, in another spelling."""
    view = case.view_parameter(str(path[0]))
    words = words_of(value)
    if view is not None and len(view.stated_values) > 1:
        listed = view.stated_values
        if words and words in map(words_of, listed):
            return True
        if named_in(value, listed) is not None:
            return True
    if not case.profile or not isinstance(path[-1], int):
        return False
    inside = case.profile.profile_at(written_place(path))
    known = [str(each.value) for each in inside.common_values()] if inside else []
    return value not in known and words in map(words_of, known)


def _is_place(case: Case, path: Path, value: str) -> bool:
    """Return whether a number became the text of a choice: its place in some list."""
    if not value.isdecimal() or not isinstance(value_at(case.parameters, path), int):
        return False
    name = str(path[0])
    if not WORDS["of_choices"].isdisjoint(words_of(name)[-1:]):
        return True
    seen = case.observed_values(name)
    return bool(seen and seen.formats) and not _has_form(seen, value)


def _names_parameters(case: Case, text: str) -> bool:
    """Return whether a text names parameters of the tool: a call in a notation that no one read."""
    known = case.view.parameters if case.view is not None else {}
    named = known.keys() & set(_NAME.findall(text))
    return len(named) > 1 or any(len(words_of(each)) > 1 for each in named)


def _is_noted(names: set[str], seen: ParameterProfile | None, value: str) -> bool:
    """Return whether a value has signs of a notation, which neither name nor success has."""
    if not WORDS["never_of_context"].isdisjoint(names) or not has_odd_signs(value):
        return False
    for text in islice(seen.values if seen else (), _MAX_KNOWN):
        if text[:1] == '"' and has_odd_signs(text[1:-1]):
            return False
    return True


def is_unlike(case: Case, path: Path, value: JsonValue) -> bool:
    """Return whether a value misses from a list that is stated or was always kept to.

    Or of another form than all that is known at its place.
    """
    if len(path) > 1:
        return _is_of_other_type(case, path, value)
    if not isinstance(value, str) or is_redacted(value):
        return False
    name = str(path[0])
    view = case.view_parameter(name)
    is_listed = view is not None and len(view.stated_values) > 1
    if view is not None and is_listed and not _EXAMPLES.search(view.description):
        return value not in map(str, view.stated_values)
    seen = case.observed_values(name)
    if seen is None:
        return False
    keys = islice(seen.values, _MAX_KNOWN)
    known = [json.loads(key) for key in keys if key[:1] == '"']
    if len(known) < _FEW or value in known:
        return False
    if seen.successes >= _OFTEN * len(seen.values):
        return True
    forms = set(map(outline_text, known))
    return len(forms) <= _FORMS and outline_text(value) not in forms


def _is_of_other_type(case: Case, path: Path, value: JsonValue) -> bool:
    inner = case.profile.profile_at(written_place(path)) if case.profile else None
    if inner is None or not inner.successes:
        return False
    return not fits_types(value, tuple(inner.types))
