"""Doubts: what is still strange in a repaired call as a whole, however sure its parts are.

A call with several mistakes looks right once those are mended that its error tells. So each sign
that more is wrong with it, or that it was meant for another tool, takes from the confidence.
"""

import re
from collections.abc import Iterator
from itertools import islice

from aftercall.change_classes import BOUNDS, qualifiers_of
from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue
from aftercall.redaction import is_redacted
from retrieval import WORDS
from retrieval import edits as ed
from retrieval.knowledge.profile import ParameterProfile
from retrieval.likeness import (
    differ_in_digits,
    is_portion,
    name_similarity,
    named_in,
    negates,
    refers,
    relates_otherwise,
    words_of,
)
from retrieval.parameters import Path, leaves_like, place_of, unknown_inside, value_at
from retrieval.proposals.case import Case, Option
from retrieval.proposals.compose import Proposal
from retrieval.proposals.names import is_said_twice
from retrieval.proposals.slips import unnumbered
from retrieval.proposals.values import IDS
from retrieval.texts import format_of, is_number, written_in
from retrieval.values import (
    fits,
    has_odd_signs,
    is_encoded,
    is_escaped,
    is_marked,
    is_placeholder,
    may_count,
    says_nothing,
)

_DENIES = frozenset("!^~")
_ASKS = frozenset(("query", "q", "search", "title", "subject"))
_SETTINGS = frozenset(("encoding", "recursive", "mode", "force", "include", "validate"))
_A_WORD, _A_YEAR = 12, 4
"""Characters of a word and digits of a year: what has more is of the caller's own."""
_STRANGE = 0.5
"""What is left of a confidence for each thing in the repaired call that cannot be meant so."""
_ODD = 0.25
"""What is left for each value in a form that was not meant: on calls made for it a quarter, of all
worlds, was right all the same."""
_UNCONFIRMED = 0.6
"""What is left for each part of a call without a schema that nothing shows to be right."""
_OTHER_AMOUNT = 0.75
"""What is left where a write gets another amount than its caller's: of real ones few were meant."""
_SAID = frozenset(("context", "schema", "error"))
_FOUND = frozenset(("session", "profile", "similar"))
_HOW_MANY = frozenset(("all", "any", "every", "everything", "both", "none", "*"))
_SAME_NAME = 0.9
"""Likeness from which on two names are one parameter's."""
_MAX_KNOWN = 50
_MAX_TEXT = 2_000
_MAX_UNCONFIRMED = 3
_COMMAND = re.compile(r"(?:^|\s)--?[A-Za-z{<\"':@$(]|^\w+=\S")
"""Options of a command, or a name with its value: a call, and no value."""
_NAME = re.compile(r"[A-Za-z_]\w*")
_IS_NAME = re.compile(r"[\w.$@/-]+")
_EXPONENT = re.compile(r"\de[+-]?\d", re.IGNORECASE)
_LISTS_ALL = re.compile(r"validation errors? for|\[\{")
"""Of the messages of validators that list all that they find: pydantic, zod, FastAPI."""


def left_of_confidence(case: Case, proposal: Proposal) -> float:
    """The share of a proposal's confidence, in (0, 1], that the doubts about its call leave."""
    edits = [(edit, option) for option in proposal.options for edit in option.edits]
    odd = sum(_odd_values(case, proposal.parameters))
    relates = (
        isinstance(e, ed.Rename)
        and relates_otherwise(e.name, e.to)
        and not (negates(e.name, e.to) and isinstance(case.parameters.get(e.name), bool))
        for e, _ in edits
    )
    strange = (
        _left_open(case, proposal)
        + _is_another_call(case, proposal, edits)
        + _says_twice(case, proposal.parameters)
        + _loses_in_shape(case, proposal)
        + _loses_in_name(case, proposal)
        + 2 * any(relates)
        + any(_says_otherwise(case, edit) for edit, _ in edits)
        + any(_is_another_choice(case, edit) for edit, _ in edits)
        + any(_counts(case, edit) for edit, _ in edits)
        + any(_stands_for(edit) for edit, option in edits if _SAID.isdisjoint(option.sources))
        + any(_is_another(edit) for edit, option in edits if _FOUND.issuperset(option.sources))
    )
    share = _STRANGE**strange * _ODD**odd * _UNCONFIRMED ** unconfirmed(case, proposal)
    if case.writes and _changes_amount(case, proposal):
        share *= _OTHER_AMOUNT
    return share


