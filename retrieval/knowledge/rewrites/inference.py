"""Inferring edits: the most general ones that explain what a repair did.

Every kind of edit that could explain a change is tried on the failed value, the most general first;
the first that gives the repaired value is the explanation. So whatever is inferred is true of the
repair that it came from.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias, get_args

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue
from aftercall.redaction import is_redacted
from retrieval import WORDS
from retrieval.knowledge.reading.faults import Fault, FaultKind
from retrieval.knowledge.reading.reader import ErrorReading
from retrieval.knowledge.rewrites import edits as ed
from retrieval.knowledge.rewrites.edit_effects import try_edits
from retrieval.knowledge.values.likeness import differ_in_digits, words_of
from retrieval.knowledge.values.parameters import EVERY, MAX_ELEMENTS, Path, value_at
from retrieval.knowledge.values.scalars import cast_to_one, type_of
from retrieval.knowledge.values.texts import MAX_TEXT, Style, stated_in

_FORM_FAULTS: frozenset[FaultKind] = frozenset(
    {"not_allowed", "bad_format", "out_of_range", "wrong_type"}
)
"""Faults of the value's form: a value that differs in its digits may still be the same wish."""
_MOST_CHANGED = 4
"""Names: two renames, each of them takes one away and adds one."""
_MOST_WORDS = 3
"""A text of more words is a sentence: its caller's own."""


def may_be_repair(failed: JsonObject, mended: JsonObject, reading: ErrorReading) -> bool:
    """Return whether the two calls differ in little enough, or in what the error names.

    Cheap to ask.
    """
    changed = {name for name, value in mended.items() if not same_json(value, failed.get(name))}
    changed |= failed.keys() ^ mended.keys()
    about = called_for(reading)
    if about is not None:
        return not changed.isdisjoint(about)
    return len(changed) > 0 and (bool(reading.implicated) or len(changed) <= _MOST_CHANGED)


def called_for(reading: ErrorReading) -> frozenset[str] | None:
    """Return the top-level parameters that the error is about; None when it may be about any."""
    stated = any(fault.stated is not None for fault in reading.faults)
    if stated:
        return None
    return reading.implicated or None


def only_the_repair(
    edits: list[ed.Edit], failed: JsonObject, reading: ErrorReading
) -> list[ed.Edit] | None:
    """Return those of the edits that repaired what the error is about.

    None when that was another wish.
    """
    if not any(fault.path for fault in reading.faults):
        return _small_repair(edits, failed, reading)
    touching: list[ed.Edit] = []
    beside: list[ed.Edit] = []
    for edit in edits:
        (touching if _is_called_for(edit, reading) else beside).append(edit)
    if any(_is_another_thing(edit, reading) for edit in touching):
        return None
    if any(isinstance(edit, ed.Replace) for edit in beside) and any(
        isinstance(edit, ed.Add | ed.Replace | ed.FromContext) for edit in touching
    ):
        return None  # the value went with a new intent: it was right for that one
    return touching or None


def _small_repair(
    edits: list[ed.Edit], failed: JsonObject, reading: ErrorReading
) -> list[ed.Edit] | None:
    """Return the repair that an error without a place calls for, or a small change in form."""
    stated: list[ed.Edit] = [e for e in edits if isinstance(e, ed.FromError)]
    if stated:
        others = [edit for edit in edits if edit not in stated]
        if any(isinstance(edit, ed.Replace | ed.Add) for edit in others):
            return None
        return stated
    if any(isinstance(edit, ed.Replace) for edit in edits):
        return None  # nothing states that this value was wrong
    untouched = len(failed) - len({edit.name for edit in edits} & failed.keys())
    small = len(edits) <= 2 and (untouched >= len(edits) or len(failed) <= 1)
    if small and not any(_is_another_thing(e, reading) for e in edits):
        return edits
    return None


def _is_called_for(edit: ed.Edit, reading: ErrorReading) -> bool:
    if isinstance(edit, ed.FromError):
        return True
    return any(_is_about(edit, fault) for fault in reading.faults if fault.path)


def _is_about(edit: ed.Edit, fault: Fault) -> bool:
    # A rename takes its source from a name that the error need not mention.
    return ed.touch_same_place(edit, ed.Remove(name="").at_path(fault.path))


def _is_another_thing(edit: ed.Edit, reading: ErrorReading) -> bool:
    """Return whether a value gave way to that of another wish."""
    if isinstance(edit, ed.Add):
        return isinstance(edit.value, dict | list) and bool(edit.value)
    if not isinstance(edit, ed.Replace):
        return False
    kinds = {fault.kind for fault in reading.faults if fault.path and _is_about(edit, fault)}
    if _is_content(edit.before):
        return True
    if _is_content(edit.value):
        return True
    if kinds & _FORM_FAULTS:
        return False
    free = not WORDS["free_text"].isdisjoint(words_of(str(edit.path[-1])))
    return free or differ_in_digits(str(edit.before), str(edit.value))


