"""Other values: for wrong types, bounds, refused values and totals; usual, near and stated ones."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from aftercall.json_patch import same_json
from aftercall.json_values import JsonValue, canonical_json
from aftercall.models import EvidenceSource
from aftercall.redaction import is_redacted
from retrieval import WORDS
from retrieval.answers.proposers.case import (
    Case,
    Option,
    one_edit,
    prior_trials,
    put,
    value_sources_of,
)
from retrieval.answers.proposers.faults import misses_form, stated_forms
from retrieval.answers.proposers.session import session_texts
from retrieval.answers.proposers.slips import rival_options, slip_options
from retrieval.answers.proposers.subjects import is_setting, is_subject_value
from retrieval.answers.proposers.types import AS_SHOWN, ID_WITHIN, left_out_options
from retrieval.knowledge.beta import Trials
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.rewrites.edit_effects import try_edits
from retrieval.knowledge.rewrites.edits import (
    Balance,
    FromError,
    Remove,
    Rename,
    Replace,
    number_of,
)
from retrieval.knowledge.values.forms import (
    id_within,
    in_form,
    meets_form,
    same_moment,
    told_example,
    told_forms,
    wants_clock,
)
from retrieval.knowledge.values.likeness import (
    Nearness,
    find_abbreviated,
    most_similar_value,
    named_in,
    nearest_value,
    synonym_of,
    words_of,
)
from retrieval.knowledge.values.measures import codes_of, span_forms
from retrieval.knowledge.values.parameters import Path, general_path, leaves_like
from retrieval.knowledge.values.scalars import (
    fits_types,
    is_about_zones,
    is_placeholder,
    plain_value,
    read_catalogue,
    strip_marks,
    write_number,
)
from retrieval.knowledge.values.texts import is_number

# ------------------------------------------------------------------ usual values
# By the share of the successes that had the value, one success more counted for it and one against
# it, so that few successes make no high share.
_SHARES = [
    (0.9, prior_trials("usual.nearly-always")),
    (0.75, prior_trials("usual.mostly")),
    (0.5, prior_trials("usual.often")),
]
_SHARES_INSTEAD = [
    (0.9, prior_trials("usual.instead.nearly-always")),
    (0.75, prior_trials("usual.instead.mostly")),
    (0.5, prior_trials("usual.instead.often")),
]
_ID_IN_WRITE = Trials(0.5, 8)
"""Whom or what a write is about is no one else's to say, however often others stated it."""
_OF_NO_LIST = Trials(0.5, 8)
"""A judgement: what is like none of the listed values does not show which one is meant."""
_SAID_ELSEWHERE = prior_trials("usual.said-elsewhere")
"""The call has the value in another place: from Rome to Rome is no journey."""
MOST = 2
"""Usual values, and values of the context, that are offered for one fault."""


def usual_values(case: Case, index: int, name: str) -> Iterator[Option]:
    """Yield the values that at least half of the successes had, when they are common knowledge.

    For a parameter that is missing, or instead of a refused value.
    """
    seen = case.observed_values(name)
    view = case.view_parameter(name)
    if seen is None:
        return
    if not seen.successes:
        return
    sent = case.parameters.get(name)
    usual = seen.usual_format()
    names_a_thing = not IDS.isdisjoint(words_of(name)) or (
        usual is not None and usual[0] in ("uuid", "email", "mention")
    )
    others = [other for key, other in case.parameters.items() if key != name]
    for common in seen.common_values()[:MOST]:
        value = common.value
        share = (common.weight + 1) / (seen.success_weight() + 2)
        shares = _SHARES if sent is None else _SHARES_INSTEAD
        trials = next((trials for least, trials in shares if share >= least), None)
        unfit = view is not None and not fits_types(value, view.types)
        if trials is None:
            continue
        if unfit:
            continue
        if name in case.parameters and same_json(value, sent):
            continue
        if is_subject_value(name, value) and not is_setting(name, view, seen):
            continue
        if value not in (True, False, None) and any(same_json(value, each) for each in others):
            trials = _SAID_ELSEWHERE
        if case.writes and names_a_thing:
            trials = _ID_IN_WRITE
        reason = f"{common.count} of {seen.successes} successes have this value"
        trials = _of_profile(case, trials)
        yield one_edit(index, put(case, name, value), reason, trials, "profile", common.count)


