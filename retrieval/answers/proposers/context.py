"""Values that the caller's own account of its task states.

The nearer one fits, the likelier it is the one that was meant: it has the form that the tool's
successes have there, stands next to a word of the parameter's name, is not used elsewhere in the
call, and is the only such value. Each of these raises the grade, and the grade names the prior.
"""

import re
from collections.abc import Iterable, Iterator

from aftercall.json_values import JsonValue
from aftercall.redaction import is_redacted
from retrieval import WORDS
from retrieval.answers.proposers.case import Case, Option, one_edit, prior_trials, put
from retrieval.answers.proposers.faults import misses_form, stated_forms
from retrieval.answers.proposers.values import MOST
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.rewrites.edits import Add, Replace
from retrieval.knowledge.tool.profile import ParameterProfile
from retrieval.knowledge.values.forms import MONTHS, in_form
from retrieval.knowledge.values.likeness import nearest_value, words_of
from retrieval.knowledge.values.parameters import JsonType, leaves_like
from retrieval.knowledge.values.scalars import cast_to_one, fits_types, is_placeholder
from retrieval.knowledge.values.texts import (
    MAX_ACCOUNT,
    Stated,
    format_of,
    outline_text,
    stated_in,
    written_in,
)

_MAX_GRADE = 5
_TOO_LONG = 2
"""So many times as long as the longest of the successes' texts, a text is not one of them."""