def _is_content(value: JsonValue) -> bool:
    if isinstance(value, dict | list):
        return bool(value)
    return isinstance(value, str) and len(value.split()) > _MOST_WORDS


_MAX_EDITS = 20
"""A repair of more edits is another call."""
_MAX_DEPTH = 8
_Candidate: TypeAlias = ed.FromError | ed.Clamp | ed.Cast | ed.Unwrap | ed.Respell | ed.FromContext
# Candidates that are the same for every change; tried where they could explain it.
_FROM_ERROR = ed.FromError(name="")
_CLAMP = ed.Clamp(name="")
_UNWRAP = ed.Unwrap(name="")
_RESPELLS = tuple(ed.Respell(name="", style=style) for style in get_args(Style))


def infer_edits(
    failed: JsonObject,
    mended: JsonObject,
    reading: ErrorReading,
    value_sources: ed.ValueSources | None = None,
) -> list[ed.Edit] | None:
    """Return the edits that a repair made; None when it is no repair but another call.

    What changed next to the faults that the error names is the caller's own new intent and no part
    of the repair. Where the error names nothing, only a small change counts as a repair. Values may
    come from `value_sources`, the faults of the reading when left out.
    """
    if not may_be_repair(failed, mended, reading):
        return None
    search = _Search(
        failed, value_sources or ed.ValueSources(faults=reading.faults), called_for(reading)
    )
    edits = list(islice(search.of_objects(failed, mended, ()), _MAX_EDITS + 1))
    if not edits:
        return None
    if len(edits) > _MAX_EDITS:
        return None
    return only_the_repair(edits, failed, reading)


def all_edits(
    failed: JsonObject, mended: JsonObject, value_sources: ed.ValueSources
) -> list[ed.Edit]:
    """Everything that two calls differ in, as edits, whatever its reason; none of too much."""
    edits = list(islice(_Search(failed, value_sources, None).of_objects(failed, mended, ()), 21))
    if len(edits) <= _MAX_EDITS:
        return edits
    return []


