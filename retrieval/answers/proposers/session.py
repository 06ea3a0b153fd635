"""What the session itself knows: values of its earlier results and arguments, by learned links."""

import re
from collections.abc import Iterator
from itertools import islice

from aftercall.json_patch import same_json
from aftercall.json_values import JsonValue
from aftercall.redaction import is_redacted
from retrieval.answers.proposers.case import Case, Option, one_edit, prior_trials, put
from retrieval.knowledge.beta import Trials
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.values.likeness import nearest_value, words_of
from retrieval.knowledge.values.parameters import written_place
from retrieval.knowledge.values.scalars import cast_to_one, fits_types

_MOST = 3
_SAYS_A_KIND = 4
_NEAR = prior_trials("snap.session")
_PRIOR = Trials(0.5, 1)
"""Of a link before it was ever used: that a value was there and was sent states little."""


def session_options(
    case: Case, index: int, fault: Fault, *, alone: bool = True
) -> Iterator[Option]:
    """Yield the session's values that a parameter takes by its links, likeliest first.

    Of a source with one value that one; of one with several the one that was nearly written. Where
    it is not `alone` in knowing something, a value that is like the one that was sent.
    """
    name = fault.parameter
    sent = case.parameters.get(name) if name is not None else None
    if name is None or case.links is None or is_redacted(sent) or isinstance(sent, dict | list):
        return
    view = case.view_parameter(name)
    types = view.types if view else ()
    found: dict[str, tuple[JsonValue, str, Trials]] = {}
    for source, values, link in case.links.list_candidates(
        written_place((name,)), case.session(), tool=case.tool
    ):
        value = _choose_value(values, sent)
        right = link.right
        wrong = link.wrong
        if len(values) > 1:
            right = link.among
            wrong = link.missed
        if value is None or right <= wrong:
            continue
        as_one = (None, value) if fits_types(value, types) else cast_to_one(value, types)
        if as_one is None or same_json(typed := as_one[1], sent):
            continue
        trials = _PRIOR.add_trials(Trials(right, wrong))
        # What the caller stated is near something that is known, or other than what it stated
        # before.
        needs_likeness = not alone or " @" in source
        if isinstance(sent, str) and needs_likeness:
            kind = _id_kind(sent)
            of_a_kind = kind != "" and kind == _id_kind(str(typed))
            if not of_a_kind and nearest_value(sent, [str(typed)]) is None:
                continue
        known = found.get(str(typed))
        if known is None or trials.mean > known[2].mean:
            found[str(typed)] = typed, source, trials
    near = _nearly_sent_before(case, name, sent)
    if near is not None and str(near[0]) not in found:
        found[str(near[0])] = (*near, _NEAR)
    ranked = sorted(found.values(), key=lambda each: -each[2].mean)
    for value, source, trials in ranked[:_MOST]:
        reason = f"the session has it from {source}, where `{name}` mostly comes from"
        yield one_edit(index, put(case, name, value), reason, trials, "session")


def _nearly_sent_before(case: Case, name: str, sent: JsonValue) -> tuple[str, str] | None:
    """Return the session's value under this name that was nearly written."""
    if not isinstance(sent, str):
        return None
    wanted = words_of(name)
    known = {}
    for call in case.session():
        for place, values in call.values.items():
            if words_of(place.rpartition(".")[2]) != wanted:
                continue
            for each in values:
                if isinstance(each, str) and each != sent:
                    known[each] = f"{call.tool_name} {place}"
    near = nearest_value(sent, list(known))
    if near is None:
        return None
    if near[1] in ("start", "cut"):
        return None
    return (near[0], known[near[0]])


_MAX_TEXTS = 2_000
_MAX_LENGTH = 200


def session_texts(case: Case) -> list[JsonValue]:
    """Return the short texts of the session's earlier calls and results, each once."""
    values = (value for call in case.session() for each in call.values.values() for value in each)
    texts = (value for value in values if isinstance(value, str) and len(value) <= _MAX_LENGTH)
    return list(dict.fromkeys(islice(texts, _MAX_TEXTS)))


def _choose_value(values: list[JsonValue], sent: JsonValue) -> JsonValue:
    if len(values) == 1:
        return values[0]
    if not isinstance(sent, str):
        return None
    near = nearest_value(sent, [str(each) for each in values])
    if near is not None:
        return near[0]
    # Of several ids the only one of the same kind: `credit_card_7334` and `credit_card_9074831`.
    kind = _id_kind(sent)
    like = [each for each in values if kind and isinstance(each, str) and _id_kind(each) == kind]
    if len(like) == 1:
        return like[0]
    return None


def _id_kind(text: str) -> str:
    """Return what an id states of its kind: its words without the digits.

    Empty where it states nothing.
    """
    kind = re.sub(r"\d+", "0", text)
    if len(kind) > _SAYS_A_KIND and kind != text:
        return kind
    return ""
