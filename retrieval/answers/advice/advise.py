"""Which action helps where no change of parameters does, and why no action helps. Pure.

Of a broken contract only experience shows what helps: other parameters that made the result fit, or
the same call again where that has worked before. Whether calling again can repeat a side effect is
in 4-rules.md, Retrying.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from rapidfuzz.distance import JaroWinkler

from aftercall.change_classes import reads_only
from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import ErrorCategory, ExecutionError
from aftercall.outcomes import REFERRALS, TRANSIENT
from aftercall.redaction import is_redacted
from retrieval import read_word_table
from retrieval.answers.advice.first_calls import MAX_TOOLS, learned_first_call, stem_word
from retrieval.answers.advice.other_tools import (
    find_split,
    near_name_advice,
    split_advice,
    switch_advice,
)
from retrieval.answers.advice.waits import stated_wait_ms, transient_advice
from retrieval.answers.proposers.case import (
    Advice,
    CallContext,
    Case,
    LookFirst,
    NoAdvice,
    StatedFirst,
    quote_json,
)
from retrieval.knowledge.beta import Trials
from retrieval.knowledge.confidence import lower_bound
from retrieval.knowledge.reading.category import Refusal, is_unknown_tool, refusal_of
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.reading.reader import READ_LIMIT, ErrorReading, ends_early
from retrieval.knowledge.rewrites.edits import edit_key
from retrieval.knowledge.rows.documents import SeedEntry
from retrieval.knowledge.values.likeness import words_of
from retrieval.knowledge.values.parameters import MAX_CHARS, MAX_VALUES
from retrieval.knowledge.values.scalars import is_about_zones, read_catalogue

_STATED = Trials(9, 2)
"""Of a tool that an error names to be called first."""

_BROKE = "the result broke its contract"
# Pseudo-trials: by itself the same call gives the same result; what is learned comes on top.
_AGAIN = Trials(1, 3)
_PER_FAILURE = 3.0
"""Pseudo-wrongs of each failure of this very call after the first, as for waits."""


def contract_advice(case: Case, call_context: CallContext) -> Advice | NoAdvice:
    """Return what to do about a result that broke its contract.

    Learned repairs stand next to it.
    """
    rule = case.signature.rules.get(edit_key([])) if case.signature else None
    evidence = rule.evidence_weight() if rule else None
    if evidence is None or not (evidence.repairs or evidence.successes):
        reason = f"{_BROKE}; neither other parameters nor a second try is known to help"
        return NoAdvice(reason, yields=True)
    failures = max(call_context.repeats.weighed, call_context.attempt, 1)
    return Advice(
        "retry_unchanged",
        _AGAIN.add_trials(Trials(0, _PER_FAILURE * (failures - 1))),
        f"Here {_BROKE}; the same call, sent again, has given a fitting result before.",
        retry_after_ms=0,
        yields=True,
    )


# Pseudo-trials: how often handing over is right, when the tool states so in these words.
_ESCALATE = Trials(20, 1.5)
_REFUSED = Trials(14, 2)
_BY_CODE = 0.95
"""Confidence of a category that a code or a type gives (see `reading.category`)."""
_NO_REFUSALS = frozenset({"user_rejected", "wrong_tool_boundary", "low_utility",
                          "contract_violation"})  # fmt: skip
_ASK: dict[str, str] = {
    "funds": "there is not enough money or credit for it; ask the user how to pay, or for less",
    "quota": "the account's allowance is used up; ask the account's owner",
    "capacity": "there is not enough left of what was asked for; ask the user for another choice",
    "unavailable": "it is not offered then or there; look up what is, and let the user choose",
    "payment": "the means of payment is not known or not taken; look up those on file, and ask the "
    "user which one to use",
    "rule": "a rule of the business forbids it; ask the user for another way",
    "state": "its state does not allow it any more; ask the user how to go on",
}


def advise_on_error(
    case: Case, error: ExecutionError, call_context: CallContext
) -> Advice | NoAdvice | None:
    """Return what to do about an error that no change of parameters repairs.

    None for all other errors.
    """
    if is_cut(case, error):
        return CUT
    category = case.reading.category
    of_the_moment = category in TRANSIENT or category == "user_rejected"
    first = None if of_the_moment else learned_first_call(case)
    return first or _advise_by_words(case, error, call_context)


CUT = NoAdvice(
    "the arguments end in the middle of their JSON: the call was cut off, and what is missing is "
    "known to nobody else; send the whole call again, in smaller parts if it is cut off again"
)


def is_cut(case: Case, error: ExecutionError) -> bool:
    """Return whether the arguments were cut off.

    The error states so, or some are missing where JSON broke.

    A tool that needs none may be called without.
    """
    if not case.reading.is_cut:
        lacks = any(fault.kind == "missing" and fault.from_schema for fault in case.faults)
        return lacks and ends_early(error.message[:READ_LIMIT])
    needs_none = case.view is not None and not any(
        each.required for each in case.view.parameters.values()
    )
    return bool(case.parameters) or not needs_none


def _advise_by_words(
    case: Case, error: ExecutionError, call_context: CallContext
) -> Advice | NoAdvice | None:
    category = case.reading.category
    if category == "user_rejected":
        return Advice(
            "escalate", _ESCALATE, "The user refused this call; ask the user before going on."
        )
    if category in REFERRALS:
        return _advise_other_tool(case, error, call_context)
    if category == "contract_violation":
        return contract_advice(case, call_context)
    if is_unknown_tool(error, call_context.tool_name):
        return near_name_advice(case, call_context)
    refusal = None if category in _NO_REFUSALS else refusal_of(error.message)
    # A stated wait is the tool's own word that it passes, and so is a code such as 503, but for
    # money and allowances. A category that was read from words alone is less sure than a refusal.
    lasts = (
        refusal is not None
        and stated_wait_ms(error, call_context.now) is None
        and (refusal.kind in ("quota", "funds") or case.reading.confidence < _BY_CODE)
    )
    if category in TRANSIENT and not lasts:
        return _of_the_moment(category, case, error, call_context)
    if refusal is not None and not _states_a_repair(case):
        return _advise_on_refusal(refusal, case, call_context)
    return _turned_to(case, error, call_context)


def _turned_to(case: Case, error: ExecutionError, call_context: CallContext) -> Advice | None:
    """Return where to turn: to a tool that is named for a value, or to who may permit the call."""
    category = case.reading.category
    if call_context.stated_first is not None and category not in _NO_REFUSALS:
        return _look_up(call_context.stated_first, case)
    if category == "permission_denied":
        return Advice("escalate", _ESCALATE, permission_lesson(error))
    return None


def _of_the_moment(
    category: ErrorCategory, case: Case, error: ExecutionError, call_context: CallContext
) -> Advice:
    if call_context.look_first is None:
        return transient_advice(category, error, call_context)
    return _look_first(category, case, call_context.look_first)


_UNKNOWN: frozenset[ErrorCategory] = frozenset({"timeout", "unavailable"})
_LOST = re.compile(
    r"\btimed?[ -]?out\b|deadline exceeded|connection (?:was )?(?:reset|lost)", re.IGNORECASE
)


def is_outcome_unknown(reading: ErrorReading, error: ExecutionError) -> bool:
    """Return whether a call that writes may have had its effect, although it failed."""
    if reading.rejected_before_run or reading.category not in TRANSIENT:
        return False
    return reading.category in _UNKNOWN or _LOST.search(error.message[:READ_LIMIT]) is not None


_LOOK = Trials(12, 2)
_IDEMPOTENT = re.compile(r"idempotency.?(?:key|token|id)|client.?token", re.IGNORECASE)


def _look_first(category: ErrorCategory, case: Case, known: LookFirst) -> Advice:
    """Return the advice after an unknown outcome: never the same call again unseen."""
    tool = known.tool_name
    how = f"look first, by {quote_json(tool)}" if tool else "look first"
    lesson = (
        f"The call may have had its effect all the same ({category}); {how}, and call again only "
        "if it had none"
    )
    names = case.view.parameters if case.view is not None else ()
    if key := next((name for name in names if _IDEMPOTENT.fullmatch(name)), None):
        lesson += f", with the same `{key}`"
    return Advice("call_first" if tool else "escalate", _LOOK, f"{lesson}.", tool=tool)


def looking_tool(failed: str, names: Iterable[str]) -> str | None:
    """Return the reading tool that shows most likely what a call that writes has done.

    It is named for the same thing: `list_events` or `get_event` for `create_event`.
    """
    about = {stem_word(word) for word in words_of(failed)}
    best: tuple[int, int, str] | None = None
    for name, _ in zip(names, range(MAX_TOOLS), strict=False):
        words = {stem_word(word) for word in words_of(name)}
        shared = len(words & about)
        if name != failed and shared and reads_only(name, None):
            ranked = (-shared, len(words), name)
            best = ranked if best is None else min(best, ranked)
    return best[2] if best else None


def _advise_other_tool(
    case: Case, error: ExecutionError, call_context: CallContext
) -> Advice | NoAdvice | None:
    """Return another tool, or several for the parts of the task; the surer where both are known."""
    split = find_split(error, call_context)
    parts = split.tools if split is not None and split.names_tools else ()
    switch = switch_advice(case, error, call_context, parts=parts)
    known = [switch] if isinstance(switch, Advice) else []
    if split is not None and (split.names_tools or not known):
        known.append(split_advice(split))
    is_boundary = case.reading.category == "wrong_tool_boundary"
    if not known:
        return switch if is_boundary else None
    best = max(known, key=lambda each: lower_bound(each.trials))
    # An answer of little use may be better for other parameters; a boundary stays one.
    return best if is_boundary else replace(best, yields=True)


def _advise_on_refusal(refusal: Refusal, case: Case, call_context: CallContext) -> Advice:
    lesson, first = f"The tool says {quote_json(refusal.words)}: ", call_context.stated_first
    if refusal.kind == "precondition":
        what = f"call {quote_json(first.tool_name)}" if first else "do what it asks for"
        lesson += (
            "no parameter is wrong, something has to be done first. If the user wants it, "
            f"{what}, and then the same call again."
        )
        if first is not None:
            given = _needed_values(first, case)
            return Advice("call_first", _STATED, lesson, tool=first.tool_name, parameters=given)
    else:
        lesson += f"{_ASK[refusal.kind]}. Other parameters are the user's to decide."
    # Where the category states that no parameter is wrong, no learned change stands next to it.
    yields = case.reading.category not in TRANSIENT | {"permission_denied"}
    return Advice("escalate", _REFUSED, lesson, yields=yields)


def _look_up(first: StatedFirst, case: Case) -> Advice:
    """Return the advice to call the tool that an error, or the schema, names for a value."""
    lesson = (
        f"{first.said_by} names {quote_json(first.tool_name)}: call it first, then the same call "
        "again with what it gives."
    )
    given = _needed_values(first, case)
    return Advice(
        "call_first", _STATED, lesson, tool=first.tool_name, parameters=given, is_lookup=True
    )


def _needed_values(first: StatedFirst, case: Case) -> JsonObject | None:
    """Return what the tool needs, where the failed call has all of it."""
    wanted = sorted(first.required)
    has = case.parameters_known and wanted and first.required <= case.parameters.keys()
    return {each: case.parameters[each] for each in wanted} if has else None


_TAIL = " Another try, or other parameters, will not help."
_NO_NAMES = re.compile(
    r"an?|the|to|for|is|are|or|and|of|on|not|in|required|denied|error|this|that|missing|your|any|"
    r"was|were|has|have",
    re.IGNORECASE,
)
_READ_LACK = 1_000
_REFUSALS = read_word_table("knowledge/reading/refusals.toml")
_LACKS = [(re.compile(row["pattern"], re.IGNORECASE), row["noun"]) for row in _REFUSALS["lacks"]]
_WALLS = [
    (re.compile("|".join(row["patterns"]), re.IGNORECASE), row["lesson"])
    for row in _REFUSALS["walls"]
]
_OTHER_WALL = "The caller lacks a permission; ask the person who grants access to it."


def permission_lesson(error: ExecutionError) -> str:
    """To whom to turn, and what to ask for; words of the tool are quoted as data."""
    message = " ".join(error.message[:_READ_LACK].split())
    if found := _read_missing(error, message):
        noun, what = found
        return (
            f"The caller lacks the {noun} {quote_json(what)}; "
            "ask the person who grants access to it." + _TAIL
        )
    return next((lesson for form, lesson in _WALLS if form.search(message)), _OTHER_WALL) + _TAIL


def _read_missing(error: ExecutionError, message: str) -> tuple[str, str] | None:
    for name in _REFUSALS["details"]["names"]:
        value = error.details.get(name)
        values = value[:4] if isinstance(value, list) else [value]
        texts = [each for each in values if isinstance(each, str) and each]
        if texts:
            noun = next((n for n in ("scope", "role") if n in name.lower()), "permission")
            return noun, ", ".join(texts)
    for form, noun in _LACKS:
        for found in form.finditer(message):
            if not _NO_NAMES.fullmatch(found["what"]):
                return noun, found["what"].rstrip(".:,")
    return None


def _states_a_repair(case: Case) -> bool:
    is_live = case.view is not None and case.view.source == "schema"
    shown = [fault for fault in case.faults if fault.from_schema and is_live]
    return any(
        each.kind in ("missing", "unexpected", "wrong_type")
        or each.allowed
        or each.suggested
        or each.expected_format
        or (each.minimum, each.maximum) != (None, None)
        for each in (*case.reading.faults, *shown)
    )


LOOP = 3
"""Failures with the same error that make a loop: of the same call, or of one session's calls."""
_MOST_NEAR = 3
_MIN_LIKENESS = 0.6
"""Jaro-Winkler, 0 to 1: below it two values share little more than their length."""
_MAX_KNOWN = 1_000
_MAX_TEXT = 100
_REASONS: dict[ErrorCategory, str] = {
    "wrong_tool_boundary": "the tool says that this is not its job; other parameters do not help",
    "low_utility": "the tool answered and says that the answer is of little use; the "
    "parameters were valid",
    "conflict": "the call conflicts with what exists, and no earlier repair of this is known",
    "unknown": "the error could not be read, and no earlier repair of it is known",
}
_NOTHING = "nothing is known about this failure that would be more than a guess"
_UNSEEN = (
    "the parameters of the call are not known, so no change can be suggested; ask again with "
    f"them, of at most {MAX_VALUES:,} values and {MAX_CHARS:,} characters"
)


