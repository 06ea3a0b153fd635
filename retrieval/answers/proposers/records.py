"""Things that earlier results of the session describe: their ids, their names and their kinds.

A record is an object of a result with its plain values: `{"id": 7, "name": "docs"}` in `channels`
is a channel. A value of the session is proposed for a parameter only where its kind is the
parameter's: the id of who made a page is no page's id. Among several equal ones none is taken.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from aftercall.json_patch import same_json
from aftercall.json_values import JsonValue
from aftercall.redaction import is_redacted
from retrieval import WORDS
from retrieval.answers.proposers.case import Case, Option, one_edit, prior_trials, put
from retrieval.knowledge.beta import Trials
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.rewrites.edits import Edit, Replace
from retrieval.knowledge.session.session_calls import EarlierCall, Record, nouns_of, singular_words
from retrieval.knowledge.values.forms import meets_form
from retrieval.knowledge.values.likeness import nearest_value, words_of
from retrieval.knowledge.values.parameters import Path, leaves_like, value_at
from retrieval.knowledge.values.scalars import cast_to_one, fits_types, is_placeholder

_CATEGORIES = frozenset(("not_found", "invalid_parameters", "unknown", "execution"))
_LONGEST = 200
_SHORTEST = 4
_MOST_WORDS = 5
_BEGUN = 8
"""Letters of a value from which on the only longer one that begins so is meant."""
_ME = frozenset(("me", "self", "myself", "current_user", "current-user"))
_KINDS = frozenset(("not_found", "invalid", "not_allowed", "bad_format", "missing", "wrong_type"))
_MAX_RECORDS = 300
_ID_WORDS = WORDS["of_ids"]
_SELF = re.compile(
    r"(?:get_?)?(?:me|myself|whoami|viewer|self)|\w*(?:current|authenticated|my)_?"
    r"(?:user|account|profile|login)|auth_?test",
    re.IGNORECASE,
)
_NAMED = prior_trials("record.named")
"""The record that the sent value names."""
_NEAR = prior_trials("record.near")
"""A value of the kind that was nearly written."""
_ONLY = prior_trials("record.only")
"""The only one of its kind that the session has seen."""
_OWN = prior_trials("record.own")
"""What the tool states of who is calling."""
_FROM = "the session has it"


def session_records(session: Sequence[EarlierCall]) -> list[Record]:
    """Return the records of a session's results, the latest call's first."""
    found = (record for call in reversed(session) for record in call.records)
    return list(islice(found, _MAX_RECORDS))


# ------------------------------------------------------------------ what a parameter wants
@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a parameter holds: a thing of a kind, by its id or by its name."""

    words: tuple[str, ...]
    kind: frozenset[str]
    is_id: bool

    def takes_field(self, name: str) -> bool:
        """Return whether a record's field holds what the parameter wants."""
        words = words_of(name)
        if words == self.words:
            return True
        last = words[-1:]
        rest = singular_words(words[:-1])
        if not (rest <= self.kind):
            return False
        known = _ID_WORDS if self.is_id else WORDS["of_labels"]
        return bool(last) and last[0] in known


def _read_wanted(case: Case, name: str, fault: Fault) -> _Wanted:
    words = words_of(name)
    ends = words[-1:] and words[-1] in _ID_WORDS
    kind = words[:-1] if ends else words
    view = case.view_parameter(name)
    said = fault.expected_format or ""
    if view:
        said = f"{view.description} {said}"
    said = said.lower()
    is_id = bool(ends) or bool(re.search(r"\b(?:uuid|guid|id|gid|identifier)\b", said))
    of_tool = nouns_of(case.tool) if not kind else frozenset()
    return _Wanted(words, singular_words(kind) or of_tool, is_id)


def record_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Yield what the session's records hold for a parameter that is missing or refused."""
    name = fault.parameter
    if name is None:
        return
    if fault.kind not in _KINDS:
        return
    if (fault.kind == "missing") == (name in case.parameters):
        return
    sent = case.parameters.get(name)
    if isinstance(sent, dict | list | bool):
        return
    if is_redacted(sent):
        return
    session = case.session()
    records = session_records(session)
    wanted = _read_wanted(case, name, fault)
    labels = _collect_labels(session, records, wanted, str(sent)) if session else []
    for value, reason, trials in _find_values(wanted, sent, records, labels=labels):
        typed = _cast_value(case, name, fault, value)
        if typed is not None and not same_json(typed, sent):
            yield one_edit(index, put(case, name, typed), reason, trials, "session")
            return