@dataclass(frozen=True, slots=True)
class _Search:
    failed: JsonObject
    value_sources: ed.ValueSources
    called_for: frozenset[str] | None
    """Top-level parameters whose change is to be explained; None for all of them."""

    def of_objects(self, before: JsonObject, after: JsonObject, path: Path) -> Iterator[ed.Edit]:
        """Yield the edits that turn one object into the other; `path` leads to it."""
        while moved := next(_moved_levels(before, after), None):
            yield moved.under_prefix(path)
            before = (
                moved.nest_fields(before)
                if isinstance(moved, ed.Nest)
                else moved.flatten_members(before)
            )
        gone = [name for name in before if name not in after]
        new = [name for name in after if name not in before]
        for source in tuple(gone):
            target = _moved_to(before[source], new, after)
            if target:
                yield ed.Rename(name=source, to=target).under_prefix(path)
                if not same_json(before[source], after[target]):
                    yield ed.Cast(name=target, to=type_of(after[target])).under_prefix(path)
                gone.remove(source)
                new.remove(target)
        for name in before:
            if name in after:
                yield from self._of_values(before[name], after[name], (*path, name))
        yield from (ed.Remove(name=name).under_prefix(path) for name in gone)
        yield from (self._supply_value(after[name], (*path, name)) for name in new)

    def _of_values(self, before: JsonValue, after: JsonValue, path: Path) -> Iterator[ed.Edit]:
        if same_json(before, after):
            return
        # A mask is equal for many values: it explains nothing and is explained by nothing.
        masked = is_redacted(before) or is_redacted(after)
        if self.called_for is not None and path[0] not in self.called_for:
            yield ed.Replace(name="", before=before, value=after).at_path(
                path
            )  # another wish, whatever it is
        elif not masked and (
            edit := self._first_explaining(self._explain_change(before, after), before, after, path)
        ):
            yield edit
        elif len(path) < _MAX_DEPTH and isinstance(before, dict) and isinstance(after, dict):
            yield from self.of_objects(before, after, path)
        elif (
            len(path) < _MAX_DEPTH
            and isinstance(before, list)
            and isinstance(after, list)
            and len(before) == len(after) <= MAX_ELEMENTS
        ):
            yield from self._of_elements(before, after, path)
        else:
            yield ed.Replace(name="", before=before, value=after).at_path(path)

    def _of_elements(
        self, before: list[JsonValue], after: list[JsonValue], path: Path
    ) -> Iterator[ed.Edit]:
        single: list[ed.Edit] = []
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            found = self._of_values(old, new, (*path, index))
            single.extend(islice(found, _MAX_EDITS + 1 - len(single)))
        depth = len(path)
        every = {}
        for edit in single:
            lifted = edit.at_path((*path, EVERY, *edit.path[depth + 1 :]))
            every[lifted.model_dump_json()] = lifted
        edits = list(every.values())
        spread = not any(isinstance(edit, ed.OF_ONE_PLACE) for edit in single)
        yield from edits if spread and self._give_value(edits, after, path) else single

    def _give_value(self, edits: list[ed.Edit], wanted: JsonValue, path: Path) -> bool:
        made = try_edits(self.failed, edits, self.value_sources)
        return made is not None and same_json(value_at(made, path), wanted)

    def _first_explaining(
        self, candidates: Iterable[_Candidate], before: JsonValue, after: JsonValue, path: Path
    ) -> ed.Edit | None:
        """Return the first of the edits that makes the one value of the other."""
        site = ed.Site(path, self.failed, self.value_sources)
        for edit in candidates:
            try:
                made = edit.change_value(before, site)
            except ed.EditDoesNotApplyError:
                continue
            if same_json(made, after):
                there: ed.Edit = edit.at_path(path)
                return there
        return None

    def _explain_change(self, before: JsonValue, after: JsonValue) -> Iterator[_Candidate]:
        """Yield what could explain a change of a value, the most general first.

        Made for no place yet.
        """
        if after is None:
            return
        plain = not isinstance(after, dict | list)
        number = isinstance(after, int | float)
        if plain:
            yield _FROM_ERROR
        if number:
            yield _CLAMP
        if type_of(before) != type_of(after):
            yield ed.Cast(name="", to=type_of(after))
        if isinstance(before, list):
            yield _UNWRAP
        if isinstance(before, str) and isinstance(after, str):
            is_like = before[:1].lower() == after[:1].lower() or not before[:1].isalnum()
            if is_like and len(before) <= MAX_TEXT and len(after) <= MAX_TEXT:
                yield from _RESPELLS
        if plain:
            yield from self._find_sources(after)

    def _supply_value(self, value: JsonValue, path: Path) -> ed.Edit:
        plain = not isinstance(value, dict | list)
        candidates: list[_Candidate] = [_FROM_ERROR, *self._find_sources(value)] if plain else []
        found = self._first_explaining(candidates, None, value, path)
        return found or ed.Add(name="", value=value).at_path(path)

    def _find_sources(self, value: JsonValue) -> Iterator[ed.FromContext]:
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            stated = stated_in(self.value_sources.context or "")
            forms = dict.fromkeys(each.form for each in stated if each.text == str(value))
            yield from (ed.FromContext(name="", form=form) for form in forms if form != "word")


def _moved_levels(before: JsonObject, after: JsonObject) -> Iterator[ed.Nest | ed.Flatten]:
    """Parameters that were put under a name of their own, or taken out of one; two at least."""
    gone = [name for name in before if name not in after]
    new = [name for name in after if name not in before]
    for name in new:
        inner = _only_item(after[name])
        if not isinstance(inner, dict):
            continue
        fields = [each for each in gone if _is_same(before, inner, each)]
        if len(fields) > 1:
            listed = isinstance(after[name], list)
            yield ed.Nest(name=name, fields=tuple(fields), listed=listed)
    for name in gone:
        inner = _only_item(before[name])
        if not isinstance(inner, dict):
            continue
        fields = [each for each in new if _is_same(after, inner, each)]
        if len(fields) > 1 and inner.keys().isdisjoint(before):
            yield ed.Flatten(name=name, fields=tuple(fields))


def _only_item(value: JsonValue) -> JsonValue:
    """Return the item of a list of one; any other value as it is."""
    if isinstance(value, list) and len(value) == 1:
        return value[0]
    return value


def _is_same(one: JsonObject, other: JsonObject, name: str) -> bool:
    return name in one and name in other and same_json(one[name], other[name])


def _moved_to(value: JsonValue, new: list[str], after: JsonObject) -> str | None:
    same = [name for name in new if same_json(value, after[name])]
    if not same:
        for name in new:
            kind = type_of(after[name])
            as_one = cast_to_one(value, [kind]) if kind not in ("null", type_of(value)) else None
            same += [name] if as_one is not None and same_json(as_one[1], after[name]) else []
    if len(same) == 1:
        return same[0]
    return None
