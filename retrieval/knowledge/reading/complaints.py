"""What the complaints of a text state by the sentences of validators, at the places that it gives.

Where a complaint has no such sentence, the phrases of any tool are asked.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from retrieval.knowledge.reading.faults import DIALECTS, Fault, read_text
from retrieval.knowledge.reading.unwrap import Complaint, complaints_of
from retrieval.knowledge.values.parameters import Path


def _of_complaint(complaint: Complaint) -> list[Fault]:
    """Return the faults that the forms of dialects see in a complaint, at its place."""
    ways = [(complaint.text, complaint.at), (complaint.whole, ())]
    for text, at in dict.fromkeys(ways):
        rest = text
        found = []
        for match, fault in DIALECTS.match_text(text):
            rest = rest.replace(match, " ")
            keeps = complaint.is_weak and fault.path
            found.append(fault if keeps else put_at(at, fault))
        found = [fault for fault in found if fault.path or fault.kind != "missing" or at]
        if found:
            found += [] if at else _clear_in(rest)
            return [replace(fault, position=complaint.position) for fault in found]
    return []


def _clear_in(text: str) -> list[Fault]:
    """Return what phrases say clearly, and the parameter concerned."""
    return [
        fault
        for fault in read_text(text)
        if fault.path and fault.kind not in ("invalid", "not_found")
    ]


_OF_NAMES = frozenset({"missing", "unexpected"})


def put_at(at: Path, fault: Fault) -> Fault:
    """Return the fault at a place, or at the name below it that it is about."""
    if not at:
        return fault
    names = fault.kind in ("missing", "unexpected") and bool(fault.path)
    below = fault.path if names and fault.path[-1] != at[-1] else ()
    return replace(fault, path=(*at, *below))


def read_complaints(text: str) -> list[Fault]:
    """Return the faults of a text by the forms of dialects; none where it has none of them."""
    complaints = complaints_of(text)
    found = [(complaint, _of_complaint(complaint)) for complaint in complaints]
    is_known = any(faults for _, faults in found)
    if not is_known and not any(each.at and not each.is_weak for each in complaints):
        return []
    return [fault for each, faults in found for fault in faults or _match_otherwise(each)]


def _match_otherwise(complaint: Complaint) -> list[Fault]:
    """Return what phrases find in a complaint next to what a dialect's form reads."""
    if complaint.at and not complaint.is_weak:
        return read_at(complaint.at, complaint.text)
    return list(read_text(complaint.whole))


_REQUIRED = re.compile(r"\b(?:is|are|field)? ?required\b|\bcan't be blank\b", re.IGNORECASE)


def read_at(place: Path, text: str) -> list[Fault]:
    """Return what a text states of the value at a place, which it may name or not."""
    formed = [put_at(place, fault) for _, fault in DIALECTS.match_text(text)]
    if formed:
        return formed
    clear = [
        put_at(place, fault)
        if fault.kind == "unexpected" or (place and isinstance(place[-1], int))
        else replace(fault, path=place)
        for fault in read_text(f"{place[-1]}: {text}" if place else text)
        if fault.kind not in ("invalid", "not_found") or fault.suggested or fault.multiple_of
    ]
    return clear or [Fault("missing" if _REQUIRED.search(text) else "invalid", place)]


def of_alternatives(faults: Sequence[Fault]) -> list[Fault]:
    """Return the faults without those that are of another alternative than the one that is meant.

    What names an alternative, such as `type`, must be one of several constants; with only one
    constant stated, that alternative is not the one whose name the value has.
    """
    unions = [fault.path for fault in faults if fault.of_union]
    kept = [
        each
        for each in faults
        if each.of_union or each.kind != "invalid" or each.path not in unions
    ]
    for place in unions:
        below = [each for each in kept if each.path[: len(place)] == place and not each.of_union]
        tags = [each for each in below if each.kind == "not_allowed" and len(each.allowed) == 1]
        rest = [each for each in below if each not in tags and each.kind not in _OF_NAMES]
        if not tags:
            continue
        kept = [each for each in kept if each not in below]
        if len(tags) > 1 and len({each.path for each in tags}) == 1:
            values = tuple(value for each in tags for value in each.allowed)
            kept.append(replace(tags[0], allowed=values, stated=None))
        else:
            kept += rest
    return kept