def _collect_labels(
    session: Sequence[EarlierCall], records: Sequence[Record], wanted: _Wanted, sent: str
) -> list[str]:
    """Return the names that a session's calls had; without an id, those of its things."""
    found = _sent_as(session, "_".join(wanted.words))
    if not wanted.is_id:
        if _IS_NAME.search(sent):
            found += [word for call in session for word in call.words if _IS_NAME.search(word)]
        found += [str(v) for e in records for k, v in e.fields.items() if _is_label(k)]
    return found


_IS_NAME = re.compile(r"\w[_-]\w")
_NO_FAULT = Fault("invalid")
_MOST_LEAVES = 40


def unlocated_record_options(case: Case) -> Iterator[Option]:
    """Yield what records hold for the one value that may be wrong, where no fault has a place.

    An id that is a thing's name, the caller where it was meant, or a name that a record nearly has.
    """
    for fault in case.faults:
        if not fault.path:
            continue
        if fault.kind == "missing" or value_at(case.parameters, fault.path) is not None:
            return
    may_be_wrong = case.reading.category in _CATEGORIES
    session = case.session()
    records = session_records(session)
    known = {str(value) for record in records for value in record.fields.values()}
    found: list[Option] = []
    leaves = leaves_like(case.parameters, ()) if session else ()
    for path, sent in islice(leaves, _MOST_LEAVES):
        names = [step for step in path if isinstance(step, str)]
        if not isinstance(sent, str) or is_redacted(sent) or len(sent) > _LONGEST or not names:
            continue
        wanted = _read_wanted(case, names[-1], _NO_FAULT)
        if sent in known and not (wanted.is_id and "id" not in sent.lower()):
            continue
        if not (may_be_wrong or _stands_for(names[-1], sent)) or _is_said_freely(names[-1], sent):
            continue
        labels = _collect_labels(session, records, wanted, sent)
        for value, reason, trials in _find_values(wanted, sent, records, labels=labels):
            typed = value
            if len(path) == 1:
                typed = _cast_value(case, names[-1], _NO_FAULT, value)
            if typed is not None and not same_json(typed, sent):
                edit = _put_value(case, path, sent, typed)
                found.append(Option((edit,), reason, trials, ("session",)))
                break
    if len(found) == 1:
        yield found[0]


def _is_said_freely(name: str, text: str) -> bool:
    """Return whether a text is its caller's own words: a sentence, a command, a query."""
    free = WORDS["free_text"] | WORDS["never_of_context"] | {"description", "explanation", "reason"}
    return len(text.split()) > _MOST_WORDS or not free.isdisjoint(words_of(name))


def _put_value(case: Case, path: Path, sent: JsonValue, value: JsonValue) -> Edit:
    if len(path) == 1:
        return put(case, str(path[0]), value)
    return Replace(name="", before=sent, value=value).at_path(path)


def _find_values(
    wanted: _Wanted, sent: JsonValue, records: Sequence[Record], *, labels: Sequence[str] = ()
) -> Iterator[tuple[JsonValue, str, Trials]]:
    """Yield what records hold for a value, likeliest first; `labels` are names of any kind."""
    text = "" if sent is None else str(sent)
    name = "_".join(wanted.words)
    if text:
        is_caller = text.lower().lstrip("@") in WORDS["of_callers"] or _stands_for(name, text)
    else:
        is_caller = not WORDS["of_callers"].isdisjoint(wanted.words)
    if is_caller:
        mine = (_own_value(wanted, each) for each in records if _SELF.fullmatch(each.tool_name))
        value = next((each for each in mine if each is not None), None)
        if value is not None:
            yield value, "it is what the tool says of the caller", _OWN
    text = "" if _stands_for(name, text) else text
    of_kind = [each for each in records if wanted.kind and wanted.kind <= each.kind]
    if not text:
        value = _only_value(wanted, of_kind, text, needs_kind=True)
        if value is None and len(wanted.words) > 1:
            exact = [each for each in records if wanted.words in map(words_of, each.fields)]
            value = _only_value(wanted, exact, text, needs_kind=True)
        if value is not None:
            yield value, "it is the only one of its kind in the session", _ONLY
        return
    named = [each for each in records if _is_named(each, text)]
    likely = [each for each in named if wanted.kind & each.kind]
    value = _only_value(wanted, likely or named, text, needs_kind=False)
    if value is not None:
        yield value, f"{_FROM} for {text!r}", _NAMED
    held = []
    for each in of_kind:
        held += [str(value) for key, value in each.fields.items() if wanted.takes_field(key)]
    near = _nearest_label(text, held)
    if near:
        yield near, f"{_FROM}, and it is nearly what was sent", _NEAR
    if len(text) >= _SHORTEST and (near := _nearest_label(text, labels)):
        yield near, f"{_FROM}, and it is nearly what was sent", _NEAR


