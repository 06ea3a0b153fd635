"""Rewriting: every edit that could explain what differs between two calls.

Programming by example (FlashFill, Gulwani 2011; over trees) at the size of a call: for each place
that is new, gone or changed, where its value may come from and through which forms. Which part of
it was the repair, and which explanation holds, is shown by other examples (`tool.repairs`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, get_args

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


class _Source(NamedTuple):
    path: Path
    value: JsonValue
    is_free: bool
    """Whether it is gone, or another value stands in its place."""


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
    new = {_of_any(piece.path, failed) for piece in pair.new}
    gone = {_of_any(piece.path, failed) for piece in pair.gone}
    return new, gone, {_of_any(piece.path, failed) for piece, _ in pair.changed}


def forms_between(before: JsonValue, after: JsonValue) -> list[ed.Form]:
    """Return the forms that make one value of the other, the most general first."""
    if is_redacted(before):
        return []
    if is_redacted(after):
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
        yield from (ed.Join(name="", mark=mark) for mark in _marks_between(after))
    if is_number(before) and is_number(after) and before:
        yield ed.Scale(name="", factor=round(after / before, 9))
    if not isinstance(before, str) and not is_number(before):
        return
    text = str(before)
    if isinstance(after, list) and len(after) > 1:
        yield from (ed.Split(name="", mark=mark) for mark in _marks_between(text))
    if isinstance(after, str) and max(len(text), len(after)) <= MAX_TEXT:
        yield from _of_texts(text, after)


def _of_texts(text: str, after: str) -> Iterator[ed.Form]:
    yield from _STYLES
    for form, name in _DATES.items():
        if re.fullmatch(form, after, re.ASCII):
            yield from (ed.Reformat(name="", to=name, day_first=each) for each in (True, False))
    if len(after) > len(text) and after.endswith(text) and set(after[: -len(text)]) in _FILLING:
        yield ed.Pad(name="", width=len(after), sign=after[0])
    for mark in _marks_between(text):
        parts = [part.strip() for part in text.split(mark)]
        if after in parts:
            yield ed.Cut(name="", mark=mark, part=parts.index(after))
            yield ed.Cut(name="", mark=mark, part=parts.index(after) - len(parts))
    for mark in set(_MARK.findall(text)):
        rest = text.split(mark)
        for other in ("", *sorted(set(_MARK.findall(after)))):
            if other != mark and other.join(rest) == after:
                yield ed.Rewrite(name="", where="inside", old=mark, new=other)
    yield from _candidate_rewrites(text, after)


_DATES = {
    r"\d{4}-\d\d-\d\d": "YYYY-MM-DD",
    r"\d{4}/\d\d/\d\d": "YYYY/MM/DD",
    r"\d{8}": "YYYYMMDD",
    r"\d\d/\d\d/\d{4}": "DD/MM/YYYY",
}


def _of_containers(before: JsonValue, after: JsonValue) -> Iterator[ed.Form]:
    """Yield what makes an object of a list of pairs, and the other way round."""
    pair = before[0] if isinstance(before, list) and before else before
    if isinstance(pair, dict) and len(pair) == 2 and isinstance(after, dict):
        one, two = pair
        for key, value in ((one, two), (two, one)):
            yield ed.Keyed(name="", key=key, value=value)
            yield ed.Named(name="", key=key, value=value)
    pair = after[0] if isinstance(after, list) and after else after
    if isinstance(pair, dict) and len(pair) == 2 and isinstance(before, dict):
        one, two = pair
        for key, value in ((one, two), (two, one)):
            yield ed.Unkeyed(name="", key=key, value=value)
            yield ed.Unnamed(name="", key=key, value=value)


def _marks_between(text: str) -> list[str]:
    """Return what stands between words of a text, each once."""
    return list(
        dict.fromkeys((*_MARKS.findall(text[:MAX_TEXT]), *re.findall(r"[\W_]", text[:200])))
    )


def _candidate_rewrites(before: str, after: str) -> Iterator[ed.Rewrite]:
    start = Prefix.similarity(before, after)
    end = Postfix.similarity(before, after)
    # The ending that both have, whole words of it: what is before it was written again.
    end = end if end == len(after) else _word_start(before[::-1], end)
    if end:
        old = before[: len(before) - end]
        new = after[: len(after) - end]
        yield ed.Rewrite(name="", where="start", old=old, new=new)
    if start and before[start:]:
        start = _word_start(before, start)
    if start:
        yield ed.Rewrite(name="", where="end", old=before[start:], new=after[start:])
    end = min(end, len(before) - start, len(after) - start)
    end = _word_start(before[::-1], end)
    old = before[start : len(before) - end]
    new = after[start : len(after) - end]
    if start and end and old:
        yield ed.Rewrite(name="", where="inside", old=old, new=new)


def _word_start(text: str, at: int) -> int:
    while 0 < at < len(text) and text[at].isalnum() and text[at - 1].isalnum():
        at -= 1
    return at


@dataclass(slots=True)
class _Pair:
    """Two calls, and the topmost places in which they differ."""

    failed: JsonObject
    mended: JsonObject
    new: list[Piece] = field(default_factory=list)
    gone: list[Piece] = field(default_factory=list)
    changed: list[tuple[Piece, Piece]] = field(default_factory=list)
    reshaped: list[tuple[Piece, Piece]] = field(default_factory=list)
    """Objects that have no name in common."""
    sources: list[_Source] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._compare_pieces(Piece((), self.failed), Piece((), self.mended))
        free = (*self.gone, *(old for old, _ in self.changed))
        freed = [part for piece in free for part in _walk_parts(piece)]
        paths = {piece.path for piece in freed}
        kept = (piece for piece in _walk_parts(Piece((), self.failed)) if piece.path)
        self.sources = [_Source(piece.path, piece.value, is_free=True) for piece in freed]
        self.sources += [
            _Source(e.path, e.value, is_free=False) for e in kept if e.path not in paths
        ]
        del self.sources[_MAX_SOURCES:]

    def explain_places(self) -> Iterator[ed.Edit]:
        """Yield the edits of every place."""
        for old, new in self.reshaped[:_MAX_PIECES]:
            yield from (form.at_path(new.path) for form in forms_between(old.value, new.value))
        for old, new in self.changed[:_MAX_PIECES]:
            yield from self._of_change(old, new)
        for piece in self.new[:_MAX_PIECES]:
            yield from self._of_new(piece)
        for piece in self.gone[:_MAX_PIECES]:
            yield ed.Remove(name="").at_path(piece.path)

    def _compare_pieces(self, before: Piece, after: Piece) -> None:
        one = before.value
        two = after.value
        if isinstance(one, dict) and isinstance(two, dict) and (not before.path or (one and two)):
            if before.path and one.keys().isdisjoint(two):
                self.reshaped.append((before, after))
            for piece in children_of(before):
                if piece.path[-1] in two:
                    self._compare_pieces(piece, Piece(piece.path, two[str(piece.path[-1])]))
                else:
                    self.gone.append(piece)
            self.new += [piece for piece in children_of(after) if piece.path[-1] not in one]
        elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two) > 0:
            for left, right in zip(children_of(before), children_of(after), strict=True):
                self._compare_pieces(left, right)
        elif not same_json(one, two):
            self.changed.append((before, after))

    def _of_change(self, old: Piece, new: Piece) -> Iterator[ed.Edit]:
        if is_redacted(old.value) or is_redacted(new.value):
            return  # a mask stands for many values
        for form in forms_between(old.value, new.value):
            yield form.at_path(new.path)
        yield from self._explain_built(new, but=old.path)
        if not isinstance(old.value, dict | list):
            yield ed.Replace(name="", before=old.value, value=new.value).at_path(new.path)
        yield ed.Put(name="", value=new.value).at_path(new.path)

    def _of_new(self, piece: Piece) -> Iterator[ed.Edit]:
        yield from self._explain_built(piece)
        around = value_at(self.failed, piece.path[:-1])
        if isinstance(around, dict):
            yield ed.Add(name="", value=piece.value).at_path(piece.path)
        else:
            yield ed.Put(name="", value=piece.value).at_path(piece.path)

    def _explain_built(self, piece: Piece, but: Path | None = None) -> Iterator[ed.Edit]:
        """Yield what builds a value of others: the whole of it, or else part by part."""
        taken = list(self._explain_taken(piece, but))
        yield from taken
        if isinstance(piece.value, str):
            yield from self._explain_filled(piece)
        if taken:
            return
        if isinstance(piece.value, _PLAIN):
            return
        parts = [(child, list(self._explain_built(child))) for child in children_of(piece)]
        if any(found for _, found in parts):
            for child, found in parts:
                yield from found or [ed.Put(name="", value=child.value).at_path(child.path)]

    def _explain_taken(self, piece: Piece, but: Path | None) -> Iterator[ed.Edit]:
        sources = [each for each in self.sources if each.path != but]
        same = [
            each
            for each in sources
            if same_json(each.value, piece.value) and (each.is_free or _is_distinct(piece.value))
        ]
        for source in islice(sorted(same, key=lambda each: not each.is_free), _MOST_TAKES):
            is_gone = any(gone.path == source.path for gone in self.gone)
            if is_gone and source.path[:-1] == piece.path[:-1] and isinstance(source.path[-1], str):
                yield ed.Rename(name="", to=str(piece.path[-1])).at_path(source.path)
            else:
                yield ed.Take(name="", source=source.path).at_path(piece.path)
        for source in () if same else [each for each in sources if each.is_free]:
            for form in forms_between(source.value, piece.value)[:_MOST_TAKES]:
                if source.path != piece.path:
                    yield ed.Take(name="", source=source.path, through=(form,)).at_path(piece.path)
            if is_number(piece.value) and isinstance(source.value, str):
                text = str(piece.value)
                for form in forms_between(source.value, text):
                    if isinstance(form, ed.Cut):
                        cast = ed.Cast(name="", to=type_of(piece.value))
                        yield ed.Take(name="", source=source.path, through=(form, cast)).at_path(
                            piece.path
                        )

    def _explain_filled(self, piece: Piece) -> Iterator[ed.Edit]:
        """Yield what writes a text of several values of the call that are gone or changed."""
        rest = str(piece.value)
        parts = list[str | Path]()
        free = [
            each
            for each in self.sources
            if each.is_free
            and isinstance(each.value, str | int | float)
            and not isinstance(each.value, bool)
            and str(each.value)
        ]
        while rest:
            at = {rest.find(str(each.value)): each for each in reversed(free)}
            at.pop(-1, None)
            if not at:
                parts.append(rest)
                break
            start = min(at)
            source = at[start]
            parts += [rest[:start], source.path] if start else [source.path]
            rest = rest[start + len(str(source.value)) :]
            free.remove(source)
        if sum(not isinstance(part, str) for part in parts) > 1:
            yield ed.Fill(name="", parts=tuple(parts)).at_path(piece.path)


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
    return isinstance(value, dict | list) and bool(value)


def _of_any(path: Path, call: JsonObject) -> Path:
    """Return the path with `*` for positions in lists that the call has."""
    return tuple(
        EVERY if isinstance(step, int) and isinstance(value_at(call, path[:at]), list) else step
        for at, step in enumerate(path)
    )


def _lift_edit(edit: ed.Edit, failed: JsonObject) -> ed.Edit:
    """Return the edit for every element of the lists, where its source is one."""
    place = _of_any(edit.path, failed)
    if isinstance(edit, ed.Take):
        source = _of_any(edit.source, failed)
        if _at_any(edit.path, place) == _at_any(edit.source, source):
            return edit.model_copy(update={"source": source}).at_path(place)
        return edit
    if isinstance(edit, ed.Fill):
        parts = tuple(
            part if isinstance(part, str) else _of_any(part, failed) for part in edit.parts
        )
        at_any = _at_any(edit.path, place)
        pairs = zip(edit.parts, parts, strict=True)
        if all(isinstance(one, str) or _at_any(one, part) == at_any for one, part in pairs):
            return edit.model_copy(update={"parts": parts}).at_path(place)
        return edit
    return edit.at_path(place)


def _at_any(path: Path, lifted: Path | str) -> list[str | int]:
    """Return the positions of a path that `*` stands for."""
    return [step for step, form in zip(path, lifted, strict=True) if form == EVERY != step]
