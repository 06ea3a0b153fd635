"""Matching: the account of a repair, from the two calls and what may explain them.

Both trees are compared leaf by leaf. Anything that is new in the repaired call is paired with what
is gone from the failed one: first the same bytes, then what a recoding without a loss explains, the
largest values first; then containers and texts are opened. Anything that is left may be a part, a
join, or a name of the call, or someone states it.
"""

from collections.abc import Callable, Iterator, Sequence

from aftercall.change_classes import BOUNDS, alters_qualifier, qualifiers_of
from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue, canonical_json
from retrieval import WORDS
from retrieval.knowledge.calls.account import CallAccount, Dropped, Grounds, Origined, StatedValue
from retrieval.knowledge.calls.keys import KEY_WORDS, REASONS, Keys
from retrieval.knowledge.calls.recodings import Place, Recoding, recoding_between
from retrieval.knowledge.calls.tree import (
    Piece,
    children_of,
    last_key,
    leaves_of,
    members_at,
    read_out_of,
)
from retrieval.knowledge.values.likeness import name_similarity, negates_name, words_of
from retrieval.knowledge.values.parameters import Path
from retrieval.knowledge.values.scalars import says_nothing

_MOST_PAIRED = 40
"""Values of each side that are compared with one another; real repairs change a few."""
_SHOWN_BY_NAME = 0.7
"""Likeness from which on two names of one object say the same."""
_TYPES = ("string", "text", "integer", "int", "number", "float", "boolean", "bool")
_NO_PART = (bool, type(None), list, dict)


def account_of(before: JsonObject, after: JsonObject, grounds: Grounds) -> CallAccount:
    """Return the account of a repair.

    Args:
        before: parameters of the failed call.
        after: parameters of the repaired call.
        grounds: what error, schema, task and session say.
    """
    matching = _Matching(before, after, grounds)
    values = matching.list_origins()
    dropped = matching.list_dropped()
    bounds = frozenset(
        each.path for each in values if matching.kinds.get(each.path) in ("bound", "default")
    )
    return CallAccount(
        kept=matching.kept,
        values=values,
        dropped=dropped,
        alters_qualifier=alters_qualifier(before, after, but=BOUNDS),
        lost_keys=tuple(_lost_keys(values, after)),
        bounds=bounds,
    )


