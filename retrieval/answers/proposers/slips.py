"""Slips of models that schema and error leave open, and which context or the value itself settle.

One of two parameters that exclude each other, numbers of lines copied with a text, quotes of
another language, the year of what a model was trained on, a place's latitude instead of its
longitude, a label for its number, money in whole units for a tool that counts in cents, a number
that lost its last digits.
"""

import re
from collections.abc import Iterable, Iterator
from html import unescape
from itertools import islice

from aftercall.json_values import JsonValue
from retrieval import WORDS
from retrieval.answers.proposers.case import Case, Option, one_edit, prior_trials, put
from retrieval.knowledge.beta import Trials
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.rewrites.edits import Edit, Remove, Replace
from retrieval.knowledge.values.likeness import words_of
from retrieval.knowledge.values.scalars import says_nothing
from retrieval.knowledge.values.texts import MAX_ACCOUNT, is_number

_ONE_OF_TWO = prior_trials("exclusive")
_EITHER = Trials(2, 3)
"""A judgement: no one states which of two that exclude each other is meant."""
_ALONE = Trials(1, 9)
"""A judgement: who sent it meant to send the missing one as well, sooner than neither."""
_NEEDED = Trials(6, 3)
_UNNUMBERED = prior_trials("format.lines")
_UNESCAPED = prior_trials("format.entities")
_QUOTES = prior_trials("format.quotes")
_THIS_YEAR = prior_trials("format.year")
_CROSSED = prior_trials("shape.crossed")
_REVERSED = prior_trials("shape.reversed")
_CODED = prior_trials("snap.coded")
_IN_SECONDS = prior_trials("cast.seconds")
_MILLIS = 1_000_000_000_000
"""Since 1970, of September 2001; twice as many are of 2033."""
_IN_CENTS = prior_trials("cast.cents")
_EXACT = prior_trials("context.exact")
_EXACT_DIGITS = 15
"""Of a number that went through a program with 53 bits for it, these are right."""
_LINE = re.compile(r"[ \t]*\d{1,6}[\t\u2192]")
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#39);")
_IN_QUOTES = re.compile(r"((?:[=<>(,]|\b(?i:in|like|then|else))\s*)\"([^\"'\n]{0,200})\"")
_YEAR = re.compile(r"\b20\d\d\b")
_MEANING = re.compile(
    r"(?P<number>-?\d{1,4})\s*[=:]\s*(?P<label>[A-Za-z][\w -]{1,30})"
    r"|(?P<before>[A-Za-z][\w -]{1,30}?)\s*[=:(]\s*(?P<after>-?\d{1,4})"
)
_QUARTER_TURN = 90
_MAX_TEXT = 20_000
_MAX_NAMES = 100


def rival_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Yield repairs of two parameters that exclude or need each other, or are out of order."""
    if fault.allowed:
        yield from _needed_values(case, index, fault)
    elif fault.excludes:
        settled = list(one_of_two(case, index, fault))
        yield from settled or _without_one(case, index, fault)
        yield from _without_flag(case, index, fault)
    else:
        yield from reversed_options(case, index, fault)


def _needed_values(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Yield the other parameter with the value that the error states it needs.

    Or without the first.
    """
    name = str(fault.parameter)
    other = str(fault.rival)
    value = fault.allowed[0]
    if name in case.parameters:
        reason = f"the error says that `{name}` needs it"
        yield one_edit(index, put(case, other, value), reason, _NEEDED, "error")
        yield from _without_one(case, index, fault)


