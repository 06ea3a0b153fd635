"""Examples of repairs, and what they have in common.

An example is a failed call with the call of the same agent that then worked, whatever the error
stated and whatever changed. A change is held in the most general form that explains the examples:
`topK` 50, 40 and 23 to 10 is a bound, `users` to `app_users` and `orders` to `app_orders` a prefix
(programming by example over a small language of edits: Gulwani 2011; least general generalisation:
Plotkin 1970).

Each example carries its agent and session: they decide who hears of a change.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, lru_cache
from itertools import chain

from pydantic import TypeAdapter

from aftercall.json_values import JsonObject, JsonValue, canonical_json
from aftercall.tables import gather_values
from retrieval.knowledge.rewrites import edits as ed
from retrieval.knowledge.rewrites.edit_effects import try_edits
from retrieval.knowledge.rewrites.edits import edit_key, is_masked, places_of
from retrieval.knowledge.rewrites.rewriting import candidate_edits
from retrieval.knowledge.rows.principals import drop_loudest
from retrieval.knowledge.values.parameters import EVERY, Path, value_at
from retrieval.knowledge.values.scalars import same_value
from retrieval.knowledge.values.texts import is_number

MAX_EXAMPLES = 24
MAX_OF_ONE_AGENT = 8
MAX_SIZE = 1_500
"""Characters of an example's two calls; larger ones are not kept."""
_MAX_KEPT = 256
"""Lists of examples, of 3 kB each, whose changes are kept."""
_MOST_OF_PLACE = 12
"""Explanations of one place that are tried on all examples, those of most examples first."""


@dataclass(slots=True)
class RepairExample:
    """A failed call and the one that repaired it; `agent` and `session` are short hashes."""

    failed: JsonObject
    mended: JsonObject
    edits: list[ed.Edit]
    agent: str
    session: str
    execution_id: str
    at: datetime
    followed: bool = False
    """Whether it followed a suggestion: then it states what such a call may also have meant, and
    speaks for no change, since that it ran is weak evidence of right."""


def add_example(examples: list[RepairExample], new: RepairExample) -> None:
    """Add an example in place; one of each session, the latest few of each agent and in all.

    Of several principals the one with the most makes space; what followed a suggestion makes space
    for what an agent did by itself.
    """
    if len(canonical_json(new.failed)) + len(canonical_json(new.mended)) > MAX_SIZE:
        return
    if new.followed and any(each.session == new.session and not each.followed for each in examples):
        return
    kept = [*(each for each in examples if each.session != new.session), new]
    kept.sort(key=lambda each: not each.followed)
    own = [each for each in kept if each.agent == new.agent]
    dropped = {each.session for each in own[: max(0, len(own) - MAX_OF_ONE_AGENT)]}
    examples[:] = [each for each in kept if each.session not in dropped]
    drop_loudest(examples, MAX_EXAMPLES, lambda each: each.agent)


@dataclass(frozen=True, slots=True)
class CommonChange:
    """An edit that examples have in common, by their places in the list of examples.

    `mended` are those that it explains, `otherwise` those that it could have been made to and that
    were repaired differently. `is_general` states that it was never made to a call quite like this.
    """

    edit: ed.Edit
    mended: frozenset[int]
    otherwise: frozenset[int] = field(default_factory=frozenset)
    is_general: bool = False


def common_changes(examples: Sequence[RepairExample]) -> list[CommonChange]:
    """Return every explanation of what examples changed, with the examples that speak for it.

    They take a millisecond to find, so those of the examples asked about last are kept: what is
    known of a tool is read again whenever something of it was learned.
    """
    return list(_changes_of(_json_of_examples().dump_json(list(examples))))


@cache
def _json_of_examples() -> TypeAdapter[list[RepairExample]]:
    return TypeAdapter(list[RepairExample])