def context_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Yield what the context states that a missing or refused parameter may have meant."""
    name = fault.parameter
    is_missing = fault.kind == "missing"
    if name is None or len(fault.path) > 1 or not case.context:
        return
    sent = case.parameters.get(name)
    if name in case.parameters:
        if is_missing or fault.kind in ("unexpected", "wrong_type") or is_redacted(sent):
            return
        yield from _restate_value(case, index, name, sent)
        if isinstance(sent, str) and is_placeholder(sent):
            yield from _in_shown_form(case, index, name)
        if isinstance(sent, str) and (
            is_placeholder(sent) or written_in(case.context, sent) is not None
        ):
            return  # what no one knew, or this very value; another one would be another wish
    elif not is_missing:
        return
    else:
        yield from _other_halves(case, index, name)
        yield from _in_shown_form(case, index, name)
        yield from _offer_day(case, index, name)
    if not WORDS["never_of_context"].isdisjoint(words_of(name)):
        return
    view = case.view_parameter(name)
    said = " ".join(words_of(case.context[:MAX_ACCOUNT]))
    told = [
        each
        for each in (view.stated_values if view else ())
        if len(words_of(each)) > 1 and f" {' '.join(words_of(each))} " in f" {said} "
    ]
    if is_missing and len(told) == 1:
        trials = prior_trials("context.listed")
        yield one_edit(index, put(case, name, told[0]), "the context says it", trials, "context")
    role = "missing" if is_missing else "instead"
    for value, grade in _grade_stated(case, name, sent)[:MOST]:
        trials = prior_trials(f"context.{role}.{grade}")
        reason = "the context of the call states it"
        yield one_edit(index, put(case, name, value), reason, trials, "context")


def _restate_value(case: Case, index: int, name: str, sent: JsonValue) -> Iterator[Option]:
    """Yield the sent value as the context writes it: in other letter case, or without its slip."""
    if not isinstance(sent, str):
        return
    if not sent:
        return
    if case.context is None:
        return
    begun = _CUT.match(sent.strip())
    whole = _begun_with(case.context, begun[1]) if begun else set()
    written = whole.pop() if len(whole) == 1 else written_in(case.context, sent)
    trials = prior_trials("context.case")
    if written is None:
        known = [stated.text for stated in stated_in(case.context) if stated.form != "number"]
        near = nearest_value(sent, [text for text in dict.fromkeys(known) if text != sent])
        if near and near[1] not in ("start", "cut"):
            written = near[0]
            trials = prior_trials("context.same" if near[1] == "same" else "context.slip")
    if written not in (None, sent):
        edit = Replace(name=name, before=sent, value=written)
        yield one_edit(index, edit, "the context of the call writes it so", trials, "context")


_CUT = re.compile(r"([\w-]{6,60}?)-?(?:\.{2,3}|\u2026)\Z")
"""An id whose beginning alone was written."""


_EXAMPLE = re.compile(r"(?:e\.g\.|such as|like|example)[,: ]{1,3}['\"`]?([\w#./-]{3,40}\w)")


def _begun_with(account: str, start: str) -> set[str]:
    return set(re.findall(rf"(?<![\w-]){re.escape(start)}[\w-]+", account[:MAX_ACCOUNT]))


def _in_shown_form(case: Case, index: int, name: str) -> Iterator[Option]:
    """Yield the only value of the context in the form of the example that the schema shows."""
    view = case.view_parameter(name)
    if view is None or view.allowed:
        return
    examples = (*_EXAMPLE.findall(view.description), *view.stated_values)
    shown = set(map(outline_text, examples))
    stated = (each.text for each in stated_in(case.context or ""))
    told = {text for text in stated if outline_text(text) in shown}
    known = set(map(str, case.parameters.values()))
    if len(told) == 1 and known.isdisjoint(told):
        [value] = told
        if any(map(str.isdigit, value)) and any(map(str.isalpha, value)):
            reason = "the only value of the context in the form that the schema shows"
            trials = prior_trials("context.shown")
            yield one_edit(index, put(case, name, value), reason, trials, "context")


_DAY = re.compile(
    r"\b(?:\d{1,2}(?:st|nd|rd|th)?\.? (?:of )?[A-Z][a-z]{2,8},? \d{4}"
    r"|[A-Z][a-z]{2,8} \d{1,2}(?:st|nd|rd|th)?,? \d{4}|\d{4}-\d\d-\d\d|\d{1,2}\.\d{1,2}\.\d{4})\b"
)


def _offer_day(case: Case, index: int, name: str) -> Iterator[Option]:
    """Yield the only day of the context that the call lacks, in the schema's form."""
    view = case.view_parameter(name)
    if view is None:
        return
    forms = [each for each in stated_forms(view) if in_form("2 May 2031", each)]
    if not forms:
        return
    context = (case.context or "")[:MAX_ACCOUNT]
    told = [each.replace(" of ", " ") for each in _DAY.findall(context)]
    known = {str(value) for _, value in leaves_like(case.parameters, ())}
    days = {in_form(each, forms[0]) or each for each in told} - known
    if len(days) == 1:
        [day] = days
        reason = "the only day of the context that the call does not have"
        trials = prior_trials("context.day")
        yield one_edit(index, put(case, name, day), reason, trials, "context")


def _other_halves(case: Case, index: int, name: str) -> Iterator[Option]:
    """Yield the half of `owner/repository` that the call does not have yet."""
    mine = {value for value in case.parameters.values() if isinstance(value, str)}
    view = case.view_parameter(name)
    takes_text = not view or fits_types("", view.types)
    for stated in stated_in(case.context or ""):
        halves = re.split(r"[/:@]", stated.text)
        if stated.form == "pair" and len(halves) == 2 and takes_text:
            new = [half for half in halves if half not in mine]
            if len(new) == 1:
                edit = Add(name=name, value=new[0])
                reason = "the context of the call states it beside another value of the call"
                yield one_edit(index, edit, reason, prior_trials("context.half"), "context")


