"""The four classes of change, and what of a tool and a call decides what they may do.

A repair is *lossless* (the same information in the form that the tool states), *plausible* (a
neutral word for the only thing missing), *lossy* (something of what was asked is gone) or
*semantic* (another value, or a name that nothing but being left over points to). How sure a repair
is does not decide whether it may be followed; what it could do wrong does (`policy`).
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import product
from typing import Any, Final

from aftercall.json_values import json_or_none
from aftercall.models.calls import ChangeClass, ToolAnnotations

ORDER: Final[tuple[ChangeClass, ...]] = ("lossless", "plausible", "lossy", "semantic")
"""From the least to the most that can be lost."""
_READING_NOUNS: Final = (["log"], ["logs"], ["history"], ["info"], ["details"], ["version"])
"""Last words of names such as `git_log`; as a first word they may be verbs."""
QUORUM: Final = 2
"""Principals whose repairs a semantic change wants."""


def _words_in(text: str) -> frozenset[str]:
    return frozenset(text.split())


_READING: Final = _words_in(
    """
    browse calculate check compare compute convert count describe diff display download estimate
    fetch find get grep head inspect list locate lookup ls measure preview query read retrieve
    search select show stat status summarize tail tell validate verify view wc
    """
)
_CHANGING: Final = _words_in(
    """
    accept activate add append apply approve archive assign assume authenticate ban block book
    buy call cancel change charge clear click close comment commit complete configure connect
    copy cp create deactivate decline delete deploy destroy disable disconnect do drop edit
    empty enable erase exchange exec execute fill forward grant import insert install invite
    invoke join kill lock make merge mkdir modify move mv open order overwrite patch pay persist
    place post press publish purchase purge push put refund register reject release remove
    rename replace reply reserve reset resolve restart restore revert revoke rm rmdir run save
    schedule sell send set share shutdown sign start stop submit subscribe switch terminate
    touch transfer truncate turn uninstall unlock unregister unsubscribe update upgrade upload
    upsert wipe withdraw write
    """
)
_DESTROYING: Final = _words_in(
    """
    ban cancel charge clear delete deploy destroy discard drop empty erase evict exec execute expire
    flush kill merge overwrite pay payment prune publish purchase purge refund remove reset
    revert revoke rm rmdir run shutdown terminate transfer truncate uninstall wipe withdraw
    """
)
"""What is not undone by calling again: it is gone, out, paid, or anything at all was run."""
_QUALIFYING: Final = _words_in(
    """
    above after allow append approval backup before behalf below besides but check condition confirm
    confirmed deny diff draft dry encoding environment etag except exclude expected filter force
    glob ignore impersonate include invert keep limit match max min mode negate never newer no not
    older omit only other overwrite patch permanent preserve preview protect recursive remaining
    rest retain revert rollback safe sandbox schedule scheduled scope simulate since skip unchanged
    undo unless until validate what when where without
    """
)
_SPELT: Final = {
    "confirmed": "confirm", "excepted": "except", "excluded": "exclude", "excludes": "exclude",
    "excluding": "exclude", "filters": "filter", "ignored": "ignore", "included": "include",
    "includes": "include", "including": "include", "inverted": "invert", "keeping": "keep",
    "maximum": "max", "minimum": "min", "negated": "negate", "others": "other",
    "protected": "protect", "retained": "retain", "simulated": "simulate",
    "simulation": "simulate", "skipped": "skip",
}  # fmt: skip
_ACTING: Final = _words_in("append backup confirm dry overwrite permanent preview simulate")
BOUNDS: Final = _words_in("after before limit max min since until")
"""Qualifiers that say how much, or from when to when: of a call that only reads, their other names
say the same."""
_PAIRS: Final = _words_in(
    """
    accept/declin accept/reject activ/suspend add/remov allow/block allow/deni allow/deny
    allow/forbid approv/deni approv/reject asc/desc ascend/descend attach/detach
    before/after begin/end billing/shipping
    buy/sell close/open connect/disconnect create/delet credit/debit decreas/increas decrypt/encrypt
    deposit/withdraw down/up download/upload east/west enabl/disabl exclud/includ export/import
    extern/intern first/last follow/unfollow from/to grant/revok hidden/visible hide/show high/low
    inbound/outbound incoming/outgoing ingress/egress input/output left/right lock/open max/min
    maximum/minimum mute/unmute negative/positive new/old north/south off/on parent/child
    private/public pull/push read/write receiv/send recipient/sender shut/open since/until
    sourc/destination sourc/target src/dst start/end start/stop upper/lower
    """
)
_OPPOSITES: Final = frozenset(tuple(pair.split("/")[::way]) for pair in _PAIRS for way in (1, -1))
_NEGATING: Final = ("de", "dis", "im", "in", "ir", "no", "non", "not", "un")
_NOT: Final = _words_in("never no non not without")
_MAX_NAME: Final = 100
_SHORT: Final = 3
"""Letters up to which a word of a pair stands alone: `on` is not the beginning of `only`."""
_OPERATOR: Final = re.compile(r"[!<>=~^]")
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def qualifiers_of(name: str) -> frozenset[str]:
    """Return the words of a parameter's name that limit, negate or qualify; empty for most.

    A mark such as in `!names` or `id<` is one too.
    """
    words = {_SPELT.get(word, word) for word in _words_of(name)}
    return _QUALIFYING & words | frozenset(_OPERATOR.findall(name))


def are_opposites(left: str, right: str) -> bool:
    """Return whether two names or values differ by a word and its opposite."""
    if max(len(left), len(right)) > _MAX_NAME:
        return False
    one, other = set(_words_of(left)), set(_words_of(right))
    ones, others = one - other, other - one
    if (not ones or not others) and (ones | others) & _NOT:
        return True
    return any(_are_opposite(*pair) for pair in product(ones, others))


@lru_cache(4_096)
def _are_opposite(one: str, other: str) -> bool:
    if any(
        _begins_with(one, stem) and _begins_with(other, against) for stem, against in _OPPOSITES
    ):
        return True
    return _is_negated(one, other) or _is_negated(other, one)


def _is_negated(longer: str, shorter: str) -> bool:
    """Return whether a word is another one behind `un`, `dis` and the like."""
    for before in _NEGATING:
        rest = longer.removeprefix(before)
        if rest == longer:
            continue
        # Equal but for the ending or a slip in it: `locked` and `lockd`.
        if rest == shorter or (len(rest) > _SHORT and rest[:4] == shorter[:4]):
            return True
    return False


def _begins_with(word: str, stem: str) -> bool:
    return word == stem or (len(stem) > _SHORT and word.startswith(stem))


def reads_only(
    tool_name: str, annotations: ToolAnnotations | None, call: Iterable[str] = ()
) -> bool:
    """Return whether a tool states, or is presumed by its name, only to read.

    Nothing is presumed of a `call` that has parameters such as `dryRun` or `overwrite`.
    """
    if annotations is not None and annotations.destructive_hint and not annotations.read_only_hint:
        return False
    if annotations is not None and annotations.read_only_hint is not None:
        return annotations.read_only_hint
    hinted = annotations is not None and (
        annotations.destructive_hint is not None or annotations.idempotent_hint is not None
    )
    words = _words_of(tool_name)
    reads = not _READING.isdisjoint(words) or words[-1:] in _READING_NOUNS
    acts = any(qualifiers_of(name) & _ACTING for name in call)
    return not hinted and not acts and reads and _CHANGING.isdisjoint(words)


def is_destroying(tool_name: str, annotations: ToolAnnotations | None) -> bool:
    """Return whether a tool is declared destructive, or has a destroying verb in its name."""
    declared = annotations is not None and bool(annotations.destructive_hint)
    return declared or bool(set(_words_of(tool_name)) & _DESTROYING)


def alters_qualifier(
    before: dict[str, Any], after: dict[str, Any], *, but: frozenset[str] = frozenset()
) -> bool:
    """Return whether a parameter that limits or negates is gone, is new, or has become another one.

    Looks at every depth, and into JSON text; one that was empty, false or null stated nothing.
    """
    return bool((_qualifying_words(before) ^ _qualifying_words(after)) - but)


_MAX_TEXT: Final = 20_000


def _qualifying_words(value: object) -> frozenset[str]:
    found: set[str] = set()
    if isinstance(value, str) and value[:1] in ("{", "[") and len(value) <= _MAX_TEXT:
        value = json_or_none(value)
    if isinstance(value, dict):
        for name, inner in value.items():
            if inner not in (None, "", False, [], {}):
                found |= qualifiers_of(str(name))
            found |= _qualifying_words(inner)
    elif isinstance(value, list):
        for inner in value:
            found |= _qualifying_words(inner)
    return frozenset(found)


def _words_of(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]