IDS = frozenset(("id", "ids", "uuid", "account", "recipient", "receiver", "to", "user"))


def _of_profile(case: Case, trials: Trials) -> Trials:
    if case.profile_is_current:
        return trials
    return trials.under_old_schema()


# ------------------------------------------------------------------ refused values
_LEVELS: dict[Nearness, str] = {
    "same": "same",
    "last": "slip",
    "slip": "slip",
    "slips": "near",
    "start": "part",
    "cut": "part",
}
"""Names of priors by nearness: equal up to case, misspelt, twice so, a part of it."""
_NEAR_REASONS: dict[EvidenceSource, str] = {
    "error": "the error lists it",
    "schema": "the schema states it",
    "profile": "other sessions used it with success",
    "seed": "it is a well-known value",
    "session": "the session has it",
}
SYNONYM = prior_trials("snap.synonym")
_LIKE = prior_trials("snap.synonym.like")
_NAMED = prior_trials("snap.named")  # "State.OPEN" -> "open"
_NAMED_BESIDE = Trials(3, 3)
"""A judgement: `created:asc` states more than `created`."""
_SHORT = 6
_LONG = 10
"""Characters from which on one such letter is a slip of the pen: Austin is no misspelt Boston."""
_MAX_KNOWN = 2_000
_LAST = prior_trials("snap.seed.last")
"""A judgement: the only value of a list that everyone knows whose last part is what was sent."""
_SAID = prior_trials("snap.said")
_REWRITTEN = prior_trials("format.asked")
_OF_NO_ZONE = Trials(7, 3)
"""A judgement: of a time without a zone, which many tools take, and strict ones do not."""
_WITH_ZONE = re.compile(
    r"with (?:an? )?(?:offset|time ?zone)|rfc3339|Z07:00|[+-]hh:?mm|XXX", re.IGNORECASE
)
_IN_UTC = re.compile(r"\b(?:UTC|GMT|Zulu)\b")
_SPAN = re.compile(r"\d+[smhd]")
_LOCAL = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+")
_UNMARKED = prior_trials("format.unmarked")
_PLAINER = prior_trials("format.plainer")
_NEAR_STEP = Trials(2, 3)
"""A judgement: a price or a time that is no multiple may mean the one or the other."""
_TAGGED = prior_trials("shape.tagged")
_THE_ONLY_ONE = prior_trials("values.only_listed")
_NOT_KNOWN = frozenset({"not_found", "invalid"})