class _Matching:
    """Pairs the values of two calls: what stayed, what moved, what was written otherwise."""

    def __init__(self, before: JsonObject, after: JsonObject, grounds: Grounds) -> None:
        self._after, self._grounds = after, grounds
        self._keys = Keys(grounds, after)
        self.kept = 0
        self.kinds: dict[Path, str] = {}
        self._gone: list[Piece] = []
        self._new: list[Piece] = []
        self._found: list[Origined] = []
        self._compare_pieces(Piece((), before), Piece((), after))
        self._match_pieces()

    def list_origins(self) -> tuple[Origined, ...]:
        """Return what is new in the repaired call, each with its origin."""
        return tuple(self._found)

    def list_dropped(self) -> tuple[Dropped, ...]:
        """Return what is gone from the failed call."""
        found = []
        for piece in self._gone:
            for leaf in leaves_of(piece.value, piece.path):
                path = leaf.path if piece.read is None else piece.read
                is_nothing = says_nothing(leaf.value) or self._is_said_twice(leaf)
                is_nothing = is_nothing or self._names_a_type(leaf)
                is_nothing = is_nothing or (leaf.value is True and self._is_value(leaf.path[-1]))
                # Without what was to limit it, a call may be about everything.
                is_nothing = is_nothing and not any(map(qualifiers_of, map(str, leaf.path)))
                found.append(Dropped(path, leaf.value, self._why_dropped(path), is_nothing))
        return tuple(found)

    def _why_dropped(self, path: Path) -> str:
        keys = [step for step in path if isinstance(step, str)]
        known = self._grounds.places(path[:-1])
        if keys and known and keys[-1] not in known:
            return f"the tool has no `{keys[-1]}`"
        return "left out"

    def _is_said_twice(self, leaf: Piece) -> bool:
        """Return whether the same object holds the value under a name that means the same."""
        name = str(leaf.path[-1])
        if leaf.value in (None, True, False):
            return False
        return any(
            same_json(held, leaf.value) and name_similarity(name, other) >= _SHOWN_BY_NAME
            for other, held in members_at(self._after, leaf.path[:-1]).items()
        )

    def _names_a_type(self, leaf: Piece) -> bool:
        """Return whether a member only named the type of the value next to it."""
        beside = any(
            each.source and each.source[:-1] == leaf.path[:-1] and each.key == "level"
            for each in self._found
        )
        return beside and leaf.path[-1] == "type" and leaf.value in _TYPES

    def _is_value(self, key: str | int) -> bool:
        """Return whether a name of the call became a value of the repaired one."""
        return any(each.origin == "recoded" and each.value == key for each in self._found)

    def _compare_pieces(self, before: Piece, after: Piece) -> None:
        one = before.value
        two = after.value
        if isinstance(one, dict) and isinstance(two, dict) and (one or two):
            for key, held in one.items():
                piece = Piece((*before.path, key), held)
                if key in two:
                    self._compare_pieces(piece, Piece(piece.path, two[key]))
                else:
                    self._gone.append(piece)
            self._new += [piece for piece in children_of(after) if piece.path[-1] not in one]
        elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two) > 0:
            for left, right in zip(children_of(before), children_of(after), strict=True):
                self._compare_pieces(left, right)
        elif same_json(one, two):
            self.kept += sum(1 for _ in leaves_of(one))
        else:
            self._explain_change(before, after)

    def _explain_change(self, before: Piece, after: Piece) -> None:
        """Explain a value that changed in its place, or leave both sides to be paired."""
        recoding = recoding_between(before.value, after.value, self._describe_place(after.path))
        statement = None
        if recoding is None or recoding.loses:
            statement = self._grounds.state(after.path, after.value, before.value)
        if statement is not None and statement.kind == "bound":
            self._add_stated(after, statement, before)
        elif recoding is not None:
            self._found.append(
                Origined(
                    after.path,
                    "recoded",
                    recoding.why,
                    after.value,
                    before.path,
                    before.value,
                    loses=recoding.loses,
                )
            )
        else:
            self._gone.append(before)
            self._new.append(after)

    def _add_stated(self, piece: Piece, statement: StatedValue, former: Piece | None) -> None:
        self.kinds[piece.path] = statement.kind
        source, value = (None, None) if former is None else (former.path, former.value)
        self._found.append(
            Origined(piece.path, statement.origin, statement.why, piece.value, source, value)
        )

    def _match_pieces(self) -> None:
        """Pair what is new with what is gone, the largest first, and explain the rest."""
        while self._new:
            self._pair_pieces(self._match_exact)
            self._pair_pieces(self._match_recoded)
            if not self._open_containers():
                break
        self._pair_pieces(self._recoded_with_loss)
        self._take_parts()
        self._join_parts()
        for piece in self._new:
            if self._is_former_key(piece):
                why = "the name under which the call has it"
                self._found.append(Origined(piece.path, "recoded", why, piece.value))
                continue
            former = next((gone for gone in self._gone if gone.path == piece.path), None)
            held = None if former is None else former.value
            statement = self._grounds.state(piece.path, piece.value, held)
            if statement is None:
                statement = StatedValue("unexplained", "nobody states it")
            self._add_stated(piece, statement, former)
            if former is not None:  # it is replaced, and not left out
                self._gone.remove(former)

    def _take_parts(self) -> None:
        """Explain several new values by one text that holds them, in its order."""
        for gone in [piece for piece in self._gone if isinstance(piece.value, str)]:
            text, at, parts = str(gone.value), 0, []
            for new in self._new[:_MOST_PAIRED]:
                found = -1 if isinstance(new.value, _NO_PART) else text.find(str(new.value), at)
                if found >= 0 and str(new.value):
                    parts.append(new)
                    at = found + len(str(new.value))
            if len(parts) > 1:
                why = "a part of the text"
                loses = "that they were one text"
                self._gone.remove(gone)
                for new in parts:
                    self._new.remove(new)
                    self._found.append(
                        Origined(
                            new.path, "recoded", why, new.value, gone.path, text, "level", loses
                        )
                    )

    def _join_parts(self) -> None:
        """Explain a new text by several values that stand in it, with marks between them."""
        for new in [piece for piece in self._new if isinstance(piece.value, str)]:
            rest, parts = str(new.value), []
            for gone in self._gone[:_MOST_PAIRED]:
                text = "" if isinstance(gone.value, _NO_PART) else str(gone.value)
                if text and text in rest:
                    rest = rest.replace(text, "\0", 1)
                    parts.append(gone)
            if len(parts) > 1 and not any(map(str.isalnum, rest)):
                self._new.remove(new)
                self._gone = [piece for piece in self._gone if piece not in parts]
                why = "several values of the call in one text"
                around = parts[0].path[:-1]
                held: list[JsonValue] = [part.value for part in parts]
                self._found.append(
                    Origined(new.path, "recoded", why, new.value, around, held, "level")
                )

    def _is_former_key(self, piece: Piece) -> bool:
        """Return whether a value is a name that the call was sent with and has lost."""
        if not isinstance(piece.value, str):
            return False
        is_listed = any(same_json(piece.value, each) for each in self._grounds.listed(piece.path))
        is_in_list = any(isinstance(step, int) for step in piece.path)
        names = {step for gone in self._gone for step in gone.path}
        names |= {step for each in self._found for step in each.source or ()}
        return (is_listed or is_in_list) and piece.value in names

    def _pair_pieces(self, explain: Callable[[Piece, Piece], Origined | None]) -> None:
        pairs = []
        for new in self._new[:_MOST_PAIRED]:
            for gone in self._gone[:_MOST_PAIRED]:
                found = explain(gone, new)
                if found is not None:
                    pairs.append((_move_distance(found), gone, new, found))
        pairs.sort(key=lambda pair: pair[0])
        for _, gone, new, found in pairs:
            if gone in self._gone and new in self._new:
                self._gone.remove(gone)
                self._new.remove(new)
                self._found.append(found)

    def _match_exact(self, gone: Piece, new: Piece) -> Origined | None:
        if not same_json(gone.value, new.value):
            return None
        return self._make_moved(gone, new, None)

    def _match_recoded(self, gone: Piece, new: Piece) -> Origined | None:
        if _is_negated(gone, new):
            why = "no to the opposite"
            return Origined(new.path, "recoded", why, new.value, gone.path, gone.value, "spelling")
        recoding = recoding_between(gone.value, new.value, self._describe_place(new.path))
        if recoding is None or recoding.loses:
            return None
        return self._make_moved(gone, new, recoding)

    def _recoded_with_loss(self, gone: Piece, new: Piece) -> Origined | None:
        recoding = recoding_between(gone.value, new.value, self._describe_place(new.path))
        if recoding is None:
            return None
        return self._make_moved(gone, new, recoding)

    def _make_moved(self, gone: Piece, new: Piece, recoding: Recoding | None) -> Origined:
        source = gone.path if gone.read is None else gone.read
        key = self._keys.key_reason(gone, new)
        why = KEY_WORDS[key]
        if recoding is not None:
            why = recoding.why if key in ("same", "level") else f"{why}; {recoding.why}"
        elif gone.read is not None:
            why = f"read out of a text; {why}"
        is_moved = recoding is None and gone.read is None
        rivals = self._keys.rival_places(gone, new, key)
        return Origined(
            new.path,
            "moved" if is_moved else "recoded",
            why,
            new.value,
            source,
            gone.value,
            key,
            recoding.loses if recoding else "",
            rivals,
        )

    def _describe_place(self, path: Path) -> Place:
        name = last_key(path) or ""
        keys = path if path and isinstance(path[-1], str) else path[:-1]
        view = self._grounds.places(keys[:-1]).get(name) if keys else None
        return Place(name, view, self._grounds.listed(path))

    def _open_containers(self) -> bool:
        """Replace containers by their members, and texts by what they hold; False if none is."""
        is_open = False
        for pieces in (self._new, self._gone):
            opened: list[Piece] = []
            for piece in pieces:
                inner = list(children_of(piece))
                if pieces is self._gone and not inner and isinstance(piece.value, str):
                    inner = list(read_out_of(piece))
                is_open = is_open or bool(inner)
                opened += inner or [piece]
            pieces[:] = opened
        return is_open


