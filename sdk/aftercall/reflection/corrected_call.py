"""The corrected call: a suggestion's changes, made to what the caller really sent. Pure.

A caller that sends a corrected call takes it from here: the drivers (and so every adapter), and the
gateway before a call. The service saw a redacted copy, so `corrected_parameters` is never sent:
its changes are made to the caller's own values, and a secret that moves keeps its value. Then the
result is held against the call once more: what no change names must be the caller's, byte for byte.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, starmap

from aftercall.account_words import why_not_followed
from aftercall.json_patch import (
    JsonPatchError,
    Operation,
    apply,
    apply_in_place,
    copy_value,
    make_pointer,
    parse_pointer,
    same_json,
    value_at_pointer,
)
from aftercall.json_values import JsonObject, JsonValue, canonical_json, quote_text
from aftercall.leaves import untouched_leaves_changed
from aftercall.models.calls import Account, Change
from aftercall.secret_names import MASKED, snake_case
from aftercall.tables import gather_values

_MAX_PATH = 200
_VALUE = "value"
_MAX_MASKED = 200
"""Masked parts that are followed: each is held against each, in tens of milliseconds."""


class CorrectionError(ValueError):
    """A corrected call must not be sent; the message states why, in one sentence."""


def correct_call(
    parameters: JsonObject, changes: Sequence[Change], account: Account | None = None
) -> JsonObject:
    """Return the parameters to send instead of `parameters`, the caller's own and unmasked ones.

    Raises:
        CorrectionError: the account asks a question or leaves a value unexplained; there is no
            change; a change does not fit the call, or names a value that the call does not hold
            there; the value behind a mask is not certain; a value would change that no change
            names.
    """
    if account is not None and (refusal := why_not_followed(account)):
        raise CorrectionError(refusal)
    if not changes:
        raise CorrectionError("the suggestion names no change")
    try:
        own = _own_values(parameters, changes)
        operations = [
            Operation(change.op, change.path, value=value)
            for change, value in zip(changes, _unmasked_values(changes, own), strict=True)
        ]
        corrected = apply(parameters, operations)
        altered = untouched_leaves_changed(parameters, corrected, operations)
    except JsonPatchError as error:
        message = "the suggested change does not fit the parameters that were sent"
        raise CorrectionError(message) from error
    if altered:
        place = quote_text(altered[0], _MAX_PATH)
        raise CorrectionError(f"the suggested change would alter {place}, which it does not name")
    return corrected


def _own_values(parameters: JsonObject, changes: Sequence[Change]) -> list[JsonValue]:
    """Return the caller's own value that each change takes away; None for one that takes none.

    Looked up when it is the change's turn, since those before it move elements of lists.
    """
    document = copy_value(parameters)
    own: list[JsonValue] = []
    for change in changes:
        taken = None if change.op == "add" else value_at_pointer(document, change.path)
        if (
            change.from_ is not None
            and change.op != "add"
            and not _values_agree(change.from_, taken)
        ):
            place = quote_text(change.path, _MAX_PATH)
            raise CorrectionError(f"the call holds another value at {place} than the change names")
        own.append(taken)
        apply_in_place(document, Operation(change.op, change.path, value=change.value))
    return own


def _values_agree(said: JsonValue, own: JsonValue) -> bool:
    """Return whether a value is what the service saw, where it may have seen a mask."""
    if isinstance(said, str) and MASKED.search(said):
        return True
    if isinstance(said, dict) and isinstance(own, dict):
        if any(map(MASKED.search, said)):  # a name may be masked as well
            return len(said) == len(own)
        return said.keys() == own.keys() and all(
            _values_agree(said[name], own[name]) for name in said
        )
    if isinstance(said, list) and isinstance(own, list):
        return len(said) == len(own) and all(map(_values_agree, said, own))
    return same_json(said, own)


# Masks. The service moves a secret without knowing it: the mask in what it adds is that of a value
# that it takes away.


@dataclass(frozen=True, slots=True)
class _MaskedPart:
    """A part with a mask in it, of what a change takes away or puts in."""

    change: int
    """The position of the change."""
    inside: str
    """JSON Pointer from the change's place to the part; "" for the place itself."""
    name: str
    """The last part of its path, in snake case."""
    text: str
    """The part as the service saw it, as JSON."""
    is_leaf: bool

    def holds_part(self, other: "_MaskedPart") -> bool:
        """Return whether the other is this part, or a part of it."""
        is_inside = f"{other.inside}/".startswith(f"{self.inside}/")
        return self.change == other.change and is_inside


_Pairs = list[tuple[_MaskedPart, _MaskedPart]]
"""Each part that is put in, with the part that is taken away and that it was."""