@lru_cache(_MAX_KEPT)
def _changes_of(stated: bytes) -> tuple[CommonChange, ...]:
    examples = _json_of_examples().validate_json(stated)
    own = [
        (at, each, candidate_edits(each.failed, each.mended))
        for at, each in enumerate(examples)
        if not each.followed
    ]
    made_by: dict[str, set[int]] = {}
    edits: dict[str, ed.Edit] = {}
    for at, example, possible in own:
        of_sources = [edit for edit in example.edits if isinstance(edit, _OF_SOURCES)]
        for edit in (*of_sources, *possible):
            key = edit_key([edit])
            edits.setdefault(key, edit)
            made_by.setdefault(key, set()).add(at)
    bounds = _find_bounds(chain(*(possible for *_, possible in own)))
    general = {edit_key([edit]): edit for edit in bounds}
    edits |= general
    by_place = gather_values((edits[key].path, key) for key in edits)
    found = []
    for keys in by_place.values():
        tried = sorted(keys, key=lambda key: (key not in general, -len(made_by.get(key, ()))))
        for key in tried[:_MOST_OF_PLACE]:
            edit = edits[key]
            known = made_by.get(key, set())
            # One that is made to each element is verified for all of them.
            known = set() if EVERY in edit.path else known
            mended = set(known)
            otherwise = set[int]()
            for at, each in enumerate(examples):
                explains = None if at in known else _explains_example(edit, each)
                if explains is False:
                    otherwise.add(at)
                elif explains and not each.followed:
                    mended.add(at)
            if mended and not is_masked(edit):
                found.append(
                    CommonChange(edit, frozenset(mended), frozenset(otherwise), key in general)
                )
    return tuple(_as_tables(found))


def _as_tables(changes: Sequence[CommonChange]) -> list[CommonChange]:
    """Give each value that was always replaced by the same one what speaks for all of its place.

    `true` to `Y` and `false` to `N` are one table: each is as well shown as both.
    """
    replaced = gather_values(
        (each.edit.path, each) for each in changes if isinstance(each.edit, ed.Replace)
    )
    shown = {
        path: frozenset(at for each in pairs for at in each.mended)
        for path, pairs in replaced.items()
        if len(pairs) > 1 and len({canonical_json(_edit_value(each.edit)) for each in pairs}) > 1
    }
    return [
        replace(each, mended=shown[each.edit.path] - each.otherwise)
        if isinstance(each.edit, ed.Replace) and not each.otherwise and each.edit.path in shown
        else each
        for each in changes
    ]


def _edit_value(edit: ed.Edit) -> JsonValue:
    return edit.value if isinstance(edit, ed.Replace) else None


_OF_SOURCES = (ed.FromError, ed.FromContext, ed.Clamp, ed.Balance)
"""Edits that were explained by error or task when they were seen."""


def _find_bounds(possible: Iterable[ed.Edit]) -> Iterator[ed.Edit]:
    """Bounds that the numbers at one place were moved to, of what may have been done."""
    numbers = gather_values(
        (edit.path, (float(edit.before), float(edit.value)))
        for edit in possible
        if isinstance(edit, ed.Replace) and is_number(edit.before) and is_number(edit.value)
    )
    for path, pairs in numbers.items():
        befores = [before for before, _ in pairs]
        afters = {after for _, after in pairs}
        if len(afters) > 1:
            continue
        [bound] = afters
        if min(befores) > bound:
            yield ed.Clamp(name="", maximum=bound).at_path(path)
        elif max(befores) < bound:
            yield ed.Clamp(name="", minimum=bound).at_path(path)


def _explains_example(edit: ed.Edit, example: RepairExample) -> bool | None:
    """Return whether an edit gives what repaired an example, at its places.

    None: it does not apply.
    """
    made = try_edits(example.failed, [edit])
    if made is None:
        return None
    places = [
        each for path in places_of(edit) for each in places_within(path, example.mended, made)
    ]
    return all(
        same_value(value_or_none(made, path), value_or_none(example.mended, path))
        for path in places
    )


def places_within(path: Path, *calls: JsonObject) -> Iterator[Path]:
    """Yield the places that a path stands for in either of the calls."""
    if EVERY not in path:
        yield path
        return
    at = path.index(EVERY)
    lists = [each for call in calls if isinstance(each := value_at(call, path[:at]), list)]
    for index in range(max(map(len, lists), default=0)):
        yield from places_within((*path[:at], index, *path[at + 1 :]), *calls)


MISSING = "\x00missing"
"""Stands for a value that is not there: it differs from null."""


def value_or_none(value: JsonObject, path: Path) -> JsonValue:
    """Return the value at a path; `MISSING` where the object there has none."""
    around = value_at(value, path[:-1])
    if isinstance(around, dict) and str(path[-1]) not in around:
        return MISSING
    return value_at(value, path)
