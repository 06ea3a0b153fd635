"""What an answer is worth, without executing anything.

Right is a call that is the same JSON as one of the right calls: numbers by value, `true` is not 1,
and two texts that hold JSON are the same if what they hold is.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal

import jsonschema_rs

from bench.repairs.cases import Case

Kind = Literal["right", "wrong", "left alone"]


@dataclass(frozen=True, slots=True)
class Answer:
    """A call to send instead (None: none), and whether the entry itself would send it unasked."""

    call: Any
    is_followed: bool = True


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an answer is. Where no right call exists, every changed call is wrong."""

    kind: Kind
    is_silent: bool = False
    """Whether a wrong call would be followed and taken by the tool: nobody notices."""


def judge(case: Case, answer: Answer) -> Verdict:
    """Return what the answer to a case is."""
    call = answer.call
    if call is None or _is_same(call, case.question["call"], in_texts=False):
        return Verdict("left alone")
    if any(_is_same(call, gold) for gold in case.gold):
        return Verdict("right")
    return Verdict("wrong", answer.is_followed and _takes(case.question["schema"], call))


def _takes(schema: Any, call: Any) -> bool:
    """Return whether a schema takes a call; one that is unknown or broken takes all."""
    if schema is None:
        return True
    try:
        return jsonschema_rs.validator_for(schema).is_valid(call)
    except (ValueError, jsonschema_rs.ReferencingError):
        return True


def _is_same(left: Any, right: Any, *, in_texts: bool = True) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            _is_same(left[name], right[name], in_texts=in_texts) for name in left
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(
            _is_same(*both, in_texts=in_texts) for both in zip(left, right, strict=True)
        )
    if in_texts and isinstance(left, str) and isinstance(right, str) and left != right:
        held = (_held(left), _held(right))
        return None not in held and _is_same(*held)
    return bool(left == right)


def _held(text: str) -> Any:
    """Return the object or list that a text holds as JSON, else None."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None