_OF_VALUES = frozenset({"not_found", "not_allowed", "invalid", "bad_format"})


def abstention_reason(case: Case, call_context: CallContext) -> str:
    """Why there is nothing to suggest, with what is near and the corpus's lesson, if any."""
    otherwise = _NOTHING if case.parameters_known else _UNSEEN
    parts = [_REASONS.get(case.reading.category, otherwise)]
    parts += [near] if (near := _near_sentence(case, call_context)) else []
    parts += [seed.lesson for seed in case.seeds if _is_about_a_fault(seed, case)][:1]
    return ". ".join(part.rstrip(".") for part in parts)


def _is_about_a_fault(seed: SeedEntry, case: Case) -> bool:
    at_fault = [set(words_of(fault.parameter)) for fault in case.faults if fault.parameter]
    if not at_fault or seed.catalogue is not None:
        return True
    said = {word for text in (*seed.messages, *seed.failed) for word in words_of(text)}
    return any(words <= said for words in at_fault)


def loop_note(call_context: CallContext) -> str | None:
    """Return a sentence about the same call failing again and again; None when it does not."""
    repeats = call_context.repeats
    if repeats.total >= LOOP:
        return (
            f"These exact parameters failed {repeats.total} times with this error; do not send "
            "them again."
        )
    if repeats.alike >= LOOP:
        return (
            f"This error came {repeats.alike} times in this session, with other parameters too; "
            "do not go on trying."
        )
    if call_context.attempt >= LOOP:
        return (
            f"This was attempt {call_context.attempt} of the call; do not send it again as it is."
        )
    return None