def _left_open(case: Case, proposal: Proposal) -> int:
    """How many faults that the error states at a place a proposal leaves as they were."""
    covered = {index for option in proposal.options for index in option.covers}
    return sum(
        index not in covered
        and bool(fault.path)
        and not fault.from_schema
        and (fault.kind == "missing" if proposal.reshaped else fault.kind != "invalid")
        and same_json(
            value_at(case.parameters, fault.path), value_at(proposal.parameters, fault.path)
        )
        for index, fault in enumerate(case.faults)
    )


def _is_another_call(case: Case, proposal: Proposal, edits: list[tuple[ed.Edit, Option]]) -> bool:
    """Whether more of what was sent is left out than kept, or others' values stand in its place."""
    sent = (proposal.reshaped or case).parameters
    left_out = sum(
        isinstance(edit, ed.Remove) and value_at(sent, edit.path) not in (None, "", False, [], {})
        for edit, _ in edits
    )
    filled = any(
        isinstance(edit, ed.Add) and not {"schema", "error"} & set(option.sources)
        for edit, option in edits
    )
    kept, known = len(proposal.parameters), case.view.parameters if case.view else None
    lacks = known is None or not known.keys() <= case.parameters.keys()
    return left_out > 0 and (filled or left_out > max(1, kept) or (kept == 0 and lacks))


def _loses_in_name(case: Case, proposal: Proposal) -> bool:
    options = proposal.options[1:] if proposal.reshaped else proposal.options
    about = proposal.reshaped or case
    edits = [edit for option in proposal.options for edit in option.edits]
    return any(isinstance(edit, ed.Rename) and "=" in edit.name for edit in edits) or any(
        _loses(about, edit) for option in options for edit in option.edits
    )


def _loses(case: Case, edit: ed.Edit) -> bool:
    """Whether what an edit takes away says something, though no value does.

    A name that is no name (`city=Rome`) says more than which one is meant, the name of a part
    (`extension`) that its value belongs to another one, a neutral one (`value`) that it is what the
    call is about, and the exponent of an id that it is cut.
    """
    sent = value_at(case.parameters, edit.path)
    if isinstance(edit, ed.Rename):
        is_empty = edit.name in case.parameters and not edit.inside and says_nothing(sent)
        return is_empty or not _IS_NAME.fullmatch(edit.name)
    if isinstance(edit, ed.Remove):
        last = words_of(edit.name)[-1:]
        is_part = not (WORDS["parts"] | WORDS["neutral"]).isdisjoint(last) and not says_nothing(
            sent
        )
        is_said = not edit.inside and (
            _contradicts(case, edit, sent) or _wishes(case, edit.name, sent)
        )
        return is_part or is_said or not _IS_NAME.fullmatch(str(edit.path[-1]))
    is_id = not IDS.isdisjoint(words_of(edit.name))
    return isinstance(edit, ed.Cast) and is_id and _EXPONENT.search(str(sent)) is not None


def _contradicts(case: Case, edit: ed.Remove, value: JsonValue) -> bool:
    """Whether another value stands under another spelling of the name: which one is meant?"""
    return any(
        name != edit.name
        and not same_json(value, held)
        and name_similarity(edit.name, name) >= _SAME_NAME
        for name, held in islice(case.parameters.items(), _MAX_KNOWN)
    )


def _wishes(case: Case, name: str, value: JsonValue) -> bool:
    """Whether a parameter that the tool lacks says something of its own, as when or whose."""
    words = words_of(name)
    is_remark = not WORDS["remarks"].isdisjoint(words) or value is False or says_nothing(value)
    if is_remark or is_said_twice(case, name):
        return False
    text = value if isinstance(value, str) else ""
    specific = " " in text or len(text) > _A_WORD or sum(map(str.isdigit, text)) > _A_YEAR
    return specific or bool(qualifiers_of(name) - BOUNDS - _SETTINGS)


def _loses_in_shape(case: Case, proposal: Proposal) -> bool:
    """Whether another shape has a place for some of the call's plain values, and not for all."""
    if proposal.reshaped is None:
        return False
    kept = [str(value) for _, value in leaves_like(proposal.reshaped.parameters, ())]
    plain = {
        str(value)
        for value in case.parameters.values()
        if isinstance(value, str | int | float) and not (says_nothing(value) or value is False)
    }
    held = {text for text in plain if any(each and (text in each or each in text) for each in kept)}
    return 0 < len(held) < len(plain)