def _without_one(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Yield the call without the parameter that the error names first, of two."""
    name = str(fault.parameter)
    is_one_named = fault.rival is None or fault.value_text is not None or fault.allowed
    if is_one_named and name in case.parameters:
        reason = f"the error says that `{name}` does not go with the rest"
        yield one_edit(index, Remove(name=name), reason, _EITHER, "error")


def _without_flag(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Yield a command without a flag that excludes another, where nothing stands behind it."""
    flag = rf"--?{re.escape(str(fault.parameter))}"
    for name, value in islice(case.parameters.items(), _MAX_NAMES):
        made: JsonValue = None
        if isinstance(value, str) and len(value) <= _MAX_TEXT:
            made = re.sub(rf"\s{flag}(?=\s+-|\s*\Z)", "", value, count=1)
        elif isinstance(value, list) and all(isinstance(each, str) for each in value):
            at = [i for i, each in enumerate(value) if re.fullmatch(flag, str(each))]
            if len(at) != 1:
                continue
            before = value[: at[0]]
            behind = value[at[0] + 1 :]
            if not behind or str(behind[0])[:1] == "-":
                made = before + behind
        if made is not None and made != value:
            reason = f"the error says that `{fault.parameter}` does not go with the rest"
            yield one_edit(index, put(case, name, made), reason, _EITHER, "error")


def without_rival(index: int, fault: Fault) -> Iterator[Option]:
    """Yield the call without the parameter that needs a missing one."""
    reason = f"the error says that `{fault.rival}` needs `{fault.parameter}`"
    yield one_edit(index, Remove(name=str(fault.rival)), reason, _ALONE, "error")


def _in_singular(words: Iterable[str]) -> set[str]:
    return {word.rstrip("s") for word in words}


def one_of_two(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Leave out the one of two rivals that is empty or absent from the context."""
    rivals = (fault.parameter, fault.rival)
    pair = [str(name) for name in rivals if name in case.parameters]
    if len(pair) != 2:
        return
    context = (case.context or "")[:MAX_ACCOUNT]
    said = _in_singular(words_of(context))
    described = []
    for name in pair:
        view = case.view_parameter(name)
        own = view.described_by if view else ()
        described.append(_in_singular((*words_of(name), *own)))
    first, second = described
    heard = [len(said & (first - second)), len(said & (second - first))]
    for at, name in enumerate(pair):
        if says_nothing(case.parameters[name]) or heard[at] < heard[1 - at]:
            reason = f"`{pair[1 - at]}` excludes it, and the context is about that"
            yield one_edit(index, Remove(name=name), reason, _ONE_OF_TWO, "context")


def slip_options(case: Case, index: int, name: str, fault: Fault) -> Iterator[Option]:
    """Yield the text that was meant, where only the way it was copied is wrong."""
    value = case.parameters[name]
    if not isinstance(value, str):
        return
    if len(value) > _MAX_TEXT:
        return
    if fault.kind == "not_found" and _is_numbered(value):
        edits: list[Edit] = [
            Replace(name=each, before=text, value=strip_numbers(text))
            for each, text in case.parameters.items()
            if isinstance(text, str) and _is_numbered(text)
        ]
        reason = "the same without the numbers of its lines"
        covers = frozenset({index})
        yield Option(tuple(edits), reason, _UNNUMBERED, ("parameters",), covers=covers)
    if _ENTITY.search(value):
        reason = "the same with the signs that a page writes otherwise"
        yield one_edit(index, put(case, name, unescape(value)), reason, _UNESCAPED, "parameters")
    quoted = _requote_names(value, fault)
    if quoted is not None:
        reason = "texts and names in the quotes that this language has for them"
        yield one_edit(index, put(case, name, quoted), reason, _QUOTES, "error")
    if _YEAR.match(value) is not None and "past" in words_of(case.reading.signature):
        yield from _this_year(case, index, value[:4])


def _this_year(case: Case, index: int, year: str) -> Iterator[Option]:
    """Yield the dates of a past year in the only, later year of the context."""
    years = set(_YEAR.findall((case.context or "")[:MAX_ACCOUNT]))
    if len(years) != 1 or year >= min(years):
        return
    [this_year] = years
    edits = [
        Replace(name=each, before=text, value=f"{this_year}{text[4:]}")
        for each, text in case.parameters.items()
        if isinstance(text, str) and text.startswith(f"{year}-")
    ]
    covers = frozenset({index})
    reason = "the year of the context"
    yield Option(tuple(edits), reason, _THIS_YEAR, ("context",), covers=covers)


def reversed_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Yield the two ends exchanged, where the error states that they are in the wrong order."""
    later = str(fault.parameter)
    earlier = str(fault.rival)
    ends = [case.parameters.get(name) for name in (later, earlier)]
    are_texts = all(isinstance(each, str) for each in ends) and str(ends[0]) < str(ends[1])
    first, second = ends
    if are_texts or (is_number(first) and is_number(second) and first < second):
        reason = f"`{later}` and `{earlier}` are the wrong way round"
        yield Option(
            exchange_values(case, later, earlier),
            reason,
            _REVERSED,
            ("error",),
            covers=frozenset({index}),
        )


def exchange_values(case: Case, one: str, other: str) -> tuple[Edit, ...]:
    """Return the edits that put the values of two parameters in each other's place."""
    first = case.parameters[one]
    second = case.parameters[other]
    return (
        Replace(name=one, before=first, value=second),
        Replace(name=other, before=second, value=first),
    )


def _is_numbered(text: str) -> bool:
    return bool(text.strip()) and all(map(_LINE.match, text.splitlines()))


def strip_numbers(text: str) -> str:
    """Return the text without what a listing puts before its lines."""
    return "\n".join(_LINE.sub("", line, count=1) for line in text.split("\n"))


def _requote_names(text: str, fault: Fault) -> str | None:
    """Return a statement with quotes that keep its names' capitals, or single ones."""
    shown = "" if fault.value_text == text else (fault.value_text or "").strip("'\"")
    name = (fault.suggested or "").rpartition(".")[2]
    if name and name != shown:
        is_same = name.lower() == shown.lower()
        wrong, right = (name, f'"{name}"') if is_same else (shown.rpartition(".")[2], name)
        made = re.sub(rf"(?<![\w\"]){re.escape(wrong)}(?![\w\"])", right, text) if wrong else text
    elif shown and f'"{shown}"' in text:
        made = _IN_QUOTES.sub(r"\1'\2'", text)
    else:
        return None
    if made != text:
        return made
    return None


def crossed_options(case: Case, index: int, name: str) -> Iterator[Option]:
    """Latitude and longitude exchanged, where one of them is beyond a pole."""
    for other, held in case.parameters.items():
        value = case.parameters[name]
        own = words_of(name)
        its = words_of(other)
        if (
            is_number(value)
            and is_number(held)
            and abs(value) > _QUARTER_TURN >= abs(held)
            and not {"lat", "latitude"}.isdisjoint(own)
            and not {"lon", "lng", "long", "longitude"}.isdisjoint(its)
        ):
            reason = f"`{name}` is beyond a pole, and `{other}` is not"
            yield Option(
                exchange_values(case, name, other),
                reason,
                _CROSSED,
                ("parameters",),
                covers=frozenset({index}),
            )


def seconds_options(case: Case, index: int, name: str) -> Iterator[Option]:
    """Seconds since 1970 for all milliseconds of them, where the tool counts in seconds."""
    edits: list[Edit] = [
        Replace(name=each, before=value, value=value // 1000)
        for each, value in case.parameters.items()
        if isinstance(value, int)
        and _MILLIS <= value < 2 * _MILLIS
        and (view := case.view_parameter(each)) is not None
        and not {"second", "seconds"}.isdisjoint(view.described_by)
    ]
    if any(isinstance(edit, Replace) and edit.name == name for edit in edits):
        yield Option(
            tuple(edits),
            "the tool counts in seconds, not in thousandths",
            _IN_SECONDS,
            ("schema",),
            covers=frozenset({index}),
        )


_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,6})?) ?%")
_OF_SHARES = frozenset(("fraction", "ratio", "share", "proportion"))
"""Words of a description that say that 1 is the whole."""


