"""Values that a text states: what stands in quotation marks, file names, numbers, names.

The text is the caller's own account of what it was doing, so what it states is known to the caller
and may be put into its call. Nothing here understands the text: forms and neighbouring words only.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

MAX_TEXT = 4_000
"""Characters that are read; the first, since a request comes before its details."""
_MAX_STATED = 200
_BEFORE, _AFTER = 4, 2

StatedForm = Literal[
    "quoted",
    "pair",
    "file",
    "url",
    "email",
    "mention",
    "hashtag",
    "number",
    "identifier",
    "name",
    "word",
]


@dataclass(frozen=True, slots=True)
class Stated:
    """One value of a text, with the lower-case words just before and after it."""

    text: str
    form: StatedForm
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


# The first that matches at a place decides; each is linear.
_FORMS: list[tuple[StatedForm, str]] = [
    ("url", r"\b[a-z][a-z0-9+.-]{1,15}://[^\s'\"`<>)\]]{1,300}"),
    ("email", r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}\b"),
    ("quoted", r"(?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w)){1,300}'(?!\w)|"
               r"\"[^\"\n]{1,300}\"|`[^`\n]{1,300}`|"
               r"[\u201c\u2018][^\u201d\u2019\n]{1,300}[\u201d\u2019]"),
    ("pair", r"(?<![\w./:@-])[\w.-]{1,80}[/:@][\w.-]{1,80}(?![\w/])"),
    ("file", r"(?<![\w./-])[\w-]{1,80}(?:\.[\w-]{1,20}){0,3}\.[A-Za-z][A-Za-z0-9]{0,4}\b"),
    ("mention", r"(?<!\w)@\w{1,50}"),
    ("hashtag", r"(?<!\w)#\w{1,100}"),
    ("number", r"(?<![\w.,-])-?\d{1,15}(?:,\d{3})*(?:\.\d{1,15})?(?![\w-]|\.\d)"),
    ("identifier", r"\b(?=\w*[_\d])\w{2,80}(?:-\w{1,80}){0,3}\b|\b[a-z]{1,40}[A-Z]\w{0,80}\b"),
    ("name", r"\b[A-Z][a-z]{1,30}(?:[ -][A-Z][a-z]{1,30}){1,3}\b|\b[A-Z]{2,10}\b|"
             r"(?<=[a-z,;] )[A-Z][a-z]{2,30}\b"),
    ("word", r"\b[A-Za-z][\w-]{1,60}"),
]  # fmt: skip
_ONE = re.compile("|".join(f"(?P<{form}>{pattern})" for form, pattern in _FORMS))
_WORD = re.compile(r"[a-z0-9]+")
_MARKS = "'\"`\u201c\u201d\u2018\u2019"


@lru_cache(maxsize=256)
def stated_in(text: str) -> tuple[Stated, ...]:
    """The values that a text states, in its order, each once."""
    found: dict[tuple[str, StatedForm], Stated] = {}
    for stated in _all_in(text[:MAX_TEXT]):
        found.setdefault((stated.text, stated.form), stated)
        if len(found) >= _MAX_STATED:
            break
    return tuple(found.values())


def _all_in(text: str) -> Iterator[Stated]:
    for match in _ONE.finditer(text):
        form: StatedForm = match.lastgroup  # type: ignore[assignment]  # the groups are the forms
        before = _WORD.findall(text[max(0, match.start() - 60) : match.start()].lower())
        after = _WORD.findall(text[match.end() : match.end() + 40].lower())
        value = match[0]
        if form == "quoted":
            value = value.strip(_MARKS).strip().removesuffix(",")
        if value:
            yield Stated(value, form, tuple(before[-_BEFORE:]), tuple(after[:_AFTER]))


def written_in(text: str, value: str) -> str | None:
    """`value` as the text writes it, whatever its letter case; None when it is not in there."""
    place = text[:MAX_TEXT].lower().find(value.lower())
    if place < 0 or len(text[:MAX_TEXT].lower()) != len(text[:MAX_TEXT]):
        return None
    end = place + len(value)
    inside_a_word = (text[place - 1 : place].isalnum() and value[0].isalnum()) or (
        text[end : end + 1].isalnum() and value[-1].isalnum()
    )
    return None if inside_a_word else text[place:end]