def _says_twice(case: Case, parameters: JsonObject) -> bool:
    """Whether a text is that of two parameters, one of them new: from Rome to Rome is no trip."""
    before = [value for value in case.parameters.values() if isinstance(value, str)]
    after = [value for value in parameters.values() if isinstance(value, str) and value]
    renamed = case.parameters.keys() != parameters.keys()
    return any(after.count(value) > max(1, before.count(value)) for value in after) or (
        renamed and any(before.count(value) > 1 and " " in value for value in before)
    )


def _stands_for(edit: ed.Edit) -> bool:
    """Whether a value is put in for words such as `latest`: which one is meant nobody said."""
    before = edit.before if isinstance(edit, ed.Replace) else None
    return isinstance(before, str) and refers(before, edit.name)


def _counts(case: Case, edit: ed.Edit) -> bool:
    """Whether what is put into a list says how many: a small number, or a word such as `all`."""
    to_list = (isinstance(edit, ed.Cast) and edit.to == "array") or (
        isinstance(edit, ed.Replace) and isinstance(edit.value, list)
    )
    sent = value_at(case.parameters, edit.path)
    return to_list and (may_count(sent) or str(sent).strip().lower() in _HOW_MANY)


def _is_another(edit: ed.Edit) -> bool:
    """Whether one thing gives way to another: `10116/#W37` is not `#W98`, `!main` not `main`."""
    before, after = (edit.before, edit.value) if isinstance(edit, ed.Replace) else (None, None)
    if not (isinstance(before, str) and isinstance(after, str)):
        return False
    if before[:1] in _DENIES and after[:1] != before[:1]:
        return True
    if after in before or after == unnumbered(before):
        return False
    numbered = all(any(map(str.isdigit, text)) for text in (before, after))
    return numbered and differ_in_digits(before, after)


def _says_otherwise(case: Case, edit: ed.Edit) -> bool:
    """Whether a value that the context states gives way to another one of the context."""
    sent = value_at(case.parameters, edit.path) if isinstance(edit, ed.FromContext) else None
    return isinstance(sent, str) and written_in(case.context or "", sent) is not None


def _is_another_choice(case: Case, edit: ed.Edit) -> bool:
    """Whether the context states a listed value, and not the one that is put in."""
    view = case.parameter(edit.name) if isinstance(edit, ed.Replace) else None
    told = [each for each in (view.allowed if view else ()) if isinstance(each, str)]
    said = {each for each in told if written_in(case.context or "", each) is not None}
    return isinstance(edit, ed.Replace) and bool(said) and edit.value not in said


def unconfirmed(case: Case, proposal: Proposal) -> int:
    """Parts of the repaired call that neither schema nor successes nor error show to be right.

    Many servers say the first fault only. So a name that nobody ever used, or a value of a type
    that none had, may be the next one; where nothing is known of a tool, any other name may.
    """
    about, told = proposal.reshaped or case, case.reading
    edits = [edit for option in proposal.options for edit in option.edits]
    names_change = any(
        isinstance(edit, ed.Rename | ed.Flatten | ed.Nest | ed.Remove) for edit in edits
    )
    names_all = any(fault.kind == "unexpected" for fault in told.faults)
    if names_all and _LISTS_ALL.search(told.signature):
        return 0
    if about.view is not None and about.view.source == "schema":
        schema, empty = about.schema or {}, _empty_left(about, proposal.parameters)
        outside = len(about.view.unknown(proposal.parameters))
        inside = len(unknown_inside(schema, proposal.parameters))
        left = inside if schema.get("additionalProperties") else outside + inside
        return empty + min(_MAX_UNCONFIRMED, left)
    if not about.knows_tool and not names_change:
        repaired = any(option.repairs for option in proposal.options)
        tells = any(fault.kind != "invalid" for fault in told.faults)
        casts = (
            any(isinstance(edit, ed.Cast | ed.Unwrap) for edit in edits)
            and len(proposal.parameters) > 1
        )
        return int((casts or not tells) and not repaired)
    of_shape = not about.knows_tool and proposal.reshaped is not None  # nobody saw its values there
    said = {fault.parameter for fault in told.faults if fault.kind == "missing"}
    said |= {fault.suggested for fault in told.faults}
    unknown = (
        name
        for name, value in proposal.parameters.items()
        if name not in said and not is_redacted(value)
        and not ((seen := about.seen(name)) and seen.successes and fits(value, tuple(seen.types)))
    )  # fmt: skip
    return of_shape + len(list(islice(unknown, _MAX_UNCONFIRMED)))