def _near_sentence(case: Case, call_context: CallContext) -> str | None:
    faults: list[Fault | None] = [each for each in case.faults if each.kind in _OF_VALUES]
    if case.reading.category == "not_found" and not case.faults:
        faults = [None]
    only = next(iter(case.parameters)) if len(case.parameters) == 1 else None
    for fault in faults:
        name = (fault.parameter if fault else None) or only
        if name in case.parameters and (near := _near_values(case, fault, name, call_context)):
            return f"near {quote_json(name)} there are {', '.join(map(quote_json, near))}"
    return None


def _near_values(
    case: Case, fault: Fault | None, name: str, call_context: CallContext
) -> list[JsonValue]:
    """Return the nearest values that are common knowledge, best first.

    None that is masked today.
    """
    value = case.parameters[name]
    if isinstance(value, dict | list | bool) or value is None or is_redacted(value):
        return []
    text = str(value).lower()[:_MAX_TEXT]
    known: dict[str, JsonValue] = {
        str(each): each
        for each in islice(_known_values(case, fault, name), _MAX_KNOWN)
        if isinstance(each, str | int | float) and not isinstance(each, bool)
        and not same_json(each, value) and not is_redacted(each)
    }  # fmt: skip
    likeness = {each: JaroWinkler.similarity(text, each.lower()[:_MAX_TEXT]) for each in known}
    near = [each for each in known if likeness[each] >= _MIN_LIKENESS]
    ranked = [known[each] for each in sorted(near, key=lambda each: (-likeness[each], each))]
    return [each for each in ranked if call_context.may_show(name, each)][:_MOST_NEAR]


def _known_values(case: Case, fault: Fault | None, name: str) -> Iterator[JsonValue]:
    if fault is not None:
        yield from fault.allowed
        if fault.suggested is not None:
            yield fault.suggested
    if view := case.view_parameter(name):
        yield from view.allowed
        yield from view.stated_values
    if seen := case.observed_values(name):
        yield from (common.value for common in seen.common_values())
    for seed in case.seeds:
        if seed.catalogue and is_about_zones(name, case.reading.signature):
            yield from read_catalogue(seed.catalogue)
