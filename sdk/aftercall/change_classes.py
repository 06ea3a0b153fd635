"""What may be followed without asking: the four classes of change, and the gate.

A repair is *lossless* (the same information in the form that the tool states), *plausible* (a
neutral word for the only thing missing), *lossy* (something of what was asked is gone) or
*semantic* (another value, or a name that nothing but being left over points to). How sure a repair
is does not decide whether it may be followed; what it could do wrong does. The gate stands in the
service and in the SDK, so that neither has to trust the other.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

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
    clear delete destroy drop empty erase kill overwrite purge remove reset rm rmdir shutdown
    terminate truncate uninstall wipe
    """
)
_QUALIFYING: Final = _words_in(
    """
    above after allow append backup before below condition confirm confirmed diff dry encoding
    except exclude excluded excludes excluding filter filters force ignore include keep limit
    max maximum min minimum mode no not only overwrite patch permanent preview recursive scope
    simulate since skip unless until where without
    """
)
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def strictest(classes: Iterator[ChangeClass]) -> ChangeClass:
    """The class of a suggestion of several changes; lossless for none."""
    return max(classes, key=ORDER.index, default="lossless")


def qualifiers_of(name: str) -> frozenset[str]:
    """The words of a parameter's name that limit, negate or qualify; empty for most."""
    return frozenset(_words(name)) & _QUALIFYING


def reads_only(tool_name: str, annotations: ToolAnnotations | None) -> bool:
    """Whether a tool says, or is presumed by its name where it says nothing, only to read."""
    if annotations is not None and annotations.destructive_hint and not annotations.read_only_hint:
        return False
    if annotations is not None and annotations.read_only_hint is not None:
        return annotations.read_only_hint
    hinted = annotations is not None and (
        annotations.destructive_hint is not None or annotations.idempotent_hint is not None
    )
    words = _words(tool_name)
    reads = not _READING.isdisjoint(words) or words[-1:] in _READING_NOUNS
    return not hinted and reads and _CHANGING.isdisjoint(words)


def destroys(tool_name: str, annotations: ToolAnnotations | None) -> bool:
    """Whether a tool is declared destructive, or has a destroying verb in its name."""
    declared = annotations is not None and bool(annotations.destructive_hint)
    return declared or bool(set(_words(tool_name)) & _DESTROYING)


def may_be_followed(
    change: ChangeClass,
    tool_name: str,
    annotations: ToolAnnotations | None,
    *,
    rejected: bool,
    principals: int = 0,
    quorum: int = QUORUM,
) -> tuple[bool, str]:
    """Whether a change may be followed without asking, and why, in words.

    Args:
        change: the class of the strictest of the changes.
        tool_name: of the tool that is called again.
        annotations: hints of the live tool that the caller trusts; None for none.
        rejected: whether the failed call was rejected before it ran.
        principals: whose own repairs made the same change to values like these.
        quorum: how many of these a semantic change wants.
    """
    reads = reads_only(tool_name, annotations)
    if not (rejected or reads or (annotations is not None and annotations.idempotent_hint)):
        return False, "the call may have had an effect, and nothing says that it can be repeated"
    refusal = ""
    if change == "semantic":
        refusal = _why_not_semantic(annotations, principals, quorum, reads=reads)
    elif change == "lossy" and not reads:
        refusal = "something of what was asked is lost, and the tool does not only read"
    elif change == "plausible" and not reads and (not rejected or destroys(tool_name, annotations)):
        refusal = "the name is only likely to be the right one, and the tool may destroy"
    if refusal:
        return False, refusal
    return True, _BEFORE_IT_RAN if rejected else _ONLY_READS if reads else _TWICE


def _why_not_semantic(
    annotations: ToolAnnotations | None, principals: int, quorum: int, *, reads: bool
) -> str:
    if not reads and not _is_harmless_again(annotations):
        return "it means something else, and the tool does not only read"
    if principals < quorum:
        return "it means something else; that is for the caller to decide"
    return ""


_BEFORE_IT_RAN = "the call was rejected before it ran"
_ONLY_READS = "the tool only reads"
_TWICE = "the tool says that doing it twice changes nothing"


def _is_harmless_again(annotations: ToolAnnotations | None) -> bool:
    """Whether a tool says that doing it twice changes nothing, and does not destroy."""
    return (
        annotations is not None
        and bool(annotations.idempotent_hint)
        and annotations.destructive_hint is False
    )


def loses_qualifier(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether a parameter that limits or negates is gone, or has become another one.

    Looks at every depth; one that was empty, false or null said nothing.
    """
    return bool(_qualifying(before) - _qualifying(after))


def _qualifying(value: object) -> frozenset[str]:
    found: set[str] = set()
    if isinstance(value, dict):
        for name, inner in value.items():
            if inner not in (None, "", False, [], {}):
                found |= qualifiers_of(str(name))
            found |= _qualifying(inner)
    elif isinstance(value, list):
        for inner in value:
            found |= _qualifying(inner)
    return frozenset(found)


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]