def number_options(case: Case, index: int, name: str) -> Iterator[Option]:
    """Yield the number that the description gives a label, a share of one, or money in cents."""
    value = case.parameters[name]
    view = case.view_parameter(name)
    if view is None:
        return
    if isinstance(value, str) and (found := _number_meant(view.description, value)) is not None:
        reason = f"the description says that {found} means so"
        yield one_edit(index, put(case, name, found), reason, _CODED, "schema")
    percent = _PERCENT.fullmatch(value.strip()) if isinstance(value, str) else None
    takes_share = view.maximum == 1 or not view.described_by.isdisjoint(_OF_SHARES)
    if percent and takes_share:
        share = float(percent[1]) / 100
        reason = "the tool takes a share of one"
        yield one_edit(index, put(case, name, share), reason, _IN_CENTS, "schema")
    if isinstance(value, float) and not view.described_by.isdisjoint(WORDS["hundredths"]):
        cents = round(100 * value)
        if abs(100 * value - cents) < 1e-6:  # 100 * 19.99 is 1998.9999
            reason = "the tool counts in cents"
            yield one_edit(index, put(case, name, cents), reason, _IN_CENTS, "schema")


def rounded_options(case: Case, index: int, name: str) -> Iterator[Option]:
    """Yield the context's whole number for one that lost its last digits (beyond 2^53)."""
    sent = str(case.parameters[name])
    if not sent.isdecimal():
        return
    if len(sent) <= _EXACT_DIGITS:
        return
    found = {
        each
        for each in re.findall(r"\b\d{16,25}\b", (case.context or "")[:MAX_ACCOUNT])
        if len(each) == len(sent) and each[:_EXACT_DIGITS] == sent[:_EXACT_DIGITS]
    }
    if len(found) == 1:
        reason = "the context has the number before it lost its last digits"
        trials = _EXACT
        yield one_edit(index, put(case, name, found.pop()), reason, trials, "context")


def _number_meant(description: str, label: str) -> int | None:
    found = {
        int(each["number"] or each["after"])
        for each in _MEANING.finditer(description[:MAX_ACCOUNT])
        if words_of(each["label"] or each["before"]) == words_of(label)
    }
    if len(found) == 1:
        return found.pop()
    return None
