"""Subject and setting: what a call is about, and how it is to be done.

A setting's values repeat from call to call, and what repaired one may repair another. A subject (a
name, an id, a day, a text) is its caller's: another caller's is no repair of it.
"""

import re

from rapidfuzz.fuzz import ratio

from aftercall.json_values import JsonValue
from aftercall.redaction import is_redacted
from retrieval import WORDS
from retrieval.knowledge.tool.profile import ParameterProfile
from retrieval.knowledge.values.likeness import differ_in_digits, is_portion, words_of
from retrieval.knowledge.values.parameters import ParameterView
from retrieval.knowledge.values.texts import format_of, is_number

_ENOUGH = 3
"""Successes from which on their values show whether a parameter is a setting."""
_SCALE = 100
"""Steps of a scale: a judgement; a share in percent has that many."""
_MOST_WORDS = 2
"""Words of a setting's value; more are a sentence."""
_NUMBERED = re.compile(r"\d{4}|(?<![A-Za-z0-9])\d{3}")
"""Digits of an id; a version or a region has fewer."""
_ALIKE = 75.0
"""Likeness in percent from which on two texts are one, misspelt."""
_OF_SUBJECTS = frozenset(
    ("date", "local-date", "date-time", "time", "12-hour-time", "email", "uuid", "url", "path")
)


def is_setting(name: str, view: ParameterView | None, seen: ParameterProfile | None) -> bool:
    """Return whether a parameter's values repeat, so that it states how and not what.

    Listed by the schema, a boolean, with a default, on a scale of at most a hundred steps, of a
    portion or level by its name; or seen: the share of successes whose value had been there before,
    one for and one against it added (a Beta mean), is above a half.
    """
    if view is not None and (view.allowed or view.has_default or view.types == ("boolean",)):
        return True
    if is_portion(name) or not WORDS["levels"].isdisjoint(words_of(name)):
        return True
    if _is_named_so(name):
        return False
    if view is not None and view.minimum is not None and view.maximum is not None:
        return view.maximum - view.minimum <= _SCALE
    if seen is None or seen.successes < _ENOUGH:
        return False
    repeated = seen.successes - len(seen.values)
    return (repeated + 1) / (seen.successes + 2) > 0.5


def is_subject_value(name: str, value: JsonValue) -> bool:
    """Return whether a value looks like what one call is about; nothing is known of its place.

    A number under a name of subjects; a text under such a name or that of someone, or one that is
    a day, an address, an id, or that has several words.
    """
    if is_redacted(value):
        return True
    if not isinstance(value, str):
        return is_number(value) and _is_named_so(name)
    is_free = not WORDS["free_text"].isdisjoint(words_of(name)[-1:])
    if (
        is_free
        or _is_named_so(name)
        or format_of(value) in _OF_SUBJECTS
        or len(value.split()) > _MOST_WORDS
    ):
        return True
    is_title = len(value.split()) > 1 and value.istitle()
    return is_title or _NUMBERED.search(value) is not None


def is_respelling(before: JsonValue, after: JsonValue) -> bool:
    """Return whether a text is another one, misspelt: `Rom` for `Rome`."""
    if not isinstance(before, str) or not isinstance(after, str):
        return False
    return ratio(before.lower(), after.lower()) >= _ALIKE and not differ_in_digits(before, after)


def _is_named_so(name: str) -> bool:
    """Return whether a name is that of a subject: `branch` is, and `branch_type` is not."""
    words = words_of(name)
    of_somebody = not WORDS["somebody"].isdisjoint(words[-1:])
    return of_somebody or not WORDS["subjects"].isdisjoint(words)
