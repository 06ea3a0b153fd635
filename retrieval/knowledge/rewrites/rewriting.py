"""Rewriting: every edit that could explain what differs between two calls.

Programming by example (FlashFill, Gulwani 2011; over trees) at the size of a call: for each place
that is new, gone or changed, where its value may come from and through which forms. Which part of
it was the repair, and which explanation holds, is shown by other examples (`tool.examples`).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import get_args

from rapidfuzz.distance import Postfix, Prefix

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue
from aftercall.redaction import is_redacted
from retrieval.knowledge.calls.tree import Piece, children_of
from retrieval.knowledge.rewrites import edits as ed
from retrieval.knowledge.rewrites.edit_model import NO_SOURCES, EditDoesNotApplyError, Site
from retrieval.knowledge.values.parameters import EVERY, Path, value_at
from retrieval.knowledge.values.scalars import type_of
from retrieval.knowledge.values.texts import MAX_TEXT, Style, is_number

MAX_CANDIDATES = 80
"""Of one example."""
_MAX_SOURCES = 40
_MAX_PIECES = 40
_MOST_TAKES = 4
_MOST_FORMS = 8
_SHORTEST = 3
_LEAST = 10
"""Characters of a text, and size of a number, that are not met twice by chance."""
_STYLES = tuple(ed.Respell(name="", style=style) for style in get_args(Style))
_FILLING = ({"0"}, {" "}, {"_"}, {"#"}, {"*"})
"""What texts are filled up with."""
_MARK = re.compile(r"[\W_]")
_MARKS = re.compile(r"[^\w]{1,3}|_")
_PLAIN = (str, int, float, bool)


def candidate_edits(failed: JsonObject, mended: JsonObject) -> list[ed.Edit]:
    """Return what could explain the differences, the most general first of each place."""
    pair = _Pair(failed, mended)
    found: dict[str, ed.Edit] = {}
    for edit in islice(pair.explain_places(), MAX_CANDIDATES):
        lifted = _lift_edit(edit, failed)
        found.setdefault(lifted.model_dump_json(), lifted)
    return list(found.values())


def find_differences(
    failed: JsonObject, mended: JsonObject
) -> tuple[set[Path], set[Path], set[Path]]:
    """Return the places that are new, gone and changed, in lists as `*`; the topmost of each."""
    pair = _Pair(failed, mended)

    def places_of(pieces: Iterable[Piece]) -> set[Path]:
        return {_of_any(piece.path, failed) for piece in pieces}

    changed = (old for old, _ in pair.changed)
    return places_of(pair.new), places_of(pair.gone), places_of(changed)


def forms_between(before: JsonValue, after: JsonValue) -> list[ed.Form]:
    """Return the forms that make one value of the other, the most general first."""
    if is_redacted(before) or is_redacted(after):
        return []
    found: dict[str, ed.Form] = {}
    for form in _candidate_forms(before, after):
        if len(found) < _MOST_FORMS and _gives_value(form, before, after):
            found.setdefault(form.model_dump_json(), form)
    return list(found.values())


def _gives_value(form: ed.Form, before: JsonValue, after: JsonValue) -> bool:
    try:
        return same_json(form.change_value(before, Site((), {}, NO_SOURCES)), after)
    except EditDoesNotApplyError:
        return False


def _candidate_forms(before: JsonValue, after: JsonValue) -> Iterator[ed.Form]:
    kind = type_of(after)
    if kind not in ("null", type_of(before)):
        yield ed.Cast(name="", to=kind)
    if isinstance(before, list | dict):
        yield ed.Unwrap(name="")
        yield from _of_containers(before, after)
    if isinstance(before, list) and isinstance(after, str):
        for mark in _marks_between(after):
            yield ed.Join(name="", mark=mark)
    if is_number(before) and is_number(after) and before:
        yield ed.Scale(name="", factor=round(after / before, 9))
    if not isinstance(before, str) and not is_number(before):
        return
    text = str(before)
    if isinstance(after, list) and len(after) > 1:
        for mark in _marks_between(text):
            yield ed.Split(name="", mark=mark)
    if isinstance(after, str) and len(text) <= MAX_TEXT and len(after) <= MAX_TEXT:
        yield from _of_texts(text, after)


def _of_texts(text: str, after: str) -> Iterator[ed.Form]:
    yield from _STYLES
    for form, name in _DATES.items():
        if re.fullmatch(form, after, re.ASCII):
            yield ed.Reformat(name="", to=name, day_first=True)
            yield ed.Reformat(name="", to=name, day_first=False)
    filling = after.removesuffix(text)
    if filling != after and set(filling) in _FILLING:
        yield ed.Pad(name="", width=len(after), sign=after[0])
    for mark in _marks_between(text):
        yield from _of_parts(text, mark, after)
    others = ["", *sorted(set(_MARK.findall(after)))]
    for mark in set(_MARK.findall(text)):
        for other in others:
            if other != mark and text.replace(mark, other) == after:
                yield ed.Rewrite(name="", where="inside", old=mark, new=other)
    yield from _candidate_rewrites(text, after)


def _of_parts(text: str, mark: str, after: str) -> Iterator[ed.Form]:
    parts = list(map(str.strip, text.split(mark)))
    if after in parts:
        place = parts.index(after)
        from_end = place - len(parts)
        yield ed.Cut(name="", mark=mark, part=place)
        yield ed.Cut(name="", mark=mark, part=from_end)


_DATES = {
    r"\d{4}-\d\d-\d\d": "YYYY-MM-DD",
    r"\d{4}/\d\d/\d\d": "YYYY/MM/DD",
    r"\d{8}": "YYYYMMDD",
    r"\d\d/\d\d/\d{4}": "DD/MM/YYYY",
}


def _of_containers(before: JsonValue, after: JsonValue) -> Iterator[ed.Form]:
    """Yield what makes an object of a list of pairs, and the other way round."""
    if isinstance(after, dict):
        for key, value in _names_of_pair(before):
            yield ed.Keyed(name="", key=key, value=value)
            yield ed.Named(name="", key=key, value=value)
    if isinstance(before, dict):
        for key, value in _names_of_pair(after):
            yield ed.Unkeyed(name="", key=key, value=value)
            yield ed.Unnamed(name="", key=key, value=value)


def _names_of_pair(value: JsonValue) -> list[tuple[str, str]]:
    """Return the two names of an object, or of the first of a list, in both orders."""
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict) or len(value) != 2:
        return []
    one, two = value
    return [(one, two), (two, one)]


def _marks_between(text: str) -> list[str]:
    """Return what stands between words of a text, each once."""
    marks = _MARKS.findall(text[:MAX_TEXT])
    marks += _MARK.findall(text[:200])
    return list(dict.fromkeys(marks))


def _candidate_rewrites(before: str, after: str) -> Iterator[ed.Rewrite]:
    backwards = before[::-1]
    start = Prefix.similarity(before, after)
    end = Postfix.similarity(before, after)
    if end != len(after):
        # The ending that both have, whole words of it: what is before it was written again.
        end = _word_start(backwards, end)
    if end:
        yield ed.Rewrite(name="", where="start", old=before[:-end], new=after[:-end])
    if start and before[start:]:
        start = _word_start(before, start)
    if start:
        yield ed.Rewrite(name="", where="end", old=before[start:], new=after[start:])
    shorter = min(len(before), len(after))
    end = min(end, shorter - start)
    end = _word_start(backwards, end)
    if start and end:
        old = before[start:-end]
        if old:
            yield ed.Rewrite(name="", where="inside", old=old, new=after[start:-end])


def _word_start(text: str, at: int) -> int:
    while 0 < at < len(text) and text[at].isalnum() and text[at - 1].isalnum():
        at -= 1
    return at


_Change = tuple[Piece, Piece]
"""A value as it was, and as it is."""


@dataclass(slots=True)
class _Pair:
    """Two calls, and the topmost places in which they differ."""

    failed: JsonObject
    mended: JsonObject
    new: list[Piece] = field(default_factory=list)
    gone: list[Piece] = field(default_factory=list)
    changed: list[_Change] = field(default_factory=list)
    reshaped: list[_Change] = field(default_factory=list)
    """Objects that have no name in common."""
    free: list[Piece] = field(default_factory=list)
    """Values that are gone, or that others replace: the likeliest sources."""
    kept: list[Piece] = field(default_factory=list)
    """The other values of the failed call."""

    def __post_init__(self) -> None:
        self._compare_pieces(Piece((), self.failed), Piece((), self.mended))
        for piece in self.gone:
            self.free.extend(_walk_parts(piece))
        for piece, _ in self.changed:
            self.free.extend(_walk_parts(piece))
        paths = {(), *(each.path for each in self.free)}
        for part in _walk_parts(Piece((), self.failed)):
            if part.path not in paths:
                self.kept.append(part)
        del self.free[_MAX_SOURCES:]
        del self.kept[_MAX_SOURCES - len(self.free) :]

    def explain_places(self) -> Iterator[ed.Edit]:
        """Yield the edits of every place."""
        for old, new in self.reshaped[:_MAX_PIECES]:
            for form in forms_between(old.value, new.value):
                yield form.at_path(new.path)
        for old, new in self.changed[:_MAX_PIECES]:
            yield from self._of_change(old, new)
        for piece in self.new[:_MAX_PIECES]:
            yield from self._of_new(piece)
        for piece in self.gone[:_MAX_PIECES]:
            yield ed.Remove(name="").at_path(piece.path)

    def _compare_pieces(self, before: Piece, after: Piece) -> None:
        one = before.value
        two = after.value
        is_whole = not before.path
        if isinstance(one, dict) and isinstance(two, dict) and (is_whole or (one and two)):
            if not is_whole and one.keys().isdisjoint(two):
                self.reshaped.append((before, after))
            for piece in children_of(before):
                name = str(piece.path[-1])
                if name in two:
                    self._compare_pieces(piece, Piece(piece.path, two[name]))
                else:
                    self.gone.append(piece)
            for piece in children_of(after):
                if piece.path[-1] not in one:
                    self.new.append(piece)
        elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two) > 0:
            for left, right in zip(children_of(before), children_of(after), strict=True):
                self._compare_pieces(left, right)
        elif not same_json(one, two):
            self.changed.append((before, after))

    def _of_change(self, old: Piece, new: Piece) -> Iterator[ed.Edit]:
        place = new.path
        value = new.value
        before = old.value
        if is_redacted(before) or is_redacted(value):
            return  # a mask stands for many values
        for form in forms_between(before, value):
            yield form.at_path(place)
        yield from self._explain_built(new, but=old.path)
        if not isinstance(before, dict | list):
            yield ed.Replace(name="", before=before, value=value).at_path(place)
        yield ed.Put(name="", value=value).at_path(place)

    def _of_new(self, piece: Piece) -> Iterator[ed.Edit]:
        yield from self._explain_built(piece)
        place = piece.path
        value = piece.value
        around = value_at(self.failed, place[:-1])
        put = ed.Add if isinstance(around, dict) else ed.Put
        yield put(name="", value=value).at_path(place)

    def _explain_built(self, piece: Piece, but: Path | None = None) -> Iterator[ed.Edit]:
        """Yield what builds a value of others: the whole of it, or else part by part."""
        taken = list(self._explain_taken(piece, but))
        yield from taken
        if isinstance(piece.value, str):
            yield from self._explain_filled(piece)
        if taken or isinstance(piece.value, _PLAIN):
            return
        children = list(children_of(piece))
        explained = [list(self._explain_built(child)) for child in children]
        if any(explained):
            for child, found in zip(children, explained, strict=True):
                yield from found or [ed.Put(name="", value=child.value).at_path(child.path)]

    def _explain_taken(self, piece: Piece, but: Path | None) -> Iterator[ed.Edit]:
        place = piece.path
        free = [each for each in self.free if each.path != but]
        sources = list(free)
        if _is_distinct(piece.value):
            sources += [each for each in self.kept if each.path != but]
        same = [each.path for each in sources if same_json(each.value, piece.value)]
        gone = [each.path for each in self.gone]
        for source in same[:_MOST_TAKES]:
            if source in gone and _are_neighbours(source, place):
                name = str(place[-1])
                yield ed.Rename(name="", to=name).at_path(source)
            else:
                yield ed.Take(name="", source=source).at_path(place)
        if not same:
            for each in free:
                yield from _explain_formed(each, piece)

    def _explain_filled(self, piece: Piece) -> Iterator[ed.Edit]:
        """Yield what writes a text of several values of the call that are gone or changed."""
        rest = str(piece.value)
        parts = list[str | Path]()
        free = [(each.path, str(each.value)) for each in self.free if _is_fillable(each.value)]
        taken = 0
        while rest:
            at = {rest.find(text): (path, text) for path, text in reversed(free)}
            at.pop(-1, None)
            if not at:
                parts.append(rest)
                break
            start = min(at)
            path, text = at[start]
            if start:
                parts.append(rest[:start])
            parts.append(path)
            rest = rest[start + len(text) :]
            free.remove((path, text))
            taken += 1
        if taken > 1:
            yield ed.Fill(name="", parts=tuple(parts)).at_path(piece.path)


def _are_neighbours(source: Path, place: Path) -> bool:
    """Return whether a named value stands in the same object as another place."""
    *around, name = source
    *others, _ = place
    return around == others and isinstance(name, str)


def _explain_formed(source: Piece, piece: Piece) -> Iterator[ed.Edit]:
    """Yield what takes a value from a source in another form."""
    place = piece.path
    value = piece.value
    if source.path != place:
        for form in forms_between(source.value, value)[:_MOST_TAKES]:
            take = ed.Take(name="", source=source.path, through=(form,))
            yield take.at_path(place)
    if is_number(value) and isinstance(source.value, str):
        cast = ed.Cast(name="", to=type_of(value))
        for form in forms_between(source.value, str(value)):
            if isinstance(form, ed.Cut):
                take = ed.Take(name="", source=source.path, through=(form, cast))
                yield take.at_path(place)


def _is_fillable(value: JsonValue) -> bool:
    """Return whether a text can hold a value: a number, or a text that is not empty."""
    return is_number(value) or (isinstance(value, str) and value != "")


def _walk_parts(piece: Piece) -> Iterator[Piece]:
    """Yield a value and all that is in it, the whole first."""
    yield piece
    for child in children_of(piece):
        yield from _walk_parts(child)


def _is_distinct(value: JsonValue) -> bool:
    """Return whether a value is not met twice in a call by chance."""
    if isinstance(value, str):
        return len(value) >= _SHORTEST
    if is_number(value):
        return abs(value) >= _LEAST
    return value is not True and bool(value)


def _of_any(path: Path, call: JsonObject) -> Path:
    """Return the path with `*` for positions in lists that the call has."""
    steps = list(path)
    for at, step in enumerate(path):
        if isinstance(step, int) and isinstance(value_at(call, path[:at]), list):
            steps[at] = EVERY
    return tuple(steps)


def _lift_edit(edit: ed.Edit, failed: JsonObject) -> ed.Edit:
    """Return the edit for every element of the lists, where its source is one."""
    place = _of_any(edit.path, failed)
    if isinstance(edit, ed.Take):
        source = _of_any(edit.source, failed)
        if _at_any(edit.path, place) == _at_any(edit.source, source):
            return edit.model_copy(update={"source": source}).at_path(place)
        return edit
    if isinstance(edit, ed.Fill):
        at_any = _at_any(edit.path, place)
        parts = list[str | Path]()
        for part in edit.parts:
            if isinstance(part, str):
                parts.append(part)
                continue
            lifted = _of_any(part, failed)
            if _at_any(part, lifted) != at_any:
                return edit
            parts.append(lifted)
        return edit.model_copy(update={"parts": tuple(parts)}).at_path(place)
    return edit.at_path(place)


def _at_any(path: Path, lifted: Path | str) -> list[str | int]:
    """Return the positions of a path that `*` stands for."""
    pairs = zip(path, lifted, strict=True)
    return [step for step, form in pairs if form == EVERY != step]