def _stands_for(name: str, text: str) -> bool:
    """Return whether a text is no value, but stands for one: `HOTEL_ID`, `your_user_id`, `me`."""
    words = words_of(text)
    if words == words_of(name) and text != name.lower():
        return True
    return is_placeholder(text) or words[:1] == ("your",) or text.lower().lstrip("@") in _ME


def _sent_as(session: Sequence[EarlierCall], name: str) -> list[str]:
    """Return the values that a session's calls had, or gave, under a name."""
    wanted = words_of(name)
    sent: list[str] = []
    for call in session:
        for place, values in call.values.items():
            if words_of(place.rpartition(".")[2]) == wanted:
                sent += map(str, values)
    return sent


def _nearest_label(text: str, held: Sequence[str]) -> str | None:
    near = nearest_value(text, list(dict.fromkeys(held)))
    if near is None:
        return None
    if near[0] == text:
        return None
    is_begun = near[1] == "start" and len(text) >= _BEGUN and " " not in text
    if is_begun or near[1] in ("same", "slip", "slips"):
        return near[0]
    return None


def _is_label(name: str) -> bool:
    words = words_of(name)
    return bool(words) and words[-1] in WORDS["of_labels"]


def _is_named(record: Record, text: str) -> bool:
    low = text.lower().lstrip("#@")
    words = words_of(text)
    labels = WORDS["of_labels"] | _ID_WORDS
    for name, value in record.fields.items():
        if labels.isdisjoint(words_of(name)[-1:]):
            continue
        if str(value).lower().lstrip("#@") == low:
            return True
        if words and words_of(str(value)) == words:
            return True
    return False


def _only_value(
    wanted: _Wanted, records: Sequence[Record], text: str, *, needs_kind: bool
) -> JsonValue:
    """Return the one value that records hold for what is wanted; None where they hold several."""
    found: dict[str, JsonValue] = {}
    for record in records:
        held = [name for name in record.fields if wanted.takes_field(name)]
        if needs_kind and wanted.kind.isdisjoint(record.kind):
            held = [name for name in held if words_of(name) == wanted.words]
        if not held and not needs_kind and wanted.is_id:
            held = [name for name in record.fields if words_of(name)[-1:] == ("id",)][:1]
        held = [name for name in held if str(record.fields[name]) != text]
        exact = [name for name in held if words_of(name) == wanted.words]
        for name in (exact or held)[:1]:
            value = record.fields[name]
            found.setdefault(str(value), value)
    if len(found) == 1:
        return next(iter(found.values()))
    return None


def _own_value(wanted: _Wanted, record: Record) -> JsonValue:
    keys = ("id", "user_id", "uid") if wanted.is_id else ("login", "username", "name", "id")
    by_words = {words_of(name): value for name, value in record.fields.items()}
    for words in (wanted.words, *map(words_of, keys)):
        if words in by_words:
            return by_words[words]
    return None


def _cast_value(case: Case, name: str, fault: Fault, value: JsonValue) -> JsonValue:
    view = case.view_parameter(name)
    types = view.types if view and view.types else fault.expected_types
    if types and not fits_types(value, types):
        cast = cast_to_one(value, types)
        value = None if cast is None else cast[1]
    form = (view.form if view else None) or fault.expected_format
    if isinstance(value, str) and form and meets_form(value, form.lower()) is False:
        return None
    allowed = view.allowed if view else ()
    if allowed and value not in allowed:
        return None
    return value
