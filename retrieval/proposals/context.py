"""Values that the caller's own account of its task states: for what is missing, or was refused.

The nearer a stated value fits, the likelier it is the one that was meant: it has the form that the
tool's successes have there, stands beside a word of the parameter's name, is not used elsewhere in
the call, and is the only such value. Each of these raises the grade, and the grade names the prior.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from aftercall.json_values import JsonValue
from aftercall.redaction import is_redacted
from retrieval.edits import Add, Replace
from retrieval.parameters import JsonType
from retrieval.proposals.case import Case, Option, prior
from retrieval.reading.faults import Fault
from retrieval.texts import Stated, format_of, stated_in, written_in
from retrieval.values import CastError, cast, fits, nearest, words_of

_MOST = 2
"""Stated values offered for one fault."""
_MAX_GRADE = 5
_UNCERTAIN = (1, 4)
"""Judged counts of a value of the lowest grade; each grade more counts one more for it."""
_TOO_LONG = 2
"""So many times as long as the longest of the successes' texts, a text is none of them."""
_OWN_WORDS = frozenset(("id", "name", "value", "the", "of", "a", "number", "text", "data", "type"))
"""Words of names that say nothing of which value is meant."""


_SMALL_WORDS = frozenset(
    (
        "a", "an", "and", "are", "as", "at", "by", "for", "from", "in", "into", "is", "it", "my",
        "of", "on", "or", "our", "that", "the", "their", "this", "to", "with", "your", "named",
        "called",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Candidate:
    value: JsonValue
    grade: int


def context_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """What the context states that a missing or refused parameter may have meant."""
    name = fault.parameter
    if name is None or len(fault.path) > 1 or not case.context:
        return
    sent = case.parameters.get(name)
    if name in case.parameters:
        if fault.kind in ("missing", "unexpected", "wrong_type") or is_redacted(sent):
            return
        yield from _restated(case, index, name, sent)
        if isinstance(sent, str) and written_in(case.context, sent) is not None:
            return  # the caller said this very value; another one would be another wish
    elif fault.kind != "missing":
        return
    if fault.kind == "missing":
        yield from _other_halves(case, index, name)
    role = "missing" if name not in case.parameters else "instead"
    for candidate in _candidates(case, name, sent)[:_MOST]:
        edit = (
            Add(name=name, value=candidate.value)
            if role == "missing"
            else Replace(name=name, before=sent, value=candidate.value)
        )
        right, wrong = _UNCERTAIN
        yield Option(
            (edit,),
            "the context of the call states it",
            prior(f"context.{role}.{candidate.grade}", right + candidate.grade, wrong),
            ("context",),
            covers=frozenset({index}),
        )


def _restated(case: Case, index: int, name: str, sent: JsonValue) -> Iterator[Option]:
    """The sent value as the context writes it: in other letter case, or without its slip."""
    if not isinstance(sent, str) or not sent or case.context is None:
        return
    written = written_in(case.context, sent)
    if written is not None and written != sent:
        yield _replacement(index, name, sent, written, "context.case", (20, 1))
        return
    if written is not None:
        return
    known = [stated.text for stated in stated_in(case.context) if stated.form != "number"]
    found = nearest(sent, [text for text in dict.fromkeys(known) if text != sent])
    if found and found[1] >= 0.8:
        kind = "context.same" if found[1] > 0.99 else "context.slip"
        yield _replacement(index, name, sent, found[0], kind, (12, 2))


def _replacement(
    index: int, name: str, sent: str, value: str, kind: str, judged: tuple[float, float]
) -> Option:
    return Option(
        (Replace(name=name, before=sent, value=value),),
        "the context of the call writes it so",
        prior(kind, *judged),
        ("context",),
        covers=frozenset({index}),
    )


def _candidates(case: Case, name: str, sent: JsonValue) -> list[_Candidate]:
    """Stated values that fit the parameter, best first; none of a tie at the top is better."""
    view, seen = case.parameter(name), case.seen(name)
    types = view.types if view and view.types else tuple(seen.types) if seen else ()
    taken = {str(value).lower() for key, value in case.parameters.items() if key != name}
    longest = seen.longest if seen else None
    graded: dict[str, _Candidate] = {}
    for stated in stated_in(case.context or ""):
        if longest is not None and len(stated.text) > _TOO_LONG * longest:
            continue
        value = _as_one_of(stated, types)
        if value is None or value == sent or (view and view.allowed and value not in view.allowed):
            continue
        grade = _grade(case, name, stated, taken=str(value).lower() in taken)
        key = str(value).lower()
        if grade >= 0 and (key not in graded or graded[key].grade < grade):
            graded[key] = _Candidate(value, grade)
    ranked = sorted(graded.values(), key=lambda each: -each.grade)
    if ranked and sum(each.grade == ranked[0].grade for each in ranked) == 1:
        first = ranked[0]
        ranked[0] = _Candidate(first.value, min(_MAX_GRADE, first.grade + 1))
    return ranked


def _other_halves(case: Case, index: int, name: str) -> Iterator[Option]:
    """Of pairs such as `owner/repository`, the half that the call does not have yet."""
    mine = {value for value in case.parameters.values() if isinstance(value, str)}
    view = case.parameter(name)
    for stated in stated_in(case.context or ""):
        halves = re.split(r"[/:@]", stated.text)
        if stated.form == "pair" and len(halves) == 2 and (not view or fits("", view.types)):
            known = [half in mine for half in halves]
            if sum(known) == 1:
                yield Option(
                    (Add(name=name, value=halves[known.index(False)]),),
                    "the context of the call states it beside another value of the call",
                    prior("context.half", 8, 2),
                    ("context",),
                    covers=frozenset({index}),
                )


def _as_one_of(stated: Stated, types: tuple[JsonType, ...]) -> JsonValue:
    """The stated value in the first type that it can be read as; None when it fits none."""
    if stated.form == "number":
        for kind in types or ("number",):
            if kind in ("integer", "number"):
                try:
                    return cast(stated.text, kind)
                except CastError:
                    continue
        return stated.text if "string" in types else None
    return stated.text if not types or "string" in types else None


def _grade(case: Case, name: str, stated: Stated, *, taken: bool) -> int:
    """0 to 4, higher is likelier; -1 for what cannot be meant."""
    formats = _formats_of(case, name)
    form = format_of(stated.text)
    in_form = bool(formats) and form in formats
    own = set(words_of(name)) - _OWN_WORDS or set(words_of(name))
    view, seen = case.parameter(name), case.seen(name)
    around = {word.rstrip("s") for word in (*stated.before, *stated.after)}
    beside = _next_to(own, around)
    beside = beside or bool(view and any(word in around for word in view.described_by))
    if taken or (formats and not in_form and not beside):
        return -1
    marked = stated.form not in ("word", "name", "number")
    if stated.form == "word" and (
        stated.text.lower() in _SMALL_WORDS or not _next_to(own, stated.before[-1:])
    ):
        return -1
    refused = seen is not None and seen.is_refused(stated.text)
    return max(0, in_form + beside + marked + (stated.form == "quoted") - refused)


def _next_to(own: set[str], around: Iterable[str]) -> bool:
    singular = {word.rstrip("s") for word in around}
    return any(word.rstrip("s") in singular for word in own)


def _formats_of(case: Case, name: str) -> frozenset[str]:
    """Forms that at least a tenth of the texts had in the tool's successes; empty when unknown."""
    seen = case.seen(name)
    formats = seen.formats if seen else {}
    total = sum(formats.values())
    return frozenset(form for form, count in formats.items() if count >= 0.1 * total)