def refused_value_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Near values of the closed list, or of what is known to exist; the same in another form."""
    if fault.rival is not None or fault.excludes:
        yield from rival_options(case, index, fault)
        return
    name = _refused_parameter(case, fault)
    if name is None:
        return
    if is_redacted(value := case.parameters[name]):
        return
    yield from slip_options(case, index, name, fault)
    yield from _piece_options(case, index, name, fault)
    yield from _as_multiple(case, index, name, fault)
    yield from _as_tag(case, index, name, fault)
    if fault.suggested and isinstance(value, str) and fault.suggested != value:
        right = _named_part(value, fault.suggested, fault.value_text)
        if right is not None:
            yield one_edit(index, put(case, name, right), "the error names it", _SAID, "error")
    yield from left_out_options(case, index, name)
    yield from _in_form(case, index, name, fault)
    if isinstance(value, str) and is_placeholder(value):
        return  # what it stands for is no caller's guess
    for source, known in _known_values(case, name, fault):
        yield from _near_options(case, index, name, known, source)
    if len(fault.allowed) == 1 and not fault.from_schema and not isinstance(value, dict | list):
        reason = "the only one that the error lists"
        yield one_edit(index, put(case, name, fault.allowed[0]), reason, _THE_ONLY_ONE, "error")
    if fault.kind != "not_found" and (view := case.view_parameter(name)):
        # Of an open list the refused value may be another thing, and no sign of the usual one.
        stated = (*view.allowed, *view.stated_values)
        for option in usual_values(case, index, name):
            if any(isinstance(edit, Replace) and edit.value in stated for edit in option.edits):
                yield option if value in stated else replace(option, trials=_OF_NO_LIST)


def _piece_options(case: Case, index: int, name: str, fault: Fault) -> Iterator[Option]:
    """Yield what a word of a text should be, such as a flag's value in a command.

    The rest is kept.
    """
    text = case.parameters[name]
    piece = fault.value_text
    if not isinstance(text, str):
        return
    if not piece:
        return
    if piece == text.strip():
        return
    word = re.compile(rf"(?<![\w.-]){re.escape(piece)}(?![\w-])")
    view = case.view_parameter(name)
    source: EvidenceSource = "error" if fault.allowed else "schema"
    known = fault.allowed or re.findall(r"[A-Za-z_]\w+", view.description if view else "")
    inner = replace(case, parameters={name: piece}, view=None, schema=None, profile=None)
    for option in _near_options(inner, index, name, known, source) if word.search(text) else ():
        for edit in option.edits:
            if isinstance(edit, Replace):
                made = str(edit.value).join(word.split(text))
                yield replace(option, edits=(Replace(name=name, before=text, value=made),))


def _as_multiple(case: Case, index: int, name: str, fault: Fault) -> Iterator[Option]:
    """Yield the nearest multiple of the stated step."""
    value = case.parameters[name]
    step = fault.multiple_of
    if step is None:
        return
    if step <= 0:
        return
    if not is_number(value):
        return
    near = round(round(value / step + 1e-9) * step, 9)
    made = int(near) if near == int(near) else near
    if made != value:
        edit = Replace(name=name, before=value, value=made)
        yield one_edit(
            index, edit, f"the nearest multiple of {write_number(step)}", _NEAR_STEP, "error"
        )


def _as_tag(case: Case, index: int, name: str, fault: Fault) -> Iterator[Option]:
    """`{"in_minutes": 10}` for `{"type": "in_minutes", "value": 10}`, where names are listed."""
    tag = case.parameters[name]
    others = [each for key, each in case.parameters.items() if key != name]
    if fault.value_text != name:
        return
    if tag not in fault.allowed:
        return
    if len(others) != 1:
        return
    [rest] = [key for key in case.parameters if key != name]
    edits = (Rename(name=rest, to=str(tag)), Remove(name=name))
    reason = f"the error lists `{tag}` as a name, and not `{name}`"
    yield Option(edits, reason, _TAGGED, ("error",), covers=frozenset({index}))


def _named_part(text: str, right: str, wrong: str | None) -> str | None:
    """Return what an error names in its place: the whole of a value, or a word of a statement.

    The `wrong` word is the one that the error quotes; else the one that is most like the right one.
    """
    if wrong is not None and wrong != text.strip():
        bare = right if "." in wrong else right.rpartition(".")[2]
        made, count = re.subn(rf"(?<![\w.]){re.escape(wrong)}(?![\w.])", lambda _: bare, text)
        if count:
            return made
    words = re.findall(r"[\w.]+", text[:_MAX_KNOWN])
    if len(words) <= len(re.findall(r"[\w.]+", right)) + 1:
        return right
    bare = right.rpartition(".")[2]  # `accounts.username` of a hint is `username` in a statement
    near = nearest_value(bare, list(dict.fromkeys(words)))
    right = bare if near else right
    near = near or nearest_value(right, list(dict.fromkeys(words)))
    if near is None:
        return None
    return re.sub(rf"(?<![\w.]){re.escape(near[0])}(?![\w.])", lambda _: right, text)


def _in_form(case: Case, index: int, name: str, fault: Fault) -> Iterator[Option]:
    """Yield the text in the stated form, or without the marks around it."""
    value = case.parameters[name]
    view = case.view_parameter(name)
    if not isinstance(value, str):
        return
    told = told_forms(case.reading.signature)
    said = list(told)
    vague = fault.from_schema or fault.expected_format == "date-time"
    if fault.expected_format and not (said and vague):
        said.insert(0, fault.expected_format)
    # Exact words of the error are surer than the schema's, such as `ISO 8601`.
    by_schema = stated_forms(view) if view and told in ((), ("date-time",)) else []
    if view and view.stated_values and all(map(_SPAN.fullmatch, view.stated_values)):
        by_schema.append(f"^{_SPAN.pattern}$")  # as the examples are: `5s`, `2m`
    forms = dict.fromkeys([*said, *by_schema])
    found = {
        form: written
        for form in forms
        if (fault.kind != "not_found" or meets_form(value, form) is False)
        and (written := in_form(value, form)) is not None
        and not (view and misses_form(view, written))
    }
    # Of several forms one that states all that there is.
    for form, written in sorted(found.items(), key=lambda each: not same_moment(value, each[1])):
        source: EvidenceSource = "error" if form in said and not fault.from_schema else "schema"
        is_local = _LOCAL.fullmatch(written) or (
            written.endswith("Z") and not same_moment(strip_marks(value), written)
        )
        reason = f"the same in the form {form} that the {source} asks for"
        if is_local and _WITH_ZONE.search(f"{view.description if view else ''} {said}"):
            if not written.endswith("Z") and _IN_UTC.search(case.context or ""):
                reason = "the context says that it is UTC"
                yield one_edit(index, put(case, name, f"{written}Z"), reason, _REWRITTEN, "context")
            return
        trials = _OF_NO_ZONE if is_local else _REWRITTEN
        yield one_edit(index, put(case, name, written), reason, trials, source)
        return
    if not fault.from_schema and any(map(wants_clock, said)) and meets_form(value, "date"):
        reason = "the beginning of that day"
        yield one_edit(index, put(case, name, f"{value}T00:00:00Z"), reason, _OF_NO_ZONE, "error")
        return
    shown = told_example(value, view.description) if view and not forms else None
    if shown is not None:
        yield one_edit(index, put(case, name, shown), "as the example is", AS_SHOWN, "schema")
    bare = plain_value(value)
    if not IDS.isdisjoint(words_of(name)) and (found_id := id_within(value)):
        reason = "the id that the address holds"
        yield one_edit(index, put(case, name, found_id), reason, ID_WITHIN, "parameters")
    if fault.kind in _NOT_KNOWN:
        bare = bare.removeprefix("./").rstrip("/") or bare
    is_free = not WORDS["free_text"].isdisjoint(words_of(name))
    is_code = " " in value and not WORDS["never_of_context"].isdisjoint(words_of(name))
    is_free = (is_free or is_code) and value.lstrip()[:3] != "```"
    if not forms and bare != value and not (is_placeholder(bare) or is_free):
        trials = _UNMARKED if bare == strip_marks(value) else _PLAINER
        reason = "the same without the marks around it"
        yield one_edit(index, put(case, name, bare), reason, trials, "parameters")


def _refused_parameter(case: Case, fault: Fault) -> str | None:
    has = case.view.parameters if case.view and case.view.source == "schema" else {}
    if fault.parameter in case.parameters:
        return fault.parameter
    if fault.parameter is not None and (fault.parameter in has or fault.kind != "bad_format"):
        return None
    if fault.kind not in ("not_allowed", "bad_format", "not_found"):
        return None
    if len(case.parameters) != 1:
        return None
    # The only value there is; but a query in which one name is wrong is not that name.
    [(name, value)] = case.parameters.items()
    plain = not isinstance(value, dict | list)
    if plain and fault.value_text in (None, str(value)):
        return name
    return None


def _known_values(
    case: Case, name: str, fault: Fault
) -> Iterator[tuple[EvidenceSource, Sequence[JsonValue]]]:
    if fault.allowed:
        yield ("schema" if fault.from_schema else "error"), fault.allowed
    view = case.view_parameter(name)
    if view and (view.allowed or view.stated_values) and case.knows_tool:
        yield "schema", view.allowed or view.stated_values
    seen = case.observed_values(name)
    if seen:
        yield "profile", [common.value for common in seen.common_values()]
    listed = view is not None and len(view.stated_values) > 1
    if fault.kind in _NOT_KNOWN and not listed and not _is_name_for_id(case, name):
        yield "session", session_texts(case)
    for seed in case.seeds:
        if seed.catalogue and is_about_zones(name, case.reading.signature):
            yield "seed", read_catalogue(seed.catalogue)


def _is_name_for_id(case: Case, name: str) -> bool:
    """Return whether a thing's name stands where its id is wanted.

    Another spelling is no id either.
    """
    sent = case.parameters.get(name)
    if not isinstance(sent, str):
        return False
    if WORDS["of_ids"].isdisjoint(words_of(name)[-1:]):
        return False
    words = words_of(sent)
    for call in case.session():
        for record in call.records:
            for key, value in record.fields.items():
                is_label = not WORDS["of_labels"].isdisjoint(words_of(key)[-1:])
                if is_label and isinstance(value, str) and words_of(value) == words:
                    return True
    return False


def _near_options(
    case: Case, index: int, name: str, known: Sequence[JsonValue], source: EvidenceSource
) -> Iterator[Option]:
    value = case.parameters[name]
    allowed = [item for item in known[:_MAX_KNOWN] if not same_json(item, value)]
    texts = {str(item): item for item in allowed if isinstance(item, str | int | float)}
    if value is None or isinstance(value, dict | list) or not texts:
        return
    said = set(words_of(str(value)[:_MAX_KNOWN]))
    inside = [words for each in texts if (words := {*words_of(each)}) and words <= said]
    if value not in known and sum(not any(one < two for two in inside) for one in inside) > 1:
        return  # `medium-high` is neither
    is_list = len(texts) > 1 or _lists_all(case, name, source)  # one quoted word is none
    if isinstance(value, str) and source in ("error", "schema") and is_list:
        same = synonym_of(strip_marks(value), list(texts))
        if same:
            reason = f"the listed value that means {'' if same[1] else 'nearly '}the same"
            trials = SYNONYM if same[1] else _LIKE
            yield one_edit(index, put(case, name, texts[same[0]]), reason, trials, source)
        elif code := find_abbreviated(strip_marks(value), list(texts)):
            reason = "the only listed code whose letters it has in their order"
            yield one_edit(index, put(case, name, texts[code]), reason, _LIKE, source)
        elif value not in known and (named := named_in(value, list(texts))):
            about = {*words_of(name), *words_of(case.tool), *words_of(named)}
            trials = _NAMED if about.issuperset(words_of(value)) else _NAMED_BESIDE
            reason = "the only listed value that the text names"
            yield one_edit(index, put(case, name, texts[named]), reason, trials, source)
    bare = strip_marks(value) if isinstance(value, str) else str(value)
    coded = {each for each in (*codes_of(bare), *span_forms(bare)) if each in texts}
    if not coded and source in ("error", "schema"):
        coded = {each for each, rest in _without_start(list(texts)) if rest == words_of(bare)}
    if len(coded) == 1:
        reason = f"what the list has for it; {_NEAR_REASONS[source]}"
        yield one_edit(index, put(case, name, texts[coded.pop()]), reason, SYNONYM, source)
    elif (found := nearest_value(bare, list(texts))) and (
        found[1] not in ("start", "cut") or _lists_all(case, name, source)
    ):
        near = texts[found[0]]
        seen = case.observed_values(name)
        counted = seen.values.get(canonical_json(near)) if seen else None
        trials = _near_trials(case, source, found[1], len(str(value)))
        reason = f"the nearest known value; {_NEAR_REASONS[source]}"
        count = counted.count if counted else 0
        yield one_edit(index, put(case, name, near), reason, trials, source, count)
    elif source in ("error", "schema") and (like := most_similar_value(bare, list(texts))):
        reason = f"the likest of all; {_NEAR_REASONS[source]}"
        yield one_edit(index, put(case, name, texts[like]), reason, _LIKE, source)


def _lists_all(case: Case, name: str, source: EvidenceSource) -> bool:
    """Return whether known values are all that there are, and not words of a description."""
    view = case.view_parameter(name)
    return source != "schema" or (view is not None and bool(view.allowed))


def _without_start(listed: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    """Listed values with their words but those that all begin with: `HIGH` of `SEVERITY_HIGH`."""
    words = [words_of(each) for each in listed]
    start = 0
    while words[1:] and all(len(of) > start + 1 for of in words):
        if len({of[start] for of in words}) > 1:
            break
        start += 1
    if start:
        return [(each, of[start:]) for each, of in zip(listed, words, strict=True)]
    return []


def _near_trials(case: Case, source: EvidenceSource, nearness: Nearness, length: int) -> Trials:
    level = _LEVELS[nearness]
    if level == "near" and length < _SHORT:
        level = "part"  # two letters of five make another word
    if source in ("error", "schema"):  # they list all there is
        return prior_trials(f"snap.{level}")
    if source == "seed" and nearness == "last":
        return _LAST
    # No closed list: what is meant may be another thing of a like name.
    if nearness == "slip" and length >= _LONG:
        level = "long-slip"
    if level == "slip":
        # A judgement: no benchmark here has the names of a thousand people.
        return _of_profile(case, Trials(3, 3))
    return _of_profile(case, prior_trials(f"snap.open.{level}"))


# ------------------------------------------------------------------ stated values and totals
_MOST_LEAVES = 3
"""Numbers of a sum that are offered to take the difference, the last first."""


def stated_value_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Yield the stated value, or one number of a sum moved to the total."""
    if fault.stated is None:
        return
    if is_redacted(fault.stated):
        return
    leaves = leaves_like(case.parameters, ())
    places = [at for at, value in leaves if str(value) == fault.value_text]
    if any(at == fault.path for at, _ in leaves):
        places = [fault.path]
    if len(places) == 1:
        edit = FromError(name="").at_path(places[0])
        if try_edits(case.parameters, [edit], value_sources_of(case)) is None:
            return
        trials = prior_trials("stated.write") if case.writes else prior_trials("stated.value")
        source: EvidenceSource = "schema" if fault.from_schema else "error"
        yield one_edit(index, edit, f"the {source} states the right value", trials, source)
        return
    for rank, place in enumerate(_find_summands(case, fault)):
        # Which of several amounts takes the difference is the caller's to say: never a sure guess.
        trials = prior_trials("stated.sum.other") if rank else prior_trials("stated.sum.last")
        reason = "the error states what the sum must be"
        yield one_edit(index, Balance(name="").at_path(place), reason, trials, "error")


def _find_summands(case: Case, fault: Fault) -> list[Path]:
    """Return the numbers of an array that add up to the wrong total, the last first."""
    total = number_of(fault.value_text)
    groups: dict[Path, list[tuple[Path, float]]] = {}
    for at, value in leaves_like(case.parameters, ()):
        number = None if isinstance(value, str) else number_of(value)
        if number is not None and any(isinstance(step, int) for step in at):
            groups.setdefault(general_path(at), []).append((at, number))
    summed = [
        group
        for group in groups.values()
        if total is not None and len(group) > 1 and sum(number for _, number in group) == total
    ]
    if len(summed) != 1:
        return []
    places = [at for at, _ in summed[0]]
    last = tuple(-1 if isinstance(step, int) else step for step in places[-1])
    return [last, *reversed(places[:-1])][:_MOST_LEAVES]
