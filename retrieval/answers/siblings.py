"""Siblings: the same tool behind another server, in other spellings, or in another version.

Where a tool has no lesson of its own for an error, what was repaired on a sibling is read in this
tool's names. It is advice until it has worked here: one tool's repair is no proof for another.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from aftercall.json_values import JsonObject, JsonValue
from mongo.records import ToolKey
from retrieval.knowledge.tool.examples import RepairExample
from retrieval.knowledge.tool.rules import SignatureKnowledge, ToolKnowledge
from retrieval.knowledge.values.likeness import words_of

MOST = 4
"""Siblings whose lessons are read."""
_ALIKE = 0.6
"""Share of the words, of two tools' names, of parameters or of errors, that have to be the same."""
_MAX_SIGNATURES = 20
_KEPT = 4_096
"""Names and signatures whose words are kept: without, 200 tools took 2 ms of each answer."""
_VERSION = re.compile(r"v?\d+")
_CALLS = frozenset(("get", "list", "find", "search", "fetch", "query", "read", "lookup"))
_MAKES = frozenset(("create", "add", "make", "new", "insert", "post"))
_CHANGES = frozenset(("update", "edit", "modify", "set", "patch", "change"))


@dataclass(frozen=True, slots=True)
class Sibling:
    """What repaired such an error on another tool, in the names of the tool that is asked about."""

    tool_name: str
    examples: tuple[RepairExample, ...]


def may_be_siblings(tool: ToolKey, others: Iterable[ToolKey]) -> list[ToolKey]:
    """Return the tools of other servers, or versions of this one, whose names say the same."""
    mine = _without_verbs(tool.tool_name, tool.server_name)
    found = []
    for other in others:
        if other == tool:
            continue
        if other.tool_name == "":
            continue
        is_elsewhere = other.server_name != tool.server_name
        is_version = _plain_words(tool.tool_name) == _plain_words(other.tool_name)
        if not is_elsewhere and not is_version:
            continue
        theirs = _without_verbs(other.tool_name, other.server_name)
        share = _shared_ratio(mine, theirs)
        if share >= _ALIKE:
            found.append((-share, other.server_name or "", other.tool_name, other))
    return [each[-1] for each in sorted(found, key=lambda each: each[:-1])[:MOST]]


def sibling_of(
    other: ToolKey, known: ToolKnowledge, signature: str, call: JsonObject, names: Iterable[str]
) -> Sibling | None:
    """Return what another tool's lesson is for a call with an error; None without one.

    Args:
        other: the sibling.
        known: what is known of it.
        signature: the words of the error available.
        call: parameters of the failed call.
        names: further parameters that the tool is known to have.
    """
    mine = {*_all_keys(call), *names}
    said = words_of_text(signature)
    best: tuple[float, SignatureKnowledge] | None = None
    for each in list(known.signatures.values())[-_MAX_SIGNATURES:]:
        if all(e.followed for e in each.examples):
            continue
        share = _shared_ratio(said, words_of_text(each.signature))
        if share >= _ALIKE:
            best = max(best or (0.0, each), (share, each), key=lambda pair: pair[0])
    if best is None:
        return None
    own = [each for each in best[1].examples if not each.followed]
    theirs = {key for each in own for part in (each.failed, each.mended) for key in _all_keys(part)}
    spelt = map_spelling(theirs, mine)
    sent = {key for each in own for key in each.failed}
    if not sent:
        return None
    if len({spelt[key] for key in sent} & mine) < _ALIKE * len(sent):
        return None
    told = tuple(
        replace(
            each,
            failed=_rename_keys(each.failed, spelt),
            mended=_rename_keys(each.mended, spelt),
            edits=[],
        )
        for each in own
    )
    return Sibling(other.tool_name, told)


def map_spelling(theirs: Iterable[str], mine: set[str]) -> dict[str, str]:
    """Return each of their names as this tool spells it: as known, or else in its style."""
    by_words = {words_of(name): name for name in sorted(mine)}
    is_camel = any(re.search(r"[a-z][A-Z]", name) for name in mine)
    is_snake = any("_" in name for name in mine)
    found = {}
    for name in theirs:
        words = words_of(name)
        if words in by_words:
            found[name] = by_words[words]
        elif len(words) < 2 or is_camel == is_snake:
            found[name] = name
        elif is_camel:
            first, *rest = words
            found[name] = first + "".join(map(str.title, rest))
        else:
            found[name] = "_".join(words)
    return found


@lru_cache(_KEPT)
def words_of_text(text: str) -> frozenset[str]:
    """Return the words of a text, of identifiers in it too; masks are none."""
    bare = re.sub(r"<\w+>", " ", text)
    return frozenset(word for part in re.findall(r"[\w]+", bare) for word in words_of(part))


@lru_cache(_KEPT)
def _without_verbs(tool_name: str, server_name: str | None) -> frozenset[str]:
    """Return the words of a tool's name without its server's and a version.

    Verbs that mean the same.
    """
    of_server = set(words_of(server_name or ""))
    words = [word for word in words_of(tool_name) if not _VERSION.fullmatch(word)]
    kept = [word for word in words if word not in of_server] or words
    return frozenset(map(_common_verb, kept))


def _common_verb(word: str) -> str:
    for verbs in (_CALLS, _MAKES, _CHANGES):
        if word in verbs:
            return min(verbs)
    return word.removesuffix("s")


@lru_cache(_KEPT)
def _plain_words(name: str) -> tuple[str, ...]:
    return tuple(word for word in words_of(name) if not _VERSION.fullmatch(word))


def _shared_ratio(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one | other))


def _all_keys(value: JsonValue) -> list[str]:
    if isinstance(value, dict):
        return [key for name, held in value.items() for key in (name, *_all_keys(held))]
    if isinstance(value, list):
        return [key for held in value for key in _all_keys(held)]
    return []


def _rename_keys(value: JsonObject, spelt: Mapping[str, str]) -> JsonObject:
    def spell_keys(part: JsonValue) -> JsonValue:
        if isinstance(part, dict):
            return {spelt.get(name, name): spell_keys(held) for name, held in part.items()}
        if isinstance(part, list):
            return [spell_keys(held) for held in part]
        return part

    return {spelt.get(name, name): spell_keys(held) for name, held in value.items()}