def _empty_left(case: Case, parameters: JsonObject) -> bool:
    """Whether an optional text says nothing, and none of the tool's successes had such a one."""
    return any(
        isinstance(value, str)
        and says_nothing(value)
        and (view := case.parameter(name)) is not None
        and not (view.required or view.states(value))
        and not ((seen := case.seen(name)) and seen.formats.get(format_of(value), 0))
        for name, value in parameters.items()
    )


def _odd_values(case: Case, parameters: JsonObject) -> Iterator[bool]:
    """For each text of a call, whether it is a placeholder, or still in quotes, or JSON text.

    Or a listed value in another spelling, or a command that was put into another place. What the
    schema lists, or the tool's successes had in such a form, is not odd.
    """
    for path, value in leaves_like(parameters, ()):
        if not isinstance(value, str) or not 0 < len(value) <= _MAX_TEXT:
            continue
        name = str(path[0])
        view, seen = case.parameter(name), case.seen(name)
        if view is not None and view.states(value):
            continue
        words = words_of(value)
        listed = view.stated_values if view is not None else ()
        form = format_of(value)
        is_usual = seen is not None and seen.formats.get(form, 0) > 0
        is_new = not same_json(value_at(case.parameters, path), value)
        names = {word for step in path if isinstance(step, str) for word in words_of(step)}
        is_free = not WORDS["free_text"].isdisjoint(names)
        is_json = form == "json-text" and not (view and "json" in view.described_by)
        yield bool(
            is_placeholder(value)
            or (is_new and (refers(value, name) or _is_place(case, path, value)))
            or (is_marked(value) and not is_new)
            or (value.isupper() and words[: len(words_of(name))] == words_of(name) != words)
            or ((is_json or (not is_free and _is_structure(value))) and not is_usual)
            or (not is_free and _is_noted(names, seen, value))
            or (is_free and is_escaped(value))
            or (is_new and (is_encoded(value) or ("\n" in value and not _ASKS.isdisjoint(names))))
            or (is_new and (value == case.tool or (not is_free and _COMMAND.search(value))))
            or (is_new and not is_free and _names_parameters(case, value))
            or (len(listed) > 1 and words != () and words in map(words_of, listed))
            or (len(listed) > 1 and named_in(value, listed) is not None)
            or _is_spelt_otherwise(case, path, value)
        )


def _is_spelt_otherwise(case: Case, path: Path, value: str) -> bool:
    """Whether an item of a list is one that the tool's successes had in another spelling."""
    seen = case.profile and case.profile.at(place_of(path)) if isinstance(path[-1], int) else None
    known = [str(each.value) for each in seen.common_values()] if seen else []
    return value not in known and words_of(value) in map(words_of, known)


def _is_place(case: Case, path: Path, value: str) -> bool:
    """Whether a number became the text of a choice, of which it is the place in some list."""
    name, seen = str(path[0]), case.seen(str(path[0]))
    was_number = isinstance(value_at(case.parameters, path), int) and value.isdecimal()
    is_choice = not WORDS["of_choices"].isdisjoint(words_of(name)[-1:])
    other = bool(seen and seen.formats and not seen.formats.get(format_of(value), 0))
    return was_number and (is_choice or other)


def _names_parameters(case: Case, text: str) -> bool:
    """Whether a text names parameters of the tool: a call in a notation that nobody read."""
    known = case.view.parameters if case.view is not None else {}
    named = known.keys() & set(_NAME.findall(text))
    return len(named) > 1 or any(len(words_of(each)) > 1 for each in named)


def _is_noted(names: set[str], seen: ParameterProfile | None, value: str) -> bool:
    """Whether signs in a value are those of a notation, and no name or success says they may be."""
    if not WORDS["never_of_context"].isdisjoint(names) or not has_odd_signs(value):
        return False
    known = islice(seen.values if seen else (), _MAX_KNOWN)
    return not any(has_odd_signs(text[1:-1]) for text in known if text[:1] == '"')


def _is_structure(text: str) -> bool:
    bare = text.strip().rstrip(",")
    return bare[:1] in "[({" and bare[-1:] in "])}" and not set("'\":").isdisjoint(bare)


def _changes_amount(case: Case, proposal: Proposal) -> bool:
    for name in proposal.touched & case.parameters.keys() & proposal.parameters.keys():
        mine, new = (
            sorted(value for _, value in leaves_like({"": call[name]}, ()) if is_number(value))
            for call in (case.parameters, proposal.parameters)
        )
        if len(mine) == len(new) and mine != new and not is_portion(name):
            return True
    return False