def _is_negated(gone: Piece, new: Piece) -> bool:
    """Return whether a flag became its opposite under a name that states the opposite."""
    one = gone.value
    other = new.value
    if not (isinstance(one, bool) and isinstance(other, bool)) or one == other:
        return False
    return negates_name(last_key(gone.path) or "", last_key(new.path) or "")


def _move_distance(found: Origined) -> tuple[int, int, float, int]:
    """Return how far a value moved: what moved less, and lost less, is paired first."""
    order = REASONS.index(found.key)
    one = last_key(found.source or ()) or ""
    other = last_key(found.path) or ""
    size = -len(canonical_json(found.value)) if isinstance(found.value, dict | list) else 0
    return (size, order, -name_similarity(one, other), len(found.loses))


def _lost_keys(values: Sequence[Origined], after: JsonObject) -> Iterator[str]:
    """Yield the keys around moved values that say something, and stand nowhere any more."""
    said = {word for leaf in leaves_of(after) for step in leaf.path for word in words_of(str(step))}
    neutral = WORDS["wrappers"] | WORDS["of_values"] | WORDS["neutral"] | said
    for each in values:
        key = None if each.source is None else last_key(each.source)
        if each.key == "level" and key is not None and not neutral.issuperset(words_of(key)):
            yield key