def _unmasked_values(changes: Sequence[Change], own: Sequence[JsonValue]) -> list[JsonValue]:
    """Return the values to put in: the caller's own where the service could only see a mask.

    An object or a list that moves whole is the caller's whole. Else each mask is followed to the
    one place that it can come from; where that is not certain, none is guessed.
    """
    put_in = [change for change in changes if change.op != "remove"]
    if not any(_shows_mask(change.value) or MASKED.search(change.path) for change in put_in):
        return [change.value for change in changes]
    takers = _all_masked(
        (at, change.path, change.value)
        for at, change in enumerate(changes)
        if change.op != "remove"
    )
    givers = _all_masked(
        (at, change.path, change.from_) for at, change in enumerate(changes) if change.op != "add"
    )
    values: list[JsonObject] = [{_VALUE: copy_value(change.value)} for change in changes]
    for taker, giver in _pair_parts(takers, givers):
        value = value_at_pointer({_VALUE: own[giver.change]}, f"/{_VALUE}{giver.inside}")
        at = f"/{_VALUE}{taker.inside}"
        apply_in_place(values[taker.change], Operation("replace", at, value=value))
    for change, holder in zip(changes, values, strict=True):
        if change.op != "remove" and (_shows_mask(holder[_VALUE]) or MASKED.search(change.path)):
            raise CorrectionError(
                "which value stands behind a mask of the suggested change is not certain"
            )
    return [holder[_VALUE] for holder in values]


def _shows_mask(value: JsonValue) -> bool:
    """Return whether there is a mask in a value or in a name of it."""
    return MASKED.search(canonical_json(value)) is not None


def _all_masked(values: Iterable[tuple[int, str, JsonValue]]) -> list[_MaskedPart]:
    found = list(islice(chain.from_iterable(starmap(_masked_parts, values)), _MAX_MASKED + 1))
    if len(found) > _MAX_MASKED:
        raise CorrectionError(f"the suggested change holds more than {_MAX_MASKED} masked parts")
    return found


def _masked_parts(
    position: int, path: str, value: JsonValue, inside: str = ""
) -> Iterator[_MaskedPart]:
    """Yield the parts of a change's value that hold masks, containers first."""
    text = canonical_json(value)
    if MASKED.search(text) is None:
        return
    name = snake_case(parse_pointer(f"{path}{inside}")[-1])
    yield _MaskedPart(position, inside, name, text, isinstance(value, str))
    members: Iterable[tuple[str | int, JsonValue]] = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value)
    for key, member in members:
        yield from _masked_parts(position, path, member, f"{inside}{make_pointer([key])}")


def _same_place(leaf: _MaskedPart) -> Hashable:
    return leaf.change, leaf.inside, leaf.text


def _same_place_inside(leaf: _MaskedPart) -> Hashable:
    # A value without members states nothing by the place inside of it: then none is like another.
    if leaf.inside:
        return (leaf.inside, leaf.text)
    return leaf


def _same_name(leaf: _MaskedPart) -> Hashable:
    return leaf.name, leaf.text


def _same_text(leaf: _MaskedPart) -> Hashable:
    return leaf.text


_LIKENESSES = (_same_place, _same_place_inside, _same_name, _same_text)
"""By what a masked text that is put in is known to be one that is taken away, the surest first."""


def _pair_parts(takers: Sequence[_MaskedPart], givers: Sequence[_MaskedPart]) -> _Pairs:
    """Pair what moves whole first, then the masked texts that are left, by each likeness."""
    pairs: _Pairs = []
    waiting, free = ([part for part in parts if not part.is_leaf] for parts in (takers, givers))
    for taker, giver in _pair_alike(waiting, free, _same_text):
        if not any(one.holds_part(taker) or other.holds_part(giver) for one, other in pairs):
            pairs.append((taker, giver))
    waiting, free = ([part for part in parts if part.is_leaf] for parts in (takers, givers))
    for likeness in _LIKENESSES:
        waiting = [part for part in waiting if not any(one.holds_part(part) for one, _ in pairs)]
        free = [part for part in free if not any(one.holds_part(part) for _, one in pairs)]
        pairs += _pair_alike(waiting, free, likeness)
    return pairs


def _pair_alike(
    takers: Iterable[_MaskedPart],
    givers: Iterable[_MaskedPart],
    likeness: Callable[[_MaskedPart], Hashable],
) -> _Pairs:
    """Return the pairs that are like no other part, in the order of `takers`."""
    wanted = gather_values((likeness(part), part) for part in takers)
    offered = gather_values((likeness(part), part) for part in givers)
    return [
        (parts[0], offered[key][0])
        for key, parts in wanted.items()
        if len(parts) == 1 and len(offered.get(key, [])) == 1
    ]