def _grade_stated(case: Case, name: str, sent: JsonValue) -> list[tuple[JsonValue, int]]:
    """Stated values that fit the parameter, best first; none of a tie at the top is better."""
    view = case.view_parameter(name)
    seen = case.observed_values(name)
    types: tuple[JsonType, ...] = tuple(seen.types) if seen else ()
    if view and view.types:
        types = view.types
    elsewhere = (value for key, value in case.parameters.items() if key != name)
    taken = {str(value).lower() for value in elsewhere}
    longest = seen.longest if seen else None
    found: dict[str, tuple[JsonValue, int]] = {}
    for stated in stated_in(case.context or ""):
        if longest is not None and len(stated.text) > _TOO_LONG * longest:
            continue
        value = _as_one_of(stated, types)
        if value is None:
            continue
        if value == sent:
            continue
        if view and view.allowed and value not in view.allowed:
            continue
        if view and isinstance(value, str) and misses_form(view, value):
            continue
        key = str(value).lower()
        grade = _grade_value(case, name, stated, taken=key in taken)
        if grade < 0:
            continue
        if key not in found or found[key][1] < grade:
            found[key] = value, grade
    ranked = sorted(found.values(), key=lambda each: -each[1])
    if not ranked:
        return []
    (best, grade), *others = ranked
    if not others or others[0][1] < grade:
        ranked[0] = best, min(_MAX_GRADE, grade + 1)
    return ranked


def _as_one_of(stated: Stated, types: tuple[JsonType, ...]) -> JsonValue:
    if stated.form == "number":
        if stated.before[-1:] and stated.before[-1] in MONTHS:
            return None  # of a date
        numeric = [kind for kind in types or ("number",) if kind in ("integer", "number")]
        as_one = cast_to_one(stated.text, numeric)
        if as_one:
            return as_one[1]
    is_text = "string" in types or (not types and stated.form != "number")
    if is_text:
        return stated.text
    return None


def _grade_value(case: Case, name: str, stated: Stated, *, taken: bool) -> int:
    """0 to 4, higher is likelier; -1 for what cannot be meant."""
    if taken:
        return -1
    view = case.view_parameter(name)
    described_by = view.described_by if view else frozenset[str]()
    seen = case.observed_values(name)
    formats = _usual_formats(seen)
    in_form = format_of(stated.text) in formats
    words = words_of(name)
    own = set(words) - WORDS["of_names"] or set(words)
    around = {word.rstrip("s") for word in (*stated.before, *stated.after)}
    near = _next_to(own, around) or not around.isdisjoint(described_by)
    if formats and not in_form and not near:
        return -1
    marked = stated.form not in ("word", "name", "number")
    is_choice = not WORDS["of_choices"].isdisjoint(words[-1:])
    if is_choice and not (near or in_form or marked):
        return -1
    if stated.form == "word":
        if stated.text.lower() in WORDS["small"]:
            return -1
        if not _next_to(own, stated.before[-1:]):
            return -1
    of_unit = False
    if stated.form == "number":
        unit = {word.rstrip("s") for word in stated.after[:1]}
        of_unit = _next_to(own, unit) or not unit.isdisjoint(described_by)
    grade = in_form + near + of_unit + marked
    if stated.form == "quoted":
        grade += 1
    if seen is not None and seen.is_refused(stated.text):
        grade -= 1
    if _is_done(case, name, stated.text):
        grade -= 2
    return max(0, grade)


def _usual_formats(seen: ParameterProfile | None) -> set[str]:
    """Return the forms that a tenth of the texts of successes had; empty when unknown."""
    counts = seen.formats if seen else {}
    least = 0.1 * sum(counts.values())
    return {form for form, count in counts.items() if count >= least}


def _is_done(case: Case, name: str, value: str) -> bool:
    """Return whether the session made this very call before, with success.

    Then it is another one now.
    """
    asked = {**case.parameters, name: value}
    for call in case.session():
        if call.tool_name != case.tool:
            continue
        had = {key: map(str, call.values.get(f"@{key}", ())) for key in asked}
        if all(str(each) in had[key] for key, each in asked.items()):
            return True
    return False


def _next_to(own: set[str], around: Iterable[str]) -> bool:
    singular = {word.rstrip("s") for word in around}
    return any(word.rstrip("s") in singular for word in own)
